"""Tracing: functions of programs from Python functions that were run once."""

from runtime.errors.script import TraceWarning
from runtime.script.tracing.building import GraphBuilder
from runtime.script.tracing.trace import Recording, trace_function, trace_method

__all__ = [
    "GraphBuilder",
    "Recording",
    "TraceWarning",
    "trace_function",
    "trace_method",
]
