"""Special forms: functions of Python that mean something else in a program.

    SpecialForm    a function that is given what its arguments mean
    SyntaxForm     one that is given the call as it is written
    register_forms    lets their objects mean them; gives what takes that back
    fork, awaitable   put a call into a closure, which runs later
    LeftFunction   a function that is marked `ignore` or `unused`

Rules:
- a form is found by the identity of its object, whatever it is called in the program;
- a form takes its arguments as the function of Python does, and says so if it does not;
- what is known when a program is compiled (`is_scripting()`) is a constant;
- of a fork the callee and its arguments are what they are now; the call itself is what
  is in the closure, so that it is matched, and refused, like any other;
- a future has `wait`, and nothing else; an attribute of an await is one of its value,
  for which is waited first, but for `wait`, which is the await's own;
- of a marked function only the annotations are looked at: without any its parameters
  and its result are tensors.  An ignored one is called by Python when the program runs,
  and what it gives is held against the type that it promises; an unused one raises.
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from runtime import futures
from runtime.schema.annotation import register_wrapper
from runtime.schema.schema import Schema
from runtime.schema.subtyping import is_subtype
from runtime.schema.types import (
    AnyType,
    AwaitType,
    FunctionType,
    FutureType,
    NoneType_,
    Type,
)
from runtime.script.emission.branches import INSTANCE_TESTS
from runtime.script.emission.builtins import register_annotate
from runtime.script.emission.calls import LEAVES, bound_values
from runtime.script.emission.emitter import Arguments, Emitter, Sugared, no_attribute
from runtime.script.emission.sugar import (
    Registration,
    SimpleValue,
    register_special_form,
    register_value,
    special_form,
    sugar_of_value,
)
from runtime.script.ir import Value
from runtime.script.program import Mark, marks


class SpecialForm(Sugared):
    """A function of Python, `python`, that the compiler takes for its own."""

    __slots__ = ("emit", "name", "python")

    def __init__(
        self, name: str, emit: Callable[[Emitter, Arguments], Sugared], python: Any
    ) -> None:
        self.name = name
        self.emit = emit
        self.python = python

    def says(self) -> str:
        """Its name."""
        return f"`{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """What it means of the arguments."""
        return self.emit(e, arguments)


class SyntaxForm(Sugared):
    """A form that is given its call as it is written, as types are in it."""

    __slots__ = ("emit", "name", "python")

    def __init__(
        self, name: str, emit: Callable[[Emitter, ast.Call], Sugared], python: Any
    ) -> None:
        self.name = name
        self.emit = emit
        self.python = python

    def says(self) -> str:
        """Its name."""
        return f"`{self.name}`"

    def call_syntax(self, e: Emitter, node: ast.Call) -> Sugared:
        """What the call means."""
        return self.emit(e, node)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """It is called where it is written, and nowhere else."""
        e.fail(f"`{self.name}` is given a type, and is called by its name only")


def register_forms(*forms: SpecialForm | SyntaxForm) -> list[Registration]:
    """Let the objects of forms mean them."""
    return [register_special_form(each.python, each) for each in forms]


def arguments_of(
    e: Emitter,
    name: str,
    parameters: Sequence[str],
    arguments: Arguments,
    required: int | None = None,
) -> list[Any]:
    """What a call gives for each parameter, None where nothing is given.

    Raises:
        IllTyped: it gives too much, or not all of the first `required`, or of all.
    """
    count = len(arguments.positional)
    if count > len(parameters):
        takes = f"{len(parameters)} argument{'s' * (len(parameters) != 1)}"
        some = f"`({', '.join(parameters)})`" if parameters else ""
        e.fail(
            f"{_called(name)} takes {takes}, and {count} are given", some and _is(some)
        )
    given: dict[str, Any] = dict(zip(parameters, arguments.positional, strict=False))
    for key, each in arguments.named.items():
        if key in given:
            e.fail(f"{_called(name)} is given `{key}` twice")
        if key not in parameters:
            hint = _is(f"`({', '.join(parameters)})`") if parameters else ""
            e.fail(f"{_called(name)} has no argument `{key}`", hint)
        given[key] = each
    least = len(parameters) if required is None else required
    for word in parameters[:least]:
        if word not in given:
            e.fail(f"{_called(name)} is given no `{word}`")
    return [given.get(word) for word in parameters]


def _called(name: str) -> str:
    return name if name.startswith("the ") else f"`{name}`"


def _is(parameters: str) -> str:
    return f"Its parameters are {parameters}."


def _types(e: Emitter, name: str, node: ast.Call) -> tuple[Type, ast.expr]:
    """The type and the value of a call such as `annotate(int, x)`."""
    if len(node.args) != 2 or node.keywords:
        hint = f"Write `{name}(list[int], x)`."
        e.fail(f"`{name}` takes a type and a value, in this order", hint)
    return e.annotations.type(node.args[0]), node.args[1]


def _unchecked_cast(e: Emitter, node: ast.Call) -> Sugared:
    wanted, inner = _types(e, "unchecked_cast", node)
    value = e.value(inner)
    if not (is_subtype(wanted, value.type) or is_subtype(value.type, wanted)):
        e.fail(f"no value of type {value.type} is of type {wanted}")
    return sugar_of_value(e.cast(value, wanted))


def _is_scripting(e: Emitter, arguments: Arguments) -> Sugared:
    arguments_of(e, "is_scripting", (), arguments)
    return SimpleValue(e.constant(True))


# Forks and awaits

# What only Python's own awaits and futures can be asked.
_OF_PYTHON = ("done", "fn", "args", "kwargs", "type", "is_nowait")
_WAIT = "Wait for it first: `awaitable_wait(...)`."


def _closure(e: Emitter, name: str, arguments: Arguments, kind: str) -> Sugared:
    if not arguments.positional:
        hint = f"Write `{name}(f, x)` for what would be `f(x)`."
        e.fail(f"`{name}` takes a function, and its arguments", hint)
    callee, *rest = arguments.positional
    # What is computed for the call is computed now.
    given = [_now(e, each) for each in rest]
    named = {key: _now(e, each) for key, each in arguments.named.items()}
    closure = e.node("prim::Closure", (), (FunctionType,))
    block = closure.add_block()
    with e.into(block):
        result = callee.call(e, Arguments(given, named)).value(e)
    block.add_result(result)
    wrapper = FutureType if kind == "fork" else AwaitType
    node = e.node(f"prim::{kind}Closure", (closure.output,), (wrapper(result.type),))
    return sugar_of_value(node.output)


def _now(e: Emitter, sugared: Sugared) -> Sugared:
    """An argument that is computed before the closure; what is no value, as it is."""
    items = getattr(sugared, "items", None)
    return sugar_of_value(sugared.value(e)) if items is not None else sugared


def _fork(e: Emitter, arguments: Arguments) -> Sugared:
    return _closure(e, "fork", arguments, "fork")


def _awaitable(e: Emitter, arguments: Arguments) -> Sugared:
    return _closure(e, "awaitable", arguments, "awaitable")


def _wait(e: Emitter, arguments: Arguments) -> Sugared:
    (future,) = arguments_of(e, "wait", ("future",), arguments)
    value = future.value(e)
    if isinstance(value.type, AwaitType):
        hint = "Awaits are waited for by `awaitable_wait`."
        e.fail(f"`wait` takes a future, and this is of type {value.type}", hint)
    if not isinstance(value.type, FutureType):
        hint = "Futures are what `fork` gives."
        e.fail(f"`wait` takes a future, and this is of type {value.type}", hint)
    return waited(e, value)


def _awaitable_wait(e: Emitter, arguments: Arguments) -> Sugared:
    (one,) = arguments_of(e, "awaitable_wait", ("aw",), arguments)
    value = one.value(e)
    if not isinstance(value.type, AwaitType):
        hint = "Awaits are what `awaitable` and `awaitable_nowait` give."
        message = f"`awaitable_wait` takes an await, and this is of type {value.type}"
        e.fail(message, hint)
    return waited(e, value)


def _awaitable_nowait(e: Emitter, arguments: Arguments) -> Sugared:
    (one,) = arguments_of(e, "awaitable_nowait", ("o",), arguments)
    value = one.value(e)
    node = e.node("prim::awaitable_nowait", (value,), (AwaitType(value.type),))
    return sugar_of_value(node.output)


def waited(e: Emitter, value: Value) -> Sugared:
    """The value of a future, or of an await."""
    type_ = value.type
    assert isinstance(type_, FutureType | AwaitType), "only these are waited for"
    kind = "wait" if isinstance(type_, FutureType) else "awaitable_wait"
    return sugar_of_value(e.node(f"prim::{kind}", (value,), (type_.element,)).output)


class Wait(Sugared):
    """`future.wait`, or that of an await."""

    __slots__ = ("waits",)

    def __init__(self, waits: SimpleValue) -> None:
        self.waits = waits

    def says(self) -> str:
        """The method."""
        return f"the method `wait` of {self.waits.type}"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """The value."""
        arguments_of(e, self.says(), (), arguments)
        return waited(e, self.waits.node_value)


class FutureValue(SimpleValue):
    """A future."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """`wait`; everything else is of Python's."""
        if name == "wait":
            return Wait(self)
        hint = "In a script a future can only be waited for: `wait`."
        no_attribute(e, str(self.type), name, (), hint)
        raise AssertionError("an attribute that is missing was refused")


