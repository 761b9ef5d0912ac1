"""Operations on tensors, and what must be true after each, however it ended.

True only here: a small graph, whose gradients are known before and after an operation.

After an operation that was interrupted
- each tensor has the elements of before, or those of after it;
- its gradient belongs to these elements, or is refused by name;
- the thread is as before: keys, modes, recording, autocast; no lock is held;
- what is registered is owned by somebody, and gone when that is closed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from everyorder import runtime
from everyorder.runtime import Tensor, autograd, default_dispatcher, ops, tensor
from everyorder.runtime.autograd import Function, autocast, inference_mode, no_grad
from everyorder.runtime.autograd.autocast import STATE as CASTING
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.graph import (
    disable_saved_tensors_hooks,
    saved_tensors_hooks,
)
from everyorder.runtime.autograd.saved_hooks import HOOKS
from everyorder.runtime.base import locks
from everyorder.runtime.custom import custom_op
from everyorder.runtime.dispatch import fingerprint
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.keys import (
    LOCAL,
    DispatchKey,
    exclude_keys,
    include_keys,
    preserve_keys,
)
from everyorder.runtime.tensors.keys import inference
from everyorder.runtime.torch_dispatch import (
    TorchDispatchMode,
    disable_current_modes,
    enable_reentrant_dispatch,
    no_dispatch,
    pop_mode_temporarily,
    return_and_correct_aliasing,
)
from everyorder.runtime.utils.checkpoint import checkpoint
from tests.torch_dispatch.thread_state import Look

Operation = Callable[["Graph"], object]


class Thread:
    """What a thread is in, as `Look`, and what autograd has of it."""

    def __init__(self) -> None:
        self._look = Look()
        self._rest = self._now()

    @staticmethod
    def _now() -> tuple[Any, ...]:
        keys = LOCAL.switched_in, LOCAL.switched_out
        saving = HOOKS.active, HOOKS.refusal, GRAD.run
        casting = CASTING.depth, CASTING.dtypes, CASTING.caches, CASTING.kept
        return keys, GRAD.enabled, GRAD.follows, inference.active, casting, saving

    def unchanged(self) -> bool:
        """Whether it is so now; stacks of the same modes are the same."""
        return self._look.unchanged(entered=True) and self._rest == self._now()


def held() -> list[Any]:
    """The locks of the runtime that this thread holds."""
    every = [*locks._RENEWED, *locks._AWAITED]
    return [
        lock
        for lock in every
        if (lock._is_owned() if hasattr(lock, "_is_owned") else lock.locked())
    ]


class Wrapped(Tensor):
    """Holds a tensor, and does to it what is asked."""

    elem: Tensor

    @staticmethod
    def of(elem: Tensor) -> Any:
        made = Tensor._make_wrapper_subclass(Wrapped, elem.shape, dtype=elem.dtype)
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
        inner = [each.elem if isinstance(each, Wrapped) else each for each in args]
        result = func(*inner, **(kwargs or {}))
        if isinstance(result, Tensor):
            result = Wrapped.of(result)
        return return_and_correct_aliasing(func, args, kwargs or {}, result)


class Passing(TorchDispatchMode):
    """Does what is asked, and remembers nothing."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class Fake(Passing):
    """A mode that has a place of its own."""

    infra = "FAKE"


class Doubled(Function):
    """Twice its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """As the class says."""
        ctx.save_for_backward(x)
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """The gradient."""
        assert ctx.saved_tensors
        return gradient * 2.0


class DoubledInPlace(Function):
    """Twice its argument, written to it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """As the class says."""
        x.mul_(2.0)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """The gradient."""
        return gradient * 2.0


class Graph:
    """A leaf, what was computed of it, a view of that, and what saved it."""

    def __init__(self, wrap: Callable[[Tensor], Any] = lambda elem: elem) -> None:
        self.wrap = wrap
        self.leaf = wrap(tensor([1.0, 2.0, 3.0, 4.0])).requires_grad_()
        self.grown = self.leaf * 1.0
        self.view = self.grown.view(2, 2)
        self.row = self.view[1]
        self.base = self.leaf * 3.0
        self.saved = self.base * self.base
        self.buffer = wrap(tensor([1.0, 1.0, 1.0, 1.0]))
        self.shown = self.buffer.view(2, 2)
        self.kept: list[Any] = []

    def named(self) -> dict[str, Any]:
        """The tensors whose elements and gradients are looked at."""
        names = ("grown", "view", "row", "base", "saved", "buffer", "shown")
        return {name: getattr(self, name) for name in names}


def elements(value: Any) -> Any:
    """The elements of a tensor, and their shape."""
    with inference_mode(), no_dispatch():
        plain = value.elem if isinstance(value, Wrapped) else value
        return tuple(plain.shape), plain.tolist()


