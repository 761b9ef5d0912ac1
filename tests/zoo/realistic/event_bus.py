"""Event buses: listeners with priorities, highest first, by name where they are equal.

The order of calls is sorted when an event is first published and cached until the
listeners change.
"""

from bisect import insort
from collections.abc import Callable, Iterator
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Listener = Callable[[str], str]


def audit(payload: str) -> str:
    return f"audit:{payload}"


def mail(payload: str) -> str:
    return f"mail:{payload}"


def index(payload: str) -> str:
    return f"index:{payload}"


class EventBus:
    """Caches the sorted listeners of each event; drops them when they change."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[tuple[int, str, Listener]]] = {}
        self._sorted: dict[str, list[Listener]] = {}

    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        entry = (-priority, listener.__name__, listener)
        self._listeners.setdefault(event, []).append(entry)
        self._changed(event)

        def unsubscribe() -> None:
            self._remove(event, entry)

        return unsubscribe

    def _remove(self, event: str, entry: tuple[int, str, Listener]) -> None:
        entries = self._listeners[event]
        entries.remove(entry)
        if not entries:
            del self._listeners[event]
        self._changed(event)

    def _changed(self, event: str) -> None:
        self._sorted.pop(event, None)

    def _order(self, event: str) -> list[Listener]:
        if event not in self._sorted:
            entries = sorted(
                self._listeners.get(event, ()), key=lambda entry: entry[:2]
            )
            self._sorted[event] = [listener for _, _, listener in entries]
        return self._sorted[event]

    def publish(self, event: str, payload: str) -> list[str]:
        return [listener(payload) for listener in self._order(event)]

    def events(self) -> list[str]:
        return sorted(self._listeners)


class SortedBus(EventBus):
    """Keeps each event's listeners sorted, so that there is no cache."""

    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        entry = (-priority, listener.__name__, listener)
        insort(self._listeners.setdefault(event, []), entry, key=lambda each: each[:2])
        return lambda: self._remove(event, entry)

    def _order(self, event: str) -> list[Listener]:
        return [listener for _, _, listener in self._listeners.get(event, ())]


class CopyOnWriteBus(EventBus):
    """Replaces the tuple of an event's listeners, so publishing sees one version."""

    def __init__(self) -> None:
        self._versions: dict[str, tuple[tuple[int, str, Listener], ...]] = {}

    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        entry = (-priority, listener.__name__, listener)
        present = self._versions.get(event, ())
        self._versions[event] = (*present, entry)
        return lambda: self._remove(event, entry)

    def _remove(self, event: str, entry: tuple[int, str, Listener]) -> None:
        rest = tuple(each for each in self._versions[event] if each is not entry)
        self._versions[event] = rest
        if not rest:
            self._versions.pop(event)

    def _order(self, event: str) -> list[Listener]:
        entries = sorted(self._versions.get(event, ()), key=lambda each: each[:2])
        return [listener for _, _, listener in entries]

    def events(self) -> list[str]:
        return sorted(self._versions)


