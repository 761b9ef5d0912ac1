"""The rows of matrix products and of the layers of networks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as sp

from tests.opinfo.info import OpInfo, Sample
from tests.opinfo.samples import ALL, COMPLEXES, INTEGERS, REALS, array, given, whole
from tests.opinfo.table_pointwise import aten, by_name

FLOATING = (*REALS, *COMPLEXES)
NUMBERS = (*INTEGERS, *FLOATING)
PRODUCTS = (*INTEGERS, *REALS, *COMPLEXES)


def product_samples(*pairs: tuple[tuple[int, ...], ...]) -> Any:
    """Samples of these shapes: plain, and laid out in other ways."""

    def samples(dtype: str) -> list[Sample]:
        found = [
            Sample(*(array(dtype, s, i, "small") for i, s in enumerate(shapes)))
            for shapes in pairs
        ]
        for layouts in (("transposed", "sliced"), ("expanded", "transposed")):
            if len(pairs[0][0]) > 1:
                a, b = pairs[0][:2]
                found.append(
                    Sample(
                        array(dtype, a, 3, "small", layouts[0]),
                        array(dtype, b, 4, "small", layouts[1]),
                    )
                )
        return found

    return samples


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    found = np.matmul(x, weight.T)
    return found if bias is None else found + bias


def norm_samples(dtype: str) -> list[Sample]:
    w, b = array(dtype, (4,), 2, "positive"), array(dtype, (4,), 3)
    return [
        Sample(array(dtype, (3, 4), 1), [4], w, b, 1e-5),
        Sample(array(dtype, (2, 3, 4), 1, layout="transposed"), [4], None, b, 1e-3),
        Sample(array(dtype, (2, 3, 4), 1), [3, 4], None, None, 1e-5),
        Sample(array(dtype, (2, 3, 4), 1, layout="sliced"), [4], w, None, 1e-5),
        Sample(array(dtype, (0, 4), 1), [4], w, b, 1e-5),
    ]


def native_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> list[Any]:
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(dims, keepdims=True)
    rstd = 1 / np.sqrt(x.var(dims, keepdims=True) + eps)
    found = (x - mean) * rstd
    found = found if weight is None else found * weight
    return [found if bias is None else found + bias, mean, rstd]


def norm(
    x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5
) -> Any:
    return native_norm(x, shape, weight, bias, eps)[0]


def norm_backward_samples(dtype: str) -> list[Sample]:
    x, w = array(dtype, (3, 4), 1), array(dtype, (4,), 2, "positive")
    mean, rstd = array(dtype, (3, 1), 3, "small"), array(dtype, (3, 1), 4, "positive")
    grad = array(dtype, (3, 4), 5)
    return [
        Sample(grad, x, [4], mean, rstd, w, w, [True, True, True]),
        Sample(grad, x, [4], mean, rstd, w, w, [True, False, True]),
        Sample(grad, x, [4], mean, rstd, None, None, [True, False, False]),
    ]


def norm_backward(
    grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, w: Any, b: Any, mask: Any
) -> list[Any]:
    scaled = grad if w is None else grad * w
    normed = (x - mean) * rstd
    own = scaled - scaled.mean(-1, keepdims=True)
    own = (own - normed * (scaled * normed).mean(-1, keepdims=True)) * rstd
    results = [own, (grad * normed).sum(0), grad.sum(0)]
    return [r if wanted else None for r, wanted in zip(results, mask, strict=True)]


def loss_samples(dtype: str) -> list[Sample]:
    logp = array(dtype, (3, 4), 1, "small")
    weight = array(dtype, (4,), 2, "positive")
    classes, images = whole([1, 3, 0]), whole([[[1, 0], [2, 1]], [[0, 0], [-100, 2]]])
    return [
        Sample(logp, classes),
        Sample(logp, classes, weight, "sum"),
        Sample(logp, classes, weight, "none", 3),
        Sample(logp, whole([1, -100, 2]), weight),
        Sample(array(dtype, (2, 3, 2, 2), 1, "small"), images),
        Sample(array(dtype, (4,), 1, "small"), whole(2)),
        Sample(array(dtype, (3, 4), 1, "small", "transposed"), classes, None, "none"),
        Sample(array(dtype, (0, 4), 1), whole([]), None, "sum"),
        *(
            Sample(logp, classes, each, reduction, 3)
            for each in (None, weight)
            for reduction in REDUCTIONS
        ),
    ]


REDUCTIONS = ("none", "mean", "sum")


def nll(
    logp: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    ignored: int = -100,
) -> list[Any]:
    weight = np.ones(logp.shape[min(logp.ndim - 1, 1)]) if weight is None else weight
    rows = logp if logp.ndim == 1 else np.moveaxis(logp, 1, -1)
    kept = target != ignored
    safe = np.where(kept, target, 0)
    scale = np.where(kept, weight[safe], 0.0)
    each = -np.take_along_axis(rows, safe[..., None], -1)[..., 0] * scale
    if reduction == "none":
        return [each, np.zeros(())]
    total = scale.sum()
    return [each.sum() / total if reduction == "mean" else each.sum(), total]


def nll_loss(*args: Any) -> Any:
    return nll(*args)[0]


def nll_backward_samples(dtype: str) -> list[Sample]:
    logp, classes = array(dtype, (3, 4), 1, "small"), whole([1, -100, 0])
    weight, one = array(dtype, (4,), 2, "positive"), array(dtype, (), 3, "positive")
    total = given(weight.values.astype(np.float64)[[1, 0]].sum(), dtype)
    line, third = array(dtype, (4,), 6, "small"), given(weight.values[2], dtype)
    return [
        Sample(one, logp, classes, weight, "mean", -100, total),
        Sample(one, logp, classes, None, "sum", -100, total),
        Sample(array(dtype, (3,), 5), logp, classes, weight, "none", -100, total),
        Sample(one, line, whole(2), weight, "mean", -100, third),
    ]


def nll_backward(
    grad: Any,
    logp: Any,
    target: Any,
    weight: Any,
    reduction: str,
    ignored: int,
    total: Any,
) -> Any:
    found = np.zeros_like(np.atleast_2d(logp))
    for row, label in enumerate(np.atleast_1d(target)):
        if label != ignored:
            scale = 1.0 if weight is None else weight[label]
            scale = scale / total if reduction == "mean" else scale
            found[row, label] = -scale * (grad[row] if grad.ndim else grad)
    return found.reshape(logp.shape)


def entropy_samples(dtype: str) -> list[Sample]:
    x, weight = array(dtype, (3, 4), 1), array(dtype, (4,), 2, "positive")
    return [
        Sample(x, whole([1, 3, 0])),
        Sample(x, whole([1, -100, 0]), weight, "mean"),
        Sample(x, whole([1, 2, 0]), weight, "sum", -100, 0.25),
        Sample(x, whole([1, 2, 0]), None, "none"),
        Sample(x, array(dtype, (3, 4), 5, "positive")),
        Sample(x, array(dtype, (3, 4), 5, "positive"), weight, "sum", -100, 0.1),
        Sample(array(dtype, (2, 3, 2), 1), whole([[1, 0], [2, 1]])),
        Sample(array(dtype, (4,), 1), whole(2)),
        *(
            Sample(x, target, each, reduction, 3, smoothing)
            for target in (whole([1, 3, 0]), array(dtype, (3, 4), 5, "positive"))
            for each in (None, weight)
            for reduction in REDUCTIONS
            for smoothing in (0.0, 0.25)
        ),
        Sample(array(dtype, (2, 3, 2), 1), array(dtype, (2, 3, 2), 5, "positive")),
    ]


def entropy(
    x: Any, target: Any, weight: Any = None, reduction: str = "mean",
    ignored: int = -100,
    smoothing: float = 0.0,
) -> Any:  # fmt: skip
    dim = 0 if x.ndim == 1 else 1
    count = x.shape[dim]
    logp = np.moveaxis(sp.log_softmax(x, dim), dim, -1)
    scale = np.ones(count) if weight is None else weight
    if target.dtype.kind == "f":
        wanted = np.moveaxis(target, dim, -1) * (1 - smoothing) + smoothing / count
        each = -(wanted * logp * scale).sum(-1)
        total = each.size
    else:
        kept = target != ignored
        safe = np.where(kept, target, 0)
        hit = -np.take_along_axis(logp, safe[..., None], -1)[..., 0] * scale[safe]
        smooth = -(logp * scale).sum(-1)
        each = kept * (hit * (1 - smoothing) + smooth * smoothing / count)
        total = (kept * scale[safe]).sum()
    if reduction == "none":
        return each
    return each.sum() / total if reduction == "mean" else each.sum()


def embedding_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (5, 3), 1), whole([[1, 0], [4, 4]])),
        Sample(array(dtype, (5, 3), 1, layout="transposed"), whole([2, 1, 2]), 2),
        Sample(array(dtype, (5, 3), 1), whole(3)),
        Sample(array(dtype, (5, 3), 1), whole(np.zeros((0, 2)))),
        Sample(array(dtype, (5, 3), 1), whole([1, 0], "int32")),
    ]


def embedding_backward(grad: Any, indices: Any, count: int, padding: int) -> Any:
    found = np.zeros((count, grad.shape[-1]))
    for place in np.ndindex(indices.shape):
        if indices[place] != padding:
            found[indices[place]] += grad[place]
    return found


def embedding_backward_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (2, 2, 3), 1), whole([[1, 0], [4, 1]]), 5, -1),
        Sample(array(dtype, (3, 2), 1, layout="transposed"), whole([2, 1, 2]), 3, 1),
        Sample(array(dtype, (0, 2), 1), whole([]), 3, -1),
    ]


NETWORKS = (
    OpInfo(name="matmul", dtypes=PRODUCTS, reference=np.matmul, torch=by_name("matmul"),
           samples=product_samples(((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)),
                                   ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)),
                                   ((2, 3, 4), (4,)), ((0, 4), (4, 2)),
                                   ((3, 0), (0, 2)), ((4,), (2, 4, 3)),
                                   ((3, 4), (2, 4, 3)), ((1, 3, 4), (2, 4, 2)),
                                   ((0, 3, 4), (4, 2))),
           loose=20.0),
    OpInfo(name="mm", dtypes=PRODUCTS, reference=np.matmul, torch=by_name("mm"),
           samples=product_samples(((3, 4), (4, 2)), ((0, 4), (4, 2)), ((3, 0), (0, 2)),
                                   ((1, 1), (1, 1))), loose=20.0),
    OpInfo(name="bmm", dtypes=PRODUCTS, reference=np.matmul, torch=by_name("bmm"),
           samples=product_samples(((2, 3, 4), (2, 4, 2)), ((0, 3, 4), (0, 4, 2)),
                                   ((2, 3, 0), (2, 0, 2))), loose=20.0),
    OpInfo(name="dot", dtypes=PRODUCTS, reference=np.dot, torch=by_name("dot"),
           samples=product_samples(((5,), (5,)), ((0,), (0,))), loose=20.0),
    OpInfo(name="linear", dtypes=NUMBERS, reference=linear, loose=20.0,
           torch=lambda torch: torch.nn.functional.linear,
           samples=product_samples(((3, 4), (2, 4)), ((3, 4), (2, 4), (2,)),
                                   ((2, 3, 4), (2, 4), (2,)), ((4,), (2, 4)),
                                   ((0, 4), (2, 4), (2,)), ((3, 0), (2, 0), (2,)))),
    OpInfo(name="native_layer_norm", dtypes=REALS, reference=native_norm,
           samples=norm_samples, torch=by_name("native_layer_norm"), kind="free",
           loose=10.0),
    OpInfo(name="layer_norm", dtypes=REALS, reference=norm, samples=norm_samples,
           torch=lambda torch: torch.nn.functional.layer_norm, loose=10.0),
    OpInfo(name="native_layer_norm_backward", dtypes=("float32", "float64"),
           reference=norm_backward, samples=norm_backward_samples, loose=30.0,
           torch=aten("native_layer_norm_backward"), gradient=False),
    OpInfo(name="nll_loss_forward", dtypes=REALS, reference=nll, samples=loss_samples,
           torch=lambda torch: _loss_forward(torch), loose=4.0),
    OpInfo(name="nll_loss", dtypes=REALS, reference=nll_loss, samples=loss_samples,
           torch=lambda torch: _loss(torch), loose=4.0),
    OpInfo(name="nll_loss_backward", dtypes=REALS, reference=nll_backward, loose=4.0,
           samples=nll_backward_samples, torch=lambda torch: _loss_backward(torch)),
    OpInfo(name="cross_entropy", dtypes=REALS, reference=entropy, loose=8.0,
           samples=entropy_samples, torch=lambda torch: _entropy(torch)),
    OpInfo(name="embedding", dtypes=ALL, reference=lambda w, i, padding=-1: w[i],
           samples=embedding_samples, torch=by_name("embedding"), smooth=lambda: [
               Sample(array("float64", (5, 3), 1), whole([[1, 0], [4, 4]]))],
           torch_lacks=("complex128",)),
    OpInfo(name="embedding_backward", dtypes=REALS, reference=embedding_backward,
           samples=embedding_backward_samples,
           torch=lambda torch: _embedding_backward(torch)),
)  # fmt: skip


def _loss_forward(torch: Any) -> Callable[..., Any]:
    codes = {"none": 0, "mean": 1, "sum": 2}

    def run(
        x: Any, t: Any, w: Any = None, how: str = "mean", ignored: int = -100
    ) -> Any:
        four = x.ndim == 4
        name = "nll_loss2d_forward" if four else "nll_loss_forward"
        return getattr(torch.ops.aten, name)(x, t, w, codes[how], ignored)

    return run


def _loss(torch: Any) -> Callable[..., Any]:
    def run(
        x: Any,
        target: Any,
        weight: Any = None,
        reduction: str = "mean",
        ignored: int = -100,
    ) -> Any:
        return torch.nn.functional.nll_loss(
            x, target, weight, reduction=reduction, ignore_index=ignored
        )

    return run


def _loss_backward(torch: Any) -> Callable[..., Any]:
    codes = {"none": 0, "mean": 1, "sum": 2}

    def run(g: Any, x: Any, t: Any, w: Any, how: str, ignored: int, total: Any) -> Any:
        return torch.ops.aten.nll_loss_backward(g, x, t, w, codes[how], ignored, total)

    return run


def _entropy(torch: Any) -> Callable[..., Any]:
    def run(
        x: Any, target: Any, weight: Any = None, reduction: str = "mean",
        ignored: int = -100, smoothing: float = 0.0,
    ) -> Any:  # fmt: skip
        return torch.nn.functional.cross_entropy(
            x, target, weight, reduction=reduction, ignore_index=ignored,
            label_smoothing=smoothing,
        )  # fmt: skip

    return run


def _embedding_backward(torch: Any) -> Callable[..., Any]:
    def run(grad: Any, indices: Any, count: int, padding: int) -> Any:
        function = torch.ops.aten.embedding_dense_backward
        return function(grad, indices, count, padding, False)

    return run


ROWS = NETWORKS
