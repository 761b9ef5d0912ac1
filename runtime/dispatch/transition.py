"""The functional core: (state, token) to the next state, or an error.

What registering and removing a token means.  Both directions are pure functions over
values, so a failing registration has nothing to take back, and several tokens are
registered together by applying one after the other.

Rules:
- every check comes before the first new value is built: of definitions and kernels in
  `runtime.dispatch.checks`, of all others here;
- where a conflict has several partners, the one that sorts first is named, so the same
  live set gives the same error whatever its history;
- kernels are kept in the order of their keys' values, not of their coming;
- a removal never fails: its token is live, or the caller is at fault;
- `ADD`, `REMOVE` and `AMONG` hold the function of each kind of token; a new kind needs
  a row in each.  `ADD[type(token)](state, token)` raises `Conflict` where the token
  cannot be live beside those that are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from runtime.dispatch.checks import check_definition_fits, check_kernel_fits
from runtime.dispatch.state import (
    DispatcherState,
    Implementations,
    OperatorEntry,
    OperatorMap,
)
from runtime.dispatch.table import Fallbacks, fallbacks_of, table_of
from runtime.dispatch.token import (
    NO_EXTRACTOR,
    Claim,
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    Reservation,
    Subscription,
    Token,
)
from runtime.errors.registration import Conflict
from runtime.keys import DispatchKey
from runtime.schema.signature import OperatorName

# Makes a named tuple of its fields, in half the time that its own class takes.
MAKE = tuple.__new__
# So few operators are read anew as fast as they are remembered.
FEW = 8
NOTHING: Mapping[str, OperatorEntry] = {}


class Named(Protocol):
    """What names an operator as a state holds it: readings and tokens do."""

    @property
    def namespace(self) -> str:
        """The first key."""

    @property
    def text(self) -> str:
        """The second key, the printed name."""


def _add_definition(state: DispatcherState, token: Definition) -> DispatcherState:
    reading = token.reading
    entry = state.find(reading.namespace, reading.text)
    if entry is None:
        entry = _fresh(state, reading.operator)
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
    entry = _held(state, token.reading)
    left = tuple([held for held in entry.definitions if held is not token])
    return _with_definitions(state, token.reading, entry, left, -1)


def _with_definitions(
    state: DispatcherState,
    named: Named,
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
        entry = _fresh(state, reading.operator)
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
    entry = _held(state, reading)
    kernels = dict(entry.implementations)
    left = tuple([held for held in kernels[reading.key] if held is not token])
    if left:
        kernels[reading.key] = left
    else:
        del kernels[reading.key]
    return _with_kernels(state, reading, entry, kernels, -1)


def _with_kernels(
    state: DispatcherState,
    named: Named,
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
    entry = state.find(token.namespace, token.text) or _fresh(state, token.operator)
    return _with_reservations(state, token, entry, (*entry.reservations, token), 1)


def _remove_reservation(state: DispatcherState, token: Reservation) -> DispatcherState:
    entry = _held(state, token)
    left = tuple([held for held in entry.reservations if held is not token])
    return _with_reservations(state, token, entry, left, -1)


def _with_reservations(
    state: DispatcherState,
    named: Named,
    entry: OperatorEntry,
    reservations: tuple[Reservation, ...],
    change: int,
) -> DispatcherState:
    changed = entry._replace(
        reservations=reservations, total=entry.total + change, memo={}
    )
    return _replace(state, named, changed)


def _add_rule(state: DispatcherState, token: ClassRule) -> DispatcherState:
    entry = state.find(token.namespace, token.text) or _fresh(state, token.operator)
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
    entry = _held(state, token)
    left = tuple([held for held in entry.rules if held is not token])
    return _with_rules(state, token, entry, left)


def _with_rules(
    state: DispatcherState,
    named: Named,
    entry: OperatorEntry,
    rules: tuple[ClassRule, ...],
) -> DispatcherState:
    # What was made for calls knew the rules of its entry.
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


def _held(state: DispatcherState, named: Named) -> OperatorEntry:
    entry = state.find(named.namespace, named.text)
    assert entry is not None, "a live token keeps its entry alive"
    return entry


def _fresh(state: DispatcherState, name: OperatorName) -> OperatorEntry:
    """An entry that nothing is registered for yet; it is never published."""
    table = table_of({}, state.fallbacks)
    return OperatorEntry(name, (), {}, (), (), 0, NO_EXTRACTOR, table, {})


def _replace(
    state: DispatcherState, named: Named, entry: OperatorEntry
) -> DispatcherState:
    """The state with another entry under a name; an entry of nothing disappears."""
    namespaces = dict(state.namespaces)
    held = namespaces.get(named.namespace, NOTHING)
    operators = dict(held) if len(held) < FEW else OperatorMap(held)
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


# The live tokens among which one of a kind would be.
AMONG: dict[type[Any], Callable[[DispatcherState, Any], Sequence[Token]]] = {
    Definition: _live_definitions,
    Implementation: _live_kernels,
    Reservation: _live_reservations,
    ClassRule: _live_rules,
    Fallback: lambda state, token: state.fallbacks.tokens,
    Claim: lambda state, token: state.claims,
    Subscription: lambda state, token: state.subscriptions,
}


def is_live(state: DispatcherState, token: Token) -> bool:
    """Whether this very token, not one that reads like it, is live in a state."""
    # Tokens compare by identity.
    return token in AMONG[type(token)](state, token)
