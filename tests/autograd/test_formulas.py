"""Formulas of products, networks, movement and views, against finite differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime.autograd as ag
from runtime.autograd.formulas import CONSTANT_OPERATORS, FORMULAS
from runtime.dispatch.dispatcher import default_dispatcher
from runtime.errors.autograd import GradcheckFailed
from runtime.operators.call import core
from tests.autograd.made import complex_, grad_of, points, real, truth, whole

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
    # Bytes have no slope; the other's gradient is computed from plain operators where
    # it is differentiated again.
    assert missing == ["view.dtype", "native_layer_norm_backward"]
