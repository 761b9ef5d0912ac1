"""Programs that make a view in one mode, and write to its elements in another.

A program is five names, one of each table below. It runs on either side: on this
runtime and on torch.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby, product
from typing import Any

Make = Callable[[], Any]


class Side:
    """The names of a library that the programs use, and functions written with them."""

    def __init__(self, library: Any, double: Any) -> None:
        self.library = library
        self._double = double
        self.grad = library.autograd.grad
        self.functions = functions(library.autograd.Function)

    def tensor(self, values: Any, requires_grad: bool = False) -> Any:
        """Return a tensor of doubles."""
        return self.library.tensor(
            values, dtype=self._double, requires_grad=requires_grad
        )

    def inside(self, modes: str, make: Make) -> Any:
        """Return what is made inside of modes."""
        with ExitStack() as entered:
            for mode in modes.split():
                entered.enter_context(getattr(self.library, mode)())
            return make()


def functions(base: Any) -> dict[str, Any]:
    """Return the `Function`s whose outputs share elements with another tensor."""

    def named(name: str, forward: Callable[[Any], Any]) -> Any:
        def backward(ctx: Any, grad: Any, other: Any = None) -> Any:
            return grad if other is None else grad + other

        members = {
            "forward": staticmethod(lambda ctx, x: forward(x)),
            "backward": staticmethod(backward),
        }
        return type(name, (base,), members)

    def pair(x: Any) -> Any:
        made = x * 1
        return made, made.view(4)

    return {
        "of a Function": named("Viewed", lambda x: x.view(4)),
        "input of a Function": named("Same", lambda x: x),
        "of a temporary": named("Temporary", lambda x: (x * 1).view(4)),
        "of another output": named("Pair", pair),
    }


def leaf(side: Side) -> tuple[Any, Any]:
    """Return a leaf that requires grad, as base and as input."""
    x = side.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    return x, x


def plain(side: Side) -> tuple[Any, Any]:
    """Return a base without gradient."""
    return side.tensor([1.0, 2.0, 3.0, 4.0]), None


def computed(side: Side) -> tuple[Any, Any]:
    """Return a base that an operator computed, and the leaf it was computed from."""
    x, _ = leaf(side)
    return x * 1, x


def viewed(side: Side) -> tuple[Any, Any]:
    """Return a base that is a view."""
    base, x = computed(side)
    return base.view(4), x


def piece(side: Side) -> tuple[Any, Any]:
    """Return a base that is one of several views."""
    x = side.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], requires_grad=True)
    return (x * 1).split(4)[0], x


def quiet(side: Side) -> tuple[Any, Any]:
    """Return a base that is a view, made without recording."""
    base, x = computed(side)
    return side.inside("no_grad", lambda: base.view(4)), x


def inferred(side: Side) -> tuple[Any, Any]:
    """Return a base that was made in inference mode."""
    return side.inside("inference_mode", lambda: plain(side)[0]), None


BASES: dict[str, Callable[[Side], tuple[Any, Any]]] = {
    "leaf": leaf,
    "plain": plain,
    "computed": computed,
    "viewed": viewed,
    "piece": piece,
    "quiet": quiet,
    "inferred": inferred,
}

VIEWS: dict[str, Callable[[Side, Any], Any]] = {
    "view": lambda side, base: base.view(2, 2),
    "view of a view": lambda side, base: base.view(2, 2)[0],
    "one of several": lambda side, base: base.split(2)[1],
    "view of one": lambda side, base: base.split(2)[1].view(2, 1),
    "by unbind": lambda side, base: base.view(2, 2).unbind()[1],
    "of a Function": lambda side, base: _apply(side, "of a Function", base),
    "input of a Function": lambda side, base: _apply(side, "input of a Function", base),
    "of a temporary": lambda side, base: _apply(side, "of a temporary", base),
    "of another output": lambda side, base: _apply(side, "of another output", base)[1],
}


def _apply(side: Side, name: str, base: Any) -> Any:
    return side.functions[name].apply(base)


def _in_forward(side: Side, make: Make) -> Any:
    return _in_function(side, make)[0][0]


def _in_backward(side: Side, make: Make) -> Any:
    kept, result = _in_function(side, make)
    result.backward()
    return kept[1]


def _in_function(side: Side, make: Make) -> tuple[list[Any], Any]:
    """Run a Function that makes a view forwards, and another one backwards."""
    kept = []

    def forward(ctx: Any, x: Any) -> Any:
        kept.append(make())
        return x * 1

    def backward(ctx: Any, grad: Any) -> Any:
        kept.append(make())
        return grad

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type("Making", (side.library.autograd.Function,), members)
    return kept, function.apply(side.tensor(1.0, requires_grad=True))


def _in_hook(side: Side, make: Make) -> Any:
    kept: list[Any] = []
    result = side.tensor(1.0, requires_grad=True) * 1
    result.register_hook(lambda grad: kept.append(make()))
    result.backward()
    return kept[0]


# Where a view is made.
MADE: dict[str, Callable[[Side, Make], Any]] = {
    "recorded": lambda side, make: make(),
    "no_grad": lambda side, make: side.inside("no_grad", make),
    "inference": lambda side, make: side.inside("inference_mode", make),
    "enabled again": lambda side, make: side.inside("inference_mode enable_grad", make),
    "in forward": _in_forward,
    "in backward": _in_backward,
    "in a hook": _in_hook,
}

WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "nothing": lambda view, base, factor: None,
    "view *= factor": lambda view, base, factor: view.mul_(factor),
    "view *= 3": lambda view, base, factor: view.mul_(3),
    "base *= factor": lambda view, base, factor: base.mul_(factor),
    "base *= 3": lambda view, base, factor: base.mul_(3),
}

# Where the elements are written to.
WRITTEN = ("recorded", "no_grad")


def rows(side: Side) -> Iterator[str]:
    """Yield a line for each base, view and write, with the outcomes in all modes.

    It shows what a recorded write leads to, by the places where the view is made, then
    what a write in `no_grad` leads to; equal neighbors are counted.
    """
    for names in product(BASES, VIEWS, WRITES):
        written = []
        for mode in WRITTEN:
            outcomes = [outcome(side, *names, made, mode) for made in MADE]
            written.append(", ".join(_counted(outcomes)))
        yield f"{' | '.join(names)}: {'; '.join(written)}"


def _counted(outcomes: list[str]) -> Iterator[str]:
    for each, equal in groupby(outcomes):
        count = len([*equal])
        yield each if count == 1 else f"{count} {each}"


def outcome(
    side: Side, base_name: str, view_name: str, write: str, made: str, written: str
) -> str:
    """Return what a program leads to, as one word.

    It is "refused" if the write is, or else the gradients of the sums of the base and
    of the view, each by the input and by the factor: `_` where there is none, and
    "useless" in place of both where the tensor cannot be used.
    """
    base, x = BASES[base_name](side)
    view = MADE[made](side, lambda: VIEWS[view_name](side, base))
    factor = side.tensor(3.0, requires_grad=True)
    try:
        modes = "" if written == "recorded" else written
        side.inside(modes, lambda: WRITES[write](view, base, factor))
    except RuntimeError:
        return "refused"
    inputs = [factor] if x is None else [x, factor]
    gradients = [_sums(side, each, inputs) for each in (base, view)]
    return "/".join(gradients)


def _sums(side: Side, tensor: Any, inputs: list[Any]) -> str:
    try:
        total = tensor.sum()
        if not total.requires_grad:
            return "_"
        found = side.grad(total, inputs, allow_unused=True, retain_graph=True)
    except RuntimeError:
        return "useless"
    return "&".join("_" if each is None else f"{each.sum().item():g}" for each in found)
