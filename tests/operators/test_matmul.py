"""Products of matrices: every shape as NumPy has it, and errors that name them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import (
    DevicesDiffer,
    DTypeRefused,
    ShapesDoNotFit,
    TargetRefused,
)
from runtime.operators.call import core
from runtime.schema.codes import DType
from runtime.tensors import tensor
from runtime.tensors.elements import numpy_dtype
from tests.coded import code
from tests.operators.arrays import normal, on_meta, zeros
from tests.operators.told import Refused, refused, told, words

SHAPES = (
    ((3,), (3,)),
    ((0,), (0,)),
    ((2, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((0, 2, 3), (3, 4)),
)


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_matmul_is_that_of_numpy(left: Any, right: Any) -> None:
    first, second = normal(*left, seed=1), normal(*right, seed=2)
    found = core.matmul(tensor(first), tensor(second))
    expected = np.matmul(first, second)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13, atol=1e-13)
    there = core.matmul(tensor(first, device="meta"), tensor(second, device="meta"))
    assert (there.shape, there.dtype) == (found.shape, found.dtype)


@pytest.mark.parametrize(
    "name",
    ["float16", "bfloat16", "float32", "int64", "uint8", "complex64", "complex128"],
)
def test_every_dtype_of_numbers(name: str) -> None:
    dtype = DType.named(name)
    first = (np.arange(6).reshape(2, 3) - 2).astype(numpy_dtype(dtype))
    second = np.arange(12).reshape(3, 4).astype(numpy_dtype(dtype))
    found = core.mm(tensor(first), tensor(second))
    assert found.dtype is dtype
    # Small enough to be exact everywhere, but for the bytes, which wrap around.
    expected = first.astype(np.complex128) @ second.astype(np.complex128)
    if name == "uint8":
        expected = (first @ second).astype(np.complex128)
    assert np.array_equal(found.numpy().astype(np.complex128), expected)


def test_operands_of_any_strides() -> None:
    first, second = normal(3, 2, seed=1), normal(8, 3, seed=2)
    turned = core.transpose(tensor(first), 0, 1)
    skipped = core.transpose(core.slice(tensor(second), 0, 0, None, 2), 0, 1)
    found = core.mm(turned, skipped)
    np.testing.assert_allclose(found.numpy(), first.T @ second[::2].T, rtol=1e-13)
    row = core.expand(tensor(normal(1, 3, seed=4)), [5, 3])
    np.testing.assert_allclose(
        core.mm(row, skipped).numpy(), row.numpy() @ skipped.numpy(), rtol=1e-13
    )


def test_batches_and_vectors_by_their_own_operators() -> None:
    first, second = normal(4, 2, 3, seed=1), normal(4, 3, 5, seed=2)
    found = core.bmm(tensor(first), tensor(second))
    np.testing.assert_allclose(found.numpy(), first @ second, rtol=1e-13)
    line = normal(7, seed=3)
    assert core.dot(tensor(line), tensor(line)).item() == pytest.approx(line @ line)


def test_a_result_may_be_written_to_a_target() -> None:
    first, second = tensor(normal(2, 3, seed=1)), tensor(normal(3, 4, seed=2))
    out = tensor(np.zeros((2, 4)))
    assert core.mm_out(first, second, out=out) is out
    assert out.tolist() == core.mm(first, second).tolist()
    empty = tensor(np.zeros(0))
    assert core.matmul_out(first, second, out=empty) is empty
    assert empty.tolist() == out.tolist()
    other = tensor(np.zeros((2, 4)))
    core.matmul_out(first, second, out=other)
    assert other.tolist() == out.tolist()
    nowhere = on_meta(0)
    core.matmul_out(on_meta(2, 3), on_meta(3, 4), out=nowhere)
    assert nowhere.shape == (2, 4)
    with pytest.raises(TargetRefused, check=code("TargetShape")) as caught:
        core.matmul_out(first, second, out=tensor(np.zeros((2, 2))))
    assert told(caught.value) == words(
        "`core::matmul.out` computes shape (2, 4), which cannot be written to `out` "
        "of\n"
        "shape (2, 2).\n"
        "  fits: shape (2, 4), or a tensor without elements, which is resized"
    )


WRONG: tuple[Refused, ...] = (
    (
        lambda: core.mm(zeros(2, 3), zeros(4, 5)),
        ShapesDoNotFit,
        "`core::mm` cannot work on these shapes: self has 3 columns and mat2 has 4 "
        "rows.\n"
        "  given: self (2, 3), mat2 (4, 5)\n"
        "  fits:  mat2 with 3 rows, or self with 4 columns",
    ),
    (
        lambda: core.mm(zeros(2), zeros(2, 2)),
        ShapesDoNotFit,
        "`core::mm` cannot work on these shapes: self has 1 dimensions.\n"
        "  given: self (2,)\n"
        "  fits:  2 dimensions",
    ),
    (
        lambda: core.mm(zeros(2, 3), zeros(3, 2, dtype="float32")),
        DTypeRefused,
        "`core::mm` does not take `mat2` of dtype float32.\n"
        "  fits: float64, the dtype of self",
    ),
    (
        lambda: core.mm(zeros(2, 3, dtype="bool"), zeros(3, 2, dtype="bool")),
        DTypeRefused,
        "`core::mm` does not take `self` of dtype bool.\n"
        "  fits: integers, floating-point and complex numbers",
    ),
    (
        lambda: core.mm(zeros(2, 3), tensor(zeros(3, 2), device="meta")),
        DevicesDiffer,
        "`core::mm` needs its tensors on one device, but they lie on cpu and meta.\n"
        "  fits:  one device for all; a CPU tensor without dimensions goes along\n"
        "  to do: move them with `.to(device)`",
    ),
    (
        lambda: core.bmm(zeros(2, 2, 3), zeros(3, 3, 2)),
        ShapesDoNotFit,
        "`core::bmm` cannot work on these shapes: they hold 2 and 3 matrices.\n"
        "  given: self (2, 2, 3), mat2 (3, 3, 2)\n"
        "  fits:  equally many matrices; matmul(self, mat2) repeats where one is "
        "enough",
    ),
    (
        lambda: core.bmm(zeros(2, 2, 3), zeros(2, 2, 2)),
        ShapesDoNotFit,
        "`core::bmm` cannot work on these shapes: self has 3 columns and mat2 has 2\n"
        "rows.\n"
        "  given: self (2, 2, 3), mat2 (2, 2, 2)\n"
        "  fits:  mat2 with 3 rows, or self with 2 columns",
    ),
    (
        lambda: core.dot(zeros(2), zeros(3)),
        ShapesDoNotFit,
        "`core::dot` cannot work on these shapes: they are not equally long.\n"
        "  given: self (2,), other (3,)\n"
        "  fits:  length 2 for both",
    ),
    (
        lambda: core.matmul(zeros(), zeros(3)),
        ShapesDoNotFit,
        "`core::matmul` cannot work on these shapes: one has no dimensions.\n"
        "  given: self (), other (3,)\n"
        "  fits:  at least one dimension",
    ),
    (
        lambda: core.matmul(zeros(2, 3), zeros(2)),
        ShapesDoNotFit,
        "`core::matmul` cannot work on these shapes: self has 3 columns and other has "
        "2\n"
        "rows.\n"
        "  given: self (2, 3), other (2,)\n"
        "  fits:  other with 3 rows, or self with 2 columns",
    ),
    (
        lambda: core.matmul(zeros(2, 2, 3), zeros(3, 3, 2)),
        ShapesDoNotFit,
        "`core::matmul` cannot work on these shapes: the batches (2,) and (3,) do not\n"
        "broadcast.\n"
        "  given: self (2, 2, 3), other (3, 3, 2)\n"
        "  fits:  equal sizes in front of the matrices, or 1 where they differ",
    ),
)


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_what_does_not_go_together_is_refused(
    call: Callable[[], object], kind: type[Exception], text: str
) -> None:
    refused(call, kind, text)
