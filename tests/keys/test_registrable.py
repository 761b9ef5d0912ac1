import pytest

from runtime.errors.key import NotRegistrable
from runtime.keys import DispatchKey, fallback_keys, kernel_key, members

K = DispatchKey
BLOCKS = [key for key in DispatchKey if key.kind == "building_block"]


def test_a_kernel_is_kept_at_its_key() -> None:
    for key in DispatchKey:
        if key not in BLOCKS and key is not K.Undefined:
            assert kernel_key(key) is key
            assert fallback_keys(key) == members(key) != ()


def test_a_kernel_without_a_key_is_composite() -> None:
    assert kernel_key(K.Undefined) is K.CompositeImplicitAutograd


@pytest.mark.parametrize("key", BLOCKS)
def test_building_blocks_take_nothing(key: DispatchKey) -> None:
    with pytest.raises(NotRegistrable) as kernel:
        kernel_key(key)
    with pytest.raises(NotRegistrable) as fallback:
        fallback_keys(key)
    assert kernel.value.fields() | {"subject": "fallback"} == fallback.value.fields()
    assert kernel.value.key == key.name
    assert [K.parse(name).functionality for name in kernel.value.instead] == [
        key.name
    ] * 16


def test_text_for_a_building_block() -> None:
    with pytest.raises(NotRegistrable) as caught:
        kernel_key(K.Dense)
    assert str(caught.value) == (
        "a kernel cannot be registered at Dense: it is half a key, and calls go to "
        "whole ones.  Register at CPU, CUDA, HIP, XLA, MPS, IPU, XPU, HPU, VE, Lazy, "
        "MTIA, MAIA, PrivateUse1, PrivateUse2, PrivateUse3 or Meta."
    )


def test_text_for_undefined() -> None:
    with pytest.raises(NotRegistrable) as caught:
        fallback_keys(K.Undefined)
    assert str(caught.value) == (
        "a fallback cannot be registered at Undefined: it stands for a call in which "
        "no key is left.  Register at a runtime key or an alias."
    )
