"""Operators of networks: softmax, normalisation and losses, against torch and by "
"hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DimensionOutOfRange, DTypeRefused, WrongOption
from runtime.errors.operator import IndexOutOfRange, ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.operators.told import told, words

Array = np.ndarray[Any, Any]
REASON = "torch is not installed"


def normal(*shape: int, seed: int = 0) -> Array:
    found: Array = np.random.default_rng(seed).standard_normal(shape)
    return found


def agree(ours: Tensor, expected: Any, rtol: float = 1e-12) -> None:
    array = np.asarray(expected)
    assert ours.shape == array.shape
    np.testing.assert_allclose(ours.numpy(), array, rtol=rtol, atol=rtol)


def softmax(array: Array, axis: int) -> Array:
    powers = np.exp(array - array.max(axis, keepdims=True))
    found: Array = powers / powers.sum(axis, keepdims=True)
    return found


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_and_its_logarithm(dim: int) -> None:
    array = normal(3, 4, 5)
    expected = softmax(array, dim)
    agree(core.softmax(tensor(array), dim), expected)
    agree(core.log_softmax(tensor(array), dim), np.log(expected))
    turned = core.permute(tensor(array), [2, 0, 1])
    agree(core.softmax(turned, dim), softmax(array.transpose(2, 0, 1), dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_gradients_of_softmax(dim: int) -> None:
    array, grad = normal(3, 4, 5), normal(3, 4, 5, seed=1)
    result = softmax(array, dim)
    inner = (grad * result).sum(dim, keepdims=True)
    agree(
        core.softmax_backward(tensor(grad), tensor(result), dim),
        result * (grad - inner),
    )
    agree(
        core.log_softmax_backward(tensor(grad), tensor(np.log(result)), dim),
        grad - result * grad.sum(dim, keepdims=True),
    )


def test_softmax_of_little_and_in_other_dtypes() -> None:
    assert core.softmax(tensor(3.0), 0).tolist() == 1
    assert core.softmax(tensor(np.zeros((0, 3))), 1).shape == (0, 3)
    counted = core.softmax(tensor([0, 0]), 0, tensor(0.0).dtype)
    assert (counted.dtype.name, counted.tolist()) == ("float32", [0.5, 0.5])
    half = core.softmax(tensor([0.0, 0.0], dtype="bfloat16"), 0)
    assert (half.dtype.name, half.tolist()) == ("bfloat16", [0.5, 0.5])
    out = tensor([0.0, 0.0])
    assert core.softmax_out(tensor([1.0, 1.0]), 0, out=out) is out
    assert out.tolist() == [0.5, 0.5]
    assert core.softmax(tensor([[1.0]], device="meta"), 1).shape == (1, 1)


@pytest.mark.parametrize("shape", [(5,), (4, 5)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(shape: tuple[int, ...], affine: bool) -> None:
    array = normal(3, 4, 5)
    weight, bias = normal(*shape, seed=1), normal(*shape, seed=2)
    axes = tuple(range(-len(shape), 0))
    mean = array.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(array.var(axes, keepdims=True) + 1e-5)
    expected = (array - mean) * rstd
    if affine:
        expected = expected * weight + bias
    given = (tensor(weight), tensor(bias)) if affine else (None, None)
    agree(core.layer_norm(tensor(array), shape, *given), expected)
    out, means, deviations = core.native_layer_norm(tensor(array), shape, *given, 1e-5)
    agree(out, expected)
    agree(means, mean)
    agree(deviations, rstd)
    there = core.native_layer_norm(
        tensor(array, device="meta"), shape, None, None, 1e-5
    )
    assert [each.shape for each in there] == [array.shape, mean.shape, mean.shape]


def test_the_gradients_of_layer_norm() -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, grad = normal(6, 4, 5), normal(6, 4, 5, seed=1)
    weight, bias = normal(4, 5, seed=2), normal(4, 5, seed=3)
    arguments = (grad, array, (4, 5))
    theirs = [torch.tensor(each, requires_grad=True) for each in (array, weight, bias)]
    made = torch.nn.functional.layer_norm(theirs[0], (4, 5), *theirs[1:])
    made.backward(torch.tensor(grad))
    _, mean, rstd = core.native_layer_norm(
        tensor(array), (4, 5), tensor(weight), tensor(bias), 1e-5
    )
    ours = core.native_layer_norm_backward(
        *(tensor(each) for each in arguments[:2]),
        (4, 5),
        mean,
        rstd,
        tensor(weight),
        tensor(bias),
        [True, True, True],
    )
    for found, expected in zip(ours, theirs, strict=True):
        agree(found, expected.grad.numpy(), 1e-10)
    only = core.native_layer_norm_backward(
        tensor(grad), tensor(array), (4, 5), mean, rstd, None, None, [False, True, True]
    )
    assert only == (None, None, None)


def test_layer_norm_of_sixteen_bits_keeps_its_means() -> None:
    x = tensor(normal(2, 8), dtype="bfloat16")
    out, mean, rstd = core.native_layer_norm(x, [8], None, None, 1e-5)
    assert [each.dtype.name for each in (out, mean, rstd)] == [
        "bfloat16",
        "float32",
        "float32",
    ]
    weight = tensor(np.ones(8, np.float32))
    assert core.layer_norm(x, [8], weight).tolist() == out.tolist()


LOSSES = ("none", "mean", "sum")
SHAPES = ((5,), (4, 5), (4, 5, 3), (2, 5, 3, 2))


def scores(shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Scores, classes of which some are to be ignored, and weights of the classes."""
    places = () if len(shape) == 1 else (shape[0], *shape[2:])
    classes = np.random.default_rng(5).integers(0, 5, places)
    return normal(*shape), classes, np.abs(normal(5, seed=7)) + 0.1


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", LOSSES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nll_loss_and_its_gradient(
    shape: tuple[int, ...], reduction: str, weighted: bool
) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, classes, weights = scores(shape)
    logs = torch.tensor(array, requires_grad=True)
    weight = torch.tensor(weights) if weighted else None
    theirs = torch.nn.functional.nll_loss(
        logs, torch.tensor(classes), weight, ignore_index=2, reduction=reduction
    )
    grad = torch.ones_like(theirs) * 3
    theirs.backward(grad)
    ours = tensor(array), tensor(classes), tensor(weights) if weighted else None
    loss, total = core.nll_loss_forward(*ours, reduction, 2)
    agree(loss, theirs.detach().numpy())
    agree(core.nll_loss(*ours, reduction, 2), theirs.detach().numpy())
    agree(
        core.nll_loss_backward(tensor(grad.numpy()), *ours, reduction, 2, total),
        logs.grad.numpy(),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", LOSSES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_against_classes(
    shape: tuple[int, ...], reduction: str, weighted: bool, smoothing: float
) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, classes, weights = scores(shape)
    for ignored in (2, -100):
        theirs = torch.nn.functional.cross_entropy(
            torch.tensor(array),
            torch.tensor(classes),
            torch.tensor(weights) if weighted else None,
            ignore_index=ignored,
            reduction=reduction,
            label_smoothing=smoothing,
        )
        ours = core.cross_entropy(
            tensor(array),
            tensor(classes),
            tensor(weights) if weighted else None,
            reduction,
            ignored,
            smoothing,
        )
        agree(ours, theirs.numpy())


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("reduction", LOSSES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_against_probabilities(
    shape: tuple[int, ...], reduction: str, weighted: bool, smoothing: float
) -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    array, _, weights = scores(shape)
    wanted = softmax(normal(*shape, seed=9), 0 if len(shape) == 1 else 1)
    theirs = torch.nn.functional.cross_entropy(
        torch.tensor(array),
        torch.tensor(wanted),
        torch.tensor(weights) if weighted else None,
        reduction=reduction,
        label_smoothing=smoothing,
    )
    ours = core.cross_entropy(
        tensor(array),
        tensor(wanted),
        tensor(weights) if weighted else None,
        reduction,
        label_smoothing=smoothing,
    )
    agree(ours, theirs.numpy())


def test_cross_entropy_by_hand() -> None:
    loss = core.cross_entropy(tensor([[0.0, 0.0], [5.0, 0.0]]), tensor([0, -100]))
    assert loss.item() == pytest.approx(np.log(2))
    all_ignored = core.cross_entropy(tensor([[0.0, 0.0]]), tensor([-100]))
    assert np.isnan(all_ignored.item())
    there = core.cross_entropy(
        tensor([[0.0, 1.0]], device="meta"), tensor([1], device="meta"), None, "none"
    )
    assert there.shape == (1,)


def test_dropout_keeps_the_mean_and_says_what_it_kept() -> None:
    ones = tensor(np.ones(10_000))
    out, mask = core.native_dropout(ones, 0.25, True)
    assert (out.dtype.name, mask.dtype.name) == ("float64", "bool")
    kept = mask.numpy()
    assert 0.72 < kept.mean() < 0.78
    assert out.numpy().tolist() == (kept / 0.75).tolist()
    assert 0.95 < core.dropout(ones, 0.25).numpy().mean() < 1.05


def test_dropout_of_all_of_nothing_and_in_sixteen_bits() -> None:
    line = tensor([1.0, 2.0])
    out, mask = core.native_dropout(line, 1.0, True)
    assert (out.tolist(), mask.tolist()) == ([0, 0], [False, False])
    out, mask = core.native_dropout(line, 0.5, False)
    assert (out.tolist(), mask.tolist()) == ([1, 2], [True, True])
    for same in (core.dropout(line, 0.5, False), core.dropout(line, 0.0)):
        assert same.tolist() == [1, 2]
        assert same.storage is not line.storage
    half, _ = core.native_dropout(tensor([1.0] * 8, dtype="bfloat16"), 0.5)
    assert half.dtype.name == "bfloat16"
    assert set(half.tolist()) <= {0.0, 2.0}
    shapes = [
        each.shape for each in core.native_dropout(tensor([1.0], device="meta"), 0.5)
    ]
    assert shapes == [(1,), (1,)]


def test_dropout_draws_from_the_generator_that_is_given() -> None:
    from runtime.tensors import Generator

    ones = tensor(np.ones(64))
    first, second = (
        core.native_dropout(ones, 0.5, generator=Generator(seed=3))[1].tolist()
        for _ in range(2)
    )
    assert first == second
    assert 0 < sum(first) < 64


def test_embedding_looks_rows_up() -> None:
    table = normal(6, 3)
    places = np.array([[1, 5], [0, 1]])
    found = core.embedding(tensor(table), tensor(places))
    assert found.tolist() == table[places].tolist()
    assert core.embedding(tensor(table), tensor(2)).tolist() == table[2].tolist()
    none = tensor(np.zeros((0, 2), np.int64))
    assert core.embedding(tensor(table), none).shape == (0, 2, 3)
    there = core.embedding(tensor(table, device="meta"), tensor(places, device="meta"))
    assert there.shape == (2, 2, 3)


def test_the_gradient_of_embedding_adds_up_rows() -> None:
    places = np.array([[1, 5], [0, 1]])
    grad = normal(2, 2, 3)
    expected = np.zeros((6, 3))
    np.add.at(expected, places, grad)
    agree(core.embedding_backward(tensor(grad), tensor(places), 6, -1), expected)
    expected[1] = 0
    agree(core.embedding_backward(tensor(grad), tensor(places), 6, 1), expected)


WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "softmax dtype": (
        lambda: core.softmax(tensor([1]), 0),
        DTypeRefused,
        "`core::softmax` does not take `self` of dtype int64. fits: floating-point "
        "numbers; ask for one by dtype=",
    ),
    "softmax dimension": (
        lambda: core.log_softmax(tensor([1.0]), 1),
        DimensionOutOfRange,
        "`core::log_softmax` was given dimension 1 for shape (1,), which has no such "
        "dimension. fits: -1 to 0, each once",
    ),
    "layer_norm": (
        lambda: core.layer_norm(tensor(normal(2, 3)), [2]),
        ShapesDoNotFit,
        "`core::layer_norm` cannot work on these shapes: input does not end in "
        "the normalised shape (2,). given: input (2, 3) fits: input of shape (..., 2)",
    ),
    "layer_norm weight": (
        lambda: core.layer_norm(tensor(normal(2, 3)), [3], tensor(normal(2))),
        ShapesDoNotFit,
        "`core::layer_norm` cannot work on these shapes: weight has another "
        "shape than asked. given: weight (2,) fits: shape (3,)",
    ),
    "layer_norm dtype": (
        lambda: core.layer_norm(tensor([1.0]), [1], tensor(normal(1))),
        DTypeRefused,
        "`core::layer_norm` does not take `weight` of dtype float64. fits: "
        "float32, the dtype of input",
    ),
    "layer_norm of nothing": (
        lambda: core.layer_norm(tensor([1.0]), []),
        ShapesDoNotFit,
        "`core::layer_norm` cannot work on these shapes: input does not end in "
        "the normalised shape (). given: input (1,) fits: a normalised shape of at "
        "least one dimension",
    ),
    "nll_loss shape": (
        lambda: core.nll_loss(tensor(normal(2, 3)), tensor([0, 1, 2])),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: there is not one target "
        "for each line of scores. given: self (2, 3), target (3,) fits: target of "
        "shape (2,)",
    ),
    "nll_loss class": (
        lambda: core.nll_loss(tensor(normal(2, 3)), tensor([0, 3])),
        IndexOutOfRange,
        "`core::nll_loss` was given index 3 for dimension 1, which has size 3. "
        "fits: 0 to 2 state: nothing was written",
    ),
    "nll_loss reduction": (
        lambda: core.nll_loss(tensor(normal(1, 3)), tensor([0]), None, "most"),
        WrongOption,
        "`core::nll_loss` does not take 'most' for `reduction`. fits: 'none', "
        "'mean', 'sum'",
    ),
    "nll_loss weight": (
        lambda: core.nll_loss(tensor(normal(1, 3)), tensor([0]), tensor(normal(2))),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: weight has another "
        "shape "
        "than asked. given: weight (2,) fits: shape (3,)",
    ),
    "nll_loss number": (
        lambda: core.nll_loss(tensor(1.0), tensor(0)),
        ShapesDoNotFit,
        "`core::nll_loss` cannot work on these shapes: self has no dimension "
        "of "
        "classes. given: self () fits: (C) or (N, C, ...)",
    ),
    "cross_entropy shape": (
        lambda: core.cross_entropy(tensor(normal(2, 3)), tensor([0, 1, 2])),
        ShapesDoNotFit,
        "`core::cross_entropy` cannot work on these shapes: target holds neither one "
        "class for each line of scores, nor one probability for each score. given: "
        "self (2, 3), target (3,) fits: classes of shape (2,) and dtype int64, or "
        "probabilities of shape (2, 3)",
    ),
    "cross_entropy smoothing": (
        lambda: core.cross_entropy(
            tensor(normal(1, 3)), tensor([0]), label_smoothing=1.5
        ),
        WrongOption,
        "`core::cross_entropy` does not take 1.5 for `label_smoothing`. fits: 0.0 to "
        "1.0",
    ),
    "dropout": (
        lambda: core.dropout(tensor([1.0]), 1.5),
        WrongOption,
        "`core::dropout` does not take 1.5 for `p`. fits: 0.0 to 1.0",
    ),
    "dropout dtype": (
        lambda: core.native_dropout(tensor([1]), 0.5),
        DTypeRefused,
        "`core::native_dropout` does not take `input` of dtype int64. fits: "
        "floating-point and complex numbers",
    ),
    "embedding": (
        lambda: core.embedding(tensor(normal(4, 2)), tensor([[0], [4]])),
        IndexOutOfRange,
        "`core::embedding` was given index 4 for dimension 0, which has size 4. fits: "
        "0 "
        "to 3 state: nothing was written",
    ),
    "embedding dtype": (
        lambda: core.embedding(tensor(normal(4, 2)), tensor([0.0])),
        DTypeRefused,
        "`core::embedding` does not take `indices` of dtype float32. fits: int64 or "
        "int32",
    ),
    "embedding padding": (
        lambda: core.embedding(tensor(normal(4, 2)), tensor([0]), 4),
        WrongOption,
        "`core::embedding` does not take 4 for `padding_idx`. fits: -1 for none, or a "
        "row, 0 to 3",
    ),
    "embedding gradient": (
        lambda: core.embedding_backward(tensor(normal(3, 2)), tensor([0]), 4, -1),
        ShapesDoNotFit,
        "`core::embedding_backward` cannot work on these shapes: there is not one row "
        "of the gradient for each index. given: grad (3, 2), indices (1,) fits: grad "
        "of shape (1, d)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    call, kind, text = WRONG[case]
    with pytest.raises(kind) as caught:
        call()
    assert told(caught.value) == words(text)
