"""Views under autograd: listed by their base, written to, and made again by operators.

Writing in place goes to what has no gradient, to views of nothing, below a handler, and
to lists of tensors.
"""

from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, tensor
from everyorder.runtime.autograd import (
    GradientMissing,
    grad,
    no_grad,
    set_fallback_mode,
)
from everyorder.runtime.custom import custom_op
from everyorder.runtime.errors.autograd import NotImplementedFormula, WriteRefused
from everyorder.runtime.torch_dispatch import return_and_correct_aliasing
from tests.coded import code
from tests.examples.nested_wrappers import Wrapper

THREADS = 4
VIEWS = 400


def test_every_view_that_lives_is_told_whoever_made_it() -> None:
    base = runtime.zeros(2, 3)
    start, kept = Barrier(THREADS), list[Tensor]()

    def make() -> None:
        start.wait()
        for number in range(VIEWS):
            view = base.view(3, 2)
            if not number % 7:
                kept.append(view)

    threads = [Thread(target=make) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not any(view.requires_grad for view in kept)
    base.copy_(runtime.ones(2, 3, requires_grad=True))
    assert len(kept) == THREADS * len(range(0, VIEWS, 7))
    assert all(view.requires_grad for view in kept)


def test_views_that_are_gone_are_forgotten() -> None:
    base = runtime.zeros(2, 3)
    kept = [base.view(6) for _ in range(5)]
    for _ in range(10_000):
        base.view(3, 2)
    history = base._history
    assert history is not None
    assert len(kept) <= len(history.views) < 32


WRITES: dict[str, Any] = {
    "copy_": lambda to, of: to.copy_(of),
    "all": lambda to, of: to.__setitem__(..., of),
    "slice": lambda to, of: to.__setitem__(slice(None), of),
    "view": lambda to, of: to.view(3, 1)[:, 0].copy_(of),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_what_is_written_to_integers_is_constant(write: str, dtype: str) -> None:
    weights: Any = tensor([1.0, 2.0, 3.0], requires_grad=True)
    target = runtime.zeros(3, dtype=dtype)
    WRITES[write](target, weights)
    assert not target.requires_grad
    assert target.grad_fn is None
    assert target.numpy().tolist() == np.array([1, 2, 3]).astype(dtype).tolist()
    (target * weights).sum().backward()
    assert weights.grad.tolist() == target.to(dtype="float32").tolist()


def test_views_of_no_elements_may_begin_behind_the_end() -> None:
    nothing: Any = runtime.zeros(0, 4, requires_grad=True)
    moved = nothing * 1
    moved[:, 1] = 0.0
    moved.sum().backward()
    assert nothing.grad.shape == (0, 4)
    row: Any = tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    moved = row * 1
    part = moved[1:, 2:]
    part.mul_(2)
    moved.mul_(2)
    (moved.sum() + part.sum()).backward()
    assert row.grad.tolist() == [[2.0, 2.0, 2.0, 2.0]]
    assert part.detach().numpy().shape == (0, 2)
    factor: Any = tensor(2.0, requires_grad=True)
    empty = runtime.zeros(0, 4)
    empty[:, 1:] *= factor
    empty.sum().backward()
    assert factor.grad.tolist() == 0.0


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[0].mul_(2),
        lambda y: y.__setitem__(0, 5.0),
        lambda y: y.t().add_(1),
        lambda y: y.mul_(2),
    ],
)
def test_gradients_keep_the_class_of_what_was_written(write: Any) -> None:
    made: Any = Wrapper
    x = made(runtime.ones(2, 3), requires_grad=True)
    y = x * 1
    write(y)
    y.sum().backward()
    assert type(x.grad) is Wrapper


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1e-8),
        lambda y: y.zero_(),
        lambda y: y.__setitem__(0, 5.0),
        lambda y: y.clamp_(0.5),
    ],
)
def test_the_result_of_abs_may_be_written_to(write: Any) -> None:
    x: Any = tensor([-1.0, 2.0], requires_grad=True)
    kept: Any = tensor([-1.0, 2.0], requires_grad=True)
    y, expected = x.abs(), kept.abs() * 1
    write(y)
    write(expected)
    y.sum().backward()
    expected.sum().backward()
    assert x.grad.tolist() == kept.grad.tolist()


