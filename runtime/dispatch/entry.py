"""Operator entries: everything that is registered for one operator, as one value.

True only here: an entry is never patched; `transition` builds another one.  It lives
while something is registered under its name.

Rules:
- `implementations` maps keys, in the order of their values, to their kernels, newest
  first; no key maps to nothing;
- `definitions` holds one token at most (several under the 2020 rule: those whose
  alias kind is set, then the others, each in the order of their texts);
- `rules` holds one rule for a class at most, in the order of their texts;
- `total` counts the live registrations, save for rules: what has rules alone is no
  operator, and neither dumps nor look-ups know of it;
- `memo` is for pure functions of this very entry (callers, texts); it is no state.

An entry is a named tuple because a registration makes one, and nothing is faster to
make; two entries are compared by identity, never by `==`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from runtime.dispatch.reading import Extractor
from runtime.dispatch.table import Table
from runtime.dispatch.token import (
    ClassRule,
    Definition,
    Implementation,
    Reservation,
)
from runtime.keys import DispatchKey
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema

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
