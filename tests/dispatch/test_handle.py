"""Handles of operators: asked and called by name, and never stale."""

from typing import Any

import pytest

from runtime.dispatch import Library, fallthrough
from runtime.dispatch.token import Implementation
from runtime.errors.call import (
    CallWithoutSchema,
    FallthroughCalled,
    MissingArgument,
    MissingKernel,
    NoSuchOverload,
    OperatorGone,
)
from runtime.errors.registration import NoKernelForKey
from runtime.keys import DispatchKey, KeySet, exclude_keys
from runtime.schema import OperatorName
from tests.dispatch.samples import FOO, bare, defined, on, op, says, silent

CE = "CompositeExplicitAutograd"


def test_a_handle_is_a_name_and_works_again_when_the_operator_is_back() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    held = library.define("foo(int x) -> int")
    kernel = library.impl("foo", says(1), CE)
    handle = op(d)
    assert (handle.call(0), handle(0), repr(handle)) == (
        1,
        1,
        "<OperatorHandle test::foo>",
    )
    held.close()
    assert not handle.has_schema
    with pytest.raises(CallWithoutSchema):
        handle(0)
    kernel.close()
    for ask in (
        lambda: handle(0),
        lambda: handle.call(0),
        lambda: handle.call_boxed([0]),
        lambda: handle.bind((0,), {}),
        lambda: handle.redispatch(KeySet(), 0),
        lambda: handle.redispatch_boxed(KeySet(), [0]),
        lambda: handle.call_for_key(DispatchKey.CPU, [0]),
        lambda: handle.schema,
        lambda: handle.tags,
        lambda: handle.has_kernel("CPU"),
        lambda: handle.has_computed_kernel("CPU"),
    ):
        with pytest.raises(OperatorGone) as caught:
            ask()
        assert caught.value.fields() == {"operator": "test::foo"}
    assert not handle.has_schema
    assert (handle.dump_state(), handle.dump_table()) == ("", "")
    library.define("foo(str x) -> str")
    library.impl("foo", says("again"), CE)
    assert handle("a") == "again"


def test_what_a_handle_tells() -> None:
    d = bare()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.define(FOO, tags=("core",))
    library.impl("foo", says(1), ["CPU", "Autograd"])
    handle = op(d)
    assert handle.name == OperatorName("test::foo")
    assert (str(handle.schema), handle.has_schema, handle.tags) == (
        "test::foo(Tensor x) -> Tensor",
        True,
        ("core",),
    )
    assert handle.has_kernel("CPU")
    assert handle.has_kernel(DispatchKey.Autograd)
    assert not handle.has_kernel("AutogradCPU")
    assert handle.has_computed_kernel("AutogradCPU")
    assert handle.has_computed_kernel(DispatchKey.CPU)
    assert not handle.has_computed_kernel("Undefined")
    assert handle.dump_state() == d.dump_state("test::foo")
    assert handle.dump_table() == d.dump_table("test::foo")


@pytest.mark.parametrize("key", ["Autograd", "Dense"])
def test_keys_without_a_slot_have_no_computed_kernel(key: str) -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", says(1), "CPU")
    with pytest.raises(NoKernelForKey) as caught:
        op(d).has_computed_kernel(key)
    assert (caught.value.key, caught.value.available) == (key, ("CPU",))


def test_binding_without_a_call() -> None:
    d = silent()
    library = defined(d, "foo(int x, int[2] y=1, *, str z='a') -> int")
    assert op(d).bind((1,), {"z": "b"}) == [1, [1, 1], "b"]
    with pytest.raises(MissingArgument):
        op(d).bind((), {})
    library.close()


def test_5_4_calling_for_one_key() -> None:
    d = bare()
    library = defined(d, "foo(Tensor x) -> str")
    wild = Library("_", "IMPL", dispatcher=d)
    wild.fallback(lambda o, *args: f"fallback of {o.name}", "Meta")
    wild.fallback(fallthrough, "XLA")
    library.impl("foo", says("old"), "CPU")
    library.impl("foo", lambda keys, x: f"cpu {keys}", "CPU", with_keyset=True)
    library.impl("foo", says("autograd"), "Autograd")
    handle, x = op(d), on("CUDA")

    def at(key: str) -> Any:
        return handle.call_for_key(DispatchKey[key], [x])

    # The kernel gets the keyset that an ordinary call would have.
    assert at("CPU") == ["cpu KeySet(CUDA, BackendSelect, ADInplaceOrView)"]
    assert at("Autograd") == ["autograd"]
    assert at("Meta") == ["fallback of test::foo"]
    with pytest.raises(FallthroughCalled):
        at("XLA")
    for key in ("AutogradCPU", "CompositeImplicitAutograd", "Undefined"):
        with pytest.raises(NoKernelForKey) as caught:
            at(key)
        assert caught.value.fields() == {
            "operator": "test::foo",
            "key": key,
            "available": ("Autograd", "CPU"),
        }
    with exclude_keys([DispatchKey.CPU]):
        assert at("Autograd") == ["autograd"]


def test_overloads() -> None:
    d = silent()
    library = defined(d)
    library.define("foo.b(int x) -> int")
    library.impl("foo.c", says(1), "CPU")
    handle = op(d)
    assert handle.overload("b").name == OperatorName("test::foo", "b")
    assert handle.overload("b").overload("default").name == handle.name
    assert handle.overload("").name == handle.name
    assert not handle.overload("c").has_schema
    with pytest.raises(NoSuchOverload) as caught:
        handle.overload("d")
    assert caught.value.fields() == {
        "operator": "test::foo",
        "overload": "d",
        "near": ("default", "b", "c"),
    }


def test_each_slot_that_falls_through_refuses_by_its_own_name() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", fallthrough, "Autograd")
    said = []
    for key in ("AutogradCPU", "AutogradCUDA"):
        with pytest.raises(FallthroughCalled) as caught:
            op(d).redispatch(KeySet(DispatchKey[key]), on("CPU"))
        said.append(caught.value.key)
    assert said == ["AutogradCPU", "AutogradCUDA"]


def test_a_redispatch_to_nothing_says_so() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", says(0), "CPU")
    with pytest.raises(MissingKernel) as caught:
        op(d).redispatch(KeySet(), on("CPU"))
    error = caught.value
    assert (error.reason, error.keyset) == ("nothing to redispatch to", "KeySet()")
    assert str(error).startswith(
        "`test::foo` cannot run: the key set of the redispatch names no key."
    )


def test_a_long_lived_kernel_does_not_remember_every_definition() -> None:
    d = silent()
    library = Library("test", "IMPL", dispatcher=d, origin="here")
    (token,) = library.impl("foo", lambda x: x, "CPU").tokens
    assert isinstance(token, Implementation)
    for number in range(100):
        with Library("test", "DEF", dispatcher=d, origin=f"{number}") as definer:
            definer.define(FOO)
            op(d).call(on("CPU"))
    assert 0 < len(token.memo) <= 16


def test_a_key_may_be_given_by_name() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", lambda x: x, "CPU")
    x = on("CPU")
    assert op(d).call_for_key("CPU", [x]) == [x]
