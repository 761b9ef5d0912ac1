"""Passes: what is done to graphs between their emission and their running."""

from runtime.script.passes.aliases import Aliases
from runtime.script.passes.constants import (
    pool_constants,
    propagate_all,
    propagate_constants,
)
from runtime.script.passes.dead_code import remove_dead_code
from runtime.script.passes.order import CLEANUP, OPTIMIZE
from runtime.script.passes.peephole import simplify
from runtime.script.passes.pipeline import Pass, check_passes, graphs_of, run_passes
from runtime.script.passes.rules import RULES
from runtime.script.passes.subexpressions import merge_subexpressions

__all__ = [
    "CLEANUP",
    "OPTIMIZE",
    "RULES",
    "Aliases",
    "Pass",
    "check_passes",
    "graphs_of",
    "merge_subexpressions",
    "pool_constants",
    "propagate_all",
    "propagate_constants",
    "remove_dead_code",
    "run_passes",
    "simplify",
]
