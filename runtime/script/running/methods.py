"""Methods of objects: which compiled function is meant by a name.

True only here: how a method is found.  Of a class or module it is the one of the type
that the program knows; of an interface, the one of the object's own type, at each call.

Rules:
- a method is looked up when it is called for the first time: a program may be compiled
  before all of its methods are;
- what is called is the entry of the function's plan, looked up at each call.
"""

from collections.abc import Callable
from typing import Any

from runtime.errors.script_running import MethodMissing
from runtime.schema.declaration import DeclaredType
from runtime.script.program import Function, declared_type

Entry = Callable[..., Any]
# Gives the plan of a function; `runtime.script.running.run` sets it.
PLANS: list[Callable[[Function], Any]] = []


def planned(function: Function) -> Any:
    """The plan of a function, made now if there is none."""
    return PLANS[-1](function)


def entry_of(function: Function) -> Entry:
    """What runs a function, by the plan that it has at each call."""
    memo = function.memo

    def run_function(*arguments: Any) -> Any:
        return (memo.get("plan") or planned(function)).execute(*arguments)

    return run_function


def method_of(
    owner: Any, declared: DeclaredType | None, name: str
) -> tuple[Entry, int]:
    """What runs a method, and how many arguments it has; of the object's own type.

    Raises:
        MethodMissing: it was not compiled.
    """
    own = declared_type(owner) if declared is None else declared
    if own is not None:
        function = own.declaration.functions.get(name)
        if function is not None:
            return entry_of(function), len(function.schema.arguments)
    kind = type(owner).__name__ if own is None else str(own)
    raise MethodMissing(qualname=kind, method=name)
