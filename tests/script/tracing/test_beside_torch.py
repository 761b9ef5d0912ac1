"""Traces beside those of `torch.jit.trace`: the same operators, the same results."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Program
from everyorder.runtime.script.tracing import trace_function

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

# Nodes that are not operators, and what upstream calls differently.
PLUMBING = ("prim::Constant", "prim::ListConstruct", "prim::NumToTensor", "aten::Int")

PROGRAMS: list[tuple[str, Callable[..., Any]]] = [
    ("arithmetic", lambda xp, x, y: (x * 2 + y).sub(x, alpha=3) / y),
    ("reductions", lambda xp, x, y: x.sum(0) + y.mean(dim=1, keepdim=True).amax()),
    ("in place", lambda xp, x, y: x.clone().add_(y).mul_(2).clamp_(min=0)),
    (
        "views",
        lambda xp, x, y: x.t().reshape(-1)[1:4] + y.transpose(0, 1).flatten()[:3],
    ),
    ("writes", lambda xp, x, y: _written(x.clone(), y)),
    ("several", lambda xp, x, y: xp.cat([*x.split(1), y]) * x.max(0)[0]),
    ("products", lambda xp, x, y: xp.matmul(x, y.t()).softmax(-1)),
    ("made", lambda xp, x, y: x + xp.ones(3) * xp.arange(3)),
    ("condition", lambda xp, x, y: xp.where(x > y, x, y).exp()),
    ("tuple", lambda xp, x, y: (x.neg(), (y.abs(), x))),
]


def _written(x: Any, y: Any) -> Any:
    x[0] = y[1]
    x[1, 2] = 7
    return x


def numbers(result: Any) -> Any:
    """The elements of tensors in tuples."""
    if isinstance(result, tuple):
        return tuple(map(numbers, result))
    return result.tolist()


def kinds(lines: str) -> list[str]:
    """The operators of a graph, in order, without overloads."""
    found = []
    for line in lines.splitlines():
        kind = line.partition(" = ")[2].partition("(")[0].partition("[")[0]
        if kind and not kind.startswith(PLUMBING):
            name = kind.rpartition("::")[2].partition(".")[0]
            found.append(name)
    return found


@pytest.mark.parametrize(
    ("name", "program"), PROGRAMS, ids=[name for name, _ in PROGRAMS]
)
def test_results_are_those_of_torch(name: str, program: Callable[..., Any]) -> None:
    data = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], [[2.0, 0.5, 1.0], [-1.0, 3.0, 8.0]]
    more = [[0.5, 7.0, -1.0], [2.0, -3.0, 4.0]], [[1.0, 1.5, 2.5], [3.0, -2.0, 1.0]]
    ours = trace_function(
        lambda x, y: program(runtime, x, y),
        tuple(map(runtime.tensor, data)),
        program=Program(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.trace(
            lambda x, y: program(torch, x, y), tuple(map(torch.tensor, data))
        )
    given = numbers(call(ours, tuple(map(runtime.tensor, more))))
    wanted = numbers(theirs(*map(torch.tensor, more)))
    assert flat(given) == pytest.approx(flat(wanted), rel=1e-5)


def flat(value: Any) -> list[float]:
    """The numbers of nested lists and tuples."""
    if isinstance(value, list | tuple):
        return [number for each in value for number in flat(each)]
    return [value]


@pytest.mark.parametrize("name", ["arithmetic", "in place", "products", "condition"])
def test_operators_are_those_of_torch(name: str) -> None:
    program = dict(PROGRAMS)[name]
    ours = trace_function(
        lambda x, y: program(runtime, x, y),
        (runtime.ones(2, 3), runtime.ones(2, 3)),
        program=Program(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.trace(
            lambda x, y: program(torch, x, y), (torch.ones(2, 3), torch.ones(2, 3))
        )
    mine = [
        each.kind.rpartition("::")[2].partition(".")[0]
        for each in ours.graph.nodes()
        if not each.kind.startswith(PLUMBING)
    ]
    assert mine == kinds(str(theirs.graph))
