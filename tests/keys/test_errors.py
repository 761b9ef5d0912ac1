import pickle

import pytest

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.registration import (
    KeyMisuse,
    LookupFailed,
    UnknownDevice,
)

ERRORS: list[EveryorderError] = [
    LookupFailed(code="UnknownKey", name="cpu", near=("CPU",)),
    LookupFailed(code="UnknownBackend", name="cpu", known=("CPU",)),
    UnknownDevice(device="tpu", reason="type", known=("cpu",)),
    KeyMisuse(
        code="NotRegistrable",
        key="Dense",
        subject="kernel",
        reason="building block",
        instead=("CPU",),
    ),
    KeyMisuse(code="NoPriority", key="Autograd"),
    KeyMisuse(code="ForeignBits", bits=-1, full=1),
    KeyMisuse(code="GuardLeftElsewhere", guard="include_keys"),
    KeyMisuse(code="GuardNotEntered", guard="include_keys"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_cross_a_process(error: EveryorderError) -> None:
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error)
    assert twin.fields() == error.fields()
    assert str(twin) == str(error)


def test_errors_are_what_callers_expect() -> None:
    bases = [type(error).__bases__[1:] for error in ERRORS]
    assert bases == [
        *[(KeyError,)] * 2,
        # torch raises a RuntimeError for it.
        (ValueError, RuntimeError),
        *[(ValueError,)] * 3,
        *[(RuntimeError,)] * 2,
    ]
