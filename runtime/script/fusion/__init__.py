"""Fusion: chains of pointwise operators of a graph, run as one compiled kernel."""

from runtime.script.fusion.group import Compiled, compiled, fuse
from runtime.script.fusion.kernel import (
    Loop,
    body_of,
    operators,
    step_of,
)

__all__ = [
    "Compiled",
    "Loop",
    "body_of",
    "compiled",
    "fuse",
    "operators",
    "step_of",
]
