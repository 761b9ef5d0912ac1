"""Sizes that depend on elements: what a fake kernel says of them.

True only here: where such a size comes from.  Sizes are numbers in this runtime, so
that without elements nobody knows it; while an operator is checked, by
`runtime.custom.opcheck`, its real results are there, and theirs are the sizes.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from runtime.errors.custom_op import SizeNotKnown

# Sizes that no sample has, by which a dimension is known again: primes.
UNLIKELY = (104_729, 104_743, 104_759, 104_761, 104_773, 104_779, 104_789, 104_801)


class Drawn:
    """The sizes that a fake kernel gets, in the order in which it asks."""

    def __init__(self, known: tuple[int, ...] = UNLIKELY) -> None:
        self.known = known
        # What each has to lie between, as the kernel says.
        self.bounds: list[tuple[int, float]] = []


class _Current(threading.local):
    drawn: Drawn | None = None


_CURRENT = _Current()


class FakeContext:
    """What a fake kernel may ask for; see `get_ctx`."""

    __slots__ = ()

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:  # noqa: A002  # upstream's names
        """A size that depends on the elements, of `min` to `max`.

        Raises `SizeNotKnown` but while `opcheck` compares the kernel with the real one.
        """
        drawn = _CURRENT.drawn
        if drawn is None or len(drawn.bounds) == len(drawn.known):
            raise SizeNotKnown(most=0 if drawn is None else len(drawn.known))
        drawn.bounds.append((min, inf if max is None else max))
        return drawn.known[len(drawn.bounds) - 1]


def get_ctx() -> FakeContext:
    """For fake kernels: what makes sizes that depend on elements."""
    return FakeContext()


@contextmanager
def drawing(drawn: Drawn) -> Iterator[Drawn]:
    """Have fake kernels of this thread get these sizes."""
    before, _CURRENT.drawn = _CURRENT.drawn, drawn
    try:
        yield drawn
    finally:
        _CURRENT.drawn = before
