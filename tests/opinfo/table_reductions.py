"""The rows of reductions, and of what runs along one dimension."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as sp

from tests.opinfo.info import Array, D, OpInfo, Sample
from tests.opinfo.samples import (
    ALL,
    COMPLEXES,
    INTEGERS,
    NUMBERS,
    ORDERED,
    REALS,
    array,
    given,
    is_real,
    two_arrays,
)
from tests.opinfo.table_pointwise import by_name


def axes(dim: Any) -> Any:
    """The axes that NumPy takes for `dim`."""
    return None if dim is None or dim == [] else tuple(np.atleast_1d(dim))


def reduction_samples(
    kind: str = "any", *, several: bool = True, empty: bool = True, edges: bool = True
) -> Callable[[str], list[Sample]]:
    def samples(dtype: str) -> list[Sample]:
        x = array(dtype, (2, 3, 4), 1, kind)
        found = [
            Sample(x),
            Sample(x, [1]),
            Sample(x, [-1], True),
            Sample(array(dtype, (3, 4), 2, kind, "transposed"), [0]),
            Sample(array(dtype, (3, 5), 3, kind, "sliced"), [1]),
            Sample(array(dtype, (3, 5), 3, kind, "expanded")),
            Sample(array(dtype, (), 4, kind)),
            Sample(array(dtype, (), 4, kind), [0], True),
            Sample(array(dtype, (5, 0), 4, kind), [0]),
            Sample(array(dtype, (131,), 5, kind, "offset")),
        ]
        if several:
            found += [Sample(x, [0, 2]), Sample(x, [2, 0], True), Sample(x, [])]
        if empty:
            found += [Sample(array(dtype, (0,))), Sample(array(dtype, (2, 0)), [1])]
        if edges and is_real(dtype):
            rows = [[1.0, np.nan, 2.0], [np.inf, 1.0, -np.inf], [np.inf, 2.0, 0.0]]
            found.append(Sample(given(rows, dtype), [1]))
        return found

    return samples


def reduced(function: Any) -> Callable[..., Any]:
    """The reference of `function(x, dim, keepdim)`."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False, **more: Any) -> Any:
        if not x.ndim:
            x = x.reshape(1)
            dim, keepdim = None, False
            return np.asarray(function(x, axis=None, keepdims=False, **more))
        return function(x, axis=axes(dim), keepdims=keepdim, **more)

    return reference


def spread(function: Any) -> Callable[..., Any]:
    """The reference of `var` and `std`."""

    def reference(
        x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
    ) -> Any:
        x = x.reshape(1) if not x.ndim else x
        ddof = 1 if correction is None else correction
        count = (
            x.size if axes(dim) is None else np.prod([x.shape[d] for d in axes(dim)])
        )
        square = function is np.std
        total = np.var(x, axis=axes(dim), keepdims=keepdim) * count
        found = total / max(count - ddof, 0)
        return np.sqrt(found) if square else found

    return reference


def spread_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1)
    return [
        Sample(x),
        Sample(x, [1]),
        Sample(x, [0], correction=0, keepdim=True),
        Sample(array(dtype, (3, 4), 2, layout="transposed"), [0, 1], correction=2),
        Sample(array(dtype, (2, 5), 2, layout="sliced"), [-1], correction=1.5),
        Sample(array(dtype, (2, 3, 2), 3), [0, 2]),
        Sample(array(dtype, (3, 0), 3), [0]),
        Sample(array(dtype, (97,), 3)),
    ]


def typed_samples(plain: Callable[[str], list[Sample]]) -> Any:
    """Samples in another dtype than they come in."""

    def samples(dtype: str) -> list[Sample]:
        first = plain(dtype)[0]
        wanted = "complex128" if dtype in COMPLEXES else "float64"
        return [Sample(*first.args, dtype=D(wanted), **first.kwargs)]

    return samples


