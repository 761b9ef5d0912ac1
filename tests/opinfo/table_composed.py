"""The rows of what is made of other operators: arranging, products, layers, finding."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo.info import Array, OpInfo, Sample, Seed
from tests.opinfo.samples import (
    ALL,
    COMPLEXES,
    INTEGERS,
    NUMBERS,
    REALS,
    array,
    given,
    is_real,
)

FLOATS = (*REALS,)
FLOATING = (*REALS, *COMPLEXES)
COMPARED = ("bool", *INTEGERS, *REALS)
LINES = ("plain", "transposed", "sliced", "expanded", "offset")
Samples = Callable[[str], list[Sample]]


def called(*names: str) -> Callable[[Any], Callable[..., Any]]:
    """The function of torch at the end of a path of names."""

    def found(torch: Any) -> Any:
        for name in names:
            torch = getattr(torch, name)
        return torch

    return found


def method(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda torch: getattr(torch.Tensor, name)


def layer(name: str) -> Callable[[Any], Callable[..., Any]]:
    return called("nn", "functional", name)


def of(
    shape: tuple[int, ...], *more: Any, empty: bool = True, **kwargs: Any
) -> Samples:
    """Calls with one tensor, of every layout, and the same other arguments."""

    def samples(dtype: str) -> list[Sample]:
        made = [
            Sample(array(dtype, shape, 1 + at, layout=layout), *more, **kwargs)
            for at, layout in enumerate(LINES)
            if layout != "transposed" or len(shape) > 1
        ]
        if empty and len(shape) > 1:
            made.append(Sample(array(dtype, (0, *shape[1:])), *more, **kwargs))
        return made

    return samples


def each(*makers: Samples) -> Samples:
    return lambda dtype: [sample for maker in makers for sample in maker(dtype)]


def pairs(*shapes: tuple[int, ...], kind: str = "any", **kwargs: Any) -> Samples:
    """Calls with tensors of these shapes, plain and in other layouts."""

    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(
                *(
                    array(dtype, shape, 5 * at + seed, kind, layout)
                    for at, shape in enumerate(shapes)
                ),
                **kwargs,
            )
            for seed, layout in enumerate(("plain", "sliced", "offset"), 1)
        ]

    return samples


def places(values: Any) -> Array:
    return Array(np.asarray(values, np.int64))


ARRANGING = (
    OpInfo(name="repeat", samples=each(of((2, 3), [2, 1]), of((3,), [2, 0, 2])),
           reference=np.tile, dtypes=ALL, torch=method("repeat")),
    OpInfo(name="tile", samples=each(of((2, 3), [2]), of((2, 3), [2, 1, 2])),
           reference=np.tile, dtypes=ALL, torch=called("tile")),
    OpInfo(name="repeat_interleave.self_int",
           samples=each(of((2, 3), 2, 1), of((2, 3), 3)),
           reference=np.repeat, dtypes=ALL, torch=called("repeat_interleave")),
    OpInfo(name="repeat_interleave.self_Tensor", meta=False,
           samples=each(of((2, 3), places([2, 0, 1]), 1), of((2, 3), places([2])),
                        of((4,), places([0, 1, 2, 3]))),
           reference=lambda x, many, dim=None: np.repeat(
               x, many if len(many) > 1 else many[0], dim),
           dtypes=ALL, torch=called("repeat_interleave")),
    OpInfo(name="roll", samples=each(of((2, 3), [1]), of((2, 3), [1, -2], [0, 1])),
           reference=lambda x, shifts, dims=None: np.roll(x, shifts, dims),
           dtypes=ALL, torch=called("roll")),
    OpInfo(name="movedim", samples=of((2, 3, 4), [0, 1], [2, 0]), view=True,
           reference=np.moveaxis, dtypes=ALL, torch=called("movedim")),
    OpInfo(name="unflatten", samples=of((2, 6), 1, [-1, 2]), view=True,
           reference=lambda x, dim, sizes: x.reshape(x.shape[0], -1, 2) if x.size
           else x.reshape(0, 3, 2),
           dtypes=ALL, torch=called("unflatten")),
    OpInfo(name="broadcast_to", samples=of((1, 3), [2, 4, 3], empty=False), view=True,
           reference=np.broadcast_to, dtypes=ALL, torch=called("broadcast_to")),
    OpInfo(name="tril", samples=each(of((3, 4)), of((2, 3, 4), -1), of((3, 4), 2)),
           reference=np.tril, dtypes=ALL, torch=called("tril")),
    OpInfo(name="triu", samples=each(of((3, 4)), of((2, 3, 4), -1), of((3, 4), 2)),
           reference=np.triu, dtypes=ALL, torch=called("triu")),
    OpInfo(name="diag", samples=each(of((3, 4)), of((3, 4), -1), of((3,), 1),
                                     of((2,), -2), of((3,))),
           reference=np.diag, dtypes=ALL, torch=called("diag")),
    OpInfo(name="trace", samples=of((3, 4), empty=False), reference=np.trace,
           dtypes=ALL, kind="wide", torch=called("trace")),
    OpInfo(name="pad",
           samples=each(of((3, 4), [1, 2]), of((3, 4), [1, -1, 0, 2], value=1.0),
                        of((2, 3, 4), [2, 1], mode="reflect", empty=False),
                        of((2, 3, 4), [2, 5], mode="replicate", empty=False),
                        of((2, 3, 4), [2, 4], mode="circular", empty=False)),
           reference=None, dtypes=ALL, torch=layer("pad")),
)  # fmt: skip


def stacked(*shapes: tuple[int, ...], **kwargs: Any) -> Samples:
    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(
                [array(dtype, shape, at + seed, layout=layout)
                 for at, shape in enumerate(shapes)],
                **kwargs,
            )
            for seed, layout in enumerate(("plain", "sliced", "offset"), 1)
        ]  # fmt: skip

    return samples


def grid(lines: Any, *, indexing: str = "ij") -> Any:
    found: Any = np.meshgrid(*lines, indexing="xy" if indexing == "xy" else "ij")
    return found


def taken(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1)
    return [
        Sample(x, places([[0, 2, 1, 1]]), 0),
        Sample(array(dtype, (3, 4), 2, layout="sliced"), places([[3], [0], [0]]), 1),
        Sample(x, places([5, 0, 5])),
    ]


def classes(dtype: str) -> list[Sample]:
    line = Array(np.array([0, 2, 1, 2], dtype))
    return [Sample(line), Sample(line, 4), Sample(Array(np.zeros((2, 0), dtype)), 3)]


def one_hot(x: Any, count: int = -1) -> Any:
    return np.eye(int(x.max()) + 1 if count < 0 else count, dtype=np.int64)[x]


TOGETHER = (
    OpInfo(name="meshgrid", samples=each(stacked((2,), (3,)), stacked((2,), (3,), (4,)),
                                         stacked((2,), (3,), indexing="xy")),
           reference=grid, dtypes=ALL, view=False,
           torch=lambda torch: lambda lines, **more: torch.meshgrid(*lines, **more)),
    OpInfo(name="hstack", samples=each(stacked((2, 3), (2, 1)), stacked((2,), (3,))),
           reference=np.hstack, dtypes=ALL, torch=called("hstack")),
    OpInfo(name="vstack", samples=each(stacked((2, 3), (1, 3)), stacked((3,), (3,))),
           reference=np.vstack, dtypes=ALL, torch=called("vstack")),
    OpInfo(name="take_along_dim", samples=taken,
           reference=lambda x, at, dim=None: np.take_along_axis(x, at, dim),
           dtypes=ALL, torch=called("take_along_dim")),
    OpInfo(name="one_hot", samples=classes, reference=one_hot, dtypes=("int64",),
           kind="int64", gradient=False, meta=False, torch=layer("one_hot")),
)  # fmt: skip


def added(self: Any, one: Any, two: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * self + alpha * (one @ two)


def spelled(equation: str, parts: Any) -> Any:
    return np.einsum(equation, *parts)


def equations(dtype: str) -> list[Sample]:
    def arrays(*shapes: tuple[int, ...]) -> list[Array]:
        return [array(dtype, shape, at + 1) for at, shape in enumerate(shapes)]

    return [
        Sample("ij,jk->ik", arrays((2, 3), (3, 4))),
        Sample("bij,bkj->bik", arrays((2, 2, 3), (2, 4, 3))),
        Sample("ii->i", arrays((3, 3))),
        Sample("...j,j", arrays((2, 2, 3), (3,))),
        Sample("ij,ij->", arrays((2, 3), (2, 3))),
        Sample("bij,jk,kl->bil", arrays((2, 2, 3), (3, 2), (2, 2))),
    ]


def lengths(dtype: str) -> list[Sample]:
    x = array(dtype, (2, 3, 4), 1)
    return [
        Sample(x),
        Sample(x, 2, [1]),
        Sample(x, 1, [0, 2], True),
        Sample(array(dtype, (3, 4), 2, layout="transposed"), 3, [0]),
        Sample(array(dtype, (3, 4), 3, layout="sliced"), float("inf"), [1]),
        Sample(array(dtype, (3, 4), 4), -float("inf")),
        Sample(array(dtype, (0,)), 2),
    ]


def length(x: Any, p: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    order = 2 if p is None else p
    sizes, axes = abs(x), None if dim is None else tuple(dim)
    if abs(order) == np.inf:
        pick = np.max if order > 0 else np.min
        return pick(sizes, axis=axes, keepdims=keepdim)
    return np.sum(sizes**order, axis=axes, keepdims=keepdim) ** (1 / order)


def exponentials(x: Any, dim: Any, keepdim: bool = False) -> Any:
    wide = x.astype(np.result_type(x.dtype, np.float32))
    with np.errstate(divide="ignore"):
        return np.log(np.exp(wide).sum(tuple(dim), keepdims=keepdim))


def running_product(x: Any, dim: int) -> Any:
    wide = np.int64 if x.dtype.kind in "bui" else None
    return np.cumprod(x, axis=dim, dtype=wide)


PRODUCTS = (
    OpInfo(name="outer", samples=pairs((3,), (4,)), reference=np.outer, dtypes=ALL,
           torch=called("outer")),
    OpInfo(name="mv", samples=pairs((3, 4), (4,)), reference=np.matmul, dtypes=NUMBERS,
           torch=called("mv")),
    OpInfo(name="addmm", samples=each(pairs((2, 4), (2, 3), (3, 4), beta=2, alpha=3),
                                      pairs((4,), (2, 3), (3, 4))),
           reference=added, dtypes=NUMBERS, torch=called("addmm")),
    OpInfo(name="addmv", samples=pairs((2,), (2, 3), (3,), beta=2, alpha=3),
           reference=added, dtypes=NUMBERS, torch=called("addmv")),
    OpInfo(name="baddbmm", samples=pairs((2, 2, 4), (2, 2, 3), (2, 3, 4), beta=2),
           reference=added, dtypes=NUMBERS, torch=called("baddbmm")),
    OpInfo(name="addcmul", samples=pairs((3, 4), (3, 1), (4,), value=2),
           reference=lambda x, a, b, *, value: x + value * a * b, dtypes=NUMBERS,
           torch=called("addcmul")),
    OpInfo(name="addcdiv", samples=pairs((3, 4), (3, 1), (4,), kind="nonzero", value=2),
           reference=lambda x, a, b, *, value: x + value * a / b, dtypes=FLOATING,
           torch=called("addcdiv")),
    OpInfo(name="lerp.Scalar",
           samples=lambda dtype: [
               Sample(array(dtype, (3, 4), 1), array(dtype, (4,), 2), part)
               for part in (0.25, 0.75)],
           reference=lambda x, end, w: x + w * (end - x), dtypes=FLOATING,
           torch=called("lerp")),
    OpInfo(name="lerp.Tensor", samples=pairs((3, 4), (4,), (3, 1)),
           reference=lambda x, end, w: x + w * (end - x), dtypes=FLOATING, loose=4.0,
           torch=called("lerp")),
    OpInfo(name="norm", samples=lengths, reference=length, dtypes=FLOATING, kind="real",
           loose=4.0,
           torch=lambda torch: lambda x, p=2, dim=None, keepdim=False: torch.norm(
               x, p, dim, keepdim)),
    OpInfo(name="logsumexp", samples=each(of((3, 4), [1]), of((2, 3, 4), [0, 2], True)),
           reference=exponentials, kind="floating",
           dtypes=ALL, torch=called("logsumexp")),
    OpInfo(name="cumprod", samples=each(of((3, 4), 1), of((5, 2), 0)),
           reference=running_product, dtypes=ALL, kind="wide", torch=called("cumprod")),
    OpInfo(name="einsum", samples=equations, reference=spelled, dtypes=NUMBERS,
           torch=lambda torch: lambda text, parts: torch.einsum(text, *parts)),
)  # fmt: skip


def mean_or_sum(loss: Any, reduction: str) -> Any:
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def squared(x: Any, y: Any, reduction: str = "mean") -> Any:
    return mean_or_sum(np.square(x - y), reduction)


def apart(x: Any, y: Any, reduction: str = "mean") -> Any:
    return mean_or_sum(abs(x - y), reduction)


def reductions(*shapes: tuple[int, ...]) -> Samples:
    return each(*(pairs(*shapes, reduction=r) for r in ("mean", "none", "sum")))


def scored(dtype: str) -> list[Sample]:
    def chances(shape: tuple[int, ...]) -> Array:
        return given(np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape), dtype)

    x, many = array(dtype, (3, 4), 1), array(dtype, (4,), 2, "positive")
    return [
        Sample(x, chances((3, 4))),
        Sample(x, chances((3, 4)), many, many, "sum"),
        Sample(
            array(dtype, (3, 4), 3, layout="sliced"), chances((3, 4)), reduction="none"
        ),
    ]


def images(*more: Any, shape: tuple[int, ...] = (2, 4, 5, 6), **kwargs: Any) -> Samples:
    def samples(dtype: str) -> list[Sample]:
        return [
            Sample(array(dtype, shape, 1, layout=layout), *more, **kwargs)
            for layout in ("plain", "sliced")
        ]

    return samples


def normed(dtype: str) -> list[Sample]:
    x, many = array(dtype, (2, 3, 4), 1), array(dtype, (3,), 2, "positive")
    return [
        Sample(x, many, many, many, many),
        Sample(x, many, many, None, None, eps=0.5),
        Sample(array(dtype, (4, 3), 3, layout="sliced"), None, None, many, None, True),
    ]


def batch_norm(
    x: Any,
    m: Any = None,
    v: Any = None,
    w: Any = None,
    b: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    def channels(values: Any) -> Any:
        return np.asarray(values).reshape(1, -1, *(1,) * (x.ndim - 2))

    axes = (0, *range(2, x.ndim))
    mean = x.mean(axes) if training else m
    spread = x.var(axes) if training else v
    found = (x - channels(mean)) / np.sqrt(channels(spread) + eps)
    return found * channels(1 if w is None else w) + channels(0 if b is None else b)


def grouped(dtype: str) -> list[Sample]:
    x, many = array(dtype, (2, 4, 3), 1), array(dtype, (4,), 2, "positive")
    return [Sample(x, 2), Sample(x, 2, many, many), Sample(x, 4, many, None, 0.5)]


def lengthened(dtype: str) -> list[Sample]:
    x, many = array(dtype, (2, 3, 4), 1), array(dtype, (4,), 2)
    return [Sample(x, [4], many), Sample(x, [3, 4], None, 0.5)]


def rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    axes = tuple(range(-len(shape), 0))
    least = 1.1920929e-07 if eps is None else eps
    found = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + least)
    return found if weight is None else found * weight


def asked(dtype: str) -> list[Sample]:
    def heads(seed: int, layout: str = "plain") -> Array:
        return array(dtype, (2, 1, 3, 2), seed, layout=layout)

    mask = Array(np.array([[True, False, True], [False] * 3, [True] * 3]))
    return [
        Sample(heads(1), heads(2), heads(3)),
        Sample(heads(1), heads(2), heads(3), is_causal=True),
        Sample(heads(1, "sliced"), heads(2), heads(3), mask),
        Sample(heads(1), heads(2), heads(3), array(dtype, (3, 3), 4), scale=0.5),
    ]


LAYERS = (
    OpInfo(name="mse_loss", samples=reductions((3, 4), (3, 4)), reference=squared,
           dtypes=FLOATS, torch=layer("mse_loss")),
    OpInfo(name="l1_loss", samples=reductions((3, 4), (3, 4)), reference=apart,
           dtypes=FLOATING, kind="real", torch=layer("l1_loss")),
    OpInfo(name="binary_cross_entropy_with_logits", samples=scored, reference=None,
           dtypes=FLOATS, loose=4.0,
           torch=lambda torch: lambda x, t, w=None, p=None, reduction="mean":
               torch.nn.functional.binary_cross_entropy_with_logits(
                   x, t, w, reduction=reduction, pos_weight=p)),
    OpInfo(name="softplus", samples=each(of((3, 4)), of((3, 4), 2, 1.25)),
           reference=lambda x, beta=1, most=20: np.where(
               x * beta > most, x, np.log1p(np.exp(np.minimum(x * beta, most))) / beta),
           dtypes=FLOATS, torch=layer("softplus"), loose=4.0),
    OpInfo(name="leaky_relu", samples=each(of((3, 4)), of((3, 4), 0.25)),
           reference=lambda x, slope=0.01: np.where(x > 0, x, slope * x), dtypes=FLOATS,
           torch=layer("leaky_relu")),
    OpInfo(name="elu", samples=each(of((3, 4)), of((3, 4), 2)),
           reference=lambda x, alpha=1: np.where(x > 0, x, alpha * np.expm1(x)),
           dtypes=FLOATS, torch=layer("elu")),
    OpInfo(name="batch_norm", samples=normed, reference=batch_norm, dtypes=FLOATS,
           torch=layer("batch_norm"), loose=8.0),
    OpInfo(name="group_norm", samples=grouped, reference=None, dtypes=FLOATS,
           torch=called("group_norm"), loose=8.0),
    OpInfo(name="rms_norm", samples=lengthened, reference=None, dtypes=FLOATING,
           torch=called("rms_norm"), loose=8.0),
    OpInfo(name="avg_pool2d",
           samples=each(images([2, 2]), images([3, 2], [2, 1], [1, 1]),
                        images([3, 3], [2, 2], [1, 1], True, False),
                        images([2, 2], divisor_override=3, shape=(3, 4, 5))),
           reference=None, dtypes=FLOATS, torch=layer("avg_pool2d")),
    OpInfo(name="conv1d",
           samples=each(pairs((1, 2, 5), (2, 2, 2), (2,), stride=[2], padding=[1]),
                        pairs((2, 4, 7), (4, 2, 2), dilation=[2], groups=2)),
           reference=None, dtypes=FLOATING, torch=called("conv1d"), loose=4.0),
    OpInfo(name="scaled_dot_product_attention", samples=asked, reference=None,
           dtypes=FLOATS, torch=layer("scaled_dot_product_attention"), loose=4.0),
)  # fmt: skip


def close_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1)
    near = Array(x.values.copy())
    near.values[0] = 0
    return [Sample(x, x), Sample(x, near), Sample(x, near, 0.5, 0.25, True)]


def wild(dtype: str) -> list[Sample]:
    plain = array(dtype, (3, 4), 1, layout="sliced")
    if not is_real(dtype):
        return [Sample(plain), Sample(plain, 1.0)]
    x = given([1.0, np.nan, np.inf, -np.inf, -0.0], dtype)
    return [Sample(plain), Sample(x), Sample(x, 1.0, 2.0, -2.0), Sample(x, posinf=3.0)]


def repeated(dtype: str) -> list[Sample]:
    x = given([[3, 1, 2], [3, 0, 1], [3, 1, 2]], dtype)
    return [
        Sample(x, True, True),
        Sample(x, False, True, 0),
        Sample(x, True, True, 1),
        Sample(given(np.zeros(0), dtype), True, True),
    ]


def unique(x: Any, inverse: bool = False, counts: bool = False, dim: Any = None) -> Any:
    values, at, many = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    none = np.zeros(0, np.int64)
    shape = x.shape if dim is None else (x.shape[dim],)
    return values, at.reshape(shape) if inverse else none, many if counts else none


def between(dtype: str) -> list[Sample]:
    line = given([0, 1, 1, 3, 5], dtype)
    rows = given([[0, 2, 4], [1, 1, 3]], dtype)
    numbers = given([[1, 9, 0], [3, 2, 1]], dtype)
    return [
        Sample(line, numbers),
        Sample(line, numbers, right=True),
        Sample(rows, numbers, side="right", out_int32=True),
        Sample(given(np.zeros(0), dtype), numbers),
    ]


def counted(dtype: str) -> list[Sample]:
    line = Array(np.array([0, 2, 1, 2], dtype))
    return [
        Sample(line),
        Sample(line, None, 5),
        Sample(line, Array(np.array([0.5, 1.0, 2.0, 4.0]))),
        Sample(given(np.zeros(0), dtype), None, 2),
    ]


def drawn(dtype: str) -> list[Sample]:
    chances = given([[0.0, 1.0, 0.5], [0.25, 0.75, 0.5]], dtype)
    return [
        Sample(chances, generator=Seed(3)),
        Sample(chances, 0.25, generator=Seed(3)),
    ]


def weighed(dtype: str) -> list[Sample]:
    weights = given([[0.0, 1.0, 3.0, 1.0], [2.0, 1.0, 0.5, 0.0]], dtype)
    return [
        Sample(weights, 3, generator=Seed(3)),
        Sample(weights, 9, True, generator=Seed(3)),
    ]


def angles(dtype: str) -> list[Sample]:
    found = of((3, 4))(dtype)
    if dtype in REALS:
        found.append(Sample(given([-1.0, 0.0, np.nan, -np.inf], dtype)))
    return found


FINDING = (
    OpInfo(name="angle", samples=angles, dtypes=ALL, kind="free",
           reference=lambda x: np.angle(x.astype("f4") if x.dtype.kind in "bui" else x),
           torch=called("angle")),
    OpInfo(name="isclose", samples=close_samples, kind="bool", dtypes=ALL,
           gradient=False,
           reference=lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: np.isclose(
               x, y, rtol, atol, equal_nan),
           torch=called("isclose")),
    OpInfo(name="nan_to_num", samples=wild, reference=None, dtypes=ALL,
           torch_lacks=("complex128",),
           torch=called("nan_to_num")),
    OpInfo(name="count_nonzero", samples=each(of((3, 4)), of((2, 3, 4), [0, 2])),
           kind="int64", dtypes=ALL, gradient=False,
           reference=lambda x, dim=None: np.asarray(
               np.count_nonzero(x, None if dim is None else tuple(dim))),
           torch=called("count_nonzero")),
    OpInfo(name="_unique", samples=repeated, reference=unique, dtypes=COMPARED,
           kind="free", gradient=False, meta=False),
    OpInfo(name="searchsorted", samples=between, reference=None, dtypes=COMPARED,
           kind="free", gradient=False, torch=called("searchsorted")),
    OpInfo(name="bincount", samples=counted, reference=None, dtypes=INTEGERS,
           kind="free", gradient=False, meta=False, torch=called("bincount")),
    # Its slope is 0, which no differences of what is drawn show.
    OpInfo(name="bernoulli", samples=drawn, reference=None, dtypes=FLOATS, random=True,
           gradient=False),
    OpInfo(name="multinomial", samples=weighed, reference=None, dtypes=FLOATS,
           kind="int64", random=True, gradient=False),
)  # fmt: skip

ROWS = (*ARRANGING, *TOGETHER, *PRODUCTS, *LAYERS, *FINDING)
