"""The functional core: (state, token) to the next state, or an error.

This module defines what it means to register and to remove a token, and the
preconditions.  Both directions are pure functions over values, so a failing
registration has nothing to undo, and several tokens are registered together by applying
one after the other.

Rules:
- every check comes before the first new value is built;
- a kernel may be registered before its schema; its inferred schema is stored with it,
  and the second one is checked on registration.  Kernels are compared with each other
  by signature, with the definition by schema, two types as the boxed stack sees them
  (`SymInt` as `int`); a keyword-only parameter must also fit the argument of its name,
  which it gets;
- if a conflict has several partners, the one that sorts first is named (a kernel by
  its key and description), so the same live set gives the same error whatever its
  history;
- kernels are stored in the order of their keys' values, not of their registration;
- a removal never fails: that its token is live is the caller's obligation;
- `ADD`, `REMOVE` and `LIVE` hold the function of each kind of token; a new kind needs
  a row in each.  `ADD[type(token)](state, token)` raises `Conflict` if the token cannot
  be live together with the others.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Protocol

from everyorder.runtime.dispatch.dispatch_table import Fallbacks, fallbacks_of, table_of
from everyorder.runtime.dispatch.kernel import keyword_places
from everyorder.runtime.dispatch.registration_record import (
    NO_EXTRACTOR,
    Claim,
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    KernelSpec,
    OperatorSpec,
    RegistrationRecord,
    Reservation,
    Subscription,
)
from everyorder.runtime.dispatch.state import (
    DispatcherState,
    Implementations,
    OperatorEntry,
    OperatorMap,
)
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema.compatibility import difference
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName

# Creates a named tuple from its fields, in half the time that its own class needs.
MAKE = tuple.__new__
# Smaller maps of operators are plain dicts: caches would not make them faster.
REMEMBERING = 8
NO_OPERATORS: Mapping[str, OperatorEntry] = {}


class NamedRecord(Protocol):
    """A reading or token with the keys of its operator in a state."""

    @property
    def namespace(self) -> str:
        """Return the first key."""

    @property
    def text(self) -> str:
        """Return the second key, the printed name."""


def check_definition_fits(
    entry: OperatorEntry, token: Definition, merges_alias_kinds: bool
) -> None:
    """Check that `token` may define the operator of `entry`.

    Raises:
        Conflict: a definition is live, and under the 2020 rule differs, or their alias
            kinds do; a live typed kernel differs from the schema.
    """
    if entry.definitions:
        _check_second_definition(entry.definitions[0], token, merges_alias_kinds)
    for kernel in _typed(entry):
        _check_pair(token, kernel)


def check_kernel_fits(entry: OperatorEntry, token: Implementation) -> None:
    """Check that the typed kernel of `token` may join the operator of `entry`.

    Raises:
        Conflict: a live typed kernel has another signature; the live schema differs
            from the kernel's.
    """
    facts = token.reading.facts
    for kernels in entry.implementations.values():
        for other in kernels:
            others = other.reading.facts
            if others is not facts and others.signature not in (None, facts.signature):
                raise _signature_mismatch(entry, token)
    for definition in entry.definitions:  # each may be in force one day
        _check_pair(definition, token)


def check_no_override(state: DispatcherState, token: Implementation) -> None:
    """Check that `token` is the first kernel for its key.

    Raises:
        Conflict: it is not.
    """
    entry = state.find(token.reading.namespace, token.reading.text)
    kernels = None if entry is None else entry.implementations.get(token.key)
    if kernels is not None:
        raise Conflict(
            code="OverrideForbidden",
            operator=str(token.operator),
            key=token.key.name,
            kernel=token.debug,
            original=kernels[0].debug,
        )


def _check_second_definition(
    live: Definition, token: Definition, merges_alias_kinds: bool
) -> None:
    if not merges_alias_kinds or live.schema != token.schema:
        raise Conflict(
            code="DuplicateDefinition",
            operator=str(token.operator),
            schema=str(token.schema),
            definition=token.debug,
            original_schema=str(live.schema),
            original=live.debug,
        )
    kind, original = token.schema.alias_kind, live.schema.alias_kind
    if kind is not None and kind is not original:
        raise Conflict(
            code="AliasKindConflict",
            operator=str(token.operator),
            kind=kind.name,
            definition=token.debug,
            original_kind=original.name if original else "unset",
            original=live.debug,
        )


def _check_pair(definition: Definition, token: Implementation) -> None:
    text = _difference(definition.reading, token.reading)
    if text is not None:
        raise Conflict(
            code="SchemaMismatch",
            operator=str(token.operator),
            schema=str(definition.schema),
            definition=definition.debug,
            inferred=str(token.reading.facts.inferred),
            kernel=token.debug,
            key=token.key.name,
            difference=text,
        )


# Readings are compared by identity; few pairs recur.
@lru_cache(maxsize=1024)
def _difference(definition: OperatorSpec, kernel: KernelSpec) -> str | None:
    assert kernel.facts.inferred is not None, "called for typed kernels only"
    inferred = kernel.facts.inferred
    first = difference(definition.schema, inferred, real=True)
    if first is None and kernel.facts.keyword_only:
        by_name = _as_named(definition.schema, inferred, kernel.facts.keyword_only)
        first = difference(definition.schema, by_name, real=True)
    return None if first is None else str(first)


def _as_named(schema: Schema, inferred: Schema, names: tuple[str, ...]) -> Schema:
    """Return `inferred`, each keyword-only parameter at the argument of its name."""
    arguments = list(inferred.arguments)
    named = dict(zip(names, arguments[-len(names) :], strict=True))
    del arguments[-len(names) :]
    for name, place in sorted(keyword_places(schema, names).items(), key=itemgetter(1)):
        arguments.insert(place, named[name])
    return inferred.clone_with_arguments(tuple(arguments))


def _typed(entry: OperatorEntry) -> list[Implementation]:
    """Return the live typed kernels in an order that does not depend on history."""
    typed = [
        token
        for kernels in entry.implementations.values()
        for token in kernels
        if token.reading.facts.signature is not None
    ]
    return sorted(typed, key=lambda token: (token.key.value, token.debug))


def _signature_mismatch(entry: OperatorEntry, token: Implementation) -> Conflict:
    other = _typed(entry)[0]
    return Conflict(
        code="SignatureMismatch",
        operator=str(token.operator),
        signature=token.reading.facts.signature or "",
        kernel=token.debug,
        key=token.key.name,
        other_signature=other.reading.facts.signature or "",
        other=other.debug,
        other_key=other.key.name,
    )


def _add_definition(state: DispatcherState, token: Definition) -> DispatcherState:
    reading = token.reading
    entry = state.find(reading.namespace, reading.text)
    if entry is None:
        entry = _new_entry(state, reading.operator)
    check_definition_fits(entry, token, state.merges_alias_kinds)
    # Equal except for their texts: the one in force must not depend on the order of
    # registration.
    definitions = (*entry.definitions, token)
    if len(definitions) > 1:
        definitions = tuple(sorted(definitions, key=_precedence))
    return _with_definitions(state, reading, entry, definitions, 1)


def _precedence(token: Definition) -> tuple[bool, tuple[Any, ...]]:
    """Sort set alias kinds first: an unset one is in force only when it is alone."""
    return token.schema.alias_kind is None, token.reading.texts


def _remove_definition(state: DispatcherState, token: Definition) -> DispatcherState:
    entry = _live_entry(state, token.reading)
    left = tuple(
        [definition for definition in entry.definitions if definition is not token]
    )
    return _with_definitions(state, token.reading, entry, left, -1)


def _with_definitions(
    state: DispatcherState,
    named: NamedRecord,
    entry: OperatorEntry,
    definitions: tuple[Definition, ...],
    change: int,
) -> DispatcherState:
    extractor = definitions[0].reading.extractor if definitions else NO_EXTRACTOR
    changed = OperatorEntry(
        entry.name,
        definitions,
        entry.implementations,
        entry.reservations,
        entry.rules,
        entry.total + change,
        extractor,
        entry.table,
        {},
    )
    return _replace(state, named, changed)


def _add_implementation(
    state: DispatcherState, token: Implementation
) -> DispatcherState:
    reading = token.reading
    entry = state.find(reading.namespace, reading.text)
    if entry is None:
        entry = _new_entry(state, reading.operator)
    elif reading.facts.signature is not None:
        check_kernel_fits(entry, token)
    live = entry.implementations
    existing = live.get(reading.key)
    if existing is not None:
        kernels = {**live, reading.key: (token, *existing)}
    else:
        kernels = _inserted(live, reading.key, (token,))
    return _with_kernels(state, reading, entry, kernels, 1)


def _inserted(
    live: Implementations, new: DispatchKey, tokens: tuple[Implementation, ...]
) -> dict[DispatchKey, tuple[Implementation, ...]]:
    """Return `live` with another key, in its place by value."""
    value = new.value
    kernels = {}
    for key, kernels_of_key in live.items():
        if key.value > value and new not in kernels:
            kernels[new] = tokens
        kernels[key] = kernels_of_key
    kernels[new] = tokens
    return kernels


def _remove_implementation(
    state: DispatcherState, token: Implementation
) -> DispatcherState:
    reading = token.reading
    entry = _live_entry(state, reading)
    kernels = dict(entry.implementations)
    left = tuple([kernel for kernel in kernels[reading.key] if kernel is not token])
    if left:
        kernels[reading.key] = left
    else:
        del kernels[reading.key]
    return _with_kernels(state, reading, entry, kernels, -1)


def _with_kernels(
    state: DispatcherState,
    named: NamedRecord,
    entry: OperatorEntry,
    implementations: Implementations,
    change: int,
) -> DispatcherState:
    changed = MAKE(
        OperatorEntry,
        (
            entry.name,
            entry.definitions,
            implementations,
            entry.reservations,
            entry.rules,
            entry.total + change,
            entry.extractor,
            table_of(implementations, state.fallbacks),
            {},
        ),
    )
    return _replace(state, named, changed)


def _add_reservation(state: DispatcherState, token: Reservation) -> DispatcherState:
    entry = state.find(token.namespace, token.text) or _new_entry(state, token.operator)
    return _with_reservations(state, token, entry, (*entry.reservations, token), 1)


def _remove_reservation(state: DispatcherState, token: Reservation) -> DispatcherState:
    entry = _live_entry(state, token)
    left = tuple(
        [reservation for reservation in entry.reservations if reservation is not token]
    )
    return _with_reservations(state, token, entry, left, -1)


def _with_reservations(
    state: DispatcherState,
    named: NamedRecord,
    entry: OperatorEntry,
    reservations: tuple[Reservation, ...],
    change: int,
) -> DispatcherState:
    changed = entry._replace(
        reservations=reservations, total=entry.total + change, memo={}
    )
    return _replace(state, named, changed)


def _add_rule(state: DispatcherState, token: ClassRule) -> DispatcherState:
    entry = state.find(token.namespace, token.text) or _new_entry(state, token.operator)
    # By identity: a class may compare as it likes, and need not be hashable.
    for rule in entry.rules:
        if rule.cls is token.cls:
            raise Conflict(
                code="RuleTaken",
                handler=f"{token.cls.__qualname__}.__torch_dispatch__",
                operator=token.text,
                rule=token.debug,
                original=rule.debug,
            )
    rules = sorted((*entry.rules, token), key=lambda rule: rule.texts)
    return _with_rules(state, token, entry, tuple(rules))


def _remove_rule(state: DispatcherState, token: ClassRule) -> DispatcherState:
    entry = _live_entry(state, token)
    left = tuple([rule for rule in entry.rules if rule is not token])
    return _with_rules(state, token, entry, left)


def _with_rules(
    state: DispatcherState,
    named: NamedRecord,
    entry: OperatorEntry,
    rules: tuple[ClassRule, ...],
) -> DispatcherState:
    # A new memo: the invokers in it hold the rules of their entry.
    return _replace(state, named, entry._replace(rules=rules, memo={}))


def _add_fallback(state: DispatcherState, token: Fallback) -> DispatcherState:
    for key in token.keys:
        assert key.slot is not None, "fallbacks are registered for runtime keys"
        existing = state.fallbacks.slots[key.slot]
        if existing is not None:
            raise Conflict(
                code="DuplicateFallback",
                key=key.name,
                fallback=token.debug,
                original=existing.debug,
            )
    return _with_fallbacks(state, fallbacks_of((*state.fallbacks.tokens, token)))


def _remove_fallback(state: DispatcherState, token: Fallback) -> DispatcherState:
    left = [fallback for fallback in state.fallbacks.tokens if fallback is not token]
    return _with_fallbacks(state, fallbacks_of(left))


def _with_fallbacks(state: DispatcherState, fallbacks: Fallbacks) -> DispatcherState:
    """Return the state with new fallbacks; they are part of every operator's table."""
    namespaces = {
        namespace: OperatorMap(
            (
                text,
                entry._replace(
                    table=table_of(entry.implementations, fallbacks), memo={}
                ),
            )
            for text, entry in operators.items()
        )
        for namespace, operators in state.namespaces.items()
    }
    return state._replace(namespaces=namespaces, fallbacks=fallbacks)


