"""Between passes the checker runs, and what is printed of a graph is read back.

A text that no graph is read from, or another one, fails the test that printed it.  Of
graphs that break a law no text has to be read: those show what is broken.
What the checker prints of one is not even tried: links within may lead nowhere.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.schema.declared import DeclaredType, Namespace
from everyorder.runtime.script.ir import (
    Graph,
    Printed,
    check,
    checker,
    parse_graph,
    printer,
    row_of,
)
from everyorder.runtime.script.passes import check_passes

# Tests that print a graph whose links lead round and round: nothing can go through it.
ENDLESS = {"test_a_broken_ring_ends"}
# Where a type keeps the types that it is made of.
PARTS = ("element", "elements", "key", "value", "members")


@pytest.fixture(autouse=True, scope="session")
def _passes_are_checked() -> Iterator[None]:
    before = check_passes(True)
    yield
    check_passes(before)


class Known(Namespace):
    """The declared types of some texts, whatever programs they are of."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def meet(self, met: Any) -> None:
        """Know what a type, a graph, or a tuple of such names."""
        if isinstance(met, DeclaredType):
            self._types[met.declaration.qualname] = met
        elif isinstance(met, tuple):
            for each in met:
                self.meet(each)
        elif isinstance(met, Graph):
            if id(met) in self.seen:
                return
            self.seen.add(id(met))
            self.meet(tuple(each.type for each in met.block.parameters))
            for node in met.nodes():
                self.meet(tuple(each.type for each in node.outputs))
                for block in node.blocks:
                    self.meet(tuple(each.type for each in block.parameters))
                self.meet(tuple(node.attributes.values()))
        else:
            for name in PARTS:
                if type(met).__module__ == "everyorder.runtime.schema.types":
                    self.meet(getattr(met, name, None))


def again(graph: Graph, drawn: Printed) -> str:
    """The text of the graph that a text is read as."""
    known = Known()
    known.meet(graph)
    back = parse_graph(
        drawn.text,
        namespace=known,
        objects=drawn.objects,
        functions=drawn.functions,
    )
    return printer.graph_text(back)


def is_sound(graph: Graph) -> bool:
    """Whether a graph keeps all laws, with the operators of tests among its nodes."""
    from tests.script.ir.graphs import rows

    try:
        check(graph, rows=lambda name: row_of(name) or rows(name))
    except EveryorderError:
        return False
    return True


@pytest.fixture(autouse=True)
def _what_is_printed_is_read_back(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.node.name in ENDLESS:
        yield
        return
    original = printer._Printer.whole
    reading = threading.local()

    def broken(graph: Graph, *, places: bool = True) -> Printed:
        return original(printer._Printer(places), graph)

    def whole(self: Any, graph: Graph) -> Printed:
        drawn = original(self, graph)
        if getattr(reading, "is_on", False):
            return drawn
        reading.is_on = True
        try:
            try:
                found = again(graph, drawn)
            except (EveryorderError, RecursionError) as error:
                found = f"{type(error).__name__}: {error}"
            if found != drawn.text:
                assert not is_sound(graph), f"{found}\nis read of\n{drawn.text}"
        finally:
            reading.is_on = False
        return drawn

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printer._Printer, "whole", whole)
        patch.setattr(checker, "printed", broken)
        yield
