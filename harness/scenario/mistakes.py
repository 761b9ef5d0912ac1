"""Calls and results that a scenario cannot use, and the suggested corrections.

Values are shown by their kind, or cut, because a `repr` may be of any length.

A decorator returns the function that it registered; a registering method returns None,
or the registry; a generator is returned without being run. Each has a separate message,
because any object that can be called, or closed, would pass for an undo and leave the
registry unchanged.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import partial, wraps
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
from typing import Any, ParamSpec, TypeVar

from everyorder.harness.base.errors import NotAScenario

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

P = ParamSpec("P")
T = TypeVar("T")

# What a function of the scenario should be.
OF_REGISTRY = "a function of the registry, as `lambda registry: registry.find(1)`"

# Characters of a value in a message.
_MOST_VALUE = 60
# Types whose `repr` is the text as written, and runs no code of the scenario.
_PLAIN = (str, bytes, int, float, bool, type(None))

# Limit on the objects of a registry that are searched for the registered function.
_REACH = 10_000


def check_known(
    name: str,
    function: Callable[..., Any],
    unknown: Mapping[str, object],
    example: str = "",
) -> None:
    """Check that a function names every argument of a call.

    Raises:
        NotAScenario: it does not name one; the message has the nearest names, or else
            the `example` of a call.
    """
    for each in unknown:
        names = [p.name for p in signature(function).parameters.values()]
        near = get_close_matches(each, names, n=2, cutoff=0.6)
        wanted = " or ".join(f"{one}=" for one in near)
        raise NotAScenario(
            code="WrongCall",
            found=f"{name}() has no argument {each}=",
            wanted=wanted or example or f"one of those that help({name}) lists",
        )


def checks_calls(example: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator: calls that do not fit the parameters raise `NotAScenario`.

    Args:
        example: a right call, for the message.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        expected = signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                expected.bind(*args, **kwargs)
            except TypeError as error:
                reason = str(error)
            else:
                return function(*args, **kwargs)
            name = function.__name__
            names = expected.parameters
            if not any(each.kind is Parameter.VAR_KEYWORD for each in names.values()):
                unknown = {each: kwargs[each] for each in kwargs if each not in names}
                check_known(name, function, unknown, example)
            problem = f"{name}() was called with {reason}"
            if reason.startswith("missing"):
                problem = f"{name}() is {reason}"
            raise NotAScenario(code="WrongCall", found=problem, wanted=example)

        return call

    return decorated


def value_text(value: object) -> str:
    """Return a value for a message: as it is written, cut, or else its kind."""
    if type(value) not in _PLAIN:
        return kind_of(value)
    text = repr(value)
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}..."


def check_undo(text: str, do: Callable[..., Any], target: object, result: Any) -> None:
    """Check that the result of a step is a function that undoes it.

    Args:
        text: the text of the step.
        do: the function of the step.
        target: the registry.
        result: the object that `do` returned.

    Raises:
        NotAScenario: the result cannot undo the step; the message says what can.
    """
    where = f"returned by {text!r}"
    if result is None:
        raise NotAScenario(
            found=f"None, {where}",
            wanted="an undo: return a function without parameters or "
            "an object with close(), pass undo=..., or undo=None if the step stays",
        )
    if isinstance(result, type):
        raise NotAScenario(
            found=f"{kind_of(result)}, {where}",
            wanted="the function that undoes the step, or undo=..., a function "
            "of the registry and of the returned value",
        )
    if isawaitable(result):
        raise NotAScenario(
            found=f"{kind_of(result)}, {where}",
            wanted="the function that undoes the step, as task.cancel",
        )
    if not callable(result):
        raise NotAScenario(
            found=f"{kind_of(result)}, {where}",
            wanted="the function that undoes the step, or an object with close()",
        )
    free = accepts(result, 0)
    if isinstance(result, FunctionType) and _is_registered(
        do, target, result, free=free
    ):
        raise NotAScenario(
            found=f"{result.__name__}, {where}: it returned the function that "
            "was registered, as decorators do",
            wanted="undo=..., a function of the registry that removes it, "
            "or undo=None if the step stays",
        )
    if not free:
        raise NotAScenario(
            found=f"{name_of(result)}{signature(result)}, {where}",
            wanted="a function without parameters; undo=... receives the registry "
            "and the result",
        )


def check_takes(
    where: str, function: object, counts: tuple[int, ...], expected: str
) -> None:
    """Check that a function can be called with one of several argument counts.

    `where` and `expected` name the function and its kind in the message.

    Raises:
        NotAScenario: the function cannot be called with any of these counts.
    """
    if not callable(function):
        raise NotAScenario(found=f"{value_text(function)} as {where}", wanted=expected)
    if not any(accepts(function, count) for count in counts):
        actual = f"{name_of(function)}{signature(function)} as {where}"
        raise NotAScenario(found=actual, wanted=expected)


def check_create(create: object) -> None:
    """Check that the required parameters of `create` can be names of fixtures.

    Raises:
        NotAScenario: it is not callable, or a parameter is positional-only.
    """
    if callable(create) and (accepts(create, 0) or required_names(create)):
        return
    wanted = "a function without parameters, or with fixtures of pytest"
    check_takes("create", create, (0,), wanted)


def check_created(registry: T) -> T:
    """Return a fresh registry, unless it is nothing that can be registered with.

    Raises:
        NotAScenario: it is None, or a generator, which has not run.
    """
    if registry is None:
        raise NotAScenario(
            found="None, returned by create",
            wanted="a fresh registry, by a `return`",
        )
    if isgenerator(registry) or isasyncgen(registry):
        raise NotAScenario(
            found=f"{kind_of(registry)}, returned by create",
            wanted="a registry, by a `return`; reset= is what cleans up",
        )
    return registry


def required_names(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the required parameters; () if one has to be positional."""
    required = [
        each
        for each in signature(function).parameters.values()
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if any(each.kind is each.POSITIONAL_ONLY for each in required):
        return ()
    return tuple(each.name for each in required)


def check_kind(where: str, value: object, kind: type, expected: str) -> None:
    """Check that an argument is of a kind; `where` and `expected` are for the message.

    Raises:
        NotAScenario: it is of another kind.
    """
    if not isinstance(value, kind):
        raise NotAScenario(found=f"{value_text(value)} as {where}", wanted=expected)


def accepts(function: Callable[..., object], count: int) -> bool:
    """Return True if `count` arguments are accepted, or if that is unknown.

    This runs for every undo that a step returns, so functions, methods and partials of
    them are decided from their code, which is faster than `signature`.
    """
    inner: Any = function
    total = count
    if type(inner) is partial and not inner.keywords and not _has_own_signature(inner):
        inner, total = inner.func, total + len(inner.args)
    if type(inner) is MethodType:
        inner, total = inner.__func__, total + 1
    if type(inner) is FunctionType and not _has_own_signature(inner):
        code, defaults = inner.__code__, inner.__defaults__ or ()
        if code.co_kwonlyargcount > len(inner.__kwdefaults__ or ()):
            return False
        most = total if code.co_flags & CO_VARARGS else code.co_argcount
        return code.co_argcount - len(defaults) <= total <= most
    try:
        signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # some builtins have no signature
        return True
    return True


def _has_own_signature(function: object) -> bool:
    """Return True if a function has an explicit signature.

    `__dict__` is not read, because reading it creates one: the function belongs to the
    registry, whose changes are observed.
    """
    return hasattr(function, "__wrapped__") or hasattr(function, "__signature__")


def count_required(function: Callable[..., object], most: int) -> int | None:
    """Return how many of `most` arguments to pass to a function; None if unknown.

    Only required parameters are passed: an optional one has a default, which a loop may
    have bound (`k=k`). `*args` receive all.
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
    """Return True if a generator, or the context manager of one, has not started."""
    generator = getattr(result, "gen", result)
    if isasyncgen(generator):
        return True
    return isgenerator(generator) and getgeneratorstate(generator) == GEN_CREATED


def discard(result: Any) -> None:
    """Close a generator that never ran, so its collection is not reported."""
    generator = getattr(result, "gen", result)
    if isgenerator(generator):
        generator.close()


def _is_registered(
    do: Callable[..., Any], target: object, result: FunctionType, *, free: bool
) -> bool:
    """Return True if a step returned the function that it registered, or its wrapper.

    `free` is True if the function can be called without arguments, as an undo can.
    """
    functions = tuple(_functions(do))
    inner: FunctionType = getattr(result, "__wrapped__", result)
    names = [each for function in functions for each in _named_by(function)]
    names += _bound(do)
    is_named = any(each is result or each is inner for each in names)
    is_own = any(inner.__code__ in each.__code__.co_consts for each in functions)
    if is_named and not free:
        return True
    # The registering function creates an undo, which knows the registry, not the
    # reverse.
    return (is_named or is_own or not free) and _holds(target, (result, inner))


def _holds(target: object, targets: tuple[object, ...]) -> bool:
    """Return True if one of the targets is reachable from a registry.

    Functions, classes and modules are not searched.
    """
    ids = set(map(id, targets))
    visited: set[int] = set()
    queue: list[Any] = [target]
    for each in queue:
        for further in gc.get_referents(each):
            if id(further) in ids:
                return True
            if len(visited) < _REACH and id(further) not in visited:
                visited.add(id(further))
                if not isinstance(further, (type, ModuleType, FunctionType)):
                    queue.append(further)
    return False


def _bound(do: object) -> Iterator[object]:
    """Yield the bound arguments of a partial function."""
    if isinstance(do, partial):
        for each in (*do.args, *do.keywords.values()):
            yield each
            yield from _bound(each)


def _functions(do: object) -> Iterator[FunctionType]:
    """Yield the functions behind a step's, which may be bound or partial."""
    if isinstance(do, partial):
        for each in (do.func, *_bound(do)):
            yield from _functions(each)
    elif isinstance(do, MethodType):
        yield from _functions(do.__func__)
    elif isinstance(do, FunctionType):
        yield do


def _named_by(do: FunctionType) -> Iterator[object]:
    """Yield the objects in the closure of a function and the globals that it names."""
    for cell in do.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            yield cell.cell_contents
    for name in do.__code__.co_names:
        yield do.__globals__.get(name)


def kind_of(value: object) -> str:
    """Return the kind of a value, in words for messages."""
    if isgenerator(value):
        return f"the generator {value.__qualname__}"
    if isasyncgen(value):
        return f"the asynchronous generator {value.__qualname__}"
    if iscoroutine(value):
        return f"the coroutine {value.__qualname__}"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if isinstance(value, FunctionType | MethodType):
        return f"the {type(value).__name__} {value.__qualname__}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    generator = getattr(value, "gen", None)
    if isgenerator(generator) or isasyncgen(generator):
        return f"the context manager {generator.__qualname__}"
    kind = type(value)
    if value is None or kind.__module__ == "builtins":
        return "None" if value is None else kind.__name__
    return f"an object of class {kind.__name__}"


def name_of(function: Any) -> str:
    """Return the name of a function for messages."""
    return str(getattr(function, "__qualname__", type(function).__qualname__))
