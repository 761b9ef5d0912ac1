"""Functions of programs: a name, a schema, a graph, and what others keep with them.

True only here: what a compiled function, or method, consists of, and when its graph is
made.

Rules:
- the schema is known before the graph, so that functions can call themselves and each
  other;
- a graph that is still to be made is made when it is first asked for; whoever compiles
  is alone, so nobody asks for the graph of a function that is being compiled;
- the graph is what was compiled and cleaned up, and is not changed afterwards: who
  optimizes takes a copy;
- `memo` is for whoever runs, prints or fuses: what is computed of the graph, by the
  name of the chapter that computes it.
"""

from collections.abc import Callable
from typing import Any

from runtime.schema.schema import Schema
from runtime.script.ir import Graph


class Function:
    """A function of a program.

    `qualname` is its full name, `__torch__.package.name` or that of a class and a
    method; the graph takes the arguments of the schema in order, and gives what the
    schema says.  `python` is the Python function that it was made of, or None.
    """

    __slots__ = ("__weakref__", "_graph", "memo", "python", "qualname", "schema")

    def __init__(
        self,
        qualname: str,
        schema: Schema,
        graph: Graph | Callable[[], Graph],
        python: Any = None,
    ) -> None:
        self.qualname = qualname
        self.schema = schema
        self.python = python
        self.memo: dict[str, Any] = {}
        self._graph = graph

    @property
    def name(self) -> str:
        """The last part of the full name."""
        return self.qualname.rpartition(".")[2]

    @property
    def graph(self) -> Graph:
        """The graph; made now, if it was not.  Raises what compiling raises."""
        if not isinstance(self._graph, Graph):
            self._graph = self._graph()
        return self._graph

    @property
    def is_compiled(self) -> bool:
        """Whether the graph has been made."""
        return isinstance(self._graph, Graph)

    def __repr__(self) -> str:
        return f"Function({self.qualname!r})"