def gradient(graph: Graph, result: Any) -> Any:
    """The gradient of a tensor by the leaf; the class of the error if it is refused."""
    if not result.requires_grad:
        return None
    count = result.numel()
    weights = tensor([float(each + 1) for each in range(count)]).view(result.shape)
    try:
        (found,) = autograd.grad(
            result, graph.leaf, graph.wrap(weights), retain_graph=True
        )
    except EveryorderError as error:
        return type(error)
    return elements(found)


Seen = dict[str, tuple[Any, Any]]


def seen(graph: Graph) -> Seen:
    """Elements and gradient of each tensor, and what was accumulated."""
    found = {
        name: (elements(each), gradient(graph, each))
        for name, each in graph.named().items()
    }
    grad = graph.leaf.grad
    found["leaf"] = (elements(graph.leaf), None if grad is None else elements(grad))
    return found


def wrong(graph: Graph, thread: Thread, before: Seen, after: Seen) -> str | None:
    """What is not as it must be after something came, in words."""
    if not thread.unchanged():
        return "the thread is not as before"
    if held():
        return "a lock is held"
    for name, (values, found) in seen(graph).items():
        fitting = [each[name] for each in (before, after) if each[name][0] == values]
        if not fitting:
            return f"{name} has elements of neither before nor after: {values}"
        refused = isinstance(found, type) and issubclass(found, EveryorderError)
        if not refused and found not in [each[1] for each in fitting]:
            return f"the gradient of {name} is wrong in silence: {found}"
    return None


def _weights(graph: Graph) -> Any:
    return graph.wrap(tensor([1.0, 2.0, 3.0, 4.0]))


def _put(graph: Graph) -> None:
    graph.grown[1:3] = graph.leaf[:2] * 5.0


def _data(graph: Graph) -> None:
    graph.buffer.data = graph.wrap(tensor([5.0, 6.0, 7.0, 8.0]))


def _saved_unseen(graph: Graph) -> None:
    with no_grad():
        graph.base.mul_(2.0)


def _decorated(mode: Any) -> Operation:
    def function(graph: Graph) -> Any:
        return graph.leaf * 2.0

    decorated: Operation = mode(function)
    return decorated


def _generated(graph: Graph) -> object:
    @no_grad()
    def generator() -> Iterator[Any]:
        yield graph.leaf * 2.0
        yield graph.leaf * 3.0

    return list(generator())


def _inside(*modes: Callable[[], Any]) -> Operation:
    def operation(graph: Graph) -> None:
        if not modes:
            graph.kept.append(graph.leaf * 2.0)
            return
        with modes[0]():
            _inside(*modes[1:])(graph)

    return operation


def _reentered(graph: Graph) -> None:
    class Again(Passing):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with enable_reentrant_dispatch():
                return func(*args, **(kwargs or {}))

    with Again():
        graph.kept.append(graph.leaf * 2.0)


def _hooked(graph: Graph) -> None:
    with graph.grown.register_hook(lambda grad: grad * 1.0):
        graph.grown.backward(_weights(graph), retain_graph=True)


def _several(graph: Graph) -> None:
    autograd.backward(
        [graph.grown, graph.base], [_weights(graph)] * 2, retain_graph=True
    )


@contextmanager
def customs() -> Iterator[dict[str, Any]]:
    """Operators of our own: one computes, one writes to a tensor, one to several."""

    def shrink(x: Any) -> Any:
        return x * 0.5

    def shrink_(x: Any) -> None:
        x.mul_(0.5)

    def shrink_all_(xs: Any) -> None:
        for each in xs:
            each.mul_(0.5)

    with (
        custom_op("injected::shrink", shrink, mutates_args=(), schema=PLAIN) as plain,
        custom_op("injected::shrink_", shrink_, mutates_args=("x",), schema=ONE) as one,
        custom_op(
            "injected::shrink_all_", shrink_all_, mutates_args=("xs",), schema=ALL
        ) as every,
    ):
        plain.register_autograd(lambda ctx, grad: grad * 0.5)
        yield {"plain": plain, "one": one, "every": every}


PLAIN = "(Tensor x) -> Tensor"
ONE = "(Tensor(a!) x) -> ()"
ALL = "(Tensor(a!)[] xs) -> ()"


def _hooks() -> saved_tensors_hooks:
    return saved_tensors_hooks(lambda saved: saved, lambda saved: saved)


