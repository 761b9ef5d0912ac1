"""Public functions, operators and constants are pickled by name, and are themselves."""

import pickle
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import DType, Tensor, default_dispatcher, ops, tensor
from everyorder.runtime.operators.bindings.functions import FUNCTIONS
from everyorder.runtime.schema.enums import Layout, MemoryFormat
from everyorder.runtime.tensors.tensor import METHODS


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name: str) -> None:
    function = getattr(runtime, name)
    assert copied(function) is function


# Wrapped by the module that installs it.
ELSEWHERE = {"as_subclass"}


def test_every_method() -> None:
    for name in METHODS.keys() - ELSEWHERE:
        method = getattr(Tensor, name)
        public = name.startswith("__") or not name.startswith("_")
        if public and not isinstance(method, property):
            assert copied(method) is method, name


def test_a_bound_method() -> None:
    assert copied(tensor([1.0, 2.0]).sum)().item() == 3.0


def test_every_operator_and_packet() -> None:
    names = [n for n in default_dispatcher().op_names() if n.startswith("core::")]
    assert len(names) > 300
    for name in names:
        base, _, overload = name.removeprefix("core::").partition(".")
        packet = getattr(ops.core, base)
        handle = getattr(packet, overload or "default")
        assert copied(packet) is packet, name
        assert copied(handle) is handle, name


def test_constants() -> None:
    constants = [
        *(DType.named(name) for name in DType.NAMES),
        *(Layout.named(name) for name in Layout.NAMES),
        *(MemoryFormat.named(name) for name in MemoryFormat.NAMES),
        *map(runtime.device, ["cpu", "meta", "cuda:1"]),
    ]
    for constant in constants:
        assert copied(constant) is constant
