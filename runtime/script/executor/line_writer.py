"""The lines of generated text, and what registers are called in it.

    LineWriter      writes lines, and notes the node of each
    DeferredLines   collects lines apart
    TooNested       raised for text that is nested deeper than Python's compiler allows

A register is a variable with its number; a constant is its value.  A value that is only
moved to another register is computed there at once (`moved`), and one that is only
tested in the next line is an expression of that line (`texts`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime.script.executor.graph_plan import Planner
from everyorder.runtime.script.ir import Node

# CPython allows 20 nested blocks; the `try` around the body is one of them.
DEEPEST = 18
# One level of indentation per block, including branches; CPython allows 100.
INDENTED = 80

Function = Callable[..., Any]


class TooNested(Exception):
    """The blocks of a plan are nested too deeply for generated code."""


class LineWriter:
    """The writer of the lines of a plan; `nodes` has the node of each line."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.lines: list[str] = []
        self.nodes: list[Node | None] = []
        self.node: Node | None = None
        self.margin = 0
        self.depth = 0
        # The objects that the text refers to, by name.
        self.values: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.functions = 0
        # Register -> the register in whose variable it is computed.
        self.moved: dict[int, int] = {}
        # Register -> the expression that stands for it, at its one use.
        self.texts: dict[int, str] = {}

    def put(self, line: str) -> None:
        """Write a line, of the current node."""
        self.lines.append("    " * self.margin + line)
        self.nodes.append(self.node)

    def name(self, place: int) -> str:
        """Return the variable of a register."""
        return f"v{self.moved.get(place, place)}"

    def value(self, place: int) -> str:
        """Return the text of a register: a variable, a constant, or an expression."""
        if place in self.texts:
            return self.texts.pop(place)
        if place not in self.planner.constants:
            return self.name(place)
        if place not in self.names:
            constant = self.planner.template[place]
            if constant is None or constant is True or constant is False:
                self.names[place] = repr(constant)
            elif constant.__class__ is int or constant.__class__ is str:
                self.names[place] = f"({constant!r})"
            else:
                self.names[place] = f"c{place}"
                self.values[f"c{place}"] = constant
        return self.names[place]

    def several(self, places: Sequence[int]) -> str:
        """Return the texts of registers, with commas."""
        return ", ".join(map(self.value, places))

    def function(self, function: Any, letter: str = "f") -> str:
        """Return a new name for a function."""
        self.functions += 1
        name = f"{letter}{self.functions}"
        self.values[name] = function
        return name

    def free(self, places: Sequence[int]) -> None:
        """Write that the values of registers are released."""
        if places:
            self.put(" = ".join((*(f"v{each}" for each in places), "None")))

    def move(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Write that values are moved, all at once, unless they are there."""
        pairs = [
            (self.name(target), self.value(source))
            for source, target in zip(sources, targets, strict=True)
            if self.moved.get(source, source) != self.moved.get(target, target)
        ]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self.put(f"{', '.join(left)} = {', '.join(right)}")

    def deeper(self, takes_block: bool) -> None:
        """Indent what follows; loops and contexts take a block of the compiler.

        Raises:
            TooNested: there is no such text.
        """
        self.depth += takes_block
        self.margin += 1
        if self.depth > DEEPEST or self.margin > INDENTED:
            raise TooNested

    def back(self, took_block: bool) -> None:
        """Indent less again."""
        self.depth -= took_block
        self.margin -= 1


class DeferredLines:
    """Lines that are collected apart from the lines of the writer."""

    def __init__(self, writer: LineWriter) -> None:
        self.writer = writer
        self.lines: list[str] = []
        self.nodes: list[Node | None] = []

    def __enter__(self) -> "DeferredLines":
        writer = self.writer
        writer.lines, self.lines = self.lines, writer.lines
        writer.nodes, self.nodes = self.nodes, writer.nodes
        return self

    def __exit__(self, *_: object) -> None:
        writer = self.writer
        writer.lines, self.lines = self.lines, writer.lines
        writer.nodes, self.nodes = self.nodes, writer.nodes
