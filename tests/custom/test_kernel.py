# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""How functions of operators are called, and what results may share (spec 3.13.3)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import DType, Function, Tensor, from_numpy, ops, tensor
from everyorder.runtime.custom.kernel import is_disjoint, kernel_of, shares
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.library import custom_op
from everyorder.runtime.schema.parser import parse_schema
from tests.coded import code, coded
from tests.custom.functions import CALLS, repeatedly

AliasedResult = coded(KernelError, "AliasedResult")


def test_every_argument_comes_as_kernels_see_it() -> None:
    seen: list[Any] = []

    def record(
        x: Tensor, t: DType, ns: list[int], *, alpha: float = 1.0, beta: int = 2
    ) -> int:
        seen.append((t, ns, alpha, beta))
        return 1

    with custom_op("mine::f", record, mutates_args=()) as made:
        given: Any = (1, 2)
        results = repeatedly(
            lambda: made(tensor([1.0]), DType.named("float64"), given, beta=True)
        )
    assert set(results) == {1}
    for dtype, ns, alpha, beta in seen:
        assert dtype is DType.named("float64")
        assert (type(ns), ns) == (list, [1, 2])
        assert (type(alpha), alpha, type(beta), beta) == (float, 1.0, int, 1)


def test_defaults_are_those_of_the_schema() -> None:
    def own(x: Tensor, n: int = 7) -> int:
        return n

    made = custom_op(
        "mine::f", own, mutates_args=(), schema="(Tensor x, int n=3) -> int"
    )
    with made:
        assert set(repeatedly(lambda: made(tensor([1.0])))) == {3}


def test_names_that_only_a_dictionary_can_hold() -> None:
    def record(x: Tensor, **options: Any) -> Any:
        return options["from"]

    made = custom_op(
        "mine::f", record, mutates_args=(), schema="(Tensor x, *, int from=4) -> int"
    )
    with made:
        assert set(repeatedly(lambda: made(tensor([1.0])))) == {4}
        assert made(tensor([1.0]), **{"from": 5}) == 5


def test_a_function_of_plain_results_is_called_as_it_is() -> None:
    def count(x: Tensor, n: int) -> int:
        return n

    schema = parse_schema("mine::f(Tensor x, int n) -> int")
    kernel = kernel_of(count, schema)
    assert kernel.function is count
    assert (kernel.facts.kind, kernel.facts.name) == ("direct", "count")


def test_a_builtin_is_believed() -> None:
    schema = parse_schema("mine::f(float a, float b) -> float")
    with custom_op(
        "mine::f", np.hypot, mutates_args=(), schema="(float a, float b) -> float"
    ) as made:
        assert made(3.0, 4.0) == 5.0
    assert kernel_of(np.hypot, schema).facts.name == "hypot"


def test_an_object_that_is_called() -> None:
    class Twice:
        def __call__(self, x: Tensor) -> Tensor:
            return x * 2

    with custom_op(
        "mine::f", Twice(), mutates_args=(), schema="(Tensor x) -> Tensor"
    ) as made:
        assert made(tensor([1.0])).tolist() == [2.0]
        assert made.__name__ == "mine::f"


def test_an_operator_of_nothing() -> None:
    def seven() -> Tensor:
        return tensor([7.0])

    def pair() -> tuple[Tensor, Tensor]:
        return tensor([7.0]), tensor([8.0])

    with custom_op("mine::f", seven, mutates_args=()) as made:
        assert [r.tolist() for r in repeatedly(made)][-1] == [7.0]
    with custom_op("mine::f", pair, mutates_args=()) as other:
        assert [r.tolist() for r in repeatedly(other)[-1]] == [[7.0], [8.0]]


async def later(x: Tensor) -> Tensor:
    return x


async def several_later(x: Tensor) -> Any:
    yield x


