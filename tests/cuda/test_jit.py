"""Families of kernels: their signatures, keys and numbers."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra `cuda`")

import numpy as np

from everyorder.runtime.kernels.cuda.device import (
    BLOCK,
    WAVES,
    LaunchShape,
    cuda,
    resident,
    rows,
    spread,
)
from everyorder.runtime.kernels.cuda.jit import (
    DECLARED,
    LaunchedKernel,
    LaunchFamily,
    declared,
    device,
    number_of,
    scalar_type,
)


def nothing(*scalars: Any) -> Any:
    def body(out: Any) -> None:
        out[0] = scalars[0](0)

    return body


@pytest.fixture
def family() -> Any:
    made = LaunchFamily(
        "for_the_test",
        nothing,
        "T[::1], R, W, U[::1], V, int64*4, bool[::1]",
        (("float32", "int8"), ("complex64", "uint8")),
    )
    yield made
    del DECLARED["for_the_test"]


def test_signatures(family: LaunchFamily) -> None:
    types = cuda.types
    assert family.types(("complex64", "uint8")) == (
        types.Array(types.complex64, 1, "C"),
        types.float32,
        types.complex128,
        types.Array(types.uint8, 1, "C"),
        types.int64,
        types.UniTuple(types.int64, 4),
        types.Array(types.boolean, 1, "C"),
    )


def test_keys(family: LaunchFamily) -> None:
    assert family.keys == (("float32", "int8"), ("complex64", "uint8"))
    assert [key for one, key in declared() if one is family] == list(family.keys)
    assert family["float32", "int8"] is family["float32", "int8"]
    with pytest.raises(KeyError, match="for_the_test has no kernel for int8"):
        family["int8"]
    add = DECLARED["add"]
    assert add["float32"] is add[("float32",)]


def test_bodies_are_fresh_and_named(family: LaunchFamily) -> None:
    one, two = (family.body(("float32", "int8")) for _ in range(2))
    assert one is not two
    assert one.__qualname__ == "for_the_test_float32_int8"


def test_two_families_of_one_name_are_refused(family: LaunchFamily) -> None:
    with pytest.raises(AssertionError, match="two CUDA families are called"):
        LaunchFamily("for_the_test", nothing, "T[::1]", ("float32",))


@pytest.mark.parametrize(
    ("number", "name", "expected"),
    [
        (300, "int8", 44),
        (-1, "uint8", 255),
        (128, "int8", -128),
        (2.9, "int32", 2),
        (3, "bool", 1),
        (0, "bool", 0),
        (1, "float32", 1.0),
        (True, "float64", 1.0),
        (2, "complex64", 2 + 0j),
        (2**63, "int64", -(2**63)),
    ],
)
def test_numbers_are_brought_into_range(number: Any, name: str, expected: Any) -> None:
    found = number_of(number, name)
    assert found == expected
    assert type(found) is type(expected)


def test_scalar_types() -> None:
    assert scalar_type("bool") is np.bool_
    assert scalar_type("uint16") is np.uint16


def test_functions_known_to_the_compiler_stay_themselves() -> None:
    assert device(len) is len


def test_the_shape_of_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    from everyorder.runtime.kernels.cuda.device import Properties

    hopper = Properties("H", (9, 0), 132, 2048, 232448, 1 << 37)
    monkeypatch.setattr(
        "everyorder.runtime.kernels.cuda.device.properties", lambda at: hopper
    )
    assert resident(0) == 132 * 2048 // BLOCK
    assert spread(1, 0) == (1, BLOCK, 0)
    assert spread(BLOCK + 1, 1) == (2, BLOCK, 1)
    assert spread(1 << 40, 0).grid == WAVES * resident(0)
    assert spread(0, 0).grid == 1
    assert rows(7, 0) == (7, BLOCK, 0)
    assert rows(1 << 40, 0).grid == WAVES * resident(0)


def test_a_launch_goes_to_the_compiled_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled once, for the declared types; on the stream of the launch's device."""
    compiled: list[Any] = []
    launched: list[Any] = []

    class Compiled:
        def launch(self, *arguments: Any) -> None:
            launched.append(arguments)

    class Dispatcher:
        def compile(self, types: Any) -> Compiled:
            compiled.append(types)
            return Compiled()

    module = "everyorder.runtime.kernels.cuda.jit"
    stream = SimpleNamespace(core="the stream")
    monkeypatch.setattr(f"{module}.SIMULATED", False)
    monkeypatch.setattr(f"{module}.on_device", nullcontext)
    monkeypatch.setattr(f"{module}.current_stream", lambda at: stream)
    kernel = LaunchedKernel(nothing(np.float32), ("types",))
    monkeypatch.setattr(kernel, "_dispatcher", Dispatcher())
    for number in (1, 2):
        kernel(LaunchShape(7, 256, 0), "array", number)
    assert compiled == [("types",)]
    assert launched == [
        (("array", number), (7, 1, 1), (256, 1, 1), "the stream", 0)
        for number in (1, 2)
    ]
