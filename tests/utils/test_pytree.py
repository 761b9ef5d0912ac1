"""Trees: taken apart, put together, mapped."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.utils import _pytree as tree

Point = namedtuple("Point", "x y")  # as programs write it
LEAVES = st.none() | st.integers() | st.text(max_size=2)
TREES: Any = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.tuples(inner, inner).map(lambda pair: Point(*pair))
        | st.lists(inner, max_size=3).map(lambda given: deque(given, 5))
    ),
    max_leaves=12,
)


@given(TREES)
def test_a_tree_is_put_together_as_it_was(given_tree: Any) -> None:
    leaves, spec = tree.tree_flatten(given_tree)
    again = tree.tree_unflatten(leaves, spec)
    assert (type(again), again) == (type(given_tree), given_tree)
    assert spec.num_leaves == len(leaves)
    assert tree.tree_structure(again) == spec


@given(TREES)
def test_mapping_keeps_the_structure(given_tree: Any) -> None:
    mapped = tree.tree_map(lambda leaf: [leaf], given_tree)
    assert tree.tree_leaves(mapped, is_leaf=lambda t: isinstance(t, list)) is not None
    back = tree.tree_map(lambda leaf, other: (leaf, other), given_tree, given_tree)
    pairs = tree.tree_leaves(back)
    assert pairs[::2] == pairs[1::2] == tree.tree_leaves(given_tree)


def test_the_kinds_of_nodes() -> None:
    counts: Any = defaultdict(int, a=1)
    found = tree.tree_map(
        lambda x: x + 1,
        {"list": [1, (2,)], "ordered": OrderedDict(b=1, a=2), "counts": counts},
    )
    assert found == {
        "list": [2, (3,)],
        "ordered": OrderedDict(b=2, a=3),
        "counts": {"a": 2},
    }
    assert found["counts"].default_factory is int
    assert [*found["ordered"]] == ["b", "a"]


def test_none_and_sets_are_leaves() -> None:
    assert tree.tree_leaves([None, {1}, "text"]) == [None, {1}, "text"]
    assert tree.tree_structure(3).is_leaf()


def test_only_some_leaves() -> None:
    given_tree = [1, "a", (2.5, None)]
    assert tree.tree_map_only(int, str, given_tree) == ["1", "a", (2.5, None)]
    assert tree.tree_map_only((int, float), str, given_tree) == [
        "1",
        "a",
        ("2.5", None),
    ]
    assert tree.tree_map_only(lambda x: x is None, repr, given_tree)[2] == (2.5, "None")
    assert tree.tree_any(lambda x: x == "a", given_tree)
    assert not tree.tree_all(lambda x: x == "a", given_tree)
    seen: list[Any] = []
    assert tree.tree_map_(seen.append, given_tree) is given_tree
    assert seen == [1, "a", 2.5, None]


class Pair:
    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


def test_a_class_becomes_a_node_once() -> None:
    apart = lambda pair: ((pair.left, pair.right), None)  # noqa: E731
    again = lambda children, _: Pair(*children)  # noqa: E731
    with tree.register_pytree_node(Pair, apart, again):
        mapped = tree.tree_map(str, [Pair(1, (2,))])[0]
        assert (mapped.left, mapped.right) == ("1", ("2",))
        with pytest.raises(UnfitValue, match="Pair"):
            tree.register_pytree_node(Pair, apart, again)
    pair = Pair(1, 2)
    assert tree.tree_flatten(pair)[0] == [pair]


def test_what_does_not_fit() -> None:
    _, spec = tree.tree_flatten([1, 2])
    with pytest.raises(UnfitValue, match="3 leaves"):
        tree.tree_unflatten([1, 2, 3], spec)
    with pytest.raises(UnfitValue, match="another structure"):
        tree.tree_map(max, [1, 2], (1, 2))


@cache
def torch_trees() -> Any:
    return pytest.importorskip("torch").utils._pytree


@pytest.mark.torch
@given(TREES)
def test_leaves_are_those_of_torch(given_tree: Any) -> None:
    other = torch_trees()
    assert tree.tree_leaves(given_tree) == other.tree_leaves(given_tree)