def ignoring_dtype(reference: Any) -> Callable[..., Any]:
    def run(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        x, *more = args
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        return reference(x.astype(wide), *more, **kwargs)

    return run


def whole_sum(x: Any, **more: Any) -> Any:
    return np.sum(x, dtype=np.int64 if x.dtype.kind in "bui" else None, **more)


def whole_product(x: Any, **more: Any) -> Any:
    return np.prod(x, dtype=np.int64 if x.dtype.kind in "bui" else None, **more)


def running_sum(x: Any, dim: int) -> Any:
    wide = np.int64 if x.dtype.kind in "bui" else None
    return np.cumsum(x, axis=dim, dtype=wide) if x.ndim else x.astype(wide or x.dtype)


def extreme(name: str) -> Callable[[Any], Callable[..., Any]]:
    """`amax` and `amin` of torch, which take several dimensions as ours."""

    def find(torch: Any) -> Callable[..., Any]:
        function = getattr(torch, name)

        def run(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
            return function(x, dim=() if dim is None else dim, keepdim=keepdim)

        return run

    return find


def any_dims(name: str) -> Callable[[Any], Callable[..., Any]]:
    """`any` and `all` of torch."""

    def find(torch: Any) -> Callable[..., Any]:
        function = getattr(torch, name)

        def run(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
            if dim is None or dim == []:
                return function(x)
            return function(x, dim=tuple(dim), keepdim=keepdim)

        return run

    return find


def position_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "distinct")
    found = [
        Sample(x),
        Sample(x, 1),
        Sample(x, -2, True),
        Sample(array(dtype, (3, 4), 2, "distinct", "transposed"), 0),
        Sample(array(dtype, (3, 5), 2, "distinct", "sliced")),
        Sample(array(dtype, (), 1)),
        Sample(array(dtype, (), 1), 0),
        Sample(array(dtype, (3, 0), 1), 0),
        Sample(given([2, 1, 2, 1], dtype)),
    ]
    if is_real(dtype):
        rows = [[1.0, np.nan, 2.0], [np.nan, 1.0, np.nan]]
        found += [Sample(given(rows, dtype), 1), Sample(given(rows, dtype))]
    return found


def whole_samples(dtype: str) -> list[Sample]:
    """Samples of what reduces all elements."""
    found = reduction_samples("distinct", empty=False)(dtype)
    return [Sample(s.args[0]) for s in found if s.args[0].values.size]


def pairs_samples(dtype: str) -> list[Sample]:
    """Samples of two arrays, and none of an array and a number."""
    return [s for s in two_arrays()(dtype) if isinstance(s.args[1], Array)]


def along_samples(dtype: str) -> list[Sample]:
    """Samples of extremes along one dimension and of their places."""
    found = [s for s in position_samples(dtype) if len(s.args) > 1]
    x = array(dtype, (2, 3, 4), 1, "distinct")
    return [
        *found,
        *(Sample(x, dim, keep) for dim in (0, 1, -1) for keep in (False, True)),
        # Equal ones: the first of them.
        Sample(given([[2, 1, 2], [1, 1, 1]], dtype), 1),
        Sample(array(dtype, (2, 131), 3, "distinct", "transposed"), 0),
    ]


def along_smooth() -> list[Sample]:
    """Samples without equal elements."""
    return [Sample(array("float64", (2, 3), 1, "distinct"), 1),
            Sample(array("float64", (2, 3), 1, "distinct"), 0, True)]  # fmt: skip


def along(function: Any) -> Callable[..., Any]:
    """The reference of `max` and `min` of one dimension: values, and places."""

    def reference(x: Any, dim: int, keepdim: bool = False) -> Any:
        if not x.ndim:
            return x, np.zeros((), np.int64)
        places = function(x, axis=dim, keepdims=True)
        values = np.take_along_axis(x, places, dim)
        both = values, places
        return both if keepdim else tuple(np.squeeze(each, dim) for each in both)

    return reference


def apart() -> list[Sample]:
    """Two arrays without equal elements."""
    return [Sample(array("float64", (2, 3), 1, "distinct"),
                   given([[0.1, 0.2, -0.1], [0.3, 2.0, -3.0]], "float64"))]  # fmt: skip


def position(function: Any) -> Callable[..., Any]:
    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return function(
            x, axis=dim if x.ndim else None, keepdims=keepdim and x.ndim > 0
        )

    return reference


def running_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (3, 4), 1), 1),
        Sample(array(dtype, (3, 4), 1), 0),
        Sample(array(dtype, (3, 4), 2, layout="transposed"), -1),
        Sample(array(dtype, (2, 3, 2), 2, layout="sliced"), 1),
        Sample(array(dtype, (), 2), 0),
        Sample(array(dtype, (2, 0), 2), 1),
    ]


