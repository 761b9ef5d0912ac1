"""Builtins: the functions, classes and modules of Python that programs know.

Here are the sugar of primitives, what a function of Python is before its primitives are
asked (`SPECIAL_CASES`), `range` and its like, exceptions, and classes of Python.

Rules:
- `range`, `zip`, `enumerate` and `reversed` are for loops and comprehensions; `list` of
  one makes a list of it;
- what consists of a known number of elements is a tuple to all of them;
- a method of an object's own (`__len__`, ...) comes before the primitives;
- classes of exceptions are raised by their names; what they are given is one text.
"""

import builtins
import warnings
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

from everyorder.runtime.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from everyorder.runtime.base.registry import Registry, sequence
from everyorder.runtime.errors.script import UnknownAttribute
from everyorder.runtime.schema.declared import DeclaredType, ModuleType
from everyorder.runtime.schema.types import (
    BoolType,
    DictType,
    IntType,
    ListType,
    PyObjectType,
    StrType,
    TensorType,
    TupleType,
)
from everyorder.runtime.script.emission.call_matching import (
    PythonFunction,
    call_forms,
    call_rows,
    forms_of_rows,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    PythonObject,
    Sugared,
)
from everyorder.runtime.script.emission.expressions import dict_display, list_display
from everyorder.runtime.script.emission.graph_values import text_of
from everyorder.runtime.script.emission.iteration import (
    Enumerated,
    Iteration,
    Range,
    Reversed,
    Zipped,
    list_of,
)
from everyorder.runtime.script.emission.special_forms import (
    SpecialForm,
    positional_of,
    register_forms,
)
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredTuple,
    UnknownObject,
    constant_of,
    register_special_forms,
    register_sugar,
    type_of,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_form, by_function
from everyorder.runtime.script.primitives.primitive_table import FUNCTIONS


class Primitive(PythonObject):
    """A function of Python that is a primitive."""

    __slots__ = ()

    def describe(self) -> str:
        module = self.python.__module__
        name = self.python.__name__
        return f"`{name}`" if module == "builtins" else f"`{module}.{name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        special = SPECIAL_CASES.get(self.python)
        if special is not None:
            found = special(e, arguments)
            if found is not None:
                return found
        forms = forms_of_rows(by_function(self.python))
        return call_forms(e, self.describe(), forms, arguments)


class IterableSugar(Sugared):
    """A range, a zip: only loops and comprehensions go through it."""

    __slots__ = ("iteration", "name")

    def __init__(self, name: str, iteration: Iteration) -> None:
        self.name = name
        self.iteration = iteration

    def describe(self) -> str:
        return f"a `{self.name}`"

    def value(self, e: Emitter) -> Value:
        e.fail(
            f"{self.describe()} is used as a value",
            "It can be gone through in a loop; `list(...)` makes a list of it.",
        )

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        return self.iteration.static()

    def iterate(self, e: Emitter) -> Any:
        return self.iteration

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        if not isinstance(self.iteration, Range):
            return super().subscript(e, index)
        rows = by_form("range({0}, {1}, {2})[{3}]")
        return call_rows(e, "a subscript", rows, *self.iteration.bounds, index)

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        if symbol != "in" or not isinstance(self.iteration, Range):
            return None
        rows = by_form("{3} in range({0}, {1}, {2})")
        return call_rows(e, "`in`", rows, *self.iteration.bounds, other)


def range_of(e: Emitter, arguments: Arguments) -> Sugared:
    """`range(...)`."""
    given = positional_of(e, "range", arguments, 1, 2, 3)
    values = [_int(e, each, "range") for each in given]
    alone = len(values) == 1
    if alone:
        values.insert(0, e.constant(0))
    step = values[2] if len(values) == 3 else e.constant(1)
    return IterableSugar("range", Range(values[0], values[1], step, alone))


def _int(e: Emitter, sugared: Sugared, name: str) -> Value:
    value = sugared.value(e)
    if value.type is BoolType:
        return e.operator("script::int.bool", value)
    return e.fit(
        value, IntType, f"`{name}` takes ints, and a value of type {{}} is given"
    )


