"""The public names of `runtime` and `runtime.errors`, and what importing them costs."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everyorder import runtime
from everyorder.coded_error import sentences
from everyorder.runtime.errors.base import EveryorderError

# Modules of ours, and of all; how long they take, `make bench` measures.
OURS, ALL = 100, 190

COLD = """
import sys
before = set(sys.modules)
from everyorder import runtime
print(len([name for name in sys.modules if name.startswith("everyorder.runtime")]))
print(len(set(sys.modules) - before))
print(sorted({"numpy", "numba", "asyncio"} & set(sys.modules)))
"""


def test_importing_is_cheap_and_loads_no_numpy() -> None:
    # Nobody looks on: coverage would be loaded, too.
    alone = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    command = [sys.executable, "-c", COLD]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    ours, every, heavy = run.stdout.splitlines()
    assert heavy == "[]"
    assert int(ours) <= OURS
    assert int(every) <= ALL


def test_every_public_name_is_there_and_is_listed() -> None:
    assert list(runtime.__all__) == sorted(runtime.__all__)
    assert set(runtime.__all__) == {
        *("can_cast", "is_inference_mode_enabled", "layout", "memory_format"),
        "promote_types",
        *("DType", "Device", "DispatchKey", "Dispatcher", "EveryorderError"),
        *("Function", "Generator", "KernelOverridden", "KeySet", "Library"),
        *("OperatorHandle", "Registration", "Schema", "Storage"),
        *("Context", "TorchDispatchMode", "custom_op", "infer_schema", "opcheck"),
        *("Tensor", "as_tensor", "autocast", "boxed", "default_dispatcher"),
        *("default_generator", "direct", "enable_grad", "exclude_keys", "fallthrough"),
        *("from_dlpack", "from_numpy", "full_after", "get_num_threads"),
        *("asarray", "frombuffer", "get_default_dtype", "set_default_dtype"),
        *("get_printoptions", "printoptions", "set_printoptions"),
        *(
            "include_keys",
            "inference_mode",
            "is_autocast_enabled",
            "is_grad_enabled",
            "linked",
        ),
        *("manual_seed", "named_not_supported", "no_grad", "ops", "parse_schema"),
        *("register_memory", "result_type", "set_grad_enabled", "set_num_threads"),
        *("Size", "define", "device", "dtype", "finfo", "iinfo", "impl", "tensor"),
        *("Module", "ModuleDict", "ModuleList", "Parameter", "Sequential"),
    }
    assert all(getattr(runtime, name) is not None for name in runtime.__all__)
    assert set(runtime.__all__) <= set(dir(runtime))


def test_lazy_names_are_the_real_ones() -> None:
    tensors = importlib.import_module("everyorder.runtime.tensors")
    assert runtime.__getattr__("tensor") is tensors.tensor
    assert runtime.__getattr__("Tensor") is tensors.Tensor


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as caught:
        runtime.__getattr__("tensr")
    assert (caught.value.name, str(caught.value)) == (
        "tensr",
        "module 'everyorder.runtime' has no attribute 'tensr'",
    )


def test_ops_are_those_of_the_default_dispatcher() -> None:
    with runtime.Library("surface", "DEF") as library:
        library.define("twice(int x) -> int")
        library.impl("twice", lambda x: 2 * x, "CompositeExplicitAutograd")
        assert runtime.ops.surface.twice(4) == 8
        assert "surface" in dir(runtime.ops)
    assert "surface" not in dir(runtime.ops)


def leaves(kind: type[EveryorderError]) -> set[type[EveryorderError]]:
    """The classes that have a name of their own; those of sentences have none."""
    found = {kind}
    for each in kind.__subclasses__():
        found |= set() if each._named else leaves(each)
    return found


def test_errors_lists_every_error_class_of_its_areas() -> None:
    areas = {module.name for module in pkgutil.iter_modules(runtime.errors.__path__)}
    for area in areas:
        importlib.import_module(f"everyorder.runtime.errors.{area}")
    here = {f"everyorder.runtime.errors.{area}" for area in areas}
    classes = {each for each in leaves(EveryorderError) if each.__module__ in here}
    listed = {getattr(runtime.errors, name) for name in runtime.errors.__all__}
    assert listed == classes
    assert list(runtime.errors.__all__) == sorted(runtime.errors.__all__)


def test_a_type_checker_finds_every_area_of_errors() -> None:
    tree = ast.parse(Path(runtime.errors.__file__).read_text(encoding="utf-8"))
    imports = {
        each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)
    }
    areas = {module.name for module in pkgutil.iter_modules(runtime.errors.__path__)}
    assert {
        f"everyorder.runtime.errors.{area}" for area in areas - {"source"}
    } <= imports


def test_no_error_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys; from everyorder import runtime; "
        "before = 'everyorder.runtime.errors.custom' in sys.modules; "
        "print(before, runtime.errors.OpCheckError.__module__)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout == "False everyorder.runtime.errors.custom\n"
    with pytest.raises(AttributeError, match="has no attribute 'No'"):
        runtime.errors.No  # noqa: B018  # asked for


def test_errors_that_are_not_loaded_are_listed() -> None:
    program = (
        "from everyorder.runtime import errors; before = {*vars(errors)}; "
        "print({*errors.__all__} <= {*dir(errors)}, {*errors.__all__} <= before)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout == "True False\n"


def test_every_code_has_words_and_belongs_to_one_class() -> None:
    owners: dict[str, str] = {}
    for name in runtime.errors.__all__:
        kind: Any = getattr(runtime.errors, name)
        told = sentences(vars(kind).get("words", ""))
        for code in told:
            assert owners.setdefault(code, name) == name
            assert code not in runtime.errors.__all__ or code == name
        if not kind.__subclasses__() and len(told) < 2:
            assert kind.code in told or kind.render is not EveryorderError.render