def soft_samples(dtype: str) -> list[Sample]:
    found = [
        Sample(array(dtype, (3, 4), 1), 1),
        Sample(array(dtype, (3, 4), 1), 0),
        Sample(array(dtype, (3, 4), 2, layout="transposed"), -1),
        Sample(array(dtype, (2, 3, 5), 2, layout="sliced"), 1),
        Sample(array(dtype, (3, 4), 2, layout="expanded"), 1),
        Sample(array(dtype, (), 2), 0),
        Sample(array(dtype, (0, 3), 2), 1),
        Sample(array(dtype, (2, 67), 2), 1),
    ]
    if not is_real(dtype):
        return found
    rows = [[np.inf, 1.0, 2.0], [-np.inf, 1.0, 0.0], [np.nan, 1.0, 0.0]]
    far = [[60000.0, 0.0, 59999.0], [-60000.0, 1.0, 2.0], [-np.inf] * 3]
    return [*found, Sample(given(rows, dtype), 1), Sample(given(far, dtype), 1)]


def softmax(x: Any, dim: int) -> Any:
    return sp.softmax(x, axis=dim) if x.ndim else np.ones(())


def log_softmax(x: Any, dim: int) -> Any:
    if not x.ndim or not x.size:
        return np.zeros(x.shape)
    shifted = x - np.max(x, axis=dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def soft_backward_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (3, 4), 1), array(dtype, (3, 4), 2, "small"), 1),
        Sample(array(dtype, (3, 4), 1, layout="transposed"),
               array(dtype, (3, 4), 2, "small", "sliced"), 0),
        Sample(array(dtype, (), 1), array(dtype, (), 2, "small"), 0),
        Sample(array(dtype, (0, 2), 1), array(dtype, (0, 2), 2), 1),
    ]  # fmt: skip


def softmax_backward(grad: Any, result: Any, dim: int) -> Any:
    dim = dim if grad.ndim else 0
    grad_, result_ = np.atleast_1d(grad), np.atleast_1d(result)
    found = result_ * (grad_ - np.sum(grad_ * result_, axis=dim, keepdims=True))
    return found.reshape(grad.shape)


def log_softmax_backward(grad: Any, result: Any, dim: int) -> Any:
    grad_, result_ = np.atleast_1d(grad), np.atleast_1d(result)
    found = grad_ - np.exp(result_) * np.sum(grad_, axis=dim, keepdims=True)
    return found.reshape(grad.shape)


def soft_backward(name: str) -> Callable[[Any], Callable[..., Any]]:
    def find(torch: Any) -> Callable[..., Any]:
        function = getattr(torch.ops.aten, name)

        def run(grad: Any, result: Any, dim: int) -> Any:
            return function(grad, result, dim, grad.dtype)

        return run

    return find


