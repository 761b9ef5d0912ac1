"""What is compiled and can be called: a function, and what people look at in it.

True only here: the face of a compiled function, with or without an object to it.

Rules:
- a call binds and converts its arguments by the schema, as `runtime.script.running`
  says;
- graphs are handed out as copies where they are made for whoever asks
  (`inlined_graph`), else as they are: nobody changes them;
- the text of the code is the business of `runtime.script.archive`.
"""

from typing import Any

from runtime.locks import load
from runtime.schema.schema import Schema
from runtime.script.ir import Graph, copy_graph
from runtime.script.passes import inline_calls
from runtime.script.program import Function
from runtime.script.running import call


class Compiled:
    """A compiled function; `function` is what a program has of it."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def name(self) -> str:
        """The last part of the full name."""
        return self.function.name

    @property
    def qualified_name(self) -> str:
        """The full name, `__torch__.package.name`."""
        return self.function.qualname

    @property
    def schema(self) -> Schema:
        """The arguments and the result."""
        return self.function.schema

    @property
    def graph(self) -> Graph:
        """What it was compiled to; not to be changed."""
        return self.function.graph

    @property
    def inlined_graph(self) -> Graph:
        """A copy of the graph, with the graphs of all that it calls in it."""
        made = copy_graph(self.graph)
        inline_calls(made)
        return made

    @property
    def code(self) -> str:
        """The function as text, as it stands in an archive."""
        text: str = load("runtime.script.archive").code_of(self.function)
        return text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.qualified_name})"


class ScriptMethod(Compiled):
    """A compiled method with its object, `owner`."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any, function: Function) -> None:
        super().__init__(function)
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the method gives."""
        return call(self.function, (self.owner, *args), kwargs)
