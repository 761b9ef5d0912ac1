from everyorder.runtime.keys.key_tables import (
    AUTOCAST,
    BACKENDS,
    DEVICES,
    FUNCTIONALITIES,
    GUARDS,
    LEGACY_IGNORED,
    PER_BACKEND,
)

# Written by hand from the specification: position in the text = bit.
BITS_16_TO_61 = """
Dense FPGA Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsr
NestedTensor BackendSelect Fake Python FuncTorchDynamicLayerBackMode Functionalize
Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality
AutogradNestedTensor Tracer AutocastCPU AutocastMTIA AutocastMAIA AutocastXPU
AutocastIPU AutocastHPU AutocastXLA AutocastMPS AutocastCUDA AutocastPrivateUse1
FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode
FuncTorchGradWrapper DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode
TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode PreDispatch PythonDispatcher
"""


def test_backends_in_order_of_priority() -> None:
    assert " ".join(BACKENDS) == (
        "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA "
        "PrivateUse1 PrivateUse2 PrivateUse3 Meta"
    )


def test_functionalities_in_order_of_priority() -> None:
    assert [each.name for each in FUNCTIONALITIES] == BITS_16_TO_61.split()


def test_per_backend_functionalities_and_their_prefixes() -> None:
    assert [(each.name, each.prefix) for each in PER_BACKEND] == [
        ("Dense", ""),
        ("Quantized", "Quantized"),
        ("Sparse", "Sparse"),
        ("SparseCsr", "SparseCsr"),
        ("NestedTensor", "NestedTensor"),
        ("AutogradFunctionality", "Autograd"),
    ]


def test_ten_autocast_keys() -> None:
    assert list(AUTOCAST) == BITS_16_TO_61.split()[39 - 16 : 49 - 16]
    assert len(AUTOCAST) == 10


def test_no_name_is_used_twice() -> None:
    names = [*BACKENDS, *(each.name for each in FUNCTIONALITIES)]
    assert len(names) == len(set(names)) == 62
    assert len({kind for kind, _ in DEVICES}) == len(DEVICES)


def test_tables_name_only_functionalities_that_exist() -> None:
    known = {each.name for each in FUNCTIONALITIES}
    assert known >= set(LEGACY_IGNORED)
    assert known >= {name for guard, kept in GUARDS for name in (guard, *kept)}