MODES: dict[str, tuple[Callable[[], Any], ...]] = {
    "no_grad": (no_grad,),
    "enable_grad in no_grad": (no_grad, autograd.enable_grad),
    "inference_mode": (inference_mode,),
    "inference_mode(False) in it": (inference_mode, lambda: inference_mode(False)),
    "set_grad_enabled": (no_grad, lambda: autograd.set_grad_enabled(True)),
    "autocast": (lambda: autocast("cpu"),),
    "saved_tensors_hooks": (_hooks, _hooks),
    "disable_saved_tensors_hooks": (lambda: disable_saved_tensors_hooks("none"),),
    "autocast, and none in it": (
        lambda: autocast("cpu"),
        lambda: autocast("cpu", enabled=False),
    ),
    "a mode": (Passing,),
    "a mode in a mode": (Passing, Passing),
    "an infra mode": (Passing, Fake),
    "pop_mode_temporarily": (Passing, pop_mode_temporarily),
    "disable_current_modes": (Passing, disable_current_modes),
    "no_dispatch": (Passing, no_dispatch),
    "include_keys": (lambda: include_keys(DispatchKey.BackendSelect),),
    "exclude_keys": (lambda: exclude_keys(DispatchKey.AutogradCPU),),
    "preserve_keys": (preserve_keys,),
}

OPERATIONS: dict[str, Operation] = {
    "functional": lambda g: g.grown * g.base,
    "of one": lambda g: g.grown.exp(),
    "a reduction": lambda g: g.view.sum(1),
    "a product": lambda g: g.view @ g.view,
    "several results": lambda g: g.grown.split(2),
    "a list": lambda g: runtime.cat([g.grown, g.base]),
    "a view of a view": lambda g: g.view.t()[0],
    "in place": lambda g: g.grown.mul_(2.0),
    "in place, with another": lambda g: g.grown.add_(g.base),
    "in place, of its result": lambda g: g.grown.sigmoid_(),
    "in place on a view": lambda g: g.view.mul_(2.0),
    "in place on a view of a view": lambda g: g.row.mul_(2.0),
    "in place on a view, of its result": lambda g: g.view.exp_(),
    "in place on what was saved": lambda g: g.base.mul_(2.0),
    "in place on what needed no gradient": lambda g: g.buffer.mul_(g.leaf),
    "in place on a view of what needed none": lambda g: g.shown.mul_(g.leaf.view(2, 2)),
    "in place unseen, on what was saved": _saved_unseen,
    "copy_": lambda g: g.view.copy_(g.base.view(2, 2)),
    "zero_": lambda g: g.row.zero_(),
    "fill_": lambda g: g.grown.fill_(7.0),
    "clamp_": lambda g: g.view.clamp_(1.5, 3.5),
    "setitem": _put,
    "index_put_": lambda g: g.grown.index_put_([tensor([0, 2])], tensor([8.0, 9.0])),
    "t_": lambda g: g.view.t_(),
    "unsqueeze_": lambda g: g.grown.unsqueeze_(0),
    "out=": lambda g: runtime.add(_weights(g), _weights(g), out=g.buffer),
    "data": _data,
    "a checkpoint": lambda g: checkpoint(lambda x: x.exp().sin(), g.grown),
    "a Function": lambda g: Doubled.apply(g.grown),
    "a Function that writes": lambda g: DoubledInPlace.apply(g.grown),
    "a Function that writes to a view": lambda g: DoubledInPlace.apply(g.view),
    "backward": lambda g: g.grown.backward(_weights(g), retain_graph=True),
    "backward of several": _several,
    "backward, recorded": lambda g: g.saved.backward(_weights(g), create_graph=True),
    "backward through a hook": _hooked,
    "grad": lambda g: autograd.grad(g.saved, g.leaf, _weights(g), retain_graph=True),
    "backward through a Function": lambda g: Doubled.apply(g.leaf).sum().backward(),
    "no_grad decorates": _decorated(no_grad()),
    "inference_mode decorates": _decorated(inference_mode()),
    "no_grad decorates a generator": _generated,
    "enable_reentrant_dispatch": _reentered,
    **{name: _inside(*modes) for name, modes in MODES.items()},
}

# Of a class that is handled in Python.
HANDLED = (
    *("functional", "in place", "in place on a view", "in place on a view of a view"),
    *("in place on what was saved", "t_", "copy_", "a mode", "no_grad"),
)


def owned() -> object:
    """What the default dispatcher has, to be compared."""
    default_dispatcher().drain()
    return fingerprint(default_dispatcher().state)


def called(made: dict[str, Any]) -> dict[str, Operation]:
    """Calls of operators of our own, which were defined before."""
    return {
        "a custom operator": lambda g: made["plain"](g.grown),
        "a custom operator that writes": lambda g: made["one"](g.grown),
        "a custom operator that writes to a view": lambda g: made["one"](g.view),
        "a custom operator that writes to several": lambda g: made["every"](
            [g.grown, g.base]
        ),
        "by ops": lambda g: ops.injected.shrink(g.grown),
    }
