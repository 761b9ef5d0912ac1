"""The laws' own keys, dispatch table and masks, stated and computed a second time.

An independent implementation of the same specification: it uses nothing of
`runtime.keys` except the names that a state shows, and shares no code and no data, so
that a mistake would have to be made twice.  The lists were written from the
specification of upstream 2.13, by hand, and in another form than the runtime's; a new
backend or functionality must be added to both, and the laws report a missing one.  The
runtime states its rules as sets of slots and fills a table set by set; here every slot
is computed separately, one condition after the other, and the first match counts.

Rules:
- names only: a key is its name; a table draws on names, and the kernel of each name is
  filled in afterwards; the answer for a set of names is cached by that set;
- `LAYERS` is the order of priority, lowest first; a star means the sixteen backends; a
  slot is a place in `SLOTS`; the layer at index `i` owns mask bit `16 + i`.

Source of the rules: the order of upstream's table computation, 2.13, with a separate
autograd key that guards each backend.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from everyorder.runtime.dispatch.registration_record import Fallback, Implementation
from everyorder.runtime.dispatch.state import Implementations

BACKENDS = (
    "CPU",
    "CUDA",
    "HIP",
    "XLA",
    "MPS",
    "IPU",
    "XPU",
    "HPU",
    "VE",
    "Lazy",
    "MTIA",
    "MAIA",
    "PrivateUse1",
    "PrivateUse2",
    "PrivateUse3",
    "Meta",
)

LAYERS = (
    "*",
    "FPGA",
    "Vulkan",
    "Metal",
    "Quantized*",
    "CustomRNGKeyId",
    "MkldnnCPU",
    "Sparse*",
    "SparseCsr*",
    "NestedTensor*",
    "BackendSelect",
    "Fake",
    "Python",
    "FuncTorchDynamicLayerBackMode",
    "Functionalize",
    "Conjugate",
    "Negative",
    "ZeroTensor",
    "ADInplaceOrView",
    "AutogradOther",
    "Autograd*",
    "AutogradNestedTensor",
    "Tracer",
    "AutocastCPU",
    "AutocastMTIA",
    "AutocastMAIA",
    "AutocastXPU",
    "AutocastIPU",
    "AutocastHPU",
    "AutocastXLA",
    "AutocastMPS",
    "AutocastCUDA",
    "AutocastPrivateUse1",
    "FuncTorchBatched",
    "BatchedNestedTensor",
    "FuncTorchVmapMode",
    "Batched",
    "VmapMode",
    "FuncTorchGradWrapper",
    "DeferredInit",
    "PythonTLSSnapshot",
    "FuncTorchDynamicLayerFrontMode",
    "TESTING_ONLY_GenericWrapper",
    "TESTING_ONLY_GenericMode",
    "PreDispatch",
    "PythonDispatcher",
)

AUTOGRAD_ALIAS = "Autograd"
IMPLICIT = "CompositeImplicitAutograd"
BATCHED = "FuncTorchBatchedDecomposition"
IMPLICIT_NESTED = "CompositeImplicitAutogradNestedTensor"
EXPLICIT = "CompositeExplicitAutograd"
EXPLICIT_NON_FUNCTIONAL = "CompositeExplicitAutogradNonFunctional"

ALIASES = frozenset(
    {
        AUTOGRAD_ALIAS,
        IMPLICIT,
        BATCHED,
        IMPLICIT_NESTED,
        EXPLICIT,
        EXPLICIT_NON_FUNCTIONAL,
    }
)

UNDEFINED = "Undefined"
AUTOGRAD_OTHER = "AutogradOther"
AUTOGRAD_NESTED = "AutogradNestedTensor"


def _spread(layer: str) -> list[str]:
    """Return the keys of a layer, lowest backend first."""
    if "*" not in layer:
        return [layer]
    return [layer.replace("*", backend) for backend in BACKENDS]


# Slot number -> name of the key; 137 of them.
SLOTS = (UNDEFINED, *(name for layer in LAYERS for name in _spread(layer)))

NUMBERS = {name: number for number, name in enumerate(SLOTS)}

# Name of the key -> (index of its layer, index of its backend or None).
PLACES = {
    name: (index, position if "*" in layer else None)
    for index, layer in enumerate(LAYERS)
    for position, name in enumerate(_spread(layer))
}

# Backends without a separate autograd key: every kernel there makes an implicit kernel
# at AutogradOther ambiguous.
BEHIND_AUTOGRAD_OTHER = frozenset(
    ["FPGA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU"]
    + [
        name
        for layer in ("Sparse*", "SparseCsr*", "Quantized*")
        for name in _spread(layer)
    ]
)

_AUTOGRAD = frozenset([*_spread("Autograd*"), AUTOGRAD_OTHER, AUTOGRAD_NESTED])
_NESTED = frozenset(_spread("NestedTensor*"))
_EXPLICIT = BEHIND_AUTOGRAD_OTHER | frozenset(BACKENDS)
# Sparse tensors, and tensors of XLA and Lazy, need separate functional kernels.
_WANTS_FUNCTIONAL = frozenset(_spread("Sparse*")) | frozenset(
    layer.replace("*", backend)
    for layer in LAYERS
    if "*" in layer
    for backend in ("XLA", "Lazy")
)

# Alias -> the slots that its kernel can supply; Undefined is named by the rules.
MEMBERS = {
    AUTOGRAD_ALIAS: _AUTOGRAD,
    IMPLICIT: _EXPLICIT | _NESTED | _AUTOGRAD,
    BATCHED: frozenset({"FuncTorchBatched"}),
    IMPLICIT_NESTED: _NESTED | {AUTOGRAD_NESTED},
    EXPLICIT: _EXPLICIT,
    EXPLICIT_NON_FUNCTIONAL: _EXPLICIT - _WANTS_FUNCTIONAL,
}

# Autograd slot -> the backend keys that it guards.  Upstream omits HIP, VE and MTIA;
# here, by decision, every backend is guarded by its own autograd key.
GUARDS = {
    **{f"Autograd{backend}": frozenset({backend}) for backend in BACKENDS},
    AUTOGRAD_OTHER: BEHIND_AUTOGRAD_OTHER,
    AUTOGRAD_NESTED: _NESTED,
}

# Keys at which a kernel can be registered: those with a slot, and aliases.
KERNEL_KEYS = frozenset(SLOTS[1:]) | ALIASES

# Provenances of slots that draw on no key of the operator.
FALLBACK = "backend fallback"
MISSING = "missing"
AMBIGUOUS = "ambiguous autogradother"

# All subsets of twelve keys.
REMEMBERED = 4096

# Creates a named tuple from its fields, in half the time that its own class needs.
_MAKE = tuple.__new__
_BACKEND_BITS = (1 << len(BACKENDS)) - 1
_ALL_BITS = (1 << (len(BACKENDS) + len(LAYERS))) - 1


class Expected(NamedTuple):
    """The expected content of a slot: a registration, or None, and its provenance.

    None is an empty or an ambiguous slot.
    """

    key: str
    token: Implementation | Fallback | None
    provenance: str

    @property
    def falls_through(self) -> bool:
        """Return True if the slot's kernel is a fallthrough, which is never called."""
        return self.token is not None and self.token.kernel.function is None


