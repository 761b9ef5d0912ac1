"""The functional core: (state, token) to the next state, or an error.

What registering and removing a token means, and what must hold before.  Both directions
are pure functions over values, so a failing registration has nothing to take back, and
several tokens are registered together by applying one after the other.

Rules:
- every check comes before the first new value is built;
- a kernel may come before its schema; its inferred schema waits with it, and whichever
  comes second is checked.  Kernels are compared with each other by signature, with the
  definition by schema, two types as the boxed stack sees them (`SymInt` as `int`); a
  keyword-only parameter must also fit the argument of its name, which it gets;
- where a conflict has several partners, the one that sorts first is named (a kernel by
  its key and description), so the same live set gives the same error whatever its
  history;
- kernels are kept in the order of their keys' values, not of their coming;
- a removal never fails: its token is live, or the caller is at fault;
- `ADD`, `REMOVE` and `LIVE` hold the function of each kind of token; a new kind needs
  a row in each.  `ADD[type(token)](state, token)` raises `Conflict` where the token
  cannot be live together with the others.
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

# Makes a named tuple of its fields, in half the time that its own class takes.
MAKE = tuple.__new__
# Maps of fewer operators remember nothing: they are read as fast without.
REMEMBERING = 8
NO_OPERATORS: Mapping[str, OperatorEntry] = {}


class NamedRecord(Protocol):
    """A reading or token with the keys of its operator in a state."""

    @property
    def namespace(self) -> str:
        """The first key."""

    @property
    def text(self) -> str:
        """The second key, the printed name."""


def check_definition_fits(
    entry: OperatorEntry, token: Definition, merges_alias_kinds: bool
) -> None:
    """Whether `token` may define the operator of `entry`.

    Raises:
        Conflict: a definition is live, and under the 2020 rule differs, or their alias
            kinds do; a live typed kernel differs from the schema.
    """
    if entry.definitions:
        _check_second_definition(entry.definitions[0], token, merges_alias_kinds)
    for kernel in _typed(entry):
        _check_pair(token, kernel)


def check_kernel_fits(entry: OperatorEntry, token: Implementation) -> None:
    """Whether the typed kernel of `token` may join the operator of `entry`.

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
    """Whether `token` is the first kernel for its key.

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
    held: Definition, token: Definition, merges_alias_kinds: bool
) -> None:
    if not merges_alias_kinds or held.schema != token.schema:
        raise Conflict(
            code="DuplicateDefinition",
            operator=str(token.operator),
            schema=str(token.schema),
            definition=token.debug,
            original_schema=str(held.schema),
            original=held.debug,
        )
    kind, original = token.schema.alias_kind, held.schema.alias_kind
    if kind is not None and kind is not original:
        raise Conflict(
            code="AliasKindConflict",
            operator=str(token.operator),
            kind=kind.name,
            definition=token.debug,
            original_kind=original.name if original else "unset",
            original=held.debug,
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


# Readings are compared by identity; few pairs meet again and again.
@lru_cache(maxsize=1024)
def _difference(definition: OperatorSpec, kernel: KernelSpec) -> str | None:
    assert kernel.facts.inferred is not None, "asked for typed kernels only"
    inferred = kernel.facts.inferred
    first = difference(definition.schema, inferred, real=True)
    if first is None and kernel.facts.keyword_only:
        by_name = _as_named(definition.schema, inferred, kernel.facts.keyword_only)
        first = difference(definition.schema, by_name, real=True)
    return None if first is None else str(first)


def _as_named(schema: Schema, inferred: Schema, names: tuple[str, ...]) -> Schema:
    """`inferred`, with each keyword-only parameter at the argument of its name."""
    arguments = list(inferred.arguments)
    named = dict(zip(names, arguments[-len(names) :], strict=True))
    del arguments[-len(names) :]
    for name, place in sorted(keyword_places(schema, names).items(), key=itemgetter(1)):
        arguments.insert(place, named[name])
    return inferred.clone_with_arguments(tuple(arguments))


def _typed(entry: OperatorEntry) -> list[Implementation]:
    """The live typed kernels, in an order that no history can change."""
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
    # Equal but for their texts: which is in force must not depend on who came first.
    definitions = (*entry.definitions, token)
    if len(definitions) > 1:
        definitions = tuple(sorted(definitions, key=_precedence))
    return _with_definitions(state, reading, entry, definitions, 1)


def _precedence(token: Definition) -> tuple[bool, tuple[Any, ...]]:
    """Set alias kinds come first: an unset one is in force only when it is alone."""
    return token.schema.alias_kind is None, token.reading.texts


def _remove_definition(state: DispatcherState, token: Definition) -> DispatcherState:
    entry = _live_entry(state, token.reading)
    left = tuple([held for held in entry.definitions if held is not token])
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
    held = live.get(reading.key)
    if held is not None:
        kernels = {**live, reading.key: (token, *held)}
    else:
        kernels = _inserted(live, reading.key, (token,))
    return _with_kernels(state, reading, entry, kernels, 1)


def _inserted(
    live: Implementations, new: DispatchKey, tokens: tuple[Implementation, ...]
) -> dict[DispatchKey, tuple[Implementation, ...]]:
    """`live` with another key, in its place by value."""
    value = new.value
    kernels = {}
    for key, held in live.items():
        if key.value > value and new not in kernels:
            kernels[new] = tokens
        kernels[key] = held
    kernels[new] = tokens
    return kernels


def _remove_implementation(
    state: DispatcherState, token: Implementation
) -> DispatcherState:
    reading = token.reading
    entry = _live_entry(state, reading)
    kernels = dict(entry.implementations)
    left = tuple([held for held in kernels[reading.key] if held is not token])
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
    left = tuple([held for held in entry.reservations if held is not token])
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
    for held in entry.rules:
        if held.cls is token.cls:
            raise Conflict(
                code="RuleTaken",
                handler=f"{token.cls.__qualname__}.__torch_dispatch__",
                operator=token.text,
                rule=token.debug,
                original=held.debug,
            )
    rules = sorted((*entry.rules, token), key=lambda held: held.texts)
    return _with_rules(state, token, entry, tuple(rules))


def _remove_rule(state: DispatcherState, token: ClassRule) -> DispatcherState:
    entry = _live_entry(state, token)
    left = tuple([held for held in entry.rules if held is not token])
    return _with_rules(state, token, entry, left)


def _with_rules(
    state: DispatcherState,
    named: NamedRecord,
    entry: OperatorEntry,
    rules: tuple[ClassRule, ...],
) -> DispatcherState:
    # A new memo: callers hold the rules of their entry.
    return _replace(state, named, entry._replace(rules=rules, memo={}))


def _add_fallback(state: DispatcherState, token: Fallback) -> DispatcherState:
    for key in token.keys:
        assert key.slot is not None, "fallbacks are registered for runtime keys"
        held = state.fallbacks.slots[key.slot]
        if held is not None:
            raise Conflict(
                code="DuplicateFallback",
                key=key.name,
                fallback=token.debug,
                original=held.debug,
            )
    return _with_fallbacks(state, fallbacks_of((*state.fallbacks.tokens, token)))


def _remove_fallback(state: DispatcherState, token: Fallback) -> DispatcherState:
    left = [held for held in state.fallbacks.tokens if held is not token]
    return _with_fallbacks(state, fallbacks_of(left))


def _with_fallbacks(state: DispatcherState, fallbacks: Fallbacks) -> DispatcherState:
    """Every operator gets its table anew: the fallbacks are part of it."""
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
    for held in state.claims:
        if held.namespace == token.namespace:
            raise Conflict(
                code="NamespaceTaken",
                namespace=token.namespace,
                holder=held.debug,
                newcomer=token.debug,
            )
    claims = sorted((*state.claims, token), key=lambda claim: claim.namespace)
    return state._replace(claims=tuple(claims))


def _remove_claim(state: DispatcherState, token: Claim) -> DispatcherState:
    left = tuple([held for held in state.claims if held is not token])
    return state._replace(claims=left)


def _add_subscription(state: DispatcherState, token: Subscription) -> DispatcherState:
    return state._replace(subscriptions=(*state.subscriptions, token))


def _remove_subscription(
    state: DispatcherState, token: Subscription
) -> DispatcherState:
    left = tuple([held for held in state.subscriptions if held is not token])
    return state._replace(subscriptions=left)


def _live_entry(state: DispatcherState, named: NamedRecord) -> OperatorEntry:
    entry = state.find(named.namespace, named.text)
    assert entry is not None, "a live token keeps its entry alive"
    return entry


def _new_entry(state: DispatcherState, name: OperatorName) -> OperatorEntry:
    """An entry that nothing is registered for yet; it is never published."""
    table = table_of({}, state.fallbacks)
    return OperatorEntry(name, (), {}, (), (), 0, NO_EXTRACTOR, table, {})


def _replace(
    state: DispatcherState, named: NamedRecord, entry: OperatorEntry
) -> DispatcherState:
    """The state with another entry under a name; an entry of nothing disappears."""
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
    """Whether this very token, not one that reads like it, is live in a state."""
    # Tokens compare by identity.
    return token in LIVE[type(token)](state, token)
