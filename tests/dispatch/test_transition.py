"""The functional core: values in, values out, and back to the very same reading."""

from collections.abc import Hashable
from itertools import permutations

import pytest

from everyorder.runtime.dispatch import Library, fallthrough, fingerprint
from everyorder.runtime.dispatch.kernel import kernel_of
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    RegistrationRecord,
    Reservation,
    Subscription,
    read_definition,
    read_kernel,
)
from everyorder.runtime.dispatch.state import EMPTY, DispatcherState
from everyorder.runtime.dispatch.transition import ADD, REMOVE
from everyorder.runtime.errors.registration import Conflict
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema import OperatorName, parse_schema
from tests.coded import code
from tests.dispatch.samples import Ear, bare, says, t_t

NAME = OperatorName("test::foo")
CPU, CUDA = DispatchKey.CPU, DispatchKey.CUDA


def add(state: DispatcherState, token: RegistrationRecord) -> DispatcherState:
    return ADD[type(token)](state, token)


def remove(state: DispatcherState, token: RegistrationRecord) -> DispatcherState:
    return REMOVE[type(token)](state, token)


def implementation(key: DispatchKey = CPU, debug: str = "k") -> Implementation:
    kernel = kernel_of(t_t, False)
    return Implementation(read_kernel(NAME, key, kernel.facts, debug, False), kernel)


def tokens() -> list[RegistrationRecord]:
    schema = parse_schema("test::foo(Tensor x) -> Tensor")
    return [
        Definition(read_definition(schema, "def", ("core",))),
        implementation(),
        Reservation(NAME, "reserved"),
        ClassRule(NAME, Ear, print, "rule"),
        Fallback((CPU, CUDA), fallthrough, "fallback"),
        Claim("test", "claim"),
        Subscription(Ear(), "ear"),
    ]


def test_both_directions_know_every_kind_of_token() -> None:
    kinds = {type(token) for token in tokens()}
    assert set(ADD) == set(REMOVE) == kinds


def test_every_order_of_adding_and_removing_leads_to_one_state() -> None:
    tokens_ = tokens()
    states: dict[frozenset[int], set[Hashable]] = {}
    for order in permutations(range(len(tokens_)), 4):
        state = EMPTY
        for number in order:
            state = add(state, tokens_[number])
        states.setdefault(frozenset(order), set()).add(fingerprint(state))
        for number in order:
            state = remove(state, tokens_[number])
        assert fingerprint(state) == fingerprint(EMPTY)
        assert state.namespaces == {}
    assert {len(found) for found in states.values()} == {1}
    assert len({next(iter(found)) for found in states.values()}) == len(states)


def test_adding_leaves_the_state_before_as_it_was() -> None:
    before = add(EMPTY, implementation())
    reading = fingerprint(before)
    entry = before.entry(NAME)
    after = add(before, implementation(debug="newer"))
    assert fingerprint(before) == reading
    assert before.entry(NAME) is entry
    assert entry is not None
    assert len(entry.implementations[CPU]) == 1
    assert after.entry(NAME) is not entry


def test_bystanders_are_not_touched() -> None:
    d = bare()
    library = Library("other", "FRAGMENT", dispatcher=d)
    library.impl("bar", says(1), "CPU")
    state = d.snapshot()
    after = add(state, implementation())
    assert after.namespaces["other"] is state.namespaces["other"]


def test_a_fallback_gives_every_operator_its_table_anew() -> None:
    token = Fallback((CPU,), fallthrough, "fallback")
    state = add(EMPTY, Reservation(NAME, "reserved"))
    after = add(state, token)
    entry = after.entry(NAME)
    assert entry is not None
    assert entry.table.fallbacks is after.fallbacks
    assert entry.table.slot(CPU.slot or 0).token is token
    back = remove(after, token).entry(NAME)
    assert back is not None
    assert back.table.slot(CPU.slot or 0).token is None


def test_conflicts() -> None:
    state = add(EMPTY, Fallback((CUDA,), fallthrough, "first"))
    with pytest.raises(Conflict, check=code("DuplicateFallback")) as fallback:
        add(state, Fallback((CPU, CUDA), fallthrough, "second"))
    assert fallback.value.fields() == {
        "key": "CUDA",
        "fallback": "second",
        "original": "first",
    }
    with pytest.raises(Conflict, check=code("NamespaceTaken")):
        add(add(EMPTY, Claim("a", "first")), Claim("a", "second"))


