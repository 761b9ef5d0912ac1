"""Programs of branches, loops and jumps, and what Python does in them.

A program is drawn once and is looked at in two ways: by the frontend, and by running
it.  `use(k, y)` uses a variable; Python's run asks instead whether it has a value.
Conditions and lengths of loops are taken from a list, so that every way can be gone.
"""

import ast
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st

NAMES = ["a", "b"]
# Choices that a run makes before it is cut off.
MOST_CHOICES = 7


class Draw:
    """Draws one program; each use and each statement has a number of its own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._number = itertools.count()

    def pick(self, of: list[str]) -> str:
        return self._draw(st.sampled_from(of))

    def block(self, depth: int, in_loop: bool, margin: str) -> Iterator[str]:
        for _ in range(self._draw(st.integers(1, 3))):
            yield from self.statement(depth, in_loop, margin)

    def statement(self, depth: int, in_loop: bool, margin: str) -> Iterator[str]:
        number = next(self._number)
        yield f"{margin}at({number})"
        simple = ["assign", "use", "delete", "return", "raise", "assert", "twice"]
        kinds = simple + ["break", "continue"] * in_loop
        kinds += ["if", "while", "for", "with", "forever", "known"] * bool(depth)
        kind, name = self.pick(kinds), self.pick(NAMES)
        inner = f"{margin}    "
        if kind in ("if", "while", "for", "with", "forever", "known"):
            heads = {
                "if": "if ask():",
                "while": "while ask():",
                "for": f"for {name} in some():",
                "with": f"with enter() as {name}:",
                "forever": "while True:",
                "known": f"if {self.pick(['True', 'False', 'not 1'])}:",
            }
            yield f"{margin}{heads[kind]}"
            loops = kind in ("while", "for", "forever")
            yield from self.block(depth - 1, in_loop or loops, inner)
            if kind in ("if", "known") and self._draw(st.booleans()):
                yield f"{margin}else:"
                yield from self.block(depth - 1, in_loop, inner)
            return
        texts = {
            "assign": f"{name} = 0",
            "use": f"use({number}, {name})",
            "delete": f"del {name}",
            "twice": f"{name} += use({number}, {name})",
            "return": "return 0",
            "raise": "raise E",
            "assert": "assert ask()",
            "break": "break",
            "continue": "continue",
        }
        yield f"{margin}{texts[kind]}"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Functions of one parameter."""
    lines = Draw(draw).block(3, False, "    ")
    # The names are variables of the function, whatever else there is.
    return "\n".join(["def f(p):", *lines, "    a = b = 0", ""])


class Run(NamedTuple):
    """What one run met: uses without a value, statements, and how it ended.

    A run that was cut has met what it has met.
    """

    absent: frozenset[tuple[int, str]]
    reached: frozenset[int]
    end: str


class _Cut(Exception):
    """A run that makes more choices than are given."""


class _Asked(ast.NodeTransformer):
    """Lets a program say whether a variable has a value, where it is used."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "use":
            name = node.args[1]
            assert isinstance(name, ast.Name)
            text = f"('{name.id}', '{name.id}' in locals())"
            node.args[1] = ast.parse(text, mode="eval").body
        return node

    def visit_Delete(self, node: ast.Delete) -> Any:
        (name,) = node.targets
        # Deleted is what has a value from here on, so that the run goes on.
        assert isinstance(name, ast.Name)
        has = f"'{name.id}' in locals()"
        text = f"removed({node.lineno}, '{name.id}', {has})\n{name.id} = 0"
        return [*ast.parse(text).body, node]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        self.generic_visit(node)
        text = f"{name} = {name} if '{name}' in locals() else 0"
        shown = ast.Expr(node.value)
        node.value = ast.Constant(0)
        return [shown, *ast.parse(text).body, node]


def runs(text: str) -> Iterator[Run]:
    """The runs of a program, for all choices that it may be given."""
    tree = ast.fix_missing_locations(_Asked().visit(ast.parse(text)))
    code = compile(tree, "<flow>", "exec")
    choices: list[list[bool]] = [[]]
    while choices:
        given = choices.pop()
        run = _run(code, given)
        yield run
        if run.end == "cut" and len(given) < MOST_CHOICES:
            choices += [[*given, True], [*given, False]]


def _run(code: Any, given: list[bool]) -> Run:
    """One run, which is cut if it wants more choices than are given."""
    left = iter(given)
    absent: set[tuple[int, str]] = set()
    reached: set[int] = set()
    steps = itertools.count()

    def ask() -> bool:
        for one in left:
            return one
        raise _Cut

    def some() -> Iterator[int]:
        while ask():
            yield 0

    def at(number: int) -> None:
        reached.add(number)
        if next(steps) > 60:
            raise _Cut

    def use(number: int, state: tuple[str, bool]) -> int:
        if not state[1]:
            absent.add((number, state[0]))
        return 0

    def removed(line: int, name: str, has: bool) -> None:
        if not has:
            absent.add((-line, name))

    class Enter:
        def __enter__(self) -> int:
            return 0

        def __exit__(self, *_: object) -> None:
            return None

    names = {"ask": ask, "some": some, "at": at, "use": use, "removed": removed}
    scope: dict[str, Any] = {**names, "enter": Enter, "E": ValueError}
    exec(code, scope)
    try:
        end = "next" if scope["f"](0) is None else "return"
    except (ValueError, AssertionError):
        end = "raise"
    except _Cut:
        end = "cut"
    return Run(frozenset(absent), frozenset(reached), end)
