"""Objects of programs: of which declared type a value is, as programs see it.

True only here: how a value that runs leads to its declaration.

Rules:
- an object of a class of a program is an object of the Python class that was declared;
  what is read from an archive gets a Python class of its own;
- a module carries its type, as others of the same Python class may have another;
- a class is not kept alive by that.
"""

from typing import Any
from weakref import WeakKeyDictionary

from runtime.schema.declaration import DeclaredType

# The attribute in which a module carries its type.
CARRIED = "__script_type__"

_TYPES: WeakKeyDictionary[type, DeclaredType] = WeakKeyDictionary()


def declare_objects(python: type, declared: DeclaredType) -> None:
    """Let the objects of a Python class be of a declared type."""
    _TYPES[python] = declared


def declared_type(value: Any) -> DeclaredType | None:
    """The declared type of a value, or None."""
    carried = getattr(value, CARRIED, None)
    if isinstance(carried, DeclaredType):
        return carried
    return _TYPES.get(type(value))