def test_rules_count_apart() -> None:
    """They need no operator, and are none; another class's rule makes no difference."""
    first = ClassRule(NAME, Ear, print, "first")
    alone = add(EMPTY, first)
    entry = alone.entry(NAME)
    assert entry is not None
    assert (entry.total, entry.rules) == (0, (first,))
    with pytest.raises(Conflict, check=code("RuleTaken")) as caught:
        add(alone, ClassRule(NAME, Ear, repr, "second"))
    assert caught.value.fields() == {
        "handler": "Ear.__torch_dispatch__",
        "operator": "test::foo",
        "rule": "second",
        "original": "first",
    }
    other = ClassRule(NAME, Library, print, "a")
    both = [add(alone, other), add(add(EMPTY, other), first)]
    assert fingerprint(both[0]) == fingerprint(both[1])
    for state in both:
        held = state.entry(NAME)
        assert held is not None
        assert held.rules == (other, first)
    entry.memo["caller"] = "of this entry"
    defined = add(alone, tokens()[0])
    held = defined.entry(NAME)
    assert held is not None
    assert (held.total, held.rules, held.memo) == (1, (first,), {})
    ruled = remove(defined, first).entry(NAME)
    assert ruled is not None
    assert (ruled.total, ruled.rules, ruled.memo) == (1, (), {})
    assert remove(alone, first) == EMPTY


def test_a_class_that_has_no_hash_may_have_a_rule() -> None:
    class Odd(type):
        def __eq__(cls, other: object) -> bool:
            raise ZeroDivisionError

    a, b = Odd("A", (), {}), Odd("B", (), {})
    state = EMPTY
    for cls in (b, a):
        state = add(state, ClassRule(NAME, cls, print, "rule"))
    entry = state.entry(NAME)
    assert entry is not None
    assert [rule.cls.__name__ for rule in entry.rules] == ["A", "B"]
    with pytest.raises(Conflict, check=code("RuleTaken")):
        add(state, ClassRule(NAME, a, print, "rule"))


def test_claims_are_sorted_and_subscriptions_are_not() -> None:
    state = EMPTY
    for name in ("b", "c", "a"):
        state = add(state, Claim(name, "here"))
        state = add(state, Subscription(Ear(), name))
    assert [claim.namespace for claim in state.claims] == ["a", "b", "c"]
    assert [held.debug for held in state.subscriptions] == ["b", "c", "a"]


def test_what_tokens_say_as_text() -> None:
    definition, kernel, reservation, rule, fallback, claim, subscription = tokens()
    assert isinstance(definition, Definition)
    assert isinstance(kernel, Implementation)
    assert isinstance(rule, ClassRule)
    assert isinstance(fallback, Fallback)
    assert definition.reading.texts == (
        "definition",
        "test::foo(Tensor x) -> Tensor",
        "CONSERVATIVE (default)",
        "def",
        ("core",),
    )
    assert kernel.reading.texts == (
        "implementation",
        "CPU",
        "k",
        " :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]",
        False,
    )
    assert rule.texts == ("rule", "tests.dispatch.samples.Ear", "rule")
    assert [key.name for key in fallback.keys] == ["CPU", "CUDA"]
    assert fallback.kernel.facts.suffix == " :: (none) [ fallthrough boxed ]"
    said = [each.debug for each in (reservation, fallback, claim, subscription)]
    assert said == ["reserved", "fallback", "claim", "ear"]


def test_what_tokens_say() -> None:
    definition, kernel, reservation = tokens()[:3]
    assert isinstance(definition, Definition)
    assert isinstance(kernel, Implementation)
    assert isinstance(reservation, Reservation)
    assert (definition.operator, definition.debug, definition.tags) == (
        NAME,
        "def",
        ("core",),
    )
    assert str(definition.schema) == "test::foo(Tensor x) -> Tensor"
    assert (kernel.operator, kernel.key, kernel.debug) == (NAME, CPU, "k")
    assert (reservation.namespace, reservation.text) == ("test", "test::foo")
    state = add(add(EMPTY, definition), kernel)
    entry = state.entry(NAME)
    assert entry is not None
    assert entry.definition is definition
    assert entry.schema is definition.schema
    without = remove(state, definition).entry(NAME)
    assert without is not None
    assert (without.definition, without.schema) == (None, None)


def test_looking_into_a_state() -> None:
    assert isinstance(EMPTY, DispatcherState)
    assert EMPTY.entry(NAME) is None
    assert EMPTY.find("test", "test::foo") is None
    assert EMPTY.overloads(NAME) == []
    state = EMPTY
    for name in ("test::foo.b", "test::foo", "test::bar", "a::z", "test::foo.a"):
        base, _, overload = name.partition(".")
        state = add(state, Reservation(OperatorName(base, overload), "here"))
    assert [str(entry.name) for entry in state.entries()] == [
        *("a::z", "test::bar", "test::foo", "test::foo.a", "test::foo.b")
    ]
    assert [str(e.name) for e in state.overloads(OperatorName("test::foo", "a"))] == [
        *("test::foo", "test::foo.a", "test::foo.b")
    ]
    found = state.entry(NAME)
    assert found is not None
    assert state.find("test", "test::foo") is found
