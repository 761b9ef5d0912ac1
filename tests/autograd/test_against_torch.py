"""Gradients and refusals, side by side with the real torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import from_numpy
from everyorder.runtime.autograd import grad
from everyorder.runtime.operators.declare.handles import core

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.torch

Z = np.array([0.3 + 0.4j, -0.7 + 0.2j, 1.1 - 0.9j])
X = np.array([0.5, -1.5, 0.25])

COMPLEX: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mul": (lambda z, x: core.mul(z, core.mul(z, x)), lambda z, x: z * (z * x)),
    "div": (lambda z, x: core.div(x, z), lambda z, x: x / z),
    "exp": (lambda z, x: core.exp(core.mul(z, 2j)), lambda z, x: torch.exp(z * 2j)),
    "abs": (lambda z, x: core.abs(z), lambda z, x: torch.abs(z)),
    "pow": (lambda z, x: core.pow(z, 3), lambda z, x: z**3),
    "conj": (lambda z, x: core.mul(core.conj(z), x), lambda z, x: z.conj() * x),
    "mean": (lambda z, x: core.mean(core.mul(z, z)), lambda z, x: (z * z).mean()),
    "tanh": (lambda z, x: core.tanh(z), lambda z, x: torch.tanh(z)),
    "dot": (lambda z, x: core.dot(z, core.mul(z, x)), lambda z, x: z.dot(z * x)),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradients(name: str) -> None:
    ours, theirs = COMPLEX[name]
    z, x = (from_numpy(a.copy()).requires_grad_() for a in (Z, X))
    tz, tx = (torch.from_numpy(a.copy()).requires_grad_() for a in (Z, X))
    result, expected = ours(z, x), theirs(tz, tx)
    seed = np.arange(1, expected.numel() + 1).reshape(tuple(expected.shape))
    seed = seed + 0.5j * seed if expected.is_complex() else seed.astype(float)
    found = grad(result, [z, x], from_numpy(np.array(seed)), allow_unused=True)
    wanted = torch.autograd.grad(
        expected, [tz, tx], torch.from_numpy(np.array(seed)), allow_unused=True
    )
    for mine, other in zip(found, wanted, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            np.testing.assert_allclose(
                mine.numpy(), other.resolve_conj().numpy(), rtol=1e-9
            )


def _chained(x: Any) -> Any:
    y = x * 2
    y[1:].mul_(x[1:])
    y.add_(1)
    return y


def _two_views(x: Any) -> Any:
    y = x * 1
    first, second = y[:2], y[1:]
    first.mul_(second.detach() + 1)
    return second * y.sum()


def _zeroed(x: Any) -> Any:
    y = x.exp()
    z = y * 1
    z[0] = 0.0
    return z


def _transposed(x: Any) -> Any:
    y = (x * 1).view(3, 1).expand(3, 2).clone()
    y.t()[0].mul_(3)
    return y


SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "chained": _chained,
    "two views": _two_views,
    "zeroed": _zeroed,
    "transposed": _transposed,
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_writes_in_sequence(name: str) -> None:
    run = SEQUENCES[name]
    x, tx = from_numpy(X.copy()).requires_grad_(), torch.from_numpy(X.copy())
    tx.requires_grad_()
    mine, other = run(x), run(tx)
    np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy())
    (found,), (wanted,) = (
        grad(mine.sum(), x),
        torch.autograd.grad(other.sum(), tx),
    )
    assert found is not None
    np.testing.assert_allclose(found.numpy(), wanted.numpy())


def _leaf(x: Any) -> Any:
    return x.add_(1)


def _view_of_leaf(x: Any) -> Any:
    return x[:1].mul_(2)


def _one_of_several(x: Any) -> Any:
    return (x * 1).split(1)[0].add_(1)


def _overwritten_input(x: Any) -> Any:
    y = x * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


def _overwritten_result(x: Any) -> Any:
    y = x.exp()
    z = y * 1
    y.mul_(2)
    z.sum().backward()


def _twice(x: Any) -> Any:
    y = (x * x).sum()
    y.backward()
    y.backward()


def _sum_twice(x: Any) -> Any:
    y = (x + 1).sum()
    y.backward()
    y.backward()


def _not_saved(x: Any) -> Any:
    y = x * 2
    z = y.exp()
    y.add_(1)
    z.sum().backward()


def _not_scalar(x: Any) -> Any:
    (x * 2).backward()


def _detached_view(x: Any) -> Any:
    (x * 2)[:1].detach_()


def _switched_off(x: Any) -> Any:
    (x * 2).requires_grad_(False)


@pytest.mark.parametrize(
    "run",
    [
        *(_leaf, _view_of_leaf, _one_of_several, _overwritten_input),
        *(_overwritten_result, _twice, _sum_twice, _not_saved, _not_scalar),
        *(_detached_view, _switched_off),
    ],
)
def test_refusals(run: Callable[[Any], Any]) -> None:
    """What torch refuses is refused, and nothing else."""

    def refused(x: Any) -> bool:
        try:
            run(x)
        except RuntimeError:
            return True
        return False

    mine = from_numpy(X.copy()).requires_grad_()
    other = torch.from_numpy(X.copy()).requires_grad_()
    assert refused(mine) is refused(other)
