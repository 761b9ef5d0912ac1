"""Checkpoints: a function runs again in the backward pass, and gives the same."""

import gc
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import ref

import pytest

from everyorder import runtime
from everyorder.runtime import (
    Sequential,
    Tensor,
    autocast,
    inference_mode,
    is_inference_mode_enabled,
    no_grad,
    tensor,
)
from everyorder.runtime.autograd import Function, grad, gradcheck, gradgradcheck
from everyorder.runtime.autograd.graph import saved_tensors_hooks
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    BackwardRefused,
    CheckpointError,
)
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)


def leaf(*numbers: float) -> Tensor:
    return tensor([*numbers], requires_grad=True)


class Counted:
    """A function that counts its runs, and how many reached their end."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def __call__(self, x: Tensor, *more: Any, **options: Any) -> Tensor:
        self.begun += 1
        result = (x * x).exp().sin()
        self.ended += 1
        return result


def gradient_of(call: Any, *numbers: float) -> list[float]:
    x = leaf(*numbers)
    call(x).sum().backward()
    assert x.grad is not None
    gradient: list[float] = x.grad.tolist()
    return gradient


def test_the_gradient_is_that_of_the_function() -> None:
    count = Counted()
    expected = gradient_of(Counted(), 0.5, 1.5)
    assert gradient_of(lambda x: checkpoint(count, x), 0.5, 1.5) == expected
    # The second run stops at the last tensor that is saved.
    assert (count.begun, count.ended) == (2, 1)


def test_nothing_is_computed_again_where_nothing_is_recorded() -> None:
    count = Counted()
    with no_grad():
        y = checkpoint(count, leaf(1.0))
    assert not y.requires_grad
    assert count.begun == 1


def test_the_tensors_between_are_not_kept() -> None:
    kept: list[Any] = []

    def function(x: Tensor) -> Tensor:
        between = x.exp()
        kept.append(ref(between))
        return between.exp()

    x = leaf(1.0)
    y = checkpoint(function, x)
    assert kept[0]() is None
    y.backward()
    assert [each() for each in kept] == [None, None]


def test_the_graph_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        x = leaf(1.0)
        y = checkpoint(lambda x: x.exp().exp(), x)
        node, dead = ref(y.grad_fn), ref(x)
        y.backward()
        del x, y
        assert (node(), dead()) == (None, None)
    finally:
        gc.enable()


def test_gradients_have_gradients() -> None:
    x = tensor([0.3, 0.7], dtype="float64", requires_grad=True)

    def function(x: Tensor) -> Any:
        return checkpoint(lambda x: (x * x).exp().sin() * x, x)

    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_checkpoints_can_be_nested() -> None:
    counts = Counted(), Counted()

    def inner(x: Tensor) -> Any:
        return checkpoint(counts[0], x.exp()) * x

    def outer(x: Tensor) -> Any:
        return checkpoint(lambda x: checkpoint(inner, x.sin()) + counts[1](x), x)

    def plain(x: Tensor) -> Tensor:
        y = x.sin()
        return Counted()(y.exp()) * y + Counted()(x)

    assert gradient_of(outer, 0.25, 0.5) == gradient_of(plain, 0.25, 0.5)
    x = tensor([0.3], dtype="float64", requires_grad=True)
    assert gradgradcheck(outer, (x,))


def test_arguments_of_a_nested_checkpoint_are_not_kept() -> None:
    kept: list[Any] = []

    def outer(x: Tensor) -> Any:
        between = x.exp()
        kept.append(ref(between))
        return checkpoint(lambda y: y.exp(), between)

    y = checkpoint(outer, leaf(1.0))
    assert kept[0]() is None
    y.backward()


def test_random_numbers_are_drawn_again() -> None:
    def function(x: Tensor) -> Any:
        return (x * runtime.rand(4)).exp()

    runtime.manual_seed(7)
    expected = gradient_of(function, 1.0, 2.0, 3.0, 4.0)
    after = runtime.rand(1).item()
    runtime.manual_seed(7)
    assert gradient_of(lambda x: checkpoint(function, x), 1.0, 2.0, 3.0, 4.0) == (
        expected
    )
    assert runtime.rand(1).item() == after
    runtime.manual_seed(7)
    other = gradient_of(
        lambda x: checkpoint(function, x, preserve_rng_state=False), 1.0, 2.0, 3.0, 4.0
    )
    assert other != expected


def test_autocast_is_entered_again() -> None:
    def function(x: Tensor) -> Any:
        return x.mm(x).exp()

    def cast(call: Any) -> Any:
        def inside(x: Tensor) -> Any:
            with autocast("cpu"):
                return call(x.reshape(2, 2)).float()

        return inside

    numbers = 0.1, 0.2, 0.3, 0.4
    expected = gradient_of(cast(function), *numbers)
    assert gradient_of(cast(lambda x: checkpoint(function, x)), *numbers) == expected
    assert expected != gradient_of(lambda x: function(x.reshape(2, 2)), *numbers)


class Pair(NamedTuple):
    first: Tensor
    second: Any


def test_arguments_and_outputs_have_any_structure() -> None:
    def function(x: Tensor, pair: Any, *, scale: float, table: Any) -> Any:
        return Pair(x * pair[0], {"sum": [x.exp() * scale * table["y"], None]})

    x, y = leaf(2.0), leaf(3.0)
    result = checkpoint(function, x, (y, "text"), scale=2.0, table={"y": y})
    assert type(result) is Pair
    assert result.second["sum"][1] is None
    (result.first + result.second["sum"][0]).backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(3 + 6 * 7.389056)


def test_a_function_with_its_own_gradient_is_checkpointed() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x, x.exp())
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            # Read twice in one pass.
            assert len(ctx.saved_tensors) == 2
            return 2 * ctx.saved_tensors[0] * gradient

    assert gradient_of(lambda x: checkpoint(Square.apply, x), 3.0) == [6]


def test_a_retained_graph_is_computed_again_in_each_pass() -> None:
    count, x = Counted(), leaf(0.5)
    y = checkpoint(count, x)
    first = grad(y, x, retain_graph=True)[0]
    second = grad(y, x, retain_graph=True)[0]
    assert first is not None
    assert second is not None
    assert first.item() == second.item()
    assert count.begun == 3
    y.backward()
    with pytest.raises(BackwardRefused, match="freed"):
        y.backward()


def test_only_what_a_pass_needs_is_computed_again() -> None:
    counts = Counted(), Counted()
    x, y = leaf(0.5), leaf(0.5)
    total = checkpoint(counts[0], x) + checkpoint(counts[1], y)
    grad(total, y)
    assert [each.begun for each in counts] == [1, 2]


def test_a_function_may_run_a_pass_itself() -> None:
    def function(x: Tensor) -> Any:
        (slope,) = grad((x * x).exp(), x, create_graph=True)
        assert slope is not None
        return slope * x

    for stops in (True, False):
        with set_checkpoint_early_stop(stops):
            assert gradient_of(lambda x: checkpoint(function, x), 0.5) == (
                pytest.approx(gradient_of(function, 0.5))
            )


def test_without_early_stop_the_function_ends() -> None:
    count = Counted()
    gradient_of(lambda x: checkpoint(count, x, early_stop=False), 0.5)
    assert (count.begun, count.ended) == (2, 2)
    with set_checkpoint_early_stop(True):
        gradient_of(lambda x: checkpoint(count, x, early_stop=False), 0.5)
    assert (count.begun, count.ended) == (4, 3)


def test_a_function_that_catches_exceptions_is_stopped_too() -> None:
    def function(x: Tensor) -> Any:
        try:
            return x.exp()
        except Exception:
            return x

    assert gradient_of(lambda x: checkpoint(function, x), 0.0) == [1]


def test_other_shapes_are_refused() -> None:
    sizes = iter([2, 3])

    def function(x: Tensor) -> Any:
        return (x * runtime.ones(next(sizes))).exp()

    with pytest.raises(CheckpointError) as error:
        gradient_of(lambda x: checkpoint(function, x), 1.0)
    assert error.value.code == "MetadataChanged"
    assert "at first: shape (2,), float32, cpu" in str(error.value)
    assert "again:    shape (3,), float32, cpu" in str(error.value)


def test_other_shapes_are_not_compared_without_the_check() -> None:
    sizes = iter([1, 1])
    y = checkpoint(
        lambda x: (x * runtime.ones(next(sizes))).exp(),
        leaf(1.0),
        determinism_check="none",
    )
    y.backward()


@pytest.mark.parametrize(("first", "again"), [(2, 1), (1, 2)])
def test_another_number_of_tensors_is_refused(first: int, again: int) -> None:
    times = iter([first, again])

    def function(x: Tensor) -> Any:
        for _ in range(next(times)):
            x = x.exp()
        return x

    with pytest.raises(CheckpointError) as error:
        gradient_of(lambda x: checkpoint(function, x, early_stop=False), 1.0)
    assert error.value.code == "CountChanged"
    assert f"saved {again} tensors" in str(error.value).replace("\n", " ")


def test_an_argument_that_was_modified_is_refused() -> None:
    x = leaf(1.0)
    y = x * 1
    z = checkpoint(lambda y: y.exp(), y)
    with no_grad():
        y.mul_(2)
    with pytest.raises(BackwardRefused, match="tensor 0 of the arguments"):
        z.backward()


def written_after(x: Tensor) -> Tensor:
    y = x.exp()
    z = y.sin()
    y.mul_(2)
    return z.sum()


def written_between(x: Tensor) -> Tensor:
    y = x.exp()
    y.mul_(2)
    return (y * y).sum()


def nested(function: Any, **options: Any) -> Any:
    return lambda x: checkpoint(function, x * 1, **options).sum()


@pytest.mark.parametrize("wrap", [lambda function, **_: function, nested])
def test_a_saved_tensor_that_the_function_modifies_is_refused(wrap: Any) -> None:
    for function in (written_after, written_between):
        with pytest.raises(BackwardRefused, match=r"modified\s+in\s+place"):
            function(leaf(0.5)).backward()
        call = wrap(function, early_stop=False)
        with pytest.raises(BackwardRefused) as error:
            gradient_of(lambda x, call=call: checkpoint(call, x, early_stop=False), 0.5)
        assert error.value.code == "SavedTensorModified"
        assert f"of {function.__name__}`" in " ".join(str(error.value).split())


def test_a_run_that_stops_before_the_write_has_the_values_that_were_saved() -> None:
    expected = gradient_of(lambda x: x.exp().sin(), 0.5)
    assert gradient_of(lambda x: checkpoint(written_after, x), 0.5) == expected
    with pytest.raises(BackwardRefused, match=r"modified\s+in\s+place"):
        gradient_of(lambda x: checkpoint(written_between, x), 0.5)


@pytest.mark.parametrize("checks", ["default", "none"])
def test_a_saved_tensor_that_is_modified_between_the_runs_is_refused(
    checks: str,
) -> None:
    scale, x = tensor([2.0]), leaf(0.5)

    def call(x: Tensor) -> Any:
        return checkpoint(lambda x: x * scale, x, determinism_check=checks)

    assert gradient_of(call, 0.5) == [2]
    for y in (call(x), checkpoint(call, x)):
        scale.mul_(3)
        with pytest.raises(BackwardRefused, match="tensor 0 of"):
            y.backward()


def test_a_buffer_that_each_run_writes_to_is_not_refused() -> None:
    buffer = tensor([0.0])

    def function(x: Tensor) -> Tensor:
        return x * buffer.copy_(x.detach())

    x, y = leaf(2.0), leaf(3.0)
    (checkpoint(function, x) + checkpoint(function, y)).backward()
    assert [x.grad, y.grad] == [tensor([2.0]), tensor([3.0])]


def test_an_output_that_is_modified_is_computed_again() -> None:
    x = leaf(0.5)
    y = checkpoint(lambda x: x.exp(), x)
    y.mul_(2)
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(2 * 1.6487213)


@pytest.mark.parametrize("call", [Counted(), nested(Counted())])
def test_the_function_runs_again_outside_of_inference_mode(call: Any) -> None:
    x = leaf(0.5)
    y = checkpoint(call, x)
    with inference_mode():
        y.backward()
        assert is_inference_mode_enabled()
    assert x.grad is not None
    assert x.grad.tolist() == gradient_of(Counted(), 0.5)


def test_errors_of_the_second_run_propagate() -> None:
    runs = iter([True, False])

    def function(x: Tensor) -> Any:
        if not next(runs):
            raise ValueError("of the second run")
        return x.exp()

    with pytest.raises(ValueError, match="of the second run"):
        gradient_of(lambda x: checkpoint(function, x), 1.0)


def test_contexts_surround_the_runs() -> None:
    order: list[str] = []

    @contextmanager
    def context(name: str) -> Any:
        order.append(f"enter {name}")
        yield
        order.append(f"leave {name}")

    y = checkpoint(
        lambda x: order.append("run") or x.exp(),  # type: ignore[func-returns-value]  # a call in an expression
        leaf(1.0),
        context_fn=lambda: (context("first"), context("second")),
        early_stop=False,
    )
    y.backward()
    assert order == [
        *("enter first", "run", "leave first"),
        *("enter second", "run", "leave second"),
    ]


def test_hooks_around_a_checkpoint_see_its_arguments() -> None:
    packed: list[Any] = []

    def pack(saved: Tensor) -> Tensor:
        packed.append(saved.tolist())
        return saved

    x = leaf(1.0)
    with saved_tensors_hooks(pack, lambda saved: saved):
        y = checkpoint(lambda x: x.exp().exp(), x)
    y.backward()
    assert packed == [[1]]


def test_a_sequence_is_checkpointed_in_parts() -> None:
    counts = [Counted() for _ in range(5)]

    def plain(x: Tensor) -> Tensor:
        for _ in counts:
            x = Counted()(x)
        return x

    call = lambda x: checkpoint_sequential(counts, 2, x)  # noqa: E731  # shorter
    assert gradient_of(call, 0.5) == gradient_of(plain, 0.5)
    assert [count.begun for count in counts] == [2, 2, 1, 1, 1]
    one = Sequential()
    assert checkpoint_sequential(one, 1, leaf(2.0)).tolist() == [2]
    for wrong in (0, 6, 1.5):
        with pytest.raises(AutogradMisuse, match="expected 1 to 5"):
            checkpoint_sequential(counts, wrong, leaf(2.0))  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("option", ["use_reentrant", "debug"])
def test_what_is_not_offered_is_refused_by_name(option: str) -> None:
    options: Any = {option: True}
    with pytest.raises(NotOffered, match=rf"checkpoint\({option}=True\)"):
        checkpoint(lambda x: x, leaf(1.0), **options)


def test_another_check_is_refused() -> None:
    with pytest.raises(AutogradMisuse, match="expected 'default' or 'none'"):
        checkpoint(lambda x: x, leaf(1.0), determinism_check="some")
