"""Absence: variables that may have no value where they are used, and why.

A use of a function's own variable may come before a value is there. Python finds out
when it runs; a graph has to know before.

Rules:
- a way that a part of the program goes is one that it may go: of conditions only what
  `taken` decides is looked at (see `runtime.script.frontend.scopes`);
- told is the last cause on the way to the use: the branch without an assignment, the
  loop that may not run, the `del`;
- what is no variable of the function is not looked at here: it is looked up where the
  function was written.

A state has an `Absence` for each variable that may have no value; it goes
forward through the statements, which change it, and what meets is joined.  A loop is
gone through until nothing changes, at most once more for each variable that it deletes;
what is behind it is remembered for each state that comes to it.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runtime.errors.script import UnknownName
from runtime.errors.source import Source
from runtime.script.frontend.language import place_of
from runtime.script.frontend.scopes import (
    Comprehension,
    Function,
    Scopes,
    Taken,
    comprehension_targets,
    constant,
    names,
    parameters,
)


class Absence(NamedTuple):
    """How a variable comes to have no value, and the statement that is the cause."""

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


class _Loop(NamedTuple):
    """What is collected of a loop while its body is gone through."""

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
        self._loops: list[_Loop] = []
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
            loop = _Loop(node, [], [])
            self._loops.append(loop)
            self._read(head, before)
            start = _assigned(dict(before), names(head).writes)
            ends = [self.block(node.body, start), *loop.continues]
            self._loops.pop()
            again = dict(before)
            for each in ends:
                again = _either(again, each)
            if again == before:
                break
            before = again
        behind = None if enters else self._left(node, node, before, _EMPTY)
        for each in loop.breaks:
            behind = each if behind is None else _either(behind, each)
        return behind

    def _left(
        self, cause: ast.stmt, loop: ast.For | ast.While, state: State, way: str
    ) -> State:
        """The state where a loop is left: what it assigns has a cause of its own."""
        writes = self.scopes.of(loop).writes
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
    """What is told of a variable without a value in one branch.

    That is the branch, unless something in it is the cause.
    """
    return one if before.get(name) is not one else Absence(way, node)


def _either(first: State, second: State | None) -> State:
    """What may have no value on one of two ways."""
    return first if second is None else {**second, **first}


def _assigned(state: State, writes: Mapping[str, ast.AST]) -> State:
    """The state, in which what is assigned has values from now on."""
    for name in writes:
        state.pop(name, None)
    return state
