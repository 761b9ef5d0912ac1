"""Calls of functions and methods: a script takes the forms that Python takes."""

import io
from dataclasses import replace
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors import IllTyped
from everyorder.runtime.jit import ScriptFunction, load, save, script
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Function
from tests.script.emission.both import Both, outcome

FORMS = {
    "where": """
        x.where(m, y)
        x.where(condition=m, other=y)
        x.where(m, 0.0)
        runtime.where(m)
        runtime.where(m.any())
    """,
    "deviations": """
        x.var(0, True)
        x.var(0, False, True)
        x.var(False)
        x.var(unbiased=False)
        x.var(dim=0, unbiased=False, keepdim=True)
        x.var(dim=[0, 1], unbiased=False)
        x.std(0, False)
        runtime.std(x, False)
        runtime.var(input=x, dim=0, unbiased=True)
        x.var(0)
        x.var(correction=0)
        runtime.var_mean(x, unbiased=False)
        runtime.var_mean(x, 0, True)
        runtime.std_mean(x, True)
        runtime.std_mean(x, dim=[0, 1], unbiased=False, keepdim=True)
        runtime.std_mean(input=x, correction=2)
    """,
    "names of arguments": """
        x.sum(axis=0)
        runtime.sum(x, axis=1, keepdims=True)
        runtime.sum(input=x)
        x.var(axis=0)
        x.var(ddof=0)
        runtime.max(input=x, dim=1)
    """,
    "several tensors": """
        runtime.einsum("ij,jk->ik", x, y)
        runtime.einsum("ij,jk->ik", [x, y])
        runtime.einsum("ij->ji", x)
        runtime.meshgrid(v, v)
        runtime.meshgrid([v, v])
        runtime.meshgrid(v, v, indexing="xy")
    """,
    "layers": """
        runtime.dropout(x, 0.5, training=False)
        runtime.dropout(x, 0.5, False, True)
        runtime.dropout(x, p=0.5, train=False)
        runtime.conv2d(img, w, padding="same")
        runtime.conv2d(img, w[:, :, :2], padding="same", dilation=2)
        runtime.conv2d(img, w, padding="valid")
        runtime.conv2d(img, w, padding="valid", stride=2)
        runtime.conv2d(img, w, padding="same", stride=2)
        runtime.conv2d(img, w, padding="some")
        runtime.conv1d(img[0], w[0], padding="same")
        runtime.max_pool2d(img, 2, return_indices=True)
        runtime.max_pool2d(img, 2, stride=None)
        runtime.max_pool2d(img, 2, 1)
        runtime.relu(x, inplace=False)
        runtime.relu(x, inplace=True) + x
        runtime.relu(input=x, inplace=True) + x
        runtime.leaky_relu(x, 0.1, inplace=True) + x
        runtime.embedding(img[0, 0], i)
        runtime.embedding(i, img[0, 0])
        runtime.embedding(i, img[0, 0], padding_idx=-1)
    """,
    "numbers and tensors": """
        x.clamp(x, 3.0)
        x.clamp(0.0, y)
        x.masked_fill(m, s)
        x.masked_fill(m, v)
        x.clone().masked_fill_(m, s)
        x.clone().bernoulli_(runtime.ones(2, 2))
        runtime.searchsorted(v, 1.5)
        runtime.searchsorted(i, 1, right=True)
        x.norm("fro")
        runtime.norm(x, p="fro", dim=[0, 1])
        x.norm(p="nuc")
    """,
    "scatter": """
        x.scatter(0, at, y, reduce="add")
        x.scatter(1, at[:1], y, reduce="multiply")
        x.scatter(-1, at, 2.0, reduce="multiply")
        x.scatter(0, at, y, reduce="divide")
        x.clone().scatter_(0, at, y, reduce="add")
        x.clone().scatter_(0, at, 2.0, reduce="multiply")
    """,
    "places": """
        x.nonzero(as_tuple=True)
        runtime.nonzero(x, as_tuple=False)
        x.round(decimals=1)
        runtime.round(x * 100, decimals=-1)
        i.round(decimals=1)
        x.clone().round_(decimals=1)
    """,
    "distinct": """
        runtime.unique(k)
        k.unique()
        runtime.unique(k, sorted=True)
        runtime.unique(k, return_inverse=True)
        runtime.unique(k, True, True, True)
        k.unique(return_counts=True)
        runtime.unique(k, dim=0)
    """,
    "creation": """
        runtime.as_tensor(x)
        runtime.as_tensor([1, 2])
        runtime.as_tensor(2.5)
        runtime.as_tensor([1.0, 2.0], dtype=runtime.float64)
        runtime.as_tensor(x, dtype=runtime.float64)
        runtime.as_tensor(x, device="cpu")
        runtime.tensor([1, 2], device="cpu", dtype="float64")
        runtime.zeros(2, dtype="int64", device="cpu")
        runtime.zeros(2, device=place)
        runtime.full((2,), True)
        runtime.full((2,), b)
        runtime.full([2], True, dtype=runtime.float32)
        runtime.full((2,), 3)
        m.clamp(False, True)
        runtime.randint(1, (2,))
        runtime.randint(1, (2,), dtype=runtime.int32)
        x.to("float64")
        x.to(place)
    """,
    "gradients": """
        runtime.zeros(2, requires_grad=True).requires_grad
        runtime.ones(2, 3, requires_grad=b).requires_grad
        runtime.full((2, 3), 1.0, requires_grad=True).requires_grad
        runtime.arange(3, requires_grad=False)
        runtime.ones_like(x, requires_grad=True).requires_grad
        x.new_zeros(2, requires_grad=True).requires_grad
        x.clone().requires_grad_().requires_grad
        x.clone().requires_grad_(False).requires_grad
        x.is_leaf, x.grad, x.data
        (runtime.ones(2, requires_grad=True) * x).is_leaf
        (runtime.ones(2, requires_grad=True) * x).detach_().requires_grad
        x.real, x.itemsize, x.nbytes
        x.is_signed(), m.is_signed(), x.retains_grad, x.stride(0), x.stride(dim=-1)
        x.is_inference(), runtime.is_inference(x)
        x.retain_grad()
    """,
}
PARAMETERS = (
    "x: Tensor, y: Tensor, m: Tensor, v: Tensor, k: Tensor, s: Tensor, i: Tensor, "
    "at: Tensor, img: Tensor, w: Tensor, b: bool, place: str"
)


