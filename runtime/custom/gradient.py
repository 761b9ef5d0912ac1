"""The gradient of a custom operator: a kernel at Autograd, made of two functions.

    def setup_context(ctx, inputs, output): ...
    def backward(ctx, *gradients): ...

How it works: where no argument requires grad, the call goes on below and nothing else
happens.  Otherwise it runs below Autograd; then `setup_context` may save what it needs
of the positional arguments (all of them, defaults filled in) and of the output, and the
results get a node (`runtime.custom.recording`).  If there are keyword-only arguments,
it is called `setup_context(ctx, inputs, keyword_only_inputs, output)`, with a
dictionary.

Rules:
- `backward` gets a gradient for each result, and returns one, or None, for each
  positional argument; for a list of tensors both are lists of its length;
- `setup_context` is called by the names above where it takes them, so that its order is
  its own; else by position;
- a function that cannot be called so is refused when it is registered;
- a formula is for operators that return new tensors or views and write nothing.
"""

from collections.abc import Callable
from typing import Any

from runtime.autograd.plan import TENSORS, kind_of
from runtime.autograd.recording import below_autograd, careful
from runtime.custom.recording import recorded_lists, recorded_tensors
from runtime.dispatch.kernel import Kernel, linked
from runtime.errors.custom import DefinitionRefused
from runtime.errors.registration import LibraryMisuse
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType

Function = Callable[..., Any]


def gradient_kernel(
    schema: Schema, backward: Function, setup_context: Function | None
) -> Kernel:
    """The kernel at Autograd.

    Raises:
        DefinitionRefused: the operator writes to an argument.
        LibraryMisuse: one of the two functions cannot be called as it has to be.
    """
    given: dict[str, Any] = {"backward": backward, "setup_context": setup_context}
    for name, function in given.items():
        if not callable(function) and (function is not None or name == "backward"):
            found = type(function).__name__
            raise LibraryMisuse(
                code="WrongArgument", argument=name, expected="a function", found=found
            )
    for argument in schema.arguments:
        if argument.is_write:
            raise DefinitionRefused(
                code="NotFunctional",
                operator=str(schema.name),
                argument=argument.name,
                schema=str(schema),
            )
    if not schema.is_varret:
        count = len(schema.returns)
        words = ["ctx", *("grad" if count == 1 else f"grad{n}" for n in range(count))]
        _check_takes("backward", backward, words)
    form = "" if setup_context is None else _form(schema, setup_context)

    def factory(below: Any, keyset: Any) -> Function:
        found: Schema = below.schema
        run = below_autograd(below, keyset)
        return _kernel(run, found, backward, form, setup_context)

    return linked(factory, "autograd")


def _form(schema: Schema, setup_context: Function) -> str:
    """How `setup_context` is called, with `{}` for the texts of values.

    Raises `LibraryMisuse`.
    """
    words = {"ctx": "context", "inputs": "{inputs}"}
    if schema.kwarg_only_start < len(schema.arguments):
        words["keyword_only_inputs"] = "{keywords}"
    words["output"] = "result"
    fault = _unfit(setup_context, (), [*words])
    if fault is None:
        return ", ".join(f"{name}={value}" for name, value in words.items())
    _check_takes("setup_context", setup_context, [*words])
    return ", ".join(words.values())


def _check_takes(argument: str, function: Function, words: list[str]) -> None:
    """Whether the function takes so many values.  Raises `LibraryMisuse`."""
    fault = _unfit(function, words, ())
    if fault is not None:
        raise LibraryMisuse(
            code="WrongArgument",
            argument=argument,
            expected=f"a function that is called with ({', '.join(words)})",
            found=f"one that is not: {fault}",
        )


def _unfit(
    function: Function, values: "list[str] | tuple[()]", names: "list[str] | tuple[()]"
) -> str | None:
    """Why the function cannot be called so; None if it can.

    One that shows no signature is believed to take values.
    """
    from inspect import signature

    try:
        found = signature(function)
    except (TypeError, ValueError):
        return "it shows no signature" if names else None
    try:
        found.bind(*values, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return None


def _kernel(
    run: Function,
    schema: Schema,
    backward: Function,
    form: str,
    setup_context: Function | None,
) -> Function:
    """The function of a call, recorded or not."""
    positional = schema.arguments[: schema.kwarg_only_start]
    kinds = tuple(kind_of(argument.type) for argument in positional)
    single = [each.type for each in schema.returns] == [TensorType]
    if single and TENSORS not in kinds and not schema.is_vararg:
        return recorded_tensors(run, schema, backward, form, setup_context, kinds)
    record = recorded_lists(run, schema, backward, form, setup_context, kinds)
    return careful(schema, run, record)
