"""Fusion: chains of pointwise operators of a graph, run as one compiled kernel."""

from runtime.script.fusion.group import LEAST, Compiled, compiled, fuse, one_by_one
from runtime.script.fusion.kernel import Loop, Ready, body_of, family_of, ready_for
from runtime.script.fusion.pointwise import Later, operators, step_of

__all__ = [
    "LEAST",
    "Compiled",
    "Later",
    "Loop",
    "Ready",
    "body_of",
    "compiled",
    "family_of",
    "fuse",
    "one_by_one",
    "operators",
    "ready_for",
    "step_of",
]
