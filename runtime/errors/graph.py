"""Errors of graphs: what does not hold of one that should.

Who must act: whoever wrote the pass, or the emission, that made the graph.  A text that
is no graph is a `SchemaSyntaxError`, as that of types and schemas is.
"""

from dataclasses import dataclass
from typing import NamedTuple

from runtime.errors.base import EveryorderError
from runtime.errors.source import printable


class GraphFault(NamedTuple):
    """A law that is broken, the number of the line of the text where, and how."""

    law: str
    line: int
    fault: str


@dataclass(eq=False, kw_only=True)
class GraphError(EveryorderError):
    """Base of the errors of graphs."""


@dataclass(eq=False, kw_only=True)
class BrokenGraph(GraphError, RuntimeError):
    """A graph breaks laws, each of `faults` one.

    `stage` says after what it was looked at (it may be empty), `text` is the graph;
    lines count from 1.
    """

    graph: str
    stage: str
    faults: tuple[GraphFault, ...]
    text: str

    def render(self) -> str:
        """The number of faults, and the text with each fault under its line."""
        count = len(self.faults)
        name = f" `{self.graph}`" if self.graph else ""
        stage = f" after {self.stage}" if self.stage else ""
        drawn = [f"The graph{name} has {count} fault{'s'[: count != 1]}{stage}:"]
        for number, line in enumerate(self.text.rstrip("\n").split("\n"), 1):
            drawn.append(f"  {printable(line)}")
            indent = " " * (len(line) - len(line.lstrip()))
            drawn += [
                f"  {indent}^ {each.law}: {each.fault}"
                for each in self.faults
                if each.line == number
            ]
        return "\n".join(drawn)
