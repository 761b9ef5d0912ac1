"""Faults in tables, masks and extractors: what calls are steered by."""

from dataclasses import replace
from typing import Any

from everyorder.runtime.dispatch import dispatch_table, kernel_lookup, transition
from everyorder.runtime.dispatch import registration_record as token
from everyorder.runtime.dispatch.dispatch_table import (
    AMBIGUOUS,
    Fallbacks,
    Line,
    Masks,
    Recipe,
    Slot,
    Table,
    table_of,
)
from everyorder.runtime.dispatch.kernel_lookup import EntryInvoker
from everyorder.runtime.dispatch.registration_record import (
    Definition,
    DispatchArgPositions,
    Fallback,
)
from everyorder.runtime.dispatch.state import DispatcherState, OperatorEntry
from everyorder.runtime.keys import SLOTS, DispatchKey, autograd_key_of, members
from tests.mutants.mutant import Change, Mutant, afresh, changed, removing, replacing

_CE = DispatchKey.parse("CompositeExplicitAutograd")
_CI = DispatchKey.parse("CompositeImplicitAutograd")
_CENF = DispatchKey.parse("CompositeExplicitAutogradNonFunctional")


def _takes_the_oldest(right: Any) -> Any:
    def wrong(kernels: Any, fallbacks: Fallbacks) -> Table:
        oldest = {key: held[::-1] for key, held in kernels.items()}
        return right(oldest, fallbacks)  # type: ignore[no-any-return]

    return wrong


def _refreshed(key: DispatchKey) -> set[DispatchKey]:
    """The slots that upstream computes anew after a change at `key`."""
    found = set(members(key))
    if key in (_CE, _CI, _CENF):
        found.add(DispatchKey.parse("Undefined"))
    if key in members(_CE):
        found.add(autograd_key_of(key.backend))
    return found


def _refreshes_too_little(right: Any) -> Any:
    def wrong(
        state: DispatcherState,
        place: Any,
        entry: OperatorEntry,
        implementations: Any,
        change: int,
    ) -> DispatcherState:
        before, fresh = (
            entry.table,
            table_of(implementations, state.fallbacks),
        )
        keys = entry.implementations.keys() | implementations.keys()
        slots: set[DispatchKey] = set()
        for key in keys:
            if entry.implementations.get(key) is not implementations.get(key):
                slots |= _refreshed(key)
        patched = entry._replace(
            implementations=implementations,
            total=entry.total + change,
            table=_mixed(before, fresh, slots),
            memo={},
        )
        return transition._replace(state, place, patched)

    return wrong


def _mixed(before: Table, fresh: Table, slots: set[DispatchKey]) -> Table:
    lines, tokens, rest = [], [], 0
    for number, key in enumerate(SLOTS):
        slot = (fresh if key in slots else before).slot(number)
        if slot.provenance in ("missing", "backend fallback"):
            rest |= 1 << number
            continue
        ambiguous = slot.token is None
        source = key if slot.provenance == "kernel" else _CI
        lines.append(Line(source, 1 << number, slot.provenance, ambiguous))
        tokens.append(slot.token)
    made = Recipe(fresh.recipe.number, tuple(lines), rest, ())
    return Table(made, tuple(tokens), fresh.fallbacks, fresh.masks)  # type: ignore[arg-type]


def _calls_it_math(right: Any) -> Any:
    return tuple(
        replace(rule, provenance="math kernel") if rule.source is _CE else rule
        for rule in right
    )


def _fills_missing_slots(right: Any) -> Any:
    def wrong(key: DispatchKey, held: Fallback | None) -> Slot:
        slot: Slot = right(key, held)
        return slot._replace(kernel=slot.kernel or AMBIGUOUS)

    return wrong


def _hands_memory_on(right: Any) -> Any:
    def wrong(state: Any, place: Any, entry: Any, *rest: Any) -> Any:
        after = right(state, place, entry, *rest)
        return changed(after, place, lambda _: {"memo": entry.memo})

    return wrong


def _calls_by_name(right: Any) -> Any:
    known: dict[str, EntryInvoker] = {}

    def wrong(entry: OperatorEntry, name: str) -> EntryInvoker:
        found = entry.memo["caller"] = known.setdefault(name, right(entry, name))
        return found

    return wrong


def _keeps_tables(right: Any) -> Any:
    def wrong(state: DispatcherState, fallbacks: Fallbacks) -> DispatcherState:
        return state._replace(fallbacks=fallbacks)

    return wrong


def _keeps_masks(right: Any) -> Any:
    def wrong(state: Any, place: Any, entry: OperatorEntry, *rest: Any) -> Any:
        after = right(state, place, entry, *rest)
        masks = entry.table.masks
        return changed(
            after, place, lambda new: {"table": new.table._replace(masks=masks)}
        )

    return wrong


def _cuts_backends(right: Any) -> Any:
    def wrong(through: int) -> Masks:
        masks: Masks = right(through)
        return replace(masks, by_backend=tuple(mask & ~1 for mask in masks.by_backend))

    return wrong


