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
from keyword import iskeyword
from typing import Any

from runtime.custom.inference import holds_tensors
from runtime.custom.results import Look, apart
from runtime.dispatch.kernel import Kernel, describe, direct
from runtime.errors.custom_op import UnfitKernel
from runtime.generated import block, numbered, template
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


@template("custom operator", "function")
def _named(passed: tuple[str, ...]) -> list[str]:
    body = [f"return function({', '.join(passed)})"]
    return block(f"def kernel({numbered(len(passed))}):", body)


@template("custom operator", "function, look")
def _looked_at(passed: tuple[str, ...]) -> list[str]:
    return _looking(passed, [])


@template("custom operator", "function, look", apart=apart)
def _fresh(passed: tuple[str, ...], tensors: tuple[int, ...]) -> list[str]:
    compared = "".join([f"a{place}, " for place in tensors])
    others = "".join([f" and result is not a{place}" for place in tensors])
    looks = [
        "try:",
        f"    if result._place is None and result._flat.base is None{others}:",
        "        return result",
        f"    if apart(result, ({compared})):",
        "        return result",
        "except AttributeError:",
        "    pass",
    ]
    return _looking(passed, looks)


def _looking(passed: tuple[str, ...], looks: list[str]) -> list[str]:
    """A kernel that looks at its result, if it gets behind the short `looks`."""
    given = numbered(len(passed))
    body = [
        f"result = function({', '.join(passed)})",
        *looks,
        f"look(result, ({given}{',' if passed else ''}))",
        "return result",
    ]
    return block(f"def kernel({given}):", body)


def _by_name(name: str, place: int) -> str:
    # Schemas have names that only a dictionary can hold.
    return f"**{{{name!r}: a{place}}}" if iskeyword(name) else f"{name}=a{place}"
