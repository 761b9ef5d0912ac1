"""Handles of operators: asked and called by name, and never stale."""

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest

from everyorder.runtime.dispatch import Library, default_dispatcher, fallthrough
from everyorder.runtime.dispatch.registration_record import Implementation
from everyorder.runtime.errors.call import (
    CallError,
    CannotRun,
    KernelError,
    MissingKernel,
    OperatorGone,
)
from everyorder.runtime.errors.registration import LibraryMisuse, LookupFailed
from everyorder.runtime.keys import DispatchKey, KeySet, exclude_keys
from everyorder.runtime.schema import OperatorName
from tests.coded import code
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
    with pytest.raises(CannotRun, check=code("CallWithoutSchema")):
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
    with pytest.raises(LookupFailed, check=code("NoKernelForKey")) as caught:
        op(d).has_computed_kernel(key)
    assert (caught.value.key, caught.value.available) == (key, ("CPU",))


def test_binding_without_a_call() -> None:
    d = silent()
    library = defined(d, "foo(int x, int[2] y=1, *, str z='a') -> int")
    assert op(d).bind((1,), {"z": "b"}) == [1, [1, 1], "b"]
    with pytest.raises(CallError, check=code("MissingArgument")):
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
    with pytest.raises(KernelError, check=code("FallthroughCalled")):
        at("XLA")
    for key in ("AutogradCPU", "CompositeImplicitAutograd", "Undefined"):
        with pytest.raises(LookupFailed, check=code("NoKernelForKey")) as caught:
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
    overloads = handle.overloadpacket
    assert overloads.b.name == OperatorName("test::foo", "b")
    assert overloads.b.overloadpacket.default is handle
    with pytest.raises(LookupFailed, check=code("NoSuchOverload")) as caught:
        overloads.c  # noqa: B018  # asked for, not used
    assert caught.value.fields() == {
        "operator": "test::foo",
        "overload": "c",
        "near": ("default", "b"),
    }


def test_each_slot_that_falls_through_refuses_by_its_own_name() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", fallthrough, "Autograd")
    said = []
    for key in ("AutogradCPU", "AutogradCUDA"):
        with pytest.raises(KernelError, check=code("FallthroughCalled")) as caught:
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


def test_names_of_a_handle() -> None:
    d = silent()
    library = defined(d)
    library.define("foo.out(Tensor x) -> Tensor")
    library.impl("foo", lambda x: x, "CPU")
    plain, out = op(d), op(d, "test::foo.out")
    for _ in range(20):
        plain(on("CPU"))
    for handle, overload in ((plain, "default"), (out, "out")):
        assert handle.__module__ == "everyorder.runtime.ops.test"
        assert handle.__name__ == f"foo.{overload}"
        assert str(handle) == f"test.foo.{overload}"
        assert (handle.namespace, handle.overload) == ("test", overload)
        assert handle._schema is handle.schema
        packet = handle.overloadpacket
        assert packet is plain.overloadpacket
        assert getattr(packet, overload) is handle
    assert str(plain.overloadpacket) == "test.foo"
    assert repr(out) == "<OperatorHandle test::foo.out>"


def test_whether_an_operator_makes_views() -> None:
    from everyorder.runtime import ops

    assert ops.core.view.default.is_view
    assert not ops.core.add_.default.is_view
    assert not ops.core.mul.default.is_view


def test_an_operator_of_the_runtime() -> None:
    from everyorder import runtime

    func = runtime.ops.core.mul.default
    assert func is runtime.ops.core.mul.default
    assert func is default_dispatcher().find_op("core::mul")
    assert func.overloadpacket is runtime.ops.core.mul
    assert (
        f"{func.__module__}.{func.__name__}"
        == "everyorder.runtime.ops.core.mul.default"
    )
    assert str(func) == "core.mul.default"
    assert func is runtime.ops.core.mul.out.overloadpacket.default


def test_a_copy_is_the_operator_itself() -> None:
    d = silent()
    defined(d)
    handle = op(d)
    packet = handle.overloadpacket
    for each in (handle, packet):
        assert copy.copy(each) is each
        assert copy.deepcopy({"a": [each]})["a"][0] is each


def test_pickling_goes_by_the_name() -> None:
    from everyorder import runtime

    handle, packet = runtime.ops.core.mul.out, runtime.ops.core.mul
    for each in (handle, packet, default_dispatcher()):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(each, protocol)) is each


@pytest.mark.parametrize(
    ("overload", "use", "shown"),
    [
        (None, "print(found(2.0, 3.0))", "tensor(6.)"),
        ("default", "print(found.schema)", "core::mul(Tensor self, Tensor other) -> "),
    ],
)
def test_an_operator_of_the_runtime_arrives_in_a_process_that_had_none(
    overload: str | None, use: str, shown: str
) -> None:
    from everyorder import runtime

    mul = runtime.ops.core.mul
    packed = pickle.dumps(mul if overload is None else getattr(mul, overload))
    program = f"import pickle, sys; found = pickle.load(sys.stdin.buffer); {use}"
    run = subprocess.run(
        [sys.executable, "-c", program], input=packed, capture_output=True, check=True
    )
    assert run.stdout.decode().startswith(shown)


def test_operators_of_other_dispatchers_are_not_pickled() -> None:
    d = silent()
    defined(d)
    for each in (op(d), op(d).overloadpacket, d):
        with pytest.raises(LibraryMisuse, check=code("PrivateDispatcher")) as caught:
            pickle.dumps(each)
        assert str(caught.value) == (
            "Only the default dispatcher and its operators can be pickled or "
            "copied: another\n"
            "process cannot find this one.\n"
            "  to do: send the operator's name, and look it up there"
        )


def test_normalizing_a_call() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x, int[2] y=1, *, ScalarType z=float) -> int")
    x = on("CPU")
    args, kwargs = op(d).normalize((x,), {"z": 4})
    assert (args, str(kwargs)) == ((x, [1, 1]), "{'z': int64}")
    assert op(d).normalize((), {"x": x, "y": [2]})[0] == (x, [2])
    with pytest.raises(CallError, check=code("MissingArgument")):
        op(d).normalize((), {})
    with pytest.raises(CallError, check=code("TooManyArguments")):
        op(d).normalize((x, 1, 2), {})
    library.define("bar(Tensor x, Tensor y) -> int", tags=("numbers_as_tensors",))
    (_, number), _ = op(d, "test::bar").normalize((x, 2.5), {})
    assert number.number == 2.5
    handle = op(d)
    library.close()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        handle.normalize((x,), {})


def test_what_a_handle_knows() -> None:
    d = silent()
    library = defined(d)
    handle = op(d)
    assert handle.dispatcher is d
    assert handle.entry is d.state.entry(handle.name)
    assert handle.reading.schema is handle.schema
    library.close()
    for name in ("entry", "reading"):
        with pytest.raises(OperatorGone, check=code("OperatorGone")):
            getattr(handle, name)


def test_what_is_gone_has_no_overloads() -> None:
    d = silent()
    library = defined(d)
    handle = op(d)
    library.close()
    with pytest.raises(OperatorGone, check=code("OverloadGone")) as caught:
        handle.overloadpacket.out  # noqa: B018  # asked for, not used
    assert caught.value.fields() == {"operator": "test::foo"}