def enumerated(e: Emitter, arguments: Arguments) -> Sugared:
    """`enumerate(...)`."""
    given = list(positional_of(e, "enumerate", arguments, 1, 2, named=("start",)))
    if "start" in arguments.named:
        given.append(arguments.named["start"])
    inner = given[0].iterate(e)
    start = _int(e, given[1], "enumerate") if len(given) > 1 else None
    return IterableSugar("enumerate", Enumerated(inner, start))


def zipped(e: Emitter, arguments: Arguments) -> Sugared:
    """`zip(...)`."""
    given = arguments.positional
    positional_of(e, "zip", arguments, len(given))
    if not given:
        e.fail("`zip` of nothing has no type")
    return IterableSugar("zip", Zipped([each.iterate(e) for each in given]))


def reversed_of(e: Emitter, arguments: Arguments) -> Sugared:
    """`reversed(...)`."""
    (given,) = positional_of(e, "reversed", arguments, 1)
    items = given.elements(e)
    if items is not None:
        return SugaredTuple(items[::-1])
    if isinstance(type_of(given), DictType):
        e.fail("`reversed` of a dictionary", "Take `list(...)` of it first.")
    inner = given.iterate(e)
    return IterableSugar("reversed", Reversed(inner, inner.trips(e)))


def _list(e: Emitter, arguments: Arguments) -> Sugared | None:
    """`list` of what is no list yet."""
    if arguments.named or len(arguments.positional) > 1:
        return None
    if not arguments.positional:
        return list_display(e, ())
    (given,) = arguments.positional
    items = given.elements(e)
    if items is not None:
        return list_display(e, [each.value(e) for each in items])
    if isinstance(given, IterableSugar) or type_of(given) is TensorType:
        iteration = given.iterate(e)
        if isinstance(iteration, Range):
            bounds = iteration.start, iteration.stop, iteration.step
            return SimpleValue(e.operator("script::range_list.int", *bounds))
        return SimpleValue(list_of(e, iteration, lambda item: item.value(e)))
    return None


def _dict(e: Emitter, arguments: Arguments) -> Sugared | None:
    if not arguments.positional:
        inputs: list[Value] = []
        for name, each in arguments.named.items():
            inputs += [e.constant(name), each.value(e)]
        return dict_display(e, inputs)
    given = arguments.positional[0]
    if len(arguments.positional) == 1 and isinstance(given, IterableSugar):
        pairs = _list(e, Arguments((given,)))
        assert pairs is not None, "what is gone through makes a list"
        forms = forms_of_rows(by_function(dict))
        return call_forms(e, "`dict`", forms, Arguments((pairs,), arguments.named))
    return None


def tuple_of(e: Emitter, arguments: Arguments) -> Sugared:
    """`tuple(...)`, of what has a known length."""
    given = positional_of(e, "tuple", arguments, 0, 1)
    if not given:
        return SugaredTuple(())
    items = given[0].elements(e)
    if items is None:
        e.fail(
            f"`tuple` of {given[0].describe()}, whose length is not known",
            "A tuple has as many elements as its type says: use a list.",
        )
    return SugaredTuple(items)


def _len(e: Emitter, arguments: Arguments) -> Sugared | None:
    if len(arguments.positional) != 1 or arguments.named:
        return None
    (given,) = arguments.positional
    if isinstance(given, IterableSugar) and isinstance(given.iteration, Range):
        return SimpleValue(given.iteration.trips(e))
    kind = type_of(given)
    if isinstance(kind, TupleType):
        return SimpleValue(e.constant(len(kind.elements)))
    if isinstance(given, SugaredTuple):
        return SimpleValue(e.constant(len(given.items)))
    # How many modules a list of them has, is known.
    is_open = kind is None or isinstance(kind, ModuleType)
    known = given.elements(e) if is_open else None
    if known is not None:
        return SimpleValue(e.constant(len(known)))
    return _own_method(e, given, "__len__")


def _own_method(e: Emitter, given: Sugared, name: str) -> Sugared | None:
    """The method of an object's own."""
    kind = type_of(given)
    if isinstance(kind, DeclaredType) and name in kind.declaration.methods:
        return given.attribute(e, name).call(e, Arguments())
    return None


