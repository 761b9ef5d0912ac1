"""Modules in scripts: their types, what compiles them, and what runs."""

from runtime.script.modules.script_method import Compiled, ScriptMethod
from runtime.script.modules.script_module import ScriptModule
from runtime.script.modules.shape import Shape, Shaping, discard, shape_of

__all__ = [
    "Compiled",
    "ScriptMethod",
    "ScriptModule",
    "Shape",
    "Shaping",
    "discard",
    "shape_of",
]