class TombstoneBus(EventBus):
    """Marks removed listeners, and compacts the list when half of it is marked."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, list[list[Any]]] = {}

    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        slot: list[Any] = [-priority, listener.__name__, listener]
        self._slots.setdefault(event, []).append(slot)

        def unsubscribe() -> None:
            slot[2] = None
            self._compact(event)

        return unsubscribe

    def _compact(self, event: str) -> None:
        slots = self._slots[event]
        live = [slot for slot in slots if slot[2] is not None]
        if len(live) * 2 <= len(slots):
            slots[:] = live

    def _order(self, event: str) -> list[Listener]:
        slots = [slot for slot in self._slots.get(event, ()) if slot[2] is not None]
        return [slot[2] for slot in sorted(slots, key=lambda slot: slot[:2])]

    def events(self) -> list[str]:
        return sorted(
            event
            for event, slots in self._slots.items()
            if any(slot[2] is not None for slot in slots)
        )


class GenerationBus(EventBus):
    """Stamps the cached order with a generation that wraps after three changes.

    All stamped orders are dropped when it wraps.
    """

    def __init__(self) -> None:
        super().__init__()
        self._generation = 0
        self._stamped: dict[str, tuple[int, list[Listener]]] = {}

    def _changed(self, event: str) -> None:
        self._generation = (self._generation + 1) % 3
        if self._generation == 0:
            self._stamped.clear()

    def _order(self, event: str) -> list[Listener]:
        stamp, order = self._stamped.get(event, (-1, []))
        if stamp != self._generation:
            order = [each for _, _, each in sorted(self._listeners.get(event, ()))]
            self._stamped[event] = (self._generation, order)
        return order


class SnapshotBus(EventBus):
    """Publishes over a copy, so that a listener may unsubscribe in a call."""

    def publish(self, event: str, payload: str) -> list[str]:
        return [listener(payload) for listener in tuple(self._order(event))]

    def _order(self, event: str) -> list[Listener]:
        order = getattr(self, f"_order_of_{event}", None)
        if order is None:
            order = [each for _, _, each in sorted(self._listeners.get(event, ()))]
            setattr(self, f"_order_of_{event}", order)
        return order

    def _changed(self, event: str) -> None:
        if hasattr(self, f"_order_of_{event}"):
            delattr(self, f"_order_of_{event}")


class StaleOnRemovalBus(EventBus):
    def _remove(self, event: str, entry: tuple[int, str, Listener]) -> None:
        self._listeners[event].remove(entry)
        if not self._listeners[event]:
            del self._listeners[event]


class StaleOnAdditionBus(EventBus):
    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        entry = (-priority, listener.__name__, listener)
        self._listeners.setdefault(event, []).append(entry)
        return lambda: self._remove(event, entry)


class PriorityTiesBus(EventBus):
    def _order(self, event: str) -> list[Listener]:
        entries = sorted(self._listeners.get(event, ()), key=lambda entry: entry[0])
        return [listener for _, _, listener in entries]


class UndoByIndexBus(EventBus):
    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        entries = self._listeners.setdefault(event, [])
        entries.append((-priority, listener.__name__, listener))
        position = len(entries) - 1
        self._changed(event)

        def unsubscribe() -> None:
            del self._listeners[event][min(position, len(self._listeners[event]) - 1)]
            if not self._listeners[event]:
                del self._listeners[event]
            self._changed(event)

        return unsubscribe


class SnapshotUndoBus(EventBus):
    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        before = list(self._listeners.get(event, ()))
        super().subscribe(event, listener, priority)

        def unsubscribe() -> None:
            if before:
                self._listeners[event] = list(before)
            else:
                self._listeners.pop(event, None)
            self._changed(event)

        return unsubscribe


class EmptyEventBus(EventBus):
    def _remove(self, event: str, entry: tuple[int, str, Listener]) -> None:
        self._listeners[event].remove(entry)
        self._changed(event)


class ShortStampBus(GenerationBus):
    def _changed(self, event: str) -> None:
        self._generation = (self._generation + 1) % 4


class OnceListenerBus(EventBus):
    def publish(self, event: str, payload: str) -> list[str]:
        order = self._order(event)
        answers = [listener(payload) for listener in order]
        if mail in order:
            # It is meant to be called once for each subscription.
            self._sorted[event] = [each for each in order if each is not mail]
        return answers


class MutatedOrderBus(EventBus):
    def publish(self, event: str, payload: str) -> list[str]:
        order = self._order(event)
        answers = []
        while len(order) > 2:
            answers.append(order.pop(0)(payload))
        return [*answers, *(listener(payload) for listener in order)]


class SharedPrioritiesBus(EventBus):
    def subscribe(
        self, event: str, listener: Listener, priority: int = 0
    ) -> Callable[[], None]:
        taken = {entry[0] for entry in self._listeners.get(event, ())}
        while -priority in taken:
            priority -= 1
        return super().subscribe(event, listener, priority)


class LostTombstoneBus(TombstoneBus):
    def _compact(self, event: str) -> None:
        slots = self._slots[event]
        live = [slot for slot in slots if slot[2] is not None]
        if len(live) * 2 < len(slots):
            slots[:] = live[:1] or slots[:0]


def subscribed(
    event: str, listener: Listener, priority: int
) -> Callable[[Any], Callable[[], None]]:
    return lambda bus: bus.subscribe(event, listener, priority)


BUS = Interface(
    "event bus",
    (
        Registration('bus.subscribe("saved", mail, 1)', subscribed("saved", mail, 1)),
        Registration('bus.subscribe("saved", audit, 1)', subscribed("saved", audit, 1)),
        Registration('bus.subscribe("saved", index, 5)', subscribed("saved", index, 5)),
    ),
    (('bus.publish("saved", "x")', lambda bus: bus.publish("saved", "x")),),
    lambda bus: " ".join(bus.events()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all event buses."""
    yield from specimens_of(
        BUS,
        (
            EventBus,
            SortedBus,
            CopyOnWriteBus,
            TombstoneBus,
            GenerationBus,
            SnapshotBus,
        ),
        {
            StaleOnRemovalBus: "the cached order survives that a listener leaves",
            StaleOnAdditionBus: "the cached order survives that a listener is added",
            PriorityTiesBus: "listeners of one priority run in the order of adding",
            UndoByIndexBus: "a listener is removed by its index when it was added",
            SnapshotUndoBus: "removing a listener restores the list before it",
            EmptyEventBus: "an event without listeners is still listed",
            ShortStampBus: "the generation wraps, and an old order is taken as new",
            OnceListenerBus: "a listener is dropped from the cached order by a call",
            MutatedOrderBus: "publishing consumes the cached order",
            SharedPrioritiesBus: "a listener with a taken priority gets the next one",
            LostTombstoneBus: "compacting keeps only the first live listener",
        },
    )
