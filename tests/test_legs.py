"""The order of the legs, and what coverage does not watch: nothing else changes."""

import sys
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from tests.legs import LONGEST, UNWATCHED, dealt, is_coverage, unwatched, unwatching

ROOT = Path(__file__).parent.parent
NAMES = [f"tests/schema/test_types.py::test_one[{n}]" for n in range(40)]
LONG = [f"{beginning}_of_all" for beginning in LONGEST]


def named(names: list[str]) -> list[Any]:
    return [SimpleNamespace(nodeid=name) for name in names]


@pytest.mark.parametrize("workers", [2, 3, 16])
@pytest.mark.parametrize("others", [0, 1, 5, 40])
def test_each_worker_begins_with_what_takes_longest(others: int, workers: int) -> None:
    names = [*NAMES[:others], *LONG[::-1]]
    found = [item.nodeid for item in dealt(named(names), workers)]
    assert sorted(found) == sorted(names)
    rest = [name for name in found if name in NAMES]
    assert rest == NAMES[:others]
    # As the scheduler gives them out: as many to each, and no less to the last one.
    begun = []
    for worker in range(workers):
        many = len(found) // (workers - worker)
        share, found = found[:many], found[many:]
        begun += share[:1]
    if others == 40:
        assert begun == LONG[:workers]


def test_where_nothing_takes_long_the_order_stays() -> None:
    assert [item.nodeid for item in dealt(named(NAMES), 2)] == NAMES
    assert dealt([], 2) == []


@pytest.mark.parametrize("beginning", [*LONGEST, *UNWATCHED])
def test_the_tests_are_there(beginning: str) -> None:
    path, _, name = beginning.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    assert f"def {name.partition('[')[0]}" in text


class Tracer:
    """Looks on, as coverage does."""

    __module__ = "coverage"

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Of no line is it told."""


def test_coverage_alone_is_sent_away_for_a_while() -> None:
    before = sys.gettrace()
    seen: list[object] = []
    tracer = Tracer()

    def look(frame: FrameType, event: str, argument: object) -> None:
        """As a debugger does."""

    def call(number: int) -> int:
        seen.append(sys.gettrace())
        return number + 1

    try:
        sys.settrace(tracer)
        assert unwatching(call)(1) == 2
        seen.append(sys.gettrace())
        with pytest.raises(ZeroDivisionError), unwatched():
            seen.append(1 // 0)
        seen.append(sys.gettrace())
        sys.settrace(look)
        with unwatched():
            seen.append(sys.gettrace())
    finally:
        sys.settrace(before)
    assert seen == [None, tracer, tracer, look]
    assert is_coverage(tracer)
    assert not is_coverage(look)
    assert not is_coverage(None)
