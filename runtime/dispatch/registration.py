"""Registrations: the handles that keep what was registered alive, and end it.

A *ledger* is the set of the registrations that one owner (a library) holds.  What is
live is told by the dispatcher's state alone: taking down twice, from two threads, or by
library and handle at once, takes down once.

Rules:
- a token is owned before it is live, and its entry in the ledger goes after it was
  taken down, so that an exception at any line (a signal, the end of recursion) leaves
  nothing live that nobody owns; who registers and gets an exception has registered
  nothing;
- a closed registration keeps nothing alive, not even the kernel;
- dropping a registration without closing it does nothing: its library owns it;
- leaving a `with` block closes, whatever the block ended with.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Protocol, Self
from weakref import ref

from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import Token
from runtime.dispatch.transition import is_live


class Closing:
    """The base of what owns something until it is closed."""

    __slots__ = ()

    def close(self) -> None:
        """End it; the second time nothing happens."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it ends")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


Tokens = tuple[Token, ...]
# What an owner holds, by the key of each registration.  A registration knows no token
# itself, so once it is out it keeps nothing alive; a ledger knows no registry.
Ledger = dict[object, Tokens]


class Owner(ref[object]):
    """What is left of a library that was lost: the ledger of what it owned.

    Its callback is a method of C's, so that nothing can come in between: in Python's
    `__del__` a signal is lost, and what was registered would stay for ever.
    """

    __slots__ = ("ledger",)
    ledger: Ledger


class Registry(Protocol):
    """What handles need of a dispatcher."""

    state: DispatcherState
    dropped: deque[Sequence[Token] | Owner]

    def register(self, tokens: Sequence[Token], exclusive: bool = False) -> None:
        """Make all tokens live, or none."""

    def unregister(self, tokens: Sequence[Token]) -> None:
        """Take down those of the tokens that are live."""


class Registration(Closing):
    """What one call registered; a context manager that closes on exit."""

    __slots__ = ("__weakref__", "_ledger", "_registry", "key")

    def __init__(self, registry: Registry, ledger: Ledger, tokens: Tokens) -> None:
        self._registry = registry
        self._ledger = ledger
        self.key = object()
        ledger[self.key] = tokens

    @property
    def closed(self) -> bool:
        """Whether what was registered has been taken down."""
        tokens, state = self._ledger.get(self.key), self._registry.state
        return tokens is None or not all(is_live(state, token) for token in tokens)

    @property
    def tokens(self) -> Tokens:
        """What is live by this registration; nothing once it is closed."""
        return () if self.closed else self._ledger.get(self.key, ())

    def close(self) -> None:
        """Take down what was registered; the second time nothing happens.

        Raises:
            LibraryMisuse: called by a listener; the registration stays.
            ExceptionGroup: listeners raised; it was taken down all the same.
        """
        tokens = self._ledger.get(self.key)
        if tokens is not None:
            take_down(self._registry, self._ledger, (self.key,), tokens)

    def __repr__(self) -> str:
        if self.closed:
            return "<Registration closed>"
        return f"<Registration of {', '.join(token.debug for token in self.tokens)}>"


def registered(
    registry: Registry, ledger: Ledger, tokens: Tokens, exclusive: bool = False
) -> Registration:
    """Make tokens live, owned by a new registration in the ledger.

    Raises what `Registry.register` does; nothing is live then, whatever came when.
    """
    made = Registration(registry, ledger, tokens)
    try:
        registry.register(tokens, exclusive)
        return made
    except BaseException:
        if not made.closed:
            registry.unregister(tokens)
        ledger.pop(made.key, None)
        raise


def take_down(
    registry: Registry,
    ledger: Ledger,
    keys: Iterable[object],
    tokens: Sequence[Token],
) -> None:
    """Take down what stands in a ledger under some keys, and then these entries.

    Raises what `Registry.unregister` does; they own what is live still.
    """
    try:
        registry.unregister(tokens)
    except BaseException:
        if any(is_live(registry.state, token) for token in tokens):
            raise
        _forget(ledger, keys)
        raise
    _forget(ledger, keys)


def _forget(ledger: Ledger, keys: Iterable[object]) -> None:
    for key in keys:
        ledger.pop(key, None)
