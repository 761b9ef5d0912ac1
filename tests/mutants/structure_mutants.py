"""Faults in where registrations stand, and in how they are counted."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from everyorder.runtime.dispatch import library, transition
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    ClassRule,
    Definition,
    Fallback,
    Implementation,
    KernelSpec,
    Subscription,
)
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema.signature import OperatorName
from tests.mutants.mutant import Change, Mutant, adding, changed, removing, replacing


def _files_without_overload(right: Any) -> Any:
    def wrong(state: DispatcherState, place: Any, entry: Any) -> DispatcherState:
        text = place.text.partition(".")[0]
        base = SimpleNamespace(namespace=place.namespace, text=text)
        after: DispatcherState = right(state, base, entry)
        return after

    return wrong


def _defines_the_base(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Definition) -> DispatcherState:
        base = OperatorName(token.operator.name)
        place = SimpleNamespace(namespace=token.reading.namespace, text=str(base))
        entry = state.entry(base) or transition._new_entry(state, base)
        held = (*entry.definitions, token)
        return transition._with_definitions(state, place, entry, held, 1)

    return wrong


def _reads_once_a_key(right: Any) -> Any:
    known: dict[tuple[OperatorName, DispatchKey], KernelSpec] = {}

    def wrong(operator: OperatorName, key: DispatchKey, *rest: Any) -> KernelSpec:
        return known.setdefault((operator, key), right(operator, key, *rest))

    return wrong


def _takes_any_rule(right: Change) -> Change:
    def wrong(state: DispatcherState, token: ClassRule) -> DispatcherState:
        entry = state.entry(token.operator) or transition._new_entry(
            state, token.operator
        )
        return transition._with_rules(state, token, entry, (*entry.rules, token))

    return wrong


def _forgets_to_count(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Definition) -> DispatcherState:
        after = right(state, token)
        return changed(after, token, lambda entry: {"total": entry.total + 1})

    return wrong


def _leaves_an_empty_list(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        return changed(
            right(state, token),
            token,
            lambda entry: {"implementations": {**entry.implementations, token.key: ()}},
        )

    return wrong


def _lists_twice(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        return changed(
            right(state, token),
            token,
            lambda entry: {
                "implementations": {token.key: (token, token)},
                "total": entry.total + 1,
            },
        )

    return wrong


def _files_under_the_alias(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        entry = transition._new_entry(state, token.operator)
        kernels = {DispatchKey.parse("Autograd"): (token,)}
        return transition._with_kernels(state, token.reading, entry, kernels, 1)

    return wrong


def _appends_definitions(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Definition) -> DispatcherState:
        entry = state.entry(token.operator)
        if entry is None:
            return right(state, token)
        held = (*entry.definitions, token)
        return transition._with_definitions(state, token.reading, entry, held, 1)

    return wrong


def _appends_keys(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        entry = state.entry(token.operator)
        if entry is None:
            return right(state, token)
        kernels = {**entry.implementations, token.key: (token,)}
        return transition._with_kernels(state, token.reading, entry, kernels, 1)

    return wrong


def _keeps_namespaces(right: Any) -> Any:
    def wrong(state: DispatcherState, place: Any, entry: Any) -> DispatcherState:
        after: DispatcherState = right(state, place, entry)
        return after._replace(namespaces={place.namespace: {}, **after.namespaces})

    return wrong


def _claims_unsorted(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Claim) -> DispatcherState:
        return state._replace(claims=(*state.claims, token))

    return wrong


def _leaves_the_slot(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Fallback) -> DispatcherState:
        after = right(state, token)
        stale = replace(after.fallbacks, slots=state.fallbacks.slots)
        return after._replace(fallbacks=stale)

    return wrong


def _subscribes_twice(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Subscription) -> DispatcherState:
        return right(right(state, token), token)

    return wrong


STRUCTURE = (
    Mutant(
        "overload_dropped_when_filing",
        "an operator is filed under its name without the overload",
        "operators_are_filed_under_their_names",
        "+defout",
        replacing(transition, "_replace", _files_without_overload),
        also=frozenset({"an_add_adds_exactly_its_tokens"}),
    ),
    Mutant(
        "overload_dropped_when_defining",
        "the definition of an overload joins the operator without overload",
        "registrations_belong_to_their_operator",
        "+defout",
        adding(Definition, _defines_the_base),
        also=frozenset({"an_add_adds_exactly_its_tokens"}),
    ),
    Mutant(
        "reading_remembered_too_long",
        "the reading of a kernel is remembered by operator and key alone",
        "readings_tell_what_is_registered",
        "+cpu +typed",
        replacing(library, "read_kernel", _reads_once_a_key),
    ),
    Mutant(
        "second_definition_accepted",
        "nobody looks whether the operator is defined already",
        "an_operator_has_one_definition",
        "+def +def2",
        replacing(transition, "check_definition_fits", lambda _: lambda *_: None),
    ),
    Mutant(
        "definitions_in_order_of_arrival",
        "the definition in force is the one that came first",
        "definitions_stand_in_order",
        "+def2 +def",
        adding(Definition, _appends_definitions),
        merges=True,
    ),
    Mutant(
        "second_rule_accepted",
        "nobody looks whether the class has a rule already",
        "a_class_has_one_rule",
        "+rule +rule2",
        adding(ClassRule, _takes_any_rule),
    ),
    Mutant(
        "keys_in_order_of_arrival",
        "a dump shows keys in the order in which they got their first kernel",
        "keys_stand_in_order",
        "+cuda +cpu",
        adding(Implementation, _appends_keys),
    ),
    Mutant(
        "definition_not_discounted",
        "the count of an operator is not taken back with its definition",
        "the_total_counts_what_is_live",
        "+def +cpu -def",
        removing(Definition, _forgets_to_count),
    ),
    Mutant(
        "empty_list_left",
        "the last kernel of a key leaves its list behind",
        "no_kernel_list_is_empty",
        "+cpu +cuda -cuda",
        removing(Implementation, _leaves_an_empty_list),
    ),
    Mutant(
        "kernel_listed_twice",
        "a kernel enters its list twice, and is counted twice",
        "a_registration_is_listed_once",
        "+cpu",
        adding(Implementation, _lists_twice),
    ),
    Mutant(
        "kernel_filed_under_alias",
        "the kernel of an autograd key is filed under the alias",
        "kernels_are_listed_under_their_key",
        "+autogradcpu",
        adding(Implementation, _files_under_the_alias),
        also=frozenset({"an_add_adds_exactly_its_tokens"}),
    ),
    Mutant(
        "building_block_accepted",
        "a kernel is accepted at a building block, as upstream does",
        "kernels_stand_at_keys_that_take_them",
        "+block",
        replacing(library, "kernel_key", lambda _: lambda key: key),
    ),
    Mutant(
        "empty_namespace_left",
        "the last operator of a namespace leaves the namespace behind",
        "no_namespace_is_empty",
        "+cpu -cpu",
        replacing(transition, "_replace", _keeps_namespaces),
    ),
    Mutant(
        "claims_in_order_of_arrival",
        "claims stand in the order in which the libraries were opened",
        "claims_are_sorted_and_one_a_namespace",
        "+claimz +claima",
        adding(Claim, _claims_unsorted),
    ),
    Mutant(
        "fallback_slot_left",
        "a fallback that is gone still stands in its slot",
        "fallbacks_stand_where_their_tokens_say",
        "+fallcpu -fallcpu",
        removing(Fallback, _leaves_the_slot),
    ),
    Mutant(
        "listener_subscribed_twice",
        "a listener is told everything twice",
        "listeners_are_subscribed_once",
        "+listen",
        adding(Subscription, _subscribes_twice),
    ),
)
