"""Call stubs: they answer as the plain way does, whatever happens in between."""

import gc
import threading
import weakref
from types import FunctionType, MethodType
from typing import Any

import pytest

from everyorder.runtime.base.registry import Registry
from everyorder.runtime.dispatch import Dispatcher, Library, Operators
from everyorder.runtime.dispatch.call_stub import maker_of
from everyorder.runtime.dispatch.kernel_lookup import WARM
from everyorder.runtime.errors.call import CallError, NoMatchingOverload, OperatorGone
from everyorder.runtime.keys import DispatchKey, exclude_keys
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.tensors import tensor
from tests.coded import code, coded
from tests.dispatch.samples import defined, op, says, silent

DuplicateArgument = coded(CallError, "DuplicateArgument")
MissingArgument = coded(CallError, "MissingArgument")
TooManyArguments = coded(CallError, "TooManyArguments")
UnknownArgument = coded(CallError, "UnknownArgument")
WrongArgumentType = coded(CallError, "WrongArgumentType")

SCHEMA = "foo(Tensor x, int[2] s=1, Tensor? y=None, *, Scalar alpha=1, str mode) -> str"


def shown(*arguments, **named):  # type: ignore[no-untyped-def]  # an untyped kernel
    return repr((arguments[1:], named))


def warm(handle: Any, *args: Any, **kwargs: Any) -> Any:
    """The handle, called until it has its call stub."""
    for _ in range(WARM + 1):
        handle(*args, **kwargs)
    assert isinstance(handle.func, FunctionType)
    return handle


def two_ways(schema: str = SCHEMA) -> tuple[Library, Dispatcher, Any]:
    """A library that defines and implements, its dispatcher, and a warm handle."""
    dispatcher = silent()
    library = defined(dispatcher, schema)
    library.impl("foo", shown, "CPU")
    return library, dispatcher, warm(op(dispatcher), tensor(1.0), mode="m")


X = tensor([1.0, 2.0])


def said(error: CallError) -> dict[str, Any]:
    """The fields of an error; the order of named arguments in the call is no matter."""
    return {**vars(error), "call": sorted(error.call)}


@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((X,), {"mode": "a"}, None),
        ((X, [3, 4]), {"mode": "a", "alpha": 2}, None),
        ((X, 3, None), {"mode": "a", "alpha": 2.5}, None),
        ((X,), {"s": (5, 6), "mode": "a", "y": X}, None),
        ((), {"x": X, "mode": "a"}, None),
        ((), {"mode": "a"}, MissingArgument),
        ((X,), {}, MissingArgument),
        ((), {"s": 2, "mode": "a"}, MissingArgument),
        ((X, 1, None, 1), {"mode": "a"}, TooManyArguments),
        ((X, 1, None, 1), {}, MissingArgument),
        ((X,), {"mode": "a", "beta": 1}, UnknownArgument),
        ((X, 1), {"s": 2, "mode": "a"}, DuplicateArgument),
        ((X, 1), {"s": 1, "mode": "a"}, DuplicateArgument),
        ((X, 1, None), {"x": X, "mode": "a"}, DuplicateArgument),
        ((X, 1, X), {"y": X, "mode": "a"}, DuplicateArgument),
        ((X,), {"s": "no", "y": None, "mode": "a"}, WrongArgumentType),
        ((X, "no"), {"mode": "a"}, WrongArgumentType),
        ((3,), {"mode": "a"}, WrongArgumentType),
        ((X,), {"mode": 3}, WrongArgumentType),
        ((X,), {"mode": "a", "y": 3}, WrongArgumentType),
        (([X],), {"mode": "a"}, WrongArgumentType),
    ],
)
def test_both_ways_bind_alike(
    args: tuple[Any, ...], kwargs: dict[str, Any], error: type[CallError] | None
) -> None:
    _library, dispatcher, stub = two_ways()
    plain = op(dispatcher)
    if error is None:
        assert stub(*args, **kwargs) == plain(*args, **kwargs)
        return
    if error is MissingArgument and len(args) > 3:
        error = TooManyArguments
    with pytest.raises(error) as one:
        plain(*args, **kwargs)
    with pytest.raises(error) as other:
        stub(*args, **kwargs)
    assert said(one.value) == said(other.value)


def test_a_call_stub_asks_the_published_state() -> None:
    dispatcher = silent()
    library = defined(dispatcher)
    one, two = tensor([1.0]), tensor([2.0])
    first = library.impl("foo", says(one), "CPU")
    handle = warm(op(dispatcher), one)
    second = library.impl("foo", says(two), "CPU")
    assert handle(one) is two
    second.close()
    assert handle(one) is one
    first.close()
    library.close()
    with pytest.raises(OperatorGone, check=code("OperatorGone")):
        handle(one)


def test_a_call_stub_serves_another_definition() -> None:
    dispatcher = silent()
    library = defined(dispatcher)
    x = tensor([1.0])
    library.impl("foo", says(x), "CPU")
    handle = warm(op(dispatcher), x)
    library.close()
    other = defined(dispatcher, "foo(Tensor x, int n=3) -> int")
    other.impl("foo", lambda x, n=3: n + 1, "CPU")
    assert handle(x) == 4
    assert handle(x, 5) == 6
    assert warm(handle, x)(x, 7) == 8


