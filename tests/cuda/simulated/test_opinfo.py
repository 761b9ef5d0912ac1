"""Every row of the table of operators on the device, against the CPU.

True only here: the table's own samples, a small one of each dtype and one more of the
last, in the functional form and, where there is one, in place.  The CPU is compared
with NumPy and with torch where the table is (`tests/opinfo`); here the device is
compared with the CPU.

Rules: a row that cannot run here is in `LEFT_OUT`, with the reason.
"""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.tensors.construction import from_flat, view_of
from everyorder.runtime.tensors.generator import manual_seed
from everyorder.runtime.tensors.tensor_impl import host_copy
from tests.cuda.simulated.arrays import DEVICE
from tests.opinfo.info import Array, OpInfo, Sample, assert_same, listed, on_cpu
from tests.opinfo.table import ROWS

# Simulated threads are threads of the system: what is larger takes seconds.
SMALL = 64

# Name -> why it is not run in the simulator.
LEFT_OUT: dict[str, str] = dict.fromkeys(
    (
        *("linalg_inv", "linalg_det", "linalg_slogdet", "linalg_solve", "det"),
        *("linalg_cholesky", "linalg_eigh", "linalg_qr", "linalg_svd", "inverse"),
        *("linalg_matrix_norm", "linalg_matrix_norm.str_ord", "linalg_norm.ord_str"),
    ),
    "NumPy computes it, on the CPU only",
)

# What these return is not said by their arguments.
ARBITRARY = ("empty", "empty_like", "empty_strided", "new_empty")


def on_device(value: Any) -> Any:
    """The turn that makes arguments of the device; the rest is as on the CPU."""
    if not isinstance(value, Array):
        return on_cpu(value)
    buffer, strides, offset = value.place()
    whole = from_flat(buffer, (buffer.size,), DEVICE)
    return view_of(whole, value.values.shape, strides, offset)


def size(sample: Sample) -> int:
    """The elements of the greatest array among the arguments."""
    return max((each.values.size for each in sample.arrays()), default=0)


def chosen(row: OpInfo) -> list[Sample]:
    """The plainest small sample of each dtype, and the last one of the last dtype."""
    found: list[Sample] = []
    small: list[Sample] = []
    for dtype in row.dtypes:
        given = row.samples(dtype)
        small = [one for one in given if size(one) <= SMALL] or [min(given, key=size)]
        found.append(small[0])
    return found + small[1:][-1:]


def outcome(
    call: Any, sample: Sample, turn: Callable[[Any], Any]
) -> tuple[Any, list[Any]]:
    """The results of a call or the class of its refusal; and its arguments."""
    args, kwargs = sample.bound(turn)
    # For what draws from the generator that everybody shares.
    manual_seed(7)
    if turn is on_device and not any(True for _ in sample.arrays()):
        kwargs["device"] = DEVICE
    try:
        return listed(call(*args, **kwargs)), args
    except EveryorderError as refused:
        return type(refused), args


def agree(found: Any, expected: Any, row: OpInfo, case: str) -> None:
    """Both are alike in class, dtype, shape and values; the first is on the device."""
    assert type(found) is type(expected), case
    if not isinstance(found, Tensor):
        assert found == expected, case
        return
    assert found.device == DEVICE, case
    assert found.dtype is expected.dtype, case
    assert found.shape == expected.shape, case
    if row.name not in ARBITRARY:
        one, other = (host_copy(each.detach(), case) for each in (found, expected))
        assert_same(one, other, row.loose, case)


def compare(call: Any, row: OpInfo, sample: Sample, case: str) -> list[Any]:
    """One call on both; what is left of the first argument is compared, too."""
    found, (given, *_) = _padded(outcome(call, sample, on_device))
    expected, (other, *_) = _padded(outcome(call, sample, on_cpu))
    if not isinstance(found, list) or not isinstance(expected, list):
        assert found is expected, f"{case}: {found} {expected}"
        return []
    for one, another in zip(found, expected, strict=True):
        agree(one, another, row, case)
    if isinstance(given, Tensor):
        agree(given, other, row, case)
    return found


def _padded(done: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
    return done[0], done[1] or [None]


ROWS_HERE = [row for row in ROWS if row.name not in LEFT_OUT]


@pytest.mark.parametrize("row", ROWS_HERE, ids=repr)
def test_functional_form(row: OpInfo) -> None:
    samples = chosen(row)
    assert samples
    for sample in samples:
        assert compare(row.call, row, sample, f"{row.name}({sample})")


@pytest.mark.parametrize(
    "row", [row for row in ROWS_HERE if row.form("in-place")], ids=repr
)
def test_in_place(row: OpInfo) -> None:
    for sample in chosen(row):
        compare(row.form("in-place"), row, sample, f"{row.name}_({sample})")


def test_rows_left_out_are_rows() -> None:
    assert {*LEFT_OUT} <= {row.name for row in ROWS}
