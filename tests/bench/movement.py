"""Kernels that move and order elements, each against NumPy and torch.

`rows`: an index of whole rows of 64, as embeddings have it; `each`: an index for every
element.  NumPy's `take` clips, which is faster than its checking and than its raising.
"""

from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS
from tests.bench.case import Case, blank, places, values, with_torch
from tests.bench.compare import Operand, Trial

# Elements of a row that is moved as a whole.
WIDTH = 64


def _spread(index: Operand, rows: int) -> tuple[Any, Any]:
    """An index of rows for every element of them, without a copy: ours, torch's."""
    ours = index.o.reshape(rows, 1).expand(rows, WIDTH)
    theirs = None if index.t is None else index.t[:, None].expand(rows, WIDTH)
    return ours, theirs


def gather_rows(count: int, dtype: str) -> Trial:
    rows = count // WIDTH
    x, to = values(rows, WIDTH, dtype=dtype), blank(rows, WIDTH, dtype=dtype)
    index, kernel = places(rows, below=rows), KERNELS["gather"]
    ours, theirs = _spread(index, rows)
    return Trial(
        lambda: kernel(to.o, x.o, 0, ours),
        lambda: np.take(x.n, index.n, axis=0, out=to.n, mode="clip"),
        with_torch(lambda torch: lambda: torch.gather(x.t, 0, theirs, out=to.t)),
        (to,),
    )


def gather_each(count: int, dtype: str) -> Trial:
    x, to = values(count, dtype=dtype), blank(count, dtype=dtype)
    index, kernel = places(count, below=count), KERNELS["gather"]
    return Trial(
        lambda: kernel(to.o, x.o, 0, index.o),
        lambda: np.take(x.n, index.n, out=to.n, mode="clip"),
        with_torch(lambda torch: lambda: torch.gather(x.t, 0, index.t, out=to.t)),
        (to,),
    )


def scatter_add_rows(count: int, dtype: str) -> Trial:
    rows = count // WIDTH
    x, to = values(rows, WIDTH, dtype=dtype), blank(rows, WIDTH, dtype=dtype)
    index, kernel = places(rows, below=rows), KERNELS["scatter_add"]
    ours, theirs = _spread(index, rows)
    return Trial(
        lambda: kernel(to.o, 0, ours, x.o),
        lambda: np.add.at(to.n, index.n, x.n),
        with_torch(lambda _: lambda: to.t.scatter_add_(0, theirs, x.t)),
    )


def scatter_add_each(count: int, dtype: str) -> Trial:
    x, to = values(count, dtype=dtype), blank(count, dtype=dtype)
    index, kernel = places(count, below=count), KERNELS["scatter_add"]
    return Trial(
        lambda: kernel(to.o, 0, index.o, x.o),
        lambda: np.add.at(to.n, index.n, x.n),
        with_torch(lambda _: lambda: to.t.scatter_add_(0, index.t, x.t)),
    )


def index_select(count: int, dtype: str) -> Trial:
    rows = count // WIDTH
    x, to = values(rows, WIDTH, dtype=dtype), blank(rows, WIDTH, dtype=dtype)
    index, kernel = places(rows, below=rows), KERNELS["index_select"]
    return Trial(
        lambda: kernel(to.o, x.o, 0, index.o),
        lambda: np.take(x.n, index.n, axis=0, out=to.n, mode="clip"),
        with_torch(lambda torch: lambda: torch.index_select(x.t, 0, index.t, out=to.t)),
        (to,),
    )


def cat(count: int, dtype: str) -> Trial:
    rows = count // (2 * WIDTH)
    a, b = values(rows, WIDTH, dtype=dtype), values(rows, WIDTH, dtype=dtype)
    to, kernel = blank(rows, 2 * WIDTH, dtype=dtype), KERNELS["cat"]
    ours, numpy, theirs = [a.o, b.o], [a.n, b.n], [a.t, b.t]
    return Trial(
        lambda: kernel(to.o, ours, 1),
        lambda: np.concatenate(numpy, axis=1, out=to.n),
        with_torch(lambda torch: lambda: torch.cat(theirs, 1, out=to.t)),
        (to,),
    )


def sort(count: int, dtype: str) -> Trial:
    """Values and their places; NumPy finds the places first."""
    x, to = values(count, dtype=dtype), blank(count, dtype=dtype)
    order, kernel = blank(count, dtype="int64"), KERNELS["sort"]

    def numpy() -> None:
        order.n[...] = np.argsort(x.n)
        np.take(x.n, order.n, out=to.n, mode="clip")

    return Trial(
        lambda: kernel(to.o, order.o, x.o, 0, False, False),
        numpy,
        with_torch(lambda torch: lambda: torch.sort(x.t, out=(to.t, order.t))),
        (to,),
    )


CASES = (
    Case("gather, rows", gather_rows, always=True),
    Case("gather, each", gather_each, always=True),
    Case("scatter_add, rows", scatter_add_rows, always=True),
    Case("scatter_add, each", scatter_add_each, always=True),
    Case("index_select", index_select),
    Case("cat", cat),
    Case("sort", sort, sizes=(("1e3", 1_000), ("1e5", 100_000), ("1e6", 1_000_000))),
)
