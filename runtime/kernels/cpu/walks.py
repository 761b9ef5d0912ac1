"""Walks made ready: what a kernel with an index does once for each geometry.

True only here: a kernel looks its geometry up (shapes, strides as they are stored, the
dimension) and gets one call, which checks the index and walks; at 1,000 elements the
rest of a call would cost more than the loop.  Long walks are shared out to threads, and
reading many whole rows is delegated to NumPy.

Rules: a call answers whether a value of the index lies outside; then it has written
nothing, and the kernel says so by `runtime.kernels.cpu.bounds`.  Duplicated targets are
met in the order of the index, on any number of threads: threads share sheets, rows or
columns, and when they write, only such as have different targets.
"""

from collections.abc import Callable
from typing import Any

from runtime.kernels.cpu.bounds import beyond, neighbours, outside, refused
from runtime.kernels.cpu.lines import READ
from runtime.kernels.cpu.lines_plan import COLS, ROWS, STEP, Ints, Plan, plan
from runtime.kernels.cpu.operand import FORMS, Geometry, Run
from runtime.kernels.jit import Entry, Family
from runtime.kernels.threads import parallel_for

# addressed, index, linear: flat arrays; where each begins; a factor of sums.
Call = Callable[[Any, Any, Any, int, int, int, Any], bool]

# Elements for a thread: moving this many takes about as long as two hand-overs.
GRAIN = 65536

# Elements from which on whole rows are left to NumPy: of 64 float32, 1e7 elements take
# it 3.6 ms, and our loop 6.1 ms; with few elements its call costs more than it saves.
TAKEN = 1 << 16

# Columns of a sheet that a thread takes at least: a few cache lines of any dtype.
COLUMNS = 32

# Programs see few geometries; one is a few hundred bytes.
REMEMBERED = 4096


