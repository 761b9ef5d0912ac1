"""The rows of upstream's `op_registration_test.cpp` about registering and calling.

The rows about which of several keys wins are in `test_upstream_keys`.  A "catch-all"
kernel is one at CompositeImplicitAutograd; a C++ lambda is an annotated function.

| upstream row | test here |
|---|---|
| whenRegisteringWith{Schema,Name}{Before,After}Kernel... | order_of_parts |
| whenRegisteringWithoutSchema, givenOpWithoutKernels_...WithoutSchema | no_schema |
| whenCallingOpWithWrongDispatchKey | wrong_dispatch_key |
| givenOpWithCatchallKernel_whenCallingOp | catchall_kernel |
| givenOpWith{Dispatched,Catchall}KernelOutOfScope | kernel_out_of_scope |
| givenOpWithoutKernels_whenRegisteringWithSchema | only_schema |
| givenOpWithoutKernels_whenRunningOutOfScope | out_of_scope_schema_is_gone |
| givenOpWithoutKernelsWithoutTensorInputs | without_tensor_inputs |
| givenMultiple{KernelsWithSameDispatchKey,CatchallKernels} | same_key_twice |
| whenRegisteringCPUTensorType | precomputed_keyset |
| whenRegisteringMultipleKernelsInSameOpCall | multiple_kernels |
| ...ByName/BySchema/OnlyOneCanInferSchema | who_infers_the_schema |
| whenRegisteringMismatchingKernelsInSameOpCall | mismatching_kernels |
| whenregisteringwithinvalidoverloadname, erroroutwith... | invalid_overload_name |
| givenLambdaKernel_...MismatchingCppSignatures (all) | mismatching_signatures |
| ...whenAccessing...WithMismatchingCppSignatures | access_with_wrong_arguments |
| testAvailableArgTypes | `test_upstream_types` |
| testBasics | basics |
| importTopLevel, importNamespace, overload, schema | names_and_schemas |
| TorchLibraryTwiceIsError | library_twice_is_error |
| CppFunction | all_ways_to_pass_a_kernel |
| testDelayedListener | delayed_listener |
| testImplNoDefGetsCaught | impl_no_def_gets_caught |
| callKernelsWithDispatchKeySetConvention_{call,callBoxed,mixed} | keyset_convention |
| getRegistrationsForDispatchKey | registrations_for_dispatch_key |
"""

from itertools import permutations
from typing import Any

import pytest

from everyorder.runtime import ops
from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    boxed,
    default_dispatcher,
    fallthrough,
)
from everyorder.runtime.errors.call import CallError, MissingKernel
from everyorder.runtime.errors.registration import Conflict, LibraryMisuse
from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.keys import DispatchKey, KeySet, full_after, include_keys
from everyorder.runtime.schema import parse_schema
from everyorder.runtime.tensors import Tensor
from tests.coded import code
from tests.dispatch.samples import (
    FOO,
    Ear,
    defined,
    on,
    op,
    says,
    silent,
    t_t,
    tt_t,
    untyped,
)

CPU, CUDA = on("CPU"), on("CUDA")


def fragment(d: Dispatcher) -> Library:
    return Library("test", "FRAGMENT", dispatcher=d, origin="here")


def test_order_of_parts() -> None:
    for order in permutations(range(3)):
        d = silent()
        library = fragment(d)
        parts = (
            lambda lib=library: lib.define("foo(Tensor x) -> str"),
            lambda lib=library: lib.impl("foo", says("ran")),
            lambda lib=library: lib.reserve("foo"),
        )
        for number in order:
            parts[number]()
        assert op(d).call(CUDA) == "ran"


def test_no_schema() -> None:
    library = fragment(silent())
    with pytest.raises(LibraryMisuse, check=code("CannotInfer")):
        library.define("foo", kernel=says(1))
    with pytest.raises(SchemaSyntaxError):
        library.define("foo")


def test_wrong_dispatch_key() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", t_t, "CPU")
    with pytest.raises(MissingKernel) as caught:
        op(d).call(CUDA)
    assert (caught.value.key, caught.value.reason) == ("CUDA", "no kernel")
    assert caught.value.available[0] == "CPU"


def test_catchall_kernel() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", t_t)
    for name in ("CPU", "CUDA", "XLA", "SparseCPU", "QuantizedMeta", "FPGA"):
        x = on(name)
        assert op(d).call(x) is x


@pytest.mark.parametrize("first", ["dispatched", "catchall"])
def test_kernel_out_of_scope(first: str) -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> str")
    held = {
        "dispatched": library.impl("foo", says("dispatched"), "CPU"),
        "catchall": library.impl("foo", says("catchall")),
    }
    assert op(d).call(CPU) == "dispatched"
    held.pop(first).close()
    (left,) = held
    assert op(d).call(CPU) == left
    held[left].close()
    with pytest.raises(MissingKernel):
        op(d).call(CPU)


