"""Registrations, which own what is registered, and the handles that are found again.

A *ledger* holds the registrations of one owner (a library), by a key for each.  What is
live is told by the dispatcher's state alone: taking down twice, from two threads, or by
library and registration at once, takes down once.  A *keyring* belongs to one
dispatcher and keeps nothing alive: it finds the handle of an operator as long as
somebody keeps that, and has the keys under which entries remember what is bound for
this dispatcher (`runtime.dispatch.call`).

Rules of registrations:
- a token is owned before it is live, and its key in the ledger goes after it was taken
  down, so that an exception at any line (a signal, the end of recursion) leaves nothing
  live that nobody owns; a call that raises has registered nothing;
- a closed registration keeps nothing alive, not even the kernel;
- dropping a registration without closing it does nothing: its library owns it;
- leaving a `with` block closes, whatever the block ended with.

Rules of keyrings:
- a name has one living object at most: `is` compares operators;
- no lock, and nothing that a fork could cut in two.  A lock would be taken inside of
  finalizers, which may ask at any moment.

How interning works: a name leads to a weak reference, and a dead one to its successor.
Both steps are a `dict.setdefault`, of which only the first one counts: a successor is
set once, and only behind a reference that was seen dead, which it stays.  So the last
reference of a chain is the only one that may be alive.  Chains are cut short from
their head, for speed alone: a head that lags behind still leads to the end.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar
from weakref import ref

from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.dispatch.registration_record import (
    OperatorSpec,
    RegistrationRecord,
)
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.dispatch.transition import is_live

Tokens = tuple[RegistrationRecord, ...]
# Tokens by the key of their registration, which knows no token itself, so that it keeps
# nothing alive once it is closed; a ledger knows no registry.
OwnedRegistrations = dict[object, Tokens]


class Owner(ref[object]):
    """A reference to a library, with the ledger of what is registered by it.

    The callback for a lost library is a method of C's, so that nothing can come in
    between: in Python's `__del__` a signal is lost, and what was registered would stay
    for ever.
    """

    __slots__ = ("ledger",)
    ledger: OwnedRegistrations


T = TypeVar("T")

# The one key of `_Reference.successor`.
_NEXT = "next"


class _OrderedReference(ref[T], Generic[T]):
    """A weak reference, and the one that came after its object died."""

    __slots__ = ("successor",)

    successor: "dict[str, _OrderedReference[T]]"


class Interned(Generic[T]):
    """Objects by name, kept alive by others; see the rules above."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads: dict[str, _OrderedReference[T]] = {}

    def get(self, name: str) -> T | None:
        """The living object of that name, if it is found at once."""
        head = self._heads.get(name)
        return None if head is None else head()

    def setdefault(self, name: str, new: T) -> T:
        """The object of that name from now on: `new`, or one that came before it."""
        reference = _OrderedReference(new)
        reference.successor = {}
        last = self._heads.setdefault(name, reference)
        while last is not reference:
            living = last()
            if living is not None:
                return living
            last = last.successor.setdefault(_NEXT, reference)
        self._heads[name] = reference
        return new

    def __len__(self) -> int:
        """How many names were asked for so far."""
        return len(self._heads)


class HandleCache:
    """Of one dispatcher: keys for its call stubs, and its operators and packets."""

    __slots__ = ("handles", "keys", "packets")

    def __init__(self) -> None:
        self.keys: dict[OperatorSpec, object] = {}
        self.handles: Interned[Any] = Interned()
        self.packets: Interned[Any] = Interned()

    def key(self, reading: OperatorSpec) -> object:
        """The key under which entries remember the bound kernels of a call stub."""
        return self.keys.setdefault(reading, object())


class DispatcherProtocol(Protocol):
    """A dispatcher, as its registrations and handles see it."""

    state: DispatcherState
    keyring: HandleCache
    dropped: deque[Sequence[RegistrationRecord] | Owner]

    def register(
        self, tokens: Sequence[RegistrationRecord], exclusive: bool = False
    ) -> None:
        """Make all tokens live, or none."""

    def unregister(self, tokens: Sequence[RegistrationRecord]) -> None:
        """Take down those of the tokens that are live."""


class Registration(Closeable):
    """What one call registered; a context manager that closes on exit."""

    __slots__ = ("__weakref__", "_ledger", "_registry", "key")

    def __init__(
        self, registry: DispatcherProtocol, ledger: OwnedRegistrations, tokens: Tokens
    ) -> None:
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


def register_tokens(
    registry: DispatcherProtocol,
    ledger: OwnedRegistrations,
    tokens: Tokens,
    exclusive: bool = False,
) -> Registration:
    """Make tokens live, owned by a new registration in the ledger.

    Raises what `Registry.register` does; none of them is live then.
    """
    registration = Registration(registry, ledger, tokens)
    try:
        registry.register(tokens, exclusive)
        return registration
    except BaseException:
        if not registration.closed:
            registry.unregister(tokens)
        ledger.pop(registration.key, None)
        raise


def take_down(
    registry: DispatcherProtocol,
    ledger: OwnedRegistrations,
    keys: Iterable[object],
    tokens: Sequence[RegistrationRecord],
) -> None:
    """Take down the tokens of some keys of a ledger, and then the keys.

    Raises what `Registry.unregister` does; the keys stay if a token is live still.
    """
    try:
        registry.unregister(tokens)
    except BaseException:
        if any(is_live(registry.state, token) for token in tokens):
            raise
        _forget(ledger, keys)
        raise
    _forget(ledger, keys)


def _forget(ledger: OwnedRegistrations, keys: Iterable[object]) -> None:
    for key in keys:
        ledger.pop(key, None)
