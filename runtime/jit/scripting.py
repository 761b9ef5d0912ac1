"""`script`, `trace`, `save`, `load` and related functions: the names of `torch.jit`.

This module exposes the results of the compiler to Python programs: compiled functions
as `ScriptFunction`, the functions of a source text as a `CompilationUnit`. The effect
of `script` on

    a function                compiled now; the same function has the same result
    a module                  compiled with all modules within it
    a class                   its methods are compiled; scripts can use its objects
    an interface, an enum, a named tuple    declared
    a list, a dictionary    returned unchanged: programs use the object itself
    a compiled object         returned unchanged

Rules:
- a Python function owns its compiled function, which does not keep it alive: both are
  freed together;
- `example_inputs` are calls: the types of their arguments are the types of parameters
  without annotation; if calls differ, the common type;
- in a program, a compiled function means its original function; it has the name, the
  docstring and the module of the Python function; it is immutable, so a copy is itself;
  pickling is refused: use `save`;
- a unit has a separate program: two units may define the same name. A later
  definition may call earlier ones, and replaces one of the same name. Names in a text
  have their Python meaning if they are operators, types, or functions of the unit;
- tracing and archives are imported at the first call.
"""

import enum
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import update_wrapper, wraps
from typing import Any, NoReturn, Self, SupportsIndex

from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.script import ModuleError, NotScriptable
from everyorder.runtime.nn import Module
from everyorder.runtime.schema.subtyping import Mismatch, unify
from everyorder.runtime.schema.types import NoneType_, OptionalType, Type
from everyorder.runtime.script.emission import (
    Arguments,
    Compiler,
    Emitter,
    FunctionOfProgram,
    SimpleValue,
    Sugared,
    arguments_of,
    compile_class,
    compile_function,
    compile_text,
    register_sugar,
)
from everyorder.runtime.script.emission.special_forms import SpecialForm, register_forms
from everyorder.runtime.script.emission.sugar import sugar_of_value, type_of
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.executor.task_pool import executor
from everyorder.runtime.script.frontend import scope_of_class
from everyorder.runtime.script.ir.program import (
    SHARED_PROGRAM,
    Function,
    Mark,
    NotInferred,
    Program,
    inferred_type,
    is_interface,
    mark_of,
)
from everyorder.runtime.script.modules import (
    Compiled,
    ScriptModule,
    compile_module,
    freeze_module,
    uncompiled_module,
)
from everyorder.runtime.script.modules.build import text_names
from everyorder.runtime.script.types.annotations import TypeScope


def refused(found: str, reason: str, hint: str = "") -> NotScriptable:
    """Return the error for an object that cannot be scripted; `hint` suggests a
    remedy.
    """
    return NotScriptable(found=found, reason=reason, hint=hint)


