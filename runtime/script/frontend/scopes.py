"""Scopes: variables of a function, its exits, and uses that may come before a value.

    Exits         for each statement: the ways in which it may end: normally, or by
                  `return`, `break`, `continue` or `raise`
    ScopeNames    the variables that a part reads, assigns, and deletes, each with its
                  first place
    Absence       the reason why a variable may be unassigned where it is used: Python
                  detects it at run time; a graph must know before
    mangled       Python's mangling of a private name in a class

Rules of exits:
- the result is every exit that is possible for some values; only conditions that are
  constant True or False, or that `branch_of` decides, exclude exits;
- any call may raise: `RAISE` stands only for `raise` and `assert`;
- `with` propagates exceptions, whatever `__exit__` returns;
- `break` and `continue` in the body of a loop are not exits of the loop.

Rules of names:
- all results are in the order of the text: dictionaries, never sets;
- variables of a comprehension, or of a nested function, are not variables of the
  function;
- a name that is declared `global` or `nonlocal` is not a variable of the function;
- names in annotations, decorators and defaults of functions are not reads.

Rules of absence:
- the reported cause is the last one on the way to the use: the branch without an
  assignment, the loop that may not run, the `del`;
- names that are not variables of the function are ignored here: they are looked up in
  the scope of the function.

`runtime.script.frontend.language` limits the nesting of blocks, so the walks recurse.
Absences are a forward data-flow analysis: a state has an `Absence` for each variable
that may be unassigned; statements change it, and states are joined where control flow
meets. A loop is repeated until nothing changes, at most once for each variable that it
deletes; its result is cached for each state before it.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any, NamedTuple

from everyorder.runtime.errors.script import UnknownName
from everyorder.runtime.errors.source import Source
from everyorder.runtime.script.frontend.language import place_of

# Returns True if the body of a condition runs, False if not, None if values decide.
Taken = Callable[[ast.expr], bool | None]


class Exit(Flag):
    """The ways in which control may leave a part of a program."""

    NOWHERE = 0
    NEXT = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()
    RAISE = auto()


# The exits that skip the following statements, and need a flag.
JUMPS = Exit.RETURN | Exit.BREAK | Exit.CONTINUE
_LOOP = Exit.BREAK | Exit.CONTINUE
# Statements that have exactly one exit.
_EXITS: Mapping[type[ast.stmt], Exit] = {
    ast.Return: Exit.RETURN,
    ast.Raise: Exit.RAISE,
    ast.Break: Exit.BREAK,
    ast.Continue: Exit.CONTINUE,
}


def constant(test: ast.expr) -> bool | None:
    """Return the truth of a constant condition, or of `not` of one; else None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(test.operand)
        return None if inner is None else not inner
    return bool(test.value) if isinstance(test, ast.Constant) else None


class Exits:
    """The exits of statements, by statement."""

    __slots__ = ("_taken", "_ways")

    def __init__(self, body: Sequence[ast.stmt], branch_of: Taken = constant) -> None:
        self._taken = branch_of
        self._ways: dict[ast.stmt, Exit] = {}
        self._block(body)

    def ways(self, statement: ast.stmt) -> Exit:
        """Return the ways in which control may leave a statement.

        Raises:
            KeyError: the statement is not part of the analysed body.
        """
        return self._ways[statement]

    def _block(self, body: Sequence[ast.stmt]) -> Exit:
        exits = Exit.NEXT
        for each in body:
            one = self._ways[each] = self._statement(each)
            if Exit.NEXT in exits:
                exits = (exits & ~Exit.NEXT) | one
        return exits

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
        # Analyse both branches, since their statements may be queried, too.
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
    """Return the name that Python makes of `name` in the body of a class, or `name`."""
    stripped = owner.lstrip("_")
    private = name.startswith("__") and not name.endswith("__") and "." not in name
    return f"_{stripped}{name}" if private and stripped else name


def parameters(node: Function) -> Iterator[ast.arg]:
    """Yield the parameters of a function in their order."""
    every = node.args
    yield from every.posonlyargs
    yield from every.args
    if every.vararg is not None:
        yield every.vararg
    yield from every.kwonlyargs
    if every.kwarg is not None:
        yield every.kwarg


def names(*parts: ast.AST) -> ScopeNames:
    """Return the names that parts of a program read, write and delete, in order."""
    result = ScopeNames()
    for part in parts:
        _collect(part, result)
    return result


