"""Views of what Python handles: made again by the operators that made them.

The class here knows nothing of strides, as one that wraps another layout does.
"""

from collections.abc import Callable
from typing import Any

import pytest

from runtime import Tensor, tensor
from runtime.autograd import grad
from runtime.custom import custom_op
from runtime.python_dispatch import return_and_correct_aliasing

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


VIEWS: list[Callable[[Any], Any]] = [
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
@pytest.mark.parametrize("view", VIEWS)
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
