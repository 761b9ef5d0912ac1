"""The boundary of programs to Python: values, exceptions with backtraces, and warnings.

    test_of, check_value    type tests of values at run time
    taker, binder_of        conversion of arguments of a call from Python
    exception, Frame, add_frame, script_frames, note    exceptions of programs
    ProgramRun, warn        warnings, collected in a call from Python

Rules of types:
- `isinstance` agrees with Python where Python can decide: True is an int; a list is of
  type `List[int]` if all of its elements are ints, so an empty one is of every list
  type;
- at the boundary numbers widen as everywhere (`runtime.schema.values`); lists and
  dictionaries are passed uncopied, so that the caller sees the program's writes: if an
  element would have to be converted, they are refused; another sequence is converted to
  a list;
- an object of a program is of the type returned by `declared_type`; the attributes that
  its class declares are checked at the boundary, as Python may have set others;
- the value of a future, or of an await, that Python created is checked after a program
  has waited for it.

Rules of exceptions:
- a program raises the Python class that it names; the class is looked up by its path in
  loaded modules, and in classes of them: a program cannot trigger an import, or compute
  an attribute; if the path does not name an exception class, or its constructor does
  not accept one text, `RunningError` is raised with the name and the message.

Rules of backtraces:
- an exception that leaves a program is the very object that was raised within, with a
  note that shows the frames, outermost first, and `script_frames` returns them as data;
- each frame adds itself to the exception as it passes, so that there is no cost without
  an exception;
- the exception of a forked task is raised in every thread that waits: the frames of the
  task stay, preceded by those of the thread that waited last;
- an exception that cannot hold attributes has no frames.

Rules of warnings:
- a call from Python begins a run; the warnings of programs within it are collected, in
  order, and raised at its end, located at the place in the program;
- a node that warns does so once in a run, however often it is run;
- a filter may turn a warning into an error, which replaces the result; if the run
  raises an error, that error stays, and all warnings are raised as warnings;
- calls within a run belong to it, and so do its forked tasks; their warnings after its
  end are raised at once.
"""

import builtins
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import MappingProxyType, ModuleType
from typing import Any

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.errors.source import Source
from everyorder.runtime.futures import Await, Future
from everyorder.runtime.schema.binding import Binder, binder
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.declared import DeclaredType, EnumType, ScriptClassType
from everyorder.runtime.schema.enums import Device, EnumConstant
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    CODED,
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from everyorder.runtime.schema.values import (
    MISMATCH,
    Converter,
    converter,
    in_place,
    is_tensor,
)
from everyorder.runtime.script.ir import Node, Place
from everyorder.runtime.script.ir.program import Function, declared_type

# Values

Test = Callable[[Any], bool]

_PLAIN: dict[Type, Test] = {
    each: lambda v: isinstance(v, int | EnumConstant) for each in CODED
}
_PLAIN |= {
    NoneType_: lambda value: value is None,
    BoolType: lambda value: isinstance(value, bool),
    IntType: lambda value: isinstance(value, int),
    FloatType: lambda value: isinstance(value, float),
    ComplexType: lambda value: isinstance(value, complex),
    NumberType: lambda value: isinstance(value, int | float | complex),
    StrType: lambda value: isinstance(value, str),
    DeviceType: lambda value: isinstance(value, Device),
    TensorType: is_tensor,
    FunctionType: lambda value: isinstance(value, Function) or callable(value),
}
# A type, or a class of types, of plug-ins -> what makes the test of one.
_PLUG_IN_TESTS: Registry[Any, Callable[[Any], Test]] = Registry("tests of types")
# Enough for all programs of a process; what is forgotten is made again.
_KEPT = 1024