FLOATING = (*REALS, *COMPLEXES)
# uint8 stays what it is, as in torch: a truth of long ago.
TRUTHS = tuple(name for name in ALL if name != "uint8")
SUM = reduction_samples()
PRODUCT = reduction_samples("small", several=False)
ROWS = (
    OpInfo(name="sum", samples=SUM, reference=reduced(whole_sum), dtypes=ALL,
           kind="wide", torch=by_name("sum"), loose=4.0),
    OpInfo(name="mean", samples=SUM, reference=reduced(np.mean), dtypes=FLOATING,
           torch=by_name("mean"), loose=4.0),
    OpInfo(name="prod", samples=PRODUCT, reference=reduced(whole_product), dtypes=ALL,
           kind="wide", loose=10.0, torch=lambda torch: _product(torch),
           smooth=lambda: [Sample(array("float64", (2, 3), 1, "nonzero")),
                           Sample(array("float64", (2, 3), 1, "nonzero"), [1])]),
    OpInfo(name="var", samples=spread_samples, reference=spread(np.var),
           dtypes=FLOATING, kind="real", torch=by_name("var"), loose=10.0),
    OpInfo(name="std", samples=spread_samples, reference=spread(np.std),
           dtypes=FLOATING, kind="real", torch=by_name("std"), loose=10.0),
    OpInfo(name="amax", samples=reduction_samples("distinct", empty=False),
           reference=reduced(np.max), dtypes=ORDERED, torch=extreme("amax")),
    OpInfo(name="amin", samples=reduction_samples("distinct", empty=False),
           reference=reduced(np.min), dtypes=ORDERED, torch=extreme("amin")),
    OpInfo(name="max", samples=whole_samples, reference=np.max, dtypes=ORDERED,
           torch=by_name("max")),
    OpInfo(name="min", samples=whole_samples, reference=np.min, dtypes=ORDERED,
           torch=by_name("min")),
    OpInfo(name="max.dim", samples=along_samples, reference=along(np.argmax),
           dtypes=ORDERED, kind="free", torch=by_name("max"), smooth=along_smooth),
    OpInfo(name="min.dim", samples=along_samples, reference=along(np.argmin),
           dtypes=ORDERED, kind="free", torch=by_name("min"), smooth=along_smooth),
    OpInfo(name="max.other", samples=pairs_samples, reference=np.maximum,
           dtypes=ORDERED, torch=by_name("max"), smooth=apart),
    OpInfo(name="min.other", samples=pairs_samples, reference=np.minimum,
           dtypes=ORDERED, torch=by_name("min"), smooth=apart),
    OpInfo(name="any", samples=SUM, reference=reduced(np.any), dtypes=TRUTHS,
           kind="bool",
           gradient=False, torch=any_dims("any")),
    OpInfo(name="all", samples=SUM, reference=reduced(np.all), dtypes=TRUTHS,
           kind="bool",
           gradient=False, torch=any_dims("all")),
    OpInfo(name="argmax", samples=position_samples, reference=position(np.argmax),
           dtypes=(*INTEGERS, *REALS), kind="int64", gradient=False,
           torch=by_name("argmax")),
    OpInfo(name="argmin", samples=position_samples, reference=position(np.argmin),
           dtypes=(*INTEGERS, *REALS), kind="int64", gradient=False,
           torch=by_name("argmin")),
    OpInfo(name="cumsum", samples=running_samples, reference=running_sum, dtypes=ALL,
           kind="wide", torch=by_name("cumsum"), loose=4.0),
    OpInfo(name="softmax", samples=soft_samples, reference=softmax, dtypes=REALS,
           torch=by_name("softmax"), loose=3.0),
    OpInfo(name="log_softmax", samples=soft_samples, reference=log_softmax,
           dtypes=REALS, torch=by_name("log_softmax"), loose=3.0),
    OpInfo(name="softmax_backward", samples=soft_backward_samples, dtypes=REALS,
           reference=softmax_backward, torch=soft_backward("_softmax_backward_data"),
           loose=4.0),
    OpInfo(name="log_softmax_backward", samples=soft_backward_samples, dtypes=REALS,
           reference=log_softmax_backward, loose=4.0,
           torch=soft_backward("_log_softmax_backward_data")),
)  # fmt: skip


def _product(torch: Any) -> Callable[..., Any]:
    def run(x: Any, dim: Any = None, keepdim: bool = False, **more: Any) -> Any:
        if dim is None:
            return torch.prod(x, **more)
        return torch.prod(x, dim[0], keepdim, **more)

    return run


BY_NAME = {row.name: row for row in ROWS}
# The same operators, asked for another dtype.
VARIANTS = tuple(
    OpInfo(name=name, samples=typed_samples(row.samples), dtypes=dtypes, kind="free",
           reference=ignoring_dtype(row.reference), torch=row.torch)
    for name, dtypes in (
        ("sum", NUMBERS), ("mean", NUMBERS), ("prod", NUMBERS), ("cumsum", NUMBERS),
        ("softmax", (*INTEGERS, *REALS)), ("log_softmax", (*INTEGERS, *REALS)),
    )
    for row in [BY_NAME[name]]
) + tuple(
    OpInfo(name=name, samples=SUM, reference=reduced(function), dtypes=("uint8",),
           kind="uint8", gradient=False, torch=any_dims(name))
    for name, function in (("any", np.any), ("all", np.all))
)  # fmt: skip
