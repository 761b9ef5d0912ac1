"""What kernels are given, and what becomes of their results (spec 5.3 to 5.7)."""

from copy import deepcopy
from typing import Any

import pytest

from everyorder.runtime.dispatch import Library, boxed, named_not_supported
from everyorder.runtime.errors.call import (
    CallError,
    CannotRun,
    KernelError,
    MissingKernel,
)
from everyorder.runtime.keys import (
    AFTER_AUTOGRAD,
    DispatchKey,
    KeySet,
    exclude_keys,
    full_after,
    include_keys,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors import Tensor, tensor
from tests.coded import code
from tests.dispatch.samples import defined, on, op, says, silent, untyped

CE = "CompositeExplicitAutograd"
FLOAT = DType.named("float32")


def test_5_3_the_keyset_is_masked_and_whole_below() -> None:
    seen: list[str] = []

    def autograd(keys: KeySet, x: Tensor) -> Tensor:
        seen.append(str(keys))
        found: Tensor = handle.redispatch(keys & AFTER_AUTOGRAD, x)
        return found

    @untyped
    def cpu(keys: Any, x: Any) -> Any:
        seen.append(str(keys))
        return x

    d = silent()
    library = defined(d)
    library.impl("foo", autograd, "AutogradCPU")
    library.impl("foo", cpu, "CPU", with_keyset=True)
    handle = op(d)
    x = tensor([1.0])
    assert handle.call(x) is x
    assert seen == ["KeySet(CPU, AutogradCPU)", "KeySet(CPU)"]


def test_5_3_below_its_own_key() -> None:
    seen = []

    @untyped
    def mode(keys: Any, x: Any) -> Any:
        seen.append(str(keys))
        return op(d).redispatch(keys & full_after(DispatchKey.Tracer), x)

    d = silent()
    library = defined(d)
    library.impl("foo", mode, "Tracer", with_keyset=True)
    library.impl("foo", lambda x: x, "CPU")
    with include_keys(DispatchKey.Tracer):
        op(d).call(tensor([1.0]))
    assert seen == ["KeySet(CPU, Tracer)"]


def test_5_4_redispatch_takes_the_keys_as_they_are() -> None:
    d = silent()
    library = defined(d, "foo(Tensor x) -> str")
    for key in ("CPU", "CUDA", "Tracer"):
        library.impl("foo", says(key), key)
    x = on("CPU")
    handle = op(d)
    with include_keys(DispatchKey.Tracer), exclude_keys([DispatchKey.CUDA]):
        assert handle.redispatch(KeySet(DispatchKey.CUDA), x) == "CUDA"
        assert handle.redispatch_boxed(KeySet(DispatchKey.CUDA), [x]) == ["CUDA"]
    with pytest.raises(MissingKernel) as caught:
        handle.redispatch(KeySet(DispatchKey.XLA), x)
    assert (caught.value.key, caught.value.reason) == ("XLA", "no kernel")


def test_5_4_redispatching_to_a_fallthrough() -> None:
    d = silent()
    defined(d)
    with pytest.raises(KernelError, check=code("FallthroughCalled")) as caught:
        op(d).redispatch(KeySet(DispatchKey.AutogradCPU), on("CPU"))
    assert caught.value.fields() == {"operator": "test::foo", "key": "AutogradCPU"}


def test_5_5_python_kernels_get_what_differs_from_the_defaults() -> None:
    seen: list[tuple[Any, Any]] = []

    @untyped
    def python(*args: Any, **kwargs: Any) -> int:
        seen.append((args, kwargs))
        return 0

    d = silent()
    library = defined(d, "foo(int a, int b=2, int c=3, *, int d=4, int e=5) -> int")
    library.impl("foo", python, CE)
    call = op(d).call
    call(1)
    call(1, 2, 3, d=4)
    call(1, 2, 9)
    call(a=1, c=9, e=6)
    assert seen == [
        ((1,), {}),
        ((1,), {}),
        ((1, 2, 9), {}),
        ((1, 2, 9), {"e": 6}),
    ]


def test_5_5_typed_kernels_get_everything_converted() -> None:
    seen = []

    def typed(a: int, b: float, c: DType, d: list[int], e: bool) -> int:
        seen.append((a, b, c, d, e))
        return 0

    dispatcher = silent()
    schema = "foo(int a, float b=2, ScalarType c=float, int[2] d=1, bool e=True) -> int"
    library = defined(dispatcher, schema)
    library.impl("foo", typed, CE)
    call = op(dispatcher).call
    call(True)
    call(1, 3, FLOAT, (4, 5), 0)
    assert seen == [(1, 2.0, FLOAT, [1, 1], True), (1, 3.0, FLOAT, [4, 5], False)]
    assert [type(value) for value in seen[0]] == [int, float, DType, list, bool]


def test_typed_kernels_see_fresh_lists() -> None:
    kept: list[list[int]] = []

    def typed(a: list[int]) -> int:
        kept.append(a)
        a.append(9)
        return 0

    d = silent()
    library = defined(d, "foo(int[2] a=1) -> int")
    library.impl("foo", typed, CE)
    for _ in range(2):
        op(d).call()
    assert kept == [[1, 1, 9], [1, 1, 9]]


def test_kernels_get_the_very_list_that_they_write_to() -> None:
    def extended(self: list[int], more: list[int]) -> list[int]:
        self.extend(more)
        more.append(0)
        return self

    d = silent()
    library = defined(d, "foo(int[](a!) self, int[] more) -> int[](a!)")
    library.impl("foo", extended, CE)
    own, more = [1], [2]
    for count in range(1, 8):
        assert op(d).call(own, more) is own
        assert own == [1] + [2] * count
    (result,) = op(d).call_boxed([own, more])
    assert result is own
    assert more == [2]
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        op(d).call((1,), more)


def test_kernels_get_the_very_dictionary_that_they_write_to() -> None:
    def stored(self: dict[str, int], key: str) -> None:
        self[key] = 1

    d = silent()
    library = defined(d, "foo(Dict(str, int)(a!) self, str key) -> ()")
    library.impl("foo", untyped(stored), CE)
    own: dict[str, int] = {}
    for number in range(7):
        op(d).call(own, str(number))
    assert own == dict.fromkeys("0123456", 1)


@pytest.mark.parametrize(
    ("type_", "own", "after"),
    [
        ("int[](a!)?", [1], [1, 9]),
        ("Union(int[], str)(a!)", [1], [1, 9]),
        ("int[][](a!)", [[1]], [[1, 9]]),
        ("int[](a!)[]", [[1]], [[1, 9]]),
        ("int[](a!)[](b)", [[1]], [[1, 9]]),
        ("Dict(str, int[])(a!)", {"k": [1]}, {"k": [1, 9]}),
        ("(int, int[])[](a!)", [(0, [1])], [(0, [1, 9])]),
    ],
)
def test_kernels_get_the_very_lists_at_any_depth(
    type_: str, own: Any, after: Any
) -> None:
    own = deepcopy(own)

    def appended(self: Any) -> None:
        while isinstance(self, dict | tuple) or isinstance(self[0], list | tuple):
            self = self["k"] if isinstance(self, dict) else self[-1]
        self.append(9)

    d = silent()
    library = defined(d, f"foo({type_} self) -> ()")
    library.impl("foo", untyped(appended), CE)
    op(d).call(own)
    assert own == after


def test_untyped_kernels_get_the_very_list_and_fresh_others() -> None:
    def extended(self: list[int], more: list[int]) -> None:
        self.extend(more)
        more.append(0)

    d = silent()
    library = defined(d, "foo(int[](a!) self, int[] more) -> ()")
    library.impl("foo", untyped(extended), CE)
    own, more = [1], [3]
    op(d).call(own, more)
    op(d).call(own, more=more)
    op(d).call_boxed([own, more])
    assert own == [1, 3, 3, 3]
    assert more == [3]


def test_what_is_written_to_may_be_none_where_it_is_optional() -> None:
    d = silent()
    library = defined(d, "foo(int[](a!)? self) -> int[](a!)?")
    library.impl("foo", untyped(lambda self: self), CE)
    assert op(d).call(None) is None
    own = [1]
    assert op(d).call(own) is own
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        op(d).call((1,))


def keyword_only(x: int, *, n: int, m: int) -> int:
    return 100 * x + 10 * n + m


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("foo(int x, *, int n, int m) -> int", 123),
        ("foo(int x, *, int m, int n) -> int", 123),
        ("foo(int x, int n, int m) -> int", 123),
        ("foo(int n, int m, int x) -> int", 123),
        ("foo(int a, int b, *, int c) -> int", None),
    ],
)
def test_keyword_only_parameters_are_matched_by_name(
    schema: str, expected: int | None
) -> None:
    d = silent()
    library = defined(d, schema)
    library.impl("foo", keyword_only, CE)
    if expected is None:  # no such names: by position, as in an inferred schema
        assert op(d).call(1, 2, c=3) == 123
    else:
        assert op(d).call(x=1, n=2, m=3) == expected


