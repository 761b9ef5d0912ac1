"""Classes of modules in programs.

True only here: what a program has of the class of a module: its static methods.

Rules:
- modules are made by Python, before a program is compiled;
- an interface may derive from `Module`, as those of torch do.
"""

import inspect

from runtime.modules import Module
from runtime.script.emission import (
    CLASSES,
    Arguments,
    Emitter,
    Sugared,
    no_attribute,
    sugar_of,
)
from runtime.script.program import INTERFACE_BASES, is_interface


class ModuleClass(Sugared):
    """A class of modules, of which programs call the static methods."""

    __slots__ = ("python",)

    def __init__(self, python: type[Module]) -> None:
        self.python = python

    def says(self) -> str:
        """The class."""
        return f"the class `{self.python.__name__}` of modules"

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """A static method."""
        found = inspect.getattr_static(self.python, name, None)
        if isinstance(found, staticmethod):
            return sugar_of(found.__func__, e)
        hint = "Of a class of modules, programs have its static methods."
        return no_attribute(e, self.says(), name, (), hint)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """It makes no modules in programs."""
        e.fail(f"{self.says()} is called", "Make the module outside of the program.")


def _class(python: type) -> Sugared | None:
    is_own = python.__module__.startswith("runtime.modules")
    if not issubclass(python, Module) or is_own or is_interface(python):
        return None
    return ModuleClass(python)


INTERFACE_BASES.append(Module)
CLASSES.insert(0, _class)
