"""Modules in scripts: their types, their compilation and their execution."""

from everyorder.runtime.script.modules import module_sugar as _sugar  # noqa: F401  # lets programs know modules
from everyorder.runtime.script.modules import script_module as _class  # noqa: F401  # and their classes
from everyorder.runtime.script.modules.build import (
    compile_module,
    define,
    uncompiled_module,
)
from everyorder.runtime.script.modules.freezing import freeze as freeze_module
from everyorder.runtime.script.modules.module_shape import Shaping, discard, shape_of
from everyorder.runtime.script.modules.script_module import (
    Compiled,
    ScriptMethod,
    ScriptModule,
)

__all__ = [
    "Compiled",
    "ScriptMethod",
    "ScriptModule",
    "Shaping",
    "compile_module",
    "define",
    "discard",
    "freeze_module",
    "shape_of",
    "uncompiled_module",
]
