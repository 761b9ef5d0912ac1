"""The order of passes: what follows emission, and what comes before a graph runs.

True only here: which passes there are, and which comes after which.

    CLEANUP    after emission: the graph that is shown, saved and called
    OPTIMIZE   of a copy, before it runs

Rules:
- closures are lifted before anything is inlined or computed: a `prim::Closure` is
  nothing that runs;
- constants are computed behind what lays them bare (lists, tuples, inlining), and
  pooled behind that;
- dead code goes last: the others leave behind what nobody uses.
"""

from runtime.script.passes.closures import lift_closures
from runtime.script.passes.constants import (
    pool_constants,
    propagate_all,
    propagate_constants,
)
from runtime.script.passes.dead_code import remove_dead_code
from runtime.script.passes.list_literals import erase_list_literals
from runtime.script.passes.peephole import simplify
from runtime.script.passes.pipeline import Pass
from runtime.script.passes.subexpressions import merge_subexpressions
from runtime.script.passes.tuples import lower_tuples
from runtime.script.passes.unrolling import unroll_loops

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