class ScriptFunction(Compiled):
    """A compiled function; created by `jit.script`, `jit.trace` and `jit.load`."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        if function.python is not None:
            update_wrapper(self, function.python, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function and return its result.

        Exceptions of the program propagate.

        Raises:
            CallError: the call does not fit the schema.
        """
        return call(self.function, args, kwargs)

    def save(self, f: Any, **options: Any) -> None:
        """Write an archive, as `jit.save` does."""
        load("everyorder.runtime.script.archive").save(self.function, f, **options)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            NotScriptable: always.
        """
        raise refused(
            f"the compiled function `{self.name}`",
            "a compiled function is not pickled",
            "Use `jit.save` and `jit.load`.",
        )


register_sugar(ScriptFunction, lambda each: FunctionOfProgram(each.function))


# The attribute of a function that holds its compiled function.
KEPT = "__script_function__"


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Sequence[Any] | Mapping[Any, Any] | None = None,
) -> Any:
    """Compile a function, a class or a module.

    Return the compiled function or module; for a class, return the class.
    `example_inputs` are the arguments of calls, each a tuple; for a module, lists of
    them by its methods. `optimize`, `_frames_up` and `_rcb` are accepted for
    compatibility, and have no effect.

    Raises:
        NotScriptable: `obj` is another object.
        ProgramError: the program cannot be compiled; it shows where and why.
    """
    if isinstance(obj, ScriptModule | ScriptFunction):
        return obj
    if isinstance(obj, Module):
        return compile_module(obj, examples=_of_methods(obj, example_inputs))
    if isinstance(obj, Function):
        return ScriptFunction(obj)
    if isinstance(obj, type):
        return _class(obj)
    if isinstance(obj, list | dict):
        return _container(obj)
    if callable(obj) and inspect.isroutine(obj):
        return _function(obj, example_inputs)
    raise refused(
        _named(obj),
        "functions, classes and modules are compiled",
        "Pass the object to a compiled function, if it is a value.",
    )


def _container(values: list[Any] | dict[Any, Any]) -> Any:
    """Return a list or a dictionary; programs use the object itself, uncopied.

    An empty one may have any type: it is checked where a program takes it.
    """
    if not values:
        return values
    of = inferred_type(values)
    if isinstance(of, NotInferred):
        raise refused(describe_type(values), of.reason, "Make its values of one type.")
    return values


def _class(python: type) -> type:
    if issubclass(python, Module) and not is_interface(python):
        raise refused(
            f"the class `{python.__name__}`",
            "modules are compiled, not their classes",
            "Create an instance, and compile it.",
        )
    if issubclass(python, BaseException):
        raise refused(
            f"the class `{python.__name__}`",
            "exceptions are not compiled; programs raise Python's exceptions by name",
        )
    if issubclass(python, enum.Enum) or hasattr(python, "_fields"):
        SHARED_PROGRAM.classes(python, scope_of_class(python, SHARED_PROGRAM.classes))
        return python
    if is_interface(python):
        compiler = Compiler(SHARED_PROGRAM)
        compiler.run(
            lambda: compiler.classes(python, TypeScope(classes=compiler.classes))
        )
    else:
        compile_class(python, SHARED_PROGRAM)
    return python


def _function(function: Any, examples: Any) -> ScriptFunction:
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise refused(
            _named(function),
            "it is not written in Python",
            "Call it in a function, and compile that.",
        )
    if inspect.ismethod(function):
        raise refused(
            _named(function),
            "it is a bound method",
            "Compile the module, or the class, whose method it is.",
        )
    mark = mark_of(function)
    if mark in (Mark.IGNORE, Mark.UNUSED):
        raise refused(
            _named(function),
            f"it is marked by `@{mark.value}`, so it stays a Python function",
        )
    compiled_before = function.__dict__.get(KEPT)
    # A wrapper made by `functools.wraps` may have a copy of the attribute.
    if compiled_before is None or compiled_before.function.python is not function:
        types = {"types": types_of_calls(function, examples)} if examples else {}
        compiled = compile_function(function, SHARED_PROGRAM, **types)
        compiled_before = function.__dict__[KEPT] = ScriptFunction(compiled)
    result: ScriptFunction = compiled_before
    return result


def _named(obj: Any) -> str:
    name = getattr(obj, "__qualname__", None)
    return f"`{name}`" if isinstance(name, str) else describe_type(obj)


def _of_methods(module: Module, examples: Any) -> Mapping[str, Mapping[str, Type]]:
    """Return the types of parameters by the methods of a module."""
    if not examples:
        return {}
    calls = examples if isinstance(examples, Mapping) else {"forward": examples}
    types = {}
    for method, each in calls.items():
        name = method if isinstance(method, str) else method.__name__
        bound = getattr(module, name)
        function = getattr(bound, "__func__", bound)
        types[name] = types_of_calls(function, each, skip=1)
    return types


def types_of_calls(
    function: Callable[..., Any], calls: Iterable[Any], skip: int = 0
) -> dict[str, Type]:
    """Return the types of the parameters without annotation, from example calls.

    Raises:
        NotScriptable: the arguments of a parameter do not have a common type.
    """
    code: Any = function
    names = code.__code__.co_varnames[skip : code.__code__.co_argcount]
    types_by_name: dict[str, list[Type]] = {}
    for example in calls:
        arguments = example if isinstance(example, tuple | list) else (example,)
        for name, value in zip(names, arguments, strict=False):
            if name in code.__annotations__:
                continue
            one = inferred_type(value)
            if isinstance(one, NotInferred):
                raise _no_type(function, name, one.reason)
            types_by_name.setdefault(name, []).append(one)
    types = {}
    for name, each in types_by_name.items():
        common = unify(*each)
        if isinstance(common, Mismatch):
            raise _no_type(function, name, common.reason)
        types[name] = common
    return types


def _no_type(function: Any, name: str, reason: str) -> NotScriptable:
    return refused(
        f"the parameter `{name}` of `{function.__qualname__}`",
        f"its example inputs do not determine a type: {reason}",
        "Annotate it.",
    )


class CompilationUnit:
    """The functions of a text: `CompilationUnit("def f(x): return x + 1").f(2)`."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._program = Program()
        self._functions: dict[str, ScriptFunction] = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Compile the functions of a text; if one fails, none is defined.

        Raises:
            ProgramError: the text cannot be compiled; it shows where and why.
        """
        own = {name: each.function for name, each in self._functions.items()}
        names = {**text_names(), **own}
        functions = compile_text(lang, self._program, names=names)
        for each in functions:
            self._functions[each.name] = ScriptFunction(each)

    @property
    def functions(self) -> tuple[ScriptFunction, ...]:
        """Return the functions, in the order in which they were defined."""
        return tuple(self._functions.values())

    def find_function(self, name: str) -> ScriptFunction | None:
        """Return the function of a name, or None."""
        return self._functions.get(name)

    def __getattr__(self, name: str) -> ScriptFunction:
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            raise ModuleError(
                code="NoSuchMember",
                module="CompilationUnit",
                wanted="function",
                path=name,
                near=nearest(name, [*functions]),
            )
        function: ScriptFunction = functions[name]
        return function

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._functions})


def script_method(fn: Any) -> NoReturn:
    """Refuse to compile a method before there is an object.

    Raises:
        NotScriptable: always.
    """
    raise refused(
        f"`{getattr(fn, '__qualname__', fn)}`",
        "methods are compiled with their module",
        "Derive from `runtime.Module`, and call `jit.script` with an object.",
    )


def trace(func: Any, example_inputs: Any = (), **options: Any) -> Any:
    """Compile the operations of a function, or module, with example inputs.

    Return the compiled function; for a module, return a compiled module with the method
    `forward`. `options` are those of `runtime.script.tracing.trace_function`.

    Exceptions of the function propagate.

    Raises:
        ScriptError: a graph cannot represent the operations, or the graph computes
            something else.
    """
    if isinstance(func, Module):
        if options.get("check_inputs"):
            checks = [{"forward": each} for each in options["check_inputs"]]
            options = {**options, "check_inputs": checks}
        return trace_module(func, {"forward": example_inputs}, **options)
    tracing: Any = load("everyorder.runtime.script.tracing")
    return ScriptFunction(tracing.trace_function(func, example_inputs, **options))


def trace_module(
    mod: Module,
    inputs: Mapping[str, Any],
    *,
    check_inputs: Iterable[Mapping[str, Any]] | None = None,
    **options: Any,
) -> Any:
    """Compile the operations of a module's methods with example inputs, by their names.

    The compiled module has these methods, and a separate type. `check_inputs` are more
    inputs by the names of methods. Raises the errors of `trace`.

    Raises:
        NotScriptable: `check_inputs` are not inputs by methods that are traced.
    """
    checks = _checks_of_methods(mod, inputs, check_inputs or ())
    tracing: Any = load("everyorder.runtime.script.tracing")
    compiled = uncompiled_module(mod)
    of = compiled.__script_type__
    for name, each in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        traced = tracing.trace_method(
            method, mod, of, each, name=name, check_inputs=checks[name], **options
        )
        traced.qualname = f"{of.declaration.qualname}.{name}"
        of.declaration.add_method(name, traced.schema)
        of.declaration.functions[name] = traced
    return compiled


def _checks_of_methods(
    mod: Module, inputs: Mapping[str, Any], check_inputs: Iterable[Any]
) -> dict[str, list[Any]]:
    checks: dict[str, list[Any]] = {name: [] for name in inputs}
    for each in check_inputs:
        methods = each if isinstance(each, Mapping) else {}
        unknown = [name for name in methods if name not in inputs]
        if unknown or not methods:
            found = f"`{unknown[0]}`" if unknown else describe_type(each)
            raise refused(
                f"{found} in the `check_inputs` of a `{type(mod).__name__}`",
                "they are inputs by the names of the traced methods",
                f"Write a dictionary with {', '.join(f'`{name}`' for name in inputs)}.",
            )
        for name, values in methods.items():
            checks[name].append(values)
    return checks


def save(m: Any, f: Any, **options: Any) -> None:
    """Write a compiled module, or function, to a path or a file as an archive.

    Raises:
        NotScriptable: it is not compiled.
    """
    if not isinstance(m, ScriptModule | Compiled):
        raise refused(
            f"an object of class {type(m).__name__}",
            "only compiled modules and functions can be saved",
            "Compile it by `jit.script`, or `jit.trace`.",
        )
    load("everyorder.runtime.script.archive").save(
        m.function if isinstance(m, Compiled) else m, f, **options
    )


def load_archive(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Read an archive of `save` from a path or a file; no code in it runs."""
    archive: Any = load("everyorder.runtime.script.archive")
    loaded = archive.load(f, map_location=map_location, **options)
    return ScriptFunction(loaded) if isinstance(loaded, Function) else loaded