class Walks(dict[Any, Call]):
    """The calls of one kernel, by geometry: `make(*geometry)` when first asked for."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[..., Call]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, geometry: Any) -> Call:
        if len(self) >= REMEMBERED:
            self.clear()
        call = self[geometry] = self.make(*geometry)
        return call


def ready(
    family: Family,
    name: str,
    shape: Ints,
    addressed: Ints,
    step: int,
    index: tuple[Ints, Ints, Ints],
    linear: Ints,
    size: int,
) -> Call:
    """The call for one geometry; see `runtime.kernels.cpu.lines_plan.plan`.

    `index` is the shape of the index, its strides, and those by dimension of `shape`.
    """
    own, strides, steps = index
    entry = family[name]
    count = neighbours(own, strides)
    walk = plan(shape, addressed, step, steps, linear, size, count or 0)
    table, sheets = walk.table, walk.sheets
    if family is READ and walk.elements >= TAKEN and _whole_rows(walk):
        return _taking(size, step, int(table[ROWS]))
    if count is not None and walk.elements < 2 * GRAIN:

        def short(
            source: Any, places: Any, other: Any, a: int, i: int, o: int, alpha: Any
        ) -> bool:
            return entry(source, places, other, table, a, i, o, 0, sheets, alpha)  # type: ignore[no-any-return]  # compiled

        return short
    unchecked = plan(shape, addressed, step, steps, linear)
    share = shared(family is READ, entry, unchecked)

    def call(
        source: Any, places: Any, other: Any, a: int, i: int, o: int, alpha: Any
    ) -> bool:
        if outside((places, i, strides), own, size):
            return True
        share((source, places, other), (a, i, o), alpha)
        return False

    return call


def checked(call: Call, x: Geometry, dim: int, index: Geometry, operator: str) -> Run:
    """The call from the first elements on, which says by itself what is refused."""
    form = FORMS[x.dtype]

    def run(source: Any, places: Any, target: Any) -> None:
        if form is not None:
            source, target = source.view(form), target.view(form)
        if call(source, places, target, 0, 0, 0, 0):
            chosen = places, 0, index.strides
            raise refused(chosen, index.shape, x.shape, operator, dim)

    return run


def _whole_rows(walk: Plan) -> bool:
    """Whether one list of values names rows of a matrix, without gaps on both sides."""
    table: list[int] = walk.table.tolist()
    width = table[COLS]
    rows, columns = table[ROWS + 1 : COLS], table[COLS + 1 :]
    return table[STEP] == width and rows == [0, 1, width] and columns == [1, 0, 1]


def _taking(size: int, width: int, rows: int) -> Call:
    """Rows by NumPy's `take`, which does not check when it clips."""

    def call(
        source: Any, places: Any, other: Any, a: int, i: int, o: int, alpha: Any
    ) -> bool:
        chosen = places[i : i + rows]
        if beyond(chosen, size):
            return True
        table = source[a : a + size * width].reshape(size, width)
        to = other[o : o + rows * width].reshape(rows, width)

        def run(lo: int, hi: int) -> None:
            table.take(chosen[lo:hi], 0, to[lo:hi], "clip")

        if rows * width < 2 * GRAIN:
            table.take(chosen, 0, to, "clip")
        else:
            parallel_for(rows, max(1, GRAIN // width), run)
        return False

    return call


def shared(
    reads: bool, entry: Entry, walk: Plan
) -> Callable[[tuple[Any, Any, Any], tuple[int, int, int], Any], None]:
    """A walk by sheets, or by rows or columns of all sheets, as threads are worth it.

    Where targets could be the same, only a walk that `reads` may share them.
    """
    table, sheets, elements = walk.table, walk.sheets, walk.elements
    each = walk.together
    apart = (True, True, True) if reads else walk.apart
    # Rows or columns, whichever are more among those that may be shared.
    rows, columns = int(table[ROWS]), int(table[COLS])
    at = COLS if apart[2] and (columns > rows or not apart[1]) else ROWS
    by_sheets = sheets >= 2 * each and apart[0]
    alone = elements < 2 * GRAIN or not (by_sheets or apart[2 if at == COLS else 1])
    steps = table[at + 1 : at + 4].tolist()

    def share(
        arrays: tuple[Any, Any, Any], starts: tuple[int, int, int], alpha: Any
    ) -> None:
        def sheet(lo: int, hi: int) -> None:
            entry(*arrays, table, *starts, lo * each, hi * each, alpha)

        def part(lo: int, hi: int) -> None:
            own = table.copy()
            own[at] = hi - lo
            begins = [
                start + lo * step for start, step in zip(starts, steps, strict=True)
            ]
            entry(*arrays, own, *begins, 0, sheets, alpha)

        if alone:
            entry(*arrays, table, *starts, 0, sheets, alpha)
        elif by_sheets:
            grain = max(1, GRAIN * sheets // (elements * each))
            parallel_for(sheets // each, grain, sheet)
        else:
            least = COLUMNS if at == COLS and elements > columns else 1
            count = columns if at == COLS else rows
            parallel_for(count, max(least, GRAIN * count // elements), part)

    return share


def along(
    family: Family,
    name: str,
    shape: Ints,
    strides: Ints,
    dim: int,
    index: tuple[Ints, Ints, Ints],
    linear: Ints,
    walked: Ints,
) -> Call:
    """The call that indexes dimension `dim` of a tensor and walks over `walked`.

    A tensor without dimensions is walked as one of a single element, and so is an index
    or a linear operand.
    """
    own, stored, steps = index
    ndim = max(map(len, (strides, walked, steps, linear)))
    size, step = (shape[dim], strides[dim]) if shape else (1, 1)
    addressed = (*strides[:dim], 0, *strides[dim + 1 :]) if shape else (0,) * ndim
    return ready(
        family,
        name,
        walked or (1,) * ndim,
        addressed,
        step,
        (own, stored, steps or (0,) * ndim),
        linear or (0,) * ndim,
        size,
    )
