"""Builtins: the functions, classes and modules of Python that programs know.

A table of special forms by identity; what is a primitive alone is found by the table of
primitives.

Rules:
- classes of exceptions are raised by their names; what they are given is one text.
"""

import builtins
import typing
import warnings
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

from runtime.autograd import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from runtime.errors.script import UnknownAttribute
from runtime.schema.subtyping import is_subtype
from runtime.schema.types import (
    ListType,
    PyObjectType,
    StrType,
    Type,
)
from runtime.script.emission.branches import instance_test
from runtime.script.emission.calls import PythonFunction, call_forms, forms_of_rows
from runtime.script.emission.emitter import Arguments, Emitter, Sugared
from runtime.script.emission.expressions import for_type
from runtime.script.emission.functions import (
    Primitive,
    Special,
    Syntactic,
    enumerated,
    plain,
    range_of,
    reversed_of,
    tuple_of,
    zipped,
)
from runtime.script.emission.sugar import (
    SimpleValue,
    Unknown,
    constant_of,
    register_special_form,
    register_sugar,
    sugar_of_value,
)
from runtime.script.emission.values import text_of
from runtime.script.ir import Value
from runtime.script.primitives import by_function
from runtime.script.primitives.table import FUNCTIONS


def _print(e: Emitter, arguments: Arguments) -> Sugared:
    for name in arguments.named:
        if name != "sep":
            e.fail(f"`print` has no argument `{name}` in programs", "Print one line.")
    values = [each.value(e) for each in arguments.positional]
    if "sep" in arguments.named:
        separator = arguments.named["sep"]
        texts = []
        for each in values:
            forms = forms_of_rows(by_function(str))
            given = Arguments((SimpleValue(each),))
            texts.append(call_forms(e, "`str`", forms, given).value(e))
        made = e.node("prim::ListConstruct", texts, (ListType(StrType),)).output
        join = separator.attribute(e, "join")
        values = [join.call(e, Arguments((SimpleValue(made),))).value(e)]
    e.node("prim::Print", values)
    return SimpleValue(e.constant(None))


def _warn(e: Emitter, arguments: Arguments) -> Sugared:
    allowed = ("message", "category", "stacklevel")
    given = plain(e, "warnings.warn", arguments, 0, 1, 2, named=allowed)
    message = given[0] if given else arguments.named.get("message")
    if message is None:
        e.fail("`warnings.warn` has nothing to say")
    inputs = [message.value(e)]
    category = given[1] if len(given) > 1 else arguments.named.get("category")
    if category is not None:
        if not isinstance(category, ExceptionClass):
            e.fail("the category of a warning is a class of warnings")
        inputs.append(e.constant(category.name))
    e.node("prim::warn", inputs)
    return SimpleValue(e.constant(None))


