# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""How the function of an operator is called."""

from typing import Any

import numpy as np
import pytest

from runtime import DType, Tensor, tensor
from runtime.custom.kernel import kernel_of
from runtime.errors.custom_op import UnfitKernel
from runtime.library import custom_op
from runtime.schema.parser import parse_schema
from tests.custom.functions import repeatedly


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
        (later, "it is `async`, and a call of it runs nothing"),
        (several_later, "it is `async`, and a call of it runs nothing"),
        (one_by_one, "it has a `yield`, and a call of it runs nothing"),
    ],
)
def test_a_function_that_runs_nothing_when_it_is_called(
    function: Any, fault: str
) -> None:
    with pytest.raises(UnfitKernel) as refused:
        custom_op("mine::f", function, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert refused.value.fault == fault


def test_a_function_that_shows_no_signature_is_believed() -> None:
    made = custom_op("mine::f", max, mutates_args=(), schema="(int x, int y) -> int")
    with made:
        assert set(repeatedly(lambda: made(3, 4))) == {4}