@pytest.mark.parametrize(
    ("at", "source", "expected"),
    [
        (tensor(0), tensor([1.0, 2.0]), [1.0, 0.0]),
        (tensor([1]), tensor(1.0), 1.0),
        (tensor([], dtype="int64"), tensor([[1.0], [2.0]]), [[0.0], [0.0]]),
    ],
)
def test_a_source_of_other_dimensions(at: Tensor, source: Any, expected: Any) -> None:
    base: Any = tensor([1.0, 2.0], requires_grad=True)
    source = source.clone().requires_grad_()
    base.scatter_add(0, at, source).sum().backward()
    assert source.grad.tolist() == expected
    assert base.grad.tolist() == [1.0, 1.0]


CALLED: list[str] = []


class Wrapped(Tensor):
    """Holds a tensor, and refuses `as_strided`."""

    elem: Tensor

    @staticmethod
    def of(elem: Tensor) -> Any:
        made = Tensor._make_wrapper_subclass(
            Wrapped, elem.shape, strides=elem.stride(), dtype=elem.dtype
        )
        made.elem = elem
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> Any:
        return Wrapped.of(inner["elem"])

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        CALLED.append(str(func))
        if "as_strided" in str(func):
            raise NotImplementedError("there are no strides")
        inner = [each.elem if isinstance(each, Wrapped) else each for each in args]
        result = func(*inner, **(kwargs or {}))
        if isinstance(result, Tensor):
            result = Wrapped.of(result)
        return return_and_correct_aliasing(func, args, kwargs or {}, result)


def base(wrap: Callable[[Tensor], Any]) -> tuple[Any, Any]:
    """A leaf, and what was computed of it and may be written to."""
    leaf = wrap(tensor([[1.0, 2.0], [3.0, 4.0]])).requires_grad_()
    return leaf, leaf * 1.0


REPLAYED_VIEWS: list[Callable[[Any], Any]] = [
    lambda c: c.view(-1),
    lambda c: c[1],
    lambda c: c.t()[0],
    lambda c: c.view(4)[1:3].unsqueeze(0),
    lambda c: c.expand(2, 2, 2)[0],
]


def weights(tensor_like: Any) -> Any:
    """Gradients that differ by element."""
    count = tensor_like.numel()
    values = tensor([float(each + 1) for each in range(count)]).view(tensor_like.shape)
    return Wrapped.of(values) if isinstance(tensor_like, Wrapped) else values


def written_to_the_view(wrap: Callable[[Tensor], Any], view: Any) -> list[Any]:
    leaf, c = base(wrap)
    v = view(c)
    v.mul_(3.0)
    (of_base,) = grad(c, leaf, weights(c), retain_graph=True)
    (of_view,) = grad(v, leaf, weights(v))
    return [of_base, of_view]


def written_to_the_base(wrap: Callable[[Tensor], Any], view: Any) -> list[Any]:
    leaf, c = base(wrap)
    v = view(c)
    c.mul_(3.0)
    return [*grad(v, leaf, weights(v))]


@pytest.mark.parametrize("written", [written_to_the_view, written_to_the_base])
@pytest.mark.parametrize("view", REPLAYED_VIEWS)
def test_a_wrapper_is_never_asked_for_strides(view: Any, written: Any) -> None:
    CALLED.clear()
    expected = written(lambda elem: elem, view)
    found = written(Wrapped.of, view)
    assert CALLED
    assert not [each for each in CALLED if "as_strided" in each]
    assert [each.elem.tolist() for each in found] == [e.tolist() for e in expected]


def test_a_plain_view_is_made_by_strides() -> None:
    _, c = base(lambda elem: elem)
    v = c.view(-1)
    c.mul_(2.0)
    assert v.grad_fn.name() == "AsStridedBackward"


def test_what_a_handler_wrote_to_its_list_is_not_replayed() -> None:
    """The view is made with the arguments of the call, whatever became of them."""
    _, c = base(Wrapped.of)
    size = [4]
    v = c.view(size)
    size[0] = 7
    c.mul_(2.0)
    assert v.grad_fn.name() == "ViewBackward"
    assert v.shape == (4,)


