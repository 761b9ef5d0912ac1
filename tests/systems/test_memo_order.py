"""The order of an lru_cache is state only where a call can observe it."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, steps, use
from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.state import FollowedScope, Heap
from tests.forking import needs_fork

SCOPE = FollowedScope(frozenset({"tests"}))


def form(function: Any, entries: tuple[str, ...], scope: FollowedScope = SCOPE) -> Any:
    heap = Heap(scope)
    function.cache_clear()
    for each in entries:
        function(each)
    return heap.form({"memo": function}).exact


def memo_of(size: int | None) -> Any:
    @lru_cache(maxsize=size)
    def remembered(name: Any) -> list[Any]:
        return [name]

    return remembered


@pytest.mark.parametrize("size", [None, 4])
def test_the_order_of_entries_that_stay_is_not_part_of_a_state(
    size: int | None,
) -> None:
    memo = memo_of(size)
    assert form(memo, ("a", "b", "c")) == form(memo, ("c", "a", "b"))
    assert form(memo, ("a", "b", "c")) != form(memo, ("a", "b"))
    assert form(memo, ("a", "b", "c")) != form(memo, ("a", "b", "d"))


def test_the_answers_are_part_of_a_state() -> None:
    memo = memo_of(None)
    before = form(memo, ("a", "b"))
    memo("a").append("changed")
    assert Heap(SCOPE).form({"memo": memo}).exact != before


def test_the_order_of_a_full_cache_is_part_of_a_state() -> None:
    memo = memo_of(3)
    assert form(memo, ("a", "b", "c")) != form(memo, ("c", "a", "b"))


def test_a_full_cache_is_reported_and_its_order_is_read_from_then_on() -> None:
    memo, heap = memo_of(4), Heap(SCOPE)
    for each in "abc":
        memo(each)
    heap.form({"memo": memo})
    assert heap.full_caches == set()
    memo("d")
    heap.form({"memo": memo})
    (name,) = heap.full_caches
    assert name.endswith("memo_of.<locals>.remembered")
    scope = FollowedScope(SCOPE.packages, full=frozenset(heap.full_caches))
    assert form(memo, ("a", "b"), scope) != form(memo, ("b", "a"), scope)


def test_a_cache_has_the_name_of_its_function_whatever_its_entries_are() -> None:
    """An answer that is a function gave it its name: then no order was ever read."""

    @lru_cache(maxsize=3)
    def handler_of(name: str) -> object:
        return {"a": form, "b": memo_of, "c": names}[name]

    heap = Heap(SCOPE)
    for each in "abc":
        handler_of(each)
    heap.form({"memo": handler_of})
    (full,) = heap.full_caches
    assert full.endswith("<locals>.handler_of")


@lru_cache
def shared(name: str) -> str:
    """Remember answers beyond the life of a registry, as `django.urls` does."""
    return name.upper()


class Names:
    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def add(self, name: str) -> None:
        self.names[name] = None

    def remove(self, name: str) -> None:
        del self.names[name]

    def shown(self) -> list[str]:
        return sorted(map(shared, self.names))


class Remembering(Names):
    """Answers by a small memo of its own, in which a new entry drops the oldest."""

    def __init__(self) -> None:
        super().__init__()

        @lru_cache(maxsize=3)
        def number(name: str) -> int:
            return len(self.names)

        self.number = number

    def asked(self, name: str) -> int:
        return self.number(name)


class Forgetting(Remembering):
    """The same, and its answers do not depend on what was asked before."""

    def asked(self, name: str) -> int:
        self.number(name)
        return len(self.names)


ASKED = [lambda registry, name=name: registry.asked(name) for name in "abcd"]


def names(kind: type[Names], *asked: Callable[[Any], Any], added: str) -> Scenario:
    return Scenario(
        *steps("add", added, kind.add, undo=kind.remove),
        uses=[use("shown", kind.shown), *map(use, "abcd", asked)],
        create=kind,
    )


@needs_fork
def test_a_memo_that_is_filled_in_any_order_is_no_leftover() -> None:
    """It was "not fresh": of an earlier registry, the order of its calls was left."""
    assert explore(names(Names, added="abc")).verdict == "proven"


@needs_fork
def test_answers_that_depend_on_dropped_entries_are_refuted() -> None:
    assert explore(names(Remembering, *ASKED, added="a")).verdict == "order"


@pytest.mark.slow
@needs_fork
def test_dropped_entries_that_no_answer_depends_on_do_not_matter() -> None:
    report = explore(names(Forgetting, *ASKED, added="a"))
    assert report.exploration.violations == ()


def test_the_restart_names_the_function() -> None:
    error = ExplorationRestart(code="CacheFull", packages=("package.function",))
    assert "caches of package.function may drop an entry" in str(error)
