"""Special forms: Python functions with a special meaning in programs.

    SpecialForm    a function that receives the sugar of its arguments
    SyntaxForm     a function that receives the syntax tree of the call
    register_forms    registers forms; returns the registrations
    fork, awaitable   move a call into a closure, which runs later

Rules:
- a form is looked up by the identity of its object, whatever its name in the program;
- a form accepts the arguments of the Python function, and refuses others;
- a value that is fixed at compile time (`is_scripting()`) is a constant;
- the callee and the arguments of a fork are evaluated now; the closure contains only
  the call, which is matched, and refused, like any other;
- a future has only `wait`; an attribute of an await other than `wait` is one of its
  value, and waits for it first.
"""

import ast
import typing
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from everyorder.runtime import futures
from everyorder.runtime.base.registry import RegistryHandle
from everyorder.runtime.schema.annotation import register_wrapper
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    AnyType,
    AwaitType,
    FunctionType,
    FutureType,
    Type,
)
from everyorder.runtime.script.emission.branches import instance_test
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    Sugared,
    no_attribute,
)
from everyorder.runtime.script.emission.expressions import for_type
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    register_special_forms,
    register_value,
    sugar_of_value,
)
from everyorder.runtime.script.ir import Value, program


class SpecialForm(Sugared):
    """A Python function, `python`, that the compiler implements itself."""

    __slots__ = ("emit", "name", "python")

    def __init__(
        self, name: str, emit: Callable[[Emitter, Arguments], Sugared], python: Any
    ) -> None:
        self.name = name
        self.emit = emit
        self.python = python

    def describe(self) -> str:
        return f"`{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        return self.emit(e, arguments)


class SyntaxForm(SpecialForm):
    """A form that receives the syntax of its call, because it contains types."""

    __slots__ = ("call_syntax",)

    def __init__(
        self,
        name: str,
        emit: Callable[[Emitter, ast.Call], Sugared],
        python: Any = None,
    ) -> None:
        super().__init__(name, self._indirect, python)
        self.call_syntax = emit

    def _indirect(self, e: Emitter, arguments: Arguments) -> Sugared:
        e.fail(f"{self.describe()} is called by its name only")


def register_forms(*forms: SpecialForm) -> RegistryHandle:
    """Let the objects of forms mean them, all or none."""
    return register_special_forms(((each.python, each) for each in forms), stacklevel=2)


# The arguments of forms


def arguments_of(
    e: Emitter,
    name: str,
    parameters: Sequence[str],
    arguments: Arguments,
    required: int | None = None,
) -> list[Any]:
    """Return the argument for each parameter, None for a missing one.

    Raises:
        IllTyped: there are too many arguments, or one of the first `required` (by
        default all) is missing.
    """
    callee = name if name.startswith("the ") else f"`{name}`"
    hint = f"Its parameters are `({', '.join(parameters)})`." if parameters else ""
    count = len(arguments.positional)
    if count > len(parameters):
        takes = f"{len(parameters)} argument{'s' * (len(parameters) != 1)}"
        e.fail(f"{callee} takes {takes}, and {count} are given", hint)
    by_name: dict[str, Any] = dict(zip(parameters, arguments.positional, strict=False))
    for key, each in arguments.named.items():
        if key in by_name:
            e.fail(f"{callee} is given `{key}` twice")
        if key not in parameters:
            e.fail(f"{callee} has no argument `{key}`", hint)
        by_name[key] = each
    least = len(parameters) if required is None else required
    for word in parameters[:least]:
        if word not in by_name:
            e.fail(f"{callee} is given no `{word}`")
    return [by_name.get(word) for word in parameters]


def positional_of(
    e: Emitter, name: str, arguments: Arguments, *counts: int, named: Sequence[str] = ()
) -> Sequence[Sugared]:
    """Return the positional arguments; their number must be one of `counts`.

    Raises:
        IllTyped: the number is another one, or a name is not among `named`.
    """
    for each in arguments.named:
        if each not in named:
            e.fail(f"`{name}` has no argument `{each}`")
    count = len(arguments.positional)
    if count not in counts:
        counts_text = " or ".join(map(str, counts))
        e.fail(f"`{name}` takes {counts_text} arguments, not {count}")
    return arguments.positional


