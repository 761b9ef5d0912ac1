"""Rows about dispatch to Python: what a handler, a mode and a custom operator add.

True only here: overheads.  Handlers that return an argument compute nothing; where
something is computed, its own time is measured in the same turn and taken off, on both
sides.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

from everyorder import runtime
from everyorder.runtime import Tensor, ops
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.bench.calls import KEPT, TURNS, often
from tests.bench.compare import torch
from tests.bench.row import NO_TORCH, Row, pairs, ratio, seconds
from tests.examples.logging_tensor import LoggingTensor, capture_logs

# Fewer than of plain calls: they take five times as long.
CALLS = 1_000

Loop = Callable[[], None]


def loop(run: Callable[[], object]) -> Loop:
    """`CALLS` calls in a row."""
    return often(lambda _: run(), None, CALLS)


def minimal(base: type, modes: type) -> tuple[type, type]:
    """A class of tensors and one of modes that return the first argument."""

    def handle(
        own: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return args[0]

    body = {"__torch_dispatch__": classmethod(handle)}
    return type("Same", (base,), body), type(
        "Modal", (modes,), {"__torch_dispatch__": handle}
    )


# Why a row of `x + x` is missed; source: the same handler with both ways of calling.
BOUND_IN_C = (
    "torch binds `+` in C, a quarter less than `ops...add`; here it is 0.1 µs less"
)


def row(
    what: str,
    aim: float,
    sign: str,
    measured: list[tuple[float, float]],
    why: str = "",
) -> Row:
    """The row of a ratio, with the microseconds of both sides."""
    one, two = (median(side) / CALLS * 1e6 for side in zip(*measured, strict=True))
    found = ratio(measured)
    return Row(
        what,
        f"{found:.2f} ({one:.2f} µs, {two:.2f} µs)",
        sign,
        found <= aim,
        why=why,
    )


def less(run: Loop, kernel: Loop) -> Callable[[], float]:
    """What one round of calls takes, less what its kernel does."""
    return lambda: seconds(run) - seconds(kernel)


def differences(
    ours: Callable[[], float], theirs: Callable[[], float]
) -> list[tuple[float, float]]:
    """Overheads of both sides in turn, after one uncounted round."""
    ours()
    theirs()
    return [(ours(), theirs()) for _ in range(TURNS)]


HANDLERS = (
    "a `__torch_dispatch__` that returns its argument, `ops...add(x, x)`, over torch's",
    "the same, `x + x`",
    "a mode that returns an argument, `ops...add(x, x)`, over torch's",
    "the same, `x + x`",
)


def handlers() -> Iterator[Row]:
    """Minimal handlers of classes and of modes."""
    if torch is None:
        for what in HANDLERS:
            yield Row(what, "-", "≤ 0.6", None, NO_TORCH)
        return
    from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

    Same, Modal = minimal(Tensor, TorchDispatchMode)  # noqa: N806  # classes
    TheirSame, TheirModal = minimal(torch.Tensor, TheirMode)  # noqa: N806  # as above
    x: Tensor = Tensor._make_subclass(Same, runtime.ones(2))
    y = torch.Tensor._make_subclass(TheirSame, torch.ones(2))
    p, q = runtime.ones(2), torch.ones(2)
    add, plus = ops.core.add.default, torch.ops.aten.add.Tensor
    first, second, third, fourth = HANDLERS
    aim, sign = 0.6, "≤ 0.6"
    yield row(
        first,
        aim,
        sign,
        pairs(loop(lambda: add(x, x)), loop(lambda: plus(y, y)), TURNS),
    )
    plus_x, plus_y = loop(lambda: x + x), loop(lambda: y + y)
    yield row(second, aim, sign, pairs(plus_x, plus_y, TURNS), BOUND_IN_C)
    with Modal(), TheirModal():
        yield row(
            third,
            aim,
            sign,
            pairs(loop(lambda: add(p, p)), loop(lambda: plus(q, q)), TURNS),
        )
        plus_p, plus_q = loop(lambda: p + p), loop(lambda: q + q)
        yield row(fourth, aim, sign, pairs(plus_p, plus_q, TURNS), BOUND_IN_C)


def logging() -> Iterator[Row]:
    """LoggingTensor: unwraps, calls, wraps, and logs a line."""
    what = "LoggingTensor, `x + x` with a log, less the addition, over torch's"
    if torch is None:
        yield Row(what, "-", "≤ 1/3", None, NO_TORCH)
        return
    from torch.testing._internal import logging_tensor as theirs

    x, y = LoggingTensor(runtime.ones(2)), theirs.LoggingTensor(torch.ones(2))
    p, q = runtime.ones(2), torch.ones(2)
    with capture_logs(), theirs.capture_logs():
        measured = differences(
            less(loop(lambda: x + x), loop(lambda: p + p)),
            less(loop(lambda: y + y), loop(lambda: q + q)),
        )
    yield row(what, 1 / 3, "≤ 1/3", measured)


CUSTOM = (
    "a `custom_op`, less its function, over torch's",
    "the same, recorded by autograd",
)


def custom_operators() -> Iterator[Row]:
    """A custom operator around a function that makes a tensor."""
    if torch is None:
        for what in CUSTOM:
            yield Row(what, "-", "≤ 1/4", None, NO_TORCH)
        return

    def ours(x: Tensor, y: Tensor) -> Tensor:
        made: Tensor = x.clone()
        return made

    def theirs(x: Any, y: Any) -> Any:
        made = x.clone()
        return made  # noqa: RET504  # as ours

    def backward(context: Any, gradient: Any) -> Any:
        return gradient, gradient

    theirs.__annotations__ = {
        "x": torch.Tensor,
        "y": torch.Tensor,
        "return": torch.Tensor,
    }
    mine = runtime.library.custom_op("everyorder_bench::twice", ours, mutates_args=())
    other = torch.library.custom_op("everyorder_bench::twice", theirs, mutates_args=())
    KEPT.append((mine, other))
    for each in (mine, other):
        each.register_autograd(backward)
    p, q = runtime.ones(2), torch.ones(2)
    for what, records in zip(CUSTOM, (False, True), strict=True):
        p.requires_grad_(records)
        q.requires_grad_(records)
        d, e = p.detach(), q.detach()
        measured = differences(
            less(loop(partial(mine, p, p)), loop(partial(ours, d, d))),
            less(loop(partial(other, q, q)), loop(partial(theirs, e, e))),
        )
        yield row(what, 1 / 4, "≤ 1/4", measured)


def plain_tensors() -> Iterator[Row]:
    """Plain tensors, where dispatch to Python is installed and where it is not."""
    from everyorder.runtime.autograd import install
    from everyorder.runtime.dispatch import Dispatcher
    from everyorder.runtime.operators import install as install_operators

    bare = Dispatcher()
    KEPT.append((install_operators(bare), install(bare)))
    x, add = runtime.ones(2), ops.core.add.default
    without = bare.find_op("core::add")
    assert without is not None, "it was installed above"
    measured = pairs(loop(lambda: add(x, x)), loop(lambda: without(x, x)), TURNS)
    yield row(
        "`ops.core.add` of plain tensors over a dispatcher without dispatch to Python",
        1.02,
        "≤ 1.02",
        measured,
    )


DISPATCH_ROWS = (handlers, logging, custom_operators, plain_tensors)
