"""Laws of the masks: what falls through is cut out of calls, per backend.

True only here: masks are raw bits, backends low.  The second masks come from the
second table, so a mask that was forgotten when a table changed shows.
"""

from invariants.law import Finding, law
from invariants.placed import Placed
from invariants.second_model import BACKENDS, LAYERS
from invariants.second_table import second_masks

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
