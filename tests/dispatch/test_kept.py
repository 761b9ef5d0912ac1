"""What is kept of definitions that are gone: what is remembered, which is bounded."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.dispatch.registration_record import REMEMBERED as READINGS
from everyorder.runtime.schema.parser import REMEMBERED as SCHEMAS

# Of lists that grow by doubling, and the like.
NEXT_TO_NOTHING = 60_000


def held_after(do: Callable[[], Any]) -> int:
    """The bytes that are held when it was done."""
    do()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_programs_that_make_names_up_do_not_grow() -> None:
    dispatcher, count = Dispatcher(), 0

    def define(times: int) -> None:
        nonlocal count
        for _ in range(times):
            count += 1
            with Library("made", "FRAGMENT", dispatcher=dispatcher) as library:
                library.define(f"op{count}(Tensor x, int n{count}=1) -> Tensor")
                library.impl(f"op{count}", lambda x, n: x, "CPU")

    tracemalloc.start()
    try:
        full = held_after(lambda: define(2 * max(READINGS, SCHEMAS)))
        assert held_after(lambda: define(1000)) - full < NEXT_TO_NOTHING
    finally:
        tracemalloc.stop()
    # 6.5 kB for each, were all of them kept.
    assert full < 6 * (READINGS + SCHEMAS) * 1000
