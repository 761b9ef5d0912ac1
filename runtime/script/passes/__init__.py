"""Passes: what is done to graphs between their emission and their running."""

from runtime.script.passes.aliases import Aliases
from runtime.script.passes.closures import captured, lift_closures
from runtime.script.passes.constants import (
    pool_constants,
    propagate_all,
    propagate_constants,
)
from runtime.script.passes.dead_code import remove_dead_code
from runtime.script.passes.freezing import (
    STAYS,
    Settable,
    freeze_attributes,
    settable,
)
from runtime.script.passes.inlining import callee, inline_calls
from runtime.script.passes.list_literals import erase_list_literals
from runtime.script.passes.order import CLEANUP, OPTIMIZE
from runtime.script.passes.ownership import is_own, is_plain
from runtime.script.passes.peephole import simplify
from runtime.script.passes.pipeline import Pass, check_passes, graphs_of, run_passes
from runtime.script.passes.rules import RULES
from runtime.script.passes.shapes import Facts, facts_of, propagate_shapes
from runtime.script.passes.subexpressions import merge_subexpressions
from runtime.script.passes.tuples import lower_tuples
from runtime.script.passes.unrolling import unroll_loops

__all__ = [
    "CLEANUP",
    "OPTIMIZE",
    "RULES",
    "STAYS",
    "Aliases",
    "Facts",
    "Pass",
    "Settable",
    "callee",
    "captured",
    "check_passes",
    "erase_list_literals",
    "facts_of",
    "freeze_attributes",
    "graphs_of",
    "inline_calls",
    "is_own",
    "is_plain",
    "lift_closures",
    "lower_tuples",
    "merge_subexpressions",
    "pool_constants",
    "propagate_all",
    "propagate_constants",
    "propagate_shapes",
    "remove_dead_code",
    "run_passes",
    "settable",
    "simplify",
    "unroll_loops",
]