def test_the_view_of_a_custom_operator() -> None:
    with custom_op(
        "replayed::flat",
        lambda x, *, times: x.view(4 * times),
        mutates_args=(),
        schema="(Tensor(a) x, *, int times) -> Tensor(a)",
    ) as flat:
        flat.register_autograd(lambda ctx, g: g.view(2, 2))
        expected = written_to_the_base(lambda elem: elem, lambda c: flat(c, times=1))
        CALLED.clear()
        (found,) = written_to_the_base(Wrapped.of, lambda c: flat(c, times=1))
    assert CALLED.count("replayed.flat.default") == 2
    assert not [each for each in CALLED if "as_strided" in each]
    assert found.elem.tolist() == expected[0].tolist()


CALLS: list[int] = []


@custom_op("written_lists::double_", mutates_args=("xs",))
def double_(xs: list[Tensor]) -> None:
    """Doubles each."""
    CALLS.append(len(xs))
    for x in xs:
        x.add_(x)


@custom_op("written_lists::pair_", mutates_args=("x", "ys"))
def pair_(x: Tensor, ys: list[Tensor | None]) -> Tensor:
    """Clears all, returns a new one."""
    for each in (x, *ys):
        if each is not None:
            each.zero_()
    made: Tensor = x.detach() + 1
    return made


def leaf(*values: float) -> Tensor:
    return tensor([*values], requires_grad=True)


def test_a_leaf_in_a_list_is_refused() -> None:
    x, y, plain = leaf(1.0, 2.0), leaf(3.0) * 1, tensor([4.0])
    CALLS.clear()
    for xs in ([plain, x], [y, x], [x]):
        with pytest.raises(WriteRefused, check=code("LeafModified")) as caught:
            double_(xs)
        assert caught.value.operator == "written_lists::double_"
    assert CALLS == []
    assert (plain.tolist(), y.tolist(), x.tolist()) == ([4], [3], [1, 2])
    assert (plain._version, y._version, x._version) == (0, 0, 0)
    with pytest.raises(WriteRefused, check=code("OverlappingWrite")):
        double_([x * 1, plain.expand(3)])
    with no_grad():
        double_([plain, x])
    assert x.tolist() == [2, 4]


def test_what_was_written_to_has_the_history_of_the_call() -> None:
    y, plain, whole = leaf(1.0) * 1, tensor([2.0]), tensor([3])
    double_([plain, y, whole, y])
    assert (plain.tolist(), y.tolist(), whole.tolist()) == ([4], [4], [6])
    for each in (plain, y):
        assert each.requires_grad
        with pytest.raises(NotImplementedFormula) as caught:
            each.sum().backward()
        assert caught.value.operator == "written_lists::double_"
    assert not whole.requires_grad


def test_beside_a_tensor_and_with_gaps() -> None:
    x, y = leaf(1.0) * 1, leaf(2.0) * 1
    made = pair_(x, [None, y])
    assert (x.tolist(), y.tolist(), made.tolist()) == ([0], [0], [1])
    for each in (x, y, made):
        with pytest.raises(NotImplementedFormula, check=code("NotImplementedFormula")):
            each.sum().backward()
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        pair_(x, [None, leaf(1.0)])


@pytest.fixture
def warning() -> Iterator[None]:
    before = set_fallback_mode("warn")
    yield
    set_fallback_mode(before)


@pytest.mark.usefixtures("warning")
@pytest.mark.parametrize("whole", [False, True])
def test_several_views_of_one_base(whole: bool) -> None:
    """The gradient ends in every part that was written to, and passes elsewhere."""
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    parts: list[Any] = [base[:1], base[2:]]
    double_([*parts, base] if whole else parts)
    with pytest.warns(GradientMissing):
        (base * tensor([5.0, 6.0, 7.0])).sum().backward()
    if whole:
        assert x.grad is None or x.grad.tolist() == [0, 0, 0]
    else:
        assert x.grad is not None
        assert x.grad.tolist() == [0, 6, 0]