@lru_cache(maxsize=_KEPT)
def test_of(type: Type) -> Test:  # noqa: A002  # the field's own word
    """Return the function that tests values for a type."""
    plain = _PLAIN.get(type)
    if plain is not None:
        return plain
    if isinstance(type, OptionalType):
        inner = test_of(type.element)
        return lambda value: value is None or inner(value)
    if isinstance(type, UnionType):
        members = tuple(map(test_of, type.members))
        return lambda value: any(each(value) for each in members)
    if isinstance(type, ListType):
        inner = test_of(type.element)
        return lambda value: isinstance(value, list) and all(map(inner, value))
    if isinstance(type, DictType):
        key, inner = test_of(type.key), test_of(type.value)
        return lambda value: (
            isinstance(value, dict)
            and all(map(key, value))
            and all(map(inner, value.values()))
        )
    if isinstance(type, TupleType):
        return _tuple_test(type)
    if isinstance(type, FutureType):
        return lambda value: isinstance(value, Future)
    if isinstance(type, AwaitType):
        return lambda value: value.__class__ is Await
    if isinstance(type, DeclaredType):
        return lambda value: _is_declared(value, type)
    make = _plug_in_test(type)
    return make(type) if make is not None else lambda value: True


def _plug_in_test(type_: Type) -> Callable[[Any], Test] | None:
    rows = _PLUG_IN_TESTS.rows
    return rows.get(type_) or rows.get(type_.__class__)


def register_test(of: Any, make: Callable[[Any], Test]) -> RegistryHandle:
    """Let `make` give the test of a type, or of each type of a class, of a plug-in."""
    row = _PLUG_IN_TESTS.register(of, make, stacklevel=2)

    def forget() -> None:
        test_of.cache_clear()
        taker.cache_clear()

    def remove() -> None:
        row.close()
        forget()

    forget()
    return RegistryHandle(remove)


def _tuple_test(type_: TupleType) -> Test:
    elements, names = tuple(map(test_of, type_.elements)), type_.names

    def is_tuple(value: Any) -> bool:
        return (
            isinstance(value, tuple)
            and len(value) == len(elements)
            and (not names or getattr(value, "_fields", ()) == names)
            and all(test(each) for test, each in zip(elements, value, strict=True))
        )

    return is_tuple


def _is_declared(value: Any, type_: DeclaredType) -> bool:
    if isinstance(type_, EnumType):
        return isinstance(value, Enum) and type_.declaration.python is value.__class__
    # Another program may have declared the class, too.
    is_class = isinstance(type_, ScriptClassType)
    if is_class and type_.declaration.python is value.__class__:
        return True
    own = declared_type(value)
    return own is not None and is_subtype(own, type_)


def check_value(value: Any, type_: Type, origin: str) -> Any:
    """Return the value if it is of the type.

    Raises:
        RunningError: it is not; `origin` names the origin of the value in the error.
    """
    if test_of(type_)(value):
        return value
    raise RunningError(
        code="NotOfType",
        what=origin,
        expected=str(type_),
        found=describe_value(value),
        value=shortened(value),
    )


@lru_cache(maxsize=_KEPT)
def taker(type: Type) -> Converter:  # noqa: A002  # the field's own word
    """Return the converter of arguments of a type; it returns `MISMATCH` for others."""
    if isinstance(type, OptionalType):
        inner = taker(type.element)
        return lambda value: None if value is None else inner(value)
    if isinstance(type, UnionType):
        members = tuple(map(test_of, type.members))
        return lambda value: value if any(each(value) for each in members) else MISMATCH
    if isinstance(type, TupleType):
        return _tuple_taker(type)
    if isinstance(type, ListType):
        return _list_taker(type)
    if isinstance(type, DictType):
        return _dict_taker(type)
    if type is AnyType:
        return lambda value: value
    if isinstance(type, ScriptClassType):
        return _object_taker(type)
    named = isinstance(type, DeclaredType | FutureType | AwaitType)
    if named or type in (TensorType, FunctionType) or _plug_in_test(type) is not None:
        is_one = test_of(type)
        return lambda value: value if is_one(value) else MISMATCH
    return converter(type)


def _tuple_taker(type_: TupleType) -> Converter:
    inner, names = tuple(map(taker, type_.elements)), type_.names

    def take(value: Any) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(inner):
            return MISMATCH
        if names and getattr(value, "_fields", None) != names:
            return MISMATCH
        converted = [turn(each) for turn, each in zip(inner, value, strict=True)]
        if any(each is MISMATCH for each in converted):
            return MISMATCH
        if all(one is other for one, other in zip(converted, value, strict=True)):
            return value if isinstance(value, tuple) else tuple(value)
        return value.__class__._make(converted) if names else tuple(converted)  # type: ignore[union-attr]  # it has the fields

    return take


