"""Elementwise kernels, copies and a chain, each against NumPy's and torch's `out=`."""

from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS
from tests.bench.case import Build, Case, blank, rows_of, values, with_torch
from tests.bench.compare import Trial


def unary(name: str, positive: bool = False, numpy: bool = True) -> Build:
    """A kernel of one operand."""

    def build(count: int, dtype: str) -> Trial:
        x, to = values(count, dtype=dtype, positive=positive), blank(count, dtype=dtype)
        kernel, ours, source = KERNELS[name], to.o, x.o
        theirs = getattr(np, name) if numpy else None
        return Trial(
            lambda: kernel(ours, source),
            (lambda: theirs(x.n, to.n)) if theirs else None,
            with_torch(lambda torch: bound(getattr(torch, name), x.t, out=to.t)),
            (to,),
        )

    return build


def bound(function: Any, *arguments: Any, out: Any) -> Any:
    """A call without arguments."""
    return lambda: function(*arguments, out=out)


def add(count: int, dtype: str) -> Trial:
    a, b = values(count, dtype=dtype), values(count, dtype=dtype)
    to, kernel = blank(count, dtype=dtype), KERNELS["add"]
    return Trial(
        lambda: kernel(to.o, a.o, b.o, 1),
        lambda: np.add(a.n, b.n, to.n),
        with_torch(lambda torch: lambda: torch.add(a.t, b.t, out=to.t)),
        (to,),
    )


def mul(count: int, dtype: str) -> Trial:
    a, b = values(count, dtype=dtype), values(count, dtype=dtype)
    to, kernel = blank(count, dtype=dtype), KERNELS["mul"]
    return Trial(
        lambda: kernel(to.o, a.o, b.o),
        lambda: np.multiply(a.n, b.n, to.n),
        with_torch(lambda torch: lambda: torch.mul(a.t, b.t, out=to.t)),
        (to,),
    )


def chain(count: int, dtype: str) -> Trial:
    """relu(a * b + c), three calls on every side."""
    a, b, c = (values(count, dtype=dtype) for _ in range(3))
    to = blank(count, dtype=dtype)
    times, plus, relu = KERNELS["mul"], KERNELS["add"], KERNELS["relu"]

    def ours() -> None:
        times(to.o, a.o, b.o)
        plus(to.o, to.o, c.o, 1)
        relu(to.o, to.o)

    def numpy() -> None:
        np.multiply(a.n, b.n, to.n)
        np.add(to.n, c.n, to.n)
        np.maximum(to.n, 0, out=to.n)

    def of_torch(torch: Any) -> Any:
        def run() -> None:
            torch.mul(a.t, b.t, out=to.t)
            torch.add(to.t, c.t, out=to.t)
            torch.relu_(to.t)

        return run

    return Trial(ours, numpy, with_torch(of_torch), (to,))


def gelu(count: int, dtype: str) -> Trial:
    x, to, kernel = (
        values(count, dtype=dtype),
        blank(count, dtype=dtype),
        KERNELS["gelu"],
    )
    return Trial(
        lambda: kernel(to.o, x.o, "none"),
        None,
        with_torch(lambda torch: bound(torch._C._nn.gelu, x.t, out=to.t)),
        (to,),
    )


def where(count: int, dtype: str) -> Trial:
    a, b = values(count, dtype=dtype), values(count + 1, dtype=dtype)
    a, b = type(a)(a.n), type(b)(b.n[1:].copy())
    mask = type(a)(a.n > b.n)
    to, kernel = blank(count, dtype=dtype), KERNELS["where"]

    def numpy() -> None:
        # NumPy's own `where` has no `out`; these two passes are faster than it.
        np.copyto(to.n, b.n)
        np.copyto(to.n, a.n, where=mask.n)

    return Trial(
        lambda: kernel(to.o, mask.o, a.o, b.o),
        numpy,
        with_torch(lambda torch: bound(torch.where, mask.t, a.t, b.t, out=to.t)),
        (to,),
    )


def copy(count: int, dtype: str) -> Trial:
    x, to, kernel = (
        values(count, dtype=dtype),
        blank(count, dtype=dtype),
        KERNELS["copy"],
    )
    return Trial(
        lambda: kernel(to.o, x.o),
        lambda: np.copyto(to.n, x.n),
        with_torch(lambda _: lambda: to.t.copy_(x.t)),
        (to,),
    )


def add_row(count: int, dtype: str) -> Trial:
    rows, line = rows_of(count)
    a, row = values(rows, line, dtype=dtype), values(line, dtype=dtype)
    to, kernel = blank(rows, line, dtype=dtype), KERNELS["add"]
    return Trial(
        lambda: kernel(to.o, a.o, row.o, 1),
        lambda: np.add(a.n, row.n, to.n),
        with_torch(lambda torch: lambda: torch.add(a.t, row.t, out=to.t)),
        (to,),
    )


CASES = (
    Case("add", add),
    Case("mul", mul),
    Case("relu(a*b+c)", chain, always=True),
    Case("exp", unary("exp")),
    Case("log", unary("log", positive=True)),
    Case("sin", unary("sin")),
    Case("tanh", unary("tanh")),
    Case("gelu", gelu),
    Case("where", where),
    Case("copy", copy),
    Case("add a row", add_row),
)
