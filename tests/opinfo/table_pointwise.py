"""The rows of operators that work element by element."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as sp

from tests.opinfo.info import OpInfo, Sample
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
    one_array,
    special,
    truth,
    two_arrays,
)


def by_name(name: str) -> Callable[[Any], Callable[..., Any]]:
    """The function of torch of this name."""

    def find(torch: Any) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(torch, name)
        return found

    return find


def aten(name: str) -> Callable[[Any], Callable[..., Any]]:
    """The operator of torch of this name."""

    def find(torch: Any) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(torch.ops.aten, name)
        return found

    return find


def gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
    return x * (1 + sp.erf(x / np.sqrt(2))) / 2


def gelu_slope(x: Any, approximate: str) -> Any:
    if approximate == "tanh":
        inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
        rise = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
        return (1 + np.tanh(inner)) / 2 + x * rise / np.cosh(inner) ** 2 / 2
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    return (1 + sp.erf(x / np.sqrt(2))) / 2 + x * density


def relu(x: Any) -> Any:
    return np.where(np.isnan(x), x, np.maximum(x, 0)).astype(x.dtype)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def unary(
    name: str,
    reference: Callable[..., Any],
    dtypes: tuple[str, ...],
    kind: str = "same",
    values: str = "any",
    **more: Any,
) -> OpInfo:
    more.setdefault("torch", by_name(name))
    more.setdefault("samples", one_array(values))
    return OpInfo(name=name, reference=reference, dtypes=dtypes, kind=kind, **more)


def _between_ones() -> list[Sample]:
    return [Sample(given([-0.75, -0.25, 0.125, 0.5], "float64"))]


def _above_one() -> list[Sample]:
    return [Sample(given([1.25, 1.5, 2.0, 3.5], "float64"))]


FLOATING = (*REALS, *COMPLEXES)
UNARY = (
    unary("neg", np.negative, NUMBERS),
    unary("abs", np.abs, NUMBERS, "real"),
    unary(
        "sign",
        lambda x: x if x.dtype == bool else np.sign(x),
        ORDERED,
        values="nonzero",
        samples=one_array("nonzero", edges=False),
    ),
    unary("exp", np.exp, ALL, "floating"),
    unary("expm1", np.expm1, ALL, "floating"),
    unary("log", np.log, ALL, "floating", "positive"),
    unary("log1p", np.log1p, ALL, "floating", "positive"),
    unary("log2", np.log2, ALL, "floating", "positive"),
    unary("log10", np.log10, ALL, "floating", "positive"),
    unary("sqrt", np.sqrt, ALL, "floating", "positive"),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), ALL, "floating", "positive"),
    unary("sin", np.sin, ALL, "floating"),
    unary("cos", np.cos, ALL, "floating"),
    unary("tan", np.tan, ALL, "floating", "small", loose=4.0),
    unary("tanh", np.tanh, ALL, "floating", loose=2.0),
    unary("sigmoid", sigmoid, ALL, "floating", loose=2.0),
    unary("relu", relu, (*INTEGERS, *REALS), values="nonzero"),
    unary(
        "silu",
        lambda x: x * sigmoid(x),
        FLOATING,
        torch=lambda torch: torch.nn.functional.silu,
        torch_lacks=("complex128",),
    ),
    unary("sinh", np.sinh, ALL, "floating", "small", loose=2.0),
    unary("cosh", np.cosh, ALL, "floating", "small", loose=2.0),
    unary("asin", np.arcsin, ALL, "floating", "small", smooth=_between_ones),
    unary("acos", np.arccos, ALL, "floating", "small", smooth=_between_ones),
    unary("atan", np.arctan, ALL, "floating"),
    unary("asinh", np.arcsinh, ALL, "floating"),
    unary("acosh", np.arccosh, ALL, "floating", "positive", smooth=_above_one),
    unary("atanh", np.arctanh, ALL, "floating", "small", smooth=_between_ones),
    unary("erf", sp.erf, ORDERED, "floating"),
    unary("erfc", sp.erfc, ORDERED, "floating", loose=4.0),
    unary("reciprocal", np.reciprocal, ALL, "floating", "nonzero"),
    unary("square", np.square, NUMBERS),
    unary("floor", np.floor, (*INTEGERS, *REALS), values="distinct"),
    unary("ceil", np.ceil, (*INTEGERS, *REALS), values="distinct"),
    unary(
        "round",
        np.round,
        (*INTEGERS, *REALS),
        smooth=lambda: [Sample(given([-1.25, -0.75, 0.25, 1.3125], "float64"))],
    ),
    unary("trunc", np.trunc, (*INTEGERS, *REALS), values="distinct"),
    unary("logical_not", np.logical_not, ALL, "bool", gradient=False),
    unary("bitwise_not", np.invert, ("bool", *INTEGERS), gradient=False),
    unary("conj", np.conj, ALL, torch=lambda torch: _conj(torch)),
    unary("isnan", np.isnan, ALL, "bool", gradient=False),
    unary("isinf", np.isinf, ALL, "bool", gradient=False),
    unary("isfinite", np.isfinite, ALL, "bool", gradient=False),
)


def _conj(torch: Any) -> Callable[..., Any]:
    return lambda x: torch.conj(x).resolve_conj()


def gelu_samples(dtype: str) -> list[Sample]:
    plain: list[Sample] = one_array(edges=False)(dtype)
    tanh = Sample(array(dtype, (2, 3), 3), approximate="tanh")
    return [plain[0], tanh, *plain[1:]]


GELU = unary(
    "gelu",
    gelu,
    REALS,
    samples=gelu_samples,
    torch=lambda torch: torch.nn.functional.gelu,
    loose=3.0,
)


def binary(
    name: str,
    reference: Callable[..., Any],
    dtypes: tuple[str, ...],
    kind: str = "same",
    **more: Any,
) -> OpInfo:
    more.setdefault("torch", by_name(name))
    more.setdefault("samples", two_arrays(*more.pop("values", ())))
    return OpInfo(name=name, reference=reference, dtypes=dtypes, kind=kind, **more)


def scaled_samples(dtype: str) -> list[Sample]:
    plain: list[Sample] = two_arrays()(dtype)
    if dtype == "bool":
        return plain
    factor = 2.5 if is_real(dtype) else 2
    a, b = array(dtype, (2, 3), 5), array(dtype, (3,), 6)
    return [*plain, Sample(a, b, alpha=factor), Sample(a, 2, alpha=3)]


def add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    if a.dtype == bool:
        return np.logical_or(a, b)
    return np.add(a, np.multiply(b, alpha, dtype=a.dtype), dtype=a.dtype)


def subtract(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    return np.subtract(a, np.multiply(b, alpha, dtype=a.dtype), dtype=a.dtype)


def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return np.true_divide(a, b)
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    return np.trunc(np.true_divide(a, b)).astype(a.dtype)


def rounded_samples(dtype: str) -> list[Sample]:
    return [
        Sample(
            array(dtype, (3, 4), 1, "distinct"),
            array(dtype, (4,), 2, "nonzero"),
            rounding_mode=mode,
        )
        for mode in ("floor", "trunc")
    ]


def floor_divide(a: Any, b: Any) -> Any:
    return np.floor_divide(a, np.asarray(b, a.dtype) if np.isscalar(b) else b)


def propagating(choose: Any) -> Callable[..., Any]:
    return lambda a, b: choose(a, np.asarray(b, a.dtype) if np.isscalar(b) else b)


def logaddexp(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a):
        return np.log(np.exp(a) + np.exp(b))
    return np.logaddexp(a, b)


def logaddexp2(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a):
        return np.log2(np.exp2(a) + np.exp2(b))
    return np.logaddexp2(a, b)


def power_samples(dtype: str) -> list[Sample]:
    if dtype in INTEGERS:
        a = array(dtype, (3, 4), 1)
        return [
            Sample(a, given([0, 1, 2, 3], dtype)),
            Sample(a, 2),
            Sample(array(dtype, (4,), 2, layout="sliced"), 0),
            Sample(array(dtype, (0,)), 2),
        ]
    found: list[Sample] = two_arrays("positive", "small", edges=True)(dtype)
    base = array(dtype, (2, 3), 4, "positive")
    found += [Sample(base, number) for number in (0, 1, 2, 3, -1, 0.5, -0.5)]
    if is_real(dtype):
        found.append(Sample(special(dtype), 2))
        found.append(Sample(given([-2.0, -1.5, -0.5], dtype), 3))
        found.append(Sample(given([-2.0, -1.5, -0.5], dtype), 0.5))
    return found


def comparison(name: str, dtypes: tuple[str, ...]) -> OpInfo:
    reference = getattr(
        np, {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
             "gt": "greater", "ge": "greater_equal"}[name]
    )  # fmt: skip
    return binary(name, reference, dtypes, "bool", gradient=False)


BINARY = (
    binary("add", add, ALL, samples=scaled_samples),
    binary("sub", subtract, NUMBERS, samples=scaled_samples),
    binary("mul", np.multiply, ALL),
    binary("div", div, ALL, "floating", values=("any", "nonzero")),
    binary("floor_divide", floor_divide, (*INTEGERS, *REALS),
           values=("distinct", "nonzero", False), torch_lacks=("float64",)),
    binary("remainder", np.remainder, (*INTEGERS, *REALS),
           values=("distinct", "nonzero", False)),
    binary("fmod", np.fmod, (*INTEGERS, *REALS),
           values=("distinct", "nonzero", False), kinks=("zeros",)),
    binary("hypot", np.hypot, REALS, values=("nonzero", "nonzero"), kinks=("zeros",)),
    binary("logaddexp", logaddexp, FLOATING),
    binary("logaddexp2", logaddexp2, FLOATING, torch_lacks=("complex128",)),
    binary("pow", np.power, NUMBERS, samples=power_samples, loose=4.0),
    binary("maximum", propagating(np.maximum), ORDERED,
           values=("distinct", "distinct")),
    binary("minimum", propagating(np.minimum), ORDERED,
           values=("distinct", "distinct")),
    binary("atan2", np.arctan2, ORDERED, "floating", values=("any", "nonzero")),
    binary("xlogy", sp.xlogy, ALL, "floating", values=("any", "positive"),
           kinks=("zeros",), torch_lacks=("complex128",)),
    *(comparison(name, ALL) for name in ("eq", "ne")),
    *(comparison(name, ORDERED) for name in ("lt", "le", "gt", "ge")),
    *(
        binary(name, getattr(np, name), ALL, "bool", gradient=False)
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    *(
        binary(name, getattr(np, name), ("bool", *INTEGERS), gradient=False)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
)  # fmt: skip


def where_samples(dtype: str) -> list[Sample]:
    mask = truth([[True, False, True], [False, False, True]])
    return [
        Sample(mask, array(dtype, (2, 3), 1), array(dtype, (2, 3), 2)),
        Sample(truth([[True], [False]]), array(dtype, (3,), 1), array(dtype, (), 2)),
        Sample(
            mask,
            array(dtype, (2, 3), 1, layout="transposed"),
            array(dtype, (2, 3), 2, layout="sliced"),
        ),
        Sample(truth(True), array(dtype, (0, 2)), array(dtype, (1, 2), 1)),
        Sample(truth(False), array(dtype, (), 1), array(dtype, (), 2)),
    ]


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    for bound, choose in ((min, np.maximum), (max, np.minimum)):
        if bound is not None:
            x = choose(x, np.asarray(bound, x.dtype))
    return x


def clamp_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "distinct")
    found = [
        Sample(x, 1, 2),
        Sample(x, min=1),
        Sample(x, max=2),
        Sample(x, 2, 1),
        Sample(array(dtype, (3, 4), 2, "distinct", "transposed"), 0, 3),
        Sample(array(dtype, (0,)), 0, 1),
        Sample(array(dtype, ()), 0, 1),
    ]
    if is_real(dtype):
        found.append(Sample(special(dtype), -1.0, 1.5))
    return found


def clamp_tensor_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (3, 4), 1, "distinct")
    low, high = array(dtype, (4,), 2), array(dtype, (3, 1), 3)
    return [
        Sample(x, low, high),
        Sample(x, min=low),
        Sample(x, None, array(dtype, (3, 4), 3, layout="transposed")),
        Sample(array(dtype, (0, 4)), low),
        Sample(array(dtype, ()), array(dtype, (), 1), array(dtype, (), 2)),
    ]


def filled_samples(dtype: str) -> list[Sample]:
    mask = truth([[True, False, True], [False, False, True]])
    value = True if dtype == "bool" else 3
    return [
        Sample(array(dtype, (2, 3)), mask, value),
        Sample(array(dtype, (2, 3), 1, layout="transposed"), truth([True, False, True]),
               value),
        Sample(array(dtype, (3, 2, 3), 1, layout="sliced"), mask, value),
        Sample(array(dtype, ()), truth(True), value),
        Sample(array(dtype, (0, 3)), truth([True, False, True]), value),
    ]  # fmt: skip


def filled_by_tensors(dtype: str) -> list[Sample]:
    return [
        Sample(*each.args[:2], array(dtype, (), 2)) for each in filled_samples(dtype)
    ]


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, np.asarray(value, x.dtype), x)


TERNARY = (
    OpInfo(name="where", samples=where_samples, reference=np.where, dtypes=ALL,
           torch=by_name("where")),
    OpInfo(name="clamp", samples=clamp_samples, reference=clamp,
           dtypes=(*INTEGERS, *REALS), torch=by_name("clamp")),
    OpInfo(name="clamp.Tensor", samples=clamp_tensor_samples, reference=clamp,
           dtypes=(*INTEGERS, *REALS), torch=by_name("clamp")),
    OpInfo(name="masked_fill", samples=filled_samples, reference=masked_fill,
           dtypes=ALL, torch=by_name("masked_fill")),
    OpInfo(name="masked_fill.Tensor", samples=filled_by_tensors, reference=masked_fill,
           dtypes=ALL, torch=by_name("masked_fill")),
)  # fmt: skip


def backward_samples(dtype: str) -> list[Sample]:
    return [
        Sample(array(dtype, (3, 4), 1), array(dtype, (3, 4), 2, "small")),
        Sample(
            array(dtype, (3, 4), 1, layout="expanded"),
            array(dtype, (3, 4), 2, "small", "transposed"),
        ),
        Sample(array(dtype, (), 1), array(dtype, (), 2, "small")),
        Sample(array(dtype, (0, 2)), array(dtype, (0, 2))),
    ]


def gelu_backward_samples(dtype: str) -> list[Sample]:
    tanh = Sample(
        array(dtype, (4,), 1), array(dtype, (4,), 2, "small"), approximate="tanh"
    )
    return [*backward_samples(dtype), tanh]


def gelu_backward(grad: Any, x: Any, *, approximate: str = "none") -> Any:
    return grad * gelu_slope(x, approximate)


def silu_backward(grad: Any, x: Any) -> Any:
    s = sigmoid(x)
    return grad * np.conj(s * (1 + x * (1 - s)))


BACKWARD = (
    OpInfo(name="relu_backward", samples=backward_samples, dtypes=REALS,
           reference=lambda g, r: np.where(r <= 0, 0, g)),
    OpInfo(name="sigmoid_backward", samples=backward_samples, dtypes=FLOATING,
           reference=lambda g, r: g * np.conj(r * (1 - r)),
           torch=aten("sigmoid_backward")),
    OpInfo(name="tanh_backward", samples=backward_samples, dtypes=FLOATING,
           reference=lambda g, r: g * np.conj(1 - r * r), torch=aten("tanh_backward")),
    OpInfo(name="gelu_backward", samples=gelu_backward_samples, dtypes=REALS,
           reference=gelu_backward, torch=aten("gelu_backward"), loose=4.0),
    # Of complex numbers, torch leaves out the conjugate and refuses the gradient.
    OpInfo(name="silu_backward", samples=backward_samples, dtypes=FLOATING,
           reference=silu_backward, loose=4.0),
)  # fmt: skip

DIV_ROUNDED = binary(
    "div", div, (*INTEGERS, *REALS), samples=rounded_samples, torch=by_name("div")
)

ROWS = (*UNARY, GELU, *BINARY, *TERNARY, *BACKWARD)
# A second row of an operator whose results follow another rule by an option.
VARIANTS = (
    DIV_ROUNDED,
    unary("square", lambda x: x.astype(np.int64), ("bool",), "int64"),
)
