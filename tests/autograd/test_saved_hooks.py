"""Hooks of saved tensors: what nodes store, and what formulas read."""

import threading
from typing import Any

import pytest

from everyorder.runtime import Function, inference_mode, no_grad, tensor
from everyorder.runtime.autograd import grad, gradcheck, gradgradcheck
from everyorder.runtime.autograd.graph import (
    Node,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from everyorder.runtime.custom import custom_op
from everyorder.runtime.errors.autograd import AutogradMisuse, BackwardRefused
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.tensors.tensor import Tensor
from tests.autograd.made import grad_of


def leaf(*numbers: float) -> Tensor:
    return tensor([*numbers], requires_grad=True)


class Log:
    """Hooks that copy, and record their calls."""

    def __init__(self) -> None:
        self.packed: list[Any] = []
        self.unpacked: list[Any] = []

    def pack(self, saved: Tensor) -> Any:
        self.packed.append(saved.tolist())
        return [saved.detach().clone()]

    def unpack(self, stored: Any) -> Tensor:
        (saved,) = stored
        self.unpacked.append(saved.tolist())
        result: Tensor = saved
        return result

    def hooks(self) -> saved_tensors_hooks:
        return saved_tensors_hooks(self.pack, self.unpack)


class Cube(Function):
    """Saves an input, an output and None."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = x * x * x
        ctx.save_for_backward(x, result, None)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, result, nothing = ctx.saved_tensors
        assert nothing is None
        return gradient * 3 * result / x


def test_inputs_and_outputs_go_through_the_hooks() -> None:
    log, x = Log(), leaf(1.0, 2.0)
    with log.hooks():
        y = (x * x).exp()
    assert log.packed == [[1, 2], [1, 2], y.tolist()]
    assert log.unpacked == []
    y.sum().backward()
    assert len(log.unpacked) == 3
    assert grad_of(x).tolist() == pytest.approx([2 * y[0].item(), 4 * y[1].item()])


def test_lists_of_saved_tensors_go_through_the_hooks() -> None:
    from everyorder.runtime import stack

    log, x, y = Log(), leaf(1.0), leaf(3.0)
    with log.hooks():
        z = stack([x * y, y]).prod()
    z.backward()
    assert log.packed
    assert len(log.packed) == len(log.unpacked)
    assert (grad_of(x).item(), grad_of(y).item()) == (9, 6)


def test_a_function_reads_what_the_hooks_return() -> None:
    log, x = Log(), leaf(2.0)
    with log.hooks():
        y = Cube.apply(x)
    assert log.packed == [[2], [8]]
    y.backward()
    assert log.unpacked == [[2], [8]]
    assert grad_of(x).tolist() == [12]


def test_a_custom_operator_reads_what_the_hooks_return() -> None:
    @custom_op("saved_hooks::double_square", mutates_args=())
    def square(x: Tensor) -> Tensor:
        return x * x

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output)

    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, result = ctx.saved_tensors
        return gradient * 2 * result / x

    square.register_autograd(backward, setup_context=setup)
    log, x = Log(), leaf(3.0)
    with log.hooks():
        y = square(x)
    y.backward()
    assert (log.packed, log.unpacked) == ([[3], [9]], [[3], [9]])
    assert grad_of(x).tolist() == [6]


def test_unpacked_tensors_keep_their_place_in_the_graph() -> None:
    def double(x: Tensor, y: Tensor) -> Any:
        with Log().hooks():
            return (x.exp() * y).sin() + Cube.apply(x)

    x = tensor([0.3, 0.7], dtype="float64", requires_grad=True)
    y = tensor([0.2, 0.9], dtype="float64", requires_grad=True)
    assert gradcheck(double, (x, y))
    assert gradgradcheck(double, (x, y))


def test_a_pass_that_is_recorded_packs_as_well() -> None:
    log, x = Log(), leaf(2.0)
    with log.hooks():
        (first,) = grad((x * x * x).sum(), x, create_graph=True)
        saved = len(log.packed)
        assert first is not None
        (second,) = grad(first.sum(), x)
    assert saved > 4
    assert second is not None
    assert second.tolist() == [12]


def test_writes_to_views_keep_their_place_in_the_graph() -> None:
    def through_a_view(x: Tensor) -> Any:
        with Log().hooks():
            base = x * 2
            base[:2].exp_()
            base[1:].mul_(x[1:])
            return base * base

    x = tensor([0.3, 0.7, 0.1], dtype="float64", requires_grad=True)
    assert gradcheck(through_a_view, (x,))
    assert gradgradcheck(through_a_view, (x,))


def test_the_innermost_hooks_count_and_unpack_what_they_packed() -> None:
    outer, inner, x = Log(), Log(), leaf(2.0)
    with outer.hooks():
        with inner.hooks():
            y = x.exp()
        z = y.exp()
    z.backward()
    assert (len(outer.packed), len(inner.packed)) == (1, 1)
    assert (len(outer.unpacked), len(inner.unpacked)) == (1, 1)


def test_hooks_belong_to_their_thread() -> None:
    log, x, results = Log(), leaf(2.0), []
    with log.hooks():
        thread = threading.Thread(target=lambda: results.append(x.exp()))
        thread.start()
        thread.join()
    results[0].backward()
    assert log.packed == []


def test_hooks_are_not_called_where_nothing_is_recorded() -> None:
    log, x = Log(), leaf(2.0)
    with log.hooks(), no_grad():
        x.exp()
        Cube.apply(x)
    assert log.packed == []


def test_pack_receives_inputs_themselves_and_outputs_without_history() -> None:
    seen: list[Tensor] = []

    def pack(saved: Tensor) -> Tensor:
        seen.append(saved)
        return saved

    x = leaf(2.0)
    with saved_tensors_hooks(pack, lambda saved: saved):
        (x * x).exp()
    assert seen[0] is seen[1] is x
    assert seen[2].grad_fn is None


@pytest.mark.parametrize(
    "hooks",
    [
        lambda: saved_tensors_hooks(lambda saved: saved, lambda saved: saved),
        lambda: saved_tensors_hooks(
            lambda saved: [saved.detach()], lambda each: each[0]
        ),
        save_on_cpu,
    ],
)
def test_saved_elements_that_were_modified_are_refused(hooks: Any) -> None:
    x = leaf(2.0)
    with hooks():
        calls = [("result", x.exp()), ("saved_tensors[1]", Cube.apply(x))]
        y = x * 1
        calls += [("other", y * y), ("self", y.sin())]
    with no_grad():
        for written in (calls[0][1], calls[1][1], y):
            written.mul_(2)
    for name, result in calls:
        with pytest.raises(BackwardRefused) as error:
            result.backward(retain_graph=True)
        assert error.value.code == "SavedTensorModified"
        assert f"saved `{name}`" in " ".join(str(error.value).split())


def test_the_version_of_a_copy_is_not_compared() -> None:
    x = leaf(2.0)
    with Log().hooks():
        y = x * 1
        z = y * y
    plain = y * y
    with no_grad():
        y.mul_(100)
    z.backward(retain_graph=True)
    assert grad_of(x).tolist() == [4]
    with pytest.raises(BackwardRefused, match="modified in place"):
        plain.backward()


def test_a_freed_graph_is_refused() -> None:
    x = leaf(2.0)
    with Log().hooks():
        y, z = x.exp(), Cube.apply(x)
    for each in (y, z):
        each.backward()
        with pytest.raises(BackwardRefused) as error:
            each.backward()
        assert error.value.code == "GraphFreed"


def test_a_retained_graph_unpacks_each_time() -> None:
    log, x = Log(), leaf(2.0)
    with log.hooks():
        y = x.exp()
    y.backward(retain_graph=True)
    y.backward()
    assert len(log.unpacked) == 2


def test_a_hook_that_writes_to_the_tensor_is_refused() -> None:
    x = leaf(2.0)
    with (
        saved_tensors_hooks(lambda saved: saved.mul_(2), lambda saved: saved),
        pytest.raises(AutogradMisuse, match="pack hook wrote to the tensor"),
    ):
        x.exp()


@pytest.mark.parametrize("call", [lambda x: x.exp(), lambda x: x * x, Cube.apply])
def test_unpacking_must_return_a_tensor(call: Any) -> None:
    x = leaf(2.0)
    with saved_tensors_hooks(lambda saved: saved, lambda saved: 3):  # type: ignore[arg-type,return-value]  # the mistake
        y = call(x)
    with pytest.raises(AutogradMisuse, match="unpack hook returned a int for a tensor"):
        y.backward()


def test_errors_of_hooks_propagate_and_the_block_is_left() -> None:
    def fail(saved: Any) -> Any:
        raise TypeError("of the hook")

    x = leaf(2.0)
    for call in (lambda: x.exp(), lambda: x * x, lambda: Cube.apply(x)):
        with (
            pytest.raises(TypeError, match="of the hook"),
            saved_tensors_hooks(fail, fail),
        ):
            call()
    with saved_tensors_hooks(lambda saved: saved, fail):
        y = x.exp()
    with pytest.raises(TypeError, match="of the hook"):
        y.backward()
    log = Log()
    x.exp()
    assert log.packed == []


def test_a_hook_must_be_callable() -> None:
    with pytest.raises(AutogradMisuse, match="unpack_hook is a int, not a function"):
        saved_tensors_hooks(lambda saved: saved, 3)  # type: ignore[arg-type]  # the mistake


def test_hooks_are_refused_where_they_are_disabled() -> None:
    log, x = Log(), leaf(2.0)
    with disable_saved_tensors_hooks("not in this block"):
        with pytest.raises(AutogradMisuse, match="not in this block"), log.hooks():
            x.exp()
        x.exp()
    with (
        log.hooks(),
        pytest.raises(AutogradMisuse, match="neither"),
        disable_saved_tensors_hooks("neither"),
    ):
        x.exp()
    with log.hooks():
        x.exp()
    assert len(log.packed) == 1


def test_hooks_can_decorate() -> None:
    log, x = Log(), leaf(2.0)
    log.hooks()(lambda: x.exp())()
    assert len(log.packed) == 1


def test_save_on_cpu_computes_the_same() -> None:
    x = leaf(1.0, 2.0)
    with save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    expected = 2 * x.detach() * y.detach()
    assert grad_of(x).tolist() == expected.tolist()


def test_mutation_of_saved_tensors_is_refused_by_name() -> None:
    with pytest.raises(NotOffered, match="allow_mutation_on_saved_tensors"):
        allow_mutation_on_saved_tensors()


def test_a_gradient_edge_is_refused_by_name() -> None:
    with pytest.raises(NotOffered, match="get_gradient_edge"):
        get_gradient_edge(leaf(1.0))


def test_a_write_of_another_library_is_counted() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.detach().numpy()[0] = 7.0
    increment_version(y)
    assert y._version == 1
    with pytest.raises(BackwardRefused, match="was modified in"):
        y.sum().backward()
    base = tensor([1.0, 2.0])
    increment_version((base[1:], tensor([3.0])))
    assert base._version == 1
    with inference_mode():
        untracked = tensor([1.0])
    increment_version([untracked])
    assert untracked._version == 0
    with pytest.raises(AutogradMisuse, match="a value is of int"):
        increment_version([3])  # type: ignore[list-item]  # the mistake


def test_nodes_have_their_class() -> None:
    with Log().hooks():
        y = leaf(2.0).exp()
    assert isinstance(y.grad_fn, Node)
    assert y.grad_fn.name() == "ExpBackward"


def test_a_multi_hook_gets_all_gradients_once() -> None:
    x, y, z = leaf(2.0), leaf(3.0), leaf(5.0)
    calls: list[Any] = []

    def hook(gradients: Any) -> None:
        calls.append([each and each.tolist() for each in gradients])

    handle = register_multi_grad_hook((x, y, z), hook)
    (x * y).backward()
    (x * y * z + x).backward()
    grad(x * y * z, (x, z))
    assert calls == [[[3], [2], None], [[16], [10], [6]], [[15], None, [6]]]
    handle.remove()
    handle.remove()
    (x * y).backward()
    assert len(calls) == 3


def test_a_multi_hook_is_called_before_the_pass_ends() -> None:
    x = leaf(2.0)
    order: list[str] = []
    middle = x * 3
    end = middle * 4
    with register_multi_grad_hook((middle, end), lambda _: order.append("both")):
        x.register_hook(lambda _: order.append("x"))
        end.backward()
    assert order == ["both", "x"]


def test_a_multi_hook_for_any_gets_the_first_gradient() -> None:
    x, y = leaf(2.0), leaf(3.0)
    calls: list[Any] = []
    register_multi_grad_hook((x, y), lambda g: calls.append(g.tolist()), mode="any")
    (x * y).backward()
    assert calls in ([[3]], [[2]])


def test_a_multi_hook_does_not_keep_its_tensors() -> None:
    from weakref import ref

    x = leaf(2.0)
    y = x * 2
    register_multi_grad_hook((x, y), print)
    dead = ref(y.grad_fn), ref(x)
    del x, y
    assert [each() for each in dead] == [None, None]


def test_a_multi_hook_refuses_other_modes_and_tensors() -> None:
    with pytest.raises(AutogradMisuse, match="expected 'all' or 'any'"):
        register_multi_grad_hook((leaf(1.0),), print, mode="some")
    with pytest.raises(AutogradMisuse, match="value 1 is not a tensor that requires"):
        register_multi_grad_hook((leaf(1.0), tensor(1.0)), print)