def is_tracing() -> bool:
    """Return True if this thread is recording a trace; False in a program."""
    recorder: Any = sys.modules.get("everyorder.runtime.script.tracing.recorder")
    return recorder is not None and recorder.CURRENT.recorder is not None


def unwrap_optional(x: Any) -> Any:
    """Return a value that is not None.

    Raises:
        AssertionError: the value is None.
    """
    if x is None:
        raise AssertionError(_NULL)
    return x


_NULL = "`_unwrap_optional` was given None: expected a value"


def _unwrap(e: Emitter, arguments: Arguments) -> Sugared:
    (operand,) = arguments_of(e, "_unwrap_optional", ("x",), arguments)
    kind = type_of(operand)
    if not isinstance(kind, OptionalType):
        if kind is NoneType_:
            e.fail("`_unwrap_optional` is given None, which is never a value")
        result: Sugared = operand
        return result
    value = operand.value(e)
    is_none = e.operator("script::is_.t", value, e.constant(None))
    node = e.node("prim::If", (is_none,))
    e.branch(node, lambda: e.raises("builtins.AssertionError", _NULL))
    e.branch(node, lambda: None)
    return sugar_of_value(e.cast(value, kind.element))


register_forms(
    SpecialForm("is_tracing", lambda e, _: SimpleValue(e.constant(False)), is_tracing),
    SpecialForm("_unwrap_optional", _unwrap, unwrap_optional),
)


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, compiled at its first call in a trace."""

    @wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        return (script(fn) if is_tracing() else fn)(*args, **kwargs)

    return called


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Enable or disable optimization passes inside a `with` block."""
    with executor(optimize=should_optimize):
        yield


def optimize_for_inference(mod: Any, other_methods: Sequence[str] | None = None) -> Any:
    """Return the frozen module; `other_methods` stay methods.

    Raises the errors of `freeze`.
    """
    return freeze(mod, other_methods)


def freeze(
    mod: Any,
    preserved_attrs: Sequence[str] | None = None,
    optimize_numerics: bool = True,
) -> Any:
    """Return a compiled module whose attributes are constants of its graphs.

    `preserved_attrs` stay attributes, or methods; `optimize_numerics` is accepted for
    compatibility, and has no effect.

    Raises:
        NotScriptable: the module is not compiled, or it is in training mode.
    """
    if not isinstance(mod, ScriptModule):
        raise refused(
            f"an object of class {type(mod).__name__}",
            "only compiled modules can be frozen",
            "Compile it by `jit.script`.",
        )
    return freeze_module(mod, tuple(preserved_attrs or ()))
