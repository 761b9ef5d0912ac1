"""The second table and the runtime's table agree, slot by slot, on every small set.

Neither knows the other, so what they agree on would have to be wrong twice.
"""

from itertools import combinations
from random import Random

import pytest

from everyorder.invariants import second_masks, second_table, slot_reached
from everyorder.invariants.second_table import (
    ALIASES,
    GUARDS,
    KERNEL_KEYS,
    LAYERS,
    MEMBERS,
    NUMBERS,
    SLOTS,
)
from everyorder.invariants.second_table import AMBIGUOUS as AMBIGUITY
from everyorder.runtime.dispatch import Dispatcher, Library, fallthrough
from everyorder.runtime.dispatch.dispatch_table import (
    AMBIGUOUS,
    Fallbacks,
    fallbacks_of,
    table_of,
)
from everyorder.runtime.dispatch.registration_record import Fallback, Implementation
from everyorder.runtime.keys import SLOTS as RUNTIME_SLOTS
from everyorder.runtime.keys import (
    DispatchKey,
    KeySet,
    guarded_backends,
    mask_index,
    members,
)
from everyorder.runtime.keys import slot_of as runtime_slot_of

KEYS = sorted(
    (k for k in DispatchKey if k.kind not in ("undefined", "building_block")),
    key=lambda key: key.value,
)


def kernels() -> dict[DispatchKey, tuple[Implementation, ...]]:
    """One kernel for every key; each third falls through."""
    dispatcher = Dispatcher(builtin_fallbacks=False, warns_of_overrides=False)
    library = Library("d", "FRAGMENT", dispatcher=dispatcher, origin="test")
    for number, key in enumerate(KEYS):
        kernel = fallthrough if number % 3 == 0 else lambda *_: None
        library.impl("f", kernel, key, debug=key.name)
    entry = dispatcher.entry("d::f")
    assert entry is not None
    return dict(entry.implementations)


KERNELS = kernels()
FALLBACKS = {
    "none": fallbacks_of(()),
    "built in": Dispatcher().snapshot().fallbacks,
    "many": fallbacks_of(
        Fallback((key,), KERNELS[key][0].kernel, f"fallback {key.name}")
        for number, key in enumerate(RUNTIME_SLOTS[1:])
        if number % 4
    ),
}


def disagreements(keys: tuple[DispatchKey, ...], fallbacks: Fallbacks) -> list[str]:
    """The slots that the two tables fill differently, and masks that differ."""
    held = {key: KERNELS[key] for key in keys}
    table = table_of(held, fallbacks)
    second = second_table(held, fallbacks.tokens)
    found = []
    for slot, expected in zip(table.slots(), second, strict=True):
        kernel = None if expected.token is None else expected.token.kernel
        if expected.provenance == AMBIGUITY:
            kernel = AMBIGUOUS
        if (slot.key.name, slot.kernel, slot.token, slot.provenance) != (
            expected.key,
            kernel,
            expected.token,
            expected.provenance,
        ):
            found.append(f"{keys}: {slot} {expected}")
    if second_masks(second) != table.masks.by_backend:
        found.append(f"{keys}: masks")
    return found


@pytest.mark.parametrize("fallbacks", FALLBACKS)
def test_no_key_and_single_keys(fallbacks: str) -> None:
    held = FALLBACKS[fallbacks]
    assert disagreements((), held) == []
    assert [d for key in KEYS for d in disagreements((key,), held)] == []


@pytest.mark.slow
def test_all_pairs_without_fallbacks() -> None:
    held = FALLBACKS["none"]
    assert [d for p in combinations(KEYS, 2) for d in disagreements(p, held)] == []


def test_pairs_of_keys_that_depend_on_each_other_with_fallbacks() -> None:
    chosen = [
        key
        for key in KEYS
        if key.is_alias
        or key.backend in (None, "CPU", "HIP", "XLA", "Meta")
        or key.functionality == "NestedTensor"
    ]
    random = Random(5)  # reproducible, not secret
    pairs = list(combinations(chosen, 2))
    for name in ("built in", "many"):
        sample = random.sample(pairs, 500)
        assert [
            d for pair in sample for d in disagreements(pair, FALLBACKS[name])
        ] == []


@pytest.mark.parametrize("fallbacks", FALLBACKS)
def test_random_triples(fallbacks: str) -> None:
    random = Random(7)  # reproducible, not secret
    aliases = [key for key in KEYS if key.is_alias]
    held = FALLBACKS[fallbacks]
    for number in range(500):
        # Aliases take part in half of all triples: most rules are about them.
        first = aliases if number % 2 else KEYS
        triple = (random.choice(first), *random.sample(KEYS, 2))
        assert disagreements(tuple(dict.fromkeys(triple)), held) == []


def test_all_aliases_together() -> None:
    aliases = [key for key in KEYS if key.is_alias]
    for size in range(1, len(aliases) + 1):
        for chosen in combinations(aliases, size):
            for backend in ("CPU", "SparseCPU", "NestedTensorCPU", "FPGA"):
                keys = (*chosen, DispatchKey.parse(backend))
                assert disagreements(keys, FALLBACKS["none"]) == []


def test_the_two_models_name_the_same_slots() -> None:
    assert len(SLOTS) == 137
    assert tuple(key.name for key in RUNTIME_SLOTS) == SLOTS
    assert [NUMBERS[key.name] for key in RUNTIME_SLOTS] == list(range(137))
    assert len(LAYERS) == 46


def test_the_two_models_agree_on_members_guards_and_keys_of_kernels() -> None:
    assert {key.name for key in KEYS} == KERNEL_KEYS
    assert {key.name for key in KEYS if key.is_alias} == ALIASES
    for alias in ALIASES:
        assert {k.name for k in members(DispatchKey.parse(alias))} == MEMBERS[alias]
    assert {
        key.name: {each.name for each in guarded_backends(key)}
        for key in RUNTIME_SLOTS
        if guarded_backends(key)
    } == GUARDS


def test_the_two_ways_from_a_keyset_to_a_slot_agree() -> None:
    random = Random(11)  # reproducible, not secret
    masks = second_masks(second_table(KERNELS, ()))
    full = [(1 << 62) - 1] * 16
    for _ in range(2000):
        arguments = KeySet(random.sample(RUNTIME_SLOTS[1:], random.randint(0, 4))).bits
        included = KeySet(random.sample(RUNTIME_SLOTS[1:], random.randint(0, 2))).bits
        excluded = KeySet(random.sample(RUNTIME_SLOTS[1:], random.randint(0, 2))).bits
        for used in (masks, full):
            bits = (arguments | included) & (0xFFFF | ~excluded)
            bits &= used[mask_index(arguments)]
            reached = slot_reached(arguments, included, excluded, used)
            assert reached == RUNTIME_SLOTS[runtime_slot_of(bits)].name
