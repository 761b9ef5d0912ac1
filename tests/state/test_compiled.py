"""Classes compiled by mypyc are read or opaque, and no error ends the exploration.

The classes are mypy's own: its wheels are compiled.  `SymbolTable` is a dict whose
attributes have no dict until one is set; the other classes keep members in C.
"""

from collections.abc import Callable
from typing import Any

import pytest
from mypy import nodes

from everyorder.harness import Budget, Report, Scenario, explore, steps, use
from everyorder.harness.state import FollowedScope, Heap

pytestmark = pytest.mark.skipif(
    nodes.__file__.endswith(".py"), reason="this mypy is not compiled"
)


class Held:
    """A registry that holds compiled objects."""

    def __init__(self) -> None:
        self.items: dict[str, nodes.NameExpr] = {}

    def put(self, name: str) -> Callable[[], object]:
        self.items[name] = nodes.NameExpr(name)
        return lambda: self.items.pop(name)


def put_in_table(table: nodes.SymbolTable, name: str) -> Callable[[], object]:
    entries: dict[str, Any] = table
    entries[name] = name
    return lambda: entries.pop(name)


def explored(create: Callable[[], object], put: Callable[..., object]) -> Report:
    scenario = Scenario(
        *steps("put", ["a", "b"], put),
        uses=[use("count", lambda system: len(getattr(system, "items", ())) > 9)],
        create=create,
        observe=lambda system: str(sorted(getattr(system, "items", system))),
        name="compiled",
    )
    return explore(scenario, budget=Budget(steps=600))


def test_a_registry_that_holds_compiled_objects_is_not_proven() -> None:
    report = explored(Held, Held.put)
    kinds = {caveat.kind for caveat in report.exploration.caveats}
    assert not report.exploration.proven
    assert "opaque" in kinds


def test_a_compiled_registry_with_no_attributes_is_read() -> None:
    heap = Heap(FollowedScope(frozenset({"mypy"})))
    table = nodes.SymbolTable()
    empty = heap.form({"root": table})
    put_in_table(table, "a")
    filled = heap.form({"root": table})
    assert empty.blind != filled.blind
    dict.clear(table)
    assert heap.form({"root": table}) == empty
    report = explored(nodes.SymbolTable, put_in_table)
    closure = report.exploration.closure
    assert closure is not None
    assert closure.closed
