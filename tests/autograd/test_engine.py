"""Running graphs: order, accumulation, what is kept, and what is refused."""

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import tensor
from everyorder.runtime.autograd import backward, grad, no_grad
from everyorder.runtime.errors.autograd import AutogradMisuse, BackwardRefused
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.autograd import made
from tests.autograd.made import grad_of
from tests.coded import code


def leaf(*values: float) -> Any:
    return made.leaf(*values, dtype="float32")


def test_gradients_meet_and_accumulate() -> None:
    x = leaf(1, 2)
    y = x * x + x
    y.sum().backward()
    assert grad_of(x).tolist() == [3, 5]
    (x * 2).sum().backward()
    assert grad_of(x).tolist() == [5, 7]


def test_leaves_do_not_share_a_gradient() -> None:
    a, b = leaf(1), leaf(2)
    (a + b).sum().backward()
    grad_of(a).add_(1)
    assert (grad_of(a).tolist(), grad_of(b).tolist()) == ([2], [1])


def test_a_given_gradient_is_not_kept() -> None:
    x = leaf(1, 2)
    given = tensor([3.0, 4.0])
    (x * 1).backward(given)
    grad_of(x).add_(1)
    x.backward(given)
    assert given.tolist() == [3, 4]
    assert grad_of(x).tolist() == [7, 9]


def test_broadcast_gradients_are_summed() -> None:
    row, number = leaf(1, 2, 3), tensor(2.0, requires_grad=True)
    (tensor(np.ones((4, 3), np.float32)) * row * number).sum().backward()
    assert grad_of(row).tolist() == [8, 8, 8]
    assert (grad_of(number).shape, grad_of(number).item()) == ((), 24)


def test_gradients_have_the_dtype_of_the_value() -> None:
    x, wide = leaf(1, 2), tensor([1.0, 2.0], dtype="float64")
    (x * wide).sum().backward()
    assert str(grad_of(x).dtype) == "float32"


def test_a_real_input_of_a_complex_result_has_a_real_gradient() -> None:
    x = leaf(1, 2)
    y = x * tensor([1 + 2j, 3j])
    y.backward(tensor([1 + 1j, 1 + 0j]))
    assert str(grad_of(x).dtype) == "float32"
    assert grad_of(x).tolist() == [3, 0]


def test_the_second_run_is_refused_unless_the_graph_is_kept() -> None:
    x = leaf(2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert grad_of(x).tolist() == [8]
    with pytest.raises(BackwardRefused, check=code("GraphFreed")) as refused:
        y.backward()
    assert str(refused.value) == (
        "The tensors that `core::mul` saved for its gradient are freed: the graph "
        "was run\n"
        "backwards before.\n"
        "  to do: pass retain_graph=True the first time"
    )


def test_a_graph_that_saved_no_tensor_runs_again() -> None:
    x = leaf(2, 3)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert grad_of(x).tolist() == [2, 2]


def test_grad_returns_and_accumulates_nothing() -> None:
    x, y = leaf(3), leaf(4)
    middle = x * y
    found = grad(middle * x, [x, middle, y])
    assert [g and g.tolist() for g in found] == [[24], [3], [9]]
    assert x.grad is None
    assert middle.grad is None


def test_grad_of_several_outputs() -> None:
    x = leaf(1, 2)
    (found,) = grad([x * 2, x.sum()], x, [tensor([1.0, 10.0]), None])
    assert found is not None
    assert found.tolist() == [3, 21]


def test_double_backward() -> None:
    x = leaf(2)
    (first,) = grad((x * x * x).sum(), x, create_graph=True)
    assert first is not None
    assert first.tolist() == [12]
    (second,) = grad(first.sum(), x, create_graph=True)
    assert second is not None
    assert second.tolist() == [12]
    (third,) = grad(second.sum(), x)
    assert third is not None
    assert third.tolist() == [6]


def test_unused_inputs() -> None:
    x, other = leaf(1), leaf(2)
    y = x.sum()
    assert grad(y, [other], retain_graph=True, allow_unused=True) == (None,)
    (zero,) = grad(y, [other], retain_graph=True, materialize_grads=True)
    assert zero is not None
    assert zero.tolist() == [0]
    with pytest.raises(BackwardRefused, check=code("UnusedInput")) as unused:
        grad(y, [x, other])
    assert unused.value.fields() == {"index": 1, "shape": (1,)}
    with pytest.raises(BackwardRefused, check=code("InputWithoutGradient")):
        grad(y, [tensor([1.0])])


@pytest.mark.parametrize("create_graph", [False, True])
def test_zeros_that_are_filled_in_can_be_differentiated(create_graph: bool) -> None:
    x, other = leaf(1), leaf(2)
    gradients = grad(
        (x * x).sum(), [x, other], create_graph=create_graph, materialize_grads=True
    )
    for each in gradients:
        assert each is not None
        assert each.requires_grad is create_graph
    _, zero = gradients
    assert zero is not None
    assert (zero.is_leaf, zero.tolist()) == (True, [0])


def test_no_inputs_are_a_mistake() -> None:
    x = leaf(1)
    y = (x * x).sum()
    for asked, run in (
        ("grad", lambda: grad(y, [])),
        ("backward", lambda: backward(y, inputs=[])),
        ("backward", lambda: y.backward(inputs=())),
    ):
        with pytest.raises(BackwardRefused, check=code("NoInputs")) as caught:
            run()
        assert caught.value.fields() == {"asked": asked}
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2]


