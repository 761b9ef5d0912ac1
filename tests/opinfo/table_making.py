"""The rows of factories, of what writes in place only, and of random numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo.info import D, OpInfo, Sample, Seed
from tests.opinfo.samples import ALL, COMPLEXES, INTEGERS, REALS, array
from tests.opinfo.table_pointwise import by_name

Samples = Callable[[str], list[Sample]]


def sized(*calls: tuple[Any, ...]) -> Samples:
    """Each call in the dtype asked for."""

    def samples(dtype: str) -> list[Sample]:
        return [Sample(*arguments, dtype=D(dtype)) for arguments in calls]

    return samples


def like(*more: Any) -> Samples:
    """Calls with a tensor as the pattern."""

    def samples(dtype: str) -> list[Sample]:
        x = array(dtype, (2, 3), 1, layout="transposed")
        return [
            Sample(x, *more),
            Sample(x, *more, dtype=D("float64")),
            Sample(array(dtype, (0, 2)), *more),
            Sample(array(dtype, ()), *more),
        ]

    return samples


def resized(*more: Any) -> Samples:
    """Calls with a tensor as the pattern of all but the size."""

    def samples(dtype: str) -> list[Sample]:
        x = array(dtype, (2, 3), 1, layout="transposed")
        return [
            Sample(x, [3, 2], *more),
            Sample(x, [], *more, dtype=D("float64")),
            Sample(array(dtype, ()), [0, 4], *more),
            Sample(array(dtype, (0, 2)), [5], *more),
        ]

    return samples


def filled(value: Any) -> Callable[..., Any]:
    return lambda size, **_: np.full(size, value)


def filled_like(value: Any) -> Callable[..., Any]:
    return lambda x, **_: np.full(x.shape, value)


def filled_new(value: Any) -> Callable[..., Any]:
    return lambda x, size, *_, **__: np.full(size, value)


def as_dtype(function: Any) -> Callable[..., Any]:
    """The reference that computes widely and converts at the end."""

    def run(*args: Any, dtype: str) -> Any:
        wide = {"bfloat16": "float64", "float16": "float64"}.get(dtype, dtype)
        return function(*args).astype(wide)

    return run


def factory(name: str, samples: Samples, reference: Any, **more: Any) -> OpInfo:
    more.setdefault("torch", by_name(name.partition(".")[0]))
    more.setdefault("dtypes", ALL)
    return OpInfo(name=name, samples=samples, reference=reference, gradient=False,
                  **more)  # fmt: skip


def _method(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda torch: getattr(torch.Tensor, name)


def new(name: str, samples: Samples, reference: Any, **more: Any) -> OpInfo:
    return factory(name, samples, reference, kind="free", torch=_method(name), **more)


SIZES: tuple[tuple[Any, ...], ...] = (([2, 3],), ([],), ([0, 4],))
FACTORIES = (
    factory("empty", sized(*SIZES), None, random=True),
    factory("zeros", sized(*SIZES), filled(0)),
    factory("ones", sized(*SIZES), filled(1)),
    factory("full", sized(([2, 3], 3), ([], 1), ([0], 2)),
            as_dtype(lambda size, value: np.full(size, value))),
    factory("arange", sized((5,), (0,), (3,)), as_dtype(np.arange),
            dtypes=(*INTEGERS, *REALS)),
    factory("arange.start", sized((1, 6, 2), (4, -1, -2), (2, 5)), as_dtype(np.arange),
            dtypes=("int8", "int32", "int64", *REALS)),
    factory("eye", sized((3,), (2, 4), (3, 1), (0,)),
            as_dtype(lambda n, m=None: np.eye(n, m))),
    factory("linspace", sized((0, 1, 5), (3.0, -1.0, 4), (2, 5, 1), (0, 1, 0)),
            as_dtype(np.linspace), dtypes=(*REALS, *COMPLEXES), loose=2.0),
    factory("logspace", sized((0, 1, 5), (1.0, -1.0, 4, 2.0), (2, 5, 1), (0, 1, 0)),
            as_dtype(lambda first, last, count, base=10.0: np.logspace(
                first, last, count, base=base)), dtypes=(*REALS,), loose=2.0),
    factory("zeros_like", like(), filled_like(0), kind="free", torch=None),
    factory("ones_like", like(), filled_like(1), kind="free", torch=None),
    factory("full_like", like(1), lambda x, v, **_: np.full(x.shape, v), kind="free",
            torch=None),
    factory("empty_like", like(), None, kind="free", random=True, torch=None),
    new("new_empty", resized(), None, random=True),
    new("new_zeros", resized(), filled_new(0)),
    new("new_ones", resized(), filled_new(1)),
    new("new_full", resized(1), filled_new(1)),
)  # fmt: skip


def drawn(*calls: tuple[Any, ...]) -> Samples:
    def samples(dtype: str) -> list[Sample]:
        return [Sample(*more, generator=Seed(7), dtype=D(dtype)) for more in calls]

    return samples


def random_row(name: str, samples: Samples, **more: Any) -> OpInfo:
    more.setdefault("dtypes", REALS)
    more.setdefault("gradient", False)
    return OpInfo(name=name, samples=samples, reference=None, random=True, **more)


def by_a_tensor(dtype: str) -> list[Sample]:
    """Samples of what writes the number of a tensor without dimensions."""
    return [
        Sample(each.args[0], array(dtype, (), 2)) for each in in_place()(dtype)
    ]  # fmt: skip


def in_place(*more: Any) -> Samples:
    """Samples of operators that write to their first argument."""

    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(array(dtype, (3, 4), 1), *more),
            Sample(array(dtype, (3, 4), 1, layout="transposed"), *more),
            Sample(array(dtype, (2, 5), 1, layout="sliced"), *more),
            Sample(array(dtype, (4,), 1, layout="offset"), *more),
            Sample(array(dtype, (), 1), *more),
            Sample(array(dtype, (0, 2), 1), *more),
        ]

    return samples


def seeded(*more: Any) -> Samples:
    def samples(dtype: str) -> list[Sample]:
        plain = in_place(*more)(dtype)
        return [Sample(*s.args, generator=Seed(7)) for s in plain]

    return samples


def copied_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (3, 4), 1), array(dtype, (3, 4), 2)),
        Sample(array(dtype, (3, 4), 1), array("float32", (4,), 2, "positive")),
        Sample(array(dtype, (3, 4), 1, layout="transposed"),
               array(dtype, (3, 1), 2, layout="sliced")),
        Sample(array(dtype, (2, 5), 1, layout="sliced"), array("int64", (5,), 2)),
        Sample(array(dtype, (0, 2), 1), array(dtype, (1, 2), 2)),
    ]  # fmt: skip


def copied(x: Any, source: Any, *_: Any) -> Any:
    # As torch and C convert: integers wrap, floats are cut.
    if x.dtype.kind == "u" and source.dtype.kind in "fi":
        source = source.astype(np.int64)
    return np.broadcast_to(source, x.shape).astype(x.dtype)


WRITERS = (
    OpInfo(name="copy_", samples=copied_samples, reference=copied, dtypes=ALL,
           torch=_method("copy_"), gradient=False),
    OpInfo(name="fill_", samples=in_place(1), dtypes=ALL, torch=_method("fill_"),
           reference=lambda x, v: np.full(x.shape, v), gradient=False),
    OpInfo(name="fill_.Tensor", samples=by_a_tensor, dtypes=ALL,
           torch=_method("fill_"), reference=lambda x, v: np.full(x.shape, v),
           gradient=False),
    OpInfo(name="zero_", samples=in_place(), dtypes=ALL, torch=_method("zero_"),
           reference=lambda x: np.zeros(x.shape), gradient=False),
    random_row("uniform_", seeded(-1.0, 2.0)),
    random_row("normal_", seeded(1.0, 0.5)),
    random_row("bernoulli_.float", seeded(0.25)),
    random_row("random_", seeded(), dtypes=("bool", *INTEGERS, *REALS)),
    random_row("random_.to", seeded(5), dtypes=(*INTEGERS, *REALS)),
    random_row("random_.from", seeded(2, 9), dtypes=(*INTEGERS, *REALS)),
)  # fmt: skip

DRAWN: tuple[tuple[Any, ...], ...] = (([200],), ([2, 3],), ([],), ([0, 4],))
RANDOM = (
    random_row("rand", drawn(*DRAWN)),
    random_row("randn", drawn(*DRAWN)),
    random_row("randint", drawn(*((-3, 5, *size) for size in DRAWN)),
               dtypes=("int8", "int32", "int64", *REALS)),
    random_row("randperm", drawn((9,), (0,)), dtypes=("int32", "int64", "float32")),
    random_row("rand_like", like(), kind="free"),
    random_row("randn_like", like(), kind="free"),
    random_row("native_dropout", lambda dtype: [
        Sample(array(dtype, (20, 20), 1), 0.25, True, generator=Seed(7)),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), 0.5, False),
        Sample(array(dtype, (0, 3)), 0.5, True, generator=Seed(7)),
    ], kind="free"),
    random_row("dropout", lambda dtype: [
        Sample(array(dtype, (3, 4), 1), 0.5, True),
        Sample(array(dtype, (3, 4), 1), 1.0, True),
        Sample(array(dtype, (3, 4), 1, layout="transposed"), 0.5, False),
    ]),
)  # fmt: skip


def equal_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (2, 3), 1)
    return [
        Sample(x, array(dtype, (2, 3), 1, layout="transposed")),
        Sample(x, array(dtype, (2, 3), 2)),
        Sample(x, array(dtype, (3,), 1)),
        Sample(array(dtype, (0,)), array(dtype, (0,))),
    ]


READERS = (
    OpInfo(name="equal", samples=equal_samples, reference=np.array_equal, dtypes=ALL,
           kind="free", gradient=False, meta=False, torch=by_name("equal")),
    OpInfo(name="_local_scalar_dense", reference=lambda x: x.reshape(()), dtypes=ALL,
           samples=lambda dtype: [Sample(array(dtype, (), 1)),
                                  Sample(array(dtype, (1, 1), 2, layout="offset"))],
           kind="free", gradient=False, meta=False, torch=_method("item")),
)  # fmt: skip
ROWS = (*FACTORIES, *WRITERS, *RANDOM, *READERS)
