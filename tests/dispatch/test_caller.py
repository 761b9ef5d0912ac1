"""Calls: which kernel they reach and what it is given (spec 5.1, 5.2, 5.8, 5.10)."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime.dispatch import Library, boxed, fallthrough
from everyorder.runtime.dispatch.kernel_lookup import caller_of
from everyorder.runtime.errors.call import (
    CallError,
    CannotRun,
    MissingKernel,
    OperatorGone,
)
from everyorder.runtime.keys import (
    LOCAL,
    DispatchKey,
    KeySet,
    exclude_keys,
    full_after,
    include_keys,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors import Tensor, tensor
from everyorder.runtime.tensors.keys import keys_of
from tests.coded import code
from tests.dispatch.samples import FOO, bare, defined, on, op, says, silent, untyped

CE = "CompositeExplicitAutograd"
FLOAT = DType.named("float32")


def reached(schema: str, *args: Any, keys: tuple[str, ...] = ("CPU", CE)) -> str:
    """The key whose kernel such a call reaches, every kernel naming its key."""
    d = silent()
    library = defined(d, schema)
    for key in keys:
        library.impl("foo", says(key), key)
    found: str = op(d).call(*args)
    return found


# Which arguments dispatch


@pytest.mark.parametrize(
    ("schema", "argument"),
    [
        ("foo(Tensor x) -> str", on("CPU")),
        ("foo(Tensor? x) -> str", on("CPU")),
        ("foo(Tensor[] x) -> str", [on("CPU")]),
        ("foo(Tensor[2] x) -> str", [on("CPU"), on("CPU")]),
        ("foo(Tensor?[] x) -> str", [None, on("CPU")]),
    ],
)
def test_5_1_these_types_dispatch(schema: str, argument: Any) -> None:
    assert reached(schema, argument) == "CPU"


@pytest.mark.parametrize(
    ("schema", "argument"),
    [
        ("foo(Tensor[]? x) -> str", [on("CPU")]),
        ("foo(Tensor?[]? x) -> str", [on("CPU")]),
        ("foo(Tensor[][] x) -> str", [[on("CPU")]]),
        ("foo((Tensor, Tensor) x) -> str", (on("CPU"), on("CPU"))),
        ("foo(Dict(str, Tensor) x) -> str", {"a": on("CPU")}),
        ("foo(Any x) -> str", on("CPU")),
        ("foo(Union(Tensor, int) x) -> str", on("CPU")),
        ("foo(Generator x) -> str", object()),
    ],
)
def test_5_1_these_do_not_and_the_call_goes_to_undefined(
    schema: str, argument: Any
) -> None:
    assert reached(schema, argument) == CE


def test_5_1_none_contributes_nothing() -> None:
    assert reached("foo(Tensor x, Tensor? y, Tensor?[] z) -> str", None, None, []) == CE


def test_5_1_without_a_schema_there_is_no_call_and_no_argument_is_looked_at() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.impl("foo", says(1), "CPU")
    entry = d.entry("test::foo")
    assert entry is not None
    assert (entry.extractor.tensors, entry.extractor.lists) == ((), ())
    with pytest.raises(CannotRun, check=code("CallWithoutSchema")) as caught:
        op(d).call(tensor(1.0))
    assert caught.value.fields() == {"operator": "test::foo"}
    with library.define("foo(int n, Tensor x, Tensor[] xs) -> int"):
        entry = d.entry("test::foo")
        assert entry is not None
        assert (entry.extractor.tensors, entry.extractor.lists) == ((1,), (2,))
    entry = d.entry("test::foo")
    assert entry is not None
    assert (entry.extractor.tensors, entry.extractor.lists) == ((), ())


# From arguments to a slot


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (on("CPU"), on("CPU"), "CPU"),
        (on("CPU"), on("CUDA"), "CUDA"),
        (on("CUDA"), on("CPU"), "CUDA"),
        (on("CPU"), on("Meta"), "Meta"),
        (on("SparseCPU"), on("CPU"), "SparseCPU"),
        (on("SparseCPU"), on("CUDA"), "SparseCUDA"),
        (on("AutogradCPU"), on("CUDA"), "AutogradCUDA"),
    ],
)
def test_5_2_the_highest_functionality_with_the_highest_backend(
    first: Tensor, second: Tensor, expected: str
) -> None:
    keys = (
        *("CPU", "CUDA", "Meta", "SparseCPU", "SparseCUDA"),
        *("AutogradCPU", "AutogradCUDA"),
    )
    schema = "foo(Tensor x, Tensor y) -> str"
    d = bare()
    library = defined(d, schema)
    passing = Library("_", "IMPL", dispatcher=d)
    for key in ("BackendSelect", "ADInplaceOrView"):
        passing.fallback(fallthrough, key)
    for key in keys:
        library.impl("foo", says(key), key)
    assert op(d).call(first, second) == expected


def test_5_2_included_and_excluded_keys() -> None:
    keys = ("CPU", "Tracer", "AutogradCPU", CE)
    schema = "foo(Tensor x) -> str"
    x = on("CPU", "AutogradCPU")
    assert reached(schema, x, keys=keys) == "AutogradCPU"
    with include_keys(DispatchKey.Tracer):
        assert reached(schema, x, keys=keys) == "Tracer"
        with exclude_keys(DispatchKey.Tracer):  # exclusion beats inclusion
            assert reached(schema, x, keys=keys) == "AutogradCPU"
    with exclude_keys([DispatchKey.AutogradCPU]):
        assert reached(schema, x, keys=keys) == "CPU"
    with include_keys(DispatchKey.CUDA):  # the backend joins the tensor's own
        assert reached(schema, x, keys=(*keys, "AutogradCUDA")) == "AutogradCUDA"


def test_5_2_fallthrough_is_granular() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", fallthrough, "AutogradMeta")
    for key in ("AutogradCPU", "CPU", "Meta"):
        library.impl("foo", says(on(key)), key)
    cpu, meta = on("CPU", "AutogradCPU"), on("Meta", "AutogradMeta")

    def shown(x: Tensor) -> str:
        return str(op(d).call(x).keyset)

    assert shown(cpu) == "KeySet(AutogradCPU)"
    assert shown(meta) == "KeySet(Meta)"
    mixed = cpu.with_keyset(cpu.keyset | meta.keyset)
    assert shown(mixed) == "KeySet(Meta)"


def missing(call: Callable[[], Any]) -> MissingKernel:
    with pytest.raises(MissingKernel) as caught:
        call()
    return caught.value


def test_5_2_all_keys_fell_through() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", fallthrough, "CPU", debug="skip")
    error = missing(lambda: op(d).call(on("CPU", "ADInplaceOrView")))
    fields = error.fields()
    assert fields.pop("table") == d.dump_table("test::foo")
    assert fields.pop("available")[0] == "CPU"
    assert fields == {
        "operator": "test::foo",
        "key": "Undefined",
        "keyset": "KeySet(CPU, ADInplaceOrView)",
        "reason": "all keys fell through",
    }
    assert "every key of the call is a fallthrough" in str(error)


def test_5_2_all_keys_excluded() -> None:
    d = silent()
    defined(d).impl("foo", says(1), "CPU")
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.define("bar(Tensor x) -> int")
    x = on("CPU")
    with exclude_keys([DispatchKey.CPU]):
        error = missing(lambda: op(d, "test::bar").call(x))
    assert (error.reason, error.key) == ("all keys excluded", "Undefined")
    assert error.keyset == "KeySet(CPU)"


def test_5_2_no_tensor_arguments() -> None:
    d = silent()
    library = Library("test", "FRAGMENT", dispatcher=d)
    library.define("bar(Tensor[] x) -> int")
    library.impl("bar", says(1), "CPU")
    error = missing(lambda: op(d, "test::bar").call([]))
    assert (error.reason, error.keyset) == ("no tensor arguments", "KeySet()")


def test_5_7_exceptions_of_kernels_pass_and_restore_everything() -> None:
    @untyped
    def kernel(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    d = silent()
    library = defined(d)
    library.impl("foo", kernel, "CPU")
    before = (LOCAL.included, LOCAL.excluded)
    with pytest.raises(ZeroDivisionError, match="mine"), d.trace():
        op(d).call(tensor(1.0))
    assert (LOCAL.included, LOCAL.excluded) == before


def test_5_8_missing_kernels() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", says(None), "CPU", debug="cpu")
    error = missing(lambda: op(d).call(tensor(1.0).with_keyset(keys_of("cuda"))))
    fields = error.fields()
    assert fields.pop("table") == d.dump_table("test::foo")
    assert "CPU" in fields.pop("available")
    assert fields == {
        "operator": "test::foo",
        "key": "CUDA",
        "keyset": "KeySet(CUDA)",
        "reason": "no kernel",
    }
    again = missing(lambda: op(d).call(tensor(1.0).with_keyset(keys_of("cuda"))))
    assert again.fields() == error.fields()
    assert isinstance(error, NotImplementedError)


def test_5_10_backend_select() -> None:
    @untyped
    def select(keys: Any, size: Any, device: Any = None) -> Any:
        key = DispatchKey.CPU if device is None else DispatchKey.CUDA
        below = keys & full_after(DispatchKey.BackendSelect)
        given = {} if device is None else {"device": device}
        return op(d).redispatch(below | KeySet(key), size, **given)

    d = silent()
    library = defined(d, 'foo(int size, *, Device device="cpu") -> str')
    library.impl("foo", select, "BackendSelect", with_keyset=True)
    library.impl("foo", lambda size: f"cpu {size}", "CPU")
    library.impl("foo", lambda size, device: f"{device} {size}", "CUDA")
    assert op(d).call(3) == "cpu 3"
    assert op(d).call(3, device="cuda:1") == "cuda:1 3"


# Fallbacks


def test_fallback_kernels_get_the_operator_and_perhaps_the_keys() -> None:
    d = bare()
    library = defined(d, "foo(Tensor x, int n=1) -> str")
    wild = Library("_", "IMPL", dispatcher=d)
    for key in ("ADInplaceOrView", "BackendSelect"):
        wild.fallback(fallthrough, key)
    wild.fallback(lambda operator, *a: f"{operator.name} {a[1:]}", "CPU")
    wild.fallback(
        lambda keys, operator, *a: f"{keys} {operator.name} {a[1:]}",
        "CUDA",
        with_keyset=True,
    )

    def stacked(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        del stack[1:]
        stack.append(f"stack {keys} {operator.name}")

    wild.fallback(boxed(stacked), "XLA")
    call = op(d).call
    assert call(on("CPU")) == "test::foo ()"
    assert call(on("CUDA"), 2) == "KeySet(CUDA) test::foo (2,)"
    assert call(on("XLA")) == "stack KeySet(XLA) test::foo"
    library.impl("foo", says("own"), "CPU")
    assert call(on("CPU")) == "own"


def test_a_typed_fallback_is_called_as_any_fallback() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> Tensor")
    wild = Library("_", "IMPL", "CPU", dispatcher=d)

    def typed(x: Tensor) -> Tensor:
        return x

    wild.fallback(typed)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2"):
        op(d).call(on("CPU"))
    library.close()


# Boxed calls


def test_boxed_calls_bind_too_and_leave_the_given_list() -> None:
    d = silent()
    library = defined(d, "foo(int x, *, int[2] y, str z='a') -> str")
    library.impl("foo", lambda x, y, z="-": f"{x} {y} {z}", CE)
    given = [1, 2, "b"]
    assert op(d).call_boxed(given) == ["1 [2, 2] b"]
    assert given == [1, 2, "b"]
    assert op(d).call_boxed((1, [2])) == ["1 [2] -"]
    with pytest.raises(CallError, check=code("MissingArgument")):
        op(d).call_boxed([1])
    with pytest.raises(CallError, check=code("TooManyArguments")):
        op(d).call_boxed([1, 2, "b", "c"])


def test_surplus_values_of_a_boxed_call() -> None:
    d = silent()
    library = defined(d, "foo(int x, ...) -> str")
    library.impl("foo", lambda *args: str(args), CE)
    assert op(d).call_boxed([1, 2, 3]) == ["(1, 2, 3)"]
    assert op(d).call(1, "a") == "(1, 'a')"


def test_a_caller_is_made_once_for_an_entry() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", lambda x: x, "CPU")
    entry = d.entry("test::foo")
    assert entry is not None
    op(d).call(tensor(1.0))
    caller = entry.memo["caller"]
    op(d).call_boxed([tensor(1.0)])
    assert entry.memo["caller"] is caller
    assert caller.table is entry.table
    assert caller_of(entry, "test::foo") is caller
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        caller_of(None, "test::foo")
    library.impl("bar", lambda x: x, "CPU")
    with pytest.raises(CannotRun, check=code("CallWithoutSchema")):
        caller_of(d.entry("test::bar"), "test::bar")
    assert FOO in str(caller.schema)


def test_arguments_may_have_the_names_of_our_own_parameters() -> None:
    d = silent()
    library = defined(d, "foo(Tensor self, Tensor keyset, int args=0) -> str")
    library.impl("foo", says("called"), "CPU")
    x = tensor(1.0)
    for _ in range(20):
        assert op(d)(self=x, keyset=x, args=1) == "called"
    keys = KeySet(DispatchKey.CPU)
    assert op(d).redispatch(keys, self=x, keyset=x) == "called"