def _keeps_the_extractor(right: Change) -> Change:
    def wrong(state: DispatcherState, token: Definition) -> DispatcherState:
        kept = token.reading.extractor
        return changed(right(state, token), token, lambda _: {"extractor": kept})

    return wrong


TABLE = (
    Mutant(
        "oldest_kernel_active",
        "the table takes the oldest kernel of a key",
        "slots_run_what_the_rules_say",
        "+cpu +cpu2",
        replacing(transition, "table_of", _takes_the_oldest),
    ),
    Mutant(
        "dependents_not_refreshed",
        "upstream's defect: after a change, only the key's own slots are refreshed",
        "slots_run_what_the_rules_say",
        "+ci +sparse",
        replacing(transition, "_with_kernels", _refreshes_too_little),
        also=frozenset({"slots_say_which_rule_filled_them"}),
    ),
    Mutant(
        "dependents_of_explicit_not_refreshed",
        "the same defect, seen from CompositeExplicitAutograd",
        "slots_run_what_the_rules_say",
        "+ci +ce",
        replacing(transition, "_with_kernels", _refreshes_too_little),
        also=frozenset({"slots_say_which_rule_filled_them"}),
    ),
    Mutant(
        "wrong_provenance",
        "a kernel of an explicit composite says that it is an implicit one",
        "slots_say_which_rule_filled_them",
        "+ce",
        afresh(
            replacing(dispatch_table, "RULES", _calls_it_math), dispatch_table._recipe
        ),
    ),
    Mutant(
        "missing_slot_filled",
        "a slot that is missing gets a kernel all the same",
        "a_slot_without_kernel_says_missing",
        "+cpu",
        replacing(dispatch_table, "_fallback_slot", _fills_missing_slots),
        also=frozenset({"slots_run_what_the_rules_say"}),
    ),
    Mutant(
        "memory_handed_on",
        "the next entry of an operator keeps the memory of the one before",
        "callers_belong_to_their_entry",
        "+def +cpu ?CPU +cpu2",
        replacing(transition, "_with_kernels", _hands_memory_on),
    ),
    Mutant(
        "caller_remembered_by_name",
        "callers are remembered by the name of the operator",
        "callers_belong_to_their_entry",
        "+def +cpu ?CPU +cpu2 ?CPU",
        replacing(kernel_lookup, "caller_of", _calls_by_name),
    ),
    Mutant(
        "tables_not_rebuilt_for_fallbacks",
        "a new fallback does not reach the tables of operators that exist",
        "tables_hold_the_fallbacks_of_the_state",
        "+cuda +fallcpu",
        replacing(transition, "_with_fallbacks", _keeps_tables),
        also=frozenset(
            {"slots_run_what_the_rules_say", "slots_say_which_rule_filled_them"}
        ),
    ),
    Mutant(
        "masks_not_rebuilt",
        "a new kernel leaves the masks as they were",
        "masks_leave_out_what_falls_through",
        "+def +autogradcpu",
        replacing(transition, "_with_kernels", _keeps_masks),
    ),
    Mutant(
        "masks_always_by_backend",
        "every operator chooses its mask by backend",
        "a_mask_a_backend_only_where_two_differ",
        "+cpu",
        replacing(
            dispatch_table,
            "masks_of",
            lambda right: lambda through: replace(right(through), per_backend=True),
        ),
    ),
    Mutant(
        "masks_never_by_backend",
        "every operator has the mask of the first backend for all",
        "one_mask_for_all_only_where_none_differ",
        "+autogradcpu",
        replacing(
            dispatch_table,
            "masks_of",
            lambda right: lambda through: replace(right(through), per_backend=False),
        ),
    ),
    Mutant(
        "masks_cut_backends",
        "a mask cuts a backend's bit as well",
        "masks_hold_every_backend",
        "+cpu",
        replacing(dispatch_table, "masks_of", _cuts_backends),
    ),
    Mutant(
        "extractor_kept",
        "an operator without a schema still looks at the arguments of the old one",
        "without_a_schema_no_argument_is_looked_at",
        "+def +cpu -def",
        removing(Definition, _keeps_the_extractor),
    ),
    Mutant(
        "lists_not_looked_at",
        "an operator does not look into lists of tensors",
        "the_schema_says_which_arguments_count",
        "+deflists",
        afresh(
            replacing(
                token,
                "extractor_of",
                lambda right: (
                    lambda schema: DispatchArgPositions(right(schema).tensors, ())
                ),
            ),
            token._read_definition,
        ),
    ),
    Mutant(
        "signatures_not_compared",
        "a typed kernel joins others of another signature",
        "typed_kernels_agree",
        "+typed +typed2",
        replacing(transition, "check_kernel_fits", lambda _: lambda *_: None),
    ),
    Mutant(
        "waiting_kernels_not_compared",
        "a definition is not compared with the kernels that came before it",
        "typed_kernels_fit_the_schema",
        "+typed2 +def",
        replacing(transition, "check_definition_fits", lambda _: lambda *_: None),
    ),
)
