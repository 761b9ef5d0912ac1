"""What a step returned that cannot undo it, and what to write instead.

A decorator returns the function that it registered; a registering method returns
nothing, or the registry; a generator is returned where nobody runs it.  Each has a
message of its own, because whatever can be called, or closed, would pass for an undo
and leave the registry as it is.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from inspect import (
    CO_VARARGS,
    GEN_CREATED,
    Parameter,
    getgeneratorstate,
    isasyncgen,
    isawaitable,
    iscoroutine,
    isgenerator,
    signature,
)
from types import FunctionType, MethodType, ModuleType
from typing import Any

from everyorder.harness.base.errors import NotAScenario

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

# Objects of a registry that are looked through for what was just registered.
_REACH = 10_000


def check_undo(text: str, do: Callable[..., Any], target: object, result: Any) -> None:
    """Check that what a step returned is a function that undoes it.

    Args:
        text: the step's.
        do: the function that returned it.
        target: the registry.
        result: what was returned.

    Raises:
        NotAScenario: it is something else; says what, and what to write instead.
    """
    where = f"returned by {text!r}"
    if result is None:
        raise NotAScenario(
            found=f"None, {where}",
            wanted="what undoes the step: return a function without parameters or "
            "an object with close(), give undo=..., or undo=None where it stays",
        )
    if isinstance(result, type):
        raise NotAScenario(
            found=f"the class {result.__qualname__}, {where}",
            wanted="the function that undoes the step, or undo=..., a function "
            "of the registry and of what was returned",
        )
    if isawaitable(result):
        raise NotAScenario(
            found=f"{kind_of(result)}, {where}",
            wanted="the function that undoes the step, as task.cancel",
        )
    if not callable(result):
        raise NotAScenario(
            found=f"{type(result).__name__}, {where}",
            wanted="the function that undoes the step, or an object with close()",
        )
    free = accepts(result, 0)
    if isinstance(result, FunctionType) and _is_registered(
        do, target, result, free=free
    ):
        raise NotAScenario(
            found=f"{result.__name__}, {where}: it returned the function that "
            "was registered, as decorators do",
            wanted="undo=..., a function of the registry that takes it away "
            "again, or undo=None where it stays",
        )
    if not free:
        raise NotAScenario(
            found=f"{name_of(result)}{signature(result)}, {where}",
            wanted="a function without parameters; undo=... gets the registry, "
            "and what was returned",
        )


def check_takes(
    where: str, function: object, counts: tuple[int, ...], wanted: str
) -> None:
    """Check that a function can be called with so many arguments, or so many.

    Raises:
        NotAScenario: `where` there is something else than what is `wanted`.
    """
    if not callable(function):
        raise NotAScenario(found=f"{where}={kind_of(function)}", wanted=wanted)
    if not any(accepts(function, count) for count in counts):
        found = f"{where}={name_of(function)}{signature(function)}"
        raise NotAScenario(found=found, wanted=wanted)


def accepts(function: Callable[..., object], count: int) -> bool:
    """Whether it can be called with so many arguments; yes where that is not known.

    Every undo that a step returns is asked: functions, methods and partials of them
    are told by their code.
    """
    inner: Any = function
    given = count
    if type(inner) is partial and not inner.keywords and not _has_own_signature(inner):
        inner, given = inner.func, given + len(inner.args)
    if type(inner) is MethodType:
        inner, given = inner.__func__, given + 1
    if type(inner) is FunctionType and not _has_own_signature(inner):
        code, defaults = inner.__code__, inner.__defaults__ or ()
        if code.co_kwonlyargcount > len(inner.__kwdefaults__ or ()):
            return False
        most = given if code.co_flags & CO_VARARGS else code.co_argcount
        return code.co_argcount - len(defaults) <= given <= most
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # some builtins have no signature
        return True
    return True


def _has_own_signature(function: object) -> bool:
    """Whether it has a signature of its own; `__dict__` is not read, which makes one.

    What is asked is the registry's own, whose changes are looked at.
    """
    return hasattr(function, "__wrapped__") or hasattr(function, "__signature__")


def count_required(function: Callable[..., object], most: int) -> int | None:
    """How many of so many arguments a function is to be given; None if not known.

    As many as it requires: an optional one has a default, which a loop may have bound
    (`k=k`).  `*args` are given all.
    """
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    count = 0
    for each in parameters:
        if each.kind is Parameter.VAR_POSITIONAL:
            return most
        if each.kind not in _POSITIONAL or each.default is not Parameter.empty:
            break
        count += 1
    return min(count, most)


def is_unstarted(result: object) -> bool:
    """Whether nothing of it ran: a generator, or the context manager of one."""
    made = getattr(result, "gen", result)
    if isasyncgen(made):
        return True
    return isgenerator(made) and getgeneratorstate(made) == GEN_CREATED


def discard(result: Any) -> None:
    """A generator that never ran is not to be told of when it is collected."""
    made = getattr(result, "gen", result)
    if isgenerator(made):
        made.close()


def _is_registered(
    do: Callable[..., Any], target: object, result: FunctionType, *, free: bool
) -> bool:
    """Whether a step returned the function that it registered, or a wrapper of that.

    `free` says that it can be called without arguments, as what undoes can.
    """
    functions = tuple(_functions(do))
    inner: FunctionType = getattr(result, "__wrapped__", result)
    names = [each for function in functions for each in _named_by(function)]
    names += _bound(do)
    is_named = any(each is result or each is inner for each in names)
    is_own = any(inner.__code__ in each.__code__.co_consts for each in functions)
    if is_named and not free:
        return True
    # An undo is made by what registers, and knows the registry, not the reverse.
    return (is_named or is_own or not free) and _holds(target, (result, inner))


def _holds(target: object, wanted: tuple[object, ...]) -> bool:
    """Whether one of these is found in a registry, functions not looked into."""
    ids = set(map(id, wanted))
    seen: set[int] = set()
    queue: list[Any] = [target]
    for each in queue:
        for further in gc.get_referents(each):
            if id(further) in ids:
                return True
            if len(seen) < _REACH and id(further) not in seen:
                seen.add(id(further))
                if not isinstance(further, (type, ModuleType, FunctionType)):
                    queue.append(further)
    return False


def _bound(do: object) -> Iterator[object]:
    """The arguments that a partial function has already."""
    if isinstance(do, partial):
        for each in (*do.args, *do.keywords.values()):
            yield each
            yield from _bound(each)


def _functions(do: object) -> Iterator[FunctionType]:
    """The functions behind a step's, which may be bound or partial."""
    if isinstance(do, partial):
        for each in (do.func, *_bound(do)):
            yield from _functions(each)
    elif isinstance(do, MethodType):
        yield from _functions(do.__func__)
    elif isinstance(do, FunctionType):
        yield do


def _named_by(do: FunctionType) -> Iterator[object]:
    """What a function gets at by its closure and its globals."""
    for cell in do.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    for name in do.__code__.co_names:
        yield do.__globals__.get(name)


def kind_of(value: object) -> str:
    """What something is, in words for messages."""
    if isgenerator(value):
        return f"the generator {value.__qualname__}"
    if isasyncgen(value):
        return f"the asynchronous generator {value.__qualname__}"
    if iscoroutine(value):
        return f"the coroutine {value.__qualname__}"
    made = getattr(value, "gen", None)
    if isgenerator(made) or isasyncgen(made):
        return f"the context manager {made.__qualname__}"
    return type(value).__name__


def name_of(function: Any) -> str:
    """What a function is called in messages."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))
