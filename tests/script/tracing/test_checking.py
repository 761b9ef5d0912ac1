"""A trace is compared with its function; what differs is told from its first node."""

import warnings
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Module, Tensor
from everyorder.runtime.errors.script import Untraceable
from everyorder.runtime.jit import script
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Function, Program, fork, wait
from everyorder.runtime.script.tracing import trace_function
from everyorder.runtime.script.tracing.check import different_graphs, different_results
from tests.coded import code
from tests.script.tracing.traced import arange, warned


def trace(function: Any, *args: Any, **options: Any) -> Function:
    """A trace; shapes are read on purpose here, and that is warned of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "While a function was traced, .shape")
        return trace_function(function, args, program=Program(), **options)


def refused(function: Any, *args: Any, **options: Any) -> Untraceable:
    """The error of a trace that is not its function."""
    with pytest.raises(Untraceable, check=code("TraceDiffers")) as raised:
        trace(function, *args, **options)
    return raised.value


def at(function: Any, line: int, column: int) -> str:
    """A place in this file, by the line of a function."""
    return f"{__file__}:{function.__code__.co_firstlineno + line}:{column}"


def test_another_way_of_python_is_found_at_its_first_node() -> None:
    def f(x: Any) -> Any:
        y = x.neg()
        if x.shape[0] > 2:
            y = y.exp()
        return y + 1

    error = refused(f, arange(2), check_inputs=[arange(2), arange(3)])
    assert error.fields() == {
        "function": "f",
        "inputs": "check_inputs[1]",
        "difference": "the result differs in 3 of 3 elements",
        "step": "core::add",
        "place": at(f, 4, 16),
        "found": "the next time `core::exp` was called in its place",
    }


def test_the_text_of_a_difference() -> None:
    error = Untraceable(
        code="TraceDiffers",
        function="f",
        inputs="check_inputs[1]",
        difference="the result differs in 3 of 3 elements",
        step="core::add",
        place="f.py:4:5",
        found="the next time `core::exp` was called in its place",
    )
    assert (
        str(error)
        == """\
