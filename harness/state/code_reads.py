"""What executed code reads that no state holds: C functions, identity, environment.

- *C functions*: those that code names, in branches that were not taken as well; what
  code calls by an argument or attribute of an object is recorded when it is called.
- *Identity*: two equal texts or numbers may be one object or two; a canonical form does
  not distinguish these, but `is` does.  Code whose `is` compares with a constant, or
  with a name that is bound to an object other than a text, number or bytes, asks
  nothing of that kind.  All other code is an assumption of a proof.
- *Environment*: it is read by functions of `os` that are written in Python.
- *Hidden attributes* of frames and code, and *memory* that `ctypes` or `mmap` reads.
- *Modules passed on*: a function of `os` may be got by a name that is computed.

Code of the standard library is not examined: it compares types and marks.
"""

import builtins
import codecs
import dis
import gc
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from inspect import getattr_static
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple, TypeGuard

from everyorder.harness.state.code_loads import (
    ATTRIBUTES,
    NAMES,
    SILENT,
    UNKNOWN,
    Load,
    attribute_of,
    bound,
    resolved,
)
from everyorder.harness.state.layout import (
    Memo,
    is_standard,
    module_dict,
    module_of,
)

ENVIRONMENT = "os.environ"
ADAPTIVE = "code._co_code_adaptive"

# Values of which two equal ones may be one object or two.
_VALUES = (int, str, bytes, float, complex)
_IS = dis.opmap["IS_OP"]
# Slot wrappers are called without an event.  These compare or return an address.
_BY_IDENTITY = (object.__eq__, object.__ne__, object.__hash__)
_OPTIMIZED = 0x1
# By these, the comparison of `object` is got of a value of any class.
_BASES = frozenset({"object", "super"})
_EQUALITY = frozenset({"__eq__", "__ne__"})
# The flags of generators, coroutines and asynchronous generators.
_GOES_ON = 0x20 | 0x80 | 0x200

# Modules that read and write the memory of the process, by their usual names.
_MEMORY = {
    "_cffi_backend": "cffi",
    "_ctypes": "ctypes",
    "cffi": "cffi",
    "ctypes": "ctypes",
    "mmap": "mmap",
}
# The variable of an outer scope that `super()` uses.
_OF_METHOD = {"__class__"}
# What gives a module by its name.
_IMPORTERS = frozenset({"__import__", "import_module", "modules"})
# The variables of a caller keep what is added to them, and its tracing is kept with
# them; the code that the interpreter specialized tells how often it ran.
_HIDDEN = {
    "_co_code_adaptive": ADAPTIVE,
    "f_locals": "frame.f_locals",
    "f_trace": "frame.f_trace",
    "f_trace_lines": "frame.f_trace_lines",
    "f_trace_opcodes": "frame.f_trace_opcodes",
}

_ENVIRONMENT_CODE = {
    id(function.__code__): function
    for function in (
        os._Environ.__getitem__,
        os._Environ.__iter__,
        os._Environ.__len__,
        os._Environ.copy,
        os.getenv,
    )
}


class _Operand(NamedTuple):
    """The right operand of an `is`: a dotted name, or unknown if it is empty."""

    name: tuple[str, ...]


def reads_environment(code: CodeType) -> bool:
    """Return True for code that reads the environment variables."""
    return id(code) in _ENVIRONMENT_CODE


def compares_identity(frame: FrameType) -> bool:
    """Return True if code of a frame may compare equal values by `is`."""
    return any(
        not operand.name or _may_be_value(frame, operand.name)
        for operand in _operands_of(frame.f_code)
    )


def _read_operands(code: CodeType) -> list[_Operand]:
    """Return the right operands of `is` in code, without harmless constants."""
    if _IS not in code.co_code[::2]:
        return []
    operands: list[_Operand] = []
    chain: list[str] | None = None
    constant: Any = UNKNOWN
    before: Any = UNKNOWN
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in SILENT:
            continue
        if name == "IS_OP":
            harmless = any(
                each is not UNKNOWN and type(each) not in _VALUES
                for each in (constant, before)
            )
            if not harmless:
                operands.append(_Operand(tuple(chain or ())))
        if name == "LOAD_CONST":
            before, constant, chain = constant, instruction.argval, None
        elif name in NAMES:
            before, constant, chain = constant, UNKNOWN, [instruction.argval]
        elif name in ATTRIBUTES and chain is not None:
            chain.append(instruction.argval)
        else:
            before, constant, chain = UNKNOWN, UNKNOWN, None
    return operands


_operands_of = Memo(_read_operands)


def _may_be_value(frame: FrameType, name: tuple[str, ...]) -> bool:
    """Return True if a name may be bound to a value, as far as can be seen."""
    first, *rest = name
    value = bound(first, frame.f_globals, frame.f_builtins)
    for attribute in rest:
        value = attribute_of(value, attribute)
    # A flag is one of two objects; an enumeration has each member once.
    return value is UNKNOWN or type(value) in _VALUES


