"""Builtins: the Python functions, classes and modules that programs can use.

This module has the sugar of primitives, the functions that are handled before their
primitives (`SPECIAL_CASES`), `range` and similar functions, exceptions, and Python
classes.

Rules:
- `range`, `zip`, `enumerate` and `reversed` are for loops and comprehensions; `list`
  converts them to lists;
- an argument with a known number of elements is treated as a tuple;
- a special method of an object (`__len__`, ...) has precedence over the primitives;
- exception classes are raised by their names, with one text as argument.
"""

import builtins
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
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
    NoneType_,
    PyObjectType,
    StrType,
    TensorType,
    TupleType,
)
from everyorder.runtime.script.emission.call_matching import (
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
    SugaredEllipsis,
    SugaredSlice,
    SugaredTuple,
    UnknownObject,
    constant_of,
    register_special_form,
    register_special_forms,
    register_sugar,
    type_of,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_form, by_function
from everyorder.runtime.script.primitives.primitive_table import FUNCTIONS


class Primitive(PythonObject):
    """A Python function that is a primitive."""

    __slots__ = ()

    def describe(self) -> str:
        module = self.python.__module__
        name = self.python.__name__
        return f"`{name}`" if module == "builtins" else f"`{module}.{name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        special = SPECIAL_CASES.get(self.python)
        if special is not None:
            result = special(e, arguments)
            if result is not None:
                return result
        forms = forms_of_rows(by_function(self.python))
        return call_forms(e, self.describe(), forms, arguments)


class IterableSugar(Sugared):
    """A range, a zip: usable only in loops and comprehensions."""

    __slots__ = ("iteration", "name")

    def __init__(self, name: str, iteration: Iteration) -> None:
        self.name = name
        self.iteration = iteration

    def describe(self) -> str:
        return f"a `{self.name}`"

    def value(self, e: Emitter) -> Value:
        e.fail(
            f"{self.describe()} is used as a value",
            "Iterate over it in a loop, or convert it by `list(...)`.",
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
    """Emit `range(...)`."""
    arguments_of_range = positional_of(e, "range", arguments, 1, 2, 3)
    values = [_int(e, each, "range") for each in arguments_of_range]
    has_only_stop = len(values) == 1
    if has_only_stop:
        values.insert(0, e.constant(0))
    step = values[2] if len(values) == 3 else e.constant(1)
    return IterableSugar("range", Range(values[0], values[1], step, has_only_stop))


def _int(e: Emitter, sugared: Sugared, name: str) -> Value:
    value = sugared.value(e)
    if value.type is BoolType:
        return e.operator("script::int.bool", value)
    if value.type is TensorType:
        return e.operator("script::as_int.Tensor", value)
    return e.fit(
        value, IntType, f"`{name}` takes ints, and a value of type {{}} is given"
    )


def enumerated(e: Emitter, arguments: Arguments) -> Sugared:
    """Emit `enumerate(...)`."""
    inputs = list(positional_of(e, "enumerate", arguments, 1, 2, named=("start",)))
    if "start" in arguments.named:
        inputs.append(arguments.named["start"])
    inner = inputs[0].iterate(e)
    start = _int(e, inputs[1], "enumerate") if len(inputs) > 1 else None
    return IterableSugar("enumerate", Enumerated(inner, start))


def zipped(e: Emitter, arguments: Arguments) -> Sugared:
    """Emit `zip(...)`."""
    iterables = arguments.positional
    positional_of(e, "zip", arguments, len(iterables))
    if not iterables:
        e.fail("`zip` of nothing has no type")
    return IterableSugar("zip", Zipped([each.iterate(e) for each in iterables]))


def reversed_of(e: Emitter, arguments: Arguments) -> Sugared:
    """Emit `reversed(...)`."""
    (iterable,) = positional_of(e, "reversed", arguments, 1)
    items = iterable.elements(e)
    if items is not None:
        return SugaredTuple(items[::-1])
    if isinstance(type_of(iterable), DictType):
        e.fail("`reversed` of a dictionary", "Take `list(...)` of it first.")
    inner = iterable.iterate(e)
    return IterableSugar("reversed", Reversed(inner, inner.trips(e)))


def _list(e: Emitter, arguments: Arguments) -> Sugared | None:
    """Emit `list` of an argument that is not a list yet; None for other calls."""
    if arguments.named or len(arguments.positional) > 1:
        return None
    if not arguments.positional:
        return list_display(e, ())
    (iterable,) = arguments.positional
    items = iterable.elements(e)
    if items is not None:
        return list_display(e, [each.value(e) for each in items])
    if isinstance(iterable, IterableSugar) or type_of(iterable) is TensorType:
        iteration = iterable.iterate(e)
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
    source = arguments.positional[0]
    if len(arguments.positional) == 1 and isinstance(source, IterableSugar):
        pairs = _list(e, Arguments((source,)))
        assert pairs is not None, "an iterable converts to a list"
        forms = forms_of_rows(by_function(dict))
        return call_forms(e, "`dict`", forms, Arguments((pairs,), arguments.named))
    return None


def tuple_of(e: Emitter, arguments: Arguments) -> Sugared:
    """Emit `tuple(...)` of an argument with a known length."""
    inputs = positional_of(e, "tuple", arguments, 0, 1)
    if not inputs:
        return SugaredTuple(())
    items = inputs[0].elements(e)
    if items is None:
        e.fail(
            f"`tuple` of {inputs[0].describe()}, whose length is not known",
            "A tuple has as many elements as its type says: use a list.",
        )
    return SugaredTuple(items)


def _slice(e: Emitter, arguments: Arguments) -> Sugared:
    """Emit `slice(...)`, which is used in subscripts."""
    inputs = positional_of(e, "slice", arguments, 1, 2, 3)
    parts = [None if type_of(each) is NoneType_ else each for each in inputs]
    if len(parts) == 1:
        parts.insert(0, None)
    return SugaredSlice(*parts, *[None] * (3 - len(parts)))


def _len(e: Emitter, arguments: Arguments) -> Sugared | None:
    if len(arguments.positional) != 1 or arguments.named:
        return None
    (container,) = arguments.positional
    if isinstance(container, IterableSugar) and isinstance(container.iteration, Range):
        return SimpleValue(container.iteration.trips(e))
    kind = type_of(container)
    if isinstance(kind, TupleType):
        return SimpleValue(e.constant(len(kind.elements)))
    if isinstance(container, SugaredTuple):
        return SimpleValue(e.constant(len(container.items)))
    own = container.own_method("__len__")
    if own is not None:
        return own.call(e, Arguments())
    # The number of modules in a container is known statically.
    is_open = kind is None or isinstance(kind, ModuleType)
    items = container.elements(e) if is_open else None
    if items is not None:
        return SimpleValue(e.constant(len(items)))
    return _own_method(e, container, "__len__")


def _own_method(e: Emitter, owner: Sugared, name: str) -> Sugared | None:
    """Call the special method of an object, if it has one."""
    kind = type_of(owner)
    if isinstance(kind, DeclaredType) and name in kind.declaration.methods:
        return owner.attribute(e, name).call(e, Arguments())
    return None


def _bool(e: Emitter, arguments: Arguments) -> Sugared | None:
    if len(arguments.positional) != 1 or arguments.named:
        return None
    return SimpleValue(e.boolean(arguments.positional[0].truth(e)))


def _of_method(name: str) -> Callable[[Emitter, Arguments], Sugared | None]:
    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        if len(arguments.positional) != 1 or arguments.named:
            return None
        operand = arguments.positional[0]
        if isinstance(operand, SugaredTuple):
            return None
        return _own_method(e, operand, name)

    return run


def _abs(e: Emitter, arguments: Arguments) -> Sugared | None:
    if (
        len(arguments.positional) == 1
        and type_of(arguments.positional[0]) is TensorType
    ):
        return arguments.positional[0].attribute(e, "abs").call(e, Arguments())
    return _of_method("__abs__")(e, arguments)


def _whole(name: str) -> Callable[[Emitter, Arguments], Sugared | None]:
    """Return the case of `sum`, `sorted`, `any`, ... for tuples and iterables."""

    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        if len(arguments.positional) != 1:
            return None
        iterable = arguments.positional[0]
        if iterable.elements(e) is None and not isinstance(iterable, IterableSugar):
            if not isinstance(type_of(iterable), DictType):
                return None
            elements = _PYTHON_LIST.call(e, Arguments((iterable,)))
        else:
            converted = _list(e, Arguments((iterable,)))
            assert converted is not None, "an iterable converts to a list"
            elements = converted
        rest = Arguments((elements,), arguments.named)
        rows = forms_of_rows(by_function(getattr(builtins, name)))
        return call_forms(e, f"`{name}`", rows, rest)

    return run


def _extreme(python: Any) -> Callable[[Emitter, Arguments], Sugared | None]:
    """Return the special case of `min` and `max`: more than two operands, pairwise."""
    name = python.__name__

    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        operands = arguments.positional
        if len(operands) == 1:
            return _whole(name)(e, arguments)
        if len(operands) < 3 or arguments.named:
            return None
        result = operands[0]
        for each in operands[1:]:
            result = call_rows(e, f"`{name}`", by_function(python), result, each)
        return result

    return run


# Python function -> its special case; this returns None to use the primitives.
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
        texts_list = e.node("prim::ListConstruct", texts, (ListType(StrType),)).output
        join = separator.attribute(e, "join")
        values = [join.call(e, Arguments((SimpleValue(texts_list),))).value(e)]
    e.node("prim::Print", values)
    return SimpleValue(e.constant(None))


def _warn(e: Emitter, arguments: Arguments) -> Sugared:
    allowed = ("message", "category", "stacklevel")
    operands = positional_of(e, "warnings.warn", arguments, 0, 1, 2, named=allowed)
    message = operands[0] if operands else arguments.named.get("message")
    if message is None:
        e.fail("`warnings.warn` has nothing to say")
    inputs = [message.value(e)]
    category = operands[1] if len(operands) > 1 else arguments.named.get("category")
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
        """Return its full name."""
        return f"{self.python.__module__}.{self.python.__qualname__}"

    def describe(self) -> str:
        return f"the class `{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        inputs = positional_of(e, self.python.__name__, arguments, 0, 1)
        return ExceptionValue(self, inputs[0] if inputs else None)

    def raised(self, e: Emitter) -> tuple[str, Value]:
        return self.name, e.constant("")


class ExceptionValue(Sugared):
    """An exception that is not raised yet."""

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
    """Return the sugar of a class that is not registered, or None."""
    if issubclass(python, BaseException):
        return ExceptionClass(python)
    return None


class PythonClass(PythonObject):
    """A Python class that programs cannot use."""

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
    """Return the sugar of a Python class."""
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
    inputs = positional_of(e, "getattr", arguments, 2, 3)
    if len(inputs) == 3:
        result = _attribute_or_none(e, inputs[0], inputs[1], "getattr")
        return inputs[2] if result is None else result
    return inputs[0].attribute(e, _name(e, inputs[1], "getattr"))


def _name(e: Emitter, name: Sugared, what: str) -> str:
    is_constant_name, text = constant_of(name)
    if not is_constant_name or not isinstance(text, str):
        e.fail(
            f"the name that `{what}` asks for is not a constant", "Write it in quotes."
        )
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
    """A Python class of context managers, whose objects are created when entered."""

    __slots__ = ()

    def describe(self) -> str:
        return f"`{self.python.__name__}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        for each in arguments.named:
            e.fail(f"{self.describe()} is given `{each}` by name", "Give it by place.")
        values = [each.value(e) for each in arguments.positional]
        attributes = {"name": self.python.__name__, "object": self.python}
        manager = e.node("prim::PythonOp", values, (PyObjectType,), attributes).output
        return SimpleValue(manager)


def install_builtins() -> None:
    """Register the sugar of Python objects."""
    register_forms(
        SpecialForm("range", range_of, range),
        SpecialForm("enumerate", enumerated, enumerate),
        SpecialForm("zip", zipped, zip),
        SpecialForm("reversed", reversed_of, reversed),
        SpecialForm("tuple", tuple_of, tuple),
        SpecialForm("slice", _slice, slice),
        SpecialForm("print", _print, print),
        SpecialForm("hasattr", _has_attribute, hasattr),
        SpecialForm("getattr", _get_attribute, getattr),
        SpecialForm("warnings.warn", _warn, warnings.warn),
    )
    register_special_form(Ellipsis, SugaredEllipsis())
    register_special_forms((python, Primitive(python)) for python in FUNCTIONS)
    # Dictionaries of programs have an order.
    register_special_form(OrderedDict, Primitive(dict))
    managers = (no_grad, enable_grad, inference_mode, set_grad_enabled)
    register_special_forms((python, Manager(python)) for python in managers)
    register_sugar(BuiltinFunctionType, _builtin)
    register_sugar(type, class_sugar)
