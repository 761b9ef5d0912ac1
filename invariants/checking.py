"""All laws, and checking them at the price of what changed.

An entry never changes, so a verdict is kept on it; entries of one shape are judged once
(see `invariants.placed`), save for what they remember for calling; and a caller that
holds a state that was checked passes it as `since`: what the new state shares with it
is skipped.

Rules:
- the laws stand in the order in which they are checked and told;
- a law of one operator may read of it only what its shape holds, for that is what
  verdicts are remembered by; `callers_belong_to_their_entry`, which reads the entry's
  memory, is never remembered;
- only good verdicts on shapes are remembered, so a fault is told every time;
- nothing that is remembered refers to a kernel;
- `forget` is for those who exchange the code of the runtime under the laws' feet.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, get_args
from weakref import ReferenceType

from invariants import operator_laws, run_laws, table_laws
from invariants.law import Law, Violation
from invariants.live import Change, replaced, step_of
from invariants.placed import Placed, shape_of
from invariants.run import Call, Deed, Run
from runtime.dispatch.state import EMPTY, DispatcherState
from runtime.dispatch.token import Token

OPERATOR_LAWS = (
    operator_laws.operators_are_filed_under_their_names,
    operator_laws.registrations_belong_to_their_operator,
    operator_laws.readings_tell_what_is_registered,
    operator_laws.an_operator_has_one_definition,
    operator_laws.definitions_stand_in_order,
    operator_laws.a_class_has_one_rule,
    operator_laws.the_total_counts_what_is_live,
    operator_laws.no_kernel_list_is_empty,
    operator_laws.a_registration_is_listed_once,
    operator_laws.kernels_are_listed_under_their_key,
    operator_laws.keys_stand_in_order,
    operator_laws.kernels_stand_at_keys_that_take_them,
    operator_laws.without_a_schema_no_argument_is_looked_at,
    operator_laws.the_schema_says_which_arguments_count,
    operator_laws.typed_kernels_agree,
    operator_laws.typed_kernels_fit_the_schema,
    table_laws.tables_hold_the_fallbacks_of_the_state,
    table_laws.callers_belong_to_their_entry,
    table_laws.slots_run_what_the_rules_say,
    table_laws.slots_say_which_rule_filled_them,
    table_laws.a_slot_without_kernel_says_missing,
    table_laws.masks_leave_out_what_falls_through,
    table_laws.a_mask_a_backend_only_where_two_differ,
    table_laws.one_mask_for_all_only_where_none_differ,
    table_laws.masks_hold_every_backend,
)

# Each with the one part of a state that it looks at.
STATE_LAWS = (
    ("namespaces", operator_laws.no_namespace_is_empty),
    ("claims", operator_laws.claims_are_sorted_and_one_a_namespace),
    ("fallbacks", operator_laws.fallbacks_stand_where_their_tokens_say),
    ("subscriptions", operator_laws.listeners_are_subscribed_once),
)

# Each with the changes that it speaks about (see `invariants.live`).
STEP_LAWS = (
    (("fail",), run_laws.a_failed_step_changes_nothing),
    (("use",), run_laws.a_use_changes_nothing),
    (("again",), run_laws.closing_twice_changes_nothing),
    (("add",), run_laws.an_add_adds_exactly_its_tokens),
    (("remove",), run_laws.a_removal_removes_exactly_its_tokens),
    (("add",), run_laws.the_newest_kernel_comes_first),
    (("add", "remove"), run_laws.survivors_keep_their_order),
    (("add", "remove"), run_laws.bystanders_are_left_alone),
)

# These two need no state, so that they can be asked of every call, step and look.
MEMORY_LAWS = (run_laws.what_is_gone_is_dead,)
THREAD_LAWS = (
    run_laws.calls_restore_their_thread,
    run_laws.deeds_leave_the_thread_alone,
    run_laws.kernels_run_without_the_lock,
)

RUN_LAWS = (
    run_laws.teardown_leaves_nothing,
    run_laws.open_handles_own_what_is_live,
    *MEMORY_LAWS,
    *THREAD_LAWS,
    run_laws.calls_run_what_the_state_says,
)

LAWS = (
    *OPERATOR_LAWS,
    *(each for _, each in STATE_LAWS),
    *(each for _, each in STEP_LAWS),
    *RUN_LAWS,
)

# As many as the sets of sixteen steps; a shape is about a kilobyte.
REMEMBERED = 65536

_LAWFUL: set[Hashable] = set()

_STEP_LAWS: dict[Change, list[Law]] = {
    change: [each for changes, each in STEP_LAWS if change in changes]
    for change in get_args(Change)
}


def check(
    snapshot: DispatcherState, since: DispatcherState | None = None
) -> list[Violation]:
    """The laws of a state that `snapshot` breaks.

    `since` is a state that has been checked, and that the caller still holds; what
    `snapshot` shares with it is taken as checked.
    """
    if snapshot is since:
        return []
    found: list[Violation] = []
    for part, each in STATE_LAWS:
        if since is None or getattr(since, part) is not getattr(snapshot, part):
            found += each.check(snapshot)
    known = (
        since.namespaces
        if since is not None
        and since.fallbacks is snapshot.fallbacks
        and since.merges_alias_kinds is snapshot.merges_alias_kinds
        else {}
    )
    for namespace, operators in snapshot.namespaces.items():
        held = known.get(namespace, {})
        if held is operators:
            continue
        for text in replaced(held, operators):
            place = Placed(operators[text], namespace, text, snapshot)
            found += _check_operator(place)
    return found


def check_step(
    before: DispatcherState,
    after: DispatcherState,
    change: Change,
    tokens: tuple[Token, ...] | None = None,
) -> list[Violation]:
    """The laws of a step that the step from `before` to `after` breaks.

    `tokens` are the registrations that an add made or a removal ended, None if they
    are not known.  After a use, the callers that it left on entries are checked too.
    """
    found: list[Violation] = []
    if after is not before or tokens:
        step = step_of(before, after, change, tokens)
        found += _broken(_STEP_LAWS[change], step)
    if change == "use":
        for namespace, operators in after.namespaces.items():
            for text, entry in operators.items():
                if "caller" in entry.memo:
                    place = Placed(entry, namespace, text, after)
                    found += table_laws.callers_belong_to_their_entry.check(place)
    return found


def check_run(run: Run) -> list[Violation]:
    """The laws of a run that `run` breaks."""
    return _broken(RUN_LAWS, run)


def check_thread(calls: Sequence[Call], deeds: Sequence[Deed] = ()) -> list[Violation]:
    """The laws about threads and locks alone, for calls of which no more is known."""
    if not (calls or deeds):
        return []
    run = Run(EMPTY, EMPTY, calls=tuple(calls), deeds=tuple(deeds))
    return _broken(THREAD_LAWS, run)


def check_memory(gone: Sequence[tuple[str, ReferenceType[Any]]]) -> list[Violation]:
    """The law about memory alone: `gone` must be dead."""
    return _broken(MEMORY_LAWS, Run(EMPTY, EMPTY, gone=tuple(gone)))


def _broken(laws: Iterable[Law], subject: object) -> list[Violation]:
    """All violations; most subjects break no law, and then this is all there is."""
    try:
        # A list, because a generator costs more than the laws that it would spare.
        if not any([each.find(subject) for each in laws]):  # noqa: C419
            return []
    except Exception:  # noqa: S110  # `Law.check` says which law could not be asked
        pass
    return [violation for each in laws for violation in each.check(subject)]


def forget() -> None:
    """Forget all verdicts on shapes."""
    _LAWFUL.clear()


def _check_operator(operator: Placed) -> list[Violation]:
    memo = operator.entry.memo
    # The identity shows a memory that was taken over from another entry.
    place = (
        id(operator.entry),
        operator.namespace,
        operator.text,
        operator.merges_alias_kinds,
    )
    kept = memo.get("laws")
    if (
        kept is not None
        and kept[0] == place
        and operator.entry.table.fallbacks is operator.fallbacks
    ):
        verdict: list[Violation] = kept[1]
        return verdict
    shape = _shape(operator)
    if shape is not None and shape in _LAWFUL:
        verdict = table_laws.callers_belong_to_their_entry.check(operator)
    else:
        verdict = _broken(OPERATOR_LAWS, operator)
        if shape is not None and not verdict:
            if len(_LAWFUL) >= REMEMBERED:
                _LAWFUL.clear()
            _LAWFUL.add(shape)
    memo["laws"] = (place, verdict)
    return verdict


def _shape(operator: Placed) -> Hashable | None:
    try:
        return shape_of(operator)
    except Exception:  # whatever cannot be read, the laws will say so
        return None