def _of_two(e: Emitter, name: str, node: ast.Call) -> tuple[ast.expr, ast.expr]:
    """Return the two arguments of a form that takes a type."""
    if len(node.args) != 2 or node.keywords:
        example = "x, list[int]" if name == "isinstance" else "list[int], x"
        e.fail(
            f"`{name}` takes 2 arguments, not {len(node.args)}",
            f"Write `{name}({example})`.",
        )
    return node.args[0], node.args[1]


# Types of values


def _isinstance(e: Emitter, node: ast.Call) -> Sugared:
    value, kinds = _of_two(e, "isinstance", node)
    test = instance_test(e, e.expression(value), value, kinds)
    return SimpleValue(e.boolean(test.truth))


def _annotated(name: str, narrows: bool, e: Emitter, node: ast.Call) -> Sugared:
    """Emit `annotate(T, x)`, or `cast(T, x)`, which may be narrower than the value."""
    written, inner = _of_two(e, name, node)
    type_: Type = e.annotations.type(written)
    value = for_type(e, inner, type_).value(e)
    fitted = e.fitted(value, type_)
    if fitted is None and not (narrows and is_subtype(type_, value.type)):
        e.fail(f"a value of type {value.type} is no {type_}")
    return sugar_of_value(e.cast(value, type_))


def _unchecked_cast(e: Emitter, node: ast.Call) -> Sugared:
    written, inner = _of_two(e, "unchecked_cast", node)
    type_, value = e.annotations.type(written), e.value(inner)
    if not (is_subtype(type_, value.type) or is_subtype(value.type, type_)):
        e.fail(f"no value of type {value.type} is of type {type_}")
    return sugar_of_value(e.cast(value, type_))


def _is_scripting(e: Emitter, arguments: Arguments) -> Sugared:
    arguments_of(e, "is_scripting", (), arguments)
    return SimpleValue(e.constant(True))


# Forks and awaits

# Members of awaits and futures that exist only in Python.
_OF_PYTHON = ("done", "fn", "args", "kwargs", "type", "is_nowait")
_WAIT = "Wait for it first: `awaitable_wait(...)`."
_AWAIT_HINT = "Awaits are waited for by `awaitable_wait`."


def _closure(kind: str, e: Emitter, arguments: Arguments) -> Sugared:
    if not arguments.positional:
        hint = f"Write `{kind}(f, x)` for what would be `f(x)`."
        e.fail(f"`{kind}` takes a function, and its arguments", hint)
    callee, *rest = arguments.positional
    # The arguments of the call are computed now.
    operands = [_now(e, each) for each in rest]
    named = {key: _now(e, each) for key, each in arguments.named.items()}
    closure = e.node("prim::Closure", (), (FunctionType,))
    block = closure.add_block()
    with e.in_block(block):
        result = callee.call(e, Arguments(operands, named)).value(e)
    block.add_result(result)
    wrapper = FutureType if kind == "fork" else AwaitType
    node = e.node(f"prim::{kind}Closure", (closure.output,), (wrapper(result.type),))
    return sugar_of_value(node.output)


def _now(e: Emitter, sugared: Sugared) -> Sugared:
    """Return an argument computed before the closure; sugar without value unchanged."""
    items = getattr(sugared, "items", None)
    return sugar_of_value(sugared.value(e)) if items is not None else sugared


def _wait(e: Emitter, arguments: Arguments) -> Sugared:
    (future,) = arguments_of(e, "wait", ("future",), arguments)
    value = future.value(e)
    if not isinstance(value.type, FutureType):
        is_await = isinstance(value.type, AwaitType)
        hint = _AWAIT_HINT if is_await else "Futures are what `fork` gives."
        e.fail(f"`wait` takes a future, and this is of type {value.type}", hint)
    return emit_wait(e, value)


