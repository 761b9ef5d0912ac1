"""Seeds in parts, of which `make test` plays a few and `make test-long` all."""

from typing import Any

import pytest


def parts(count: int, at_once: int) -> list[Any]:
    """The numbers of `count` parts, for `parametrize`; the first are no long leg."""
    long = (pytest.param(part, marks=pytest.mark.long) for part in range(count))
    return [*range(at_once), *list(long)[at_once:]]