def _object_taker(type_: ScriptClassType) -> Converter:
    is_one = test_of(type_)

    def take(value: Any) -> Any:
        if not is_one(value):
            return MISMATCH
        check_attributes(value)
        return value

    return take


_ABSENT = object()


def check_attributes(value: Any) -> None:
    """Check the attributes of an object, and of objects in them, against its class.

    Raises:
        RunningError: an attribute is of another type.
    """
    todo, seen = [value], set()
    while todo:
        each = todo.pop()
        declared = declared_type(each)
        if not isinstance(declared, ScriptClassType) or id(each) in seen:
            continue
        seen.add(id(each))
        for name, type_ in declared.declaration.attributes.items():
            member = getattr(each, name, _ABSENT)
            if member is _ABSENT:
                continue
            if not test_of(type_)(member):
                raise RunningError(
                    code="AttributeNotOfType",
                    what=f"{type(each).__name__}.{name}",
                    expected=str(type_),
                    found=describe_value(member),
                    value=shortened(member),
                )
            todo.append(member)


def _list_taker(type_: ListType) -> Converter:
    inner, plain = taker(type_.element), converter(type_)

    def take(value: Any) -> Any:
        if not isinstance(value, list):
            return plain(value)
        for each in value:
            if inner(each) is not each:
                return MISMATCH
        return value

    return take


def _dict_taker(type_: DictType) -> Converter:
    key, inner, plain = taker(type_.key), taker(type_.value), converter(type_)

    def take(value: Any) -> Any:
        if not isinstance(value, dict):
            return plain(value)
        for name, each in value.items():
            if key(name) is not name or inner(each) is not each:
                return MISMATCH
        return value

    return take


def binder_of(schema: Schema) -> Binder:
    """Return the function that binds a call from Python to a function of a program."""
    takers = []
    for each in schema.arguments:
        turn = taker(each.type)
        takers.append(in_place(turn) if each.is_written_container else turn)
    return binder(schema, tuple(takers))


# Exceptions and backtraces


def exception(kind: str, message: str) -> BaseException:
    """Return an exception of a class, by its path, with a message."""
    class_ = _class(kind)
    if class_ is not None:
        try:
            error = class_(message)
        except Exception:
            error = None
        if isinstance(error, Exception):
            return error
    return RunningError(code="ScriptRaised", kind=kind or "Exception", message=message)


def _class(path: str) -> Any:
    """Return the exception class that a path names, or None."""
    module, _, name = path.rpartition(".")
    target: Any = None
    if not module:
        target = getattr(builtins, name, None)
    # The class may be nested in other classes.
    within: list[str] = [name]
    while module and target is None:
        loaded = sys.modules.get(module)
        if loaded is not None:
            target = loaded
            for each in within:
                # From `vars`, so that lazily loading modules are not triggered.
                fits = isinstance(target, type | ModuleType)
                target = vars(target).get(each) if fits else None
            break
        module, _, outer = module.rpartition(".")
        within.insert(0, outer)
    fits = isinstance(target, type) and issubclass(target, Exception)
    return target if fits else None


# The first line of the note.
HEAD = "Traceback of the program (most recent call last):"
# Of more than twice as many frames, those in the middle are only counted.
SHOWN = 8

# The name of a group of operators, until its function is known.
FUSED = "<fused>"

_FRAMES, _BASE, _NOTE = "_script_frames", "_script_base", "_script_note"


@dataclass(frozen=True, slots=True)
class Frame:
    """A call in the program: the function, and the current place in it."""

    function: str
    place: Place | None

    def render(self) -> str:
        """Return file, line and function, and the source lines of the place."""
        if self.place is None:
            return f"  in {self.function}"
        source, (start, end) = self.place
        first, last = source.place(start)[0], source.place(max(start, end - 1))[0]
        head = f'  File "{source.file or "<text>"}", line {first}, in {self.function}'
        rows = source.text.split("\n")[first - source.line : last - source.line + 1]
        # The source of a graph that was parsed from text may be missing.
        if not "".join(rows).strip():
            return head
        lines = Source("\n".join(rows), source.file, first)
        begin = source.offset(first, 1)
        drawn = lines.excerpt((start - begin, end - begin)).partition("\n")[2]
        return f"{head}\n{drawn}"


