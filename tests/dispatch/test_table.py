"""The rules of spec 4.1 to 4.3, row by row, on the live table.

Each case names the keys that have a kernel and, for some slots, what they hold; a
kernel is described by its key.
"""

import pytest

from runtime.dispatch import Dispatcher, Library, fallthrough
from runtime.dispatch.state import OperatorEntry
from runtime.dispatch.table import AMBIGUOUS, numbers, table_of
from runtime.keys import SLOTS, DispatchKey
from tests.dispatch.samples import bare, says, silent

CI = "CompositeImplicitAutograd"
CE = "CompositeExplicitAutograd"
CENF = "CompositeExplicitAutogradNonFunctional"
CINT = "CompositeImplicitAutogradNestedTensor"
FTBD = "FuncTorchBatchedDecomposition"
MATH = f"{CI} [math kernel]"
EXPLICIT = f"{CE} [default backend kernel]"
NONFUNCTIONAL = f"{CENF} [default backend kernel]"
AUTOGRAD = "Autograd [autograd kernel]"
AMBIGUITY = "ambiguous_autogradother [ambiguous autogradother]"
MISSING = "missing"


def filled(dispatcher: Dispatcher, *keys: str) -> dict[str, str]:
    library = Library("test", "FRAGMENT", dispatcher=dispatcher, origin="here")
    for key in keys:
        library.impl("foo", says(key), key, debug=key)
    lines = dispatcher.dump_table("test::foo").splitlines()
    library.close()
    return dict(line.split(": ", 1) for line in lines)


def entry_of(dispatcher: Dispatcher) -> OperatorEntry:
    found = dispatcher.entry("test::foo")
    assert found is not None
    return found


CASES = [
    pytest.param(
        ("CPU",),
        {"CPU": "CPU [kernel]", "Undefined": MISSING, "AutogradCPU": MISSING},
        id="1-direct",
    ),
    pytest.param(
        (CENF,),
        {
            "Undefined": NONFUNCTIONAL,
            "CPU": NONFUNCTIONAL,
            "SparseCsrCPU": NONFUNCTIONAL,
            "FPGA": NONFUNCTIONAL,
            "SparseCPU": MISSING,
            "XLA": MISSING,
            "QuantizedLazy": MISSING,
            "SparseCsrXLA": MISSING,
            "NestedTensorCPU": MISSING,
            "AutogradCPU": MISSING,
        },
        id="2.1-nonfunctional",
    ),
    pytest.param(
        (CENF, CE),
        {"CPU": NONFUNCTIONAL, "XLA": EXPLICIT, "SparseCPU": EXPLICIT},
        id="2.1-before-2.2",
    ),
    pytest.param(
        (CE,),
        {
            "Undefined": EXPLICIT,
            "CPU": EXPLICIT,
            "Meta": EXPLICIT,
            "SparseXLA": EXPLICIT,
            "MkldnnCPU": EXPLICIT,
            "NestedTensorCPU": MISSING,
            "BackendSelect": MISSING,
            "Python": MISSING,
            "AutogradCPU": MISSING,
        },
        id="2.2-explicit",
    ),
    pytest.param(
        (CINT, CI),
        {
            "NestedTensorCPU": f"{CINT} [nested kernel]",
            "AutogradNestedTensor": f"{CINT} [nested kernel]",
            "CPU": MATH,
            "Undefined": MATH,
        },
        id="2.3a-nested",
    ),
    pytest.param(
        (CI,),
        {
            "Undefined": MATH,
            "CPU": MATH,
            "NestedTensorCPU": MATH,
            "AutogradCPU": MATH,
            "AutogradOther": MATH,
            "AutogradNestedTensor": MATH,
            "ADInplaceOrView": MISSING,
            "BackendSelect": MISSING,
            "FuncTorchBatched": MISSING,
        },
        id="2.3c-math",
    ),
    pytest.param(
        ("CPU", CI),
        {
            "CPU": "CPU [kernel]",
            "AutogradCPU": MISSING,
            "AutogradCUDA": MATH,
            "AutogradOther": MATH,
        },
        id="2.3c-guard-of-one-backend",
    ),
    pytest.param(
        ("CPU", CI, "Autograd"),
        {"AutogradCPU": AUTOGRAD, "AutogradCUDA": MATH, "AutogradOther": MATH},
        id="2.3c-before-2.4",
    ),
    *(
        pytest.param(
            (key, CI, "Autograd"),
            {"AutogradOther": AMBIGUITY, "AutogradCPU": MATH, key: f"{key} [kernel]"},
            id=f"2.3b-{key}",
        )
        for key in ("FPGA", "SparseCPU", "QuantizedCPU", "SparseCsrMeta", "MkldnnCPU")
    ),
    pytest.param(
        ("FPGA", CI, CE),
        {"AutogradOther": AMBIGUITY, "AutogradCPU": MISSING, "CPU": EXPLICIT},
        id="2.3b-before-the-explicit-guard",
    ),
    pytest.param(
        ("FPGA", CI, "AutogradOther"),
        {"AutogradOther": "AutogradOther [kernel]"},
        id="1-before-2.3b",
    ),
    pytest.param(
        (CENF, CI),
        {
            "CPU": NONFUNCTIONAL,
            "XLA": MATH,
            "Lazy": MATH,
            "SparseCPU": MATH,
            "AutogradCPU": MATH,
            "AutogradOther": MATH,
        },
        id="nonfunctional-guards-nothing",
    ),
    pytest.param(
        ("NestedTensorCPU", CI),
        {
            "NestedTensorCPU": "NestedTensorCPU [kernel]",
            "NestedTensorCUDA": MATH,
            "AutogradNestedTensor": MISSING,
            "AutogradCPU": MATH,
        },
        id="nested-guard",
    ),
    *(
        pytest.param(
            (backend, CI),
            {f"Autograd{backend}": MISSING, "AutogradOther": MATH},
            id=f"guard-of-{backend}",
        )
        for backend in ("HIP", "VE", "MTIA")
    ),
    pytest.param(
        ("CPU", "Autograd"),
        {
            "CPU": "CPU [kernel]",
            "AutogradCPU": AUTOGRAD,
            "AutogradOther": AUTOGRAD,
            "AutogradNestedTensor": AUTOGRAD,
            "CUDA": MISSING,
        },
        id="2.4-autograd",
    ),
    pytest.param(
        (CE, "Autograd"),
        {"CPU": EXPLICIT, "AutogradCPU": AUTOGRAD, "AutogradOther": AUTOGRAD},
        id="2.4-under-explicit",
    ),
    pytest.param(
        (FTBD,),
        {"FuncTorchBatched": f"{FTBD} [batched kernel]", "Batched": MISSING},
        id="2.5-batched",
    ),
    pytest.param((), {key.name: MISSING for key in SLOTS}, id="4-missing"),
]


