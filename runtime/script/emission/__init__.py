"""The emission: compile checked syntax trees to graphs."""

from everyorder.runtime.base.hooks import ready
from everyorder.runtime.script.emission import graph_values as _values  # noqa: F401  # as above
from everyorder.runtime.script.emission import loops as _loops  # noqa: F401  # fills the tables
from everyorder.runtime.script.emission.builtins import (
    CLASSES,
    Manager,
)
from everyorder.runtime.script.emission.call_matching import (
    bind_arguments,
    call_forms,
)
from everyorder.runtime.script.emission.compile import (
    compile_class,
    compile_function,
    compile_text,
    install_classes,
)
from everyorder.runtime.script.emission.compiler import Compiler
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    Sugared,
    no_attribute,
)
from everyorder.runtime.script.emission.function_values import (
    FunctionOfProgram,
    PythonFunction,
)
from everyorder.runtime.script.emission.objects import install_objects
from everyorder.runtime.script.emission.special_forms import (
    SpecialForm,
    SyntaxForm,
    arguments_of,
    install_forms,
    register_forms,
)
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredTuple,
    constant_of,
    part_of,
    register_special_form,
    register_sugar,
    register_value,
    sugar_of,
    sugar_of_value,
)

for _install in (install_objects, install_classes, install_forms):
    _install()

__all__ = [
    "CLASSES",
    "Arguments",
    "Compiler",
    "Emitter",
    "FunctionOfProgram",
    "Manager",
    "PythonFunction",
    "SimpleValue",
    "SpecialForm",
    "Sugared",
    "SugaredTuple",
    "SyntaxForm",
    "arguments_of",
    "bind_arguments",
    "call_forms",
    "compile_class",
    "compile_function",
    "compile_text",
    "constant_of",
    "no_attribute",
    "part_of",
    "register_forms",
    "register_special_form",
    "register_sugar",
    "register_value",
    "sugar_of",
    "sugar_of_value",
]

ready(__name__)
