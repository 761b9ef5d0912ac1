"""Every effect and every sharing in the table of kinds counts for some pass.

Each is taken out of its row, and then some text after a pass, or what is known of the
memory of some graph, is another one.
"""

from dataclasses import replace
from typing import Any

import pytest

from everyorder.runtime.script.ir import KINDS, NodeKind, Sharing, graph_text
from everyorder.runtime.script.passes import (
    Aliases,
    merge_subexpressions,
    propagate_all,
    remove_dead_code,
)
from tests.script.passes import test_aliases as aliases
from tests.script.passes import test_dead_code as dead_code
from tests.script.passes import test_folding as constants
from tests.script.passes import test_subexpressions as subexpressions
from tests.script.passes.programs import patched
from tests.script.passes.texts import read

# Name -> before, and what is done to it.
GRAPHS = {
    **{f"dead: {k}": (v[0], remove_dead_code) for k, v in dead_code.CASES.items()},
    **{
        f"merge: {k}": (v[0], merge_subexpressions)
        for k, v in subexpressions.CASES.items()
    },
    **{f"known: {k}": (v[0], propagate_all) for k, v in constants.CASES.items()},
}


def everything() -> dict[str, Any]:
    """What passes make of all graphs, and what is known of their memory."""
    found: dict[str, Any] = {}
    for name, (text, run) in GRAPHS.items():
        graph = read(text)
        run(graph)
        found[name] = graph_text(graph)
    for name, (parameters, lines, *_) in aliases.CASES.items():
        graph = aliases.graph_of(parameters, lines)
        known = Aliases(graph)
        values = aliases.names(graph)
        outside = [each for each in values if known.is_outside(values[each])]
        written = [each for each in values if known.is_written(values[each])]
        found[f"memory: {name}"] = (aliases.alike(known, graph), outside, written)
    return found


def _flips() -> dict[str, tuple[NodeKind, NodeKind]]:
    flips = {}
    for kind in KINDS.values():
        for effect in kind.effects:
            changed = replace(kind, effects=kind.effects & ~effect)
            flips[f"{kind.name} without {effect.name}"] = (kind, changed)
        if kind.writes:
            flips[f"{kind.name} without writes"] = (kind, replace(kind, writes=()))
        if kind.sharing is not Sharing.NOTHING:
            changed = replace(kind, sharing=Sharing.NOTHING)
            flips[f"{kind.name} shares nothing"] = (kind, changed)
    return flips


FLIPS = _flips()
# What no pass here asks for, and why.
UNASKED: dict[str, str] = {
    **{
        name: "who could tell two memories apart, aliases say"
        for name in FLIPS
        if name.endswith(" without FRESH")
    },
    "prim::Param shares nothing": "parameters are no nodes of a block",
    "prim::Print without READS": "it is never merged, and keeps what it is given",
    "prim::warn without READS": "it is never merged, and keeps what it is given",
    "prim::warn without MAY_RAISE": "it is seen anyway",
    "prim::With without RUNS": "it does everything anyway",
    "prim::FusionGroup without RUNS": "a graph that is fused has no effects",
}


@pytest.fixture(scope="module")
def sound() -> dict[str, Any]:
    return everything()


@pytest.mark.spec("script 6.7", "aliases and effects")
@pytest.mark.parametrize("name", [each for each in FLIPS if each not in UNASKED])
def test_what_is_taken_out_of_a_row_is_missed(name: str, sound: dict[str, Any]) -> None:
    kind, changed = FLIPS[name]
    with patched(KINDS, kind.name, changed):
        try:
            found = everything()
        except AssertionError:
            return
    assert found != sound


def test_what_is_not_asked_for_is_in_the_table() -> None:
    assert set(UNASKED) <= set(FLIPS)
