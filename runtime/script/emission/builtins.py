"""Builtins: the functions, classes and modules of Python that programs know.

True only here: which object of Python is what in a program, as a table of special forms
by identity; what is a primitive alone is found by the table of primitives.

Rules:
- `range`, `zip`, `enumerate` and `reversed` are for loops and comprehensions; `list` of
  one makes a list of it;
- classes of exceptions are raised by their names; what they are given is one text.
"""

import builtins
import typing
import warnings
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

from runtime.schema import types
from runtime.schema.types import (
    BoolType,
    DictType,
    IntType,
    ListType,
    PyObjectType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from runtime.script.emission.calls import call_forms, forms_of_rows
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.iteration import (
    Enumerated,
    Iteration,
    Range,
    Reversed,
    Zipped,
)
from runtime.script.emission.sugar import (
    Arguments,
    SimpleValue,
    Sugared,
    SugaredTuple,
    constant_of,
    register_special_form,
    register_sugar,
    type_of,
)
from runtime.script.ir import Value
from runtime.script.primitives import by_form, by_function
from runtime.script.primitives.table import FUNCTIONS
from runtime.script.program import Mark, mark_of


class Primitive(Sugared):
    """A function of Python that is a primitive."""

    __slots__ = ("python",)

    def __init__(self, python: Any) -> None:
        self.python = python

    def says(self) -> str:
        """The function."""
        module = self.python.__module__
        name = self.python.__name__
        return f"`{name}`" if module == "builtins" else f"`{module}.{name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call the form that takes the arguments."""
        special = _BEFORE.get(self.python)
        if special is not None:
            found = special(e, arguments)
            if found is not None:
                return found
        forms = forms_of_rows(by_function(self.python))
        return call_forms(e, self.says(), forms, arguments)


class Special(Sugared):
    """A function that means something of its own in programs."""

    __slots__ = ("name", "run")

    def __init__(self, name: str, run: Callable[[Emitter, Arguments], Sugared]) -> None:
        self.name = name
        self.run = run

    def says(self) -> str:
        """The function."""
        return f"`{self.name}`"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """What it means."""
        return self.run(e, arguments)


class Syntactic(Special):
    """A function whose arguments are looked at as they are written."""

    __slots__ = ("call_syntax",)

    def __init__(self, name: str, run: Callable[[Emitter, Any], Sugared]) -> None:
        super().__init__(name, self._indirect)
        self.call_syntax = run

    def _indirect(self, e: Emitter, arguments: Arguments) -> Sugared:
        e.fail(f"{self.says()} is called by its name only")


def plain(
    e: Emitter, name: str, arguments: Arguments, *counts: int, named: Sequence[str] = ()
) -> Sequence[Sugared]:
    """The positional arguments, of which there may be so many.

    Raises:
        IllTyped: there are others, or a name that is not among `named`.
    """
    for each in arguments.named:
        if each not in named:
            e.fail(f"`{name}` has no argument `{each}`")
    count = len(arguments.positional)
    if count not in counts:
        some = " or ".join(map(str, counts))
        e.fail(f"`{name}` takes {some} arguments, not {count}")
    return arguments.positional


class Iterated(Sugared):
    """What loops go through, and nobody else: a range, a zip."""

    __slots__ = ("iteration", "name")

    def __init__(self, name: str, iteration: Iteration) -> None:
        self.name = name
        self.iteration = iteration

    def says(self) -> str:
        """What made it."""
        return f"a `{self.name}`"

    def value(self, e: Emitter) -> Value:
        """It is none."""
        e.fail(
            f"{self.says()} is used as a value",
            "It can be gone through in a loop; `list(...)` makes a list of it.",
        )

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        """Those of what it goes through, if their number is known."""
        return self.iteration.static()

    def iterate(self, e: Emitter) -> Any:
        """It is made for that."""
        return self.iteration

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        """An element of a range."""
        if not isinstance(self.iteration, Range):
            return super().subscript(e, index)
        bounds = self.iteration
        forms = forms_of_rows(by_form("range({0}, {1}, {2})[{3}]"))
        given = [SimpleValue(v) for v in (bounds.start, bounds.stop, bounds.step)]
        return call_forms(e, "a subscript", forms, Arguments((*given, index)))

    def binary(
        self, e: Emitter, symbol: str, other: Sugared, reflected: bool
    ) -> Sugared | None:
        """`x in range(...)`."""
        if symbol != "in" or not isinstance(self.iteration, Range):
            return None
        bounds = self.iteration
        forms = forms_of_rows(by_form("{3} in range({0}, {1}, {2})"))
        given = [SimpleValue(v) for v in (bounds.start, bounds.stop, bounds.step)]
        return call_forms(e, "`in`", forms, Arguments((*given, other)))


def _range(e: Emitter, arguments: Arguments) -> Sugared:
    given = plain(e, "range", arguments, 1, 2, 3)
    values = [_int(e, each, "range") for each in given]
    alone = len(values) == 1
    if alone:
        values.insert(0, e.constant(0))
    step = values[2] if len(values) == 3 else e.constant(1)
    return Iterated("range", Range(values[0], values[1], step, alone))


def _int(e: Emitter, sugared: Sugared, name: str) -> Value:
    value = sugared.value(e)
    if value.type is BoolType:
        return e.operator("script::int.bool", value)
    return e.fit(
        value, IntType, f"`{name}` takes ints, and a value of type {{}} is given"
    )


def _enumerate(e: Emitter, arguments: Arguments) -> Sugared:
    given = list(plain(e, "enumerate", arguments, 1, 2, named=("start",)))
    if "start" in arguments.named:
        given.append(arguments.named["start"])
    inner = given[0].iterate(e)
    start = _int(e, given[1], "enumerate") if len(given) > 1 else None
    return Iterated("enumerate", Enumerated(inner, start))


def _zip(e: Emitter, arguments: Arguments) -> Sugared:
    given = arguments.positional
    plain(e, "zip", arguments, len(given))
    if not given:
        e.fail("`zip` of nothing has no type")
    return Iterated("zip", Zipped([each.iterate(e) for each in given]))


def _reversed(e: Emitter, arguments: Arguments) -> Sugared:
    (given,) = plain(e, "reversed", arguments, 1)
    items = given.elements(e)
    if items is not None:
        return SugaredTuple(items[::-1])
    if isinstance(type_of(given), DictType):
        e.fail("`reversed` of a dictionary", "Take `list(...)` of it first.")
    inner = given.iterate(e)
    return Iterated("reversed", Reversed(inner, inner.trips(e)))


def _list(e: Emitter, arguments: Arguments) -> Sugared | None:
    """`list` of what is no list yet."""
    if arguments.named or len(arguments.positional) > 1:
        return None
    from runtime.script.emission.expressions import _of, display

    if not arguments.positional:
        return SimpleValue(display(e, "prim::ListConstruct", (), ListType(TensorType)))
    (given,) = arguments.positional
    items = given.elements(e)
    if items is not None:
        values = [each.value(e) for each in items]
        kind = ListType(_of(e, values))
        return SimpleValue(display(e, "prim::ListConstruct", values, kind))
    if isinstance(given, Iterated) or type_of(given) is TensorType:
        return SimpleValue(collected(e, given.iterate(e)))
    return None


def collected(e: Emitter, iteration: Iteration) -> Value:
    """A list of what an iteration gives."""
    if isinstance(iteration, Range):
        bounds = iteration.start, iteration.stop, iteration.step
        return e.operator("script::range_list.int", *bounds)
    made = e.node("prim::ListConstruct", (), (ListType(TensorType),)).output
    loop = e.node("prim::Loop", (iteration.trips(e), e.constant(True)))
    body = loop.add_block()
    index = body.add_parameter(IntType, "index")

    def emit() -> None:
        value = iteration.item(e, index).value(e)
        made.type = ListType(value.type)
        e.node("script::append.t", (made, value))
        body.add_result(e.constant(True))

    e.within(body, emit)
    return made


def _dict(e: Emitter, arguments: Arguments) -> Sugared | None:
    from runtime.script.emission.expressions import _of, check_key, display

    if not arguments.positional:
        inputs: list[Value] = []
        for name, each in arguments.named.items():
            inputs += [e.constant(name), each.value(e)]
        kind = DictType(StrType, TensorType)
        if inputs:
            held = _of(e, inputs[1::2], "values of this dictionary")
            kind = DictType(check_key(e, StrType), held)
        return SimpleValue(display(e, "prim::DictConstruct", inputs, kind))
    given = arguments.positional[0]
    if len(arguments.positional) == 1 and isinstance(given, Iterated):
        pairs = _list(e, Arguments((given,)))
        assert pairs is not None, "what is gone through makes a list"
        forms = forms_of_rows(by_function(dict))
        return call_forms(e, "`dict`", forms, Arguments((pairs,), arguments.named))
    return None


def _tuple(e: Emitter, arguments: Arguments) -> Sugared:
    given = plain(e, "tuple", arguments, 0, 1)
    if not given:
        return SugaredTuple(())
    items = given[0].elements(e)
    if items is None:
        e.fail(
            f"`tuple` of {given[0].says()}, whose length is not known",
            "A tuple has as many elements as its type says: use a list.",
        )
    return SugaredTuple(items)


def _len(e: Emitter, arguments: Arguments) -> Sugared | None:
    if len(arguments.positional) != 1 or arguments.named:
        return None
    (given,) = arguments.positional
    if isinstance(given, Iterated) and isinstance(given.iteration, Range):
        return SimpleValue(given.iteration.trips(e))
    kind = type_of(given)
    if isinstance(kind, TupleType):
        return SimpleValue(e.constant(len(kind.elements)))
    if isinstance(given, SugaredTuple):
        return SimpleValue(e.constant(len(given.items)))
    known = None if kind is not None else given.elements(e)
    if known is not None:
        return SimpleValue(e.constant(len(known)))
    return _own(e, given, "__len__")


def _own(e: Emitter, given: Sugared, name: str) -> Sugared | None:
    """The method of an object's own."""
    from runtime.schema.declaration import DeclaredType

    kind = type_of(given)
    if isinstance(kind, DeclaredType) and name in kind.declaration.methods:
        return given.attribute(e, name).call(e, Arguments())
    return None


def _bool(e: Emitter, arguments: Arguments) -> Sugared | None:
    if len(arguments.positional) != 1 or arguments.named:
        return None
    found = arguments.positional[0].truth(e)
    return SimpleValue(e.constant(found) if isinstance(found, bool) else found)


def _of_method(name: str) -> Callable[[Emitter, Arguments], Sugared | None]:
    def run(e: Emitter, arguments: Arguments) -> Sugared | None:
        if len(arguments.positional) != 1 or arguments.named:
            return None
        given = arguments.positional[0]
        if isinstance(given, SugaredTuple):
            return None
        return _own(e, given, name)

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
        if given.elements(e) is None and not isinstance(given, Iterated):
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
            forms = forms_of_rows(by_function(python))
            result = call_forms(e, f"`{name}`", forms, Arguments((result, each)))
        return result

    return run


# Function of Python -> what it means before its primitives are asked; None: nothing.
_BEFORE: dict[Any, Callable[[Emitter, Arguments], Sugared | None]] = {
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


# Output, exceptions, attributes


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
        from runtime.script.emission.statements import text_of

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


# What calls a function that has a mark; the chapter of those that are left to Python
# puts its own here.
LEAVES: dict[Mark | None, Callable[[Emitter, Any, Arguments], Sugared]] = {}


class PythonFunction(Sugared):
    """A function that is written in Python: it is compiled when it is called."""

    __slots__ = ("python",)

    def __init__(self, python: Any) -> None:
        self.python = python

    def says(self) -> str:
        """The function."""
        return f"the function `{self.python.__qualname__}`"

    def value(self, e: Emitter) -> Value:
        """The compiled function, as a constant."""
        function = e.compiler.called(e, self.python)
        return e.node(
            "prim::Constant", (), (types.FunctionType,), {"function": function}
        ).output

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        """Call what it is compiled to, or Python, if it is left to that."""
        mark = mark_of(self.python)
        if mark in LEAVES:
            return LEAVES[mark](e, self.python, arguments)
        return e.compiler.call(e, e.compiler.called(e, self.python), arguments)


def _builtin(python: Any) -> Sugared:
    if by_function(python):
        return Primitive(python)
    from runtime.script.emission.sugar import Unknown

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
    from runtime.errors.script import UnknownAttribute

    text = _name(e, name, what)
    try:
        return owner.attribute(e, text)
    except UnknownAttribute:
        return None


def _isinstance(e: Emitter, node: Any) -> Sugared:
    from runtime.script.emission.refinement import instance_test

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
    from runtime.schema.subtype import is_subtype

    wanted: Type = e.annotations.type(written)
    value = e.value(inner)
    fitted = e.fitted(value, wanted)
    if fitted is None and not (narrows and is_subtype(wanted, value.type)):
        e.fail(f"a value of type {value.type} is no {wanted}")
    return e.compiler.sugar(e.cast(value, wanted))


class _Manager(Sugared):
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
    import runtime

    for name, run in (
        ("range", _range),
        ("enumerate", _enumerate),
        ("zip", _zip),
        ("reversed", _reversed),
        ("tuple", _tuple),
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
    for name in ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled"):
        python = getattr(runtime, name)
        register_special_form(python, _Manager(python))
    register_sugar(FunctionType, PythonFunction)
    register_sugar(BuiltinFunctionType, _builtin)
    register_sugar(type, class_sugar)


def register_annotate(python: Any) -> None:
    """Let an object be `annotate(T, x)` in programs."""
    register_special_form(python, Syntactic("annotate", _annotate))