class AwaitValue(SimpleValue):
    """An await: its attributes are those of its value."""

    __slots__ = ()

    def attribute(self, e: Emitter, name: str) -> Sugared:
        """`wait`, or an attribute of the value, for which this waits."""
        if name == "wait":
            return Wait(self)
        if name in _OF_PYTHON:
            hint = "In a script an await can only be waited for: `awaitable_wait`."
            no_attribute(e, str(self.type), name, (), hint)
        return waited(e, self.node_value).attribute(e, name)

    def set_attribute(self, e: Emitter, name: str, value: Sugared) -> None:
        """Attributes are set on the value itself."""
        e.fail(f"attributes of {self.says()} cannot be set", _WAIT)

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """An await is not called."""
        e.fail(f"{self.says()} cannot be called", _WAIT)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """An await has no elements."""
        e.fail(f"{self.says()} has no elements", _WAIT)

    def iterate(self, e: Emitter) -> object:
        """An await is not gone through."""
        e.fail(f"{self.says()} cannot be gone through", _WAIT)

    def truth(self, e: Emitter) -> Value | bool:
        """What an await is says nothing of its value."""
        e.fail(f"{self.says()} is neither true nor false", _WAIT)

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        """Awaits have no operators."""
        return e.fail(f"`{symbol}` of {self.says()} is nothing", _WAIT)


