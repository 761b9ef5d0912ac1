"""Subscripts of tensors: a script reads and writes the part that Python does."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.script.executor import call
from tests.script.emission.both import Both

PARTS = """
t[k]; t[:, k]; t[k, 0]; t[0, k]; t[k, k]; t[..., k]; t[None, k]; t[k, None, ids]
t[k, 1:]; t[mk]; t[neg, ids]; t[small]
t[ids]; t[1:, ids]; t[ids, ..., k]; t[..., ids]; t[..., None, ids]; t[..., ids, None]
t[..., 0, ids]; t[None, ..., ids]; u[..., ids, 0]; u[ids, ..., ids]; u[..., ids, ids]
u[..., ids, :]; u[0, ..., ids]; u[..., m]; u[..., m, :]; t[..., m]; t[..., mv]
t[m]; t[m, ...]; t[mv]; t[mv, 0]; t[:, mv]; t[ids, mv2]
t[[0, 1]]; t[:, [0, 2]]; t[[0, 1], [1, 2]]; t[..., [0, 1]]; t[[]]; t[[[0, 1], [1, 0]]]
t[[True, False, True]]; t[xs]; t[:, xs]; t[bs]
t[True]; t[False]; t[b]; t[b, 0]; t[0, b]; t[..., True]
t[slice(0, 2), k]; t[slice(n, None), ids]; t[slice(None), xs]; t[Ellipsis, ids]
"""
VIEWS = """
t[slice(0, 2)]; t[slice(1), 0]; t[:, slice(None)]; t[slice(None, None, 2)]
t[Ellipsis]; t[Ellipsis, 0]; t[slice(n, None), Ellipsis]; t[slice(None, n)]
"""
USES = {
    "read": "return {}",
    "a view": "{}.add_(1)\n    return t",
    "set to a number": "{} = 5\n    return t",
    "set to a float": "{} = 2.5\n    return t",
    "set to a tensor": "{} = v\n    return t",
    "set to another dtype": "{} = w\n    return t",
    "set to a spare dimension": "{} = v[None, None]\n    return t",
    "changed": "{} += 1\n    return t",
}
PARAMETERS = (
    "t: Tensor, u: Tensor, k: Tensor, neg: Tensor, small: Tensor, ids: Tensor, "
    "m: Tensor, mv: Tensor, mv2: Tensor, mk: Tensor, v: Tensor, w: Tensor, b: bool, "
    "xs: list[int], bs: list[bool], n: int"
)


def arguments() -> list[Any]:
    tensor = runtime.tensor
    return [
        *(runtime.arange(9.0).reshape(3, 3), runtime.arange(27.0).reshape(3, 3, 3)),
        *(tensor(1), tensor(-1), tensor(2, dtype=runtime.int8), tensor([0, 2])),
        *(tensor([[True, False, True]] * 3), tensor([True, False, True])),
        *(tensor([True, True, False]), tensor(True), tensor(2.5), tensor(7)),
        *(True, [0, 1], [True, False, True], 1),
    ]


@pytest.mark.parametrize("use", USES)
def test_a_part_is_what_it_is_in_python(use: str) -> None:
    # A view does not drop the first dimensions of what is assigned.
    texts = PARTS if "spare" in use else PARTS + VIEWS
    parts = [each.strip() for each in texts.replace("\n", ";").split(";")]
    for part in filter(None, parts):
        body = USES[use].format(part)
        if part.startswith("u") and use != "read":
            body = body.replace("return t", "return u")
        both = Both(f"def f({PARAMETERS}):\n    {body}\n")
        python, ours = both.outcomes("f", *arguments())
        assert python == ours, body


def test_a_part_of_an_ellipsis_keeps_what_is_between() -> None:
    both = Both("def f(x: Tensor, i: Tensor):\n    return x[i, ..., i]\n")
    x, i = runtime.arange(16.0).reshape(2, 2, 2, 2), runtime.tensor([1, 0])
    python, ours = both.outcomes("f", x, i)
    assert python == ours
    assert not python.error


def test_gradients_pass_through_a_part() -> None:
    both = Both(
        "def f(x: Tensor, k: Tensor):\n"
        "    y = x * 2\n"
        "    y[k] *= 3\n"
        "    return y[:, k].sum()\n"
    )
    grads = []
    for run in (both.python["f"], lambda *args: call(both.script["f"], args, {})):
        x = runtime.ones(2, 2, requires_grad=True)
        run(x, runtime.tensor(1)).backward()
        assert x.grad is not None
        grads.append(x.grad.tolist())
    assert grads == [[[0.0, 2.0], [0.0, 6.0]]] * 2