def test_keyword_only_parameters_of_an_inferred_schema() -> None:
    d = silent()
    library = Library("test", "DEF", dispatcher=d)
    library.define("foo", kernel=keyword_only)
    assert op(d).call(1, 2, 3) == 123


def test_keyword_only_behind_a_keyset() -> None:
    def kernel(keys: KeySet, x: Tensor, *, n: int) -> int:
        return n if DispatchKey.CPU in keys else -1

    d = silent()
    library = defined(d, "foo(Tensor x, *, int n) -> int")
    library.impl("foo", kernel, "CPU")
    assert op(d).call(tensor(1.0), n=5) == 5


# Kinds of kernels


def add_all(operator: Any, keys: KeySet, stack: list[Any]) -> None:
    y, x = stack.pop(), stack.pop()
    stack.append(x + y)


def test_5_6_stack_kernels() -> None:
    d = silent()
    library = defined(d, "foo(int x, int y=5) -> int")
    seen: list[Any] = []

    def noted(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        seen.append((str(operator.name), str(keys), stack[1:]))
        add_all(operator, keys, stack)

    library.impl("foo", boxed(noted), CE)
    assert op(d).call(1) == 6
    assert op(d).call_boxed([2, 3]) == [5]
    assert seen == [
        ("test::foo", "KeySet()", [1, 5]),
        ("test::foo", "KeySet()", [2, 3]),
    ]


@pytest.mark.parametrize(
    ("schema", "kernel", "popped", "pushed"),
    [
        ("foo(int x) -> int", lambda o, k, s: s.append(1), 1, 2),
        ("foo(int x) -> int", lambda o, k, s: s.pop(), 1, 0),
        ("foo(int x) -> int", lambda o, k, s: s.clear(), 2, 0),
        ("foo(int x) -> ()", lambda o, k, s: None, 1, 1),
        ("foo(int x) -> (int, int)", lambda o, k, s: None, 1, 1),
        ("foo(int x) -> ...", lambda o, k, s: s.clear(), 2, 0),
    ],
)
def test_5_6_the_stack_is_balanced(
    schema: str, kernel: Any, popped: int, pushed: int
) -> None:
    d = silent()
    library = defined(d, schema)
    library.impl("foo", boxed(kernel, "k"), CE)
    with pytest.raises(KernelError, check=code("StackMismatch")) as caught:
        op(d).call(1)
    returns = op(d).schema.returns
    assert caught.value.fields() == {
        "operator": "test::foo",
        "kernel": "k",
        "popped": popped,
        "pushed": pushed,
        "expected_popped": 1,
        "expected_pushed": len(returns),
    }


def push(*results: Any) -> Any:
    def kernel(operator: Any, keys: KeySet, stack: list[Any]) -> None:
        del stack[1:]
        stack.extend(results)

    return boxed(kernel, "push")


@pytest.mark.parametrize(
    ("schema", "args", "results", "called", "listed"),
    [
        ("foo(int x) -> ()", (1,), (), None, []),
        ("foo(int x) -> int", (1,), (2,), 2, [2]),
        ("foo(int x) -> (int, str)", (1,), (2, "a"), (2, "a"), [2, "a"]),
        ("foo(int x, ...) -> int", (1, 2, 3), (4,), 4, [4]),
        ("foo(int x) -> ...", (1,), (2, 3), (2, 3), [2, 3]),
        ("foo(...) -> ...", (), (), (), []),
    ],
)
def test_results_of_stack_kernels(
    schema: str, args: Any, results: Any, called: Any, listed: list[Any]
) -> None:
    d = silent()
    library = defined(d, schema)
    library.impl("foo", push(*results), CE)
    assert op(d).call(*args) == called
    assert op(d).call_boxed(args) == listed


def test_a_stack_kernel_s_results_are_converted() -> None:
    d = silent()
    library = defined(d, "foo(int x) -> str")
    library.impl("foo", push(3), CE)
    with pytest.raises(KernelError, check=code("WrongReturnType")):
        op(d).call(1)


@pytest.mark.parametrize(
    ("result", "listed"), [(3, [3]), ((3, 4), [3, 4]), ([3], [3]), (None, [])]
)
def test_a_schema_of_any_returns_takes_what_comes(result: Any, listed: Any) -> None:
    d = silent()
    library = defined(d, "foo(int x) -> ...")
    library.impl("foo", says(result), CE)
    assert op(d).call(1) == result
    assert op(d).call_boxed([1]) == listed


def test_5_6_refusing_kernels() -> None:
    d = silent()
    library = defined(d)
    library.impl("foo", named_not_supported, "CPU")
    library.impl("foo", says(None), "FPGA")
    library.impl("foo", says(None), "CompositeImplicitAutograd")
    with pytest.raises(CannotRun, check=code("NamedNotSupported")) as names:
        op(d).call(on("CPU"))
    assert names.value.operator == "test::foo"
    with pytest.raises(CannotRun, check=code("AmbiguousKernel")) as ambiguous:
        op(d).call(on("FPGA", "AutogradOther"))
    assert ambiguous.value.fields() == {
        "operator": "test::foo",
        "state": d.dump_state("test::foo"),
    }


def test_5_7_returns_are_checked() -> None:
    d = silent()
    library = defined(d, "foo(int x) -> (int, str)")
    library.impl("foo", lambda x: (1,), CE)
    with pytest.raises(KernelError, check=code("WrongReturnCount")) as caught:
        op(d).call(1)
    assert (caught.value.expected, caught.value.found) == (2, 1)
    library.impl("foo", lambda x: [1, "a"], CE)
    assert op(d).call(1) == (1, "a")