def _bool(e: Emitter, arguments: Arguments) -> Sugared | None:
    if len(arguments.positional) != 1 or arguments.named:
        return None
    return SimpleValue(e.boolean(arguments.positional[0].truth(e)))


def _of_method(name: str) -> Callable[[Emitter, Arguments], Sugared | None]:
    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        if len(arguments.positional) != 1 or arguments.named:
            return None
        given = arguments.positional[0]
        if isinstance(given, SugaredTuple):
            return None
        return _own_method(e, given, name)

    return run


def _abs(e: Emitter, arguments: Arguments) -> Sugared | None:
    if (
        len(arguments.positional) == 1
        and type_of(arguments.positional[0]) is TensorType
    ):
        return arguments.positional[0].attribute(e, "abs").call(e, Arguments())
    return _of_method("__abs__")(e, arguments)


def _whole(name: str) -> Callable[[Emitter, Arguments], Sugared | None]:
    """`sum`, `sorted`, `any`, ... of a tuple or of what loops go through."""

    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        if len(arguments.positional) != 1:
            return None
        given = arguments.positional[0]
        if given.elements(e) is None and not isinstance(given, IterableSugar):
            if not isinstance(type_of(given), DictType):
                return None
            made = _PYTHON_LIST.call(e, Arguments((given,)))
        else:
            found = _list(e, Arguments((given,)))
            assert found is not None, "it can be gone through"
            made = found
        rest = Arguments((made,), arguments.named)
        rows = forms_of_rows(by_function(getattr(builtins, name)))
        return call_forms(e, f"`{name}`", rows, rest)

    return run


def _extreme(python: Any) -> Callable[[Emitter, Arguments], Sugared | None]:
    """`min` and `max` of more than two: from the left, two by two."""
    name = python.__name__

    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        given = arguments.positional
        if len(given) == 1:
            return _whole(name)(e, arguments)
        if len(given) < 3 or arguments.named:
            return None
        result = given[0]
        for each in given[1:]:
            result = call_rows(e, f"`{name}`", by_function(python), result, each)
        return result

    return run


# Function of Python -> what it means before its primitives are asked; None: nothing.
SPECIAL_CASES: dict[Any, Callable[[Emitter, Arguments], Sugared | None]] = {
    list: _list,
    dict: _dict,
    len: _len,
    bool: _bool,
    abs: _abs,
    min: _extreme(min),
    max: _extreme(max),
    str: _of_method("__str__"),
    repr: _of_method("__repr__"),
    hash: _of_method("__hash__"),
    int: _of_method("__int__"),
    float: _of_method("__float__"),
    **{
        getattr(builtins, name): _whole(name)
        for name in ("sum", "sorted", "any", "all")
    },
}
_PYTHON_LIST = Primitive(list)


# Printing, exceptions, classes


def _print(e: Emitter, arguments: Arguments) -> Sugared:
    for name in arguments.named:
        if name != "sep":
            e.fail(f"`print` has no argument `{name}` in programs", "Print one line.")
    values = [each.value(e) for each in arguments.positional]
    if "sep" in arguments.named:
        separator = arguments.named["sep"]
        texts = [
            call_rows(e, "`str`", by_function(str), SimpleValue(each)).value(e)
            for each in values
        ]
        made = e.node("prim::ListConstruct", texts, (ListType(StrType),)).output
        join = separator.attribute(e, "join")
        values = [join.call(e, Arguments((SimpleValue(made),))).value(e)]
    e.node("prim::Print", values)
    return SimpleValue(e.constant(None))


def _warn(e: Emitter, arguments: Arguments) -> Sugared:
    allowed = ("message", "category", "stacklevel")
    given = positional_of(e, "warnings.warn", arguments, 0, 1, 2, named=allowed)
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


