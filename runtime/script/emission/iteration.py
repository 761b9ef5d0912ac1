"""Iteration: how ranges, lists, texts, dictionaries and tensors are gone through.

An `Iteration` says how many rounds a loop makes, what each is given, and what happens
if what is gone through changes meanwhile.

Rules:
- what is gone through is computed once, before the first round;
- of a known number of elements (a tuple) the rounds are written out one by one;
- a list is looked at again before each round if the loop may write to it, as in Python;
  a dictionary that got larger or smaller meanwhile is an error, as in Python;
- `zip` ends with the shortest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everyorder.runtime.schema.types import (
    DictType,
    IntType,
    ListType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
)
from everyorder.runtime.script.emission import sugar as values
from everyorder.runtime.script.emission.call_matching import call_rows
from everyorder.runtime.script.emission.emitter import (
    ITERABLES,
    Emitter,
    Holder,
    Sugared,
)
from everyorder.runtime.script.emission.sugar import SimpleValue, SugaredTuple
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_function


class Iteration(Holder):
    """The rounds of a loop over something."""

    def trips(self, e: Emitter) -> Value:
        """The number of rounds, as known before the first."""
        raise NotImplementedError

    def item(self, e: Emitter, index: Value) -> Sugared:
        """The item of a round."""
        raise NotImplementedError

    def watched(self) -> Sequence[Value]:
        """The values that change the rounds when they are written to."""
        return ()

    def has(self, e: Emitter, index: Value) -> Value | None:
        """Whether there is a round, by what is watched; None: as `trips` said."""
        return None

    def check(self, e: Emitter) -> None:
        """Raise, at the end of a round, if what is watched must not have changed."""

    def static(self) -> Sequence[Sugared] | None:
        """The items of all rounds, if their number is known."""
        return None


@dataclass
class Indexed(Iteration):
    """A list, a text or a tensor, by its places."""

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
    """The keys of a dictionary, as they were."""

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
        """Its three numbers, as a program would write them."""
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
    """An iteration over another one, which may change."""

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
        """The items of the other, numbered; a number is made where it is used."""
        inner = self.inner.static()
        if inner is None:
            return None
        return [_Numbered(place, each, self.start) for place, each in enumerate(inner)]


class _Numbered(SugaredTuple):
    """A number and an element; the number is made where it is used."""

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
        known = [each for each in parts if each is not None]
        if len(known) < len(parts):
            return None
        return [SugaredTuple(each) for each in zip(*known, strict=False)]


@dataclass
class Reversed(_Wrapping):
    """A list, a text or a range, from its end."""

    count: Value

    def trips(self, e: Emitter) -> Value:
        return self.count

    def _place(self, e: Emitter, index: Value) -> Value:
        last = e.operator("script::sub.int", self.count, e.constant(1))
        return e.operator("script::sub.int", last, index)

    def item(self, e: Emitter, index: Value) -> Sugared:
        return self.inner.item(e, self._place(e, index))

    def has(self, e: Emitter, index: Value) -> Value | None:
        """Whether there is one, and the list still has its place."""
        there = self.inner.has(e, self._place(e, index))
        if there is None:
            return None
        more = e.operator("script::lt.int", index, self.count)
        return e.operator("script::and_.bool", more, there)


@dataclass
class Static(Iteration):
    """Elements of a known number."""

    items: Sequence[Sugared]

    def static(self) -> Sequence[Sugared] | None:
        return self.items

    def trips(self, e: Emitter) -> Value:
        """It is gone through together with what is not so: refused."""
        e.fail(
            "a tuple is gone through together with something of unknown length",
            "Make a list of the tuple.",
        )


def repeat(e: Emitter, iteration: Iteration, fill: Callable[[Sugared], None]) -> None:
    """One round for each item, by a loop that carries nothing."""
    loop = e.node("prim::Loop", (iteration.trips(e), e.constant(True)))
    body = loop.add_block()
    index = body.add_parameter(IntType, "index")

    def emit() -> None:
        fill(iteration.item(e, index))
        body.add_result(e.constant(True))

    e.within(body, emit)


def list_of(
    e: Emitter, iteration: Iteration, element: Callable[[Sugared], Value]
) -> Value:
    """A list of what `element` gives of each item."""
    made = e.node("prim::ListConstruct", (), (ListType(TensorType),)).output

    def fill(item: Sugared) -> None:
        value = element(item)
        made.type = ListType(value.type)
        e.node("script::append.t", (made, value))

    repeat(e, iteration, fill)
    return made


def length_of(e: Emitter, container: Sugared) -> Value:
    """`len(container)`."""
    return call_rows(e, "`len`", by_function(len), container).value(e)


def iterate(e: Emitter, container: Sugared) -> Iteration:
    """The iteration over a value, or a tuple."""
    if isinstance(container, SugaredTuple):
        return Static(container.elements(e) or ())
    assert isinstance(container, SimpleValue), "others say so themselves"
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
    return e.fail(f"{container.describe()} cannot be gone through", hint)


values.VALUE_ITERATE = iterate
