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

from runtime.script.passes.pipeline import Pass

CLEANUP: tuple[Pass, ...] = ()

OPTIMIZE: tuple[Pass, ...] = ()
