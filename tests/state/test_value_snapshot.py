"""Answers are values: exact, ordered, without addresses, and never asked anything."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import ipaddress
import pathlib
import pickle
import types
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness.state import ValueSnapshot, canonical


class Plugin:
    """An object with a name."""

    def __init__(self, name: Any) -> None:
        self.name = name

    def run(self) -> None: ...


class Slotted:
    """An object with a slot."""

    __slots__ = ("a",)


@dataclasses.dataclass
class Point:
    """An object whose repr is its own."""

    x: int
    y: int


class Color(enum.Enum):
    """Members are shown by name."""

    RED = 1


class Lying:
    """Equal to everything, and shown as something else."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        raise AssertionError("an answer is never compared")

    def __hash__(self) -> int:
        raise AssertionError("an answer is never hashed")

    def __repr__(self) -> str:
        raise AssertionError("an answer is never asked")


Pair = collections.namedtuple("Pair", "a b")


class Number(int):
    """A number of a kind."""


MODULE = __name__
SLOTTED = Slotted()
SLOTTED.a = 1  # type: ignore[attr-defined]  # it has the slot


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (1, "1"),
        (1.0, "1.0"),
        (None, "None"),
        (b"a", "b'a'"),
        ({"a": 1}, "{'a': 1}"),
        ([1, (2,), {3}, set(), frozenset()], "[1, (2,), {3}, set(), frozenset()]"),
        ({"b", "a"}, "{'a', 'b'}"),
        (Plugin("x"), "Plugin(name='x')"),
        (Plugin, f"<class {MODULE}.Plugin>"),
        (Plugin.run, f"<function {MODULE}.Plugin.run>"),
        (
            Plugin("x").run,
            f"<method <function {MODULE}.Plugin.run> of Plugin(name='x')>",
        ),
        (len, "<function len>"),
        (int, "<class int>"),
        (types, "<module types>"),
        (SLOTTED, "Slotted(a=1)"),
        (Point(1, 2), "Point(x=1, y=2)"),
        (Color.RED, "Color.RED"),
        (Pair(1, 2), "Pair(a=1, b=2)"),
        (Number(3), "Number(3)"),
        (Lying([1]), "Lying(x=[1])"),
        (ValueError("x", 1), "ValueError('x', 1)"),
        (object(), "object()"),
        (
            functools.partial(int, 3),
            "partial(func=<class int>, args=(3,), keywords={})",
        ),
        (collections.OrderedDict(a=1), "OrderedDict({'a': 1})"),
        (collections.deque([1]), "deque([1])"),
        (pathlib.PurePosixPath("a/b"), "PurePosixPath('a/b')"),
        (datetime.date(2020, 1, 2), "datetime.date(2020, 1, 2)"),
    ],
    ids=lambda each: each if type(each) is str else type(each).__name__,
)
def test_the_text_is_for_people(value: Any, text: str) -> None:
    answer = canonical(value)
    assert isinstance(answer, ValueSnapshot)
    assert str(answer) == answer.text == text
    assert len(answer.digest) >= 9
    assert canonical(value) == answer
    assert hash(canonical(value)) == hash(answer)


def test_a_text_is_its_own_answer() -> None:
    text = "".join(["a", "b"])
    assert canonical(text) is text
    assert canonical("1") != canonical(1)


DIFFERENT: list[tuple[Any, Any]] = [
    (True, 1),
    (1, 1.0),
    (0.0, -0.0),
    ("a", b"a"),
    ([1], (1,)),
    ({1}, frozenset({1})),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ([1, 2], [2, 1]),
    ([True], [1]),
    ({1: "a"}, {True: "a"}),
    (Plugin("x"), Plugin("y")),
    (Plugin(1), Plugin(True)),
    (Lying(1), Lying(2)),
    (Number(1), 1),
    (Pair(1, 2), (1, 2)),
    (Plugin, Slotted),
    (lambda: 1, lambda: 2),
    (ValueError("x"), TypeError("x")),
    (collections.OrderedDict(a=1), {"a": 1}),
    ([], {}),
    ({(): 1}, {None: 1}),
]


@pytest.mark.parametrize(
    ("one", "other"), DIFFERENT, ids=lambda each: type(each).__name__
)
def test_answers_differ_by_type_value_and_order(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)


def test_one_object_twice_is_not_two_that_look_alike() -> None:
    plugin = Plugin("x")
    assert canonical([plugin, plugin]) != canonical([plugin, Plugin("x")])
    assert canonical([Plugin("x"), Plugin("x")]) == canonical(
        [Plugin("x"), Plugin("x")]
    )


def test_containers_are_values_whichever_they_are() -> None:
    inner: list[Any] = [1]
    assert canonical([inner, inner]) == canonical([[1], [1]])
    pair = (1, 2)
    assert canonical({"a": pair, "b": pair}) == canonical({"a": (1, 2), "b": (1, 2)})


def test_a_live_object_is_recorded_at_once() -> None:
    live: dict[str, Any] = {"a": [1]}
    before = canonical(live)
    live["a"].append(2)
    assert before == canonical({"a": [1]})
    assert canonical(live) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1, 2, 2], [2, 1, 2]),
        ((1, "a"), ("a", 1)),
        ([{"a": 1, "b": [1, 2]}], [{"b": [2, 1], "a": 1}]),
        ([Plugin("x"), Plugin("y")], [Plugin("y"), Plugin("x")]),
    ],
)
def test_unordered(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)
    left, right = canonical(one, unordered=True), canonical(other, unordered=True)
    assert left == right
    assert str(left) == str(right)


