"""Scopes: variables of a function, its exits, and uses that may come before a value.

    Exits     for each statement: whether it may end behind itself, or by `return`,
              `break`, `continue` or `raise`
    Names     the variables that a part reads, assigns, and takes away by `del`, each
              with its first place
    Absence   how a variable comes to have no value where it is used: Python finds out
              when it runs; a graph has to know before
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

Rules of absence:
- told is the last cause on the way to the use: the branch without an assignment, the
  loop that may not run, the `del`;
- what is no variable of the function is not looked at here: it is looked up where the
  function was written.

Blocks are as deep as `runtime.script.frontend.language` allows at most: all recurse.
For absences, a state has an `Absence` for each variable that may have no value; it goes
forward through the statements, which change it, and what meets is joined.  A loop is
gone through until nothing changes, at most once more for each variable that it deletes;
what is behind it is remembered for each state that comes to it.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, NamedTuple

from everyorder.runtime.errors.script import UnknownName
from everyorder.runtime.errors.source import Source
from everyorder.runtime.script.frontend.language import place_of

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
# Statements that control leaves in one way only.
_EXITS: Mapping[type[ast.stmt], Exit] = {
    ast.Return: Exit.RETURN,
    ast.Raise: Exit.RAISE,
    ast.Break: Exit.BREAK,
    ast.Continue: Exit.CONTINUE,
}


def constant(test: ast.expr) -> bool | None:
    """The truth of a condition that is a constant, or `not` of one; else None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(test.operand)
        return None if inner is None else not inner
    return bool(test.value) if isinstance(test, ast.Constant) else None


class Exits:
    """The exits of all statements of some, by the statement."""

    __slots__ = ("_taken", "_ways")

    def __init__(self, body: Sequence[ast.stmt], taken: Taken = constant) -> None:
        self._taken = taken
        self._ways: dict[ast.stmt, Exit] = {}
        self._block(body)

    def ways(self, statement: ast.stmt) -> Exit:
        """The ways in which control may leave a statement.

        Raises:
            KeyError: it is none of those that were looked at.
        """
        return self._ways[statement]

    def _block(self, body: Sequence[ast.stmt]) -> Exit:
        found = Exit.NEXT
        for each in body:
            one = self._ways[each] = self._statement(each)
            if Exit.NEXT in found:
                found = (found & ~Exit.NEXT) | one
        return found

    def _statement(self, node: ast.stmt) -> Exit:
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
        return _EXITS.get(type(node), Exit.NEXT)

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
class ScopeNames:
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


def names(*parts: ast.AST) -> ScopeNames:
    """The names that parts of a program read, write and delete, in their order."""
    found = ScopeNames()
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
        self._names: dict[ast.stmt, ScopeNames] = {}
        body, outside = names(*function.body), declared_outside(function)
        # In Python `del` alone makes a variable, too.
        for name, place in sorted(
            [*body.writes.items(), *body.deletes.items()], key=_position
        ):
            if name not in outside:
                self.variables.setdefault(name, place)

    def names(self, statement: ast.stmt) -> ScopeNames:
        """The names of a statement, with all that is in it."""
        known = self._names.get(statement)
        if known is None:
            known = self._names[statement] = names(statement)
        return known


def _position(item: tuple[str, ast.AST]) -> tuple[int, int]:
    place: Any = item[1]
    return place.lineno, place.col_offset


def _collect(node: ast.AST, found: ScopeNames) -> None:
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


def _comprehension(node: Comprehension, found: ScopeNames) -> None:
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
                    inner = ScopeNames()
                    _collect(part, inner)
                    _include_free(inner, own, found)


def _include_free(
    inner: ScopeNames, own: Mapping[str, ast.AST], found: ScopeNames
) -> None:
    """Add what a part with variables of its own reads of others."""
    for name, place in inner.reads.items():
        if name not in own:
            found.reads.setdefault(name, place)


def _function(node: Function, found: ScopeNames) -> None:
    """Add what a function in a function reads of the one around it."""
    inner = ScopeNames()
    for each in node.body:
        _collect(each, inner)
    own: Places = {each.arg: each for each in parameters(node)}
    outside = declared_outside(node)
    own.update({name: at for name, at in inner.writes.items() if name not in outside})
    _include_free(inner, own, found)


