"""Products of matrices: targets, rounding, and errors that name the shapes."""

from collections.abc import Callable

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DTypeRefused,
    ShapesDoNotFit,
    TargetRefused,
)
from everyorder.runtime.operators import core
from everyorder.runtime.tensors import tensor
from tests.coded import code
from tests.operators.refusals import Refusal, assert_refused, message_of, one_line
from tests.operators.tensors import normal, on_meta, zeros


def test_a_result_may_be_written_to_a_target() -> None:
    first, second = tensor(normal(2, 3, seed=1)), tensor(normal(3, 4, seed=2))
    nowhere = on_meta(0)
    core.matmul_out(on_meta(2, 3), on_meta(3, 4), out=nowhere)
    assert nowhere.shape == (2, 4)
    with pytest.raises(TargetRefused, check=code("TargetShape")) as caught:
        core.matmul_out(first, second, out=tensor(np.zeros((2, 2))))
    assert message_of(caught.value) == one_line(
        "`core::matmul.out` computes shape (2, 4), which cannot be written to `out` "
        "of\n"
        "shape (2, 2).\n"
        "  fits: shape (2, 4), or a tensor without elements, which is resized"
    )


WRONG: tuple[Refusal, ...] = (
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
        "`core::mm` needs its tensors on one device, but they are on cpu and meta.\n"
        "  fits:  one device for all; a CPU tensor without dimensions fits any\n"
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
        "`core::matmul` cannot work on these shapes: one of them is 0-dimensional.\n"
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
    (
        lambda: core.linear(zeros(2, 3), zeros(4, 5)),
        ShapesDoNotFit,
        "`core::linear` cannot work on these shapes: the last dimension of input is "
        "not\n"
        "that of weight.\n"
        "  given: input (2, 3), weight (4, 5)\n"
        "  fits:  input of shape (..., 5)",
    ),
    (
        lambda: core.linear(zeros(2, 3), zeros(4, 3), zeros(3)),
        ShapesDoNotFit,
        "`core::linear` cannot work on these shapes: bias has another shape than "
        "asked.\n"
        "  given: bias (3,)\n"
        "  fits:  shape (4,)",
    ),
)


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_what_does_not_go_together_is_refused(
    call: Callable[[], object], kind: type[Exception], text: str
) -> None:
    assert_refused(call, kind, text)


def test_linear_of_sixteen_bits_computes_in_float32() -> None:
    x = tensor(normal(5, 3, seed=1), dtype="bfloat16")
    weight = tensor(normal(2, 3, seed=2), dtype="bfloat16")
    found = core.linear(x, weight)
    exact = x.numpy().astype(np.float32) @ weight.numpy().astype(np.float32).T
    assert found.tolist() == exact.astype(found.numpy().dtype).tolist()
