"""The stubs: what the declarations say, complete, and true to a type checker."""

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from shutil import which

import pytest

import everyorder.runtime.bootstrap  # noqa: F401  # installs functions and methods
from everyorder import runtime
from everyorder.runtime.futures import Future
from everyorder.runtime.schema.enums import DType, MemoryFormat
from everyorder.runtime.tensors.tensor import METHODS
from tests.counting import unmeasured
from tests.tools import stub

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "typed_program.py"
AGAIN = "write them anew: python -m tests.tools.stub --write"


def test_the_file_is_what_the_declarations_say() -> None:
    assert stub.FILE.read_text(encoding="utf-8") == stub.text(), AGAIN


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stub.main([]) == 0
    monkeypatch.setattr(stub, "FILE", tmp_path / "declared.pyi")
    assert stub.main([]) == 1
    assert "declared.pyi is not what the declarations say" in capsys.readouterr().out
    assert stub.main(["--write"]) == 0
    assert stub.main([]) == 0


def names_in(path: Path, owner: str = "") -> set[str]:
    """The names that a stub declares, of a class or of the module."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if owner:
        (kind,) = (n for n in body if isinstance(n, ast.ClassDef) and n.name == owner)
        body = kind.body
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_every_method_is_declared_and_nothing_else() -> None:
    declared = names_in(stub.FILE, "Declared")
    assert declared <= {*METHODS}
    missing = {*METHODS} - declared
    # The class says these itself.
    assert missing <= {*vars(runtime.Tensor)}
    assert missing == {"__array_priority__", "grad", "grad_fn", "is_leaf"} | {
        *("requires_grad", "requires_grad_", "_version")
    } & {*METHODS}


def test_every_function_is_declared_and_nothing_else() -> None:
    declared = names_in(stub.FILE)
    assert {*runtime.bootstrap.functions.FUNCTIONS} <= declared
    assert [name for name in declared if not hasattr(runtime, name)] == []


def test_every_operator_is_declared_and_nothing_else() -> None:
    declared = names_in(stub.FILE, "Core")
    assert [name for name in declared if not hasattr(runtime.ops.core, name)] == []
    assert len(declared) > 300


def every_name() -> str:
    """A program that asks for every name of the surface."""
    codes = (*DType.NAMES, *DType.SYNONYMS, *MemoryFormat.NAMES, "strided")
    modules = (*runtime._MODULES, *runtime._LIGHT_MODULES)
    loaded = (*runtime._LAZY, *modules, *runtime._CONSTANTS)
    names = {*runtime.__all__, *codes, *loaded, *runtime.bootstrap.functions.FUNCTIONS}
    assert {name for name in dir(runtime) if name not in vars(runtime)} <= names
    of_module = (f"print(runtime.{name})" for name in sorted(names))
    of_tensor = (f"print(x.{name})" for name in sorted(METHODS))
    return "\n".join(
        [
            "from everyorder import runtime",
            *of_module,
            "x = runtime.ones(2)",
            *of_tensor,
        ]
    )


def test_mypy_knows_them(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    everything = tmp_path / "every_name.py"
    everything.write_text(every_name(), encoding="utf-8")
    # A line that it should refuse, and does not, is an unused `type: ignore`.
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(PROGRAM), str(everything)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=unmeasured(),
    )
    assert found.returncode == 0, found.stdout


def test_pyright_knows_them() -> None:
    if find_spec("pyright") is not None:
        command = [sys.executable, "-m", "pyright"]
    elif (there := which("pyright")) is not None:
        command = [there]
    else:
        pytest.skip("pyright is not installed")
    found = subprocess.run(
        [*command, "--pythonpath", sys.executable, str(PROGRAM)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert found.returncode == 0, found.stdout


def test_the_program_runs_into_what_checkers_refuse() -> None:
    # What a checker is told is not there must not be there.
    absent = re.findall(r"print\(([\w.]*\bnonexistent)\)", PROGRAM.read_text("utf-8"))
    assert {*absent} == {
        *("x.nonexistent", "runtime.nonexistent", "scale.nonexistent"),
        *("runtime.ops.core.nonexistent", "future.nonexistent"),
    }
    future: Future[int] = Future()
    for owner in (runtime.ones(2), runtime, runtime.ops.core, future):
        assert not hasattr(owner, "nonexistent")


def overloads_in(path: Path, owner: str = "") -> dict[str, list[ast.arguments]]:
    """What the functions of a stub take, one entry for each overload."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if owner:
        (kind,) = (n for n in body if isinstance(n, ast.ClassDef) and n.name == owner)
        body = kind.body
    found: dict[str, list[ast.arguments]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node.args)
    return found


def test_what_help_shows_is_what_a_checker_is_told() -> None:
    # The signatures that `help` shows come from the same schemas by another way.
    told = overloads_in(stub.FILE)
    compared = 0
    for name in runtime.bootstrap.functions.OPERATORS:
        shown = signature(getattr(runtime, name)).parameters.values()
        wanted = [each.name for each in shown if each.name != "out"]
        required = sum(
            each.default is Parameter.empty
            and each.kind is not Parameter.VAR_POSITIONAL
            for each in shown
        )
        (arguments,) = told[name]
        by_place = [each.arg for each in arguments.args]
        by_name = [each.arg for each in arguments.kwonlyargs if each.arg != "out"]
        assert by_place + by_name == wanted, name
        defaults = len(arguments.defaults) + sum(
            default is not None and each.arg != "out"
            for each, default in zip(
                arguments.kwonlyargs, arguments.kw_defaults, strict=True
            )
        )
        assert len(by_place) + len(by_name) - defaults == required, name
        compared += 1
    assert compared > 100


def test_the_files_are_in_the_wheel() -> None:
    hatchling = pytest.importorskip(
        "hatchling.builders.wheel", reason="hatchling is not installed"
    )
    files = hatchling.WheelBuilder(str(ROOT)).recurse_included_files()
    packed = {each.distribution_path for each in files}
    assert packed >= {
        "everyorder/py.typed",
        "everyorder/__init__.pyi",
        "everyorder/harness/__init__.pyi",
        "everyorder/runtime/declared.pyi",
    }
    assert {each.partition("/")[0] for each in packed} == {"everyorder"}