class Absence(NamedTuple):
    """The way on which a variable has no value, and the statement that is the cause."""

    way: str
    cause: ast.stmt | None


# The variables that may have no value.
State = dict[str, Absence]

NOT_YET = Absence("before it is used", None)
_TRUE, _FALSE = "in the true branch", "in the false branch"
_EMPTY = "where the loop does not run"
_BREAK = "where `break` leaves the loop"
_DELETED = "behind `del`"


def absences(function: Function, taken: Taken = constant) -> Mapping[ast.Name, Absence]:
    """The uses of variables of a function that may have no value there, in order."""
    walk = _Pass(Scopes(function, taken), taken)
    given = {each.arg for each in parameters(function)}
    start = {name: NOT_YET for name in walk.scopes.variables if name not in given}
    walk.block(function.body, start)
    places = sorted(walk.absences, key=lambda each: (each.lineno, each.col_offset))
    return {each: walk.absences[each] for each in places}


def not_defined(use: ast.Name, absence: Absence, source: Source) -> UnknownName:
    """The error about a use of a variable without a value."""
    cause = absence.cause
    return UnknownName(
        code="NotDefined",
        source=source,
        span=source.span(use),
        variable=use.id,
        way=absence.way,
        cause=None if cause is None else place_of(cause, source),
    )


class _LoopScopes(NamedTuple):
    """The states at `break` and `continue` of a loop."""

    node: ast.For | ast.While
    breaks: list[State]
    continues: list[State]


