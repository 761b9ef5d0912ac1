"""What is live in a state, and a state spelled out part by part.

True only here: how a state is taken apart.  Two readings are equal when the same
registrations stand at the same places, compared by identity of tokens; two separate
registrations of the same thing read differently, on purpose.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import Any, TypeAlias, get_args

from runtime.dispatch.state import DispatcherState, OperatorEntry
from runtime.dispatch.token import (
    ClassRule,
    Definition,
    Implementation,
    Reservation,
    Token,
)

Reading: TypeAlias = dict[str, Any]
"""Name of a part -> what stands there."""

OperatorToken: TypeAlias = Definition | Implementation | Reservation | ClassRule

_TOKENS = get_args(Token)


def tokens_of(entry: OperatorEntry) -> list[OperatorToken]:
    """The live registrations of one operator."""
    return [
        *entry.definitions,
        *(token for held in entry.implementations.values() for token in held),
        *entry.reservations,
        *entry.rules,
    ]


def live_tokens(
    state: DispatcherState, other: DispatcherState | None = None
) -> list[Token]:
    """All live registrations, claims and subscriptions included.

    Namespaces that `state` shares with `other` are left out.
    """
    shared = {} if other is None else other.namespaces
    found: list[Token] = [
        *state.claims,
        *state.subscriptions,
        *state.fallbacks.tokens,
    ]
    for namespace, operators in state.namespaces.items():
        if shared.get(namespace) is not operators:
            for entry in operators.values():
                found += tokens_of(entry)
    return found


def replaced(
    before: Mapping[str, OperatorEntry], after: Mapping[str, OperatorEntry]
) -> list[str]:
    """The names under which a namespace holds an entry that it did not hold before.

    A scenario may stand among hundreds of operators that no step touches.
    """
    if [*before] == [*after]:
        return [*compress(after, map(is_not, after.values(), before.values()))]
    return [text for text, entry in after.items() if before.get(text) is not entry]


def described(token: Token) -> str:
    """A registration in words that hold no address."""
    return f"{type(token).__name__.lower()} {token.debug!r}"


def listed(tokens: Sequence[Token]) -> str:
    """Several registrations in words, in their order."""
    return ", ".join(described(token) for token in tokens) or "nothing"


def reading(state: DispatcherState) -> Reading:
    """The state by parts, for comparing it with another one."""
    parts: Reading = {
        "the claims": state.claims,
        "the listeners": state.subscriptions,
        "the fallbacks": state.fallbacks.tokens,
        "the rule for alias kinds": state.merges_alias_kinds,
    }
    for operators in state.namespaces.values():
        for text, entry in operators.items():
            parts[text] = entry_reading(entry)
    return parts


def entry_reading(entry: OperatorEntry) -> Reading:
    """One operator by parts."""
    table = entry.table
    lines = [(line.slots, line.provenance) for line in table.recipe.lines]
    return {
        "definitions": entry.definitions,
        "kernels": dict(entry.implementations),
        "reservations": frozenset(entry.reservations),
        "rules": entry.rules,
        "total": entry.total,
        "arguments": (entry.extractor.tensors, entry.extractor.lists),
        "table": (lines, table.recipe.rest, table.kernels, table.fallbacks.tokens),
        "masks": table.masks,
    }


def differing(before: Reading, after: Reading) -> list[tuple[str, Any, Any]]:
    """(part, before, after) wherever two readings differ; operators part by part."""
    found: list[tuple[str, Any, Any]] = []
    for part in sorted(before.keys() | after.keys()):
        old, new = before.get(part), after.get(part)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += [
                (f"{part}, {inner}", old[inner], new[inner])
                for inner in old
                if old[inner] != new[inner]
            ]
        else:
            found.append((part, old, new))
    return found


def shown(value: Any, otherwise: str) -> str:
    """A part of a reading in words; `otherwise` where it would fill a page."""
    match value:
        case None:
            return "nothing"
        case bool() | int():
            return str(value)
        case {"definitions": _}:
            return "an operator"
        case dict():
            rows = sorted(value.items(), key=lambda row: row[0].value)
            return listed([token for _, held in rows for token in held])
        case frozenset():
            return listed(sorted(value, key=described))
        case tuple() if all(isinstance(each, _TOKENS) for each in value):
            return listed(value)
        case _:
            return otherwise
