"""Special forms: functions of Python that mean something else in a script.

True only here: what is asked of the compiler, and how a function of Python comes to be
asked of it.

    SpecialForm    a function that is given what its arguments mean
    SyntaxForm     one that is given the call as it is written
    register_forms    lets their objects mean them; gives what takes that back

Rules:
- a form is found by the identity of its object, whatever it is called in the program;
- a form takes its arguments as the function of Python does, and says so if it does not;
- what is known when a program is compiled (`is_scripting()`) is a constant.
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from runtime.schema.subtype import is_subtype
from runtime.schema.types import Type
from runtime.script.emission.builtins import register_annotate
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.refinement import INSTANCE_TESTS
from runtime.script.emission.sugar import (
    Arguments,
    Registration,
    SimpleValue,
    Sugared,
    register_special_form,
    special_form,
    sugar_of_value,
)
from runtime.script.program import marks


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


def install_forms() -> None:
    """Let the functions of this chapter mean what they are."""
    register_annotate(marks.annotate)
    register_forms(
        SyntaxForm("unchecked_cast", _unchecked_cast, marks.unchecked_cast),
        SpecialForm("is_scripting", _is_scripting, marks.is_scripting),
    )
    asked = special_form(isinstance)
    assert asked is not None, "builtins are installed before"
    register_special_form(marks.is_of_type, asked)
    INSTANCE_TESTS.append(marks.is_of_type)
