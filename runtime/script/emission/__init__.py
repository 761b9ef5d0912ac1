"""The emission: from checked syntax trees to graphs."""

from runtime.script.emission import loops as _loops  # noqa: F401  # fills the tables
from runtime.script.emission import values as _values  # noqa: F401  # as above
from runtime.script.emission.builtins import (
    CLASSES,
    ExceptionClass,
    Manager,
)
from runtime.script.emission.calls import (
    Form,
    FunctionOfProgram,
    PythonFunction,
    bound_values,
    call_forms,
    together,
)
from runtime.script.emission.classes import (
    ClassSugar,
    class_type,
    compile_class,
    install_classes,
)
from runtime.script.emission.compile import (
    compile_function,
    compile_text,
)
from runtime.script.emission.compiler import Compiler
from runtime.script.emission.emitter import Arguments, Emitter, Sugared, no_attribute
from runtime.script.emission.forms import (
    SpecialForm,
    SyntaxForm,
    arguments_of,
    install_forms,
    register_forms,
)
from runtime.script.emission.iteration import Iteration, Static
from runtime.script.emission.objects import ObjectValue, install_objects
from runtime.script.emission.sugar import (
    Registration,
    SimpleValue,
    SugaredTuple,
    constant_of,
    part_of,
    register_special_form,
    register_sugar,
    register_value,
    sugar_of,
    sugar_of_value,
    type_of,
)
from runtime.script.plug_ins import ready

for _install in (install_objects, install_classes, install_forms):
    _install()

__all__ = [
    "CLASSES",
    "Arguments",
    "ClassSugar",
    "Compiler",
    "Emitter",
    "ExceptionClass",
    "Form",
    "FunctionOfProgram",
    "Iteration",
    "Manager",
    "ObjectValue",
    "PythonFunction",
    "Registration",
    "SimpleValue",
    "SpecialForm",
    "Static",
    "Sugared",
    "SugaredTuple",
    "SyntaxForm",
    "arguments_of",
    "bound_values",
    "call_forms",
    "class_type",
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
    "together",
    "type_of",
]

ready(__name__)