def _add_claim(state: DispatcherState, token: Claim) -> DispatcherState:
    for live in state.claims:
        if live.namespace == token.namespace:
            raise Conflict(
                code="NamespaceTaken",
                namespace=token.namespace,
                holder=live.debug,
                newcomer=token.debug,
            )
    claims = sorted((*state.claims, token), key=lambda claim: claim.namespace)
    return state._replace(claims=tuple(claims))


def _remove_claim(state: DispatcherState, token: Claim) -> DispatcherState:
    left = tuple([claim for claim in state.claims if claim is not token])
    return state._replace(claims=left)


def _add_subscription(state: DispatcherState, token: Subscription) -> DispatcherState:
    return state._replace(subscriptions=(*state.subscriptions, token))


def _remove_subscription(
    state: DispatcherState, token: Subscription
) -> DispatcherState:
    left = tuple(
        [
            subscription
            for subscription in state.subscriptions
            if subscription is not token
        ]
    )
    return state._replace(subscriptions=left)


def _live_entry(state: DispatcherState, named: NamedRecord) -> OperatorEntry:
    entry = state.find(named.namespace, named.text)
    assert entry is not None, "a live token keeps its entry alive"
    return entry


def _new_entry(state: DispatcherState, name: OperatorName) -> OperatorEntry:
    """Return an empty entry; it is never published."""
    table = table_of({}, state.fallbacks)
    return OperatorEntry(name, (), {}, (), (), 0, NO_EXTRACTOR, table, {})


