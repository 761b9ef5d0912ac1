"""The fallbacks that every dispatcher starts with, and what they let pass."""

import pytest

from runtime.dispatch import Dispatcher, Library, fallthrough
from runtime.dispatch.dispatcher import PASSED
from runtime.errors.registration import DuplicateFallback
from runtime.keys import (
    AUTOCAST_KEYS,
    AUTOGRAD_KEYS,
    SLOTS,
    DispatchKey,
    exclude_keys,
    members,
)
from runtime.tensors import tensor
from tests.dispatch.samples import defined, op, silent


def test_the_fallbacks() -> None:
    fallbacks = Dispatcher().snapshot().fallbacks
    names = {SLOTS[n].name for n, held in enumerate(fallbacks.slots) if held}
    others = {"BackendSelect", "ADInplaceOrView", "FuncTorchVmapMode", "VmapMode"}
    autograd = {key.name for key in members(DispatchKey.Autograd)}
    autocast = {key.name for key in AUTOCAST_KEYS}
    assert names == others | autograd | autocast
    assert {held.kernel for held in fallbacks.tokens} == {fallthrough}
    assert {held.debug for held in fallbacks.tokens} == {"built in"}
    assert "Autograd" in PASSED


def test_a_plain_call_passes_all_of_them() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", lambda x: x, "CPU")
    x = tensor([1.0], requires_grad=True)
    assert op(d).call(x) is x
    with exclude_keys(AUTOGRAD_KEYS):
        assert op(d).call(x) is x


def test_new_dispatchers_share_one_state() -> None:
    assert Dispatcher().snapshot() is Dispatcher().snapshot()


def test_a_built_in_fallback_cannot_be_closed_and_the_error_knows() -> None:
    library = Library("_", "IMPL", dispatcher=Dispatcher(), origin="here")
    with pytest.raises(DuplicateFallback) as caught:
        library.fallback(fallthrough, "BackendSelect")
    assert str(caught.value).splitlines()[-1] == (
        "  Take a Dispatcher(builtin_fallbacks=False), which has none. "
        "Nothing of the new one was registered."
    )
