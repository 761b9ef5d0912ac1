"""Faults that only two states show: what a step does beside what it says."""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from everyorder.runtime.dispatch import transition
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.dispatch.registration_record import (
    Claim,
    Implementation,
    RegistrationRecord,
    Reservation,
)
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.schema.parser import parse_name
from everyorder.runtime.schema.signature import OperatorName
from tests.mutants.mutant import Change, Mutant, adding, changed, removing, replacing


def _publishes_one_by_one(right: Any) -> Any:
    def wrong(
        dispatcher: Dispatcher, tokens: Sequence[RegistrationRecord], *rest: bool
    ) -> None:
        for token in tokens:
            right(dispatcher, (token,), *rest)

    return wrong


def _reserves_what_it_looks_up(right: Any) -> Any:
    def wrong(dispatcher: Dispatcher, name: str) -> Any:
        if dispatcher.entry(name) is None:
            dispatcher.register((Reservation(parse_name(name), "looked up"),))
        return right(dispatcher, name)

    return wrong


def _closes_again(right: Any) -> Any:
    closed: WeakKeyDictionary[Registration, OperatorName] = WeakKeyDictionary()

    def wrong(registration: Registration) -> None:
        if registration not in closed:
            first = registration.tokens[0]
            if isinstance(first, Implementation):
                closed[registration] = first.operator
            right(registration)
            return
        registry = registration._registry
        entry = registry.state.entry(closed[registration])
        if entry is not None:
            registry.unregister([held[0] for held in entry.implementations.values()])

    return wrong


def _registers_the_first(right: Any) -> Any:
    return lambda dispatcher, tokens, *rest: right(dispatcher, tokens[:1], *rest)


def _appends(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        entry = state.entry(token.operator)
        if entry is None:
            return right(state, token)
        held = (*entry.implementations.get(token.key, ()), token)
        kernels = {**entry.implementations, token.key: held}
        return transition._with_kernels(state, token.reading, entry, kernels, 1)

    return wrong


def _turns_the_rest(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        after = right(state, token)
        entry = after.entry(token.operator)
        if entry is None or token.key not in entry.implementations:
            return after
        held = entry.implementations[token.key][::-1]
        kernels = {**entry.implementations, token.key: held}
        return transition._with_kernels(after, token.reading, entry, kernels, 0)

    return wrong


def _removes_all_of_the_key(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Implementation) -> DispatcherState:
        entry = state.entry(token.operator)
        held = () if entry is None else entry.implementations[token.key]
        for each in held:
            state = right(state, each)
        return state

    return wrong


def _rebuilds_neighbours(right: Any) -> Any:
    def wrong(state: DispatcherState, place: Any, entry: Any) -> DispatcherState:
        after: DispatcherState = right(state, place, entry)
        for neighbour in after.entries():
            if str(neighbour.name) != place.text:
                text = str(neighbour.name)
                operators = {**after.namespaces[place.namespace]}
                operators[text] = neighbour._replace(memo={})
                after = after._replace(namespaces={place.namespace: operators})
        return after

    return wrong


def _counts_fallbacks(right: Any) -> Any:
    def wrong(state: DispatcherState, fallbacks: Any) -> DispatcherState:
        after: DispatcherState = right(state, fallbacks)
        for entry in after.entries():
            token = entry.definitions[0]
            after = changed(after, token, lambda held: {"total": held.total + 1})
        return after

    return wrong


STEP = (
    Mutant(
        "wedged_by_a_refusal",
        "of a pair whose second half is refused, the first stays registered",
        "a_failed_step_changes_nothing",
        "+badpair",
        replacing(Dispatcher, "register", _publishes_one_by_one),
    ),
    Mutant(
        "look_up_registers",
        "looking up an unknown operator makes it known",
        "a_use_changes_nothing",
        "+def @",
        replacing(Dispatcher, "find_op", _reserves_what_it_looks_up),
    ),
    Mutant(
        "handle_closes_twice",
        "closing a handle again takes down what others registered",
        "closing_twice_changes_nothing",
        "+def +cpu +cpu2 -cpu =cpu",
        replacing(Registration, "close", _closes_again),
    ),
    Mutant(
        "half_a_registration",
        "of several kernels registered by one call, only the first becomes live",
        "an_add_adds_exactly_its_tokens",
        "+cpu_cuda",
        replacing(Dispatcher, "register", _registers_the_first),
    ),
    Mutant(
        "claim_not_released",
        "a library that is closed keeps its claim on the namespace",
        "a_removal_removes_exactly_its_tokens",
        "+claima -claima",
        removing(Claim, lambda _: lambda state, _: state),
    ),
    Mutant(
        "neighbours_removed",
        "removing a kernel removes every kernel of its key",
        "a_removal_removes_exactly_its_tokens",
        "+cpu +cpu2 -cpu",
        removing(Implementation, _removes_all_of_the_key),
    ),
    Mutant(
        "kernel_appended",
        "a new kernel joins its key behind the others",
        "the_newest_kernel_comes_first",
        "+cpu +cpu2",
        adding(Implementation, _appends),
    ),
    Mutant(
        "survivors_turned",
        "removing a kernel turns the order of those that stay",
        "survivors_keep_their_order",
        "+cpu +cpu2 +cpu3 -cpu3",
        removing(Implementation, _turns_the_rest),
    ),
    Mutant(
        "neighbours_rebuilt",
        "registering for one operator makes new entries for all others",
        "bystanders_are_left_alone",
        "+def +defg",
        replacing(transition, "_replace", _rebuilds_neighbours),
    ),
    Mutant(
        "neighbours_miscounted_by_fallbacks",
        "a fallback counts as a registration of every operator",
        "bystanders_are_left_alone",
        "+def +fallcpu",
        replacing(transition, "_with_fallbacks", _counts_fallbacks),
        also=frozenset({"the_total_counts_what_is_live"}),
    ),
)
