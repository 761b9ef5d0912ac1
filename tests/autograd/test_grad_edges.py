# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""An argument's edge and a result's history: the functions, and the text of kernels."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime import Tensor, inference_mode, no_grad, tensor
from everyorder.runtime.autograd import Node
from everyorder.runtime.autograd.grad_edges import (
    HISTORY_NAMES,
    edge_of,
    edge_text,
    edges_of,
    result_text,
    with_histories,
    with_history,
)
from everyorder.runtime.base.codegen import block, generated
from everyorder.runtime.errors.autograd import WriteRefused
from tests.autograd.made import leaf
from tests.coded import code

KIND = "edges and histories"


def written_view() -> Tensor:
    base = leaf(1, 2, 3) * 1
    view = base[1:]
    base.mul_(2)
    return view


ARGUMENTS: dict[str, Callable[[], Tensor]] = {
    "a leaf of which nothing was asked": lambda: leaf(1, 2),
    "a leaf with a hook": lambda: hooked(leaf(1, 2)),
    "an output": lambda: leaf(1, 2) * 2,
    "the second output": lambda: leaf(1, 2, 3).split(2)[1],
    "a view of a leaf": lambda: leaf(1, 2)[1:],
    "a view of an output": lambda: (leaf(1, 2) * 2).view(2, 1),
    "a view of what was written to": written_view,
    "a view that was written to": lambda: (leaf(1, 2) * 2)[1:].mul_(3),
    "an output written in place": lambda: (leaf(1, 2) * 2).mul_(3),
}


def hooked(tensor: Tensor) -> Tensor:
    tensor.register_hook(lambda gradient: None)
    return tensor


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_text_of_an_edge_agrees(kind: str) -> None:
    lines = ["mask = 4", *edge_text(0, 3, "a0._requires_grad"), "return e0, mask"]
    by_text = generated(KIND, block("def edge(a0):", lines), HISTORY_NAMES)
    argument = ARGUMENTS[kind]()
    edge = edge_of(argument)
    assert by_text(argument) == (edge, 12)
    assert edges_of([argument, None, tensor([1.0]), 7]) == [edge, None, None, None]
    assert by_text(tensor([1.0])) == (None, 4)
    # Asked first of another one, too.
    (node, number), _ = by_text(ARGUMENTS[kind]())
    assert (type(node), node.name(), number) == (type(edge[0]), edge[0].name(), edge[1])


def test_the_text_refuses_a_view_that_cannot_follow() -> None:
    lines = ["mask = 0", *edge_text(0, 0, "True"), "return e0"]
    by_text = generated(KIND, block("def edge(a0):", lines), HISTORY_NAMES)
    base = leaf(1, 2, 3) * 1
    first, _ = base.split(2)
    base.mul_(2)
    for ask in (by_text, edge_of):
        with pytest.raises(WriteRefused, check=code("ViewModified")):
            ask(first)


def untracked() -> Tensor:
    with inference_mode():
        return tensor([1.0])


def no_follower() -> Tensor:
    with no_grad():
        return leaf(1, 2)[1:]


RESULTS: dict[str, Callable[[], Tensor]] = {
    "a new tensor": lambda: tensor([1.0]),
    "a complex one": lambda: tensor([1j]),
    "integers": lambda: tensor([1]),
    "flags": lambda: tensor([True]),
    "an inference tensor": untracked,
    "a leaf that requires grad": lambda: leaf(1),
    "a leaf of which something was asked": lambda: hooked(leaf(1)),
    "an output of another node": lambda: leaf(1) * 2,
    "a view without a node": lambda: tensor([1.0, 2.0])[1:],
    "a view made in no_grad": no_follower,
    "a view that is an output": lambda: (leaf(1, 2) * 2)[1:],
}


def description(result: Tensor, given: Tensor, node: Node) -> Any:
    """What became of a result, in comparable parts."""
    history = result._history
    parts: tuple[Any, ...] = ()
    if history is not None:
        parts = history.node is node, history.number, history.view is not None
    known = given._history
    before = None if known is None else known.node is node
    shares = result.storage() is given.storage()
    return result is given, shares, result.requires_grad, parts, before


@pytest.mark.parametrize("kind", RESULTS)
def test_the_text_of_a_result_agrees(kind: str) -> None:
    text = ["dtype = result._dtype", *result_text(), "return result"]
    by_text = generated(KIND, block("def give(result, node):", text), HISTORY_NAMES)
    found = []
    for give in (by_text, with_history):
        node, given = Node([], ()), RESULTS[kind]()
        result = give(given, node)
        found.append(description(result, given, node))
        differentiable = given.is_floating_point() or given.is_complex()
        assert (result.grad_fn is node) is differentiable
        if give is by_text and differentiable:
            assert node.metas == ((result.shape, result.dtype, result.device),)
    assert found[0] == found[1]


def test_the_results_of_a_call() -> None:
    """What is no tensor, or constant, is left alone; all are told to the node."""
    node = Node([], ())
    given = [tensor([1.0]), None, 7, tensor([1]), tensor([2.0]), leaf(3)]
    results = with_histories(given, node, {4})
    assert [each is old for each, old in zip(results, given, strict=True)] == [
        *(True, True, True, True, True, False)
    ]
    assert [getattr(each, "grad_fn", None) is node for each in results] == [
        *(True, False, False, False, False, True)
    ]
    assert results[5]._history.number == 5
    assert [meta and meta[0] for meta in node.metas] == [
        *((1,), None, None, (1,), (1,), (1,))
    ]


def test_somebody_s_leaf_stays_a_leaf() -> None:
    """A kernel that returns what it keeps gives another tensor on its elements."""
    from everyorder.runtime import Library, ops

    kept = leaf(1, 2)
    with Library("kept", "DEF") as library:
        library.define("same(Tensor x) -> Tensor")
        library.impl("same", lambda x: kept, "CPU")
        result = ops.kept.same(leaf(1, 2))
    assert kept.is_leaf
    assert not result.is_leaf
    assert result.data_ptr() == kept.data_ptr()
