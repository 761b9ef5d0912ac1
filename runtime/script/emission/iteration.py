"""Iteration over ranges, lists, texts, dictionaries and tensors.

An `Iteration` defines the number of trips of a loop, the item of each trip, and the
effect of changes of the iterable during the loop.

Rules:
- the iterable is computed once, before the first trip;
- for a known number of elements (a tuple) the loop is unrolled;
- the length of a list is read again before each trip if the loop may write to it, as in
  Python; changing the size of a dictionary during the loop is an error, as in Python;
- `zip` ends with the shortest iterable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    DictType,
    IntType,
    ListType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.emission.call_matching import call_rows
from everyorder.runtime.script.emission.emitter import (
    ITERABLES,
    Emitter,
    Holder,
    Sugared,
)
from everyorder.runtime.script.emission.sugar import (
    VALUE_ITERATE,
    SimpleValue,
    SugaredTuple,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_function


class Iteration(Holder):
    """The trips of a loop over an iterable."""

    def trips(self, e: Emitter) -> Value:
        """Return the number of trips, as known before the first."""
        raise NotImplementedError

    def item(self, e: Emitter, index: Value) -> Sugared:
        """Return the item of a trip."""
        raise NotImplementedError

    def watched(self) -> Sequence[Value]:
        """Return the values that change the trips when they are written to."""
        return ()

    def has(self, e: Emitter, index: Value) -> Value | None:
        """Return a test for another trip, or None if `trips` decides."""
        return None

    def check(self, e: Emitter) -> None:
        """Raise, at the end of a trip, if a watched value has changed illegally."""

    def static(self) -> Sequence[Sugared] | None:
        """Return the items of all trips if their number is known, else None."""
        return None


@dataclass
class Indexed(Iteration):
    """A list, a text or a tensor, iterated by index."""

    container: SimpleValue
    length: Value

    def trips(self, e: Emitter) -> Value:
        return self.length

    def item(self, e: Emitter, index: Value) -> Sugared:
        return self.container.subscript(e, SimpleValue(index))

    def watched(self) -> Sequence[Value]:
        value = self.container.node_value
        return [value] if isinstance(value.type, ListType) else []

    def has(self, e: Emitter, index: Value) -> Value | None:
        if not self.watched():
            return None
        return e.operator("script::lt.int", index, length_of(e, self.container))


@dataclass
class SugaredKeys(Iteration):
    """The keys of a dictionary, copied before the loop."""

    keys: SimpleValue
    length: Value
    dictionary: Value

    def trips(self, e: Emitter) -> Value:
        return self.length

    def item(self, e: Emitter, index: Value) -> Sugared:
        return self.keys.subscript(e, SimpleValue(index))

    def watched(self) -> Sequence[Value]:
        return [self.dictionary]

    def check(self, e: Emitter) -> None:
        now = length_of(e, SimpleValue(self.dictionary))
        node = e.node("prim::If", (e.operator("script::eq.int", now, self.length),))
        node.add_block()

        message = "dictionary changed size during iteration"
        e.branch(node, lambda: e.raises("builtins.RuntimeError", message))


@dataclass
class Range(Iteration):
    """The numbers of a range."""

    start: Value
    stop: Value
    step: Value
    plain: bool

    @property
    def bounds(self) -> tuple[SimpleValue, SimpleValue, SimpleValue]:
        """Return its three numbers as simple values."""
        return SimpleValue(self.start), SimpleValue(self.stop), SimpleValue(self.step)

    def trips(self, e: Emitter) -> Value:
        bounds = self.start, self.stop, self.step
        return e.operator("script::range_length.int", *bounds)

    def item(self, e: Emitter, index: Value) -> Sugared:
        if self.plain:
            return SimpleValue(index)
        bounds = self.start, self.stop, self.step
        return SimpleValue(e.operator("script::range_item.int", *bounds, index))


@dataclass
class _Wrapping(Iteration):
    """An iteration over another one, which may be watched."""

    inner: Iteration

    def watched(self) -> Sequence[Value]:
        return self.inner.watched()

    def check(self, e: Emitter) -> None:
        self.inner.check(e)


@dataclass
class Enumerated(_Wrapping):
    """The items of another iteration, with their numbers."""

    start: Value | None

    def trips(self, e: Emitter) -> Value:
        return self.inner.trips(e)

    def item(self, e: Emitter, index: Value) -> Sugared:
        number = index
        if self.start is not None:
            number = e.operator("script::add.int", self.start, index)
        return SugaredTuple([SimpleValue(number), self.inner.item(e, index)])

    def has(self, e: Emitter, index: Value) -> Value | None:
        return self.inner.has(e, index)

    def static(self) -> Sequence[Sugared] | None:
        """Return the items of the other, numbered; numbers are emitted where used."""
        inner = self.inner.static()
        if inner is None:
            return None
        return [_Numbered(place, each, self.start) for place, each in enumerate(inner)]


class _Numbered(SugaredTuple):
    """A number and an element; the number is emitted where it is used."""

    __slots__ = ("_item", "_place", "_start")

    def __init__(self, place: int, item: Sugared, start: Value | None) -> None:
        super().__init__(())
        self._place = place
        self._item = item
        self._start = start

    def elements(self, e: Emitter) -> Sequence[Sugared] | None:
        number = e.constant(self._place)
        if self._start is not None:
            number = e.operator("script::add.int", self._start, number)
        return [SimpleValue(number), self._item]

    def value(self, e: Emitter) -> Value:
        return SugaredTuple(self.elements(e) or ()).value(e)

    def subscript(self, e: Emitter, index: Sugared) -> Sugared:
        return SugaredTuple(self.elements(e) or ()).subscript(e, index)


@dataclass
class Zipped(Iteration):
    """The items of several iterations, together."""

    parts: Sequence[Iteration]

    def trips(self, e: Emitter) -> Value:
        result = self.parts[0].trips(e)
        for each in self.parts[1:]:
            result = e.operator("script::min.int", result, each.trips(e))
        return result

    def item(self, e: Emitter, index: Value) -> Sugared:
        return SugaredTuple([each.item(e, index) for each in self.parts])

    def watched(self) -> Sequence[Value]:
        return [value for each in self.parts for value in each.watched()]

    def has(self, e: Emitter, index: Value) -> Value | None:
        result = None
        for each in self.parts:
            one = each.has(e, index)
            if one is None:
                one = e.operator("script::lt.int", index, each.trips(e))
            result = (
                one if result is None else e.operator("script::and_.bool", result, one)
            )
        return result

    def check(self, e: Emitter) -> None:
        for each in self.parts:
            each.check(e)

    def static(self) -> Sequence[Sugared] | None:
        parts = [each.static() for each in self.parts]
        static_parts = [each for each in parts if each is not None]
        if len(static_parts) < len(parts):
            return None
        return [SugaredTuple(each) for each in zip(*static_parts, strict=False)]


@dataclass
class Reversed(_Wrapping):
    """A list, a text or a range, in reverse."""

    count: Value

    def trips(self, e: Emitter) -> Value:
        return self.count

    def _place(self, e: Emitter, index: Value) -> Value:
        last = e.operator("script::sub.int", self.count, e.constant(1))
        return e.operator("script::sub.int", last, index)

    def item(self, e: Emitter, index: Value) -> Sugared:
        return self.inner.item(e, self._place(e, index))

    def has(self, e: Emitter, index: Value) -> Value | None:
        """Return a test for another trip whose index is still in the list."""
        there = self.inner.has(e, self._place(e, index))
        if there is None:
            return None
        more = e.operator("script::lt.int", index, self.count)
        return e.operator("script::and_.bool", more, there)


@dataclass
class Static(Iteration):
    """A known number of elements."""

    items: Sequence[Sugared]

    def static(self) -> Sequence[Sugared] | None:
        return self.items

    def trips(self, e: Emitter) -> Value:
        """Refuse to iterate it together with an iterable of unknown length."""
        e.fail(
            "cannot iterate a tuple together with an iterable of unknown length",
            "Make a list of the tuple.",
        )


def repeat(e: Emitter, iteration: Iteration, fill: Callable[[Sugared], None]) -> None:
    """Emit a loop without carried values that calls `fill` for each item."""
    loop = e.node("prim::Loop", (iteration.trips(e), e.constant(True)))
    body = loop.add_block()
    index = body.add_parameter(IntType, "index")

    def emit() -> None:
        fill(iteration.item(e, index))
        body.add_result(e.constant(True))

    e.within(body, emit)


def list_of(
    e: Emitter,
    iteration: Iteration,
    element: Callable[[Sugared], Value],
    wide: Type | None = None,
) -> Value:
    """Return a list of the results of `element` for each item.

    Its elements are of the type `wide` if the results fit it.
    """
    result = e.node("prim::ListConstruct", (), (ListType(TensorType),)).output

    def fill(item: Sugared) -> None:
        value = element(item)
        is_wide = wide is not None and is_subtype(value.type, wide)
        result.type = ListType(wide if wide and is_wide else value.type)
        e.node("script::append.t", (result, value))

    repeat(e, iteration, fill)
    return result


def length_of(e: Emitter, container: Sugared) -> Value:
    """Emit `len(container)`."""
    return call_rows(e, "`len`", by_function(len), container).value(e)


def iterate(e: Emitter, container: Sugared) -> Iteration:
    """Return the iteration over a value, or a tuple."""
    if isinstance(container, SugaredTuple):
        return Static(container.elements(e) or ())
    assert isinstance(container, SimpleValue), "other sugar overrides `iterate`"
    kind = container.type
    if isinstance(kind, TupleType):
        return Static(container.elements(e) or ())
    if isinstance(kind, ListType) or kind in (StrType, TensorType):
        return Indexed(container, length_of(e, container))
    if isinstance(kind, DictType):
        keys = call_rows(e, "`list`", by_function(list), container)
        assert isinstance(keys, SimpleValue), "a list is a value"
        return SugaredKeys(keys, length_of(e, keys), container.node_value)
    hint = ITERABLES
    if isinstance(kind, OptionalType):
        hint = "It may be None: ask with `is not None` first."
    return e.fail(f"{container.describe()} is not iterable", hint)


VALUE_ITERATE.set(iterate)