def named_functions(frame: FrameType) -> list[tuple[Any, bool]]:
    """Return the functions that a frame's code names, and True for each it calls.

    These are C functions, and functions of any kind that are attributes of a module.
    """
    return _functions(_loads_of(frame))


def named_by(function: FunctionType) -> list[tuple[Any, bool]]:
    """Return what `named_functions` does, for a function that does not run."""
    names, code = function.__globals__, function.__code__
    return _functions(resolved(code, names, vars(builtins), {}))


def _loads_of(frame: FrameType) -> Iterator[tuple[Load, Any]]:
    code = frame.f_code
    free: Mapping[str, Any] = {}
    # A copy of the variables stays with a frame, which a traceback may keep.  So it is
    # made of none that goes on, and of none that has only the class of its method.
    if {*code.co_freevars} - _OF_METHOD and not code.co_flags & _GOES_ON:
        variables = frame.f_locals
        free = {name: variables[name] for name in code.co_freevars if name in variables}
    return resolved(code, frame.f_globals, frame.f_builtins, free)


def _functions(loads: Iterable[tuple[Load, Any]]) -> list[tuple[Any, bool]]:
    return [
        (value, load.is_callee)
        for load, value in loads
        if value is operator.methodcaller or _is_function(value)
    ]


def passed_modules(frame: FrameType) -> list[ModuleType]:
    """Return the modules of the standard library that a frame's code passes on.

    Their functions may be asked for by any name: `getattr(os, name)`, `vars(os)`.
    """
    modules: list[ModuleType] = []
    before: Any = None
    for load, value in _loads_of(frame):
        if load.is_passed and type(value) is ModuleType:
            modules.append(value)
        elif load.name == "__dict__" and not load.begins and type(before) is ModuleType:
            modules.append(before)
        before = value
    return [each for each in modules if is_standard(module_dict(each).get("__name__"))]


def memory_of(frame: FrameType) -> set[str]:
    """Return the modules for the memory of the process that a frame's code reads."""
    found: set[str] = set()
    for load, value in _loads_of(frame):
        # Its first import is read before the module is there.
        module = load.name if load.begins == "import" else _module_name(value)
        found.add(_memory(module))
    code = frame.f_code
    if not _IMPORTERS.isdisjoint(code.co_names):
        found.update(map(_memory, code.co_consts))
    return found - {""}


def is_of_memory(frame: FrameType) -> str:
    """Return the module for the memory of the process that code is of, or ""."""
    return _memory(dict.get(frame.f_globals, "__name__"))


def _memory(module: object) -> str:
    if type(module) is not str:
        return ""
    return _MEMORY.get(module.partition(".")[0], "")


def _module_name(value: object) -> object:
    """Return the name of a module, or of the module that defines a class or object."""
    if issubclass(type(value), ModuleType):
        return module_dict(value).get("__name__")
    if type(value) is FunctionType:
        return value.__globals__.get("__name__")
    try:
        return module_of(value if is_class(value) else type(value))
    except AttributeError:  # it was deleted
        return ""


def handles_encoding(code: CodeType) -> bool:
    """Return True for the code of a handler of `codecs.register_error`."""
    return any(_code_of(each) is code for each in _encoding_handlers().values())


@cache
def _encoding_handlers() -> dict[str, Any]:
    """Return the handlers of the interpreter, which has them in one dict."""
    strict = codecs.strict_errors
    for each in gc.get_referrers(strict):
        if type(each) is dict and each.get("strict") is strict and "ignore" in each:
            return each
    return {}


def _code_of(handler: Any) -> CodeType | None:
    """Return the code that a call runs, or None if it is that of a C function."""
    while type(handler) is partial:
        handler = handler.func
    if type(handler) not in (BuiltinFunctionType, FunctionType, MethodType):
        handler = getattr_static(type(handler), "__call__", None)
    code = getattr(handler, "__code__", None)
    return code if type(code) is CodeType else None


def hidden_attributes(code: CodeType) -> list[str]:
    """Return the attributes that code names and that no form of an object shows."""
    texts = [each for each in code.co_consts if type(each) is str]
    named = (*code.co_names, *texts)
    found = [_HIDDEN[name] for name in named if name in _HIDDEN]
    # A class body has annotations and defines methods; a method goes on to its super.
    is_own = code.co_name in _EQUALITY or not code.co_flags & _OPTIMIZED
    if not (is_own or _BASES.isdisjoint(named) or _EQUALITY.isdisjoint(named)):
        found.append("object.__eq__")
    return found


def is_class(value: object) -> TypeGuard[type]:
    """Return True for a class; does not ask the object for its `__class__`."""
    return issubclass(type(value), type)


def _is_function(value: object) -> bool:
    kinds = (
        BuiltinFunctionType,
        MethodDescriptorType,
        ClassMethodDescriptorType,
        FunctionType,
    )
    return type(value) in kinds or any(value is each for each in _BY_IDENTITY)
