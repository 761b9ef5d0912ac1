"""Registrations, which own their records, and the cache of operator handles.

A *ledger* holds the records of one owner (a library), by the key of each registration.
Only the dispatcher's state decides which records are live: removing twice, from two
threads, or by library and registration at once, removes once.  A `HandleCache` belongs
to one dispatcher and keeps nothing alive: it finds the handle of an operator as long as
another object refers to it, and has the keys under which entries store the bound
kernels for this dispatcher (`runtime.dispatch.kernel_lookup`).

Rules of registrations:
- a record is in the ledger before it is live, and its key leaves the ledger after the
  removal, so that an exception at any line (a signal, the end of recursion) leaves no
  live record without an owner; a call that raises has registered nothing;
- a closed registration keeps nothing alive, not even the kernel;
- dropping a registration does not close it: its library owns it;
- leaving a `with` block closes, with or without an exception.

Rules of the handle cache:
- a name has at most one living object: `is` compares operators;
- there is no lock, and no state that a fork could interrupt halfway.  Finalizers use
  the cache at any moment, and a lock in a finalizer can deadlock.

How interning works: a name leads to a weak reference, and a dead one to its successor.
Both steps are a `dict.setdefault`, of which only the first one counts: a successor is
set once, and only after a reference that was seen dead, which it stays.  So only the
last reference of a chain may be alive.  Chains are shortened from their head, for speed
alone: an outdated head still leads to the end.
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
from everyorder.runtime.schema.signature import OperatorName

Tokens = tuple[RegistrationRecord, ...]
# Records by the key of their registration.  The registration refers to none of them, so
# that it keeps nothing alive once it is closed; a ledger refers to no dispatcher.
OwnedRegistrations = dict[object, Tokens]


class Owner(ref[object]):
    """A reference to a library, with the ledger of its registrations.

    The callback for a lost library is a C method, so that no Python line runs in
    between: in Python's `__del__` a signal would be lost, and the registrations would
    stay for ever.
    """

    __slots__ = ("ledger",)
    ledger: OwnedRegistrations


T = TypeVar("T")

# The name of the unnamed overload where a name is needed.
DEFAULT = "default"
# The one key of `_Reference.successor`.
_NEXT = "next"


class _OrderedReference(ref[T], Generic[T]):
    """A weak reference, and its successor after its object died."""

    __slots__ = ("successor",)

    successor: "dict[str, _OrderedReference[T]]"


class Interned(Generic[T]):
    """Objects by name, which the cache does not keep alive; see the rules above."""

    __slots__ = ("_heads",)

    def __init__(self) -> None:
        self._heads: dict[str, _OrderedReference[T]] = {}

    def get(self, name: str) -> T | None:
        """Return the living object of that name, or None."""
        reference = self._heads.get(name)
        while reference is not None:
            living = reference()
            if living is not None:
                return living
            reference = reference.successor.get(_NEXT)
        return None

    def setdefault(self, name: str, new: T) -> T:
        """Return the object of that name from now on: an earlier one, else `new`."""
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
        """Return the number of names requested so far."""
        return len(self._heads)


class HandleCache:
    """Keys for call stubs, and operators, packets, namespaces of one dispatcher."""

    __slots__ = ("handles", "keys", "namespaces", "packets")

    def __init__(self) -> None:
        self.keys: dict[OperatorSpec, object] = {}
        self.handles: Interned[Any] = Interned()
        self.packets: Interned[Any] = Interned()
        self.namespaces: Interned[Any] = Interned()

    def key(self, reading: OperatorSpec) -> object:
        """Return the key under which entries store the bound kernels of a call stub."""
        return self.keys.setdefault(reading, object())

    def forget(self, name: OperatorName) -> None:
        """Remove what accesses of attributes stored for an operator.

        It is called after a state without a definition of `name` was published.
        """
        namespace, _, operator = name.name.partition("::")
        for owner, attribute in (
            (self.namespaces.get(namespace), operator),
            (self.packets.get(name.name), name.overload or DEFAULT),
        ):
            if owner is not None:
                vars(owner).pop(attribute, None)


class DispatcherProtocol(Protocol):
    """The interface of a dispatcher for its registrations and handles."""

    state: DispatcherState
    keyring: HandleCache
    dropped: deque[Sequence[RegistrationRecord] | Owner]

    def register(
        self, tokens: Sequence[RegistrationRecord], exclusive: bool = False
    ) -> None:
        """Make all tokens live, or none."""

    def unregister(self, tokens: Sequence[RegistrationRecord]) -> None:
        """Remove those of the tokens that are live."""


class Registration(Closeable):
    """The records that one call registered; a context manager that closes on exit."""

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
        """Return True if the registered records have been removed."""
        tokens, state = self._ledger.get(self.key), self._registry.state
        return tokens is None or not all(is_live(state, token) for token in tokens)

    @property
    def tokens(self) -> Tokens:
        """Return the live records of this registration; empty once it is closed."""
        return () if self.closed else self._ledger.get(self.key, ())

    def close(self) -> None:
        """Remove the registered records; closing twice is safe.

        Raises:
            LibraryMisuse: called by a listener; the registration stays.
            ExceptionGroup: listeners raised; the records were removed all the same.
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

    Raises what `DispatcherProtocol.register` does; none of them is live then.
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
    """Remove the tokens of some keys of a ledger, and then the keys.

    Raises what `DispatcherProtocol.unregister` does; the keys stay if a token is live
    still.
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
