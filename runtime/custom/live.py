"""Which custom operators are live, by dispatcher and name.

True only here: how a definition is found again by its name, and who keeps it.  One on
the default dispatcher stays until it is closed or made anew, whether or not somebody
keeps what `custom_op` returned; one on another dispatcher lives as long as its owner
keeps it, as a library does.
"""

from typing import Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher


class Definition(Protocol):
    """What is kept: a custom operator."""

    name: str
    dispatcher: Dispatcher

    def close(self) -> None:
        """End it."""


_LIVE: WeakKeyDictionary[Dispatcher, WeakValueDictionary[str, Definition]]
_LIVE = WeakKeyDictionary()
# Those of the default dispatcher.
_KEPT: dict[str, Definition] = {}


def keep(made: Definition) -> None:
    """Remember a definition by its name, in place of another one."""
    _LIVE.setdefault(made.dispatcher, WeakValueDictionary())[made.name] = made
    if made.dispatcher is default_dispatcher():
        _KEPT[made.name] = made


def live(dispatcher: Dispatcher, name: str) -> Definition | None:
    """The live definition of that name, None if there is none."""
    named = _LIVE.get(dispatcher)
    return None if named is None else named.get(name)


def forget(made: Definition) -> None:
    """Let go of a definition that is closed; another one of its name stays."""
    if live(made.dispatcher, made.name) is made:
        del _LIVE[made.dispatcher][made.name]
    if _KEPT.get(made.name) is made:
        del _KEPT[made.name]