def arguments() -> list[Any]:
    tensor = runtime.tensor
    return [
        *(tensor([[1.55, -2.0], [3.0, 0.25]]), tensor([[0.5, 2.0], [-3.0, 1.0]])),
        *(tensor([[True, False], [False, True]]), tensor([1.0, 2.0, 3.0])),
        *(tensor([2, 1, 2, 3]), tensor(1.0), tensor([0, 1]), tensor([[0, 1], [1, 0]])),
        runtime.arange(32, dtype=runtime.float32).reshape(1, 2, 4, 4),
        *(runtime.arange(54.0).reshape(3, 2, 3, 3), True, "cpu"),
    ]


@pytest.mark.parametrize("name", FORMS)
def test_a_call_does_what_it_does_in_python(name: str) -> None:
    for form in filter(None, map(str.strip, FORMS[name].splitlines())):
        both = Both(f"def f({PARAMETERS}):\n    return {form}\n")
        python, ours = both.outcomes("f", *arguments())
        # Where Python has a tuple of unknown length, a script has a list.
        value = python.value.replace("tuple(", "list(")
        assert (ours.value.replace("tuple(", "list("), ours.arguments) == (
            value,
            python.arguments,
        ), form
        assert bool(ours.error) is bool(python.error), form
        if not ours.error:
            back = again(both.script["f"])
            assert outcome(back, arguments()).value == ours.value, form


def again(function: Function) -> Any:
    """Return what an archive of a function gives back."""
    archive = io.BytesIO()
    save(ScriptFunction(function), archive)
    archive.seek(0)
    return load(archive)


def test_what_decides_the_result_is_a_constant() -> None:
    both = "def f(x: Tensor, b: bool):\n    return runtime.unique(x, return_counts=b)\n"
    with pytest.raises(IllTyped, match="`return_counts` is not the constant True"):
        Both(both)


def test_a_program_runs_backwards() -> None:
    both = Both(
        "def f(x: Tensor):\n"
        "    before = x.grad\n"
        "    (x * x).sum().backward()\n"
        "    middle = x.grad\n"
        "    (x * 2).sum().backward()\n"
        "    return before is None, middle, x.grad\n"
    )
    results = []
    for run in (both.python["f"], lambda x: call(both.script["f"], (x,), {})):
        x = runtime.tensor([1.0, 3.0], requires_grad=True)
        is_none, *grads = run(x)
        assert is_none
        results.append([each.tolist() for each in grads])
    assert results[0] == results[1]


GRADIENTS = """
runtime.autograd.grad(y, x)
runtime.autograd.grad(y.sum(), [x], create_graph=True)
runtime.autograd.grad([y, y], x, [y, None], allow_unused=True)
runtime.autograd.grad([y], [x, z], [y * 2], True, allow_unused=True)
runtime.autograd.grad([y.sum()], [x, z], materialize_grads=True)
runtime.autograd.grad(y.sum(), z)
runtime.autograd.backward(y.sum())
runtime.autograd.backward([y, y.sum()], [y, None])
runtime.autograd.backward(y, grad_tensors=y, retain_graph=True)
"""


@pytest.mark.parametrize("form", GRADIENTS.strip().splitlines())
def test_gradients_of_a_program_are_those_of_python(form: str) -> None:
    both = Both(
        "def f(x: Tensor, z: Tensor):\n"
        "    y = x * x\n"
        "    y.retain_grad()\n"
        f"    found = {form}\n"
        "    return found, x.grad, y.grad, y.retains_grad\n"
    )
    results = []
    for run in (both.python["f"], lambda *given: call(both.script["f"], given, {})):
        x, z = (runtime.tensor([1.0], requires_grad=True) for _ in "xz")
        results.append(outcome(lambda: run(x, z), ()))  # noqa: B023  # called at once
    python, ours = (replace(each, error=each.error[:20]) for each in results)
    # Where Python has a tuple of unknown length, a script has a list.
    assert ours.value == python.value.replace("tuple(tuple(", "tuple(list(")
    assert ours.error == python.error


def draw(n: int) -> Tensor:
    runtime.manual_seed(n)
    return runtime.rand(3)


def test_a_seed_decides_the_numbers_of_a_script() -> None:
    scripted = script(draw)
    assert scripted(7).tolist() == draw(7).tolist() == scripted(7).tolist()
    assert scripted(8).tolist() != draw(7).tolist()