class _Pass:
    """One way forward through a function."""

    __slots__ = ("_behind", "_loops", "_taken", "absences", "scopes")

    def __init__(self, scopes: Scopes, taken: Taken) -> None:
        self.scopes = scopes
        self.absences: dict[ast.Name, Absence] = {}
        self._taken = taken
        self._loops: list[_LoopScopes] = []
        self._behind: dict[tuple[object, ...], State | None] = {}

    def block(self, body: Sequence[ast.stmt], state: State | None) -> State | None:
        """The state behind statements, None if control does not come there.

        The state that is given is changed.
        """
        for each in body:
            if state is None:
                break
            state = self._statement(each, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        if isinstance(node, ast.If):
            return self._if(node, state)
        if isinstance(node, ast.While):
            return self._while(node, state)
        if isinstance(node, ast.For):
            self._read(node.iter, state)
            return self._loop(node, state, node.target, None)
        if isinstance(node, ast.With):
            return self._with(node, state)
        if isinstance(node, ast.Delete):
            return self._delete(node, state)
        if isinstance(node, Function | ast.ClassDef):
            for place in names(node).reads.values():
                self._use(place, state)
            state.pop(node.name, None)
            return state
        if isinstance(node, ast.Break):
            loop = self._loops[-1]
            loop.breaks.append(self._left(node, loop.node, state, _BREAK))
            return None
        if isinstance(node, ast.Continue):
            self._loops[-1].continues.append(dict(state))
            return None
        if isinstance(node, ast.Assign):
            self._read(node.value, state)
            for target in node.targets:
                self._assign(target, state)
            return state
        # What is read is read before anything is assigned.
        for each in ast.iter_child_nodes(node):
            if not isinstance(node, ast.AnnAssign) or each is not node.annotation:
                self._read(each, state)
        if isinstance(node, ast.AugAssign):
            self._use(node.target, state)
        if isinstance(node, ast.Return | ast.Raise):
            return None
        if isinstance(node, ast.Assert) and self._taken(node.test) is False:
            return None
        return _assigned(state, names(node).writes)

    def _assign(self, target: ast.expr, state: State) -> None:
        """Assign from left to right: `a, a[0] = b` asks for the new `a`."""
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self._assign(each, state)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, state)
        else:
            self._read(target, state)
            _assigned(state, names(target).writes)

    def _if(self, node: ast.If, state: State) -> State | None:
        self._read(node.test, state)
        holds = self._taken(node.test)
        if holds is not None:
            return self.block(node.body if holds else node.orelse, state)
        first = self.block(node.body, dict(state))
        second = self.block(node.orelse, dict(state))
        if first is None or second is None:
            return second if first is None else first
        joined: State = {}
        for name, one in first.items():
            joined[name] = (
                one if name in second else _cause(name, one, state, _TRUE, node)
            )
        for name, one in second.items():
            if name not in first:
                joined[name] = _cause(name, one, state, _FALSE, node)
        return joined

    def _while(self, node: ast.While, state: State) -> State | None:
        holds = self._taken(node.test)
        if holds is False:
            self._read(node.test, state)
            return state
        return self._loop(node, state, node.test, holds)

    def _loop(
        self,
        node: ast.For | ast.While,
        before: State,
        head: ast.expr,
        enters: bool | None,
    ) -> State | None:
        """The state behind a loop; `head` is read, or assigned, before each time."""
        key = node, tuple(before.items())
        if key not in self._behind:
            self._behind[key] = self._through(node, before, head, enters)
        behind = self._behind[key]
        return None if behind is None else dict(behind)

    def _through(
        self,
        node: ast.For | ast.While,
        before: State,
        head: ast.expr,
        enters: bool | None,
    ) -> State | None:
        while True:
            loop = _LoopScopes(node, [], [])
            self._loops.append(loop)
            self._read(head, before)
            start = _assigned(dict(before), names(head).writes)
            ends = [self.block(node.body, start), *loop.continues]
            self._loops.pop()
            joined = dict(before)
            for each in ends:
                joined = _either(joined, each)
            if joined == before:
                break
            before = joined
        behind = None if enters else self._left(node, node, before, _EMPTY)
        for each in loop.breaks:
            behind = each if behind is None else _either(behind, each)
        return behind

    def _left(
        self, cause: ast.stmt, loop: ast.For | ast.While, state: State, way: str
    ) -> State:
        """The state where a loop is left: what it assigns has a cause of its own."""
        writes = self.scopes.names(loop).writes
        return {
            name: Absence(way, cause) if one is NOT_YET and name in writes else one
            for name, one in state.items()
        }

    def _with(self, node: ast.With, state: State) -> State | None:
        for item in node.items:
            self._read(item.context_expr, state)
            if item.optional_vars is not None:
                _assigned(state, names(item.optional_vars).writes)
        return self.block(node.body, state)

    def _delete(self, node: ast.Delete, state: State) -> State:
        for target in node.targets:
            self._read(target, state)
            if isinstance(target, ast.Name) and target.id in self.scopes.variables:
                self._use(target, state)
                state[target.id] = Absence(_DELETED, node)
        return state

    def _read(
        self, node: ast.AST, state: State, own: Mapping[str, ast.AST] | None = None
    ) -> None:
        """Tell the reads of variables without a value, but for those of `own`."""
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in (own or ()):
                self._use(node, state)
            return
        if isinstance(node, Comprehension):
            self._read(node.generators[0].iter, state, own)
            own = {**(own or {}), **comprehension_targets(node)}
        parts = [*ast.iter_child_nodes(node)]
        if isinstance(node, ast.IfExp):
            holds = self._taken(node.test)
            if holds is not None:
                parts = [node.test, node.body if holds else node.orelse]
        first = None
        if isinstance(node, Comprehension):
            first = node.generators[0].iter
            parts = [
                part
                for each in parts
                for part in (
                    ast.iter_child_nodes(each)
                    if isinstance(each, ast.comprehension)
                    else (each,)
                )
            ]
        for each in parts:
            if each is not first:
                self._read(each, state, own)

    def _use(self, node: ast.AST, state: State) -> None:
        if isinstance(node, ast.Name) and node.id in state:
            self.absences.setdefault(node, state[node.id])


def _cause(name: str, one: Absence, before: State, way: str, node: ast.If) -> Absence:
    """The absence of a variable without a value in one branch.

    That is the branch, unless something in it is the cause.
    """
    return one if before.get(name) is not one else Absence(way, node)


def _either(first: State, second: State | None) -> State:
    """The variables that may have no value on one of two ways."""
    return first if second is None else {**second, **first}


def _assigned(state: State, writes: Mapping[str, ast.AST]) -> State:
    """The state, in which what is assigned has values from now on."""
    for name in writes:
        state.pop(name, None)
    return state
