"""Recipes: one for each set of keys, whatever the order, covering every slot once."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from runtime.dispatch.table import (
    ALL_SLOTS,
    GUARDED_SLOTS,
    RULES,
    UNDEFINED_SLOT,
    recipe_of,
)
from runtime.keys import SLOTS, DispatchKey

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