def _replace(
    state: DispatcherState, named: NamedRecord, entry: OperatorEntry
) -> DispatcherState:
    """Return the state with another entry under a name; an empty entry is removed."""
    namespaces = dict(state.namespaces)
    before = namespaces.get(named.namespace, NO_OPERATORS)
    operators = dict(before) if len(before) < REMEMBERING else OperatorMap(before)
    if entry.total or entry.rules:
        operators[named.text] = entry
    else:
        del operators[named.text]
    if operators:
        namespaces[named.namespace] = operators
    else:
        del namespaces[named.namespace]
    return MAKE(
        DispatcherState,
        (
            namespaces,
            state.fallbacks,
            state.claims,
            state.subscriptions,
            state.merges_alias_kinds,
        ),
    )


ADD: dict[type[Any], Callable[[DispatcherState, Any], DispatcherState]] = {
    Definition: _add_definition,
    Implementation: _add_implementation,
    Reservation: _add_reservation,
    ClassRule: _add_rule,
    Fallback: _add_fallback,
    Claim: _add_claim,
    Subscription: _add_subscription,
}

REMOVE: dict[type[Any], Callable[[DispatcherState, Any], DispatcherState]] = {
    Definition: _remove_definition,
    Implementation: _remove_implementation,
    Reservation: _remove_reservation,
    ClassRule: _remove_rule,
    Fallback: _remove_fallback,
    Claim: _remove_claim,
    Subscription: _remove_subscription,
}


