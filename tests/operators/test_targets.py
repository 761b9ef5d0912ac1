"""A finished result of other operators, handed over to `out`."""

import pytest

from runtime.errors.operands import DevicesDiffer, TargetRefused
from runtime.operators import core
from runtime.tensors.tensor import Tensor
from tests.coded import coded
from tests.operators.made import META, shown, tensor

TargetDType = coded(TargetRefused, "TargetDType")
TargetShape = coded(TargetRefused, "TargetShape")

PARTS = [tensor(1.0), tensor(2.0)]


def test_a_target_is_written_resized_or_converted() -> None:
    for out, dtype in (
        (tensor([0.0, 0.0]), "float32"),
        (tensor([], "float64"), "float64"),
        (core.slice(tensor([0.0] * 4), 0, 0, 4, 2), "float32"),
    ):
        before = out._version
        assert core.stack_out(PARTS, 0, out=out) is out
        assert shown(out) == (dtype, [1.0, 2.0])
        assert out._version == before + 1


@pytest.mark.parametrize(
    ("out", "kind"),
    [
        (tensor([0, 0], "int64"), TargetDType),
        (tensor([0.0] * 3), TargetShape),
        (core.empty([2], device=META), DevicesDiffer),
    ],
)
def test_a_target_that_does_not_fit_stays(out: Tensor, kind: type[Exception]) -> None:
    before = out.shape, out._version
    with pytest.raises(kind) as caught:
        core.stack_out(PARTS, 0, out=out)
    assert caught.value.operator == "core::stack.out"  # type: ignore[attr-defined]  # of each of them
    assert (out.shape, out._version) == before
