"""Installing the operators on a dispatcher: each once, and with which tags."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from everyorder.runtime import operators
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.operators import install
from everyorder.runtime.operators.declare.handles import NAMESPACE
from everyorder.runtime.operators.install import FAMILIES, ORIGIN, definitions
from tests.coded import code
from tests.operators.tensors import shown, tensor


def test_installing_on_another_dispatcher() -> None:
    dispatcher = Dispatcher()
    libraries = install(dispatcher)
    assert [library.kind for library in libraries].count("DEF") == 1
    keys = [library.key for library in libraries if library.kind == "IMPL"]
    assert len(keys) == len(set(keys))
    assert {"CPU", "CUDA", "Meta"} <= {key.name for key in keys if key}
    names = sorted(each.schema.partition("(")[0] for each in definitions())
    assert sorted(map(str, dispatcher.op_names())) == [
        f"{NAMESPACE}::{name}" for name in names
    ]
    add = dispatcher.find_op("core::add")
    assert add is not None
    assert shown(add(tensor([1.0]), 2)) == ("float32", [3.0])
    state = dispatcher.dump_state("core::add")
    assert ORIGIN in state
    assert "add_cpu" in state
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        install(dispatcher)
    for library in reversed(libraries):
        library.close()
    assert not list(dispatcher.op_names())


def test_the_default_dispatcher_is_installed_on_once() -> None:
    assert install() is install(default_dispatcher())


# What is called so there is a list of names.
NAMES = {"functions"}


def test_every_module_with_operators_is_a_family() -> None:
    assert operators.__file__ is not None
    folder = Path(operators.__file__).parent
    found = {
        path.stem: import_module(f"everyorder.runtime.operators.{path.stem}").OPERATORS
        for path in folder.glob("*.py")
        if re.search(r"^OPERATORS(: .*)? = \(", path.read_text(), re.MULTILINE)
        and path.stem not in NAMES
    }
    assert len(found) > 10
    families = [id(family) for family in FAMILIES]
    assert {name for name in found if id(found[name]) not in families} == set()


def test_no_operator_is_declared_twice() -> None:
    names = [each.schema.partition("(")[0] for each in definitions()]
    assert len(names) == len(set(names)) > 300


# Tag -> the operators of `core` that have it.
TAGGED = {
    "data_dependent_output": {"_local_scalar_dense", "equal"},
    "dynamic_output_shape": {
        *("index", "masked_select", "nonzero", "_unique", "bincount", "one_hot"),
        *("index.out", "masked_select.out", "nonzero.out", "bincount.out"),
        "repeat_interleave.self_Tensor",
    },
    "nondeterministic_seeded": {
        *("dropout", "native_dropout", "normal_", "uniform_"),
        *("bernoulli", "bernoulli_.float", "bernoulli.out"),
        *("random_", "random_.to", "random_.from"),
        *("multinomial", "multinomial.out"),
        *("rand", "rand_like", "randint", "randn", "randn_like", "randperm"),
        *("rand.out", "randint.out", "randn.out", "randperm.out"),
    },
    "nondeterministic_bitwise": {"empty", "empty.out", "empty_like", "new_empty"},
}
# The operator here -> that of torch, where the name is another one.
OTHERWISE = {
    "_local_scalar_dense": "_local_scalar_dense",
    "empty": "empty.memory_format",
    "_unique": "_unique2",
    "index": "index.Tensor",
    "index.out": "index.Tensor_out",
    "randint.out": "randint.low_out",
}


# Of these torch says nothing; they read elements, or make as many as these say.
UNTAGGED = ("one_hot", "repeat_interleave.self_Tensor", "index.out", "bincount.out")


@pytest.mark.parametrize("tag", TAGGED)
def test_who_has_the_tag(tag: str) -> None:
    found = {
        each.schema.partition("(")[0] for each in definitions() if tag in each.tags
    }
    assert found == TAGGED[tag]


def test_a_handle_tells() -> None:
    handle = default_dispatcher().find_op("core::equal")
    assert handle is not None
    assert handle.tags == (
        "data_dependent_output",
        "defined_tensors",
        "integers_only",
    )


@pytest.mark.torch
def test_torch_has_the_same() -> None:
    """But for elements of any value, and what is a composite here, or is one there."""
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    names = {*set().union(*TAGGED.values()), "empty", "empty_like", "new_empty"}
    for name in names:
        base, _, overload = OTHERWISE.get(name, name).partition(".")
        handle = getattr(getattr(torch.ops.aten, base), overload or "default")
        there = {tag.name for tag in handle.tags} & {*TAGGED}
        here = {tag for tag in TAGGED if name in TAGGED[tag]}
        if name not in UNTAGGED:
            assert there == here - {"nondeterministic_bitwise"}, name
