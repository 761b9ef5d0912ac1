"""Elementwise kernels of every arity: nothing, threads, direct entries, and layouts."""

import os
from typing import Any

import numpy as np
import pytest

from runtime.kernels import threads
from runtime.kernels.cpu import KERNELS, elementwise, pointwise
from runtime.kernels.cpu.elementwise import plan
from runtime.kernels.cpu.operand import coalesced
from runtime.tensors.making import from_numpy
from tests.kernels.made import data, empty
from tests.kernels.references import BINARY, TESTS, TO_BOOL, UNARY


@pytest.mark.parametrize("name", [*UNARY, *TESTS, *BINARY])
def test_no_elements(name: str) -> None:
    dtypes = UNARY[name][1] if name in UNARY else BINARY.get(name, ("float32",))
    kind = "bool" if name in (*TESTS, *TO_BOOL) else dtypes[-1]
    out = empty((0, 3), kind)
    operands = [empty((0, 3), dtypes[-1])] * (2 if name in BINARY else 1)
    KERNELS[name](out, *operands)
    if name in BINARY:
        KERNELS[name](out, operands[0], empty((1, 3), dtypes[-1]))


@pytest.mark.parametrize("count", [100, 1_000_003])
def test_threads_change_nothing(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        count = min(count, 2003)
    a, b = data("float32", (count,)), data("float32", (count,), 1)
    mask = a > b
    x, y, row = from_numpy(a), from_numpy(b), from_numpy(b[:1].copy())
    sevenths = from_numpy(a[: count // 7 * 7].reshape(-1, 7))
    calls: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("mul", x, (x, y)),
        ("mul", x, (x, 3)),
        ("mul", x, (3, x)),
        ("sub", x, (row, x)),
        ("add", x, (x, y, 2)),
        ("pow", x, (x, y)),
        ("exp", x, (x,)),
        ("clamp", x, (x, -1, 1)),
        ("where", x, (from_numpy(mask), x, y)),
        ("where", x, (from_numpy(mask), 1, y)),
        ("add", sevenths, (sevenths, from_numpy(b[:7].copy()))),
        ("fill", x, (2,)),
        ("arange", x, (0, 2)),
    ]
    onto = [
        ("mul", (y,)),
        ("mul", (2,)),
        ("add", (y, 2)),
        ("exp", ()),
        ("clamp", (0, 1)),
    ]
    results = []
    before = threads.get_num_threads()
    for number in (1, 3):
        threads.set_num_threads(number)
        found = []
        for name, like, arguments in calls:
            out = empty(like.shape, "float32")
            KERNELS[name](out, *arguments)
            found.append(out.numpy().tobytes())
        for name, arguments in onto:
            out = from_numpy(a.copy())
            KERNELS[name](out, out, *arguments)
            found.append(out.numpy().tobytes())
        results.append(found)
    threads.set_num_threads(before)
    assert results[0] == results[1]


def test_direct_entries_are_the_loops_themselves() -> None:
    a, out = np.array([1.0, 2.0], np.float32), np.empty(2, np.float32)
    pointwise.direct_binary("add", "float32")(a, a, out)
    assert out.tolist() == [2, 4]
    truth = np.empty(2, np.bool_)
    pointwise.direct_binary("lt", "float32")(a, out, truth)
    assert truth.tolist() == [True, True]
    pointwise.direct_unary("neg", "float32")(a, out)
    assert out.tolist() == [-1, -2]
    pointwise.direct_unary("gelu", "float32")(np.zeros(2, np.float32), out)
    assert out.tolist() == [0, 0]
    pointwise.direct_unary("isnan", "float32")(a, truth)
    assert truth.tolist() == [False, False]
    wide = np.array([1j], np.complex64)
    pointwise.direct_unary("neg", "complex64")(wide.copy(), wide)
    assert wide.tolist() == [-1j]
    with pytest.raises(KeyError):
        pointwise.direct_binary("no_such", "float32")


def test_specialised_dtypes_are_floating() -> None:
    assert {"float32", "float64"} == elementwise.SPECIALISED


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), ((),), ((1,), ((0,),))),
        ((1, 1), ((5, 1),), ((1,), ((0,),))),
        ((2, 3), ((3, 1),), ((6,), ((1,),))),
        ((2, 1, 3), ((3, 9, 1),), ((6,), ((1,),))),
        ((2, 3), ((3, 1), (0, 1)), ((2, 3), ((3, 1), (0, 1)))),
        ((4, 2, 3), ((6, 3, 1), (0, 3, 1)), ((4, 6), ((6, 1), (0, 1)))),
        ((2, 3), ((1, 2),), ((2, 3), ((1, 2),))),
    ],
)
def test_coalescing(shape: Any, strides: Any, expected: Any) -> None:
    assert coalesced(shape, *strides) == expected


def test_a_plan_is_a_table_for_rows() -> None:
    rows, inner, table = plan((2, 3), ((2, 3), (3, 1)), ((3,), (1,)))
    assert (rows, inner, table.tolist()) == (2, 3, [2, 2, 3, 3, 1, 0, 1])
    assert plan((2, 3), ((2, 3), (3, 1)), ((3,), (1,)))[2] is table
    assert not table.flags.writeable