class ExceptionClass(PythonObject):
    """A class of exceptions."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.python.__module__}.{self.python.__qualname__}"

    def describe(self) -> str:
        return f"the class `{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        given = positional_of(e, self.python.__name__, arguments, 0, 1)
        return ExceptionValue(self, given[0] if given else None)

    def raised(self, e: Emitter) -> tuple[str, Value]:
        return self.name, e.constant("")


class ExceptionValue(Sugared):
    """An exception that has not been raised."""

    __slots__ = ("kind", "message")

    def __init__(self, kind: ExceptionClass, message: Sugared | None) -> None:
        self.kind = kind
        self.message = message

    def describe(self) -> str:
        return f"a `{self.kind.name}`"

    def raised(self, e: Emitter) -> tuple[str, Value]:
        if self.message is None:
            return self.kind.name, e.constant("")
        return self.kind.name, text_of(e, self.message)


def _class(python: type) -> Sugared | None:
    """The sugar of a class that is not registered."""
    if issubclass(python, BaseException):
        return ExceptionClass(python)
    return None


class PythonClass(PythonObject):
    """A class of Python that programs have no meaning for."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the class `{self.python.__module__}.{self.python.__qualname__}`"


# Makers of sugar for classes, asked in order: a class of modules is also a class that
# is written in Python, and its sugar as a module counts.  The rest are `PythonClass`.
CLASSES: Registry[str, Callable[[type], Sugared | None]] = Registry(
    "classes of programs",
    {"exceptions": _class},
    order=sequence("modules", "exceptions", "classes"),
)


def class_sugar(python: Any) -> Sugared:
    """The sugar of a Python class."""
    rows = by_function(python)
    if rows:
        return Primitive(python)
    for make in CLASSES.rows.values():
        found = make(python)
        if found is not None:
            return found
    return PythonClass(python)


def _builtin(python: Any) -> Sugared:
    if by_function(python):
        return Primitive(python)
    return UnknownObject(python)


def _has_attribute(e: Emitter, arguments: Arguments) -> Sugared:
    owner, name = positional_of(e, "hasattr", arguments, 2)
    return SimpleValue(
        e.constant(_attribute_or_none(e, owner, name, "hasattr") is not None)
    )


def _get_attribute(e: Emitter, arguments: Arguments) -> Sugared:
    given = positional_of(e, "getattr", arguments, 2, 3)
    if len(given) == 3:
        found = _attribute_or_none(e, given[0], given[1], "getattr")
        return given[2] if found is None else found
    return given[0].attribute(e, _name(e, given[1], "getattr"))


def _name(e: Emitter, name: Sugared, what: str) -> str:
    known, text = constant_of(name)
    if not known or not isinstance(text, str):
        e.fail(f"the name that `{what}` asks for is no constant", "Write it in quotes.")
    return text


def _attribute_or_none(
    e: Emitter, owner: Sugared, name: Sugared, what: str
) -> Sugared | None:
    text = _name(e, name, what)
    try:
        return owner.attribute(e, text)
    except UnknownAttribute:
        return None


class Manager(PythonObject):
    """A class of Python whose objects are context managers, made when entered."""

    __slots__ = ()

    def describe(self) -> str:
        return f"`{self.python.__name__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        for each in arguments.named:
            e.fail(f"{self.describe()} is given `{each}` by name", "Give it by place.")
        values = [each.value(e) for each in arguments.positional]
        attributes = {"name": self.python.__name__, "object": self.python}
        made = e.node("prim::PythonOp", values, (PyObjectType,), attributes).output
        return SimpleValue(made)


def install_builtins() -> None:
    """Let objects of Python mean what they are."""
    register_forms(
        SpecialForm("range", range_of, range),
        SpecialForm("enumerate", enumerated, enumerate),
        SpecialForm("zip", zipped, zip),
        SpecialForm("reversed", reversed_of, reversed),
        SpecialForm("tuple", tuple_of, tuple),
        SpecialForm("print", _print, print),
        SpecialForm("hasattr", _has_attribute, hasattr),
        SpecialForm("getattr", _get_attribute, getattr),
        SpecialForm("warnings.warn", _warn, warnings.warn),
    )
    register_special_forms((python, Primitive(python)) for python in FUNCTIONS)
    managers = (no_grad, enable_grad, inference_mode, set_grad_enabled)
    register_special_forms((python, Manager(python)) for python in managers)
    register_sugar(FunctionType, PythonFunction)
    register_sugar(BuiltinFunctionType, _builtin)
    register_sugar(type, class_sugar)
