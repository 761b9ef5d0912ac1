"""Running passes: one after another, again while something changes, and checked.

    CLEANUP    after emission: the graph that is shown, saved and called
    OPTIMIZE   of a copy, before it runs

Rules:
- a pass is a function of a graph, which it changes, that gives how often it did; a
  graph that it gives 0 for is as it was;
- a pass keeps every law of `runtime.script.ir.check`, and what the program does: its
  values, what it writes, prints and raises, and in which order;
- a pass looks at the one graph that it is given; graphs of forks and awaits within are
  given to it each by itself, the innermost first, and those of fused groups never: they
  are as they were compiled;
- passes are run in rounds, until a round changes nothing or there have been `rounds`;
- between passes the checker runs when it is asked to: by `checked`, or for all by
  `check_passes`;
- closures are lifted before anything is inlined or computed: a `prim::Closure` is
  nothing that runs; constants are computed behind what lays them bare (lists, tuples,
  inlining), and pooled behind that; dead code goes last: the others leave it behind;
- calls stay, as in a backtrace each function has a frame of its own; `inline_calls` is
  for looking at the whole.
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
    """A name, and what changes a graph and gives how often it did."""

    name: str
    run: Callable[[Graph], int]


def graphs_of(graph: Graph) -> list[Graph]:
    """The graph, and those of forks and awaits within, the outermost last."""
    found = [graph]
    for each in found:
        for node in each.nodes():
            inner = node.attributes.get("graph")
            if isinstance(inner, Graph) and node.kind != "prim::FusionGroup":
                found.append(inner)
    return found[::-1]


# Whether the checker runs by default; tests turn it on.
_CHECKED = [False]


def check_passes(on: bool) -> bool:
    """Let the checker run between passes from now on, or not; gives what was before."""
    before, _CHECKED[0] = _CHECKED[0], on
    return before


def run_passes(
    graph: Graph,
    passes: Sequence[Pass],
    *,
    rounds: int = 1,
    checked: bool | None = None,
) -> dict[str, int]:
    """Change the graph by all passes, in rounds; gives how often each changed it.

    Raises:
        BrokenGraph: the checker runs, and a pass has broken a law; names the pass.
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
