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

from runtime.script.passes.constants import (
    pool_constants,
    propagate_all,
    propagate_constants,
)
from runtime.script.passes.dead_code import remove_dead_code
from runtime.script.passes.peephole import simplify
from runtime.script.passes.pipeline import Pass
from runtime.script.passes.subexpressions import merge_subexpressions

CLEANUP: tuple[Pass, ...] = (
    Pass("propagate_constants", propagate_constants),
    Pass("remove_dead_code", remove_dead_code),
    Pass("pool_constants", pool_constants),
)

OPTIMIZE: tuple[Pass, ...] = (
    Pass("propagate_all", propagate_all),
    Pass("pool_constants", pool_constants),
    Pass("simplify", simplify),
    Pass("merge_subexpressions", merge_subexpressions),
    Pass("remove_dead_code", remove_dead_code),
)
