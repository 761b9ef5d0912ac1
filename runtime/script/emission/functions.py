"""Functions of Python in programs: what they mean beyond the primitives of their name.

Here are the sugar of functions, `range` and its like, and what a function of Python is
before its primitives are asked.

Rules:
- `range`, `zip`, `enumerate` and `reversed` are for loops and comprehensions; `list` of
  one makes a list of it;
- what consists of a known number of elements is a tuple to all of them;
- a method of an object's own (`__len__`, ...) comes before the primitives.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from runtime.schema.declaration import DeclaredType, ModuleType
from runtime.schema.types import (
    BoolType,
    DictType,
    IntType,
    ListType,
    StrType,
    TensorType,
    TupleType,
)
from runtime.script.emission.calls import call_forms, forms_of_rows
from runtime.script.emission.emitter import Arguments, Emitter, Sugared
from runtime.script.emission.expressions import check_key, common_type, display
from runtime.script.emission.iteration import (
    Enumerated,
    Iteration,
    Range,
    Reversed,
    Zipped,
)
from runtime.script.emission.sugar import SimpleValue, SugaredTuple, type_of
from runtime.script.ir import Value
from runtime.script.primitives import by_form, by_function


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
        special = BEFORE.get(self.python)
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


def range_of(e: Emitter, arguments: Arguments) -> Sugared:
    """`range(...)`."""
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


def enumerated(e: Emitter, arguments: Arguments) -> Sugared:
    """`enumerate(...)`."""
    given = list(plain(e, "enumerate", arguments, 1, 2, named=("start",)))
    if "start" in arguments.named:
        given.append(arguments.named["start"])
    inner = given[0].iterate(e)
    start = _int(e, given[1], "enumerate") if len(given) > 1 else None
    return Iterated("enumerate", Enumerated(inner, start))


def zipped(e: Emitter, arguments: Arguments) -> Sugared:
    """`zip(...)`."""
    given = arguments.positional
    plain(e, "zip", arguments, len(given))
    if not given:
        e.fail("`zip` of nothing has no type")
    return Iterated("zip", Zipped([each.iterate(e) for each in given]))


def reversed_of(e: Emitter, arguments: Arguments) -> Sugared:
    """`reversed(...)`."""
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
    if not arguments.positional:
        return SimpleValue(display(e, "prim::ListConstruct", (), ListType(TensorType)))
    (given,) = arguments.positional
    items = given.elements(e)
    if items is not None:
        values = [each.value(e) for each in items]
        kind = ListType(common_type(e, values))
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
    if not arguments.positional:
        inputs: list[Value] = []
        for name, each in arguments.named.items():
            inputs += [e.constant(name), each.value(e)]
        kind = DictType(StrType, TensorType)
        if inputs:
            held = common_type(e, inputs[1::2], "values of this dictionary")
            kind = DictType(check_key(e, StrType), held)
        return SimpleValue(display(e, "prim::DictConstruct", inputs, kind))
    given = arguments.positional[0]
    if len(arguments.positional) == 1 and isinstance(given, Iterated):
        pairs = _list(e, Arguments((given,)))
        assert pairs is not None, "what is gone through makes a list"
        forms = forms_of_rows(by_function(dict))
        return call_forms(e, "`dict`", forms, Arguments((pairs,), arguments.named))
    return None


def tuple_of(e: Emitter, arguments: Arguments) -> Sugared:
    """`tuple(...)`, of what has a known length."""
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
    # How many modules a list of them has, is known.
    is_open = kind is None or isinstance(kind, ModuleType)
    known = given.elements(e) if is_open else None
    if known is not None:
        return SimpleValue(e.constant(len(known)))
    return _own(e, given, "__len__")


def _own(e: Emitter, given: Sugared, name: str) -> Sugared | None:
    """The method of an object's own."""
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
BEFORE: dict[Any, Callable[[Emitter, Arguments], Sugared | None]] = {
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