def _awaitable_wait(e: Emitter, arguments: Arguments) -> Sugared:
    (one,) = arguments_of(e, "awaitable_wait", ("aw",), arguments)
    value = one.value(e)
    if not isinstance(value.type, AwaitType):
        hint = "Awaits are what `awaitable` and `awaitable_nowait` give."
        message = f"`awaitable_wait` takes an await, and this is of type {value.type}"
        e.fail(message, hint)
    return emit_wait(e, value)


def _awaitable_nowait(e: Emitter, arguments: Arguments) -> Sugared:
    (one,) = arguments_of(e, "awaitable_nowait", ("o",), arguments)
    value = one.value(e)
    node = e.node("prim::awaitable_nowait", (value,), (AwaitType(value.type),))
    return sugar_of_value(node.output)


def emit_wait(e: Emitter, value: Value) -> Sugared:
    """Return the value of a future, or of an await."""
    type_ = value.type
    assert isinstance(type_, FutureType | AwaitType), "only these are waited for"
    kind = "wait" if isinstance(type_, FutureType) else "awaitable_wait"
    return sugar_of_value(e.node(f"prim::{kind}", (value,), (type_.element,)).output)


class Wait(Sugared):
    """The method `wait` of a future, or of an await."""

    __slots__ = ("waits",)

    def __init__(self, waits: SimpleValue) -> None:
        self.waits = waits

    def describe(self) -> str:
        return f"the method `wait` of {self.waits.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        arguments_of(e, self.describe(), (), arguments)
        return emit_wait(e, self.waits.node_value)


class FutureValue(SimpleValue):
    """A future."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """Return the method `wait`; everything else is refused."""
        if name == "wait":
            return Wait(self)
        hint = "In a script a future can only be waited for: `wait`."
        return no_attribute(e, str(self.type), name, (), hint)


class AwaitValue(SimpleValue):
    """An await: its attributes are those of its value."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """Return the method `wait`, or wait and return an attribute of the value."""
        if name == "wait":
            return Wait(self)
        if name in _OF_PYTHON:
            hint = "In a script an await can only be waited for: `awaitable_wait`."
            no_attribute(e, str(self.type), name, (), hint)
        return emit_wait(e, self.node_value).attribute(e, name)

    # No other operation is supported, as for sugar without value.
    hint = _WAIT
    subscript = Sugared.subscript
    iterate = Sugared.iterate
    truth = Sugared.truth

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        return e.fail(f"`{symbol}` of {self.describe()} is nothing", _WAIT)


def install_forms() -> None:
    """Register the forms of this module, futures and awaits."""
    register_wrapper(futures.Future, FutureType)
    register_wrapper(futures.Await, AwaitType, AnyType)
    register_value(FutureType, FutureValue)
    register_value(AwaitType, AwaitValue)
    later = futures.awaitable, futures.awaitable_wait, futures.awaitable_nowait
    register_forms(
        SyntaxForm("isinstance", _isinstance, isinstance),
        SyntaxForm("isinstance", _isinstance, program.is_of_type),
        SyntaxForm("cast", partial(_annotated, "cast", True), typing.cast),
        SyntaxForm(
            "annotate", partial(_annotated, "annotate", False), program.annotate
        ),
        SyntaxForm("unchecked_cast", _unchecked_cast, program.unchecked_cast),
        SpecialForm("is_scripting", _is_scripting, program.is_scripting),
        SpecialForm("fork", partial(_closure, "fork"), program.fork),
        SpecialForm("wait", _wait, program.wait),
        SpecialForm("awaitable", partial(_closure, "awaitable"), later[0]),
        SpecialForm("awaitable_wait", _awaitable_wait, later[1]),
        SpecialForm("awaitable_nowait", _awaitable_nowait, later[2]),
    )
