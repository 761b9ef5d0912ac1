"""What executed code reads that no state holds: identity of equal values, environment.

- *Identity*: two equal texts or numbers may be one object or two; a canonical form does
  not distinguish these, but `is` does.  Code whose `is` compares with a constant, or
  with a name that is bound to an object other than a text, number or bytes, asks
  nothing of that kind.  All other code is an assumption of a proof.
- *Environment*: it is read by functions of `os` that are written in Python.

Code of the standard library is not examined: it compares types and marks.
"""

import dis
import os
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from everyorder.harness.state.layout import Memo, module_dict, mro_of, namespace_of

ENVIRONMENT = "os.environ"

# Values of which two equal ones may be one object or two.
_VALUES = (int, str, bytes, float, complex)
_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_IS = dis.opmap["IS_OP"]
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


def reads_environment(frame: FrameType) -> bool:
    """Return True if a frame reads the environment variables."""
    return id(frame.f_code) in _ENVIRONMENT_CODE


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
