"""Passes: transformations of graphs between emission and execution."""

from everyorder.runtime.script.passes.aliases import Aliases
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
from everyorder.runtime.script.passes.inline import (
    captured,
    inline_calls,
    lift_closures,
    unroll_loops,
)
from everyorder.runtime.script.passes.peephole import RULES, simplify
from everyorder.runtime.script.passes.pipeline import (
    CLEANUP,
    OPTIMIZE,
    Pass,
    check_passes,
    graphs_of,
    run_passes,
)
from everyorder.runtime.script.passes.shape_propagation import (
    TensorMeta,
    facts_of,
    propagate_shapes,
    shapes_for,
)

__all__ = [
    "CLEANUP",
    "OPTIMIZE",
    "RULES",
    "Aliases",
    "Pass",
    "TensorMeta",
    "captured",
    "check_passes",
    "erase_list_literals",
    "facts_of",
    "graphs_of",
    "inline_calls",
    "lift_closures",
    "lower_tuples",
    "merge_subexpressions",
    "pool_constants",
    "propagate_all",
    "propagate_constants",
    "propagate_shapes",
    "remove_dead_code",
    "run_passes",
    "shapes_for",
    "simplify",
    "unroll_loops",
]
