"""Scripts: Python programs compiled to graphs; the names of `torch.jit`.

A compiled program runs as Python would run it, in a separate interpreter, and can be
saved.
"""

from typing import Final

from everyorder.runtime.errors.script import TraceWarning
from everyorder.runtime.futures import (
    Await,
    Future,
    awaitable,
    awaitable_nowait,
    awaitable_wait,
)
from everyorder.runtime.jit.scripting import (
    CompilationUnit,
    ScriptFunction,
    freeze,
    is_tracing,
    load_archive,
    optimize_for_inference,
    optimized_execution,
    save,
    script,
    script_if_tracing,
    script_method,
    trace,
    trace_module,
    unwrap_optional,
)
from everyorder.runtime.script.executor import executor_options, set_executor
from everyorder.runtime.script.ir.program import (
    Attribute,
    annotate,
    export,
    fork,
    ignore,
    interface,
    is_of_type,
    is_scripting,
    unchecked_cast,
    unused,
    wait,
)
from everyorder.runtime.script.modules import ScriptMethod, ScriptModule

__all__ = [
    "Attribute",
    "Await",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptMethod",
    "ScriptModule",
    "TraceWarning",
    "TracerWarning",
    "annotate",
    "awaitable",
    "awaitable_nowait",
    "awaitable_wait",
    "executor_options",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_executor",
    "trace",
    "trace_module",
    "unchecked_cast",
    "unused",
    "wait",
]

# The torch names for these.
isinstance = is_of_type  # noqa: A001  # upstream's own name
load = load_archive
RecursiveScriptModule = ScriptModule
TracerWarning = TraceWarning
# Programs raise ordinary exceptions, so that `Error` has to match any of them.
Error = Exception
_Await = Await
_awaitable = awaitable
_awaitable_nowait = awaitable_nowait
_awaitable_wait = awaitable_wait
_fork = fork
_isinstance = is_of_type  # upstream's own name
_unwrap_optional = unwrap_optional
_wait = wait
