"""Calls that must raise: the error, or a failure that says what was taken instead."""

from typing import Any

import pytest

from everyorder.runtime.errors import EveryorderError


def refusal(call: Any, args: Any, kwargs: Any, case: str) -> EveryorderError:
    """The error of the runtime that the call raises."""
    try:
        call(*args, **kwargs)
    except EveryorderError as error:
        return error
    pytest.fail(f"{case} is taken")
