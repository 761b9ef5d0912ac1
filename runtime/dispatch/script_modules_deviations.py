"""Deviations of modules, and of modules that are compiled.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_MODULES = (
    Deviation(
        "a state that fits a module in part",
        "what fits is copied, then an error is raised",
        "an error is raised, and nothing is copied",
        "a failed call changes nothing",
    ),
    Deviation(
        "lists and dictionaries that are attributes of a compiled module",
        "Python gets a copy each time, and writes to it are lost",
        "the very object that scripts see",
        "a write that is lost is a wrong answer later",
    ),
    Deviation(
        "a chain of modules in a script",
        "its first module takes a Tensor, and all give what the variable is",
        "called module by module: each may take another type",
        "it computes the same in Python",
    ),
    Deviation(
        "deriving from ScriptModule, and `script_method`",
        "supported",
        "refused: modules are compiled as objects",
        "an older form of the same",
    ),
    Deviation(
        "names that a compiled module has for Python, as attributes (`graph`, `code`)",
        "hidden from Python",
        "no attributes of programs",
        "what an attribute is, is the same in Python and in a script",
    ),
)
