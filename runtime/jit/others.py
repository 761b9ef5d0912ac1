"""Tracing, archives and freezing, by the names of `torch.jit`: loaded when called.

True only here: how what other chapters make is handed to programs of Python: compiled
functions as `ScriptFunction`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn

from runtime.errors.module import NotScriptable
from runtime.jit.script_function import ScriptFunction
from runtime.jit.scripting import script
from runtime.locks import load
from runtime.modules import Module
from runtime.script.emission import SimpleValue
from runtime.script.emission.forms import SpecialForm, register_forms
from runtime.script.modules import (
    Compiled,
    ScriptModule,
    freeze_module,
    uncompiled_module,
)
from runtime.script.program import Function
from runtime.script.running.options import executor


def script_method(fn: Any) -> NoReturn:
    """Refuse to compile a method before there is an object.

    Raises:
        NotScriptable: always.
    """
    raise NotScriptable(
        found=f"`{getattr(fn, '__qualname__', fn)}`",
        reason="methods are compiled with their module",
        hint="Derive from `runtime.Module`, and call `jit.script` with an object.",
    )


def _public(made: Any) -> Any:
    return ScriptFunction(made) if isinstance(made, Function) else made


def trace(func: Any, example_inputs: Any = (), **options: Any) -> Any:
    """Compile what a function, or module, does with example inputs.

    Of a function it gives the compiled one, of a module a compiled module with the
    method `forward`.  `options` are those of `runtime.script.tracing.trace_function`.

    Raises:
        ScriptError: no graph has what was done, or the graph does something else.
        BaseException: what the function raises.
    """
    if isinstance(func, Module):
        return trace_module(func, {"forward": example_inputs}, **options)
    tracing: Any = load("runtime.script.tracing")
    return ScriptFunction(tracing.trace_function(func, example_inputs, **options))


def trace_module(mod: Module, inputs: Mapping[str, Any], **options: Any) -> Any:
    """Compile what methods of a module do with example inputs, by their names.

    The compiled module has these methods, and a type of its own.  Raises as `trace`.
    """
    tracing: Any = load("runtime.script.tracing")
    made = uncompiled_module(mod)
    of = made.__script_type__
    for name, each in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        traced = tracing.trace_method(method, mod, of, each, name=name, **options)
        traced.qualname = f"{of.declaration.qualname}.{name}"
        of.declaration.add_method(name, traced.schema)
        of.declaration.functions[name] = traced
    return made


def save(m: Any, f: Any, **options: Any) -> None:
    """Write a compiled module, or function, to a path or a file as an archive.

    Raises:
        NotScriptable: it is not compiled.
    """
    if not isinstance(m, ScriptModule | Compiled):
        raise NotScriptable(
            found=f"an object of class {type(m).__name__}",
            reason="what is saved has been compiled",
            hint="Compile it by `jit.script`, or `jit.trace`.",
        )
    load("runtime.script.archive").save(
        m.function if isinstance(m, Compiled) else m, f, **options
    )


def load_archive(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Read what `save` wrote, of a path or a file; nothing of it is run."""
    archive: Any = load("runtime.script.archive")
    return _public(archive.load(f, map_location=map_location, **options))


def is_tracing() -> bool:
    """Whether this thread is recording a trace; False in a program."""
    recorder: Any = sys.modules.get("runtime.script.tracing.recorder")
    return recorder is not None and recorder.CURRENT.recorder is not None


register_forms(
    SpecialForm("is_tracing", lambda e, _: SimpleValue(e.constant(False)), is_tracing)
)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is compiled when it is first called in a trace."""

    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        return (script(fn) if is_tracing() else fn)(*args, **kwargs)

    return called


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Whether passes change what runs, as long as the `with` lasts."""
    with executor(optimize=should_optimize):
        yield


def optimize_for_inference(mod: Any, other_methods: Sequence[str] | None = None) -> Any:
    """The module, frozen; `other_methods` stay methods.  Raises as `freeze`."""
    return freeze(mod, other_methods)


def freeze(
    mod: Any,
    preserved_attrs: Sequence[str] | None = None,
    optimize_numerics: bool = True,
) -> Any:
    """A compiled module whose attributes are constants of its graphs.

    `preserved_attrs` stay attributes, or methods; `optimize_numerics` is taken, and
    does nothing.

    Raises:
        NotScriptable: it is not compiled, or being trained.
    """
    if not isinstance(mod, ScriptModule):
        raise NotScriptable(
            found=f"an object of class {type(mod).__name__}",
            reason="what is frozen is a compiled module",
            hint="Compile it by `jit.script`.",
        )
    return freeze_module(mod, tuple(preserved_attrs or ()))
