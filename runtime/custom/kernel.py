"""Kernels of custom operators: a function, called as it is, its results looked at.

True only here: the text between a call and the function.  A function is called with
every argument by position, keyword-only ones by name, as kernels see them; then its
results are looked at (`runtime.custom.results`), a single fresh tensor by two looks:

    def kernel(a0, a1):
        result = function(a0, a1)
        try:
            if (
                result._place is None
                and result._flat.base is None
                and result is not a0
            ):
                return result
            if apart(result, (a0,)):
                return result
        except AttributeError:
            pass
        look(result, (a0, a1))
        return result

Rules:
- a function that cannot be called so is refused when it is registered, not when it is
  called;
- a text is compiled once for all operators whose arguments look alike;
- a function of no tensors' results is called as it is.
"""

from collections.abc import Callable
from functools import cache
from keyword import iskeyword
from typing import Any

from runtime.custom.inference import holds_tensors
from runtime.custom.results import Look, apart
from runtime.dispatch.kernel import Kernel, describe, direct
from runtime.errors.custom_op import UnfitKernel
from runtime.schema.excerpt import shortened
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType, is_dispatch_type

Function = Callable[..., Any]


def kernel_of(function: Function, schema: Schema) -> Kernel:
    """The kernel of a function for the operator of `schema`.

    Raises `UnfitKernel`.
    """
    check_fit(function, schema)
    name = describe(function)
    arguments, start = schema.arguments, schema.kwarg_only_start
    passed = tuple(
        _by_name(argument.name, place) if place >= start else f"a{place}"
        for place, argument in enumerate(arguments)
    )
    if not any(holds_tensors(each.type) for each in schema.returns):
        if start == len(arguments):
            return direct(function, name)
        return direct(_named(passed)(function), name)
    look = Look(schema, name)
    tensors = tuple(
        place
        for place, argument in enumerate(arguments)
        if is_dispatch_type(argument.type) == "tensor"
    )
    only = schema.returns[0] if len(schema.returns) == 1 else None
    # In a list of tensors one has to look for the result.
    lists = any(is_dispatch_type(argument.type) == "list" for argument in arguments)
    if only is None or only.type != TensorType or only.alias is not None or lists:
        return direct(_looked_at(passed)(function, look), name)
    return direct(_fresh(passed, tensors)(function, look), name)


def check_fit(function: Any, schema: Schema) -> None:
    """Whether the function takes what its operator is called with.

    One that shows no signature (a builtin, a ufunc) is believed.  Raises `UnfitKernel`.
    """
    from inspect import (
        isasyncgenfunction,
        iscoroutinefunction,
        isgeneratorfunction,
        signature,
    )

    if not callable(function):
        raise _unfit(function, schema, "it cannot be called")
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        raise _unfit(function, schema, "it is `async`, and a call of it runs nothing")
    if isgeneratorfunction(function):
        raise _unfit(
            function, schema, "it has a `yield`, and a call of it runs nothing"
        )
    try:
        found = signature(function)
    except (TypeError, ValueError):
        return
    start = schema.kwarg_only_start
    named = {argument.name: None for argument in schema.arguments[start:]}
    try:
        found.bind(*[None] * start, **named)
    except TypeError as error:
        raise _unfit(function, schema, str(error)) from None


def _unfit(function: object, schema: Schema, fault: str) -> UnfitKernel:
    return UnfitKernel(
        operator=str(schema.name),
        function=str(getattr(function, "__name__", shortened(function))),
        fault=fault,
        schema=str(schema),
    )


@cache
def _named(passed: tuple[str, ...]) -> Callable[[Function], Function]:
    return _made(
        "function",
        f"def kernel({_given(passed)}):",
        f"    return function({', '.join(passed)})",
    )


@cache
def _looked_at(passed: tuple[str, ...]) -> Callable[[Function, Look], Function]:
    return _made(
        "function, look",
        f"def kernel({_given(passed)}):",
        f"    result = function({', '.join(passed)})",
        f"    look(result, ({_given(passed)}{',' if passed else ''}))",
        "    return result",
    )


@cache
def _fresh(
    passed: tuple[str, ...], tensors: tuple[int, ...]
) -> Callable[[Function, Look], Function]:
    compared = "".join(f"a{place}, " for place in tensors)
    others = "".join(f" and result is not a{place}" for place in tensors)
    return _made(
        "function, look",
        f"def kernel({_given(passed)}):",
        f"    result = function({', '.join(passed)})",
        "    try:",
        f"        if result._place is None and result._flat.base is None{others}:",
        "            return result",
        f"        if apart(result, ({compared})):",
        "            return result",
        "    except AttributeError:",
        "        pass",
        f"    look(result, ({_given(passed)}{',' if passed else ''}))",
        "    return result",
    )


def _by_name(name: str, place: int) -> str:
    # Schemas have names that only a dictionary can hold.
    return f"**{{{name!r}: a{place}}}" if iskeyword(name) else f"{name}=a{place}"


def _given(passed: tuple[str, ...]) -> str:
    return ", ".join(f"a{place}" for place in range(len(passed)))


def _made(parameters: str, *lines: str) -> Callable[..., Function]:
    text = "\n".join(
        [
            f"def make({parameters}):",
            *(f"    {line}" for line in lines),
            "    return kernel",
        ]
    )
    values: dict[str, Any] = {"apart": apart}
    exec(compile(text, "<custom operator>", "exec"), values)  # noqa: S102  # numbers, fixed words, and names that a schema was read from
    make: Callable[..., Function] = values["make"]
    return make
