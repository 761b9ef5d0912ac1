"""Where errors of a scenario's own functions were raised: the line to look at.

The engine compares errors by type and text, and never by line: one refusal at two lines
is one outcome.  So the line is stored beside the fields of the error, the last one
for each, and only reports read it.

A *slip* is an error of a typing error: an AttributeError, NameError or TypeError that
the interpreter, not a `raise`, raises in a function of the scenario.  A registry that
refuses an argument by a TypeError raises it on purpose, in its own code.

Rules:
- the innermost frame of the user's own files is the line; files of the standard library
  and of installed packages are not the user's, and those of this package are skipped;
- no traceback and no frame is stored, and no file is read: an exploration must not
  change the caches of `linecache`.
"""

import os
from collections.abc import Callable, Hashable, Iterable
from dis import opmap
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, TracebackType
from typing import Any

from everyorder.harness.engine.protocol import ErrorOrigin
from everyorder.harness.state.layout import qualname_of

# Errors that a typing error raises, by exact class.
_SLIPS = (AttributeError, NameError, TypeError, UnboundLocalError)

_HERE = f"{Path(__file__).parents[2]}{os.sep}"
# The links of this package lead to folders beside it in a checkout.
_TOP = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_OWN_FOLDERS = tuple(
    f"{root}{name}{os.sep}"
    for root in (_HERE, _TOP)
    for name in ("harness", "runtime", "invariants", "everyorder")
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD = f"{os.path.dirname(os.__file__)}{os.sep}"

# An attribute that is looked up by such a function is missing where it is written.
_LOOK_UPS = frozenset({"__getattr__", "__getattribute__"})

_RAISE = opmap["RAISE_VARARGS"]

# Distinct errors with a stored line; texts that vary would fill the memory.
_MOST = 4_096


class ErrorOrigins:
    """The origin of each error of a scenario, by the fields that are compared."""

    def __init__(self, functions: Iterable[Callable[..., Any] | None]) -> None:
        self._codes = frozenset(
            code for function in functions for code in codes_of(function)
        )
        self._origins: dict[Hashable, ErrorOrigin] = {}
        self._unsent: dict[Hashable, ErrorOrigin] = {}

    def note(self, fields: Hashable, error: BaseException) -> None:
        """Store where an error was raised; call it while it has its traceback."""
        origin = self.origin_of(error)
        if origin is not None:
            self.update({fields: origin})

    def origin_of(self, error: BaseException) -> ErrorOrigin | None:
        """Return where an error was raised, or None if no frame is the user's."""
        frames = [
            each
            for each in _frames(error.__traceback__)
            if not each.tb_frame.f_code.co_filename.startswith(_OWN_FOLDERS)
        ]
        if not frames:
            return None
        slip = self._is_slip(error, frames)
        chosen = next(filter(self._is_users, reversed(frames)), frames[-1])
        code = chosen.tb_frame.f_code
        return ErrorOrigin(code.co_filename, chosen.tb_lineno, slip)

    def get(self, fields: Hashable) -> ErrorOrigin | None:
        """Return the last origin of an error with these fields."""
        return self._origins.get(fields)

    def update(self, origins: dict[Hashable, ErrorOrigin]) -> None:
        """Store origins, those of another process included."""
        for fields, origin in origins.items():
            if self._origins.get(fields) == origin:
                continue
            if fields in self._origins or len(self._origins) < _MOST:
                self._origins[fields] = self._unsent[fields] = origin

    def take_unsent(self) -> dict[Hashable, ErrorOrigin]:
        """Return the origins that are new since the last call."""
        unsent, self._unsent = self._unsent, {}
        return unsent

    def _is_users(self, frame: TracebackType) -> bool:
        code = frame.tb_frame.f_code
        name = code.co_filename
        if code in self._codes:
            return True
        installed = any(part in name for part in _INSTALLED)
        return not (installed or name.startswith((_STANDARD, "<frozen ")))

    def _is_slip(self, error: BaseException, frames: list[TracebackType]) -> bool:
        if type(error) not in _SLIPS:
            return False
        while len(frames) > 1 and frames[-1].tb_frame.f_code.co_name in _LOOK_UPS:
            frames.pop()
            if frames[-1].tb_frame.f_code in self._codes:
                return True
        last = frames[-1]
        code = last.tb_frame.f_code
        return code in self._codes and code.co_code[last.tb_lasti] != _RAISE


def codes_of(function: Any) -> frozenset[CodeType]:
    """Return the code of a function, of its nested functions and of its partials."""
    if isinstance(function, partial):
        parts = (function.func, *function.args, *function.keywords.values())
        return frozenset().union(*map(codes_of, parts))
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return frozenset(_nested(code)) if isinstance(code, CodeType) else frozenset()


def signature_of(function: Any, above: frozenset[int] = frozenset()) -> Hashable:
    """Return the code of a function, and of what its closure and defaults hold.

    Two functions made by the same lines have equal signatures.  They keep only code
    alive: values are represented by their class.
    """
    kind = type(function)
    if id(function) in above:  # a function that its own closure holds
        return ""
    above |= {id(function)}

    def inner(held: Iterable[Any]) -> Hashable:
        return tuple([signature_of(each, above) for each in held])

    if kind is FunctionType:
        cells = [_contents_of(cell) for cell in function.__closure__ or ()]
        return function.__code__, inner((*cells, *(function.__defaults__ or ())))
    if kind is MethodType:
        return inner([function.__func__]), qualname_of(type(function.__self__))
    if issubclass(kind, partial):
        return inner((function.func, *function.args, *function.keywords.values()))
    value: Hashable = function if kind is str or kind is int else qualname_of(kind)
    return value


def _contents_of(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _nested(code: CodeType) -> Iterable[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def _frames(traceback: TracebackType | None) -> Iterable[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
