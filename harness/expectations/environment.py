"""Whether this process may write expect files.

True only here: the one variable that is read.  `CI` is set by every common service of
continuous integration; empty, `0`, `false`, `no` and `off` mean that it is not one.
"""

import os
from collections.abc import Mapping

from harness.expectations.errors import WritesForbidden

VARIABLE = "CI"
_OFF = ("", "0", "false", "no", "off")


def forbidden(environment: Mapping[str, str] | None = None) -> WritesForbidden | None:
    """The error to raise instead of writing, or None where writing is allowed."""
    values = os.environ if environment is None else environment
    value = values.get(VARIABLE, "")
    if value.strip().lower() in _OFF:
        return None
    return WritesForbidden(variable=VARIABLE, value=value)
