"""Scopes: which variables the parts of a function read and assign, and its exits.

    Exits     for each statement: whether it may end behind itself, or by `return`,
              `break`, `continue` or `raise`
    Names     the variables that a part reads, assigns, and takes away by `del`, each
              with its first place
    mangled   what Python makes of a private name in a class

Rules of exits:
- what is said is what may happen, whatever the values are; of conditions only the
  constants True and False, and what `taken` decides, are looked at;
- any call may raise: `RAISE` is about `raise` and `assert` alone;
- `with` lets exceptions pass, whatever `__exit__` returns;
- a loop takes `break` and `continue` of its body to itself.

Rules of names:
- everything is in the order of the text, in dictionaries: never in sets;
- the variables of a comprehension are its own, and those of a function in a function;
- a name that is declared `global` or `nonlocal` is no variable of the function;
- annotations, decorators and defaults of functions read nothing.

Blocks are as deep as `runtime.script.frontend.language` allows at most: both recurse.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any

# Whether the body of a condition is what runs: yes, no, or only the values tell.
Taken = Callable[[ast.expr], bool | None]


class Exit(Flag):
    """The ways in which control may leave a part of a program."""

    NOWHERE = 0
    NEXT = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()
    RAISE = auto()


# The ways that skip what stands behind, and need a flag.
JUMPS = Exit.RETURN | Exit.BREAK | Exit.CONTINUE
_LOOP = Exit.BREAK | Exit.CONTINUE


def constant(test: ast.expr) -> bool | None:
    """What a condition is that is a constant, or `not` of one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(test.operand)
        return None if inner is None else not inner
    return bool(test.value) if isinstance(test, ast.Constant) else None


class Exits:
    """The exits of all statements of some, by the statement."""

    __slots__ = ("_of", "_taken")

    def __init__(self, body: Sequence[ast.stmt], taken: Taken = constant) -> None:
        self._taken = taken
        self._of: dict[ast.stmt, Exit] = {}
        self._block(body)

    def of(self, statement: ast.stmt) -> Exit:
        """How control may leave a statement.

        Raises:
            KeyError: it is none of those that were looked at.
        """
        return self._of[statement]

    def _block(self, body: Sequence[ast.stmt]) -> Exit:
        found = Exit.NEXT
        for each in body:
            one = self._of[each] = self._statement(each)
            if Exit.NEXT in found:
                found = (found & ~Exit.NEXT) | one
        return found

    def _statement(self, node: ast.stmt) -> Exit:
        if isinstance(node, ast.Return):
            return Exit.RETURN
        if isinstance(node, ast.Raise):
            return Exit.RAISE
        if isinstance(node, ast.Break):
            return Exit.BREAK
        if isinstance(node, ast.Continue):
            return Exit.CONTINUE
        if isinstance(node, ast.Assert):
            return self._assert(node)
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.While):
            return self._loop(node.body, self._taken(node.test))
        if isinstance(node, ast.For):
            return self._loop(node.body, None)
        if isinstance(node, ast.With):
            return self._block(node.body)
        return Exit.NEXT

    def _assert(self, node: ast.Assert) -> Exit:
        holds = self._taken(node.test)
        if holds is None:
            return Exit.NEXT | Exit.RAISE
        return Exit.NEXT if holds else Exit.RAISE

    def _if(self, node: ast.If) -> Exit:
        holds = self._taken(node.test)
        # Both are looked at, since what is in them is asked for, too.
        first, second = self._block(node.body), self._block(node.orelse)
        if holds is None:
            return first | second
        return first if holds else second

    def _loop(self, body: Sequence[ast.stmt], enters: bool | None) -> Exit:
        inside = self._block(body)
        if enters is False:
            return Exit.NEXT
        ends = enters is None or Exit.BREAK in inside
        out = inside & ~_LOOP & ~Exit.NEXT
        return out | (Exit.NEXT if ends else Exit.NOWHERE)


Comprehension = ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp
Function = ast.FunctionDef | ast.AsyncFunctionDef
Places = dict[str, ast.AST]
# Fields of nodes that read nothing when the part runs.
_ASIDE = frozenset({"annotation", "returns", "decorator_list"})


@dataclass(slots=True)
class Names:
    """The variables of a part of a program."""

    reads: Places = field(default_factory=dict)
    writes: Places = field(default_factory=dict)
    deletes: Places = field(default_factory=dict)