class ExceptionClass(Sugared):
    """A class of exceptions."""

    __slots__ = ("python",)

    def __init__(self, python: type[BaseException]) -> None:
        self.python = python

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.python.__module__}.{self.python.__qualname__}"

    def says(self) -> str:
        """The class."""
        return f"the class `{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """An exception of the class."""
        given = plain(e, self.python.__name__, arguments, 0, 1)
        return Exception_(self, given[0] if given else None)

    def raised(self, e: Emitter) -> tuple[str, Value]:
        """Its name, and no words."""
        return self.name, e.constant("")


class Exception_(Sugared):  # noqa: N801  # the word without it is Python's
    """An exception that has not been raised."""

    __slots__ = ("kind", "message")

    def __init__(self, kind: ExceptionClass, message: Sugared | None) -> None:
        self.kind = kind
        self.message = message

    def says(self) -> str:
        """An exception of its class."""
        return f"a `{self.kind.name}`"

    def raised(self, e: Emitter) -> tuple[str, Value]:
        """The name of its class, and its words."""
        if self.message is None:
            return self.kind.name, e.constant("")
        return self.kind.name, text_of(e, self.message)


def _class(python: type) -> Sugared | None:
    """What a class means that nobody has registered."""
    if issubclass(python, BaseException):
        return ExceptionClass(python)
    return None


class PythonClass(Sugared):
    """A class of Python that programs have no meaning for."""

    __slots__ = ("python",)

    def __init__(self, python: Any) -> None:
        self.python = python

    def says(self) -> str:
        """The class."""
        return f"the class `{self.python.__module__}.{self.python.__qualname__}`"


# Makers of sugar for classes, asked in order; what they leave is a `PythonClass`.
CLASSES: list[Callable[[type], Sugared | None]] = [_class]


def class_sugar(python: Any) -> Sugared:
    """What a Python class means."""
    rows = by_function(python)
    if rows:
        return Primitive(python)
    for make in CLASSES:
        found = make(python)
        if found is not None:
            return found
    return PythonClass(python)


def _builtin(python: Any) -> Sugared:
    if by_function(python):
        return Primitive(python)
    return Unknown(python)


def _has_attribute(e: Emitter, arguments: Arguments) -> Sugared:
    owner, name = plain(e, "hasattr", arguments, 2)
    return SimpleValue(e.constant(_found(e, owner, name, "hasattr") is not None))


def _get_attribute(e: Emitter, arguments: Arguments) -> Sugared:
    given = plain(e, "getattr", arguments, 2, 3)
    if len(given) == 3:
        found = _found(e, given[0], given[1], "getattr")
        return given[2] if found is None else found
    return given[0].attribute(e, _name(e, given[1], "getattr"))


def _name(e: Emitter, name: Sugared, what: str) -> str:
    known, text = constant_of(name)
    if not known or not isinstance(text, str):
        e.fail(f"the name that `{what}` asks for is no constant", "Write it in quotes.")
    return text


def _found(e: Emitter, owner: Sugared, name: Sugared, what: str) -> Sugared | None:
    text = _name(e, name, what)
    try:
        return owner.attribute(e, text)
    except UnknownAttribute:
        return None


def _isinstance(e: Emitter, node: Any) -> Sugared:
    if len(node.args) != 2 or node.keywords:
        e.fail(f"`isinstance` takes 2 arguments, not {len(node.args)}")
    found = instance_test(e, e.expression(node.args[0]), node.args[0], node.args[1])
    truth = found.truth
    return SimpleValue(e.constant(truth) if isinstance(truth, bool) else truth)


def _cast(e: Emitter, node: Any) -> Sugared:
    """`cast(T, x)`: the value is taken for one of the type."""
    if len(node.args) != 2 or node.keywords:
        e.fail(f"`cast` takes 2 arguments, not {len(node.args)}")
    return _annotated(e, node.args[0], node.args[1], True)


def _annotate(e: Emitter, node: Any) -> Sugared:
    """`annotate(T, x)`: the value is of the type."""
    if len(node.args) != 2 or node.keywords:
        e.fail(f"`annotate` takes 2 arguments, not {len(node.args)}")
    return _annotated(e, node.args[0], node.args[1], False)


def _annotated(e: Emitter, written: Any, inner: Any, narrows: bool) -> Sugared:
    wanted: Type = e.annotations.type(written)
    value = for_type(e, inner, wanted).value(e)
    fitted = e.fitted(value, wanted)
    if fitted is None and not (narrows and is_subtype(wanted, value.type)):
        e.fail(f"a value of type {value.type} is no {wanted}")
    return sugar_of_value(e.cast(value, wanted))


class Manager(Sugared):
    """A class of Python whose objects are context managers, made when entered."""

    __slots__ = ("python",)

    def __init__(self, python: Any) -> None:
        self.python = python

    def says(self) -> str:
        """The class."""
        return f"`{self.python.__name__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """A new one, made by Python when the program runs."""
        for each in arguments.named:
            e.fail(f"{self.says()} is given `{each}` by name", "Give it by place.")
        values = [each.value(e) for each in arguments.positional]
        attributes = {"name": self.python.__name__, "object": self.python}
        made = e.node("prim::PythonOp", values, (PyObjectType,), attributes).output
        return SimpleValue(made)


def install_builtins() -> None:
    """Let objects of Python mean what they are."""
    for name, run in (
        ("range", range_of),
        ("enumerate", enumerated),
        ("zip", zipped),
        ("reversed", reversed_of),
        ("tuple", tuple_of),
        ("print", _print),
        ("hasattr", _has_attribute),
        ("getattr", _get_attribute),
    ):
        register_special_form(getattr(builtins, name), Special(name, run))
    register_special_form(warnings.warn, Special("warnings.warn", _warn))
    register_special_form(isinstance, Syntactic("isinstance", _isinstance))
    register_special_form(typing.cast, Syntactic("cast", _cast))
    for python in FUNCTIONS:
        register_special_form(python, Primitive(python))
    for python in (no_grad, enable_grad, inference_mode, set_grad_enabled):
        register_special_form(python, Manager(python))
    register_sugar(FunctionType, PythonFunction)
    register_sugar(BuiltinFunctionType, _builtin)
    register_sugar(type, class_sugar)


def register_annotate(python: Any) -> None:
    """Let an object be `annotate(T, x)` in programs."""
    register_special_form(python, Syntactic("annotate", _annotate))