def test_only_the_way_to_the_inputs_is_run() -> None:
    x, other = leaf(1), leaf(2)
    y = x * 3 + other.exp()
    ran: list[str] = []
    for node, _ in y.grad_fn.next_functions:
        node.register_prehook(lambda _, node=node: ran.append(node.name()))
    grad(y, x)
    assert ran == ["MulBackward"]


def test_backward_into_chosen_inputs() -> None:
    x, other = leaf(2), leaf(3)
    middle = x * 5
    y = (middle * other).sum()
    backward(y, inputs=[x, middle], retain_graph=True)
    assert (grad_of(x).tolist(), grad_of(middle).tolist()) == ([15], [3])
    assert other.grad is None
    backward(y, inputs=other)
    assert grad_of(other).tolist() == [10]
    assert grad_of(x).tolist() == [15]


def test_roots_that_have_no_gradient() -> None:
    x = leaf(1, 2)
    with pytest.raises(BackwardRefused, check=code("GradientNeeded")):
        (x * 2).backward()
    with pytest.raises(BackwardRefused, check=code("NoGradientToCompute")) as nothing:
        tensor([1.0]).sum().backward()
    assert nothing.value.fields() == {"asked": "backward", "index": 0, "shape": ()}
    with no_grad(), pytest.raises(BackwardRefused, check=code("NoGradientToCompute")):
        (x * 2).sum().backward()
    with pytest.raises(AutogradMisuse) as shape:
        (x * 2).backward(tensor([1.0]))
    assert shape.value.what == "shape"
    with pytest.raises(AutogradMisuse) as dtype:
        (x * 2).backward(tensor([1.0, 1.0], dtype="complex64"))
    assert (dtype.value.expected, dtype.value.found) == ("float32", "complex64")
    with pytest.raises(AutogradMisuse) as number:
        backward([x.sum(), x.sum()], [None])
    assert number.value.what == "number"


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "bool"])
def test_the_gradient_of_a_root_is_converted(dtype: str) -> None:
    x = leaf(1, 2)
    given = tensor([1, 0], dtype=dtype)
    (x * 2).backward(given)
    assert x.grad.dtype.name == "float32"
    assert x.grad.tolist() == [2.0, 0.0]
    (found,) = grad(x * 2, x, given)
    assert found is not None
    assert found.dtype.name == "float32"
    backward([x * 2, x * 3], [given, given])
    assert x.grad.tolist() == [7.0, 0.0]


class Losing(TorchDispatchMode):
    """Loses the results of one operator, as a handler that forgets to return."""

    def __init__(self, operator: str) -> None:
        super().__init__()
        self._operator = operator

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        return None if str(func) == self._operator else result


@pytest.mark.parametrize(
    ("operator", "recorded", "before"),
    [
        ("core.add.default", True, False),
        ("core.add.default", True, True),
        ("core.clone.default", True, False),
    ],
)
def test_a_sum_of_gradients_that_a_handler_loses_is_refused(
    operator: str, recorded: bool, before: bool
) -> None:
    """The gradient would be one of its parts, and nobody would know."""
    x = leaf(1, 2)
    if before:
        x.sum().backward()
    y = x * x if operator == "core.clone.default" else x * x + x * 2
    with Losing(operator), pytest.raises(AutogradMisuse) as lost:
        y.backward(tensor([1.0, 1.0]), create_graph=recorded)
    assert (lost.value.what, lost.value.found) == ("type", "None")
    assert operator.split(".")[1] in lost.value.where


def test_roots_that_meet_are_added_by_somebody() -> None:
    x = leaf(1, 2)
    y, one = x * 2, tensor([1.0, 1.0])
    with (
        Losing("core.add.default"),
        pytest.raises(AutogradMisuse, check=code("GradientMismatch")),
    ):
        backward([y, y], [one, one])


def test_saved_inputs_are_checked() -> None:
    x = leaf(1, 2)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(BackwardRefused) as modified:
        z.sum().backward()
    assert modified.value.fields() == {
        "operator": "core::mul",
        "argument": "other",
        "shape": (2,),
        "dtype": "float32",
        "expected": 0,
        "found": 1,
    }


def test_saved_outputs_are_checked() -> None:
    y = leaf(1, 2).exp()
    z = y * 1
    y.add_(1)
    with pytest.raises(BackwardRefused) as modified:
        z.sum().backward()
    assert (modified.value.operator, modified.value.argument) == ("core::exp", "result")


