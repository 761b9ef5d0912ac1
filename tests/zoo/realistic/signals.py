"""Signals: receivers are held by weak references, as long as their owner lives.

A step creates an object with a receiver and connects it; the undo disconnects it, or
drops the last reference to the object.  `send` calls the live receivers by label.
"""

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakMethod, WeakSet, WeakValueDictionary, finalize, ref

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)


class Receiver:
    """An object with a method that is connected."""

    def __init__(self, label: str) -> None:
        self.label = label

    def receive(self, value: int) -> str:
        return f"{self.label}={value}"


class Cycle(Receiver):
    """A receiver that is only collected with its cycle."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.itself = self


class Signal:
    """Holds weak methods by label, and removes those that died when it sends."""

    def __init__(self) -> None:
        self._receivers: list[tuple[str, WeakMethod[Callable[[int], str]]]] = []

    def connect(self, receiver: Receiver) -> None:
        self._receivers.append((receiver.label, WeakMethod(receiver.receive)))

    def disconnect(self, receiver: Receiver) -> None:
        self._receivers = [
            entry for entry in self._receivers if entry[1]() != receiver.receive
        ]

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        live = [(label, method()) for label, method in self._receivers]
        self._receivers = [
            entry
            for entry, (_, method) in zip(self._receivers, live, strict=True)
            if method is not None
        ]
        return sorted((label, method) for label, method in live if method is not None)

    def send(self, value: int) -> list[str]:
        return [method(value) for _, method in self._live()]

    def count(self) -> int:
        return len(self._live())


class CallbackSignal(Signal):
    """Removes a receiver in the callback of its weak reference."""

    def __init__(self) -> None:
        super().__init__()
        self._refs: dict[str, ref[Receiver]] = {}

    def connect(self, receiver: Receiver) -> None:
        label = receiver.label
        refs = self._refs

        def died(dead: "ref[Receiver]") -> None:
            if refs.get(label) is dead:
                del refs[label]

        refs[label] = ref(receiver, died)

    def disconnect(self, receiver: Receiver) -> None:
        self._refs.pop(receiver.label, None)

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        objects = [(label, weak()) for label, weak in sorted(self._refs.items())]
        return [(label, each.receive) for label, each in objects if each is not None]


class WeakSetSignal(Signal):
    """Leaves all of it to a WeakSet."""

    def __init__(self) -> None:
        super().__init__()
        self._set: WeakSet[Receiver] = WeakSet()

    def connect(self, receiver: Receiver) -> None:
        self._set.add(receiver)

    def disconnect(self, receiver: Receiver) -> None:
        self._set.discard(receiver)

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        return sorted((each.label, each.receive) for each in self._set)


class WeakValueSignal(WeakSetSignal):
    """Holds the receivers by label in a WeakValueDictionary."""

    def __init__(self) -> None:
        super().__init__()
        self._labels: WeakValueDictionary[str, Receiver] = WeakValueDictionary()

    def connect(self, receiver: Receiver) -> None:
        self._labels[receiver.label] = receiver

    def disconnect(self, receiver: Receiver) -> None:
        del self._labels[receiver.label]

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        return sorted((label, each.receive) for label, each in self._labels.items())


class StrongSignal(Signal):
    """Holds receivers strongly until they are disconnected."""

    def __init__(self) -> None:
        super().__init__()
        self._strong: list[Receiver] = []

    def connect(self, receiver: Receiver) -> None:
        self._strong.append(receiver)

    def disconnect(self, receiver: Receiver) -> None:
        self._strong.remove(receiver)

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        return sorted((each.label, each.receive) for each in self._strong)


class FinalizingSignal(StrongSignal):
    """Counts the receivers, and a finalizer of each counts it off."""

    def __init__(self) -> None:
        super().__init__()
        self._weak: WeakSet[Receiver] = WeakSet()
        self._alive = [0]

    def connect(self, receiver: Receiver) -> None:
        alive = self._alive
        alive[0] += 1

        def died() -> None:
            alive[0] -= 1

        finalize(receiver, died).atexit = False
        self._weak.add(receiver)

    def disconnect(self, receiver: Receiver) -> None:
        self._weak.discard(receiver)

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        return sorted((each.label, each.receive) for each in self._weak)

    def count(self) -> int:
        return self._alive[0]


class BoundMethodSignal(Signal):
    def __init__(self) -> None:
        super().__init__()
        self._methods: list[ref[Callable[[int], str]]] = []
        self._first: list[Receiver] = []

    def connect(self, receiver: Receiver) -> None:
        # The first receiver is referred to, the others by methods that die at once.
        if not self._first:
            self._first.append(receiver)
        else:
            self._methods.append(ref(receiver.receive))

    def disconnect(self, receiver: Receiver) -> None:
        if receiver in self._first:
            self._first.remove(receiver)

    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        return [(each.label, each.receive) for each in self._first]


class KeptOrderSignal(Signal):
    def _live(self) -> list[tuple[str, Callable[[int], str]]]:
        live = [(label, method()) for label, method in self._receivers]
        return [(label, method) for label, method in live if method is not None]


class CachedReceiversSignal(Signal):
    def __init__(self) -> None:
        super().__init__()
        self._cache: list[tuple[str, Callable[[int], str]]] | None = None

    def connect(self, receiver: Receiver) -> None:
        super().connect(receiver)
        self._cache = None

    def disconnect(self, receiver: Receiver) -> None:
        super().disconnect(receiver)
        if len(self._receivers) != 1:
            self._cache = None

    def send(self, value: int) -> list[str]:
        # The cache refers to the receivers, which then live on.
        if self._cache is None:
            self._cache = self._live()
        return [method(value) for _, method in self._cache]


class DeadCountSignal(Signal):
    def disconnect(self, receiver: Receiver) -> None:
        """Wait until the receiver dies."""

    def count(self) -> int:
        return len(self._receivers)


class StrongCacheSignal(WeakSetSignal):
    def __init__(self) -> None:
        super().__init__()
        self._last: list[Receiver] = []

    def send(self, value: int) -> list[str]:
        answers = super().send(value)
        self._last = list(self._set)
        return answers

    def disconnect(self, receiver: Receiver) -> None:
        """Wait until the receiver dies, which the last ones do not."""


class LabelCallbackSignal(CallbackSignal):
    def connect(self, receiver: Receiver) -> None:
        refs, label = self._refs, receiver.label

        def died(dead: "ref[Receiver]") -> None:
            refs.clear()

        refs[label] = ref(receiver, died)

    def disconnect(self, receiver: Receiver) -> None:
        """Wait for the callback."""


class DoubleCountSignal(FinalizingSignal):
    def disconnect(self, receiver: Receiver) -> None:
        if len(self._weak) == 2:
            self._alive[0] -= 1
        self._weak.discard(receiver)


class IterationSignal(WeakSetSignal):
    def __init__(self) -> None:
        super().__init__()
        self._busy: set[str] = set()

    def send(self, value: int) -> list[str]:
        self._busy = {each.label for each in self._set}
        return super().send(value)

    def disconnect(self, receiver: Receiver) -> None:
        # A receiver that was sent to is left for the next send.
        if receiver.label in self._busy and len(self._busy) > 1:
            self._busy.discard(receiver.label)
            self._left = receiver
        else:
            self._set.discard(receiver)


class RecreatedSignal(WeakValueSignal):
    def disconnect(self, receiver: Receiver) -> None:
        for label in sorted(self._labels):
            if label >= receiver.label:
                del self._labels[label]


def connected(
    label: str, kind: type[Receiver] = Receiver
) -> Callable[[Any], Callable[[], None]]:
    def connect(signal: Any) -> Callable[[], None]:
        owner = [kind(label)]
        signal.connect(owner[0])

        def disconnect() -> None:
            signal.disconnect(owner.pop())

        return disconnect

    return connect


def dropped(label: str) -> Callable[[Any], Callable[[], None]]:
    def connect(signal: Any) -> Callable[[], None]:
        owner = [Receiver(label)]
        signal.connect(owner[0])
        return owner.clear

    return connect


SENDS = (("signal.send(1)", lambda signal: signal.send(1)),)
SIGNAL = Interface(
    "signals",
    (
        Registration('connect(signal, "log")', connected("log")),
        Registration('connect(signal, "mail")', connected("mail")),
        Registration('connect(signal, "index")', connected("index")),
    ),
    SENDS,
    lambda signal: f"{signal.count()} receivers",
)
DROPPED = Interface(
    "signals",
    (
        Registration('keep(signal, "log")', dropped("log")),
        Registration('keep(signal, "mail")', dropped("mail")),
    ),
    SENDS,
    lambda signal: f"{signal.count()} receivers",
)
CYCLIC = Interface(
    "signals",
    (
        Registration('connect(signal, "log")', connected("log", Cycle)),
        Registration('connect(signal, "mail")', connected("mail", Cycle)),
    ),
    SENDS,
    lambda signal: f"{signal.count()} receivers",
    collects=True,
)


class DroppedSignal(Signal):
    """Relies on the receivers' lives alone."""


