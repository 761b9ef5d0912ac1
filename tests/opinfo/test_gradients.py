"""Every differentiable operator against finite differences; the others say so."""

from typing import Any

import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.autograd import gradcheck, gradgradcheck
from tests.opinfo.info import Array, OpInfo, Sample, listed, on_cpu
from tests.opinfo.table import ROWS

DIFFERENTIABLE = [row for row in ROWS if row.gradient and "float64" in row.dtypes]
# Samples beyond these are as good as those before, and cost.
MOST_SAMPLES, MOST_ELEMENTS = 4, 60
# Kinks or equal elements lie on the sample: finite differences do not see the slope.
COMPLEX = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos", "tanh", "sqrt",
           "neg", "reciprocal", "square", "sigmoid", "abs", "conj", "sum", "mean",
           "mm", "bmm", "linear", "matmul", "index_select", "cat", "cumsum", "prod",
           "transpose", "where", "expm1", "log1p", "silu", "var", "std",
           "silu_backward", "sigmoid_backward", "tanh_backward")  # fmt: skip


def points(sample: Sample) -> list[Array]:
    return [a for a in sample.arrays() if a.values.dtype.kind in "fc"]


def usable(row: OpInfo, dtype: str = "float64") -> list[Sample]:
    """The samples that finite differences can judge."""
    if row.smooth is not None and dtype == "float64":
        return row.smooth()
    kept = []
    for sample in row.samples(dtype):
        arrays = points(sample)
        finite = all(abs(a.values).sum() < 1e6 for a in arrays)
        small = 0 < sum(a.values.size for a in arrays) <= MOST_ELEMENTS
        whole = all(a.values.size and a.layout != "expanded" for a in arrays)
        if finite and small and whole:
            kept.append(sample)
    return kept


def judged(row: OpInfo, sample: Sample) -> tuple[Any, list[Tensor]]:
    """The operator as a function of its floating-point tensors alone."""
    arrays = [*sample.arrays()]
    # Class probabilities, weights and totals of losses have no gradient here.
    fixed = FIXED.get(row.name, lambda at: False)
    chosen = [
        at
        for at, a in enumerate(arrays)
        if a.values.dtype.kind in "fc" and not fixed(at)
    ]
    leaves = [arrays[at].tensor().requires_grad_() for at in chosen]
    place = dict(zip(chosen, range(len(chosen)), strict=True))

    def function(*given: Tensor) -> Any:
        turn = -1

        def turned(value: Any) -> Any:
            nonlocal turn
            if not isinstance(value, Array):
                return on_cpu(value)
            turn += 1
            return given[place[turn]] if turn in place else value.tensor()

        args, kwargs = sample.bound(turned)
        results = [
            each for each in listed(row.call(*args, **kwargs)) if each is not None
        ]
        return tuple(each for each in results if each.dtype.is_floating
                     or each.dtype.is_complex)  # fmt: skip

    # Saved statistics, indices and masks are results without a gradient.
    wanted = [each.requires_grad for each in function(*leaves)]

    def differentiable(*given: Tensor) -> Any:
        results = function(*given)
        return tuple(r for r, kept in zip(results, wanted, strict=True) if kept)

    return differentiable, leaves


# Row -> which arrays of a sample take no gradient: weights, totals, saved statistics.
FIXED: dict[str, Any] = {
    # At the end of a line, a fraction can move in one direction only.
    "quantile": lambda at: at == 1,
    "nll_loss": lambda at: at > 0,
    "nll_loss_forward": lambda at: at > 0,
    "nll_loss_backward": lambda at: at > 0,
    "cross_entropy": lambda at: at > 1,
    "relu_backward": lambda at: at > 0,
    "softmax_backward": lambda at: False,
    # What ran is no input of a loss.
    "batch_norm": lambda at: at in (1, 2),
}
# These are linear or constant, or their second gradient is of no use.
ONCE = ("native_layer_norm", "conv2d_backward", "max_pool2d_with_indices_backward",
        "gelu_backward",
        "silu_backward", "nll_loss_backward", "relu_backward", "nll_loss_forward",
        "sigmoid_backward", "tanh_backward", "softmax_backward", "std", "sqrt",
        "log_softmax_backward", "embedding_backward")  # fmt: skip


def cost(sample: Sample) -> int:
    """How many elements are to be moved."""
    return sum(int(a.values.size) for a in points(sample))


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=repr)
def test_gradients(row: OpInfo) -> None:
    samples = usable(row)
    assert samples, "no sample to differentiate at"
    for sample in samples[:MOST_SAMPLES]:
        function, leaves = judged(row, sample)
        try:
            assert gradcheck(function, leaves)
        except Exception as error:
            raise AssertionError(f"{row.name}({sample}): {error!r} {error}") from error


@pytest.mark.parametrize(
    "row", [row for row in DIFFERENTIABLE if row.name not in ONCE], ids=repr
)
def test_gradients_of_gradients(row: OpInfo) -> None:
    samples = [s for s in usable(row) if all(a.values.size > 1 for a in points(s))]
    sample = min(samples or usable(row), key=cost)
    function, leaves = judged(row, sample)
    first = listed(function(*leaves))
    if not any(each.requires_grad for each in first):
        return
    try:
        assert gradgradcheck(function, leaves)
    except Exception as error:
        raise AssertionError(f"{row.name}({sample}): {error!r} {error}") from error


@pytest.mark.parametrize("name", COMPLEX)
def test_gradients_of_complex_numbers(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    for sample in usable(row, "complex128")[:2]:
        function, leaves = judged(row, sample)
        try:
            assert gradcheck(function, leaves)
        except Exception as error:
            raise AssertionError(f"{row.name}({sample}): {error!r} {error}") from error


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if not row.gradient and "float32" in row.dtypes],
    ids=repr,
)
def test_results_without_a_gradient(row: OpInfo) -> None:
    """They do not require grad; or running backwards names the operator."""
    args, kwargs = row.samples("float32")[0].bound(
        lambda v: (
            v.tensor().requires_grad_()
            if isinstance(v, Array) and v.values.dtype.kind == "f"
            else on_cpu(v)
        )
    )
    if row.name.partition(".")[0].endswith("_"):
        args[0] = args[0].detach()
    # Of `_unique` the number of results changes:
    # `tests/operators/bindings/test_functions.py`.
    if row.name in ("native_dropout", "dropout", "copy_", "bernoulli", "_unique"):
        return
    # It has one, of its second argument: `tests/operators/test_copying.py`.
    if row.name == "fill_.Tensor":
        return
    if row.name.startswith("linalg_") or row.name in ("det", "inverse"):
        # They have one, of regular matrices: `tests/autograd/test_linalg.py`.
        return
    for result in listed(row.call(*args, **kwargs)):
        if not isinstance(result, Tensor) or not result.requires_grad:
            continue
        with pytest.raises(Exception, match=row.name):
            result.sum().backward()
