"""Programs: functions, the names that they have, and the types of their objects."""

from runtime.script.program.function import Function
from runtime.script.program.objects import CARRIED, declare_objects, declared_type
from runtime.script.program.program import SHARED_PROGRAM, Program

__all__ = [
    "CARRIED",
    "SHARED_PROGRAM",
    "Function",
    "Program",
    "declare_objects",
    "declared_type",
]