def test_a_change_by_a_view_is_seen() -> None:
    x = leaf(1, 2)
    data = tensor([1.0, 2.0])
    y = x * data
    data[0:1].add_(1)
    with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
        y.sum().backward()


def test_ten_thousand_nodes_need_no_stack() -> None:
    x = leaf(1)
    y = x
    for _ in range(10_000):
        y = y + 1
    y.backward()
    assert grad_of(x).tolist() == [1]
    del y


def test_graphs_die_without_the_collector() -> None:
    gc.disable()
    try:
        x = leaf(1, 2)
        kept: list[weakref.ref[Any]] = []
        makers: tuple[Callable[[], Any], ...] = (
            lambda: (x * 2).exp().sum(),
            lambda: (x * 2).relu().mul_(2).sum(),
            lambda: (x * 2)[1:].add_(1).exp().sum(),
            lambda: (x * 2).softmax(0).sum(),
        )
        for make in makers:
            y = make()
            kept += [weakref.ref(y), weakref.ref(y.grad_fn)]
            kept += [weakref.ref(node) for node, _ in y.grad_fn.next_functions]
            del y
        assert [each() for each in kept] == [None] * 12
        (first,) = grad((x * x).sum(), x, create_graph=True)
        held = weakref.ref(first)
        del first
        assert held() is None
    finally:
        gc.enable()


def test_what_is_saved_is_let_go_on_the_way() -> None:
    x = leaf(1, 2)
    y = x.exp()
    held = weakref.ref(y)
    z = (y * 3).sum()
    del y
    assert held() is None
    z.backward()
    np.testing.assert_allclose(grad_of(x).numpy(), 3 * np.exp([1, 2]), rtol=1e-6)


def test_threads_share_leaves() -> None:
    x = leaf(*range(8))
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(50):
            (x * 2).sum().backward()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert grad_of(x).tolist() == [400] * 8


def test_threads_share_a_graph() -> None:
    """Two runs through one part of the graph, while a third thread records nothing."""
    x = leaf(*range(8))
    shared = (x * x).t() * 1
    shared.retain_grad()
    seen: list[float] = []
    x.register_hook(lambda gradient: seen.append(gradient[1].item()))
    quiet: list[bool] = []
    start = threading.Barrier(3)

    def work(factor: float) -> None:
        start.wait()
        for _ in range(40):
            (shared * factor).sum().backward(retain_graph=True)

    def rest() -> None:
        with no_grad():
            start.wait()
            quiet.extend((shared * 2).requires_grad for _ in range(200))

    workers = [threading.Thread(target=work, args=(factor,)) for factor in (1, 3)]
    workers.append(threading.Thread(target=rest))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert grad_of(x).tolist() == [2 * 160 * value for value in range(8)]
    assert grad_of(shared).tolist() == [160] * 8
    assert sorted(seen) == [2] * 40 + [6] * 40
    assert not any(quiet)


def test_a_leaf_has_one_accumulator() -> None:
    x = leaf(1)
    first, second = (x * 2).grad_fn, (x * 3).grad_fn
    assert first.next_functions[0][0] is second.next_functions[0][0]
    assert first.next_functions[0][0].name() == "AccumulateGrad"


def test_gradients_set_by_hand() -> None:
    x = leaf(1, 2)
    x.grad = tensor([1.0, 1.0])
    x.sum().backward()
    assert grad_of(x).tolist() == [2, 2]
    x.grad = None
    assert x.grad is None
    for wrong in (tensor([1.0]), tensor([1.0, 1.0], dtype="float64"), 3):
        with pytest.raises(AutogradMisuse, check=code("GradientMismatch")):
            x.grad = wrong


def test_gradients_that_do_not_fit() -> None:
    x = leaf(1, 2)
    y = x * 1
    y.grad_fn.register_hook(lambda results, gradients: (*results, None))
    with pytest.raises(AutogradMisuse) as number:
        y.sum().backward()
    assert (number.value.expected, number.value.found) == (
        "2 gradients",
        "3 gradients",
    )
    z = x * 1
    z.grad_fn.register_hook(
        lambda results, gradients: (tensor([1.0, 1.0], device="meta"), None)
    )
    with pytest.raises(AutogradMisuse) as device:
        z.sum().backward()
    assert device.value.fields() == {
        "where": "`core::mul`",
        "what": "device",
        "expected": "cpu",
        "found": "meta",
    }


def test_a_hook_may_take_the_gradient_away() -> None:
    x = leaf(1)
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (None,))
    z = y + x
    z.register_hook(lambda g: None)
    z.backward()
    assert grad_of(x).tolist() == [1]


def test_results_are_numbered() -> None:
    first, second = (leaf(1, 2) * 1).split(1)
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert leaf(1).output_nr == 0
    assert repr(first.grad_fn) == "<SplitBackward>"


def test_create_graph_accumulates_history() -> None:
    x = leaf(3)
    (x * x).sum().backward(create_graph=True)
    (second,) = grad(grad_of(x).sum(), x)
    assert second is not None
    assert second.tolist() == [2]
