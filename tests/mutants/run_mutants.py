"""Faults that no state shows: in threads, locks, memory, and in calls."""

from typing import Any

from everyorder.runtime.dispatch import kernel, library
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.kernel_lookup import EntryInvoker, OperatorRef
from everyorder.runtime.dispatch.registration_record import Claim
from everyorder.runtime.dispatch.runners import Runners
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.dispatch.watch import DEPTH
from everyorder.runtime.keys import BACKEND_BITS, LOCAL, DispatchKey, include_keys
from tests.mutants.mutant import Change, Mutant, removing, replacing


def _forgets_the_setting(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Claim) -> DispatcherState:
        return right(state, token)._replace(merges_alias_kinds=False)

    return wrong


def _loses_the_first(right: Any) -> Any:
    return lambda registry, ledger, held, tokens: right(
        registry, ledger, held, tokens[1:]
    )


def _keeps_keys_on_errors(right: Any) -> Any:
    def wrong(context: Any, *exception: Any) -> None:
        if exception[0] is None:
            right(context, *exception)

    return wrong


def _counts_no_errors(right: Any) -> Any:
    def wrong(
        caller: EntryInvoker, label: str, handle: Any, bits: int, values: list[Any]
    ) -> Any:
        DEPTH.level += 1
        result = caller.run(handle, bits, values)
        DEPTH.level -= 1
        return result

    return wrong


def _includes_what_it_registers(right: Any) -> Any:
    def wrong(dispatcher: Dispatcher, *rest: Any) -> None:
        right(dispatcher, *rest)
        LOCAL.included |= DispatchKey.Tracer.bits

    return wrong


def _calls_under_the_lock(right: Any) -> Any:
    def wrong(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        with callee.dispatcher._lock:
            return right(callee, *args, **kwargs)

    return wrong


def _keeps_the_first_caller(right: Any) -> Any:
    known: dict[str, EntryInvoker] = {}

    def wrong(callee: OperatorRef, entry: Any) -> EntryInvoker:
        return known.setdefault(callee.text, right(callee, entry))

    return wrong


def _ignores_masks(right: Any) -> Any:
    def wrong(runners: Runners, values: list[Any]) -> int:
        bits = LOCAL.included
        for value in values:
            bits |= value.key_bits
        return bits & (BACKEND_BITS | ~LOCAL.excluded)

    return wrong


RUN = (
    Mutant(
        "setting_lost",
        "closing a DEF library resets the dispatcher's rule for alias kinds",
        "teardown_leaves_nothing",
        "+claima -claima",
        removing(Claim, _forgets_the_setting),
        merges=True,
    ),
    Mutant(
        "library_loses_one",
        "a library that is closed forgets one of its registrations",
        "open_handles_own_what_is_live",
        "+group -group",
        replacing(library, "take_down", _loses_the_first),
        also=frozenset({"teardown_leaves_nothing"}),
        blind=True,
    ),
    Mutant(
        "kernels_kept_alive",
        "what is remembered of a kernel keeps the kernel alive",
        "released_objects_are_dead",
        "+cpu -cpu",
        replacing(kernel, "_FACTS", lambda _: {}),
    ),
    Mutant(
        "keys_left_by_errors",
        "keys that a kernel included stay included when it raises",
        "calls_restore_their_thread",
        "+def +cpu ?raise",
        replacing(include_keys, "__exit__", _keeps_keys_on_errors),
    ),
    Mutant(
        "trace_left_by_errors",
        "a call that raises leaves the trace nested deeper",
        "calls_restore_their_thread",
        "+def +cpu ?raise",
        replacing(EntryInvoker, "_traced", _counts_no_errors),
    ),
    Mutant(
        "keys_left_by_registering",
        "who registers something has a key included from then on",
        "operations_leave_the_thread_alone",
        "+cpu",
        replacing(Dispatcher, "register", _includes_what_it_registers),
    ),
    Mutant(
        "called_under_the_lock",
        "the writer's lock is held while a kernel runs",
        "kernels_run_without_the_lock",
        "+def +cpu ?CPU",
        replacing(OperatorRef, "call", _calls_under_the_lock),
    ),
    Mutant(
        "stale_caller",
        "a handle keeps calling what it called first",
        "calls_run_what_the_state_says",
        "+def +cpu ?CPU +cpu2 ?CPU",
        replacing(OperatorRef, "caller", _keeps_the_first_caller),
    ),
    Mutant(
        "masks_ignored",
        "a call does not skip the keys that fall through",
        "calls_run_what_the_state_says",
        "+def +cpu ?CPU,AutogradCPU",
        replacing(Runners, "keyset_bits", _ignores_masks),
    ),
)
