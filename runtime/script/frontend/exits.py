"""Exits: how control leaves a statement, and which statements it never reaches.

True only here: for each statement and each block, whether it may end behind itself, or
by `return`, `break`, `continue` or `raise`.  The emission makes flags of these facts,
because a graph has no jumps.

Rules:
- what is said is what may happen, whatever the values are; of conditions only the
  constants True and False, and what `taken` decides, are looked at;
- any call may raise: `RAISE` is about `raise` and `assert` alone;
- `with` lets exceptions pass, whatever `__exit__` returns;
- a loop takes `break` and `continue` of its body to itself.

How it works: one pass from the inner statements to the outer ones.  Blocks are at most
as deep as `runtime.script.frontend.language` allows, so it recurses.
"""

import ast
from collections.abc import Callable, Sequence
from enum import Flag, auto
from typing import NamedTuple

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


class Unreachable(NamedTuple):
    """A statement that control never reaches, and the one that it does not pass."""

    statement: ast.stmt
    behind: ast.stmt


def constant(test: ast.expr) -> bool | None:
    """What a condition is that is a constant, or `not` of one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(test.operand)
        return None if inner is None else not inner
    return bool(test.value) if isinstance(test, ast.Constant) else None


class Exits:
    """The exits of all statements of some, by the statement."""

    __slots__ = ("_of", "_taken", "unreachable")

    def __init__(self, body: Sequence[ast.stmt], taken: Taken = constant) -> None:
        self._taken = taken
        self._of: dict[ast.stmt, Exit] = {}
        self.unreachable: list[Unreachable] = []
        self._block(body)

    def of(self, statement: ast.stmt) -> Exit:
        """How control may leave a statement.

        Raises:
            KeyError: it is none of those that were looked at.
        """
        return self._of[statement]

    def of_block(self, body: Sequence[ast.stmt]) -> Exit:
        """How control may leave statements one after another; raises as `of`."""
        found = Exit.NEXT
        for each in body:
            if Exit.NEXT not in found:
                break
            found = (found & ~Exit.NEXT) | self._of[each]
        return found

    def _block(self, body: Sequence[ast.stmt]) -> Exit:
        found, last = Exit.NEXT, None
        for each in body:
            one = self._statement(each)
            self._of[each] = one
            if Exit.NEXT in found:
                found = (found & ~Exit.NEXT) | one
                last = each
            else:
                assert last is not None, "before the first statement nothing ends"
                self.unreachable.append(Unreachable(each, last))
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