def one_by_one(x: Tensor) -> Any:
    yield x


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (later, "it is `async`, so that a call does not run it"),
        (several_later, "it is `async`, so that a call does not run it"),
        (one_by_one, "it has a `yield`, so that a call does not run it"),
    ],
)
def test_a_function_that_runs_nothing_when_it_is_called(
    function: Any, fault: str
) -> None:
    with pytest.raises(DefinitionRefused, check=code("UnfitKernel")) as refused:
        custom_op("mine::f", function, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert refused.value.fault == fault


def test_a_function_that_shows_no_signature_is_believed() -> None:
    made = custom_op("mine::f", max, mutates_args=(), schema="(int x, int y) -> int")
    with made:
        assert set(repeatedly(lambda: made(3, 4))) == {4}


ONE = "(Tensor x, Tensor y) -> Tensor"
LIST = "(Tensor[] xs) -> Tensor[]"
TWO = "(Tensor x, Tensor y) -> (Tensor, Tensor)"
MAYBE = "(Tensor x, Tensor? y=None) -> Tensor"


def refused(function: Callable[..., Any], schema: str, *args: Any) -> KernelError:
    """The error of calling such an operator, the same by every way."""
    with custom_op("mine::f", function, mutates_args=(), schema=schema) as made:
        found = []
        for _ in range(CALLS):
            with pytest.raises(AliasedResult) as caught:
                made(*args)
            found.append(caught.value)
    assert all(each.fields() == found[0].fields() for each in found)
    return found[0]


def test_a_result_that_is_an_argument() -> None:
    found = refused(lambda x, y: y, ONE, tensor([1.0]), tensor([2.0]))
    assert str(found) == (
        "`mine::f` (lambda) returned a result that is its argument `y`, which its "
        "schema\nrules out.\n"
        "  schema: mine::f(Tensor x, Tensor y) -> Tensor\n"
        "  to do:  return a copy (`.clone()`), or leave it out of the results"
    )
    assert isinstance(found, RuntimeError)


def test_a_result_that_is_a_view_of_an_argument() -> None:
    found = refused(lambda x, y: x[0], ONE, tensor([[1.0]]), tensor([2.0]))
    assert str(found) == (
        "`mine::f` (lambda) returned a result that shares memory with its argument "
        "`x`,\nwhich its schema rules out.\n"
        "  schema: mine::f(Tensor x, Tensor y) -> Tensor\n"
        "  to do:  return a copy (`.clone()`), or leave it out of the results"
    )


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_result_that_is_a_written_argument(name: str) -> None:
    def write(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return x if name == "x" else y

    made = custom_op("mine::f", write, mutates_args=("x",))
    with made, pytest.raises(AliasedResult) as refused:
        made(tensor([1.0]), tensor([1.0]))
    assert refused.value.written is (name == "x")
    if name == "x":
        assert str(refused.value).endswith(
            "\n  to do:  return None; or, if the operator should return the argument "
            "that it\n          writes to, declare it: tags='inplace', or 'out'"
        )


class Same(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize("same", [Same.apply, lambda x: x.detach()])
def test_another_tensor_on_the_same_array(same: Callable[[Tensor], Tensor]) -> None:
    found = refused(lambda x, y: same(x), ONE, tensor([1.0]), tensor([2.0]))
    assert (found.other, found.same) == ("its argument `x`", False)


def test_views_that_have_no_element_in_common() -> None:
    x = tensor([1.0, 2.0])
    found = refused(lambda x, y: x[:1], ONE, x[1:], x[:1])
    assert (found.other, found.same) == ("its argument `x`", False)


def test_a_result_through_numpy() -> None:
    found = refused(lambda x, y: from_numpy(y.numpy()), ONE, tensor(1.0), tensor([2.0]))
    assert (found.other, found.same) == ("its argument `y`", False)


def test_two_tensors_on_one_array() -> None:
    array = np.ones((2, 2))
    x = from_numpy(array)
    found = refused(lambda x, y: from_numpy(array[1:]), ONE, x, tensor([2.0]))
    assert found.other == "its argument `x`"


def test_an_array_beside_another_one() -> None:
    array = np.zeros((2, 2))
    x = from_numpy(array[0])
    made = custom_op(
        "mine::f",
        lambda x, y: from_numpy(array[1]),
        mutates_args=(),
        schema=ONE,
    )
    with made:
        assert [r.tolist() for r in repeatedly(lambda: made(x, x))] == [[0, 0]] * CALLS


def test_memory_of_no_array() -> None:
    memory = bytearray(16)
    x = from_numpy(np.frombuffer(memory))
    found = refused(
        lambda x, y: from_numpy(np.frombuffer(memory)), ONE, x, tensor([2.0])
    )
    assert found.other == "its argument `x`"


def test_an_element_of_a_list() -> None:
    xs = [tensor([1.0]), tensor([2.0])]
    found = refused(lambda xs: [xs[0] * 1, xs[1]], LIST, xs)
    assert (found.result, found.other) == ("a result[1]", "its argument `xs[1]`")


def test_a_result_that_is_in_a_list() -> None:
    found = refused(
        lambda xs, n: xs[1],
        "(Tensor[] xs, int n) -> Tensor",
        [tensor([1.0]), tensor([2.0])],
        1,
    )
    assert (found.result, found.other) == ("a result", "its argument `xs[1]`")


def test_two_results_that_are_one() -> None:
    def both(x: Tensor, y: Tensor) -> Any:
        made = x + y
        return made, made

    found = refused(both, TWO, tensor([1.0]), tensor([2.0]))
    assert str(found) == (
        "`mine::f` (both) returned result 2 that is result 1, which its schema rules "
        "out.\n"
        "  schema: mine::f(Tensor x, Tensor y) -> (Tensor, Tensor)\n"
        "  to do:  return a copy (`.clone()`), or leave it out of the results"
    )


def test_two_results_that_share() -> None:
    def both(x: Tensor, y: Tensor) -> Any:
        made = x + y
        return made, made[:]

    found = refused(both, TWO, tensor([1.0]), tensor([2.0]))
    assert (found.result, found.other, found.same) == ("result 2", "result 1", False)


def test_an_optional_argument() -> None:
    found = refused(lambda x, y: y, MAYBE, tensor([1.0]), tensor([2.0]))
    assert found.other == "its argument `y`"


def test_on_meta() -> None:
    x = tensor([1.0], device="meta")
    with custom_op("mine::f", lambda x, y: x, mutates_args=(), schema=ONE) as made:
        made.register_fake(lambda x, y: x.detach())
        with pytest.raises(AliasedResult) as caught:
            made(x, x)
        assert (caught.value.kernel, caught.value.same) == ("lambda", False)
        made.register_fake(lambda x, y: ops.core.empty_like(x))
        assert made(x, x).device.type == "meta"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: (x + y)[:],
        lambda x, y: (x + y).reshape(1, 3)[0],
        lambda x, y: from_numpy(np.sin(x.numpy())),
        lambda x, y: from_numpy(np.stack([x.numpy(), y.numpy()])[:, ::2]),
        lambda x, y: ops.core.zeros([0]),
        lambda x, y: x.sum(),
    ],
)
def test_what_shares_nothing(function: Callable[..., Any]) -> None:
    x = tensor([1.0, 2.0, 3.0])
    with custom_op("mine::f", function, mutates_args=(), schema=ONE) as made:
        for result in repeatedly(lambda: made(x, x[:])):
            assert not shares(result, x)


def test_none_among_the_arguments() -> None:
    f: Any
    with custom_op("mine::f", lambda x, y: x + 1, mutates_args=(), schema=MAYBE) as f:
        assert [r.tolist() for r in repeatedly(lambda: f(tensor([1.0])))] == [
            [2.0]
        ] * CALLS
        assert f(from_numpy(np.ones(1)), None).tolist() == [2.0]


@pytest.mark.parametrize(
    ("schema", "returned", "text"),
    [
        (ONE, 3, "`Tensor`"),
        (TWO, None, "a sequence of 2 values"),
        (LIST.replace("Tensor[] xs", "Tensor x, Tensor y"), 3, "`Tensor[]`"),
    ],
)
def test_what_is_no_tensor_is_refused_as_of_any_kernel(
    schema: str, returned: Any, text: str
) -> None:
    function = lambda x, y: returned  # noqa: E731  # short
    with custom_op("mine::f", function, mutates_args=(), schema=schema) as made:
        for _ in range(CALLS):
            with pytest.raises(TypeError, match="should return") as caught:
                made(tensor([1.0]), tensor([2.0]))
            assert text in str(caught.value)


IN_PLACE = "(Tensor(a!) x, Tensor y) -> Tensor(a!)"


def test_a_written_argument_is_the_result() -> None:
    made = custom_op(
        "mine::f", lambda x, y: x.add_(y), mutates_args=("x",), schema=IN_PLACE
    )
    with made:
        x = tensor([1.0])
        assert all(each is x for each in repeatedly(lambda: made(x, tensor([1.0]))))
        assert x.tolist() == [1.0 + CALLS]


def test_another_tensor_than_the_written_one() -> None:
    made = custom_op(
        "mine::f", lambda x, y: x + y, mutates_args=("x",), schema=IN_PLACE
    )
    with made, pytest.raises(KernelError, check=code("OtherResult")) as refused:
        made(tensor([1.0]), tensor([2.0]))
    assert str(refused.value) == (
        "`mine::f` (lambda) returned a result that is not its argument `x`, as its "
        "schema\npromises.\n"
        "  schema: mine::f(Tensor(a!) x, Tensor y) -> Tensor(a!)\n"
        "  to do:  write to 'x' in place, and return it"
    )


def test_outs_in_the_wrong_order() -> None:
    schema = (
        "(Tensor x, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!) first, Tensor(b!))"
    ).replace(" first", "")
    made = custom_op(
        "mine::f",
        lambda x, *, a, b: (b, a),
        mutates_args=("a", "b"),
        schema=schema,
        tags="out",
    )
    with made, pytest.raises(KernelError, check=code("OtherResult")) as refused:
        made(tensor([1.0]), a=tensor([1.0]), b=tensor([1.0]))
    assert (refused.value.result, refused.value.argument) == ("result 1", "a")


VIEW = "(Tensor(a) x, Tensor y) -> Tensor(a)"


def test_a_view_that_the_schema_allows() -> None:
    x = tensor([[1.0, 2.0]])
    with custom_op("mine::f", lambda x, y: x[0], mutates_args=(), schema=VIEW) as made:
        for result in repeatedly(lambda: made(x, x * 1)):
            assert result.storage() is x.storage()


@pytest.mark.parametrize(
    ("function", "other", "same"),
    [
        (lambda x, y: x, "its argument `x`", True),
        (lambda x, y: y[:], "its argument `y`", False),
    ],
)
def test_a_view_that_it_does_not_allow(
    function: Callable[..., Any], other: str, same: bool
) -> None:
    found = refused(function, VIEW, tensor([[1.0]]), tensor([1.0]))
    assert (found.other, found.same) == (other, same)


def test_views_in_lists_and_of_anything() -> None:
    x = tensor([1.0, 2.0])
    for schema in ("(Tensor(a) x) -> Tensor(a)[]", "(Tensor(*) x) -> Tensor(*)[]"):
        with custom_op(
            "mine::f", lambda x: [x[:1], x[1:]], mutates_args=(), schema=schema
        ) as made:
            assert [each.tolist() for each in made(x)] == [[1.0], [2.0]]


def test_apart_and_shares_agree() -> None:
    x, y = tensor([1.0]), from_numpy(np.ones(1))
    assert is_disjoint(x, (y, None))
    assert not is_disjoint(x, (x,))
    assert not is_disjoint(y[:], (y,))
    assert shares(x, x)
    assert shares(y[:], y)
    assert not shares(x, tensor([1.0], device="meta"))
    empty = from_numpy(np.ones(0))
    assert not shares(empty, from_numpy(np.ones(0)))


def test_values_of_dicts_are_returned_as_they_are() -> None:
    """What a dict holds is looked at by `opcheck` alone, however many results."""

    def one(d: Any, y: Tensor) -> Tensor:
        return d["k"]

    def two(d: Any) -> Any:
        return d["k"], d["k"] + 1

    x = tensor([1.0])
    schema = "(Dict(str, Tensor) d, Tensor y) -> Tensor"
    with custom_op("mine::f", one, mutates_args=(), schema=schema) as made:
        assert all(each is x for each in repeatedly(partial(made, {"k": x}, x + 1)))
    schema = "(Dict(str, Tensor) d) -> (Tensor, Tensor)"
    with custom_op("mine::f", two, mutates_args=(), schema=schema) as pair:
        assert all(each[0] is x for each in repeatedly(partial(pair, {"k": x})))