def add_frame(error: BaseException, function: str, place: Place | None) -> None:
    """Add a frame to an exception on its way out."""
    attributes = getattr(error, "__dict__", None)
    if attributes is None:
        return
    frames = attributes.get(_FRAMES)
    if frames is None:
        frames = attributes[_FRAMES] = []
    elif frames and frames[-1].function == FUSED:
        # A group is a part of the function that contains it.
        frames[-1] = Frame(function, frames[-1].place)
        return
    frames.append(Frame(function, place))


def script_frames(error: BaseException) -> tuple[Frame, ...]:
    """Return the frames of the program that an exception passed, outermost first."""
    frames: Sequence[Frame] = getattr(error, _FRAMES, ())
    return tuple(reversed(frames))


def keep_frames(error: BaseException) -> None:
    """Store the frames of a task that failed: `restore_frames` starts with them."""
    with suppress(AttributeError):
        vars(error)[_BASE] = tuple(vars(error).get(_FRAMES, ()))
    note(error)


def restore_frames(error: BaseException) -> None:
    """Reset the frames of an exception to those of its task, to raise it again."""
    base = getattr(error, _BASE, None)
    if base is not None:
        vars(error)[_FRAMES] = [*base]


def note(error: BaseException) -> None:
    """Update the note of an exception with the frames that it has passed."""
    frames = script_frames(error)
    if not frames:
        return
    text = "\n".join((HEAD, *_rendered(frames)))
    with suppress(AttributeError):
        attributes = vars(error)
        notes = getattr(error, "__notes__", [])
        before = attributes.get(_NOTE)
        if before in notes:
            notes[notes.index(before)] = text
        else:
            error.add_note(text)
        attributes[_NOTE] = text


def _rendered(frames: tuple[Frame, ...]) -> list[str]:
    if len(frames) <= 2 * SHOWN:
        return [each.render() for each in frames]
    first, last = frames[:SHOWN], frames[-SHOWN:]
    between = f"  ... {len(frames) - 2 * SHOWN} more calls ..."
    return [
        *(each.render() for each in first),
        between,
        *(each.render() for each in last),
    ]


class _CurrentRun(threading.local):
    """The run that a thread is in."""

    run: "ProgramRun | None" = None


RUN = _CurrentRun()


class ProgramRun:
    """A call from Python; `warned` has its warnings by node, in order.

    Tasks of the run may continue after its end; their warnings are then raised at once.
    A message is removed from its list before it is raised, so two threads raise it
    once.
    """

    # Most runs end without a warning: the first warning creates the dictionary.
    warned: Mapping[Node, list[str]] = MappingProxyType({})
    is_over = False

    def finish(self, is_failing: bool) -> None:
        """Raise the collected warnings; `is_failing` if the run raises an error.

        Raises:
            Warning: a filter turned a warning into an error, and `is_failing` is False.
        """
        self.is_over = True
        for node in list(self.warned):
            try:
                self._raise_warning(node)
            except Warning:
                # The error that the run raises has priority.
                if not is_failing:
                    raise

    def warn(self, message: str, node: Node) -> None:
        """Collect a warning, unless the node has warned before."""
        # Two tasks may warn first at the same time: each step is atomic.
        warned: dict[Node, list[str]] = vars(self).setdefault("warned", {})
        mine = [message]
        if warned.setdefault(node, mine) is mine and self.is_over:
            self._raise_warning(node)

    def _raise_warning(self, node: Node) -> None:
        try:
            message = self.warned[node].pop()
        except IndexError:
            return
        _raise(message, node)


def warn(message: str, node: Node) -> None:
    """Issue a warning of a program, at a node."""
    run = RUN.run
    if run is None:
        _raise(message, node)
    else:
        run.warn(message, node)


def _raise(message: str, node: Node) -> None:
    file, line = "<program>", 1
    if node.place is not None:
        source, (start, _) = node.place
        file, (line, _) = source.file or file, source.place(start)
    warnings.warn_explicit(message, UserWarning, file, line)