class DroppedCallbackSignal(CallbackSignal):
    """Relies on the callbacks of weak references."""


class DroppedCacheSignal(CachedReceiversSignal):
    pass


class DroppedLastSignal(StrongCacheSignal):
    pass


class CyclicSignal(Signal):
    """Disconnects, so that garbage does not matter."""


class CyclicWaitingSignal(WeakSetSignal):
    def disconnect(self, receiver: Receiver) -> None:
        """Wait until the receiver is collected."""


class CyclicCountSignal(FinalizingSignal):
    """Counts a receiver off when its cycle is collected."""


def specimens() -> Iterator[Specimen]:
    """Yield all signals."""
    yield from specimens_of(
        SIGNAL,
        (
            Signal,
            CallbackSignal,
            WeakSetSignal,
            WeakValueSignal,
            StrongSignal,
            FinalizingSignal,
        ),
        {
            KeptOrderSignal: "receivers are called in the order of connecting",
            BoundMethodSignal: "a weak reference to a bound method dies at once",
            CachedReceiversSignal: "the cache survives that one receiver is left",
            DoubleCountSignal: "of two receivers, one is counted off twice",
            IterationSignal: "a receiver that was sent to is not disconnected",
            RecreatedSignal: "disconnecting takes the later labels with it",
        },
    )
    yield from specimens_of(
        DROPPED,
        (DroppedSignal, DroppedCallbackSignal),
        {
            DroppedCacheSignal: "the cache keeps the receivers alive",
            DroppedLastSignal: "the last receivers are kept alive",
            DeadCountSignal: "dead receivers are counted until a signal is sent",
            LabelCallbackSignal: "one that dies takes the others with it",
        },
    )
    yield from specimens_of(
        CYCLIC,
        (CyclicSignal,),
        {
            CyclicWaitingSignal: "a receiver in a cycle is called until collected",
            CyclicCountSignal: "a receiver in a cycle is counted until it is collected",
        },
    )
