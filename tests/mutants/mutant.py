"""What a mutant is: a fault in a code path of the runtime, and its law."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from everyorder.runtime.dispatch import transition
from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry

Change = Callable[[DispatcherState, Any], DispatcherState]


@dataclass(frozen=True)
class Mutant:
    """`law` finds the fault in `history`; `also` are laws that it must break too."""

    name: str
    what: str
    law: str
    history: str
    patch: Callable[[], AbstractContextManager[object]]
    also: frozenset[str] = frozenset()
    merges: bool = False
    blind: bool = False


def adding(
    kind: type[Any], make: Callable[[Change], Change]
) -> Callable[[], AbstractContextManager[object]]:
    """Exchange how one kind of token is added; `make` gets the right way."""
    return _row(transition.ADD, kind, make)


def removing(
    kind: type[Any], make: Callable[[Change], Change]
) -> Callable[[], AbstractContextManager[object]]:
    """Exchange how one kind of token is removed; `make` gets the right way."""
    return _row(transition.REMOVE, kind, make)


def replacing(
    owner: object, name: str, make: Callable[[Any], Any]
) -> Callable[[], AbstractContextManager[object]]:
    """Exchange an attribute of a module or class; `make` gets the right one."""

    def patch() -> AbstractContextManager[object]:
        return mock.patch.object(owner, name, make(getattr(owner, name)))

    return patch


def afresh(
    patch: Callable[[], AbstractContextManager[object]], *remembered: Any
) -> Callable[[], AbstractContextManager[object]]:
    """A patch under which remembered functions forget, before and after."""

    @contextmanager
    def patched() -> Iterator[None]:
        for each in remembered:
            each.cache_clear()
        try:
            with patch():
                yield
        finally:
            for each in remembered:
                each.cache_clear()

    return patched


def changed(
    state: DispatcherState,
    token: Any,
    fields: Callable[[OperatorEntry], dict[str, Any]],
) -> DispatcherState:
    """The state with other fields in the entry of a token's operator."""
    place = getattr(token, "reading", token)
    entry = state.find(place.namespace, place.text)
    if entry is None:
        return state
    return transition._replace(
        state, place, entry._replace(**{"memo": {}, **fields(entry)})
    )


def _row(
    table: Mapping[type[Any], Change], kind: type[Any], make: Callable[[Change], Change]
) -> Callable[[], AbstractContextManager[object]]:
    def patch() -> AbstractContextManager[object]:
        return mock.patch.dict(table, {kind: make(table[kind])})

    return patch
