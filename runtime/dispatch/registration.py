"""Registrations: the handles that keep what was registered alive, and end it.

True only here: who owns a token.  A ledger is the set of the registrations that one
owner (a library) still holds; taking one out of the ledger is the single, atomic act
that ends it, so closing twice, from two threads, or by library and handle at once,
takes it down exactly once.

Rules:
- a closed registration keeps nothing alive, not even the kernel;
- dropping a registration without closing it does nothing: its library owns it.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from runtime.dispatch.closing import Closing
from runtime.dispatch.state import DispatcherState
from runtime.dispatch.token import Token
from runtime.errors.registration import WriteInsideListener

Tokens = tuple[Token, ...]
# A registration knows no token itself, so once it is out it keeps nothing alive.
Ledger = dict["Registration", Tokens]


class Registry(Protocol):
    """What handles need of a dispatcher."""

    state: DispatcherState
    dropped: deque[list[Token]]

    def register(self, tokens: Sequence[Token]) -> None:
        """Make all tokens live, or none."""

    def unregister(self, tokens: Sequence[Token]) -> None:
        """Take all tokens down."""


class Registration(Closing):
    """What one call registered; a context manager that closes on exit."""

    __slots__ = ("__weakref__", "_ledger", "_registry")

    def __init__(self, registry: Registry, ledger: Ledger, tokens: Tokens) -> None:
        self._registry = registry
        self._ledger = ledger
        ledger[self] = tokens

    @property
    def closed(self) -> bool:
        """Whether what was registered has been taken down."""
        return self not in self._ledger

    @property
    def tokens(self) -> Tokens:
        """What is live by this registration; nothing once it is closed."""
        return self._ledger.get(self, ())

    def close(self) -> None:
        """Take down what was registered; the second time nothing happens.

        Raises:
            WriteInsideListener: called by a listener; the registration stays.
            ExceptionGroup: listeners raised; it was taken down all the same.
        """
        tokens = self._ledger.pop(self, None)
        if tokens is not None:
            try:
                self._registry.unregister(tokens)
            except WriteInsideListener:
                self._ledger[self] = tokens
                raise

    def __repr__(self) -> str:
        tokens = self._ledger.get(self)
        if tokens is None:
            return "<Registration closed>"
        return f"<Registration of {', '.join(token.debug for token in tokens)}>"


def empty_ledger(ledger: Ledger) -> list[Token]:
    """Take every registration out of a ledger, one atomic step each; oldest first."""
    held: list[Tokens] = []
    while ledger:
        try:
            held.append(ledger.popitem()[1])
        except KeyError:  # another thread took the last one
            break
    return [token for tokens in reversed(held) for token in tokens]