def declared_outside(node: Function) -> Places:
    """Return the names that a function declares `global` or `nonlocal`."""
    places: Places = {}
    stack: list[ast.AST] = [*reversed(node.body)]
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Global | ast.Nonlocal):
            for name in each.names:
                places.setdefault(name, each)
        elif isinstance(each, ast.stmt) and not isinstance(
            each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            stack += reversed([*ast.iter_child_nodes(each)])
    return places


class Scopes:
    """The exits and names of a function, and of each statement in it.

    `variables` are all variables of the function, parameters first, with the first
    place of each.
    """

    __slots__ = ("_names", "exits", "variables")

    def __init__(self, function: Function, branch_of: Taken = constant) -> None:
        self.exits = Exits(function.body, branch_of)
        self.variables: Places = {each.arg: each for each in parameters(function)}
        self._names: dict[ast.stmt, ScopeNames] = {}
        body, outside = names(*function.body), declared_outside(function)
        # In Python `del` also creates a local variable.
        for name, place in sorted(
            [*body.writes.items(), *body.deletes.items()], key=_position
        ):
            if name not in outside:
                self.variables.setdefault(name, place)

    def names(self, statement: ast.stmt) -> ScopeNames:
        """Return the names of a statement, including nested ones."""
        statement_names = self._names.get(statement)
        if statement_names is None:
            statement_names = self._names[statement] = names(statement)
        return statement_names


def _position(item: tuple[str, ast.AST]) -> tuple[int, int]:
    place: Any = item[1]
    return place.lineno, place.col_offset


def _collect(node: ast.AST, into: ScopeNames) -> None:
    """Add the names that a node and its children read, write and delete."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Del):
            into.deletes.setdefault(node.id, node)
        elif isinstance(node.ctx, ast.Store):
            into.writes.setdefault(node.id, node)
        else:
            into.reads.setdefault(node.id, node)
        return
    if isinstance(node, Comprehension):
        _comprehension(node, into)
        return
    if isinstance(node, Function):
        into.writes.setdefault(node.name, node)
        _function(node, into)
        return
    if isinstance(node, ast.ClassDef):
        into.writes.setdefault(node.name, node)
        return
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        into.reads.setdefault(node.target.id, node.target)
    for name, value in ast.iter_fields(node):
        if name in _ASIDE:
            continue
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.AST):
                _collect(each, into)


def comprehension_targets(node: Comprehension) -> Places:
    """Return the variables of a comprehension."""
    return names(*(each.target for each in node.generators)).writes


def _comprehension(node: Comprehension, into: ScopeNames) -> None:
    """Add the outer variables that a comprehension reads."""
    own = comprehension_targets(node)
    first = node.generators[0].iter
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else (value,):
            for part in (
                [each] if name != "generators" else [*ast.iter_child_nodes(each)]
            ):
                if part is first:
                    # Python evaluates the first iterable outside of the comprehension's
                    # scope.
                    _collect(part, into)
                else:
                    inner = ScopeNames()
                    _collect(part, inner)
                    _include_free(inner, own, into)


def _include_free(
    inner: ScopeNames, own: Mapping[str, ast.AST], into: ScopeNames
) -> None:
    """Add the outer variables that a part with a nested scope reads."""
    for name, place in inner.reads.items():
        if name not in own:
            into.reads.setdefault(name, place)


def _function(node: Function, into: ScopeNames) -> None:
    """Add the outer variables that a nested function reads."""
    inner = ScopeNames()
    for each in node.body:
        _collect(each, inner)
    own: Places = {each.arg: each for each in parameters(node)}
    outside = declared_outside(node)
    own.update({name: at for name, at in inner.writes.items() if name not in outside})
    _include_free(inner, own, into)


class Absence(NamedTuple):
    """The path on which a variable is unassigned, and the statement that causes it."""

    way: str
    cause: ast.stmt | None


# The variables that may be unassigned.
State = dict[str, Absence]

NOT_YET = Absence("before it is used", None)
_TRUE, _FALSE = "in the true branch", "in the false branch"
_EMPTY = "where the loop does not run"
_BREAK = "where `break` leaves the loop"
_DELETED = "behind `del`"


def absences(
    function: Function, branch_of: Taken = constant
) -> Mapping[ast.Name, Absence]:
    """Return the uses of variables of a function that may be unassigned, in order."""
    walk = _Pass(Scopes(function, branch_of), branch_of)
    parameter_names = {each.arg for each in parameters(function)}
    start = {
        name: NOT_YET for name in walk.scopes.variables if name not in parameter_names
    }
    walk.block(function.body, start)
    places = sorted(walk.absences, key=lambda each: (each.lineno, each.col_offset))
    return {each: walk.absences[each] for each in places}


def not_defined(use: ast.Name, absence: Absence, source: Source) -> UnknownName:
    """Return the error about a use of an unassigned variable."""
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
    """One forward walk through a function."""

    __slots__ = ("_behind", "_loops", "_taken", "absences", "scopes")

    def __init__(self, scopes: Scopes, branch_of: Taken) -> None:
        self.scopes = scopes
        self.absences: dict[ast.Name, Absence] = {}
        self._taken = branch_of
        self._loops: list[_LoopScopes] = []
        self._behind: dict[tuple[object, ...], State | None] = {}

    def block(self, body: Sequence[ast.stmt], state: State | None) -> State | None:
        """Return the state after statements, None if control does not reach their end.

        The state argument is modified.
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
        # Reads happen before assignments.
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
        """Assign from left to right: `a, a[0] = b` uses the new `a`."""
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
        """Return the state after a loop; each trip first reads or assigns `head`."""
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
        """Return the state at an exit of a loop: variables it assigns have `cause`."""
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
        """Record the reads of unassigned variables, except those in `own`."""
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
    """Return the absence of a variable that is unassigned after one branch.

    The cause is the branch, unless a statement in it is.
    """
    return one if before.get(name) is not one else Absence(way, node)


def _either(first: State, second: State | None) -> State:
    """Return the variables that may be unassigned on either of two ways."""
    return first if second is None else {**second, **first}


def _assigned(state: State, writes: Mapping[str, ast.AST]) -> State:
    """Return the state after an assignment to `writes`."""
    for name in writes:
        state.pop(name, None)
    return state
