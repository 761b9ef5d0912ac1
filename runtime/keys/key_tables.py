"""The literal tables from which every dispatch key derives.

They define which backends and functionalities exist, and their order.  Everything else
(bits, slots, names, alias members, guards, dump order) is computed from them, so that
adding a backend is adding one word.

Rules:
- position is priority: later in a table means dispatched to earlier in a call;
- a functionality with a prefix is per backend: it has one runtime key for each
  backend, named prefix + backend; one without a prefix is itself a runtime key;
- names are those of upstream 2.13, since dumps are compared byte for byte.

Changing a table moves slots and bits: the literal checks in `tests/keys` pin what
they are today, and the laws of `invariants` hold a second, independent table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Functionality:
    """The function of a key; `prefix` names its runtime keys if it is per backend."""

    name: str
    prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """A name for the runtime keys of some functionalities, less some backends."""

    name: str
    functionalities: tuple[str, ...]
    without_backends: tuple[str, ...] = ()


# Lowest to highest priority.  Meta is last so that a meta bit injected through the
# thread-local state wins over every backend that holds data.
BACKENDS: tuple[str, ...] = (
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

# Lowest to highest priority; the enum value of entry i is i + 1 (0 is Undefined).
FUNCTIONALITIES: tuple[Functionality, ...] = (
    Functionality("Dense", prefix=""),
    Functionality("FPGA"),
    Functionality("Vulkan"),
    Functionality("Metal"),
    Functionality("Quantized", prefix="Quantized"),
    Functionality("CustomRNGKeyId"),
    Functionality("MkldnnCPU"),
    Functionality("Sparse", prefix="Sparse"),
    Functionality("SparseCsr", prefix="SparseCsr"),
    Functionality("NestedTensor", prefix="NestedTensor"),
    Functionality("BackendSelect"),
    Functionality("Fake"),
    Functionality("Python"),
    Functionality("FuncTorchDynamicLayerBackMode"),
    Functionality("Functionalize"),
    Functionality("Conjugate"),
    Functionality("Negative"),
    Functionality("ZeroTensor"),
    Functionality("ADInplaceOrView"),
    Functionality("AutogradOther"),
    Functionality("AutogradFunctionality", prefix="Autograd"),
    Functionality("AutogradNestedTensor"),
    Functionality("Tracer"),
    Functionality("AutocastCPU"),
    Functionality("AutocastMTIA"),
    Functionality("AutocastMAIA"),
    Functionality("AutocastXPU"),
    Functionality("AutocastIPU"),
    Functionality("AutocastHPU"),
    Functionality("AutocastXLA"),
    Functionality("AutocastMPS"),
    Functionality("AutocastCUDA"),
    Functionality("AutocastPrivateUse1"),
    Functionality("FuncTorchBatched"),
    Functionality("BatchedNestedTensor"),
    Functionality("FuncTorchVmapMode"),
    Functionality("Batched"),
    Functionality("VmapMode"),
    Functionality("FuncTorchGradWrapper"),
    Functionality("DeferredInit"),
    Functionality("PythonTLSSnapshot"),
    Functionality("FuncTorchDynamicLayerFrontMode"),
    Functionality("TESTING_ONLY_GenericWrapper"),
    Functionality("TESTING_ONLY_GenericMode"),
    Functionality("PreDispatch"),
    Functionality("PythonDispatcher"),
)

PER_BACKEND: tuple[Functionality, ...] = tuple(
    f for f in FUNCTIONALITIES if f.prefix is not None
)

# Backends without a separate autograd key: AutogradOther handles them.
AUTOGRADOTHER: tuple[str, ...] = (
    "FPGA",
    "Vulkan",
    "Metal",
    "Quantized",
    "CustomRNGKeyId",
    "MkldnnCPU",
    "Sparse",
    "SparseCsr",
)

AUTOGRAD: tuple[str, ...] = (
    "AutogradOther",
    "AutogradFunctionality",
    "AutogradNestedTensor",
)

AUTOCAST: tuple[str, ...] = tuple(
    f.name for f in FUNCTIONALITIES if f.name.startswith("Autocast")
)

# In enum order, which is also their order in a dump.
ALIASES: tuple[Alias, ...] = (
    Alias("Autograd", AUTOGRAD),
    Alias(
        "CompositeImplicitAutograd",
        ("Dense", *AUTOGRADOTHER, "NestedTensor", *AUTOGRAD),
    ),
    Alias("FuncTorchBatchedDecomposition", ("FuncTorchBatched",)),
    Alias(
        "CompositeImplicitAutogradNestedTensor",
        ("NestedTensor", "AutogradNestedTensor"),
    ),
    Alias("CompositeExplicitAutograd", ("Dense", *AUTOGRADOTHER)),
    # Sparse tensors and the two lazy compilers need separate functional kernels.
    Alias(
        "CompositeExplicitAutogradNonFunctional",
        ("Dense", *(name for name in AUTOGRADOTHER if name != "Sparse")),
        without_backends=("XLA", "Lazy"),
    ),
)

# Autograd functionality -> the functionalities whose kernels it guards; where both
# sides are per backend, a key guards its own backend only.
GUARDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("AutogradOther", AUTOGRADOTHER),
    ("AutogradFunctionality", ("Dense",)),
    ("AutogradNestedTensor", ("NestedTensor",)),
)

# A thread starts with these (specification of the thread-local state).
INCLUDED_AT_START: tuple[str, ...] = ("BackendSelect", "ADInplaceOrView")
EXCLUDED_AT_START: tuple[str, ...] = AUTOCAST

# Keys that the "one key of a tensor" of older interfaces ignores.
LEGACY_IGNORED: tuple[str, ...] = (
    *AUTOGRAD,
    *AUTOCAST,
    "ADInplaceOrView",
    "Functionalize",
    "PythonTLSSnapshot",
    "FuncTorchGradWrapper",
    "FuncTorchVmapMode",
    "FuncTorchBatched",
    "Python",
)

# Names from C++ that no parser accepts -> their present names.
FORMER_NAMES: tuple[tuple[str, str], ...] = (
    ("CatchAll", "CompositeImplicitAutograd"),
    ("DefaultBackend", "CompositeExplicitAutograd"),
    ("Autocast", "AutocastCUDA"),
)

# Device type -> the key of its plain tensors.  PrivateUse2 and 3 have no device.
DEVICES: tuple[tuple[str, str], ...] = (
    ("cpu", "CPU"),
    ("cuda", "CUDA"),
    ("hip", "HIP"),
    ("xla", "XLA"),
    ("mps", "MPS"),
    ("ipu", "IPU"),
    ("xpu", "XPU"),
    ("hpu", "HPU"),
    ("ve", "VE"),
    ("lazy", "Lazy"),
    ("mtia", "MTIA"),
    ("maia", "MAIA"),
    ("privateuseone", "PrivateUse1"),
    ("meta", "Meta"),
    ("fpga", "FPGA"),
    ("vulkan", "Vulkan"),
)
