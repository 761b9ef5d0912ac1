"""The rules of the dispatch table, as data.

True only here: which key a slot draws its kernel from.  `RULES` is read from top to
bottom; each row takes, of the slots that are still empty, those in `slots`, if its
source has a kernel and its condition holds.  A direct kernel comes before all rows, a
fallback after them.  Sets of slots are ints with bit `i` for slot `i`; slot 0, the call
without any key, belongs to three aliases although it is no member of them.

What depends on these rows: `recipe` evaluates them.  The laws have a second statement
of the same rules, written by other means; neither may import the other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from runtime.keys import AUTOGRADOTHER_BACKENDS, SLOTS, DispatchKey, members
from runtime.keys.dispatch_key import guarded_backends

# Slot 0 is `Undefined`: no dispatch key is left.
UNDEFINED_SLOT = 1
ALL_SLOTS = (1 << len(SLOTS)) - 1


def slots_of(keys: Iterable[DispatchKey]) -> int:
    """The set of the slots of runtime keys."""
    mask = 0
    for key in keys:
        assert key.slot is not None, "only runtime keys have a slot"
        mask |= 1 << key.slot
    return mask


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: `source` supplies `slots`, as `provenance`, under a condition.

    `condition` is `"always"`, `"unguarded"` (no kernel at a backend that the slot's
    autograd key guards, and none at CompositeExplicitAutograd) or `"ambiguous"` (some
    backend of AutogradOther has a kernel of its own; the slot gets a refusing kernel).
    """

    source: DispatchKey
    slots: int
    provenance: str
    condition: str = "always"


_CENF = DispatchKey.CompositeExplicitAutogradNonFunctional
_CE = DispatchKey.CompositeExplicitAutograd
_CINT = DispatchKey.CompositeImplicitAutogradNestedTensor
_CI = DispatchKey.CompositeImplicitAutograd
_FTBD = DispatchKey.FuncTorchBatchedDecomposition

RULES = (
    Rule(_CENF, slots_of(members(_CENF)) | UNDEFINED_SLOT, "default backend kernel"),
    Rule(_CE, slots_of(members(_CE)) | UNDEFINED_SLOT, "default backend kernel"),
    Rule(_CINT, slots_of(members(_CINT)), "nested kernel"),
    Rule(
        _CI,
        slots_of([DispatchKey.AutogradOther]),
        "ambiguous autogradother",
        "ambiguous",
    ),
    Rule(_CI, slots_of(members(_CI)) | UNDEFINED_SLOT, "math kernel", "unguarded"),
    Rule(
        DispatchKey.Autograd, slots_of(members(DispatchKey.Autograd)), "autograd kernel"
    ),
    Rule(_FTBD, slots_of(members(_FTBD)), "batched kernel"),
)

# The key whose kernel makes every slot count as guarded.
GUARDS_EVERYTHING = _CE

# For every backend key: the autograd slots that a kernel there guards.
GUARDED_SLOTS: dict[DispatchKey, int] = {}
for _slot_key in SLOTS[1:]:
    for _backend in guarded_backends(_slot_key):
        _held = GUARDED_SLOTS.get(_backend, 0)
        GUARDED_SLOTS[_backend] = _held | slots_of([_slot_key])

AUTOGRADOTHER_SLOTS = slots_of(AUTOGRADOTHER_BACKENDS)
