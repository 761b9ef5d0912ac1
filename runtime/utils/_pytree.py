"""Trees: nested lists, tuples and dicts, and their leaves.

Nodes are lists, tuples, named tuples, dicts, ordered and default dicts and deques, of
exactly these classes or registered ones; every other object is a leaf, including None.
A dict's children are in its own order.  An unflattened tree has the classes of the
flattened one; trees that are mapped together must have one structure.  The names are
torch's.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.errors.tensor import UnfitValue

Leaves = list[Any]
IsLeaf = Callable[[Any], bool]
# The children of a node, and the context that rebuilds it from them.
Apart = tuple[Iterable[Any], Any]


@dataclass(frozen=True, slots=True)
class TreeSpec:
    """The structure of a tree; a leaf has the kind None and no children."""

    kind: type | None
    context: Any
    children: tuple["TreeSpec", ...]

    @property
    def num_leaves(self) -> int:
        """Return the number of leaves of a tree of this structure."""
        if self.kind is None:
            return 1
        return sum(child.num_leaves for child in self.children)

    def is_leaf(self) -> bool:
        """Return True if the tree is a single leaf."""
        return self.kind is None


_LEAF = TreeSpec(None, None, ())


@dataclass(frozen=True, slots=True)
class _Node:
    apart: Callable[[Any], Apart]
    again: Callable[[Iterable[Any], Any], Any]


def _items(kind: Callable[..., Any]) -> _Node:
    """Return the node functions of a mapping that `kind` builds from pairs."""
    return _Node(
        lambda tree: (tree.values(), tuple(tree)),
        lambda children, keys: kind(zip(keys, children, strict=True)),
    )


_BUILT_IN: dict[type, _Node] = {
    list: _Node(lambda tree: (tree, None), lambda children, _: list(children)),
    tuple: _Node(lambda tree: (tree, None), lambda children, _: tuple(children)),
    deque: _Node(
        lambda tree: (tree, tree.maxlen), lambda children, most: deque(children, most)
    ),
    dict: _items(dict),
    OrderedDict: _items(OrderedDict),
    defaultdict: _Node(
        lambda tree: (tree.values(), (tree.default_factory, tuple(tree))),
        lambda children, context: defaultdict(
            context[0], zip(context[1], children, strict=True)
        ),
    ),
}
NODES: Registry[type, _Node] = Registry("nodes of trees", _BUILT_IN, permanent=True)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], Apart],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
) -> RegistryHandle:
    """Register a class as a node: `flatten_fn(tree)` returns (children, context).

    `close()` of the returned handle makes its instances leaves again.

    Raises:
        UnfitValue: the class is registered already.
    """
    try:
        return NODES.register(cls, _Node(flatten_fn, unflatten_fn), stacklevel=2)
    except AlreadyRegistered:
        raise UnfitValue(
            asked="register_pytree_node",
            found=f"the class {cls.__name__}",
            fits="a class that is not a node yet",
        ) from None


def _node_of(tree: Any) -> _Node | None:
    kind = type(tree)
    node = NODES.rows.get(kind)
    if node is None and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _Node(lambda tree: (tree, None), lambda children, _: kind(*children))
    return node


def _walk(tree: Any, is_leaf: IsLeaf | None, leaves: Leaves) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, context = node.apart(tree)
    specs = tuple([_walk(child, is_leaf, leaves) for child in children])
    return TreeSpec(type(tree), context, specs)


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[Leaves, TreeSpec]:
    """Return the leaves of a tree, in order, and its structure."""
    leaves: Leaves = []
    return leaves, _walk(tree, is_leaf, leaves)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return the tree of a structure with these leaves.

    Raises:
        UnfitValue: the number of leaves is not that of the structure.
    """
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise UnfitValue(
            asked="tree_unflatten",
            found=f"{len(values)} leaves",
            fits=f"{treespec.num_leaves}, as the structure has",
        )
    return _built(treespec, iter(values))


def _built(spec: TreeSpec, leaves: Iterator[Any]) -> Any:
    if spec.kind is None:
        return next(leaves)
    children = [_built(child, leaves) for child in spec.children]
    node = NODES.rows.get(spec.kind)
    return spec.kind(*children) if node is None else node.again(children, spec.context)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> Leaves:
    """Return the leaves of a tree, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> TreeSpec:
    """Return the structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """Return a tree of the function's results for the leaves of `tree` and `rests`.

    Raises:
        UnfitValue: the structures differ.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves]
    for rest in rests:
        others, structure = tree_flatten(rest, is_leaf)
        if structure != spec:
            raise UnfitValue(
                asked="tree_map",
                found=f"a tree of {len(others)} leaves in another structure",
                fits=f"one of the first tree's structure, of {len(leaves)} leaves",
            )
        columns.append(others)
    return tree_unflatten([func(*each) for each in zip(*columns, strict=True)], spec)


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """Call the function for each leaf; return the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    kinds: type | tuple[type, ...] | Callable[[Any], bool],
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Map the leaves that are of these classes, or for which a predicate is true."""

    def changed(leaf: Any) -> Any:
        classes = isinstance(kinds, (type, tuple))
        chosen = isinstance(leaf, kinds) if classes else kinds(leaf)  # type: ignore[arg-type,operator]  # by `kinds`
        return func(leaf) if chosen else leaf

    return tree_map(changed, tree, is_leaf=is_leaf)


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Return True if the predicate is true of any leaf."""
    return any(map(pred, tree_leaves(tree)))


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Return True if the predicate is true of all leaves."""
    return all(map(pred, tree_leaves(tree)))
