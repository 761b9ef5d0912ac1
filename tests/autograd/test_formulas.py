"""Formulas against finite differences: functions of elements, reductions, products,
networks, movement and views.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everyorder.runtime.autograd as ag
from everyorder.runtime import tensor
from everyorder.runtime.autograd.install import CONSTANT_OPERATORS, FORMULAS
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.errors.autograd import GradcheckFailed
from everyorder.runtime.operators.declare.handles import core, handle_of
from everyorder.runtime.tensors.construction import from_numpy
from tests.autograd.made import complex_, grad_of, points, real, truth, whole
from tests.opinfo.table_pointwise import BINARY as ROWS

Function = Callable[..., Any]

PRODUCTS: dict[str, tuple[Function, list[tuple[int, ...]]]] = {
    "mm": (core.mm, [(2, 3), (3, 2)]),
    "bmm": (core.bmm, [(2, 2, 3), (2, 3, 1)]),
    "dot": (core.dot, [(4,), (4,)]),
    "matmul": (core.matmul, [(2, 1, 2, 3), (3, 2)]),
    "matmul vector": (core.matmul, [(2, 3), (3,)]),
    "linear": (core.linear, [(2, 3), (4, 3), (4,)]),
    "linear batch": (core.linear, [(2, 2, 3), (2, 3), (2,)]),
    "linear vector": (core.linear, [(3,), (2, 3), (2,)]),
    "linear plain": (core.linear, [(2, 3), (2, 3)]),
    "conv2d": (core.conv2d, [(1, 2, 4, 4), (2, 2, 3, 3), (2,)]),
    "conv2d stride": (
        lambda x, w, b: core.conv2d(x, w, b, 2, 1),
        [(1, 1, 5, 4), (2, 1, 3, 3), (2,)],
    ),
    "conv2d groups": (
        lambda x, w: core.conv2d(x, w, None, 1, 1, 2, 2),
        [(2, 2, 4, 4), (2, 1, 2, 2)],
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, shapes = PRODUCTS[name]
    assert ag.gradcheck(function, points(*shapes))


@pytest.mark.parametrize(
    "name", ["mm", "bmm", "dot", "linear", "conv2d", "conv2d stride", "conv2d groups"]
)
def test_products_twice(name: str) -> None:
    function, shapes = PRODUCTS[name]
    assert ag.gradgradcheck(function, points(*shapes))


def test_products_of_complex_numbers() -> None:
    assert ag.gradcheck(core.mm, [complex_(2, 2), complex_(2, 1)])
    assert ag.gradcheck(core.dot, [complex_(2), complex_(2)])


def logits() -> Any:
    return points((3, 4))[0]


NETWORKS: dict[str, tuple[Function, list[Any]]] = {
    "softmax": (lambda x: core.softmax(x, 1), points((2, 3))),
    "softmax first": (lambda x: core.softmax(x, 0), points((3, 2))),
    "log_softmax": (lambda x: core.log_softmax(x, -1), points((2, 3))),
    "layer_norm": (
        lambda x, w, b: core.layer_norm(x, [3], w, b),
        points((2, 3), (3,), (3,)),
    ),
    "layer_norm plain": (lambda x: core.layer_norm(x, [2, 3]), points((2, 3))),
    "nll_loss": (
        lambda x: core.nll_loss(core.log_softmax(x, 1), whole([1, 3, 0])),
        [logits()],
    ),
    "cross_entropy": (lambda x: core.cross_entropy(x, whole([1, 3, 0])), [logits()]),
    "cross_entropy weight": (
        lambda x: core.cross_entropy(
            x, whole([1, -100, 0]), real([1.0, 2, 3, 4]).detach(), "sum"
        ),
        [logits()],
    ),
    "cross_entropy smooth": (
        lambda x: core.cross_entropy(x, whole([1, 2, 0]), label_smoothing=0.1),
        [logits()],
    ),
    "embedding": (
        lambda w: core.embedding(w, whole([[1, 0], [1, 2]])),
        points((3, 2)),
    ),
    "embedding padding": (
        lambda w: core.embedding(w, whole([1, 0, 1]), 1),
        points((3, 2)),
    ),
    "layer_norm bias": (
        lambda x, b: core.layer_norm(x, [2], None, b),
        points((2, 2), (2,)),
    ),
    "layer_norm whole": (
        lambda x, w, b: core.layer_norm(x, [3], w, b),
        points((3,), (3,), (3,)),
    ),
    "max_pool2d": (
        lambda x: core.max_pool2d(x, 2, 1),
        points((1, 2, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    function, given = NETWORKS[name]
    # A row that is left out has no numerical derivative of its own.
    if name == "embedding padding":
        with pytest.raises(GradcheckFailed):
            ag.gradcheck(function, given)
        return
    assert ag.gradcheck(function, given)
    assert ag.gradgradcheck(function, given)


def test_the_padding_row_gets_no_gradient() -> None:
    (weight,) = points((3, 2))
    core.sum(core.embedding(weight, whole([1, 0, 1, 0]), 1)).backward()
    assert grad_of(weight).tolist() == [[2, 2], [0, 0], [0, 0]]


def test_the_padding_row_is_not_differentiated_twice() -> None:
    rows, indices = points((2, 2))[0], whole([1, 0])
    result = core.embedding_backward(rows, indices, 3, 1)
    assert result.tolist()[1] == [0, 0]
    core.sum(result).backward()
    assert grad_of(rows).tolist() == [[0, 0], [1, 1]]


def test_dropout_outside_of_training() -> None:
    x = real([1.0, 2.0])
    result, _ = core.native_dropout(x, 0.5, False)
    core.sum(core.mul(result, 3)).backward()
    assert grad_of(x).tolist() == [3, 3]


def test_dropout_of_everything() -> None:
    x = real([1.0, 2.0])
    core.sum(core.native_dropout(x, 1.0, True)[0]).backward()
    assert grad_of(x).tolist() == [0, 0]


def test_dropout_scales_by_its_mask() -> None:
    x = real(np.ones(64))
    result, mask = core.native_dropout(x, 0.25, True)
    core.sum(result).backward()
    np.testing.assert_allclose(grad_of(x).numpy(), mask.numpy() / 0.75)
    assert not mask.requires_grad


MOVEMENT: dict[str, tuple[Function, list[Any]]] = {
    "cat": (lambda a, b: core.cat([a, b], 1), points((2, 1), (2, 3))),
    "cat empty": (lambda a, b: core.cat([a, b], 1), points((0,), (2, 3))),
    "stack": (lambda a, b: core.stack([a, b], 1), points((2, 3), (2, 3))),
    "split": (lambda x: core.split(x, 2, 1), points((2, 5))),
    "split part": (lambda x: core.split(x, 2, 1)[1], points((2, 5))),
    "split sizes": (lambda x: core.split_sizes(x, [1, 3], 0)[1], points((4, 2))),
    "gather": (
        lambda x: core.gather(x, 1, whole([[0, 0], [2, 1]])),
        points((2, 3)),
    ),
    "scatter": (
        lambda x, src: core.scatter(x, 1, whole([[0, 2], [2, 1]]), src),
        points((2, 3), (2, 3)),
    ),
    "scatter value": (
        lambda x: core.scatter_value(x, 1, whole([[0], [1]]), 7),
        points((2, 3)),
    ),
    "scatter_add": (
        lambda x, src: core.scatter_add(x, 0, whole([[0, 1], [0, 1]]), src),
        points((2, 3), (2, 2)),
    ),
    "index_select": (
        lambda x: core.index_select(x, 1, whole([2, 0, 2])),
        points((2, 3)),
    ),
    "index_add": (
        lambda x, s: core.index_add(x, 0, whole([1, 1]), s, alpha=2),
        points((2, 3), (2, 3)),
    ),
    "index": (
        lambda x: core.index(x, [whole([0, 1, 1]), whole([2, 0, 0])]),
        points((2, 3)),
    ),
    "index none": (lambda x: core.index(x, [None, whole([2, 0])]), points((2, 3))),
    "index_put": (
        lambda x, v: core.index_put(x, [whole([0, 2])], v),
        points((3, 2), (2, 2)),
    ),
    "index_put add": (
        lambda x, v: core.index_put(x, [whole([0, 0])], v, True),
        points((3, 2), (2,)),
    ),
    "masked_select": (
        lambda x: core.masked_select(x, truth([True, False, True])),
        points((2, 3)),
    ),
    "sort": (lambda x: core.sort(x, 1, True)[0], points((2, 3))),
    "topk": (lambda x: core.topk(x, 2, 0)[0], points((3, 2))),
    "scatter larger": (
        lambda x, src: core.scatter(x, 1, whole([[0], [1]]), src),
        points((2, 3), (3, 2)),
    ),
    "index_select of one": (
        lambda x: core.index_select(x, 0, whole([0])),
        points(()),
    ),
    "masked_select of one": (
        lambda x: core.masked_select(x, truth(True)),
        points(()),
    ),
    "sort of one": (lambda x: core.sort(x, 0)[0], points(())),
    "cumsum of one": (lambda x: core.cumsum(x, 0), points(())),
    "flip": (lambda x: core.flip(x, [0, 1]), points((2, 3))),
}

VIEWS: dict[str, tuple[Function, list[Any]]] = {
    "view": (lambda x: core.view(x, [3, 2]), points((2, 3))),
    "reshape": (lambda x: core.reshape(core.t(x), [6]), points((2, 3))),
    "select": (lambda x: core.select(x, 1, -1), points((2, 3))),
    "slice": (lambda x: core.slice(x, 1, 1, None, 2), points((2, 5))),
    "slice back": (lambda x: core.slice(x, 1, -3, -1), points((2, 5))),
    "transpose": (lambda x: core.transpose(x, 0, 2), points((2, 3, 2))),
    "t": (core.t, points((2, 3))),
    "permute": (lambda x: core.permute(x, [2, 0, 1]), points((2, 3, 2))),
    "expand": (lambda x: core.expand(x, [4, 2, 3]), points((2, 1))),
    "squeeze": (core.squeeze, points((2, 1, 3))),
    "squeeze dim": (lambda x: core.squeeze(x, 0), points((1, 1, 3))),
    "unsqueeze": (lambda x: core.unsqueeze(x, -1), points((2, 3))),
    "as_strided": (
        lambda x: core.as_strided(x, [2, 2], [1, 2], 1),
        points((2, 3)),
    ),
    "as_strided twice": (
        lambda x: core.as_strided(x, [3, 2], [1, 1], 0),
        points((2, 3)),
    ),
    "diagonal": (lambda x: core.diagonal(x, 1), points((2, 3))),
    "alias": (core.alias, points((2,))),
    "flatten": (lambda x: core.flatten(x, 1), points((2, 2, 2))),
    "clone": (core.clone, points((2,))),
    "contiguous": (lambda x: core.contiguous(core.t(x)), points((2, 3))),
    "sum_to_size": (lambda x: core.sum_to_size(x, [1, 3]), points((2, 3))),
}


@pytest.mark.parametrize("name", [*MOVEMENT, *VIEWS])
def test_movement(name: str) -> None:
    function, given = {**MOVEMENT, **VIEWS}[name]
    assert ag.gradcheck(function, given)
    assert ag.gradgradcheck(function, given)


ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"


def test_every_differentiable_operator_has_a_formula() -> None:
    """An operator with tensors in and floating-point ones out is in a table."""
    state = default_dispatcher().state
    known = {*FORMULAS, *CONSTANT_OPERATORS}
    missing = []
    for entry in state.namespaces["core"].values():
        name = str(entry.name).partition("::")[2]
        if entry.schema is None or any(a.is_write for a in entry.schema.arguments):
            continue
        composite = any(
            key.name == "CompositeImplicitAutograd" for key in entry.implementations
        )
        tensors = any("Tensor" in str(a.type) for a in entry.schema.arguments)
        tensors &= any("Tensor" in str(r.type) for r in entry.schema.returns)
        if tensors and not composite and name not in known:
            missing.append(name)
    # Bytes have no slope, and that of orthogonal factors is refused by name; the
    # gradients of the others are computed from plain operators where they are
    # differentiated again.
    again = ("native_layer_norm", "native_batch_norm", ATTENTION)
    backward = (f"{name}_backward" for name in again)
    assert {*missing} == {"view.dtype", "linalg_qr", *backward}


POSITIVE = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin", "cos"),
    *("tan", "tanh", "sigmoid", "silu", "erf", "reciprocal", "square", "neg", "gelu"),
)
SIGNED = (
    *("abs", "relu", "sign", "tanh", "sigmoid", "silu", "gelu", "floor", "ceil"),
    *("round", "trunc"),
)
COMPLEX = (
    *("neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid"),
    *("abs", "conj", "reciprocal", "square", "log2", "log10"),
)

# Operators whose gradient is zero, so that there is no second one to check.
STEPS = ("sign", "floor", "ceil", "round", "trunc")


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive_numbers(name: str) -> None:
    operator = handle_of(name)
    assert ag.gradcheck(operator, points((2, 3)))
    assert ag.gradgradcheck(operator, points((3,)))


@pytest.mark.parametrize("name", SIGNED)
def test_unary_of_both_signs(name: str) -> None:
    operator = handle_of(name)
    given = points((5,), low=-1.4, high=1.8)
    assert ag.gradcheck(operator, given)
    if name not in STEPS:
        assert ag.gradgradcheck(operator, given)


@pytest.mark.parametrize("name", COMPLEX)
def test_unary_of_complex_numbers(name: str) -> None:
    operator = handle_of(name)
    assert ag.gradcheck(operator, [complex_(3)])
    if name not in ("abs",):
        assert ag.gradgradcheck(operator, [complex_(2)])


def test_gelu_by_tanh() -> None:
    given = points((4,), low=-2, high=2)
    assert ag.gradcheck(lambda x: core.gelu(x, approximate="tanh"), given)
    assert ag.gradgradcheck(lambda x: core.gelu(x, approximate="tanh"), given)


def test_abs_of_zero_is_flat() -> None:
    x = from_numpy(np.array([0j, 3 + 4j])).requires_grad_()
    core.sum(core.abs(x)).backward()
    np.testing.assert_allclose(grad_of(x).numpy(), [0, 0.6 + 0.8j])


BINARY: dict[str, Function] = {
    "add": core.add,
    "add alpha": lambda a, b: core.add(a, b, alpha=2.5),
    "sub": core.sub,
    "sub alpha": lambda a, b: core.sub(a, b, alpha=3),
    "mul": core.mul,
    "div": core.div,
    "pow": core.pow,
    "atan2": core.atan2,
    "maximum": core.maximum,
    "minimum": core.minimum,
    "remainder": core.remainder,
    "div trunc": lambda a, b: core.div(a, b, rounding_mode="trunc"),
    "floor_divide": core.floor_divide,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), ())])
def test_binary(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    function = BINARY[name]
    assert ag.gradcheck(function, points(*shapes))
    if name not in ("div trunc", "floor_divide"):
        assert ag.gradgradcheck(function, points(*shapes))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_binary_of_complex_numbers(name: str) -> None:
    function = BINARY[name]
    assert ag.gradcheck(function, [complex_(2), points((2,))[0]])
    assert ag.gradcheck(function, [points((2,))[0], complex_(2)])
    assert ag.gradcheck(function, [complex_(2), complex_(1)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: core.add(x, 2, alpha=3),
        lambda x: core.sub(2, x),
        lambda x: core.mul(3, x),
        lambda x: core.div(2.0, x),
        lambda x: core.pow(x, 2),
        lambda x: core.pow(x, 3),
        lambda x: core.pow(x, 0.5),
        lambda x: core.pow(x, 0),
        lambda x: core.pow(2.0, x),
        lambda x: core.remainder(x, 0.7),
    ],
)
def test_numbers(function: Function) -> None:
    assert ag.gradcheck(function, points((2, 2)))


def test_equal_extremes_share() -> None:
    a, b = real([1.0, 2.0, 3.0]), real([1.0, 5.0, 0.0])
    core.sum(core.maximum(a, b)).backward()
    assert grad_of(a).tolist() == [0.5, 0, 1]
    assert grad_of(b).tolist() == [0.5, 1, 0]


def test_powers_at_zero() -> None:
    base, power = real([0.0, 0.0, 2.0]), real([0.0, 2.0, 0.0])
    core.sum(core.pow(base, power)).backward()
    assert grad_of(base).tolist() == [0, 0, 0]
    np.testing.assert_allclose(grad_of(power).numpy(), [0, 0, np.log(2)])


CHOICES: dict[str, tuple[Function, list[Any]]] = {
    "where": (
        lambda a, b: core.where(truth([[True], [False]]), a, b),
        points((2, 3), (3,)),
    ),
    "clamp": (lambda x: core.clamp(x, 0.6, 1.3), points((6,))),
    "clamp min": (lambda x: core.clamp(x, min=0.6), points((6,))),
    "clamp Tensor": (core.clamp_Tensor, [*points((6,)), real(0.6), real(1.3)]),
    "clamp min Tensor": (
        lambda x, least: core.clamp_Tensor(x, least),
        [*points((6,)), real(0.6)],
    ),
    "clamp max": (
        lambda x, most: core.clamp_Tensor(x, None, most),
        [*points((6,)), real(1.3)],
    ),
    "masked_fill": (
        lambda x: core.masked_fill(x, truth([True, False, True]), 2),
        points((2, 3)),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str) -> None:
    function, given = CHOICES[name]
    assert ag.gradcheck(function, given)


REDUCTIONS: dict[str, Function] = {
    "sum": core.sum,
    "sum dim": lambda x: core.sum(x, [1]),
    "sum keepdim": lambda x: core.sum(x, [0, 2], True),
    "mean": core.mean,
    "mean dim": lambda x: core.mean(x, [-1]),
    "prod": core.prod,
    "prod dim": lambda x: core.prod(x, [1]),
    "var": core.var,
    "var dim": lambda x: core.var(x, [1], correction=0, keepdim=True),
    "std": core.std,
    "max": core.max,
    "max dim": lambda x: core.max_dim(x, 2)[0],
    "min dim keepdim": lambda x: core.min_dim(x, 1, True)[0],
    "amax": lambda x: core.amax(x, [2]),
    "amin keepdim": lambda x: core.amin(x, [0, 1], True),
    "cumsum": lambda x: core.cumsum(x, 1),
    "cumsum last": lambda x: core.cumsum(x, -1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    function = REDUCTIONS[name]
    assert ag.gradcheck(function, points((2, 3, 2)))
    assert ag.gradgradcheck(function, points((2, 2, 2)))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "var"])
def test_reductions_of_one_number(name: str) -> None:
    x = real(1.5)
    result = handle_of(name)(x) if name != "var" else core.var(x, correction=0)
    result.backward()
    assert grad_of(x).item() == (0 if name == "var" else 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 0.0, 3.0], [0, 6, 0]),
        ([0.0, 0.0, 3.0], [0, 0, 0]),
        ([2.0, 5.0, 3.0], [15, 6, 10]),
    ],
)
def test_products_with_zeros(values: list[float], expected: list[float]) -> None:
    x = real(values)
    core.prod(x).backward()
    np.testing.assert_allclose(grad_of(x).numpy(), expected)


def test_equal_maxima_share() -> None:
    x = real([2.0, 1.0, 2.0])
    core.max(x).backward()
    assert grad_of(x).tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize("number", [3, 1.7])
@pytest.mark.parametrize("name", [row.name for row in ROWS if row.gradient])
def test_a_number_is_as_exact_as_a_tensor_of_it(name: str, number: float) -> None:
    """Beside doubles; by itself it would be one of single precision."""
    function = getattr(core, name)
    for turned in (False, True):
        found: list[list[Any]] = []
        for other in (number, tensor([number, number], dtype="float64")):
            x = tensor([0.3, 2.9], dtype="float64", requires_grad=True)
            y = function(other, x) if turned else function(x, other)
            by = tensor([1.1, 0.7], dtype="float64")
            slope = ag.grad(y, [x], by, create_graph=True)[0]
            assert slope is not None
            found.append([slope.tolist()])
            if slope.requires_grad:
                bend = ag.grad(slope, [x], by, allow_unused=True)[0]
                found[-1].append(None if bend is None else bend.tolist())
        assert found[0] == [
            each and pytest.approx(each, rel=1e-14, abs=1e-15) for each in found[1]
        ]
