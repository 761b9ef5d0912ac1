"""Whatever data hide is in the form: types, identity, order, slots, lies."""

import collections
import enum
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.harness.state import FollowedScope, Heap, differences
from tests.state.deceit import Box, Cases, Loud, judge, put, ran, ring

CASES = Cases()
case = CASES.add

# Values are told by exact type.


case("a number becomes a flag", lambda: Box(x=1), put("x", True))
case("a number becomes a float", lambda: Box(x=1), put("x", 1.0))
case("zero becomes negative", lambda: Box(x=0.0), put("x", -0.0))
case("a text becomes bytes", lambda: Box(x="a"), put("x", b"a"))
case("a large number", lambda: Box(x=1 << 90), put("x", (1 << 90) + 1))
case("a complex number", lambda: Box(x=1j), put("x", 2j))
case("an ellipsis", lambda: Box(x=None), put("x", ...))
case("a list becomes a tuple", lambda: Box(x=[1]), put("x", (1,)))
case("NotImplemented", lambda: Box(x=None), put("x", NotImplemented))
case("a class that marks nothing", lambda: Box(x=None), put("x", StopIteration))
case("an attribute more", Box, put("y", 1))

# Containers: contents, identity, order.

case("a list", lambda: Box(x=[1, [2]]), lambda o: o.x[1].append(3))
case("a key", lambda: Box(x={1: 2}), lambda o: o.x.__setitem__(True + 1, 2))
case("a key of another type", lambda: Box(x={1: 2}), put("x", {True: 2}))
case("a set", lambda: Box(x={1}), lambda o: o.x.add("a"))
case("a set of tuples", lambda: Box(x={(1, 2)}), lambda o: o.x.add((1, 3)))
case("a frozen set", lambda: Box(x=frozenset({1})), put("x", {1}))


def _shared() -> Box:
    one: list[int] = []
    return Box(a=one, b=one)


case("what is shared", _shared, put("b", []))
case("what is in a cycle", lambda: ring(2), put("next", None))


case(
    "an attribute dict that is shared",
    lambda: (lambda a: Box(a=a, d=a.__dict__))(Box(x=1)),
    lambda o: setattr(o, "d", dict(o.d)),
)
KEYS = (Loud(), Loud())
case(
    "the factory of a defaultdict",
    lambda: Box(x=collections.defaultdict(list)),
    lambda o: setattr(o.x, "default_factory", dict),
)
case(
    "the length of a deque",
    lambda: Box(x=collections.deque([1], maxlen=2)),
    put("x", collections.deque([1], maxlen=3)),
)
case("a Counter", lambda: Box(x=collections.Counter("a")), lambda o: o.x.update("a"))


def _not_a_number() -> Box:
    nan = float("nan")
    return Box(a=nan, x=[nan, 1.0], z=complex(0.0, nan))


# Containers find a NaN by its identity: `nan in x`, `x.count(nan)`, `d[nan]`.
case(
    "another NaN",
    _not_a_number,
    lambda o: o.x.__setitem__(0, float("nan")),
    lambda o: o.x.__setitem__(0, o.a),
)
case("the sign of a NaN", _not_a_number, put("z", complex(-0.0, float("nan"))))
case("the sign of a lone NaN", lambda: Box(x=float("nan")), put("x", -float("nan")))
case(
    "a key that is another NaN",
    lambda: (lambda nan: Box(a=nan, x={nan: 1}))(float("nan")),
    put("x", {float("nan"): 1}),
)
case(
    "a member that is another NaN",
    lambda: (lambda nan: Box(a=nan, x={nan, 1.0}))(float("nan")),
    put("x", {float("nan"), 1.0}),
)


class Listing(list):  # type: ignore[type-arg]  # what it lists does not matter
    """A list that iterates as if it were empty."""

    __slots__ = ("hidden",)

    def __iter__(self) -> Iterator[Any]:
        ran.append("iter")
        return iter(())

    def __len__(self) -> int:
        ran.append("len")
        return 0


case("a list that misleads", lambda: Listing([1]), lambda o: list.append(o, 2))
case("a slot of a list", lambda: Listing([1]), lambda o: setattr(o, "hidden", 2))


class Mapping(dict):  # type: ignore[type-arg]  # what it maps does not matter
    """A dict that shows nothing."""

    def items(self) -> Any:
        ran.append("items")
        return []

    def __iter__(self) -> Iterator[Any]:
        ran.append("iter")
        return iter(())

    def __getitem__(self, key: Any) -> Any:
        ran.append("get")
        return 1

    keys = items


case("a dict that misleads", lambda: Mapping(a=1), lambda o: dict.update(o, b=2))
case("an attribute of a dict", lambda: Mapping(a=1), put("x", 1))


class Text(str):
    """A text with attributes."""


class Number(int):
    """A number with attributes, of a size that is no multiple of a pointer."""

    def __int__(self) -> int:
        ran.append("int")
        return 0