# Functions that are left to Python

# What an unused function raises where it is called.
RAISED = "builtins.RuntimeError"


class LeftFunction(Sugared):
    """A function that is left to Python; `owner` is the object of a method."""

    __slots__ = ("mark", "owner", "python", "schema")

    def __init__(
        self, python: Any, schema: Schema, mark: Mark, owner: SimpleValue | None = None
    ) -> None:
        self.python = python
        self.schema = schema
        self.mark = mark
        self.owner = owner

    def says(self) -> str:
        """The function."""
        return f"the function `{self.python.__qualname__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call it in Python, or raise."""
        if self.owner is not None:
            arguments = Arguments((self.owner, *arguments.positional), arguments.named)
        values, _ = bound_values(e, self.says(), self.schema, arguments)
        wanted = self.schema.returns[0].type
        if self.mark is Mark.UNUSED:
            name = self.python.__qualname__
            words = f"{name} is marked as unused, and was called by a script"
            attributes = {"class": RAISED}
            e.node("prim::RaiseException", (e.constant(words),), (), attributes)
            return sugar_of_value(e.uninitialized(wanted))
        types = () if wanted is NoneType_ else (wanted,)
        attributes = {"name": self.python.__name__, "object": self.python}
        node = e.node("prim::PythonOp", values, types, attributes)
        if not types:
            return SimpleValue(e.constant(None))
        return sugar_of_value(node.output)


def install_python_calls(
    schema_of: Callable[[Emitter, Any], Schema],
) -> None:
    """Let marked functions be left to Python; `schema_of` reads their annotations."""

    def left(mark: Mark) -> Callable[[Emitter, Any, Arguments], Sugared]:
        def call(e: Emitter, python: Any, arguments: Arguments) -> Sugared:
            made = LeftFunction(python, schema_of(e, python), mark)
            return made.call(e, arguments)

        return call

    for mark in (Mark.IGNORE, Mark.UNUSED):
        LEAVES[mark] = left(mark)


def install_forms() -> None:
    """Let the functions of this chapter, futures and awaits mean what they are."""
    register_annotate(marks.annotate)
    register_wrapper(futures.Future, FutureType)
    register_wrapper(futures.Await, AwaitType, AnyType)
    register_value(FutureType, FutureValue)
    register_value(AwaitType, AwaitValue)
    register_forms(
        SyntaxForm("unchecked_cast", _unchecked_cast, marks.unchecked_cast),
        SpecialForm("is_scripting", _is_scripting, marks.is_scripting),
        SpecialForm("fork", _fork, marks.fork),
        SpecialForm("wait", _wait, marks.wait),
        SpecialForm("awaitable", _awaitable, futures.awaitable),
        SpecialForm("awaitable_wait", _awaitable_wait, futures.awaitable_wait),
        SpecialForm("awaitable_nowait", _awaitable_nowait, futures.awaitable_nowait),
    )
    asked = special_form(isinstance)
    assert asked is not None, "builtins are installed before"
    register_special_form(marks.is_of_type, asked)
    INSTANCE_TESTS.append(marks.is_of_type)
