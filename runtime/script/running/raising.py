"""Exceptions of programs: from the name of a class to what is raised.

True only here: where the class of an exception is found.

Rules:
- a program raises the class that it names, which is that of Python's;
- a class is found by its path among what loaded modules, and classes in them, have
  already: no attribute is computed, and nothing imported, because a program says so;
- what is no class of exceptions, or does not take one text, is raised as `ScriptRaised`
  with the name and the message.
"""

import builtins
import sys
from types import ModuleType
from typing import Any

from runtime.errors.script_running import ScriptRaised


def exception(kind: str, message: str) -> BaseException:
    """The exception of a class, by its path, with a message."""
    found = _class(kind)
    if found is not None:
        try:
            made = found(message)
        except Exception:
            made = None
        if isinstance(made, Exception):
            return made
    return ScriptRaised(kind=kind or "Exception", message=message)


def _class(path: str) -> Any:
    """The class of exceptions that a path names, or None."""
    module, _, name = path.rpartition(".")
    found: Any = None
    if not module:
        found = getattr(builtins, name, None)
    # The class may lie within other classes.
    within: list[str] = [name]
    while module and found is None:
        loaded = sys.modules.get(module)
        if loaded is not None:
            found = loaded
            for each in within:
                # As it lies there: modules that load when asked are not asked.
                fits = isinstance(found, type | ModuleType)
                found = vars(found).get(each) if fits else None
            break
        module, _, outer = module.rpartition(".")
        within.insert(0, outer)
    fits = isinstance(found, type) and issubclass(found, Exception)
    return found if fits else None
