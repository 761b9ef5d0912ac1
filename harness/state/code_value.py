"""Code objects as values, with the names that they read.

The instructions are decoded once for each code object.  The byte code is that of
CPython 3.11 and later: `dis` would have the same result at fifty times the cost.
"""

import dis
import hashlib
import marshal
import sys
import types
from typing import Any, NamedTuple

from everyorder.harness.state.layout import Memo
from everyorder.harness.state.noise import STATE_IF_NAMED

_MODERN = sys.version_info >= (3, 12)
_EXTENDED = dis.opmap["EXTENDED_ARG"]
_LOAD_GLOBAL = dis.opmap["LOAD_GLOBAL"]
_LOAD_CONST = dis.opmap["LOAD_CONST"]
_LOAD_SMALL_INT = dis.opmap.get("LOAD_SMALL_INT", -1)
_IMPORT_NAME = dis.opmap["IMPORT_NAME"]
_ATTRIBUTES = {
    dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap
}
_PLAIN_NAMES = {
    dis.opmap[name]
    for name in (
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
        "LOAD_NAME",
        "LOAD_FROM_DICT_OR_GLOBALS",
    )
    if name in dis.opmap
}
_SKIPPED = {
    dis.opmap[name] for name in ("CACHE", "NOP", "PUSH_NULL") if name in dis.opmap
}

# A function that loads one of these may read or write any global of its module.
_WHOLE = frozenset({"globals", "eval", "exec"})
_WHOLE_ATTRIBUTES = frozenset({"__globals__", "f_globals"})

# Constants of code that are values without references.
_VALUES = (int, str, bytes, float, complex, bool, type(None), type(...))


class Reads(NamedTuple):
    """The names that a code object, with all nested code, may read.

    `chains` are global names with the attributes that are loaded from them at once;
    `imports` are (level, module, names or None for the module itself); `whole` means
    that any global may be read.
    """

    names: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...]
    imports: tuple[tuple[int, str, tuple[str, ...] | None], ...]
    whole: bool


class CodeValue(NamedTuple):
    """A code object as a value, without constants that are objects.

    `strange` are the indexes of those constants; `text` is the docstring of a function
    with this code; `noise` are the names in it of attributes that are state if named.
    """

    digest: bytes
    reads: Reads
    strange: tuple[int, ...]
    text: str | None
    noise: frozenset[str]


def _read_code(code: types.CodeType) -> CodeValue:
    strange: list[int] = []
    digest = _digest(code, strange)
    first = code.co_consts[0] if code.co_consts else None
    text = first if type(first) is str else None
    noise = STATE_IF_NAMED & names_in(code)
    return CodeValue(digest, _reads(code), tuple(strange), text, noise)


read_code = Memo(_read_code)
"""A code object as a value, with the names that it reads."""


def _digest(code: types.CodeType, strange: list[int]) -> bytes:
    fields = (
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_stacksize,
        code.co_name,
        code.co_qualname,
        code.co_filename,
        code.co_firstlineno,
        code.co_linetable,
        code.co_exceptiontable,
        [_constant(each, place, strange) for place, each in enumerate(code.co_consts)],
    )
    return hashlib.blake2b(marshal.dumps(fields, 2), digest_size=16).digest()


def _constant(value: Any, place: int, strange: list[int]) -> Any:
    """Return a constant in a form that `marshal` writes the same in every process."""
    kind = type(value)
    if any(kind is each for each in _VALUES):
        return value
    if kind is tuple:
        return tuple(_constant(each, place, strange) for each in value)
    if kind is frozenset:
        members = [marshal.dumps(_constant(each, place, strange), 2) for each in value]
        return ["frozenset", *sorted(members)]
    if kind is types.CodeType:
        inner = read_code(value)
        if inner.strange and place not in strange:
            strange.append(place)
        return ["code", inner.digest]
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        return ["slice", *(_constant(each, place, strange) for each in parts)]
    if place not in strange:
        strange.append(place)
    return ["strange"]


def names_in(code: types.CodeType) -> frozenset[str]:
    """Return all names in a code object and in all nested code, of any kind.

    Texts are names, too: `getattr` may be called with them.
    """
    texts = (each for each in code.co_consts if type(each) is str)
    inner = (each for each in code.co_consts if type(each) is types.CodeType)
    return frozenset(code.co_names).union(texts, *map(names_in, inner))


def _reads(code: types.CodeType) -> Reads:
    names: set[str] = set()
    chains: set[tuple[str, ...]] = set()
    imports: set[tuple[int, str, tuple[str, ...] | None]] = set()
    whole = not _WHOLE_ATTRIBUTES.isdisjoint(code.co_names)
    _scan(code, names, chains, imports)
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            inner = read_code(constant).reads
            names.update(inner.names)
            chains.update(inner.chains)
            imports.update(inner.imports)
            whole = whole or inner.whole
    return Reads(
        tuple(sorted(names)),
        tuple(sorted(chains)),
        tuple(sorted(imports, key=repr)),
        whole or not _WHOLE.isdisjoint(names),
    )


def _scan(
    code: types.CodeType,
    names: set[str],
    chains: set[tuple[str, ...]],
    imports: set[tuple[int, str, tuple[str, ...] | None]],
) -> None:
    written = code.co_names
    if not written:
        return
    raw = code.co_code
    steps: list[tuple[int, int]] = []
    extended = 0
    for at in range(0, len(raw), 2):
        operation = raw[at]
        argument = raw[at + 1] | extended
        if operation == _EXTENDED:
            extended = argument << 8
            continue
        extended = 0
        if operation not in _SKIPPED:
            steps.append((operation, argument))
    for at, (operation, argument) in enumerate(steps):
        if operation == _LOAD_GLOBAL:
            name = written[argument >> 1]
            names.add(name)
            chains.add((name, *_attributes(steps, at + 1, written)))
        elif operation in _PLAIN_NAMES:
            names.add(written[argument])
            chains.add((written[argument], *_attributes(steps, at + 1, written)))
        elif operation == _IMPORT_NAME:
            level = _constant_of(code, steps[at - 2])
            from_list = _constant_of(code, steps[at - 1])
            imports.add(
                (
                    level if type(level) is int else 0,
                    written[argument],
                    tuple(from_list) if type(from_list) is tuple else None,
                )
            )


def _attributes(
    steps: list[tuple[int, int]], at: int, written: tuple[str, ...]
) -> list[str]:
    attributes = []
    while at < len(steps) and steps[at][0] in _ATTRIBUTES:
        operation, argument = steps[at]
        modern = _MODERN and operation == dis.opmap["LOAD_ATTR"]
        attributes.append(written[argument >> 1 if modern else argument])
        at += 1
    return attributes


def _constant_of(code: types.CodeType, step: tuple[int, int]) -> Any:
    operation, argument = step
    if operation == _LOAD_CONST:
        return code.co_consts[argument]
    return argument if operation == _LOAD_SMALL_INT else None
