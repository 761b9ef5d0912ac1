"""The table of an operator: the rules of spec 4.1 to 4.3, recipes, masks.

Each case of the rules names the keys that have a kernel and, for some slots, what they
hold; a kernel is described by its key.
"""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.dispatch import Dispatcher, Library, fallthrough
from everyorder.runtime.dispatch.dispatch_table import (
    ALL_SLOTS,
    AMBIGUOUS,
    GUARDED_SLOTS,
    RULES,
    UNDEFINED_SLOT,
    masks_of,
    numbers,
    recipe_of,
    table_of,
)
from everyorder.runtime.dispatch.state import OperatorEntry
from everyorder.runtime.keys import BACKEND_BITS, FULL, SLOTS, DispatchKey
from everyorder.runtime.keys.key_tables import BACKENDS
from tests.dispatch.samples import bare, says, silent

pytestmark = pytest.mark.spec("dispatch 9.2", "4 the guard of autograd")

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
        held = table.content(number)
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


KEYS = tuple(key for key in DispatchKey if key.is_alias or key.slot)


def test_equal_sets_have_one_recipe() -> None:
    keys = [DispatchKey[n] for n in ("CPU", "Autograd", "CompositeImplicitAutograd")]
    assert len({id(recipe_of(order)) for order in permutations(keys)}) == 1
    assert recipe_of(keys) is not recipe_of(keys[:2])


@given(st.sets(st.sampled_from(KEYS), max_size=8))
def test_lines_and_rest_cover_every_slot_exactly_once(keys: set[DispatchKey]) -> None:
    recipe = recipe_of(keys)
    seen = recipe.rest
    for line in recipe.lines:
        assert line.slots
        assert not seen & line.slots
        assert line.source in keys
        assert line.ambiguous == (line.provenance == "ambiguous autogradother")
        seen |= line.slots
    assert seen == ALL_SLOTS == (1 << 137) - 1
    assert recipe.sources == tuple(
        (None if line.ambiguous else line.source, line.slots) for line in recipe.lines
    )
    assert recipe.number == sum(1 << key.value for key in keys)


def test_rules_say_who_fills_the_undefined_slot() -> None:
    assert [rule.source.name for rule in RULES if rule.slots & UNDEFINED_SLOT] == [
        "CompositeExplicitAutogradNonFunctional",
        "CompositeExplicitAutograd",
        "CompositeImplicitAutograd",
    ]


def test_every_backend_key_guards_the_autograd_key_of_its_tensors() -> None:
    names = {
        key.name: [SLOTS[n].name for n in range(137) if slots >> n & 1]
        for key, slots in GUARDED_SLOTS.items()
    }
    assert names["CPU"] == ["AutogradCPU"]
    assert names["HIP"] == ["AutogradHIP"]
    assert names["SparseCPU"] == names["FPGA"] == ["AutogradOther"]
    assert names["NestedTensorCUDA"] == ["AutogradNestedTensor"]
    assert "BackendSelect" not in names
    assert "AutogradCPU" not in names


CPU, META = BACKENDS.index("CPU"), BACKENDS.index("Meta")


def cleared(*names: str) -> list[int]:
    masks = masks_of(sum(1 << (DispatchKey[name].slot or 0) for name in names))
    return [FULL.bits & ~mask for mask in masks.by_backend]


def test_nothing_falls_through() -> None:
    masks = masks_of(0)
    assert masks.by_backend == (FULL.bits,) * 16
    assert not masks.per_backend


def test_a_key_for_all_backends_is_cleared_for_all() -> None:
    bit = DispatchKey.ADInplaceOrView.bits
    assert cleared("ADInplaceOrView") == [bit] * 16
    slot = DispatchKey.ADInplaceOrView.slot or 0
    assert not masks_of(1 << slot).per_backend


def test_a_key_of_one_backend_is_cleared_for_that_one() -> None:
    functionality = DispatchKey.AutogradFunctionality.bits
    found = cleared("AutogradMeta")
    assert found[META] == functionality
    assert [bits for index, bits in enumerate(found) if index != META] == [0] * 15
    assert masks_of(1 << (DispatchKey.AutogradMeta.slot or 0)).per_backend


def test_all_backends_one_by_one_are_as_good_as_one_key() -> None:
    every = [f"Autograd{backend}" for backend in BACKENDS]
    assert cleared(*every) == [DispatchKey.AutogradFunctionality.bits] * 16
    slots = sum(1 << (DispatchKey[name].slot or 0) for name in every)
    assert not masks_of(slots).per_backend


def test_backend_bits_are_never_cleared() -> None:
    masks = masks_of((1 << len(SLOTS)) - 2)
    assert all(mask & BACKEND_BITS == BACKEND_BITS for mask in masks.by_backend)
    assert all(mask == BACKEND_BITS for mask in masks.by_backend)
