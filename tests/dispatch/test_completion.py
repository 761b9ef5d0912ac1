"""How kernels and keys given to a library are completed."""

from runtime.dispatch import Dispatcher, Library
from runtime.dispatch.arguments import kernel_for


def test_a_made_kernel_can_still_be_asked_to_take_the_keyset() -> None:
    kernel = kernel_for("impl()", lambda x: x, False)
    assert not kernel.with_keyset
    assert kernel_for("impl()", kernel, True).with_keyset
    assert kernel_for("impl()", kernel, False) is kernel


def test_a_key_named_twice_gets_one_kernel() -> None:
    d = Dispatcher(builtin_fallbacks=False)
    with Library("test", "FRAGMENT", dispatcher=d) as library:
        library.impl("foo", lambda x: x, ["CPU", "CUDA", "CPU"])
        assert d.snapshot().namespaces["test"]["test::foo"].total == 2
