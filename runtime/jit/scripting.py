"""`script`: functions, classes and modules, compiled.

True only here: what `script` does with which object.

    a function                compiled now; the same one again is the same result
    a module                  compiled with all modules within it
    a class                   its methods are compiled, and its objects are for scripts
    an interface, an enum, a named tuple    declared
    what is compiled          itself

Rules:
- a Python function keeps what was compiled of it, and is not kept alive by that: both
  go together;
- `example_inputs` are calls: the types of their arguments are those of parameters
  without annotation, where several calls differ the type into which all fit.
"""

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runtime.errors.future import described
from runtime.errors.module import NotScriptable
from runtime.jit.script_function import ScriptFunction
from runtime.modules import Module
from runtime.schema.types import Type
from runtime.schema.unify import Mismatch, unify
from runtime.schema.written import Scope
from runtime.script.emission import Compiler, compile_class, compile_function
from runtime.script.modules import ScriptModule, compile_module, scope_of_class
from runtime.script.program import (
    SHARED_PROGRAM,
    Function,
    Mark,
    Uninferred,
    inferred_type,
    is_interface,
    mark_of,
)

# The attribute in which a function keeps what was compiled of it.
KEPT = "__script_function__"


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Sequence[Any] | Mapping[Any, Any] | None = None,
) -> Any:
    """Compile a function, a class or a module.

    Of a function and of a module it gives the compiled one, of a class the class.
    `example_inputs` are the arguments of calls, each a tuple; of a module, lists of
    them by its methods.  `optimize`, `_frames_up` and `_rcb` are taken, and do nothing.

    Raises:
        NotScriptable: it is nothing of these.
        ProgramError: the program cannot be compiled; says where and why.
    """
    if isinstance(obj, ScriptModule | ScriptFunction):
        return obj
    if isinstance(obj, Module):
        return compile_module(obj, examples=_of_methods(obj, example_inputs))
    if isinstance(obj, Function):
        return ScriptFunction(obj)
    if isinstance(obj, type):
        return _class(obj)
    if callable(obj) and inspect.isroutine(obj):
        return _function(obj, example_inputs)
    raise NotScriptable(
        found=_named(obj),
        reason="functions, classes and modules are compiled",
        hint="Pass the object to a compiled function, if it is a value.",
    )


def _class(python: type) -> type:
    if issubclass(python, Module) and not is_interface(python):
        raise NotScriptable(
            found=f"the class `{python.__name__}`",
            reason="modules are compiled, not their classes",
            hint="Make an object, and compile that.",
        )
    if issubclass(python, BaseException):
        raise NotScriptable(
            found=f"the class `{python.__name__}`",
            reason="exceptions are Python's; programs raise them by their names",
        )
    if issubclass(python, enum.Enum) or hasattr(python, "_fields"):
        SHARED_PROGRAM.classes(python, scope_of_class(python, SHARED_PROGRAM.classes))
        return python
    if is_interface(python):
        compiler = Compiler(SHARED_PROGRAM)
        compiler.run(lambda: compiler.classes(python, Scope(classes=compiler.classes)))
    else:
        compile_class(python, SHARED_PROGRAM)
    return python


def _function(function: Any, examples: Any) -> ScriptFunction:
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise NotScriptable(
            found=_named(function),
            reason="it is not written in Python",
            hint="Call it in a function, and compile that.",
        )
    if inspect.ismethod(function):
        raise NotScriptable(
            found=_named(function),
            reason="it has an object to it",
            hint="Compile the module, or the class, whose method it is.",
        )
    mark = mark_of(function)
    if mark in (Mark.IGNORE, Mark.UNUSED):
        raise NotScriptable(
            found=_named(function),
            reason=f"it is marked by `@{mark.value}`, and stays Python's",
        )
    known = function.__dict__.get(KEPT)
    # Of one that wraps another the attribute may be a copy.
    if known is None or known.function.python is not function:
        types = _argument_types(function, examples)
        made = compile_function(function, SHARED_PROGRAM, **types)
        known = function.__dict__[KEPT] = ScriptFunction(made)
    result: ScriptFunction = known
    return result


def _named(obj: Any) -> str:
    name = getattr(obj, "__qualname__", None)
    return f"`{name}`" if isinstance(name, str) else described(obj)


def _of_methods(module: Module, examples: Any) -> Mapping[str, Mapping[str, Type]]:
    """The types of parameters by the methods of a module."""
    if not examples:
        return {}
    calls = examples if isinstance(examples, Mapping) else {"forward": examples}
    found = {}
    for method, each in calls.items():
        name = method if isinstance(method, str) else method.__name__
        function = getattr(type(module), name)
        found[name] = types_of_calls(function, each, skip=1)
    return found


def _argument_types(function: Any, examples: Any) -> dict[str, Any]:
    return {"types": types_of_calls(function, examples)} if examples else {}


def types_of_calls(
    function: Callable[..., Any], calls: Iterable[Any], skip: int = 0
) -> dict[str, Type]:
    """The types of the parameters without annotation, by the arguments of calls.

    Raises:
        NotScriptable: the arguments of a parameter have no common type.
    """
    code: Any = function
    names = code.__code__.co_varnames[skip : code.__code__.co_argcount]
    found: dict[str, list[Type]] = {}
    for call in calls:
        for name, value in zip(names, _arguments(call), strict=False):
            if name in code.__annotations__:
                continue
            one = inferred_type(value)
            if isinstance(one, Uninferred):
                raise _no_type(function, name, one.reason)
            found.setdefault(name, []).append(one)
    types = {}
    for name, each in found.items():
        together = unify(*each)
        if isinstance(together, Mismatch):
            raise _no_type(function, name, together.reason)
        types[name] = together
    return types


def _arguments(call: Any) -> tuple[Any, ...]:
    return tuple(call) if isinstance(call, tuple | list) else (call,)


def _no_type(function: Any, name: str, reason: str) -> NotScriptable:
    return NotScriptable(
        found=f"the parameter `{name}` of `{function.__qualname__}`",
        reason=f"its examples have no type: {reason}",
        hint="Annotate it.",
    )
