"""The state of a dispatcher, and of each operator, as immutable values.

A state is all that is registered: a snapshot is a reference to such a value, a
fingerprint covers every field, and nothing about registrations is remembered elsewhere.
An operator's *entry* lives while something is registered under its name, and is never
patched; `transition` builds another one.

Rules of an entry:
- `implementations` maps keys, in the order of their values, to their kernels, newest
  first; no key maps to nothing;
- `definitions` holds one token at most (several under the 2020 rule: those whose
  alias kind is set, then the others, each in the order of their texts);
- `rules` holds one rule for a class at most, in the order of their texts;
- `total` counts the live registrations, save for rules: what has rules alone is no
  operator, and neither dumps nor look-ups know of it;
- `memo` is for pure functions of this very entry (callers, texts); it is no state.

Rules of a state:
- operators are held by namespace, then by printed name, so that a step copies the
  namespace that it touches and no other;
- mappings are never changed once they are in a state, and their order means nothing;
- the order of `subscriptions` is the order of subscribing: it is observable.

Both are named tuples because a registration makes one of each, and nothing is faster to
make; two entries are compared by identity, never by `==`.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from runtime.dispatch.table import NO_FALLBACKS, Fallbacks, Table
from runtime.dispatch.token import (
    Claim,
    ClassRule,
    Definition,
    Extractor,
    Implementation,
    Reservation,
    Subscription,
)
from runtime.keys import DispatchKey
from runtime.schema.schema import Schema
from runtime.schema.signature import OperatorName

Implementations = Mapping[DispatchKey, tuple[Implementation, ...]]


class OperatorEntry(NamedTuple):
    """All registrations of one operator, with the table computed from them."""

    name: OperatorName
    definitions: tuple[Definition, ...]
    implementations: Implementations
    reservations: tuple[Reservation, ...]
    rules: tuple[ClassRule, ...]
    total: int
    extractor: Extractor
    table: Table
    memo: dict[Any, Any]

    @property
    def definition(self) -> Definition | None:
        """The definition in force, if there is one."""
        return self.definitions[0] if self.definitions else None

    @property
    def schema(self) -> Schema | None:
        """The schema in force, if there is one."""
        return self.definitions[0].reading.schema if self.definitions else None


Namespaces = Mapping[str, Mapping[str, OperatorEntry]]


class OperatorMap(dict[str, OperatorEntry]):
    """The operators of one namespace, by printed name; never changed once published.

    `read` is for what is read off them, as text, `packets` for the overloads of each
    operator, and `bound_kernels` for what whoever calls some of them finds on their
    entries, by keys of their own; none of them is state, and all are unset at first.
    """

    __slots__ = ("bound_kernels", "packets", "read")
    bound_kernels: dict[object, Any]
    read: Hashable
    packets: Mapping[str, list[OperatorEntry]]

    def overloads(self, name: str) -> list[OperatorEntry]:
        """The entries of all overloads of an operator, by overload name."""
        try:
            return self.packets.get(name, [])
        except AttributeError:
            found: dict[str, list[OperatorEntry]] = {}
            for entry in self.values():
                found.setdefault(entry.name.name, []).append(entry)
            for entries in found.values():
                entries.sort(key=lambda entry: entry.name.overload)
            self.packets = found
            return found.get(name, [])


class DispatcherState(NamedTuple):
    """All that is registered.

    `claims` are the live DEF libraries, sorted by namespace; `merges_alias_kinds` is
    the 2020 rule for second definitions, a setting of the dispatcher.
    """

    namespaces: Namespaces = {}  # noqa: RUF012  # never changed, like every mapping here
    fallbacks: Fallbacks = NO_FALLBACKS
    claims: tuple[Claim, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    merges_alias_kinds: bool = False

    def entry(self, name: OperatorName) -> OperatorEntry | None:
        """The entry of an operator, None if nothing is registered for it."""
        operators = self.namespaces.get(name.name.partition("::")[0])
        return None if operators is None else operators.get(str(name))

    def find(self, namespace: str, text: str) -> OperatorEntry | None:
        """The entry of an operator whose namespace and printed name are known."""
        operators = self.namespaces.get(namespace)
        return None if operators is None else operators.get(text)

    def overloads(self, name: OperatorName) -> list[OperatorEntry]:
        """The entries of all overloads of an operator, by overload name."""
        operators = self.namespaces.get(name.name.partition("::")[0])
        if operators is None:
            return []
        if isinstance(operators, OperatorMap):
            return operators.overloads(name.name)
        found = [e for e in operators.values() if e.name.name == name.name]
        return sorted(found, key=lambda entry: entry.name.overload)

    def entries(self) -> Iterator[OperatorEntry]:
        """Every entry, sorted by name."""
        for _, operators in sorted(self.namespaces.items()):
            for _, entry in sorted(operators.items()):
                yield entry


EMPTY = DispatcherState()
