"""Passes: what is done to graphs between their emission and their running."""

from runtime.script.passes.order import CLEANUP, OPTIMIZE
from runtime.script.passes.pipeline import Pass, check_passes, run_passes

__all__ = ["CLEANUP", "OPTIMIZE", "Pass", "check_passes", "run_passes"]