def second_table(
    implementations: Implementations, fallbacks: Iterable[Fallback]
) -> tuple[Expected, ...]:
    """Return the expected content of each of the 137 slots, by number."""
    newest = {key.name: tokens[0] for key, tokens in implementations.items() if tokens}
    spread = {key.name: token for token in fallbacks for key in token.keys}
    slots = []
    for slot, (source, provenance) in zip(
        SLOTS, _sources(frozenset(newest)), strict=True
    ):
        token: Implementation | Fallback | None
        if provenance is None:
            token = spread.get(slot)
            provenance = MISSING if token is None else FALLBACK
        else:
            token = newest[source] if source else None
        slots.append(_MAKE(Expected, (slot, token, provenance)))
    return tuple(slots)


def second_masks(table: Iterable[Expected]) -> tuple[int, ...]:
    """Return one mask a backend: all bits except those of layers that fall through."""
    everywhere, cleared = _ALL_BITS, [0] * len(BACKENDS)
    for slot in table:
        token = slot.token
        if token is None or token.kernel.function is not None or slot.key == UNDEFINED:
            continue
        layer, own = PLACES[slot.key]
        bit = 1 << (len(BACKENDS) + layer)
        if own is None:
            everywhere &= ~bit
        else:
            cleared[own] |= bit
    return tuple([everywhere & ~bits for bits in cleared])


def slot_reached(
    arguments: int, included: int, excluded: int, masks: Sequence[int]
) -> str:
    """Return the slot of a call, from the joined keysets of its tensors.

    The mask is selected by the highest backend among the arguments alone; a call
    without any uses the first.  Exclusion never removes a backend.
    """
    backends = [b for b in range(len(BACKENDS)) if arguments >> b & 1]
    bits = (arguments | included) & (~excluded | _BACKEND_BITS)
    bits &= masks[backends[-1] if backends else 0]
    backends = [b for b in range(len(BACKENDS)) if bits >> b & 1]
    for index in reversed(range(len(LAYERS))):
        if bits >> (len(BACKENDS) + index) & 1:
            backend = BACKENDS[backends[-1] if backends else 0]
            return LAYERS[index].replace("*", backend)
    return UNDEFINED


@lru_cache(maxsize=REMEMBERED)
def _sources(present: frozenset[str]) -> tuple[tuple[str | None, str | None], ...]:
    """Return for each slot the key that it draws on, and why; (None, None) if none."""
    return tuple(_source(slot, present) for slot in SLOTS)


def _source(slot: str, present: frozenset[str]) -> tuple[str | None, str | None]:
    """Return the source of one slot; the first match counts."""
    undefined = slot == UNDEFINED
    if slot in present:
        return slot, "kernel"
    for alias in (EXPLICIT_NON_FUNCTIONAL, EXPLICIT):
        if alias in present and (undefined or slot in MEMBERS[alias]):
            return alias, "default backend kernel"
    if IMPLICIT_NESTED in present and slot in MEMBERS[IMPLICIT_NESTED]:
        return IMPLICIT_NESTED, "nested kernel"
    if IMPLICIT in present and (undefined or slot in MEMBERS[IMPLICIT]):
        if slot == AUTOGRAD_OTHER and present & BEHIND_AUTOGRAD_OTHER:
            return None, AMBIGUOUS
        if EXPLICIT not in present and not present & GUARDS.get(slot, frozenset()):
            return IMPLICIT, "math kernel"
    if AUTOGRAD_ALIAS in present and slot in MEMBERS[AUTOGRAD_ALIAS]:
        return AUTOGRAD_ALIAS, "autograd kernel"
    if BATCHED in present and slot in MEMBERS[BATCHED]:
        return BATCHED, "batched kernel"
    return None, None
