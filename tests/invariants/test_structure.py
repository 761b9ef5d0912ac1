"""Laws of structure, on states broken by hand."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from everyorder.invariants import check, state_laws
from everyorder.invariants.law import Finding
from everyorder.invariants.live import FiledOperator
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    ClassRule,
    Implementation,
    Reservation,
)
from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema.signature import OperatorName
from tests.invariants.healthy import healthy

CPU = DispatchKey.parse("CPU")
CUDA = DispatchKey.parse("CUDA")


def moved(entry: OperatorEntry, **kernels: tuple[Implementation, ...]) -> FiledOperator:
    """`d::f` with other lists of kernels."""
    held: Mapping[DispatchKey, tuple[Implementation, ...]] = {
        **entry.implementations,
        **{DispatchKey.parse(key): tokens for key, tokens in kernels.items()},
    }
    return healthy().place(entry, implementations=held)


def test_the_healthy_state_breaks_no_law() -> None:
    assert check(healthy().state) == []


def test_an_operator_under_another_name() -> None:
    place = healthy().place()
    wrong = FiledOperator(place.entry, "e", "d::f.out", healthy().state)
    assert state_laws.operators_are_filed_under_their_names.find(place) == []
    assert state_laws.operators_are_filed_under_their_names.find(wrong) == [
        (
            "d::f.out in namespace e",
            "d::f in namespace d",
            "d::f.out in namespace e",
        )
    ]


def test_tokens_of_another_operator() -> None:
    system = healthy()
    stranger = system.entry("d::g").implementations[CUDA][0]
    place = moved(system.entry(), CUDA=(stranger,))
    assert state_laws.registrations_belong_to_their_operator.find(place) == [
        ("d::f, implementation 'cuda'", "d::f", "d::g")
    ]
    definition = system.entry().definitions[0]
    renamed = replace(
        definition,
        reading=replace(
            definition.reading,
            schema=definition.schema.clone_with_name(OperatorName("d::z")),
        ),
    )
    place = system.place(definitions=(renamed,))
    assert state_laws.registrations_belong_to_their_operator.find(place) == [
        ("d::f, schema of definition 'def'", "d::f", "d::z")
    ]


def test_readings_that_lie() -> None:
    system = healthy()
    through, old = system.token("AutogradCPU"), system.token("CPU", 1)
    law = state_laws.readings_tell_what_is_registered
    assert law.find(system.place()) == []
    place = moved(
        system.entry(),
        AutogradCPU=(replace(through, kernel=old.kernel),),
    )
    assert law.find(place) == [
        (
            "d::f, implementation 'through'",
            "not that it falls through",
            "falls through",
        ),
        ("d::f, implementation 'through'", "lambda", "fallthrough"),
    ]
    place = moved(system.entry(), CPU=(replace(old, kernel=through.kernel),))
    assert law.find(place)[0] == (
        "d::f, implementation 'old'",
        "not that it is called",
        "is called",
    )
    misplaced = replace(old, reading=replace(old.reading, namespace="e"))
    assert law.find(moved(system.entry(), CPU=(misplaced,))) == [
        (
            "d::f, implementation 'old'",
            "d::f in namespace d",
            "d::f in namespace e",
        )
    ]


def test_reservations_have_no_reading() -> None:
    system = healthy()
    reservation = Reservation(OperatorName("d::f"), "reserved")
    place = system.place(reservations=(reservation,))
    assert state_laws.readings_tell_what_is_registered.find(place) == []
    assert state_laws.registrations_belong_to_their_operator.find(place) == []


def test_rules_of_a_class() -> None:
    system, law = healthy(), state_laws.a_class_has_one_rule
    name = OperatorName("d::f")
    a, b = (ClassRule(name, int, print, debug) for debug in ("a", "b"))
    other = ClassRule(name, str, print, "a")
    assert law.find(system.place(rules=(a, other))) == []
    assert law.find(system.place(rules=(a, b))) == [
        ("d::f, rules", "1, by their texts", "classrule 'a', classrule 'b'")
    ]
    assert law.find(system.place(rules=(other, a))) == [
        ("d::f, rules", "2, by their texts", "classrule 'a', classrule 'a'")
    ]
    counted = state_laws.the_total_counts_what_is_live
    alone: Any = {
        "definitions": (),
        "implementations": {},
        "reservations": (),
        "total": 0,
    }
    assert counted.find(system.place(rules=(a,), **alone)) == []
    assert counted.find(system.place(rules=(), **alone)) == [
        ("d::f, total", "no such operator", "0")
    ]
    assert counted.find(system.place(rules=(a,), **{**alone, "total": 1})) == [
        ("d::f, total", "0", "1")
    ]
    place = system.place(rules=(ClassRule(OperatorName("d::g"), int, print, "a"),))
    assert state_laws.registrations_belong_to_their_operator.find(place) == [
        ("d::f, classrule 'a'", "d::f", "d::g")
    ]


def twice_defined(merges: bool, kind: str) -> FiledOperator:
    """`d::f` with a second definition."""
    dispatcher = Dispatcher(builtin_fallbacks=False)
    library = Library("d", "FRAGMENT", dispatcher=dispatcher, origin="o")
    library.define("f(Tensor x) -> ()", kind, debug="second")
    other = dispatcher.entry("d::f")
    assert other is not None
    system = healthy()
    definitions = (*system.entry().definitions, *other.definitions)
    state = system.state._replace(merges_alias_kinds=merges)
    entry = system.entry()._replace(definitions=definitions, memo={})
    return FiledOperator(entry, "d", "d::f", state)


def test_two_definitions() -> None:
    law = state_laws.an_operator_has_one_definition
    assert law.find(twice_defined(False, "")) == [
        ("d::f", "one definition at most", "definition 'def', definition 'second'")
    ]
    assert law.find(twice_defined(True, "")) == []
    assert law.find(twice_defined(True, "CONSERVATIVE")) == [
        ("d::f", "definitions equal to d::f(Tensor x) -> ()", "d::f(Tensor x) -> ()")
    ]


def test_a_wrong_total() -> None:
    law = state_laws.the_total_counts_what_is_live
    assert law.find(healthy().place(total=7)) == [("d::f, total", "6", "7")]
    empty = healthy().place(implementations={}, definitions=(), total=0)
    assert law.find(empty) == [("d::f, total", "no such operator", "0")]


def test_an_empty_list() -> None:
    place = moved(healthy().entry(), CUDA=())
    assert state_laws.no_kernel_list_is_empty.find(place) == [
        ("d::f at CUDA", "a kernel", "an empty list")
    ]


def test_a_kernel_at_two_places() -> None:
    system = healthy()
    place = moved(system.entry(), CUDA=(system.token("CPU"),))
    assert state_laws.a_registration_is_listed_once.find(place) == [
        ("d::f, implementation 'new'", "one place", "several")
    ]
    assert state_laws.kernels_are_listed_under_their_key.find(place) == [
        ("d::f, implementation 'new'", "CPU", "CUDA")
    ]


def test_a_kernel_at_a_building_block() -> None:
    system = healthy()
    place = moved(system.entry(), Dense=(system.token("CPU"),))
    assert state_laws.kernels_stand_at_keys_that_take_them.find(place) == [
        ("d::f", "a runtime key or an alias", "Dense")
    ]


def test_laws_of_the_whole_state() -> None:
    state = healthy().state
    claim, subscription = state.claims[0], state.subscriptions[0]
    broken = state._replace(
        namespaces={**state.namespaces, "empty": {}},
        claims=(Claim("z", "z"), claim, claim),
        subscriptions=(subscription, subscription),
    )
    assert [str(each) for each in check(broken)] == [
        "no_namespace_is_empty at namespace empty: expected an operator, found none",
        "claims_are_sorted_and_one_a_namespace at the claims: "
        "expected d, z, found z, d, d",
        "listeners_are_subscribed_once at the listeners: "
        "expected subscription 'listener', "
        "found subscription 'listener', subscription 'listener'",
    ]


def fallback_findings(state: DispatcherState) -> list[Finding]:
    """What the law of fallbacks finds."""
    return state_laws.fallbacks_stand_where_their_tokens_say.find(state)


def test_fallbacks_that_do_not_stand_where_they_say() -> None:
    state = healthy().state
    held = state.fallbacks
    python, autograd = held.tokens
    assert fallback_findings(state) == []
    slots = list(held.slots)
    slots[held.slots.index(python)] = None
    broken = replace(held, slots=tuple(slots), present=0, through=1)
    assert fallback_findings(state._replace(fallbacks=broken)) == [
        ("the fallbacks at Python", "fallback 'python fallback'", "none"),
        (
            "the fallbacks, slots that have one",
            f"{held.present:#x}",
            "0x0",
        ),
        ("the fallbacks, slots that fall through", f"{held.through:#x}", "0x1"),
    ]
    turned = replace(held, tokens=(autograd, python))
    assert [
        where for where, _, _ in fallback_findings(state._replace(fallbacks=turned))
    ] == [
        "the fallbacks, texts",
        "the fallbacks",
    ]
    doubled = replace(held, tokens=(python, *held.tokens))
    assert fallback_findings(state._replace(fallbacks=doubled))[0] == (
        "the fallbacks at Python",
        "one",
        "fallback 'python fallback', fallback 'python fallback'",
    )


def test_definitions_and_keys_out_of_order() -> None:
    law = state_laws.definitions_stand_in_order
    place = twice_defined(True, "")
    assert law.find(place) == []
    turned = place.entry._replace(definitions=place.entry.definitions[::-1])
    assert law.find(healthy().place(turned)) == [
        (
            "d::f, definitions",
            "definition 'def', definition 'second'",
            "definition 'second', definition 'def'",
        )
    ]
    system = healthy()
    kernels = dict([*system.entry().implementations.items()][::-1])
    assert state_laws.keys_stand_in_order.find(system.place()) == []
    assert state_laws.keys_stand_in_order.find(
        system.place(implementations=kernels)
    ) == [
        (
            "d::f, keys",
            "CPU, SparseCPU, AutogradCPU, CompositeImplicitAutograd",
            "CompositeImplicitAutograd, AutogradCPU, SparseCPU, CPU",
        )
    ]
