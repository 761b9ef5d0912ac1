"""Functions written by hand: forms in which arguments come that no operator has."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import ShapesDoNotFit, WrongOption
from everyorder.runtime.operators import core
from tests.coded import coded
from tests.operators.tensors import shown, tensor

OptionRefused = coded(WrongOption, "WrongOption")

NUMBERS = np.random.default_rng(0)
X = NUMBERS.normal(size=(2, 3, 5, 6))
W = NUMBERS.normal(size=(4, 3, 2, 3))
A = NUMBERS.normal(size=(3, 4))
S = NUMBERS.normal(size=(2, 4))
V = NUMBERS.normal(size=4)
I = np.array([[0, 1, 2, 0], [0, 1, 1, 2]])  # noqa: E741  # as in formulas
Q = np.array([[1, 2], [0, 1], [1, 2], [0, 0]])
MADE = {"X": X, "W": W, "A": A, "S": S, "V": V, "I": I, "Q": Q, "M": A > 0}

CALLS = (
    *("F.conv2d(X, W, padding='same')", "F.conv2d(X, W, padding='valid')"),
    *("F.conv2d(X, W, padding='same', dilation=2)", "F.conv2d(X, W, None, (2, 1), 1)"),
    *("F.max_pool2d(X, 2, return_indices=True)", "F.max_pool2d(X, 2)"),
    *("A.round(decimals=2)", "R.round(A * 100, decimals=-1)", "A.round_(decimals=1)"),
    *("A.round()", "R.nonzero(M, as_tuple=True)", "M.nonzero()", "R.nonzero(M)"),
    *("A.scatter(0, I, S, reduce='add')", "A.scatter(0, I, S, reduce='multiply')"),
    *("A.scatter(0, I, 2.5, reduce='add')", "A.scatter(0, I, 2.5, reduce='multiply')"),
    *("A.scatter_(1, I, S, reduce='add')", "A.scatter_(1, I, S, reduce='multiply')"),
    *("A.gather(0, I.int())", "A.scatter(0, I.int(), 1.0)"),
    *("A.masked_fill(M, R.tensor(3.0))", "A.masked_fill_(M, R.tensor(3))"),
    *("R.norm(A)", "A.norm('fro')", "A.norm(1, 0)", "A.norm(p=2, dim=(0, 1))"),
    *("A.norm(float('inf'), dim=1, keepdim=True)", "R.norm(A, dim=1)"),
    *("Q.unique()", "R.unique(Q, return_counts=True)", "R.unique(Q, dim=0)"),
    *("Q.unique(return_inverse=True, return_counts=True, dim=1)",),
    *("R.lerp(A, A * 2, 0.25)", "A.lerp(A * 2, V)", "Q.repeat_interleave(2)"),
    *("Q.repeat_interleave(R.tensor([1, 0, 2, 1]), dim=0)", "A.repeat(2, 1)"),
    *("R.meshgrid(V, V, indexing='ij')", "R.meshgrid([V, A[0]], indexing='xy')"),
    *("R.einsum('ij,j->i', A, V)", "R.einsum('ij,j->i', [A, V])", "A.clip(0, 1)"),
    *("R.clip(A, min=0)", "R.searchsorted(V.sort()[0], A)", "A.movedim(0, 1)"),
    *("R.searchsorted(V.sort()[0], 0.5, right=True)", "A.roll(1)", "A.roll(1, 0)"),
    *("R.hstack([V, V])", "R.vstack((V, V))", "A.diag()", "A.tril(-1)", "V.outer(V)"),
    *("F.pad(X[0], (-1, 1), 'circular')", "F.pad(X[0], (1, -1), 'circular')"),
    *("R.norm(R.tensor(3 + 4j), 2, 0)", "F.avg_pool2d(X, (3, 3), (1,), (1,))"),
    *("R.take_along_dim(A, I - 2, 0)", "F.group_norm(X[:0], 3)"),
    *("R.unique(R.zeros(3, 0, 3), dim=1)", "F.max_pool2d(X, 2, stride=None)"),
    "R.unique(R.tensor([[[0, 0], [1, 0]], [[0, 1], [0, 0]]]), dim=2)",
    *("F.batch_norm(X, V[:3], V[:3].abs(), V[:3], A[0, :3])", "R.roll(V[0], 0)"),
    *("R.addmm(Q, Q, Q[:2], alpha=2.5)", "R.addmm(Q, Q, Q[:2], beta=0.5)"),
)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Using padding='same'", "ignore:The reduce argument")
@pytest.mark.parametrize("call", CALLS)
def test_calls_as_people_write_them(call: str) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

    def scope(library: Any, layers: Any) -> dict[str, Any]:
        made = {name: library.from_numpy(each.copy()) for name, each in MADE.items()}
        return {"R": library, "F": layers, **made}

    found = listed(eval(call, scope(runtime, runtime)))  # the calls are those above
    expected = listed(eval(call, scope(torch, torch.nn.functional)))  # as above
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert f"torch.{one.dtype.name}" == str(other.dtype)
        assert one.shape == tuple(other.shape)
        np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-12, 1e-12)


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


WRONG: tuple[tuple[Callable[[], Any], type[Exception]], ...] = (
    (lambda: runtime.conv2d(tensor(X), tensor(W), padding="full"), OptionRefused),
    (lambda: runtime.conv2d(tensor(X), tensor(W), None, 2, "same"), OptionRefused),
    (
        lambda: tensor(A).scatter(0, tensor(I, "int64"), 1.0, reduce="max"),
        OptionRefused,
    ),
    (lambda: tensor(A).masked_fill(tensor(A > 0, "bool"), tensor(V)), OptionRefused),
    (
        lambda: tensor([1, 2], "int64").masked_fill(
            tensor([True, False], "bool"), tensor(3 + 4j, "complex64")
        ),
        OptionRefused,
    ),
    (lambda: tensor(A).norm("nuc"), OptionRefused),
    (lambda: runtime.einsum("ij,jk", tensor(A)), OptionRefused),
    (lambda: runtime.einsum("i1->i", tensor(A)), OptionRefused),
    (lambda: runtime.einsum("ij->ii", tensor(A)), OptionRefused),
    (lambda: runtime.einsum("ijk->i", tensor(A)), OptionRefused),
    (lambda: runtime.einsum("ij,j", tensor(A), tensor([1.0, 2.0])), ShapesDoNotFit),
    (lambda: tensor(A).repeat(2), OptionRefused),
    (lambda: tensor(A).repeat(-1, 2), OptionRefused),
    (lambda: tensor(A).repeat_interleave(-1), OptionRefused),
    (
        lambda: tensor(V).repeat_interleave(tensor([1, -1, 0, 0], "int64")),
        OptionRefused,
    ),
    (lambda: tensor(V).repeat_interleave(tensor([1, 2], "int64")), ShapesDoNotFit),
    (lambda: tensor(A).roll([1, 2], [0]), OptionRefused),
    (lambda: tensor(A).movedim((0, 0), (0, 1)), OptionRefused),
    (lambda: tensor(A).unflatten(1, (3, 2)), OptionRefused),
    (lambda: runtime.meshgrid(tensor(V), indexing="yx"), OptionRefused),
    (lambda: tensor(V).tril(), ShapesDoNotFit),
    (lambda: tensor(X).diag(), ShapesDoNotFit),
    (lambda: tensor(V).trace(), ShapesDoNotFit),
    (lambda: runtime.one_hot(tensor([1, 5], "int64"), 3), OptionRefused),
    (lambda: runtime.pad(tensor(A), [1]), OptionRefused),
    (lambda: runtime.pad(tensor(A), [1, 1], "mirror"), OptionRefused),
    (lambda: runtime.pad(tensor(A), [9, 0], "reflect"), OptionRefused),
    (lambda: runtime.pad(tensor(A), [-9, 0]), OptionRefused),
    (lambda: runtime.mse_loss(tensor(A), tensor(A), "most"), OptionRefused),
    (lambda: runtime.batch_norm(tensor(X)), OptionRefused),
    (lambda: runtime.group_norm(tensor(X), 2), OptionRefused),
    (lambda: runtime.rms_norm(tensor(A), [3]), ShapesDoNotFit),
    (lambda: runtime.avg_pool2d(tensor(X), 9), ShapesDoNotFit),
    (lambda: runtime.avg_pool2d(tensor(X), 2, padding=2), OptionRefused),
    (lambda: tensor(A).isclose(tensor(A, "float64")), OptionRefused),
    (lambda: runtime.searchsorted(tensor(V), tensor(V), side="up"), OptionRefused),
    (lambda: runtime.bincount(tensor([-1], "int64")), OptionRefused),
    (lambda: runtime.bernoulli(tensor([2.0])), OptionRefused),
    (lambda: runtime.multinomial(tensor([0.0, 0.0]), 1), OptionRefused),
    (lambda: runtime.multinomial(tensor([1.0, 1.0]), 3), OptionRefused),
    (lambda: tensor(A).round(bogus=1), CallError),  # type: ignore[call-arg]  # refused
)


@pytest.mark.parametrize(("call", "error"), WRONG)
def test_what_makes_no_sense_is_refused(
    call: Callable[[], Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        call()
    # As upstream has it, whatever else it is.
    assert isinstance(caught.value, (RuntimeError, TypeError))


def test_batch_norm_keeps_running_means() -> None:
    x = tensor(X, "float64")
    mean, var = core.zeros([3], dtype=x.dtype), core.ones([3], dtype=x.dtype)
    found = runtime.batch_norm(x, mean, var, None, None, True, 0.25)
    np.testing.assert_allclose(mean.numpy(), X.mean((0, 2, 3)) / 4)
    expected = 0.75 + X.var((0, 2, 3), ddof=1) / 4
    np.testing.assert_allclose(var.numpy(), expected)
    np.testing.assert_allclose(found.numpy().mean((0, 2, 3)), 0, atol=1e-12)
    before = mean.tolist()
    runtime.batch_norm(x, mean, var)
    assert mean.tolist() == before


def test_random_choices_are_as_often_as_they_should_be() -> None:
    runtime.manual_seed(1)
    chances = tensor([0.0, 0.25, 1.0] * 4000)
    drawn = chances.bernoulli().numpy().reshape(-1, 3).mean(0)
    assert drawn[0] == 0
    assert drawn[2] == 1
    assert abs(drawn[1] - 0.25) < 0.03
    weights = tensor([[1.0, 0.0, 3.0]] * 4000)
    for replaced in (True, False):
        places = runtime.multinomial(weights, 2, replaced).numpy()
        assert not (places == 1).any()
        assert abs((places[:, 0] == 2).mean() - 0.75) < 0.03
    assert (places[:, 0] != places[:, 1]).all()
    generator = runtime.Generator().manual_seed(3)
    one = runtime.multinomial(weights, 2, generator=generator).tolist()
    again = runtime.Generator().manual_seed(3)
    assert runtime.multinomial(weights, 2, generator=again).tolist() == one


def test_dropout_by_either_name() -> None:
    ones = core.ones([3])
    assert shown(runtime.dropout(ones, training=False)) == ("float32", [1, 1, 1])
    assert shown(runtime.dropout(ones, 1.0, True)) == ("float32", [0, 0, 0])
    assert runtime.dropout(ones, 1.0, inplace=True) is ones
    assert ones.tolist() == [0, 0, 0]
