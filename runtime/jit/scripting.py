"""`script`, `trace`, `save`, `load` and their like: the names of `torch.jit`.

What other chapters make is handed to programs of Python here: compiled functions as
`ScriptFunction`, functions of a text as a `CompilationUnit`.  What `script` does:

    a function                compiled now; the same one again is the same result
    a module                  compiled with all modules within it
    a class                   its methods are compiled, and its objects are for scripts
    an interface, an enum, a named tuple    declared
    what is compiled          itself

Rules:
- a Python function keeps what was compiled of it, and is not kept alive by that: both
  go together;
- `example_inputs` are calls: the types of their arguments are those of parameters
  without annotation, where several calls differ the type into which all fit;
- a compiled function means, in a program, the function that it is made of; it has the
  name, the text for `help` and the module of the Python function; it does not change,
  so a copy is itself; pickling is refused: `save` is for that;
- a unit has a program of its own: what is defined in two units may have one name.  What
  is defined later may call what is there, and takes its place if it has its name.  A
  text means what Python's names mean that stand in it: those of the operators, of
  types, and of the functions of the unit;
- tracing and archives are loaded when they are first called.
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
from everyorder.runtime.schema.types import Type
from everyorder.runtime.script.emission import (
    Compiler,
    FunctionOfProgram,
    SimpleValue,
    compile_class,
    compile_function,
    compile_text,
    register_sugar,
)
from everyorder.runtime.script.emission.special_forms import SpecialForm, register_forms
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
    """The error that something is not for scripts; `hint` says what can be done."""
    return NotScriptable(found=found, reason=reason, hint=hint)


class ScriptFunction(Compiled):
    """A compiled function; made by `jit.script`, `jit.trace` and `jit.load`."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        if function.python is not None:
            update_wrapper(self, function.python, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives.

        Raises:
            CallError: the call does not fit the schema.
            Exception: what the program raises.
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
    raise refused(
        _named(obj),
        "functions, classes and modules are compiled",
        "Pass the object to a compiled function, if it is a value.",
    )


def _class(python: type) -> type:
    if issubclass(python, Module) and not is_interface(python):
        raise refused(
            f"the class `{python.__name__}`",
            "modules are compiled, not their classes",
            "Make an object, and compile that.",
        )
    if issubclass(python, BaseException):
        raise refused(
            f"the class `{python.__name__}`",
            "exceptions are Python's; programs raise them by their names",
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
            "it has an object to it",
            "Compile the module, or the class, whose method it is.",
        )
    mark = mark_of(function)
    if mark in (Mark.IGNORE, Mark.UNUSED):
        raise refused(
            _named(function), f"it is marked by `@{mark.value}`, and stays Python's"
        )
    known = function.__dict__.get(KEPT)
    # Of one that wraps another the attribute may be a copy.
    if known is None or known.function.python is not function:
        types = {"types": types_of_calls(function, examples)} if examples else {}
        compiled = compile_function(function, SHARED_PROGRAM, **types)
        known = function.__dict__[KEPT] = ScriptFunction(compiled)
    result: ScriptFunction = known
    return result


def _named(obj: Any) -> str:
    name = getattr(obj, "__qualname__", None)
    return f"`{name}`" if isinstance(name, str) else describe_type(obj)


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
    for example in calls:
        arguments = example if isinstance(example, tuple | list) else (example,)
        for name, value in zip(names, arguments, strict=False):
            if name in code.__annotations__:
                continue
            one = inferred_type(value)
            if isinstance(one, NotInferred):
                raise _no_type(function, name, one.reason)
            found.setdefault(name, []).append(one)
    types = {}
    for name, each in found.items():
        common = unify(*each)
        if isinstance(common, Mismatch):
            raise _no_type(function, name, common.reason)
        types[name] = common
    return types


def _no_type(function: Any, name: str, reason: str) -> NotScriptable:
    return refused(
        f"the parameter `{name}` of `{function.__qualname__}`",
        f"its examples have no type: {reason}",
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
            ProgramError: the text cannot be compiled; says where and why.
        """
        own = {name: each.function for name, each in self._functions.items()}
        names = {**text_names(), **own}
        made = compile_text(lang, self._program, names=names)
        for each in made:
            self._functions[each.name] = ScriptFunction(each)

    @property
    def functions(self) -> tuple[ScriptFunction, ...]:
        """The functions, in the order in which they were defined."""
        return tuple(self._functions.values())

    def find_function(self, name: str) -> ScriptFunction | None:
        """The function of a name, or None."""
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
        found: ScriptFunction = functions[name]
        return found

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
    """Compile what a function, or module, does with example inputs.

    Of a function it gives the compiled one, of a module a compiled module with the
    method `forward`.  `options` are those of `runtime.script.tracing.trace_function`.

    Raises:
        ScriptError: no graph has what was done, or the graph does something else.
        BaseException: what the function raises.
    """
    if isinstance(func, Module):
        return trace_module(func, {"forward": example_inputs}, **options)
    tracing: Any = load("everyorder.runtime.script.tracing")
    return ScriptFunction(tracing.trace_function(func, example_inputs, **options))


def trace_module(mod: Module, inputs: Mapping[str, Any], **options: Any) -> Any:
    """Compile what methods of a module do with example inputs, by their names.

    The compiled module has these methods, and a type of its own.  Raises as `trace`.
    """
    tracing: Any = load("everyorder.runtime.script.tracing")
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
        raise refused(
            f"an object of class {type(m).__name__}",
            "what is saved has been compiled",
            "Compile it by `jit.script`, or `jit.trace`.",
        )
    load("everyorder.runtime.script.archive").save(
        m.function if isinstance(m, Compiled) else m, f, **options
    )


def load_archive(f: Any, map_location: Any = None, **options: Any) -> Any:
    """Read what `save` wrote, of a path or a file; nothing of it is run."""
    archive: Any = load("everyorder.runtime.script.archive")
    loaded = archive.load(f, map_location=map_location, **options)
    return ScriptFunction(loaded) if isinstance(loaded, Function) else loaded


def is_tracing() -> bool:
    """Whether this thread is recording a trace; False in a program."""
    recorder: Any = sys.modules.get("everyorder.runtime.script.tracing.recorder")
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
        raise refused(
            f"an object of class {type(mod).__name__}",
            "what is frozen is a compiled module",
            "Compile it by `jit.script`.",
        )
    return freeze_module(mod, tuple(preserved_attrs or ()))