def test_unordered_counts() -> None:
    assert canonical([1, 1, 2], unordered=True) != canonical([1, 2, 2], unordered=True)
    assert canonical([1], unordered=True) != canonical((1,), unordered=True)
    assert canonical([True], unordered=True) != canonical([1], unordered=True)


def test_sets_have_no_order() -> None:
    forms = {canonical({f"a{n}" for n in order}) for order in ([1, 2, 3], [3, 2, 1])}
    assert len(forms) == 1
    objects = [Plugin("x"), Plugin("y"), Plugin("z")]
    assert canonical(set(objects)) == canonical({objects[2], objects[0], objects[1]})


def test_what_holds_itself() -> None:
    def ring(value: Any) -> list[Any]:
        inner: list[Any] = [value]
        inner.append(inner)
        return inner

    assert canonical(ring(1)) == canonical(ring(1))
    assert canonical(ring(1)) != canonical(ring(2))
    assert str(canonical(ring(1))) == "[1, ...]"


def test_deep_and_shared_answers_end() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert canonical(deep) == canonical(deep)
    shared: tuple[Any, ...] = ()
    for _ in range(60):
        shared = (shared, shared)
    assert canonical(shared) == canonical(shared)


def test_answers_travel() -> None:
    answer = canonical([Plugin("x")])
    assert pickle.loads(pickle.dumps(answer)) == answer


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Data that nobody can change."""

    name: str


@pytest.mark.parametrize(
    "make",
    [
        lambda: pathlib.PurePosixPath("a/b"),
        lambda: decimal.Decimal("1.50"),
        lambda: datetime.date(2020, 1, 2),
        lambda: uuid.UUID(int=1),
        lambda: Pair(1, [2]),
        lambda: Frozen("a"),
    ],
)
def test_by_which_ones_are_the_same_no_value_is_told(make: Callable[[], Any]) -> None:
    one = make()
    assert canonical([one, one]) == canonical([make(), make()])
    assert canonical([one, [one]]) != canonical([one, one])


def test_by_which_ones_are_the_same_objects_are_told() -> None:
    one, other = types.SimpleNamespace(a=1), types.SimpleNamespace(a=1)
    assert canonical([one, one]) != canonical([one, other])


class Owner:
    """A registry whose members know it."""

    def __init__(self, *names: str) -> None:
        self.members = {name: Member(self, name) for name in names}


class Member:
    """What a registry answers."""

    def __init__(self, owner: Owner, name: str) -> None:
        self.owner, self.name = owner, name

    def shown(self) -> str:
        return self.name


@pytest.mark.parametrize(
    "ask",
    [
        lambda owner: owner.members["a"],
        lambda owner: [owner.members["a"].shown],
        lambda owner: {"owner": owner},
    ],
)
def test_what_is_in_the_registry_is_no_part_of_an_answer(
    ask: Callable[[Owner], Any],
) -> None:
    one, other = Owner("a", "b"), Owner("b", "a", "c")
    assert canonical(ask(one), registry=one) == canonical(ask(other), registry=other)
    assert canonical(ask(one)) != canonical(ask(other))


def test_another_member_is_another_answer() -> None:
    one, other = Owner("a", "b"), Owner("a", "b")
    first = canonical(one.members["a"], registry=one)
    assert first != canonical(other.members["b"], registry=other)
    assert first != canonical(other.members["a"], registry=one)


def test_what_the_library_remembers_of_an_object_is_no_answer() -> None:
    network = ipaddress.ip_network("10.0.0.0/24")
    before = canonical(network)
    assert str(network.broadcast_address) == "10.0.0.255"
    assert canonical(network) == before
    assert before != canonical(ipaddress.ip_network("10.0.0.0/16"))


def test_what_is_left_out_of_many_is_told() -> None:
    """The text read as if it were all of it."""
    numbers = [*range(201)]
    shown = ", ".join(map(str, numbers[:200]))
    assert str(canonical(numbers)) == f"[{shown}, ...]"
    assert str(canonical(numbers[:200])) == f"[{shown}]"
    assert str(canonical(dict.fromkeys(numbers))).endswith("199: None, ...}")
    many = types.SimpleNamespace(**{f"a{number}": number for number in numbers})
    assert str(canonical(many)).endswith("a199=199, ...)")


class Degrees(float):
    """A number of a user."""


def test_a_nan_of_a_class_of_ones_own_is_shown_as_one() -> None:
    assert str(canonical(Degrees("nan"))) == "Degrees(nan)"
    assert str(canonical([Degrees("nan"), float("nan")])) == "[Degrees(nan), nan]"


def test_an_answer_knows_whether_it_is_shown_whole() -> None:
    """Dots of a user are none of ours."""

    def cut(value: object) -> bool:
        answer = canonical(value)
        assert isinstance(answer, ValueSnapshot)
        return answer.cut

    deep: list[Any] = []
    for _ in range(8):
        deep = [deep]
    cycle: list[Any] = []
    cycle.append(cycle)
    assert [cut(each) for each in ([*range(201)], ["x" * 5_000], deep)] == [True] * 3
    assert [cut(each) for each in (["..."], ["\0..."], cycle, ...)] == [False] * 4
    assert str(canonical(["\0..."])) == "['\\x00...']"
