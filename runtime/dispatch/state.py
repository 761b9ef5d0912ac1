"""The state of a dispatcher, as one immutable value.

True only here: what belongs to the state.  All of it: a snapshot is a reference to
such a value, a fingerprint covers every field, and nothing about registrations is
remembered elsewhere.

Rules:
- operators are held by namespace, then by printed name, so that a step copies the
  namespace that it touches and no other;
- mappings are never changed once they are in a state, and their order means nothing;
- the order of `subscriptions` is the order of subscribing: it is observable.

A state is a named tuple for the reason that an entry is one.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from runtime.dispatch.entry import OperatorEntry
from runtime.dispatch.table import NO_FALLBACKS, Fallbacks
from runtime.dispatch.token import Claim, Subscription
from runtime.schema.names import OperatorName

Namespaces = Mapping[str, Mapping[str, OperatorEntry]]


class OperatorMap(dict[str, OperatorEntry]):
    """The operators of one namespace, by printed name; never changed once published.

    `read` is for what is read off them, as text, `packets` for the overloads of each
    operator, and `links` for what whoever calls some of them finds on their entries, by
    keys of their own; none of them is state, and all are unset at first.
    """

    __slots__ = ("links", "packets", "read")
    links: dict[object, Any]
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
