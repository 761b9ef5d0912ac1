"""Marks: what Python says to the compiler, and what that means without it.

Programs import these functions, and in a script they are something else: each has a
form in the compiler, by its identity.

    annotate, is_of_type, unchecked_cast, is_scripting, fork, wait    in expressions
    ignore, unused, export                                            on functions
    interface, Attribute                                              in classes

Rules:
- without the compiler a marked function is itself, `annotate` gives its value, and
  `fork` runs at once, on this thread;
- a mark is an attribute of the function; one function has one mark, the last;
- what a class is marked as is not inherited.
"""

from collections.abc import Callable
from enum import Enum
from types import UnionType
from typing import (
    Any,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    overload,
)

from runtime.errors.future import FutureMisuse, described
from runtime.errors.script import NotScriptable
from runtime.futures import Future
from runtime.schema.calls import shortened
from runtime.tensors.keys import watcher

T = TypeVar("T")
P = ParamSpec("P")
C = TypeVar("C", bound=type)
F = TypeVar("F")

# The attributes that hold marks.
MARKED, DECLARES = "__script_mark__", "__script_interface__"


class Mark(Enum):
    """What the compiler does with a function or method."""

    # Compile it, though `forward` does not call it.
    EXPORT = "export"
    # Call it as Python does.
    IGNORE = "ignore"
    # Raise where it is called.
    UNUSED = "unused"


class Attribute(NamedTuple):
    """A value of a module with the type that its attribute has in scripts."""

    value: Any
    type: Any


def mark_of(function: Any) -> Mark | None:
    """The mark of a function, a method or the getter of a property, or None."""
    if isinstance(function, property):
        function = function.fget
    elif isinstance(function, staticmethod | classmethod):
        function = function.__func__
    found = getattr(function, MARKED, None)
    return found if isinstance(found, Mark) else None


def export(fn: F) -> F:
    """Compile a method of a module, though nothing that is compiled calls it.

    Raises:
        NotScriptable: it is no function.
    """
    return _marked("export", fn, Mark.EXPORT)


@overload
def ignore(drop: bool = False) -> Callable[[F], F]: ...
@overload
def ignore(drop: F) -> F: ...
def ignore(drop: Any = False) -> Any:
    """Leave a function to Python: scripts call it there.

    `@ignore`, or `@ignore(drop=True)`, which is `@unused`.

    Raises:
        NotScriptable: it is no function.
    """
    if isinstance(drop, bool):
        return unused if drop else ignore
    return _marked("ignore", drop, Mark.IGNORE)


def unused(fn: F) -> F:
    """Do not compile a function; a script that calls it raises there.

    Raises:
        NotScriptable: it is no function.
    """
    return _marked("unused", fn, Mark.UNUSED)


def _marked(word: str, fn: F, mark: Mark) -> F:
    parts: tuple[Any, ...] = (fn,)
    if isinstance(fn, property):
        parts = tuple(each for each in (fn.fget, fn.fset) if each is not None)
    for each in parts:
        if not callable(each):
            raise NotScriptable(
                code="MarkMisuse", call=word, found=described(fn), wanted="a function"
            )
        try:
            setattr(each, MARKED, mark)
        except (AttributeError, TypeError):
            wanted = "a function that is written in Python"
            raise NotScriptable(
                code="MarkMisuse", call=word, found=described(fn), wanted=wanted
            ) from None
    return fn


# What an interface may derive from; modules put their class here.
INTERFACE_BASES: list[type] = [object]


def interface(cls: C) -> C:
    """Let a class stand for all classes and modules that have its methods.

    Raises:
        NotScriptable: it is no class, or derives from another.
    """
    unknown: Any = cls
    if not isinstance(unknown, type):
        found = described(cls)
        raise NotScriptable(
            code="MarkMisuse", call="interface", found=found, wanted="a class"
        )
    if len(cls.__bases__) != 1 or cls.__bases__[0] not in INTERFACE_BASES:
        found = f"{cls.__name__}, which derives from {cls.__bases__[0].__name__}"
        wanted = "a class of its own, with all of the methods"
        raise NotScriptable(
            code="MarkMisuse", call="interface", found=found, wanted=wanted
        )
    setattr(cls, DECLARES, True)
    return cls


def is_interface(cls: Any) -> bool:
    """Whether a class was declared by `interface`, itself and no base of it."""
    return isinstance(cls, type) and DECLARES in vars(cls)


def annotate(the_type: Any, the_value: T) -> T:
    """The value; in a script it is taken for one of the type."""
    return the_value


def unchecked_cast(the_type: Any, the_value: Any) -> Any:
    """The value; a script that was saved takes it for one of the type."""
    return the_value


def is_scripting() -> bool:
    """False; in a script True, known when it is compiled."""
    return False


def is_of_type(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type, by all that it holds: `list[int]`, say.

    `target_type` may be a tuple of types; a class is asked as Python does.

    Raises:
        NotScriptable: it means no type.
    """
    if isinstance(target_type, tuple):
        return any(is_of_type(obj, each) for each in target_type)
    if target_type is None or target_type is Any:
        return obj is None or target_type is Any
    origin, parts = get_origin(target_type), get_args(target_type)
    if origin in (Union, UnionType):
        return any(is_of_type(obj, each) for each in parts)
    kind: Any = target_type if origin is None else origin
    if not isinstance(kind, type):
        wanted = "an object, and a type or a tuple of types"
        found = f"{shortened(target_type)} as type"
        raise NotScriptable(
            code="MarkMisuse", call="isinstance", found=found, wanted=wanted
        )
    return isinstance(obj, kind) and _holds(obj, kind, parts)


def _holds(value: Any, kind: type, parts: tuple[Any, ...]) -> bool:
    """Whether what a container holds is of the types; others hold what they say."""
    if not parts:
        return True
    if kind is tuple:
        fits = zip(value, parts, strict=True)
        return len(value) == len(parts) and all(is_of_type(*each) for each in fits)
    if kind is dict:
        pairs = value.items()
        return all(
            is_of_type(*each)
            for pair in pairs
            for each in zip(pair, parts, strict=True)
        )
    return kind is not list or all(is_of_type(each, parts[0]) for each in value)


def fork(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """A future of what `func(*args, **kwargs)` returns, which runs at once.

    A trace keeps both.  In a script it runs beside what forks it, and what it raises is
    the future's.

    Raises:
        FutureMisuse: `func` cannot be called.
        BaseException: what the function raised.
    """
    unknown: Any = func
    if not callable(unknown):
        found, wanted = described(func), "a callable, then its arguments"
        raise FutureMisuse(code="FutureMisuse", call="fork", found=found, wanted=wanted)
    told = watcher()
    if told is not None:
        traced: Future[T] = told.forked(func, args, kwargs)
        return traced
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """The value of a future, as `future.wait()`.

    Raises:
        FutureMisuse: it is no future.
        BaseException: the error that the future was completed with.
    """
    unknown: Any = future
    if not isinstance(unknown, Future):
        found, wanted = described(future), "what `fork` gave, or another future"
        raise FutureMisuse(code="FutureMisuse", call="wait", found=found, wanted=wanted)
    return future.wait()