@pytest.mark.parametrize(("keys", "expected"), CASES)
def test_rules(keys: tuple[str, ...], expected: dict[str, str]) -> None:
    for order in (keys, tuple(reversed(keys))):
        found = filled(bare(), *order)
        assert {slot: found.get(slot, MISSING) for slot in expected} == expected


def test_a_fallback_fills_what_is_left_and_nothing_else() -> None:
    d = bare()
    library = Library("_", "IMPL", dispatcher=d, origin="here")
    library.fallback(says(0), "CPU", debug="cpu falls back")
    assert filled(d, "CUDA") == {
        "CPU": "cpu falls back [backend fallback]",
        "CUDA": "CUDA [kernel]",
    }
    assert filled(d, "CPU") == {"CPU": "CPU [kernel]"}
    assert filled(d, CE)["CPU"] == EXPLICIT


def test_the_newest_kernel_of_a_key_is_the_active_one() -> None:
    d = bare()
    library = Library("test", "FRAGMENT", dispatcher=d, origin="here")
    handles = [library.impl("foo", says(i), "CPU", debug=str(i)) for i in range(3)]
    assert d.dump_table("test::foo") == "CPU: 2 [kernel]\n"
    handles[1].close()
    assert d.dump_table("test::foo") == "CPU: 2 [kernel]\n"
    handles[2].close()
    assert d.dump_table("test::foo") == "CPU: 0 [kernel]\n"
    handles[0].close()
    assert d.dump_table("test::foo") == ""


def test_a_slot_spells_out_its_kernel_its_token_and_its_reason() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d, origin="here")
    library.impl("foo", says(0), "FPGA", debug="fpga")
    library.impl("foo", says(0), CI, debug="composite")
    entry = entry_of(d)
    table = entry.table

    def slot(name: str) -> tuple[object, object, str, str]:
        found = table.slots()[DispatchKey[name].slot or 0]
        return found.kernel, found.token, found.debug, found.provenance

    token = entry.implementations[DispatchKey["FPGA"]][0]
    assert slot("FPGA") == (token.kernel, token, "fpga", "kernel")
    assert slot("AutogradOther") == (AMBIGUOUS, None, *AMBIGUITY[:-1].split(" [", 1))
    held = d.snapshot().fallbacks.slots[DispatchKey.BackendSelect.slot or 0]
    assert held is not None
    expected = (fallthrough, held, "built in", "backend fallback")
    assert slot("BackendSelect") == expected
    assert slot("Python") == (None, None, "missing", "missing")
    assert [each.key for each in table.slots()] == list(SLOTS)


@pytest.mark.parametrize(
    "keys", [(), (CI, "FPGA"), (CE, "CPU", "Autograd"), (CENF, CI)]
)
def test_what_calls_use_is_what_the_slots_say(keys: tuple[str, ...]) -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d, origin="here")
    for key in keys:
        library.impl("foo", says(key), key)
    kernels = entry_of(d).implementations if keys else {}
    table = table_of(kernels, d.snapshot().fallbacks)
    for number, slot in enumerate(table.slots()):
        held = table.held(number)
        assert slot == table.slot(number)
        assert held is (AMBIGUOUS if slot.kernel is AMBIGUOUS else slot.token)


def test_an_empty_operator_has_the_whole_table_at_once() -> None:
    d = silent()
    table = table_of({}, d.snapshot().fallbacks)
    present = [slot.key.name for slot in table.slots() if slot.kernel is not None]
    assert len(table.slots()) == 137
    assert present == [k.name for k in SLOTS if k.slot in held_slots(d)]


def held_slots(d: Dispatcher) -> set[int]:
    return {n for n, each in enumerate(d.snapshot().fallbacks.slots) if each}


def test_numbers_are_the_members_of_a_set_of_slots() -> None:
    assert numbers(0) == []
    assert numbers(0b1010_0001) == [0, 5, 7]