def _live_kernels(
    state: DispatcherState, token: Implementation
) -> tuple[Implementation, ...]:
    reading = token.reading
    entry = state.find(reading.namespace, reading.text)
    return () if entry is None else entry.implementations.get(reading.key, ())


def _live_definitions(
    state: DispatcherState, token: Definition
) -> tuple[Definition, ...]:
    entry = state.find(token.reading.namespace, token.reading.text)
    return () if entry is None else entry.definitions


def _live_reservations(
    state: DispatcherState, token: Reservation
) -> tuple[Reservation, ...]:
    entry = state.find(token.namespace, token.text)
    return () if entry is None else entry.reservations


def _live_rules(state: DispatcherState, token: ClassRule) -> tuple[ClassRule, ...]:
    entry = state.find(token.namespace, token.text)
    return () if entry is None else entry.rules


# The live tokens of the kind, operator and key of a token.
LIVE: dict[
    type[Any], Callable[[DispatcherState, Any], Sequence[RegistrationRecord]]
] = {
    Definition: _live_definitions,
    Implementation: _live_kernels,
    Reservation: _live_reservations,
    ClassRule: _live_rules,
    Fallback: lambda state, token: state.fallbacks.tokens,
    Claim: lambda state, token: state.claims,
    Subscription: lambda state, token: state.subscriptions,
}


def is_live(state: DispatcherState, token: RegistrationRecord) -> bool:
    """Return True if this very token, by identity, is live in a state."""
    # Tokens compare by identity.
    return token in LIVE[type(token)](state, token)
