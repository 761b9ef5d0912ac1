"""Write the list of kernels that `everyorder runtime warm` compiles.

    python -m tests.tools.common_kernels [--write]

Runs programs that many people begin with, and notes each kernel that they ask for; what
is compiled for one program only (fused chains) is left out.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from everyorder import runtime
from everyorder.runtime import tensor
from everyorder.runtime.kernels.compile.jit import Entry, Family
from everyorder.runtime.kernels.warm import LIST, KernelName, families
from tests.examples import train_digits, train_transformer

FLOATS = (runtime.float32, runtime.float64)
NUMBERS = (*FLOATS, runtime.int64)
# Families that are made for one program.
PER_PROGRAM = ("fused",)
FUNCTIONS = (
    *("exp", "log", "sqrt", "rsqrt", "reciprocal", "square", "tanh", "sigmoid"),
    *("relu", "gelu", "sin", "cos"),
)


@contextmanager
def noted() -> Iterator[set[KernelName]]:
    """The kernels that are asked for meanwhile, whether they were before or not."""
    found: set[KernelName] = set()
    own = families()
    held = {name: dict(each) for name, each in own.items()}
    make = Family._make

    def _make(self: Family, dtypes: tuple[str, ...]) -> Entry:
        if self.name not in PER_PROGRAM:
            assert own[self.name] is self, f"two families are called {self.name}"
            found.add(KernelName(self.name, dtypes))
        return make(self, dtypes)

    with patch.object(Family, "_make", _make):
        for each in own.values():
            each.clear()
        yield found
    for name, entries in held.items():
        own[name].update(entries)


def train(name: str) -> None:
    """A step of a model of `train_digits`."""
    data = train_digits.digits()
    make, model = train_digits.MODELS[name]
    given = tensor(data.pictures[:64]), tensor(data.digits[:64])
    train_digits.step(model, train_digits.Adam(make()), *given)


def arithmetic() -> None:
    """What is written with operators, of rows and columns, too."""
    for dtype in NUMBERS:
        x = runtime.arange(1, 13, dtype=dtype).reshape(3, 4)
        row, column, turned = x[0], x[:, :1], x.t().contiguous().t()
        for other in (x, row, column, turned, 2):
            _ = x + other, x - other, x * other, x / other, x == other, x < other
            _ = x <= other, x > other, x >= other, x != other
        _ = -x, abs(x), x**2, x.clamp(1, 3), x.maximum(row), x.minimum(row)
        for change in (x.add_, x.sub_, x.mul_):
            change(x.clone())
            change(2)
        x.zero_()
        x.fill_(1)


def functions() -> None:
    """What is computed of each element, with its gradient."""
    for dtype in FLOATS:
        x = runtime.rand(4, 5, dtype=dtype, requires_grad=True)
        for name in FUNCTIONS:
            value: Any = getattr(x, name)()
            value.sum().backward()
        for value in (x.softmax(-1), x.log_softmax(-1), x.softmax(0)):
            value.sum().backward()
        _ = x.isnan(), x.isfinite(), x.floor(), x.round()


def reductions() -> None:
    """Sums and the like, of all, by rows and by columns."""
    for dtype in NUMBERS:
        x = runtime.arange(1, 13, dtype=dtype).reshape(3, 4)
        for dims in ((), (0,), (1,)):
            _ = x.sum(*dims), x.argmax(*dims), x.argmin(*dims), x.max(*dims)
            _ = x.min(*dims), x.amax(dims), x.amin(dims)
        for dim in (0, 1):
            _ = x.cumsum(dim), x.sort(dim), x.topk(2, dim)
        if dtype in FLOATS:
            for dims in ((), (0,), (1,)):
                _ = x.mean(*dims), x.var(*dims), x.std(*dims)
    mask = runtime.ones(3, 4, dtype=runtime.bool)
    for dims in ((), (0,), (1,)):
        _ = mask.all(*dims), mask.any(*dims), mask.sum(*dims)
    _ = mask.logical_not(), mask & mask, mask | mask, mask ^ mask, mask.nonzero()


def places() -> None:
    """What reads and writes at places, and what is drawn by chance."""
    for dtype in NUMBERS:
        x = runtime.arange(1, 13, dtype=dtype).reshape(3, 4)
        rows = tensor([2, 0])
        _ = x[rows], x[:, rows], x[x > 3], x.gather(0, rows.reshape(1, 2))
        _ = runtime.where(x > 3, x, 0), x.masked_fill(x > 3, 0), x.index_select(1, rows)
        _ = runtime.cat([x, x]), runtime.stack([x, x]), x @ x.t(), x.tril(), x.flip(0)
        x[rows] = 0
        x.scatter_add_(0, rows.reshape(1, 2), x[:1, :2].clone())
        _ = [x.to(other) for other in (*NUMBERS, runtime.bool, runtime.int32)]
    for float_ in FLOATS:
        _ = runtime.randn(3, dtype=float_), runtime.rand(3, dtype=float_)
        _ = runtime.linspace(0, 1, 5, dtype=float_)
    _ = runtime.randint(0, 9, (3,)), runtime.randperm(5)


PROGRAMS: tuple[Callable[[], object], ...] = (
    lambda: train("mlp"),
    lambda: train("conv"),
    lambda: train_transformer.train(1, lambda line: None),
    arithmetic,
    functions,
    reductions,
    places,
)


def listed() -> list[str]:
    """The lines of the list."""
    with noted() as found:
        for program in PROGRAMS:
            program()
    return sorted(" ".join((each.family, *each.dtypes)) for each in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write it to its place")
    text = "".join(f"{line}\n" for line in listed())
    if parser.parse_args().write:
        LIST.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