def test_only_schema() -> None:
    d = silent()
    library = defined(d)
    assert str(d.find_schema("test::foo")) == f"test::{FOO}"
    with pytest.raises(MissingKernel):
        op(d).call(CPU)
    library.close()


def test_out_of_scope_schema_is_gone() -> None:
    d = silent()
    with defined(d):
        assert d.find_op("test::foo") is not None
    assert d.find_op("test::foo") is None


def test_without_tensor_inputs() -> None:
    d = silent()
    library = defined(d, "foo() -> int")
    library.impl("foo", says(3))
    assert op(d).call() == 3


def test_same_key_twice() -> None:
    library = defined(silent())
    for key in ("CPU", None):
        library.impl("foo", t_t, key)
        with pytest.raises(Conflict, check=code("OverrideForbidden")):
            library.impl("foo", t_t, key, allow_override=False)


def test_precomputed_keyset() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> str")
    library.impl("foo", says("cpu"), "CPU")
    assert op(d).redispatch(KeySet(DispatchKey.CPU), CUDA) == "cpu"
    with pytest.raises(MissingKernel):
        op(d).redispatch(KeySet(DispatchKey.CUDA), CPU)


def test_multiple_kernels() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> str")
    library.impl("foo", says("cpu"), "CPU")
    library.impl("foo", says("cuda"), "CUDA")
    assert (op(d).call(CPU), op(d).call(CUDA)) == ("cpu", "cuda")
    with pytest.raises(MissingKernel) as caught:
        op(d).call(on("XLA"))
    assert caught.value.available[:2] == ("CPU", "CUDA")


def test_who_infers_the_schema() -> None:
    d = silent()
    library = fragment(d)
    library.impl("foo", says(1), "CUDA")  # others may tell nothing
    library.define("foo", kernel=t_t)
    assert str(op(d).schema) == "test::foo(Tensor _0) -> Tensor _0"
    library.define("bar(Tensor x) -> Tensor", kernel=says(1))
    with pytest.raises(LibraryMisuse, check=code("CannotInfer")):
        library.define("baz", kernel=boxed(says(1)))


def test_mismatching_kernels() -> None:
    d = silent()
    library = fragment(d)
    library.impl("foo", t_t, "CPU")
    with pytest.raises(Conflict, check=code("SignatureMismatch")):
        library.impl("foo", tt_t, "CUDA")


@pytest.mark.parametrize("name", ["foo.default", "foo.__name"])
def test_invalid_overload_name(name: str) -> None:
    library = fragment(silent())
    with pytest.raises(SchemaSyntaxError):
        library.define(f"{name}(Tensor x) -> Tensor")
    with pytest.raises(SchemaSyntaxError):
        library.impl(name, t_t, "CPU")


def typed_int(x: Tensor, n: int) -> None: ...
def typed_float(x: Tensor, n: float) -> None: ...


@pytest.mark.parametrize("keys", [("CPU", "CPU"), ("CPU", None), (None, "CPU")])
@pytest.mark.parametrize("schema", [True, False])
def test_mismatching_signatures(keys: Any, schema: bool) -> None:
    library = fragment(silent())
    if schema:
        library.define("foo(Tensor x, int n) -> ()")
    library.impl("foo", typed_int, keys[0])
    with pytest.raises(Conflict, check=code("SignatureMismatch")) as caught:
        library.impl("foo", typed_float, keys[1])
    assert caught.value.other_signature == "(Tensor _0, int _1) -> ()"
    assert caught.value.signature == "(Tensor _0, float _1) -> ()"


def test_access_with_wrong_arguments() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x, int n) -> ()")
    library.impl("foo", typed_int, "CPU")
    with pytest.raises(CallError, check=code("WrongArgumentType")) as caught:
        op(d).call(CPU, 1.5)
    assert caught.value.schema == "test::foo(Tensor x, int n) -> ()"
    with pytest.raises(CallError, check=code("TooManyArguments")):
        op(d).call(CPU, 1, 2)


def test_basics() -> None:
    d = silent()
    with Library("test", "DEF", dispatcher=d) as library:
        library.define(FOO)
        library.define("test::foo2(Tensor x) -> Tensor")
        library.define("bar", kernel=t_t)
        library.define("test::bar2", kernel=t_t)
        library.define("bar3(Tensor x) -> Tensor", kernel=t_t)
        with Library("test", "IMPL", dispatcher=d) as kernels:
            for name in ("foo", "test::foo2"):
                kernels.impl(name, t_t, "CPU")
                kernels.impl(name, t_t, DispatchKey.CUDA)
            for name in d.op_names():
                assert op(d, name).call(CPU) is CPU
                assert op(d, name).call(CUDA) is CUDA
        assert [op(d, n).has_schema for n in d.op_names()] == [True] * 5
    assert d.op_names() == ()