def mangled(name: str, owner: str) -> str:
    """The name that Python makes of `name` in the body of a class, or `name`."""
    stripped = owner.lstrip("_")
    private = name.startswith("__") and not name.endswith("__") and "." not in name
    return f"_{stripped}{name}" if private and stripped else name


def parameters(node: Function) -> Iterator[ast.arg]:
    """The parameters of a function in their order."""
    every = node.args
    yield from every.posonlyargs
    yield from every.args
    if every.vararg is not None:
        yield every.vararg
    yield from every.kwonlyargs
    if every.kwarg is not None:
        yield every.kwarg


def names(*parts: ast.AST) -> Names:
    """What parts of a program read, write and delete, in the order of the text."""
    found = Names()
    for part in parts:
        _collect(part, found)
    return found


def declared_outside(node: Function) -> Places:
    """The names that a function declares `global` or `nonlocal`."""
    found: Places = {}
    stack: list[ast.AST] = [*reversed(node.body)]
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Global | ast.Nonlocal):
            for name in each.names:
                found.setdefault(name, each)
        elif isinstance(each, ast.stmt) and not isinstance(
            each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            stack += reversed([*ast.iter_child_nodes(each)])
    return found


class Scopes:
    """The exits and names of a function, and of each statement in it.

    `variables` are all that the function assigns, parameters first, with the first
    place of each.
    """

    __slots__ = ("_names", "exits", "variables")

    def __init__(self, function: Function, taken: Taken = constant) -> None:
        self.exits = Exits(function.body, taken)
        self.variables: Places = {each.arg: each for each in parameters(function)}
        self._names: dict[ast.stmt, Names] = {}
        body, outside = names(*function.body), declared_outside(function)
        # In Python `del` alone makes a variable, too.
        for name, place in sorted(
            [*body.writes.items(), *body.deletes.items()], key=_position
        ):
            if name not in outside:
                self.variables.setdefault(name, place)

    def of(self, statement: ast.stmt) -> Names:
        """The names of a statement, with all that is in it."""
        known = self._names.get(statement)
        if known is None:
            known = self._names[statement] = names(statement)
        return known


def _position(item: tuple[str, ast.AST]) -> tuple[int, int]:
    place: Any = item[1]
    return place.lineno, place.col_offset


def _collect(node: ast.AST, found: Names) -> None:
    """Add what a node and those in it read, write and delete."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Del):
            found.deletes.setdefault(node.id, node)
        elif isinstance(node.ctx, ast.Store):
            found.writes.setdefault(node.id, node)
        else:
            found.reads.setdefault(node.id, node)
        return
    if isinstance(node, Comprehension):
        _comprehension(node, found)
        return
    if isinstance(node, Function):
        found.writes.setdefault(node.name, node)
        _function(node, found)
        return
    if isinstance(node, ast.ClassDef):
        found.writes.setdefault(node.name, node)
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.reads.setdefault(node.target.id, node.target)
    for name, value in ast.iter_fields(node):
        if name in _ASIDE:
            continue
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.AST):
                _collect(each, found)


def comprehension_targets(node: Comprehension) -> Places:
    """The variables of a comprehension."""
    return names(*(each.target for each in node.generators)).writes


def _comprehension(node: Comprehension, found: Names) -> None:
    """Add what a comprehension reads of others."""
    own = comprehension_targets(node)
    first = node.generators[0].iter
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else (value,):
            for part in (
                [each] if name != "generators" else [*ast.iter_child_nodes(each)]
            ):
                if part is first:
                    # Python computes it before the comprehension has variables.
                    _collect(part, found)
                else:
                    inner = Names()
                    _collect(part, inner)
                    _include_free(inner, own, found)


def _include_free(inner: Names, own: Mapping[str, ast.AST], found: Names) -> None:
    """Add what a part with variables of its own reads of others."""
    for name, place in inner.reads.items():
        if name not in own:
            found.reads.setdefault(name, place)


def _function(node: Function, found: Names) -> None:
    """Add what a function in a function reads of the one around it."""
    inner = Names()
    for each in node.body:
        _collect(each, inner)
    own: Places = {each.arg: each for each in parameters(node)}
    outside = declared_outside(node)
    own.update({name: at for name, at in inner.writes.items() if name not in outside})
    _include_free(inner, own, found)
