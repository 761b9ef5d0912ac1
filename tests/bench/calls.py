"""Rows about calls: a Python kernel through the dispatcher, and a whole small addition.

All sides run in turn, a few thousand calls each, with nothing to compute in them.
"""

from collections.abc import Callable, Iterator
from functools import singledispatch
from itertools import repeat
from statistics import median
from typing import Any

from everyorder import runtime
from everyorder.runtime import Library, Tensor, direct, tensor
from tests.bench.compare import torch
from tests.bench.operators import beside
from tests.bench.row import NO_TORCH, Row, pairs, ratio

CALLS = 5_000
TURNS = 31

# Libraries of torch, which end with the process.
KEPT: list[object] = []


def often(
    run: Callable[[Any], object], argument: Any, count: int = CALLS
) -> Callable[[], None]:
    """`count` calls in a row."""

    def loop() -> None:
        call = run
        for each in repeat(argument, count):
            call(each)

    return loop


def same(x: Tensor) -> Tensor:
    """The kernel on all sides."""
    return x


@singledispatch
def by_type(x: object) -> object:
    """What nobody calls."""
    raise AssertionError(f"{x!r} is a tensor, which has a kernel of its own")


by_type.register(Tensor, same)


def calling(operator: runtime.OperatorHandle) -> Callable[[], None]:
    """`CALLS` calls of a handle, as programs write them."""
    x = tensor([1.0])

    def loop() -> None:
        for each in repeat(x, CALLS):
            operator.call(each)

    return loop


# What people write: neither annotations nor `direct`.
PLAIN = "same(Tensor x) -> Tensor"
DEFAULTS = "same(Tensor x, int n=2, *, Scalar alpha=1) -> Tensor"


def of_torch(schema: str, kernel: Callable[..., Any]) -> Callable[[], None] | None:
    """`CALLS` calls of a kernel registered with torch.library."""
    if torch is None:
        return None
    namespace = f"everyorder_bench_{len(KEPT)}"
    library = torch.library.Library(namespace, "DEF")
    library.define(schema)
    library.impl("same", kernel, "CPU")
    # The operator is there as long as its library.
    KEPT.append(library)
    operator = getattr(torch.ops, namespace).same.default
    return often(operator, torch.ones(1))


def python_kernels() -> Iterator[Row]:
    """One call of a Python kernel: ours, `functools.singledispatch`, torch.library."""
    library = Library("bench", "DEF")
    plain = lambda x: x  # noqa: E731  # as people write kernels
    with_defaults = lambda x, n=2, *, alpha=1: x  # noqa: E731  # likewise
    library.define(PLAIN.replace("same", "direct"))
    library.impl("direct", direct(same, "same"), "CPU")
    library.impl("direct", runtime.fallthrough, "Autograd")
    for name, schema, kernel in (
        ("plain", PLAIN, plain),
        ("defaults", DEFAULTS, with_defaults),
        ("typed", PLAIN, same),
    ):
        library.define(schema.replace("same", name))
        library.impl(name, kernel, "CPU")
    by_class = often(by_type, tensor([1.0]))
    theirs, with_theirs = of_torch(PLAIN, plain), of_torch(DEFAULTS, with_defaults)
    single = "functools.singledispatch"
    torchs = "a Python kernel of torch.library"
    for name, what, against in (
        (
            "plain",
            "a call of an un-annotated Python kernel",
            ((single, 1.2, "≤ 1.2", by_class), (torchs, 1 / 3, "≤ 1/3", theirs)),
        ),
        (
            "defaults",
            "a call of an un-annotated kernel, two defaults in the schema,",
            ((torchs, 1 / 2, "≤ 1/2", with_theirs),),
        ),
        (
            "typed",
            "a call of an annotated Python kernel",
            ((single, 1.0, "≤ 1", by_class), (torchs, 1 / 3, "≤ 1/3", theirs)),
        ),
        (
            "direct",
            "a call of a `direct` Python kernel, Autograd falling through,",
            ((single, 1.0, "≤ 1", by_class), (torchs, 1 / 3, "≤ 1/3", theirs)),
        ),
    ):
        operator = runtime.default_dispatcher().find_op(f"bench::{name}")
        assert operator is not None, "it was defined above"
        yield from calls_over(calling(operator), what, against)
    library.close()


def written_lines() -> Iterator[Row]:
    """The line as people write it, every attribute in it, over a held operator."""
    library = Library("demo", "DEF")
    library.define("add(Tensor a, Tensor b) -> Tensor")
    library.impl("add", lambda a, b: a, "CPU")
    a, b = tensor([1.0]), tensor([2.0])
    held, ops = runtime.ops.demo.add, runtime.ops

    def call() -> None:
        for _ in repeat(None, CALLS):
            held(a, b)

    def line() -> None:
        for _ in repeat(None, CALLS):
            ops.demo.add(a, b)

    def overload() -> None:
        for _ in repeat(None, CALLS):
            ops.demo.add.default(a, b)

    what = "`{}`, a Python kernel,"
    over = (("a held operator", 1.3, "≤ 1.3", call),)
    why = "an attribute access in C is 20 ns"
    for named, ours in (
        ("ops.demo.add(a, b)", line),
        ("ops.demo.add.default(a, b)", overload),
    ):
        yield from calls_over(ours, what.format(named), over, why)
    library.close()


def calls_over(
    ours: Callable[[], None],
    what: str,
    others: tuple[tuple[str, float, str, Callable[[], None] | None], ...],
    why: str = "the fallback at Autograd asks for requires_grad first, 20 ns",
) -> Iterator[Row]:
    """Our calls over those of others, each with its aim, and why it may be missed."""
    for other, aim, sign, against in others:
        if against is None:
            yield Row(f"{what} over {other}", "-", sign, None, NO_TORCH)
            continue
        measured = pairs(ours, against, TURNS)
        one, two = (median(side) / CALLS * 1e9 for side in zip(*measured, strict=True))
        yield Row(
            f"{what} over {other}",
            f"{ratio(measured):.2f} ({one:.0f} ns, {two:.0f} ns)",
            sign,
            ratio(measured) <= aim,
            why=why,
        )


def additions() -> Iterator[Row]:
    """`ops.core.add` on one element, and operators on 1,000."""
    what = "`ops.core.add` on one element over torch.add"
    if torch is None:
        yield Row(what, "-", "< 1", None, NO_TORCH)
        return
    x, add, y = tensor([1.0]), runtime.ops.core.add, torch.ones(1)
    measured = pairs(
        often(lambda _: add(x, x), None),
        often(lambda _: torch.add(y, y), None),
        TURNS,
    )
    each = min(one for one, _ in measured) / CALLS * 1e9
    yield Row(
        what,
        f"{ratio(measured):.2f} ({each:.0f} ns)",
        "< 1",
        ratio(measured) < 1,
        why="0.3 µs of call and autograd in Python; checks, `np.empty` and the tensor "
        "around a compiled loop of 0.15 µs",
    )
    yield beside()


CALL_ROWS = (written_lines, python_kernels, additions)
