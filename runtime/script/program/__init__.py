"""Programs: functions, the names that they have, and the types of their objects."""

from runtime.script.program.function import Function
from runtime.script.program.inference import (
    Uninferred,
    inferred_type,
    register_inference,
)
from runtime.script.program.marks import (
    INTERFACE_BASES,
    Attribute,
    Mark,
    annotate,
    export,
    fork,
    ignore,
    interface,
    is_interface,
    is_of_type,
    is_scripting,
    mark_of,
    unchecked_cast,
    unused,
    wait,
)
from runtime.script.program.objects import CARRIED, declare_objects, declared_type
from runtime.script.program.program import SHARED_PROGRAM, Program

__all__ = [
    "CARRIED",
    "INTERFACE_BASES",
    "SHARED_PROGRAM",
    "Attribute",
    "Function",
    "Mark",
    "Program",
    "Uninferred",
    "annotate",
    "declare_objects",
    "declared_type",
    "export",
    "fork",
    "ignore",
    "inferred_type",
    "interface",
    "is_interface",
    "is_of_type",
    "is_scripting",
    "mark_of",
    "register_inference",
    "unchecked_cast",
    "unused",
    "wait",
]
