"""By value: the code of functions and classes that no module has, by cloudpickle.

It is loaded when something is first written by value, or read.

Rules:
- files are no values: cloudpickle would send what they hold;
- what `__main__` has travels by value and by name: a process that has the same code
  under that name in its own `__main__` takes that, with its own state, as one has that
  was started by the same program; any other takes the value.
"""

import io
import logging
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import Any

import cloudpickle

_PROTOCOL = 5
_MAIN = "__main__"
# What cloudpickle sends, and what nobody wants to be sent.
_NOT_SENT = (io.TextIOWrapper, logging.Logger, logging.RootLogger)


class _Value:
    """What `__main__` has, to be written by value."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Cloudpickle's, with a table that goes before its own."""

    def __init__(
        self, file: io.BytesIO, beside: Callable[[Any], bool], table: Mapping[type, Any]
    ) -> None:
        own = cloudpickle.Pickler._dispatch_table
        kept = {kind: each for kind, each in own.items() if kind not in _NOT_SENT}
        # Before the pickler is made, which looks at it once.
        self.dispatch_table = ChainMap(table, kept)  # type: ignore[arg-type]  # read only
        super().__init__(file, protocol=_PROTOCOL, buffer_callback=beside)
        self._values: dict[int, _Value] = {}

    def reducer_override(self, obj: Any) -> Any:
        """What cloudpickle does, but for what `__main__` has."""
        if type(obj) is _Value:
            return super().reducer_override(obj.of)
        if isinstance(obj, FunctionType | type) and _of_main(obj):
            value = self._values.get(id(obj))
            if value is not None:
                # It refers to itself: as a value to the value.
                return _same, (value,)
            value = self._values[id(obj)] = _Value(obj)
            return _chosen, (obj.__qualname__, digest(obj), value)
        return super().reducer_override(obj)


def pickler(
    file: io.BytesIO, beside: Callable[[Any], bool], table: Mapping[type, Any]
) -> Any:
    """What writes to a file, asks `beside` of buffers, and reduces by a table first."""
    return _Pickler(file, beside, table)


def _of_main(obj: Any) -> bool:
    return obj.__module__ == _MAIN and _in_main(obj.__qualname__) is obj


def _in_main(qualname: str) -> Any:
    found: Any = sys.modules.get(_MAIN)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def _same(value: Any) -> Any:
    return value


def _chosen(qualname: str, known: bytes, value: Any) -> Any:
    """What this process has under the name, if it is the same; else the value."""
    here = _in_main(qualname)
    if isinstance(here, FunctionType | type) and digest(here) == known:
        return here
    return value


def digest(obj: Any) -> bytes:
    """What the code of a function, or of the methods of a class, is known by."""
    return blake2b("\n".join(_texts(obj)).encode(), digest_size=16).digest()


def _texts(obj: Any) -> Iterator[str]:
    if isinstance(obj, FunctionType):
        yield from _of_code(obj.__code__)
    elif isinstance(obj, type):
        yield from (each.__qualname__ for each in obj.__mro__)
        for name, each in sorted(vars(obj).items()):
            inner = getattr(each, "__func__", each)
            if isinstance(inner, FunctionType):
                yield name
                yield from _of_code(inner.__code__)
    else:
        yield repr(type(obj))


def _of_code(code: CodeType) -> Iterator[str]:
    """Of two processes that read the same text, whatever they call its file."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _of_code(each)
        elif isinstance(each, frozenset):
            yield repr(sorted(map(repr, each)))
        else:
            yield repr(each)