def test_names_and_schemas() -> None:
    d = silent()
    with fragment(d) as library:
        library.define("foo(Tensor x) -> Tensor", "CONSERVATIVE")
        library.define("foo.over(Tensor x) -> Tensor", "PURE_FUNCTION")
        library.define(parse_schema("raw(Tensor x) -> Tensor"))
        library.impl("foo", says(None), "CPU")
        assert d.op_names() == ("test::foo", "test::foo.over", "test::raw")
        assert not op(d, "test::foo.over").has_kernel("CPU")
        kinds = [d.dump_state(name).splitlines()[3] for name in d.op_names()]
        assert kinds == [
            "alias analysis kind: CONSERVATIVE",
            "alias analysis kind: PURE_FUNCTION",
            "alias analysis kind: CONSERVATIVE (default)",
        ]
        with pytest.raises(LibraryMisuse, check=code("NamespaceMismatch")):
            library.define("retest::foo(Tensor x) -> Tensor")


def test_library_twice_is_error() -> None:
    d = silent()
    with (
        Library("test", "DEF", dispatcher=d),
        pytest.raises(Conflict, check=code("NamespaceTaken")),
    ):
        Library("test", "DEF", dispatcher=d)
    Library("test", "DEF", dispatcher=d).close()


def test_all_ways_to_pass_a_kernel() -> None:
    d = silent()
    library = fragment(d)

    class Callee:
        def __call__(self, x: Tensor) -> Tensor:
            return x

        def method(self, x: Tensor) -> Tensor:
            return x

    def stack(operator: Any, keys: KeySet, values: list[Any]) -> None: ...

    ways: dict[str, Any] = {
        "function": t_t,
        "untyped": lambda x: x,
        "object": Callee(),
        "method": Callee().method,
        "boxed": boxed(stack),
        "with_keyset": untyped(lambda keys, x: x),
    }
    for name, kernel in ways.items():
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, kernel, "CPU", with_keyset=name == "with_keyset")
        library.impl(name, fallthrough, "AutogradCPU")
        assert op(d, f"test::{name}").call(on("CPU", "AutogradCPU")).key_bits


def test_delayed_listener() -> None:
    d = silent()
    library, ear = fragment(d), Ear()
    with d.add_listener(ear):
        kernel = library.impl("foo", t_t, "CPU")
        assert ear.heard == []
        definition = library.define(FOO)
        assert ear.heard == ["+test::foo"]
        definition.close()
        assert ear.heard == ["+test::foo", "-test::foo"]
        assert d.find_op("test::foo") is not None
        kernel.close()
    assert d.find_op("test::foo") is None


def test_impl_no_def_gets_caught() -> None:
    assert default_dispatcher().dangling_impls() == ()
    assert "<Operators>" in repr(ops)
    d = silent()
    with fragment(d) as library:
        library.impl("foo", t_t, "CPU")
        assert d.dangling_impls() == ("test::foo",)
    assert d.dangling_impls() == ()


@pytest.mark.parametrize("first", ["call", "callBoxed"])
@pytest.mark.parametrize("onward", ["redispatch", "redispatchBoxed"])
def test_keyset_convention(first: str, onward: str) -> None:
    d = silent()
    library = defined(d)
    reached: list[str] = []

    def going_on(key: str) -> Any:
        @untyped
        def kernel(keys: Any, x: Any) -> Any:
            reached.append(key)
            below = keys & full_after(DispatchKey[key])
            if onward == "redispatch":
                return op(d).redispatch(below, x)
            return op(d).redispatch_boxed(below, [x])[0]

        return kernel

    for key in ("Tracer", "AutogradCPU"):
        library.impl("foo", going_on(key), key, with_keyset=True)

    @untyped
    def last(x: Any) -> Any:
        reached.append("CPU")
        return x

    library.impl("foo", last, "CPU")
    x = on("CPU", "AutogradCPU")
    with include_keys(DispatchKey.Tracer):
        found = op(d).call(x) if first == "call" else op(d).call_boxed([x])[0]
    assert found is x
    assert reached == ["Tracer", "AutogradCPU", "CPU"]


def test_registrations_for_dispatch_key() -> None:
    d = silent()
    library = fragment(d)
    library.impl("a", t_t, "CPU")
    library.impl("b", t_t, "CUDA")
    assert set(d.registrations_for("CPU")) < set(d.registrations_for())


def test_a_schema_and_a_kernel_that_differ() -> None:
    library = defined(silent())
    with pytest.raises(Conflict, check=code("SchemaMismatch")):
        library.impl("foo", typed_int)
