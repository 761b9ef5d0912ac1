"""What executed code reads that no state holds: C functions, identity, environment.

- *C functions*: those that code names, in branches that were not taken as well; what
  code calls by an argument or attribute of an object is recorded when it is called.
- *Identity*: two equal texts or numbers may be one object or two; a canonical form does
  not distinguish these, but `is` does.  Code whose `is` compares with a constant, or
  with a name that is bound to an object other than a text, number or bytes, asks
  nothing of that kind.  All other code is an assumption of a proof.
- *Environment*: it is read by functions of `os` that are written in Python.

Code of the standard library is not examined: it compares types and marks.
"""

import builtins
import dis
import operator
import os
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
)
from typing import Any, NamedTuple

from everyorder.harness.state.layout import Memo, module_dict, mro_of, namespace_of

ENVIRONMENT = "os.environ"

# Values of which two equal ones may be one object or two.
_VALUES = (int, str, bytes, float, complex)
_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_IS = dis.opmap["IS_OP"]
# Slot wrappers are called without an event.  These compare or return an address.
_BY_IDENTITY = (object.__eq__, object.__ne__, object.__hash__)
_UNKNOWN = object()
# Instructions that do nothing.
_SILENT = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL"})

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
    constant: Any = _UNKNOWN
    before: Any = _UNKNOWN
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _SILENT:
            continue
        if name == "IS_OP":
            harmless = any(
                each is not _UNKNOWN and type(each) not in _VALUES
                for each in (constant, before)
            )
            if not harmless:
                operands.append(_Operand(tuple(chain or ())))
        if name == "LOAD_CONST":
            before, constant, chain = constant, instruction.argval, None
        elif name in _NAMES:
            before, constant, chain = constant, _UNKNOWN, [instruction.argval]
        elif name in _ATTRIBUTES and chain is not None:
            chain.append(instruction.argval)
        else:
            before, constant, chain = _UNKNOWN, _UNKNOWN, None
    return operands


_operands_of = Memo(_read_operands)


def _may_be_value(frame: FrameType, name: tuple[str, ...]) -> bool:
    """Return True if a name may be bound to a value, as far as can be seen."""
    first, *rest = name
    value: Any = dict.get(frame.f_globals, first, _UNKNOWN)
    if value is _UNKNOWN:
        value = dict.get(frame.f_builtins, first, _UNKNOWN)
    for attribute in rest:
        value = _attribute(value, attribute)
    # A flag is one of two objects; an enumeration has each member once.
    return value is _UNKNOWN or type(value) in _VALUES


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute of a module or class, or `_UNKNOWN`; runs no code."""
    if issubclass(type(value), ModuleType):
        return module_dict(value).get(name, _UNKNOWN)
    if issubclass(type(value), type):
        for base in mro_of(value):
            if name in namespace_of(base):
                return namespace_of(base)[name]
    return _UNKNOWN


class _Load(NamedTuple):
    """One instruction that loads a name, the first or a later one of a chain."""

    name: str
    goes_on: bool
    is_callee: bool


def _read_loads(code: CodeType) -> list[_Load]:
    """Return the names that code loads."""
    loads: list[_Load] = []
    attached = pushed = False
    for instruction in dis.get_instructions(code):
        begins = instruction.opname in _NAMES
        goes_on = attached and instruction.opname in _ATTRIBUTES
        attached = begins or goes_on
        if attached:
            # A callee is paired with NULL, before its chain or by its instruction.
            pushed = "NULL" in instruction.argrepr or (goes_on and pushed)
            called = pushed or instruction.opname == "LOAD_METHOD"
            loads.append(_Load(instruction.argval, goes_on, called))
    return loads


_loads_of = Memo(_read_loads)


def named_functions(frame: FrameType) -> list[tuple[Any, bool]]:
    """Return the functions that a frame's code names, and True for each it calls.

    These are C functions, and functions of any kind that are attributes of a module.
    """
    return _named(frame.f_code, frame.f_globals, frame.f_builtins)


def named_by(function: FunctionType) -> list[tuple[Any, bool]]:
    """Return what `named_functions` does, for a function that does not run."""
    return _named(function.__code__, function.__globals__, vars(builtins))


def _named(
    code: CodeType, names: dict[str, Any], outer: dict[str, Any]
) -> list[tuple[Any, bool]]:
    if not any(_reach(names, outer, name) is not None for name in code.co_names):
        return []
    functions: list[tuple[Any, bool]] = []
    value: Any = None
    for load in _loads_of(code):
        if not load.goes_on:
            value = _reach(names, outer, load.name)
        elif value is not None:
            value = _attribute(value, load.name)
            value = None if value is _UNKNOWN else value
        if value is operator.methodcaller or _is_function(value):
            functions.append((value, load.is_callee))
    return functions


def _reach(names: dict[str, Any], outer: dict[str, Any], name: Any) -> Any:
    """Return a global that is or may hold a function, or None."""
    value = dict.get(names, name)
    if value is None:
        value = dict.get(outer, name)
    if type(value) is ModuleType or is_class(value) or _is_function(value):
        return value
    return None


def is_class(value: object) -> bool:
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