The trace of `f` differs from the function for check_inputs[1].
  results: the result differs in 3 of 3 elements
  from:    core::add
  at:      f.py:4:5
  because: the next time `core::exp` was called in its place"""
    )


def test_a_shape_that_was_kept_is_found() -> None:
    def f(x: Any) -> Any:
        return x / x.shape[0]

    error = refused(f, arange(2), check_inputs=[arange(4)])
    assert (error.step, error.found) == (
        "core::div",
        "it was given 2, and the next time 4",
    )
    assert error.place == at(f, 1, 16)


def test_a_list_that_was_kept_is_found() -> None:
    def f(x: Any) -> Any:
        return x.reshape([x.shape[1], x.shape[0]])

    error = refused(f, arange(2, 3), check_inputs=[arange(3, 4)])
    assert error.difference == "running the trace raises ShapesDoNotFit"
    assert (error.step, error.found) == (
        "prim::ListConstruct",
        "it was given 3, and the next time 4",
    )
    assert type(error.__cause__).__name__ == "ShapesDoNotFit"


def test_what_changes_between_two_runs_is_found_with_the_same_inputs() -> None:
    count = [0]

    def f(x: Any) -> Any:
        count[0] += 1
        return x * count[0]

    error = refused(f, arange(2))
    assert error.inputs == "the inputs that it was traced with"
    assert error.found == "it was given 1, and the next time 2"


def test_random_numbers_are_warned_of() -> None:
    def f(x: Any) -> Any:
        return x + runtime.rand(2) * 2

    assert warned(f, arange(2)) == [
        "The trace of `f` draws random numbers by `core::rand`, and could not be "
        "checked for the inputs that it was traced with. "
        f"at: {at(f, 1, 20)} "
        "to do: trace without them, or with check_trace=False"
    ]
    assert warned(f, arange(2), check_trace=False) == []


def test_a_state_outside_of_operators_is_found() -> None:
    state = runtime.zeros(1)

    def f(x: Any) -> Any:
        state.add_(1)
        return x + state

    error = refused(f, arange(2))
    assert (error.step, error.place) == ("core::add_", at(f, 1, 9))
    assert error.found == "what it gives differs in 1 of 1 elements in two runs of it"


def test_elements_that_python_changes_are_found() -> None:
    def f(x: Any) -> Any:
        y = x.clone()
        y.storage().numpy()[0] = 7.0
        return y

    error = refused(f, arange(2))
    assert (error.step, error.place, error.found) == (
        "",
        "",
        "every operator gives the same; something else changes what comes out",
    )


def test_another_result_is_found() -> None:
    def f(x: Any) -> Any:
        y, z = x + 1, x + 2
        return y if x.shape[0] == 2 else z

    error = refused(f, arange(2), check_inputs=[arange(3)])
    assert error.found == "the next time another value was the result"


def test_more_and_fewer_nodes_are_found() -> None:
    def more(x: Any) -> Any:
        return x.neg() if x.shape[0] == 2 else x.neg().neg()

    def fewer(x: Any) -> Any:
        return x.neg() if x.shape[0] == 3 else x.neg().neg()

    error = refused(more, arange(2), check_inputs=[arange(3)])
    assert (error.step, error.found) == (
        "core::neg",
        "it is not in the trace: Python went another way",
    )
    error = refused(fewer, arange(2), check_inputs=[arange(3)])
    assert (error.step, error.found) == (
        "core::neg",
        "only the trace has it: Python went another way",
    )


def test_forks_are_compared_too() -> None:
    def f(x: Any) -> Any:
        return wait(fork(lambda: x * x.shape[0]))

    error = refused(f, arange(2), check_inputs=[arange(3)])
    assert (error.step, error.found) == (
        "core::mul",
        "it was given 2, and the next time 3",
    )


def test_other_functions_and_tensors_are_found() -> None:
    one = trace(lambda x: x + 1, arange(2))
    two = trace(lambda x: x + 2, arange(2))
    near, far = arange(2), arange(2, start=1)

    def calls(x: Any) -> Any:
        return call(one if x.shape[0] == 2 else two, (x,))

    def adds(x: Any) -> Any:
        return x + (near if x.shape == (2,) else far)

    error = refused(calls, arange(2), check_inputs=[arange(3)])
    assert error.found == "another function was called the next time"
    error = refused(adds, arange(2), check_inputs=[arange(1, 2)])
    assert (
        error.found == "it was given another tensor, and the next time another tensor"
    )


def test_the_tolerance_is_that_of_the_caller() -> None:
    count = [0.0]

    def f(x: Any) -> Any:
        count[0] += 1
        y = x.clone()
        y.storage().numpy()[0] = count[0] * 1e-3
        return y + 1

    assert refused(f, arange(2)).difference == "the result differs in 1 of 2 elements"
    assert trace(f, arange(2), check_tolerance=0.1) is not None


NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (arange(2), arange(2), ""),
        (runtime.tensor([NAN, float("inf")]), runtime.tensor([NAN, float("inf")]), ""),
        (runtime.tensor([NAN]), runtime.tensor([1.0]), "differs in 1 of 1 elements"),
        (runtime.zeros(0), runtime.zeros(0), ""),
        (arange(2), arange(2).to(runtime.float64), "dtype"),
        (arange(2), arange(1, 2), "has the shape (2,), and (1, 2)"),
        (arange(2).to(runtime.int64), arange(2).to(runtime.int64), ""),
        ((arange(2), arange(3)), (arange(2),), "they do not have the same structure"),
        ({"a": arange(2)}, {"b": arange(2)}, "they do not have the same structure"),
        ([arange(2)], [arange(2) * 2], "the result[0] differs in 1 of 2 elements"),
        (runtime.zeros(2, device="meta"), runtime.zeros(2, device="meta"), ""),
        (3, 3, ""),
        (3, 4, "the result is 3, and 4"),
    ],
    ids=range(13),
)
def test_results_are_compared(one: Any, other: Any, text: str) -> None:
    found = different_results(one, other, 1e-5)
    assert text in found
    assert bool(text) == bool(found)


def test_every_planted_fault_is_found() -> None:
    def f(x: Any) -> Any:
        return x.neg() * 2

    for spoil, text in (
        ("kind", "the next time `core::neg` was called in its place"),
        ("input", "the next time it was given another value"),
        ("constant", "it was given 3, and the next time 2"),
        ("missing", "it is not in the trace: Python went another way"),
    ):
        graph, again = (trace(f, arange(2)).graph for _ in range(2))
        assert different_graphs(graph, again) is None
        neg, two, mul = graph.nodes()
        if spoil == "kind":
            neg.kind = "core::exp"
        elif spoil == "input":
            mul.set_input(0, graph.block.parameters[0])
        elif spoil == "constant":
            two.attributes["value"] = 3
        else:
            graph.block.exit.set_inputs([neg.output])
            mul.destroy()
        found = different_graphs(graph, again)
        assert found is not None
        assert found.found == text


def test_a_function_that_is_compiled_in_the_traced_one_is_the_same() -> None:
    def f(x: Any, again: int = 1) -> Any:
        def least(y: Tensor, n: int) -> Tensor:
            if bool(y.sum() > n):
                return y + n
            return y - n

        return script(least)(x, again) * 2

    function = trace(f, arange(3))
    assert call(function, (arange(3),), {}).tolist() == [2.0, 4.0, 6.0]
    assert call(function, (-arange(3),), {}).tolist() == [-2.0, -4.0, -6.0]


def test_another_function_that_is_compiled_is_told() -> None:
    counts = iter(range(100))

    def f(x: Any) -> Any:
        number = next(counts)

        def step(y: Tensor) -> Tensor:
            return y + number

        return script(step)(x)

    assert refused(f, arange(3)).found == "another function was called the next time"


def test_a_module_of_outside_is_told() -> None:
    module = script(Outside())
    with pytest.raises(Untraceable, match=r"make it\s+a\s+submodule"):
        trace(lambda x: module(x), arange(3))


class Outside(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1