def test_guards_and_masks_hold_for_call_stubs() -> None:
    dispatcher = silent()
    library = defined(dispatcher)
    cpu, autograd, x = tensor([1.0]), tensor([2.0]), tensor([3.0])
    library.impl("foo", says(cpu), "CPU")
    held = library.impl("foo", says(autograd), "Autograd")
    handle = warm(op(dispatcher), x)
    assert handle(x) is autograd
    with exclude_keys(DispatchKey.AutogradCPU):
        assert handle(x) is cpu
    assert handle(x) is autograd
    held.close()
    assert handle(x) is cpu


def test_two_dispatchers_share_no_call_stub() -> None:
    (_kept, one, stub), (library, other, again) = two_ways(), two_ways()
    assert stub(X, mode="a") == again(X, mode="a")
    library.impl("foo", says("other"), "CPU")
    assert again(X, mode="a") == "other"
    assert stub(X, mode="a") != "other"
    assert one.keyring is not other.keyring


def test_a_packet_takes_the_first_overload_that_fits() -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x) -> str")
    library.define("foo.two(Tensor x, int n) -> str")
    library.impl("foo", says("one"), "CPU")
    library.impl("foo.two", says("two"), "CPU")
    packet = Operators(lambda: dispatcher).test.foo
    warm(packet, X)
    assert (packet(X), packet(X, 3), packet(x=X)) == ("one", "two", "one")
    with pytest.raises(NoMatchingOverload):
        packet(X, "no")


def test_the_second_access_asks_for_no_dispatcher() -> None:
    dispatcher = silent()
    defined(dispatcher).impl("foo", says(X), "CPU")
    asked: list[int] = []

    def source() -> Dispatcher:
        asked.append(1)
        return dispatcher

    provided: Any = Registry("providers", {"test": lambda: None})
    found: list[object] = []
    for operators in (Operators(source, provided), Operators(source)):
        asked.clear()
        found += [operators.test, operators.test.foo]
        assert (operators.test.foo, len(asked)) == (found[-1], 1)
    assert found[:2] == found[2:]


def test_numbers_stand_for_tensors_where_the_tag_says_so() -> None:
    dispatcher = silent()
    library = Library("test", "DEF", dispatcher=dispatcher)
    library.define("foo(Tensor x, Tensor y) -> str", tags=("numbers_as_tensors",))
    library.define("bar(Tensor x, Tensor y) -> str")
    for name in ("foo", "bar"):
        library.impl(name, lambda x, y: f"{y.shape} {y.number}", "CPU")
    handle = op(dispatcher)
    assert [handle(X, 2.5) for _ in range(WARM + 2)] == ["() 2.5"] * (WARM + 2)
    assert isinstance(handle.func, FunctionType)
    with pytest.raises(WrongArgumentType):
        handle(X, "2")
    with pytest.raises(WrongArgumentType):
        op(dispatcher, "test::bar")(X, 2)


@pytest.mark.parametrize("schema", ["foo(Tensor x, ...) -> str", "foo(int _x) -> str"])
def test_some_schemas_have_no_call_stub(schema: str) -> None:
    assert maker_of(parse_schema(schema), ()) is None
    dispatcher = silent()
    defined(dispatcher, schema).impl("foo", says("a"), "CPU")
    if "..." in schema:
        handle = op(dispatcher)
        assert {handle(X, 1, 2) for _ in range(2 * WARM)} == {"a"}
        assert isinstance(handle.func, MethodType)


def test_a_call_stub_keeps_no_kernel_and_no_dispatcher() -> None:
    enabled = gc.isenabled()
    gc.disable()
    try:
        library, dispatcher, stub = two_ways()
        dead = weakref.ref(dispatcher)
        stub(X, mode="a")
        del library, dispatcher, stub
        assert dead() is None
    finally:
        if enabled:
            gc.enable()


def test_call_stubs_of_many_threads_see_every_publication() -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x) -> int")
    library.impl("foo", says(0), "CPU")
    handle = warm(op(dispatcher), X)
    stop = threading.Event()
    wrong: list[tuple[int, int]] = []

    def read() -> None:
        last = 0
        while not stop.is_set():
            seen = handle(X)
            if seen < last:
                wrong.append((last, seen))
            last = seen

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 200):
        library.impl("foo", says(number), "CPU")
        if handle(X) != number:
            wrong.append((number, handle(X)))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    "name",
    [
        *("dispatcher", "key", "resolve", "slow", "make", "call", "len", "type"),
        *("tuple", "KeyError", "AttributeError", "entry", "kernel", "bits"),
    ],
)
def test_an_argument_may_have_any_name(name: str) -> None:
    """Nothing that the text of a call stub names is the name of an argument."""
    d = Dispatcher()
    library = Library("any", "DEF", dispatcher=d)
    library.define(f"f(Tensor x, Tensor {name}) -> Tensor")
    library.define(f"g(Tensor x, int {name}=3) -> (Tensor, Tensor)")
    library.impl("f", lambda x, other: other, "CPU")
    library.impl("g", lambda x, number=3: (x, x), "CPU")
    x, y = tensor([1.0]), tensor([2.0])
    f, g = op(d, "any::f"), op(d, "any::g")
    for _ in range(12):
        assert f(x, y) is y
        assert f(x, **{name: y}) is y
        assert g(x, **{name: 4})[1] is x
        assert g(x) == (x, x)
        with pytest.raises(WrongArgumentType):
            f(x, "no tensor")
    library.close()
