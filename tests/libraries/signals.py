"""Receivers of signals and events, connected and disconnected in any order."""

from typing import Any

from everyorder import Scenario, steps, use

NAMES = ("first", "second", "third")


class Receivers:
    """Three receivers, and the names of those that were called."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.by_name = {name: self._receiver(name) for name in NAMES}

    def _receiver(self, name: str) -> Any:
        def receive(*arguments: Any, **options: Any) -> str:
            self.called.append(name)
            return name

        return receive

    def calls(self) -> tuple[str, ...]:
        """Return the names since the last call, sorted."""
        names = tuple(sorted(self.called))
        self.called.clear()
        return names


def blinker_signal() -> Scenario:
    from blinker import Signal

    class Registry(Receivers):
        def __init__(self) -> None:
            super().__init__()
            self.signal = Signal()

        def connect(self, name: str) -> None:
            self.signal.connect(self.by_name[name], weak=False)

        def disconnect(self, name: str) -> None:
            self.signal.disconnect(self.by_name[name])

        def send(self) -> tuple[tuple[str, ...], int]:
            answers = self.signal.send("sender")
            return self.calls(), len(answers)

    return Scenario(
        *steps("connect", NAMES, Registry.connect, undo=Registry.disconnect),
        uses=[
            use("send", Registry.send),
            use("receivers", lambda registry: len(registry.signal.receivers)),
        ],
        create=Registry,
    )


def pydispatch_dispatcher() -> Scenario:
    from pydispatch import dispatcher

    tables = dispatcher.connections, dispatcher.senders, dispatcher.sendersBack

    class Registry(Receivers):
        def __init__(self) -> None:
            super().__init__()
            for table in tables:  # those of all senders
                table.clear()

        def connect(self, name: str) -> None:
            receiver = self.by_name[name]
            dispatcher.connect(receiver, signal="saved", sender=self, weak=False)

        def disconnect(self, name: str) -> None:
            receiver = self.by_name[name]
            dispatcher.disconnect(receiver, signal="saved", sender=self, weak=False)

        def send(self) -> tuple[str, ...]:
            dispatcher.send("saved", sender=self)
            return self.calls()

        def receivers(self) -> int:
            return len(dispatcher.getReceivers(self, "saved"))

    return Scenario(
        *steps("connect", NAMES, Registry.connect, undo=Registry.disconnect),
        uses=[use("send", Registry.send), use("getReceivers", Registry.receivers)],
        create=Registry,
        watch=["pydispatch.dispatcher"],
    )


def pyee_emitter() -> Scenario:
    from pyee.base import EventEmitter

    class Registry(Receivers):
        def __init__(self) -> None:
            super().__init__()
            self.emitter = EventEmitter()

        def on(self, name: str) -> None:
            self.emitter.on("saved", self.by_name[name])

        def off(self, name: str) -> None:
            self.emitter.remove_listener("saved", self.by_name[name])

        def emit(self) -> tuple[bool, tuple[str, ...]]:
            return self.emitter.emit("saved"), self.calls()

    return Scenario(
        *steps("on", NAMES, Registry.on, undo=Registry.off),
        uses=[
            use("emit", Registry.emit),
            use("listeners", lambda registry: len(registry.emitter.listeners("saved"))),
        ],
        create=Registry,
    )


def zope_event_subscribers() -> Scenario:
    from zope import event

    class Registry(Receivers):
        def __init__(self) -> None:
            super().__init__()
            event.subscribers.clear()

        def subscribe(self, name: str) -> None:
            event.subscribers.append(self.by_name[name])

        def unsubscribe(self, name: str) -> None:
            event.subscribers.remove(self.by_name[name])

        def notify(self) -> tuple[str, ...]:
            event.notify("saved")
            return self.calls()

    return Scenario(
        *steps("subscribe", NAMES, Registry.subscribe, undo=Registry.unsubscribe),
        uses=[
            use("notify", Registry.notify),
            use("subscribers", lambda registry: len(event.subscribers)),
        ],
        create=Registry,
    )


def traitlets_observers() -> Scenario:
    from traitlets import HasTraits, Int

    class Counter(HasTraits):  # type: ignore[misc]  # it need not be installed
        value = Int()

    class Registry(Receivers):
        def __init__(self) -> None:
            super().__init__()
            self.counter = Counter()

        def observe(self, name: str) -> None:
            self.counter.observe(self.by_name[name], "value")

        def unobserve(self, name: str) -> None:
            self.counter.unobserve(self.by_name[name], "value")

        def change(self) -> tuple[str, ...]:
            self.counter.value = 1
            self.counter.value = 0
            return self.calls()

        def notifiers(self) -> int:
            by_name = self.counter._trait_notifiers
            return len(by_name.get("value", {}).get("change", ()))

    return Scenario(
        *steps("observe", NAMES, Registry.observe, undo=Registry.unobserve),
        uses=[
            use("change", Registry.change),
            use("notifiers", Registry.notifiers),
        ],
        create=Registry,
    )


def kombu_serializers() -> Scenario:
    from kombu.serialization import SerializerRegistry

    def register(registry: Any, name: str) -> None:
        registry.register(name, str.upper, str.lower, f"application/x-{name}", "utf-8")

    def dumped(registry: Any) -> tuple[str, ...]:
        known = [name for name in NAMES if name in registry.type_to_name.values()]
        return tuple(registry.dumps("text", name)[2] for name in known)

    return Scenario(
        *steps(
            "register",
            NAMES,
            register,
            undo=lambda registry, name: registry.unregister(name),
        ),
        uses=[
            use("dumps", dumped),
            use("type_to_name", lambda registry: sorted(registry.type_to_name)),
        ],
        create=SerializerRegistry,
    )
