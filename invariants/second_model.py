"""The laws' own statement of which keys there are, and of what stands for what.

True only here: nothing is taken from `runtime.keys` but the names that a state shows.
Every list below was written from the specification of upstream 2.13, by hand, and in
another form than the runtime's; when the model gains a backend or a functionality, both
have to be changed, and the laws tell whoever forgets one of them.

Rules:
- names only: a key is its name;
- `LAYERS` is the order of priority, lowest first; a star stands for the sixteen
  backends;
- a slot is a place in `SLOTS`; the layer at index `i` owns mask bit `16 + i`.
"""

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
    """The keys of a layer, lowest backend first."""
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

# Backends without an autograd key of their own: every kernel there makes an implicit
# kernel at AutogradOther ambiguous.
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
# Sparse tensors, and whatever XLA and Lazy trace, want functional kernels of their own.
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

# Autograd slot -> the backend keys that it stands before.  Upstream forgets HIP, VE
# and MTIA; here, by decision, every backend is guarded by its own autograd key.
GUARDS = {
    **{f"Autograd{backend}": frozenset({backend}) for backend in BACKENDS},
    AUTOGRAD_OTHER: BEHIND_AUTOGRAD_OTHER,
    AUTOGRAD_NESTED: _NESTED,
}

# Where a kernel can be registered: at a key with a slot, or at an alias.
KERNEL_KEYS = frozenset(SLOTS[1:]) | ALIASES
