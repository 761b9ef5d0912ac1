"""Django: receivers of one signal, connected by name and without weak references."""

from typing import Any

from django.dispatch import Signal

from everyorder import Scenario, steps, use


def count(sender: Any, **named: Any) -> str:
    return "counted"


def send_mail(sender: Any, **named: Any) -> str:
    return "mailed"


def clear_cache(sender: Any, **named: Any) -> str:
    return "cleared"


RECEIVERS = {"count": count, "mail": send_mail, "cache": clear_cache}


class Order:
    """A sender of the signal."""


def connect(signal: Signal, name: str) -> None:
    signal.connect(RECEIVERS[name], sender=Order, weak=False, dispatch_uid=name)


def disconnect(signal: Signal, name: str) -> None:
    signal.disconnect(sender=Order, dispatch_uid=name)


def answers(signal: Signal) -> tuple[str, ...]:
    return tuple(sorted(answer for _, answer in signal.send(Order)))


def new_signal() -> Signal:
    return Signal(use_caching=True)


scenario = Scenario(
    *steps("connect", [*RECEIVERS], connect, undo=disconnect),
    uses=[
        use("send", answers),
        use("has_listeners", lambda signal: signal.has_listeners(Order)),
    ],
    create=new_signal,
)
