"""Faults in dispatch to Python: in threads, in memory, and under locks.

True only here: a fault is planted in the runtime and looked for by exploring a scenario
of the catalogue, as everybody does; `found` is the law that tells of it, or the kind of
violation where states tell.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from everyorder.harness import Scenario
from everyorder.runtime.custom.definition import CustomOpDef
from everyorder.runtime.dispatch import transition
from everyorder.runtime.dispatch.registration_record import ClassRule
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import STATE
from everyorder.runtime.torch_dispatch import fallback, modes
from everyorder.runtime.torch_dispatch.context import Context
from everyorder.runtime.torch_dispatch.torch_dispatch_call import Handling
from tests.mutants.mutant import removing, replacing
from tests.scenarios import (
    test_contexts,
    test_custom_ops,
    test_modes,
    test_python_dispatch,
)

Patch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class DispatchMutant:
    """A fault; `found` is the law, or the kind of violation, that tells of it."""

    name: str
    what: str
    found: str
    scenario: Scenario
    patch: Patch


# What faults keep alive; emptied after each test.
KEPT: list[Any] = []


def _all(*patches: Patch) -> Patch:
    @contextmanager
    def patched() -> Any:
        with ExitStack() as stack:
            for each in patches:
                stack.enter_context(each())
            yield

    return patched


# The general way alone: the short ones are texts, and planting in them is editing them.
_general = replacing(fallback, "fast_path", lambda _: lambda schema, general: None)


def _keeps_the_snapshot(right: Any) -> Any:
    def snapshot_of(count: int) -> Any:
        def make(run: Any, operator: Any) -> Any:
            def snapshot(*given: Any) -> Any:
                if STATE.snapshot is not None:
                    return run(*given)
                STATE.snapshot = LOCAL.view
                result = run(*given)
                STATE.snapshot = None
                return result

            return snapshot

        return make

    return snapshot_of


def _loses_a_mode_on_errors(right: Any) -> Any:
    def wrong(handling: Any, *arguments: Any) -> Any:
        stack = STATE.stack
        try:
            return right(handling, *arguments)
        except BaseException:
            STATE.stack = stack[:-1]
            raise

    return wrong


def _stays_in_the_context(right: Any) -> Any:
    def wrong(handling: Any, *arguments: Any) -> Any:
        try:
            return right(handling, *arguments)
        except BaseException:
            STATE.context = next(
                each._context for each in arguments if hasattr(each, "_context")
            )
            raise

    return wrong


def _keeps_the_keys(right: Any) -> Any:
    return lambda stack, at, view: (right(stack, at, view)[0], view)


def _asks_under_the_lock(right: Any) -> Any:
    def wrong(handling: Any, handler: Any, who: Any, func: Any, *rest: Any) -> Any:
        with func._callee.dispatcher._lock:
            return right(handling, handler, who, func, *rest)

    return wrong


def _remembers(place: int) -> Callable[[Any], Any]:
    """The function, and one of its arguments is kept."""

    def make(right: Any) -> Any:
        def wrong(*arguments: Any) -> Any:
            KEPT.append(arguments[place])
            return right(*arguments)

        return wrong

    return make


def _calls_by_the_old_rules(right: Any) -> Any:
    def wrong(state: Any, place: Any, entry: Any, rules: Any) -> Any:
        held = entry._replace(rules=rules)
        return transition._replace(state, place, held)

    return wrong


def _remembers_the_class(right: Any) -> Any:
    def wrong(handling: Any, handler: Any, *rest: Any) -> Any:
        KEPT.append(type(handler))
        return right(handling, handler, *rest)

    return wrong


def _remembers_the_class_of_a_kernel(right: Any) -> Any:
    def wrong(handling: Any, handler: Any, who: Any, func: Any, *rest: Any) -> Any:
        callee = func._callee
        entry = callee.dispatcher.state.find(callee.namespace, callee.text)
        # The first class that goes is not kept, so that those that are have to wait:
        # fewer than the law about memory looks for together.
        if entry.implementations:
            KEPT.append(type(handler))
        return right(handling, handler, who, func, *rest)

    return wrong


def _leaves_its_library(right: Any) -> Any:
    return lambda made: None


DISPATCH = (
    DispatchMutant(
        "snapshot_left_by_errors",
        "a handler that raises leaves the keys of the outermost call behind",
        "calls_restore_their_thread",
        test_python_dispatch.handlers_that_fail,
        replacing(fallback, "_snapshot", _keeps_the_snapshot),
    ),
    DispatchMutant(
        "mode_lost_by_errors",
        "a mode that raises is not put back on the stack",
        "calls_restore_their_thread",
        test_modes.modes_that_fail,
        _all(_general, replacing(Handling, "handle", _loses_a_mode_on_errors)),
    ),
    DispatchMutant(
        "context_left_by_errors",
        "a call that is refused leaves the thread in the context of its tensor",
        "calls_restore_their_thread",
        test_contexts.tensors_of_a_closed_context,
        _all(_general, replacing(Handling, "handle", _stays_in_the_context)),
    ),
    DispatchMutant(
        "keys_left_by_modes",
        "the last mode that is left does not take its keys with it",
        "order",
        test_modes.a_mode_and_its_fallbacks,
        replacing(modes, "_without", _keeps_the_keys),
    ),
    DispatchMutant(
        "asked_under_the_lock",
        "the writer's lock is held while a handler is asked",
        "kernels_run_without_the_lock",
        test_python_dispatch.a_class_and_its_fallbacks,
        _all(_general, replacing(Handling, "_call_handler", _asks_under_the_lock)),
    ),
    DispatchMutant(
        "modes_kept_alive",
        "a mode that is left is remembered",
        "released_objects_are_dead",
        test_modes.infra_modes,
        replacing(modes, "_without", _remembers(0)),
    ),
    DispatchMutant(
        "rules_kept_alive",
        "a rule that is taken down is remembered",
        "released_objects_are_dead",
        test_python_dispatch.rules_and_handlers,
        removing(ClassRule, _remembers(1)),
    ),
    DispatchMutant(
        "bound_kernels_outlive_rules",
        "what was made for calls goes by the rules of then",
        "order",
        test_python_dispatch.rules_wait_for_their_operator,
        replacing(transition, "_with_rules", _calls_by_the_old_rules),
    ),
    DispatchMutant(
        "classes_kept_alive",
        "a class that was asked once is remembered",
        "released_objects_are_dead",
        test_python_dispatch.classes_come_and_go,
        _all(_general, replacing(Handling, "_call_handler", _remembers_the_class)),
    ),
    DispatchMutant(
        "classes_kept_by_few_orders",
        "a class that was asked about an operator with a kernel is remembered",
        "released_objects_are_dead",
        test_python_dispatch.classes_come_and_go,
        _all(
            _general,
            replacing(Handling, "_call_handler", _remembers_the_class_of_a_kernel),
        ),
    ),
    DispatchMutant(
        "contexts_kept_alive",
        "a context that is closed is remembered",
        "released_objects_are_dead",
        test_contexts.tensors_of_a_closed_context,
        replacing(Context, "close", _remembers(0)),
    ),
    DispatchMutant(
        "operators_left_behind",
        "a custom operator that is closed stays registered",
        "a_removal_removes_exactly_its_tokens",
        test_custom_ops.custom_op_with_kernels,
        replacing(CustomOpDef, "close", _leaves_its_library),
    ),
)
