"""A finished result handed over to `out`."""

import pytest

from runtime.errors.operands import DevicesDiffer, TargetDType, TargetShape
from runtime.operators import core
from runtime.operators.targets import hand_over
from runtime.tensors.tensor import Tensor
from tests.operators.made import META, shown, tensor

RESULT = tensor([1.0, 2.0])


def test_a_target_is_written_resized_or_converted() -> None:
    for out, dtype in (
        (tensor([0.0, 0.0]), "float32"),
        (tensor([], "float64"), "float64"),
        (core.slice(tensor([0.0] * 4), 0, 0, 4, 2), "float32"),
    ):
        assert hand_over(RESULT, out, "f") is out
        assert shown(out) == (dtype, [1.0, 2.0])


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
    with pytest.raises(kind):
        hand_over(RESULT, out, "f")
    assert (out.shape, out._version) == before
