"""Who may hold an undo handle after it was closed."""

import gc
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import pytest

from everyorder.harness import Scenario, explore, step
from everyorder.harness.engine.leaks import outlives


class Handle:
    """Something that can be watched."""

    def close(self) -> None:
        """End it."""


def _raised_with(handle: Handle) -> Exception:
    try:
        raise LookupError(handle.__class__.__name__)
    except LookupError as error:
        return error


def test_nothing_holds_what_is_gone() -> None:
    handle = Handle()
    watch = ref(handle)
    del handle
    assert not outlives(watch)


@pytest.mark.parametrize(
    "keep",
    [
        lambda handle: [handle],
        lambda handle: {"undo": handle},
        lambda handle: [partial(print, handle)],
        lambda handle: [handle.close],
        lambda handle: [(1, (handle,))],
    ],
)
def test_a_container_holds(keep: Callable[[Handle], Any]) -> None:
    handle = Handle()
    watch, kept = ref(handle), keep(handle)
    del handle
    gc.collect()
    assert kept
    assert outlives(watch)


def test_what_the_collector_was_told_to_leave_alone_holds() -> None:
    handle, kept = Handle(), list[object]()
    watch = ref(handle)
    gc.freeze()
    try:
        kept.append(handle)
        del handle
        assert outlives(watch)
    finally:
        gc.unfreeze()


def test_the_frames_of_a_kept_traceback_do_not_count() -> None:
    handle = Handle()
    watch, kept = ref(handle), _raised_with(handle)
    del handle
    gc.collect()
    assert watch() is not None
    assert not outlives(watch)
    del kept
    assert watch() is None


class KeepsErrors:
    """Keeps the last error, with the frames of who called."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.last: Exception | None = None

    def add(self, name: str) -> Callable[[], None]:
        self.items.append(name)

        def remove() -> None:
            self.items.remove(name)
            try:
                raise LookupError(name)
            except LookupError as error:
                self.last = error

        return remove


def test_a_registry_that_keeps_an_error_keeps_no_handle() -> None:
    scenario = Scenario(
        step("a", lambda to: to.add("a")),
        step("b", lambda to: to.add("b")),
        create=KeepsErrors,
        observe=lambda registry: " ".join(sorted(registry.items)),
    )
    assert "leak" not in {v.kind for v in explore(scenario).exploration.violations}
