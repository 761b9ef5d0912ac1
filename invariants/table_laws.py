"""Laws of the table and its masks: every slot runs what the rules give it.

The live table, the one that calls use, is held against the second table.  All 137 slots
are compared, `Undefined` included, by identity of kernel objects and of registrations;
two kernels that look alike are two kernels.  Masks are raw bits, backends low; the
second masks come from the second table, so that a mask shows that was forgotten when a
table changed.
"""

from invariants.law import Finding, grouped, law
from invariants.live import listed
from invariants.placed import Placed
from invariants.second_table import AMBIGUOUS as AMBIGUITY
from invariants.second_table import BACKENDS, LAYERS, MISSING, Expected, second_masks
from runtime.dispatch.kernel import Kernel
from runtime.dispatch.table import AMBIGUOUS
from runtime.dispatch.token import Fallback


@law("state", per_operator=True)
def tables_hold_the_fallbacks_of_the_state(operator: Placed) -> list[Finding]:
    """The fallbacks that an operator's table is built on are those of the state."""
    held = operator.entry.table.fallbacks
    if held is operator.fallbacks:
        return []
    return grouped(
        operator.entry.name,
        (
            (key, _debug(wanted), _debug(found))
            for key, wanted, found in zip(
                (slot.key for slot in operator.expected),
                operator.fallbacks.slots,
                held.slots,
                strict=True,
            )
            if wanted is not found
        ),
    )


@law("state", per_operator=True)
def slots_run_what_the_rules_say(operator: Placed) -> list[Finding]:
    """Every slot runs the kernel that the rules of the dispatch table give it."""
    return grouped(
        operator.entry.name,
        (
            (wanted.key, *_apart(_wanted(wanted), repr(slot.debug)))
            for wanted, slot in zip(operator.expected, operator.live, strict=True)
            if slot.token is not wanted.token
            or slot.kernel is not _kernel(wanted)
            or slot.key.name != wanted.key
        ),
    )


@law("state", per_operator=True)
def slots_say_which_rule_filled_them(operator: Placed) -> list[Finding]:
    """The provenance of every slot is the rule that gives it its kernel."""
    return grouped(
        operator.entry.name,
        (
            (wanted.key, wanted.provenance, slot.provenance)
            for wanted, slot in zip(operator.expected, operator.live, strict=True)
            if slot.provenance != wanted.provenance
        ),
    )


@law("state", per_operator=True)
def a_slot_without_kernel_says_missing(operator: Placed) -> list[Finding]:
    """A slot has no kernel exactly if its provenance is `missing`."""
    return grouped(
        operator.entry.name,
        (
            (slot.key.name, "no kernel", slot.debug)
            if slot.provenance == MISSING
            else (slot.key.name, f"a kernel, being {slot.provenance}", "none")
            for slot in operator.live
            if (slot.kernel is None) != (slot.provenance == MISSING)
        ),
    )


@law("state", per_operator=True)
def callers_belong_to_their_entry(operator: Placed) -> list[Finding]:
    """What an entry remembers for calling was built from its own parts."""
    caller = operator.entry.memo.get("caller")
    if caller is None:
        return []
    where = f"{operator.entry.name}, remembered caller"
    if caller.table is not operator.entry.table:
        return [(where, "built from this entry", "built from another")]
    if caller.schema is not operator.entry.schema:
        return [(where, str(operator.entry.schema), str(caller.schema))]
    if caller.runners.rules is not operator.entry.rules:
        return [(where, listed(operator.entry.rules), listed(caller.runners.rules))]
    return []


def _kernel(wanted: Expected) -> Kernel | None:
    if wanted.token is not None:
        return wanted.token.kernel
    return AMBIGUOUS if wanted.provenance == AMBIGUITY else None


def _wanted(slot: Expected) -> str:
    return repr(slot.provenance if slot.token is None else slot.token.debug)


def _debug(token: Fallback | None) -> str:
    return "no fallback" if token is None else repr(token.debug)


def _apart(wanted: str, found: str) -> tuple[str, str]:
    """Two texts; things that differ may be described alike."""
    return wanted, found if found != wanted else f"another {found}"


_BACKEND_BITS = (1 << len(BACKENDS)) - 1


@law("state", per_operator=True)
def masks_leave_out_what_falls_through(operator: Placed) -> list[Finding]:
    """A backend's mask lacks a functionality exactly if its slot falls through."""
    found = []
    masks = operator.entry.table.masks.by_backend
    wanted = second_masks(operator.expected)
    for backend, ours, theirs in zip(BACKENDS, wanted, masks, strict=True):
        if (ours ^ theirs) & ~_BACKEND_BITS:
            where = f"{operator.entry.name}, mask of {backend}"
            found.append((where, f"without {_cut(ours)}", f"without {_cut(theirs)}"))
    return found


@law("state", per_operator=True)
def a_mask_a_backend_only_where_two_differ(operator: Placed) -> list[Finding]:
    """An operator chooses its mask by backend only if two of its masks differ."""
    masks = operator.entry.table.masks
    if not masks.per_backend or len(set(masks.by_backend)) > 1:
        return []
    return [(f"{operator.entry.name}, masks", "one for all", "one a backend")]


@law("state", per_operator=True)
def one_mask_for_all_only_where_none_differ(operator: Placed) -> list[Finding]:
    """An operator has one mask for all backends only if all its masks are that one."""
    masks = operator.entry.table.masks
    if masks.per_backend or len(set(masks.by_backend)) == 1:
        return []
    return [(f"{operator.entry.name}, masks", "one a backend", "one for all")]


@law("state", per_operator=True)
def masks_hold_every_backend(operator: Placed) -> list[Finding]:
    """Every mask has the bits of all backends: fallthroughs cut functionalities."""
    return [
        (f"{operator.entry.name}, mask of {backend}", "all backends", f"{held:#x}")
        for backend, mask in zip(
            BACKENDS, operator.entry.table.masks.by_backend, strict=True
        )
        if (held := mask & _BACKEND_BITS) != _BACKEND_BITS
    ]


def _cut(mask: int) -> str:
    left = [
        layer.replace("*", "") or "Dense"
        for index, layer in enumerate(LAYERS)
        if not mask >> (len(BACKENDS) + index) & 1
    ]
    return ", ".join(left) or "nothing"
