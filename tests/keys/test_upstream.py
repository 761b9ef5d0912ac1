"""The keys against those of an installed torch, where there is one."""

import random
from typing import Any

import pytest

from everyorder.runtime.keys import (
    AUTOGRADOTHER_BACKENDS,
    FULL,
    DispatchKey,
    KeySet,
    full_after,
    is_member,
)

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")


def _known() -> dict[DispatchKey, Any]:
    """Our keys that torch also shows to Python."""
    theirs = torch._C.DispatchKey.__members__
    return {key: theirs[key.name] for key in DispatchKey if key.name in theirs}


def _samples() -> list[KeySet]:
    choice = random.Random(0)  # a fixed seed: the same sets in every run
    keys = list(_known())
    return [KeySet(choice.sample(keys, choice.randrange(6))) for _ in range(300)]


def test_values_and_bits() -> None:
    known = _known()
    assert len(known) > 100
    for key, twin in known.items():
        assert (key.name, key.value) == (torch._C._dispatch_key_name(twin), twin.value)
        assert key.bits == torch._C.DispatchKeySet(twin).raw_repr()


def test_full_sets() -> None:
    assert FULL.bits == torch._C._dispatch_keyset_full().raw_repr()
    others = torch._C._dispatch_autogradother_backends
    assert AUTOGRADOTHER_BACKENDS.bits == others.raw_repr()
    for key, twin in _known().items():
        if key.bits:
            after = torch._C._dispatch_keyset_full_after(twin)
            assert full_after(key).bits == after.raw_repr()


def test_membership() -> None:
    known = _known()
    for alias, their_alias in known.items():
        if not alias.is_alias:
            continue
        for key, twin in known.items():
            # An alias as a member is our deviation; half keys are never asked for.
            if key.is_runtime:
                theirs = torch._C._dispatch_is_included_in_alias(twin, their_alias)
                assert is_member(key, alias) is theirs, (key, alias)


def test_printing_and_highest_key() -> None:
    for keyset in _samples():
        twin = torch._C.DispatchKeySet.from_raw_repr(keyset.bits)
        text = torch._C._dispatch_keyset_to_string(twin)
        assert repr(keyset) == text.removeprefix("Dispatch")
        if keyset.highest_key.kind != "building_block":
            assert keyset.highest_key.value == twin.highestPriorityTypeId().value


def test_has_and_remove() -> None:
    known = _known()
    for keyset in _samples():
        twin = torch._C.DispatchKeySet.from_raw_repr(keyset.bits)
        for key, their_key in known.items():
            if key.bits:
                assert keyset.has(key) is twin.has(their_key)
                assert keyset.remove(key).bits == twin.remove(their_key).raw_repr()
                assert keyset.add(key).bits == twin.add(their_key).raw_repr()