case("an attribute of a text", lambda: Text("a"), put("x", 1))
case("the value of a text", lambda: Box(x=Text("a")), put("x", Text("b")))
case("an attribute of a number", lambda: Number(3), put("x", 1))
case("the value of a number", lambda: Box(x=Number(3)), put("x", Number(4)))


class Color(enum.Enum):
    """Members are objects."""

    RED = 1


case(
    "an attribute of an enum member",
    lambda: Box(x=Color.RED),
    lambda o: setattr(o.x, "note", 1),
    lambda o: delattr(o.x, "note"),
)
case(
    "another value of an enum member",
    lambda: Box(x=Color.RED),
    lambda o: Color._value2member_map_.update(crimson=Color.RED),
    lambda o: Color._value2member_map_.pop("crimson"),
)

Pair = collections.namedtuple("Pair", "a b")
case("a named tuple", lambda: Box(x=Pair(1, [])), lambda o: o.x.b.append(1))

# Slots.


class Slotted:
    """Nothing but slots, one of them private."""

    __slots__ = ("__private", "a")

    def set(self, value: Any) -> None:
        self.__private = value


class Shadowing(Slotted):
    """A slot that hides the slot of the same name below."""

    __slots__ = ("a",)


case("a private slot", Slotted, lambda o: o.set(1))
case("a slot that is not set", Slotted, lambda o: setattr(o, "a", None))
case(
    "a slot that is shadowed", Shadowing, lambda o: Slotted.__dict__["a"].__set__(o, 1)
)


class Attributes:
    """Its subclass hides the dict that it has."""


class Hiding(Attributes):
    """The dict of attributes is hidden by a property."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # that is the deceit
        ran.append("dict")
        return {}


case("attributes behind a property", Hiding, lambda o: setattr(o, "x", 1))

# Loud objects: nothing of them may run.

case("an object that overrides everything", lambda: Loud(x=1), put("x", 2))
case("a key that overrides everything", lambda: {Loud(x=1): 1}, lambda o: o.clear())
case(
    "keys that override everything",
    lambda: {Loud(x=1): 1, Loud(x=2): 2},
    lambda o: o.update({3: 4}),
)
case("a set of such objects", lambda: {Loud(x=1), Loud(x=2)}, lambda o: o.pop())


class Meta(type):
    """A metaclass whose classes cannot be hashed and tell when they are asked."""

    def __eq__(cls, other: object) -> bool:
        ran.append("meta ==")
        return cls is other

    def __getattribute__(cls, name: str) -> Any:
        ran.append("meta get")
        return type.__getattribute__(cls, name)

    def __instancecheck__(cls, instance: object) -> bool:
        ran.append("meta check")
        return True

    __hash__ = None  # type: ignore[assignment]  # that is the deceit


class Unhashable(metaclass=Meta):
    """A class that cannot be hashed."""

    def __init__(self) -> None:
        self.x = 1


case("an instance of a class without hash", Unhashable, put("x", 2))
case(
    "a set of instances of a class without hash",
    lambda: Box(x={Unhashable(), Unhashable(), 1, (Unhashable(),)}),
    lambda o: o.x.clear(),
)
case("a dict of such", lambda: {Unhashable(): 1, 2: 3, "a": 4}, lambda o: o.pop(2))


@pytest.mark.parametrize("name", CASES)
def test_a_hidden_change_gives_another_form(name: str) -> None:
    judge(CASES[name], {"tests"})


@pytest.mark.parametrize("keys", [("a", "b"), KEYS], ids=["texts", "objects"])
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_the_order_of_a_mapping_is_in_the_exact_form_alone(
    kind: type[dict[Any, int]], keys: tuple[Any, Any]
) -> None:
    heap = Heap(FollowedScope(frozenset({__name__})))
    box = Box(x=kind([(keys[0], 1), (keys[1], 2)]), k=keys)
    before, portrait = heap.form({"root": box}), heap.portrait({"root": box})
    vars(box)["x"] = kind([(keys[1], 2), (keys[0], 1)])
    ran.clear()
    after = heap.form({"root": box})
    changed = differences(portrait, heap.portrait({"root": box}))
    assert ran == []
    assert before.blind == after.blind
    assert before.exact != after.exact
    assert changed != ()


def test_the_order_of_the_dict_below_an_ordered_dict_is_in_the_exact_form() -> None:
    one = collections.OrderedDict(a=1, b=2)
    one.move_to_end("a")
    other = collections.OrderedDict(b=2, a=1)
    heap = Heap(FollowedScope(frozenset({__name__})))
    forms = [heap.form({"root": each}) for each in (one, other)]
    assert forms[0].exact != forms[1].exact


def test_an_ordered_dict_that_was_changed_by_methods_of_dict_is_opaque() -> None:
    broken = collections.OrderedDict(a=1, b=2)
    dict.pop(broken, "a")
    heap = Heap(FollowedScope(frozenset({__name__})))
    heap.form({"root": broken})
    assert not heap.is_complete
