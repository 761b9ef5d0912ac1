"""The pass pipeline: run passes in rounds until nothing changes, with optional checks.

    CLEANUP    after emission: produces the graph that is printed, saved and called
    OPTIMIZE   before the first run: produces the copy that runs

Rules:
- a pass is a function that changes a graph and returns the number of changes; if it
  returns 0, the graph is unchanged;
- a pass preserves every law of `runtime.script.ir.check`, and the behaviour of the
  program: its values, its writes, output and exceptions, and their order;
- a pass handles one graph at a time; graphs of nested forks and awaits are passed to it
  separately, the innermost first, and graphs of fused groups never: they stay as they
  were compiled;
- passes are run in rounds, until a round changes nothing or `rounds` is reached;
- the checker runs between passes if `checked` is set, or for all runs after
  `check_passes(True)`;
- closures are lifted before anything is inlined or computed: a `prim::Closure` cannot
  be executed; constants are computed after the passes that expose them (lists, tuples,
  inlining), and pooled after that; dead code is removed last, because the others
  produce it;
- calls are not inlined, so that each function has its frame in a backtrace;
  `inline_calls` serves to view the whole program.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from everyorder.runtime.script.ir import Graph, check
from everyorder.runtime.script.passes.dce_cse import (
    merge_subexpressions,
    remove_dead_code,
)
from everyorder.runtime.script.passes.folding import (
    erase_list_literals,
    lower_tuples,
    pool_constants,
    propagate_all,
    propagate_constants,
)
from everyorder.runtime.script.passes.inline import lift_closures, unroll_loops
from everyorder.runtime.script.passes.peephole import simplify


class Pass(NamedTuple):
    """A named function that changes a graph and returns the number of changes."""

    name: str
    run: Callable[[Graph], int]


def graphs_of(graph: Graph) -> list[Graph]:
    """Return the graph and those of nested forks and awaits, the outermost last."""
    graphs = [graph]
    for each in graphs:
        for node in each.nodes():
            inner = node.attributes.get("graph")
            if isinstance(inner, Graph) and node.kind != "prim::FusionGroup":
                graphs.append(inner)
    return graphs[::-1]


# True if the checker runs by default; tests turn it on.
_CHECKED = [False]


def check_passes(on: bool) -> bool:
    """Turn the checker between passes on or off; return the previous setting."""
    before, _CHECKED[0] = _CHECKED[0], on
    return before


def run_passes(
    graph: Graph,
    passes: Sequence[Pass],
    *,
    rounds: int = 1,
    checked: bool | None = None,
) -> dict[str, int]:
    """Run all passes on the graph, in rounds; return the number of changes by pass.

    Raises:
        BrokenGraph: the checker runs, and a pass has broken a law; the error names the
        pass.
    """
    is_checked = _CHECKED[0] if checked is None else checked
    counts = {each.name: 0 for each in passes}
    for _ in range(rounds):
        before = sum(counts.values())
        for name, run in passes:
            changes = sum(map(run, graphs_of(graph)))
            counts[name] += changes
            if is_checked and changes:
                check(graph, stage=name)
        if sum(counts.values()) == before:
            break
    return counts


CLEANUP: tuple[Pass, ...] = (
    Pass("lift_closures", lift_closures),
    Pass("erase_list_literals", erase_list_literals),
    Pass("lower_tuples", lower_tuples),
    Pass("propagate_constants", propagate_constants),
    Pass("remove_dead_code", remove_dead_code),
    Pass("pool_constants", pool_constants),
)

OPTIMIZE: tuple[Pass, ...] = (
    Pass("unroll_loops", unroll_loops),
    Pass("erase_list_literals", erase_list_literals),
    Pass("lower_tuples", lower_tuples),
    Pass("propagate_all", propagate_all),
    Pass("pool_constants", pool_constants),
    Pass("simplify", simplify),
    Pass("merge_subexpressions", merge_subexpressions),
    Pass("remove_dead_code", remove_dead_code),
)
