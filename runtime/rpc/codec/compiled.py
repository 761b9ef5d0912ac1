"""Compiled functions and modules in messages.

This is the only file of the codec that depends on compiled programs.  The compiler is
large, so it is imported when a message needs it; before that, compiled values do not
exist.
"""

import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from typing import Any

from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.errors.base import code_of, nearest
from everyorder.runtime.errors.rpc import UnknownCallable

Reducer = Callable[[Any], Any]

# The prefix of the full names of compiled functions.
_PROGRAMS = "__torch__."


def _reduce_module(module: Any) -> Any:
    file = BytesIO()
    from everyorder.runtime.script.archive import save

    save(module, file)
    return _module, (pickle.PickleBuffer(file.getvalue()),)


def _module(data: Any) -> Any:
    from everyorder.runtime.script.archive import load

    return load(BytesIO(data))


def _reduce_script_function(function: Any) -> Any:
    return script_function, (function.qualified_name,)


def _refuse_method(method: Any) -> Any:
    raise pickle.PicklingError(f"`{method.name}` is a part of a program")


def reducer_of_compiled(kind: type) -> Reducer | None:
    """Return the reducer of a class of compiled programs; None for any other class."""
    # Objects of these classes exist only if this module is loaded.
    modules: Any = sys.modules.get("everyorder.runtime.script.modules.script_module")
    if modules is None:
        return None
    if issubclass(kind, modules.ScriptModule):
        return _reduce_module
    jit: Any = sys.modules.get("everyorder.runtime.jit.scripting")
    if jit is not None and issubclass(kind, jit.ScriptFunction):
        return _reduce_script_function
    from everyorder.runtime.script.ir.program import Function

    if issubclass(kind, (modules.Compiled, Function)):
        return _refuse_method
    return None


def is_compiled(function: Any) -> bool:
    """Return True for a compiled function."""
    # Such objects exist only if this module is loaded; loading it is expensive.
    jit: Any = sys.modules.get("everyorder.runtime.jit.scripting")
    return jit is not None and isinstance(function, jit.ScriptFunction)


def binder_of(function: Any) -> Any:
    """Return the function that binds the arguments of a compiled function."""
    memo: dict[str, Any] = function.function.memo
    bind = memo.get("binder")
    if bind is None:
        from everyorder.runtime.script.executor import python_interop

        bind = memo["binder"] = python_interop.binder_of(function.schema)
    return bind


def script_function(name: str) -> Any:
    """Return the compiled function of a full name; import its module if necessary.

    Raises:
        UnknownCallable: there is no such function.
    """
    with LOADING:
        from everyorder.runtime.jit.scripting import ScriptFunction
        from everyorder.runtime.script.ir.program import SHARED_PROGRAM
    functions = SHARED_PROGRAM.functions
    function = functions.get(name)
    if function is None:
        reason = import_module_of(name)
        function = functions.get(name)
    if function is None:
        raise UnknownCallable(
            kind="function",
            name=name.removeprefix(_PROGRAMS).rpartition(".")[2],
            near=nearest(name, [*functions]),
            reason=reason,
        )
    return ScriptFunction(function)


def import_module_of(name: str) -> str:
    """Import the module of a function's full name; return the error's text, or ""."""
    module = name.removeprefix(_PROGRAMS).rpartition(".")[0]
    if not module or module == "__main__":
        return ""
    try:
        import_module(module)
    except Exception as error:
        return f"{code_of(error)}: {error}"
    return ""
