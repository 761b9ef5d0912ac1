"""Tracing: compile Python functions by recording one run of them."""

from everyorder.runtime.errors.script import TraceWarning
from everyorder.runtime.script.tracing.builder import GraphBuilder
from everyorder.runtime.script.tracing.trace import trace_function, trace_method

__all__ = [
    "GraphBuilder",
    "TraceWarning",
    "trace_function",
    "trace_method",
]
