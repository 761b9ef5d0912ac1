"""What changes in the part that all states share is seen, whatever its kind."""

import abc
import builtins
import collections
import ctypes
import functools
import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine.protocol import StateForm
from everyorder.harness.state import FollowedScope, Heap
from everyorder.harness.state.change_detector import ChangeDetector

NAME = "fixed_subject"
SCOPE = FollowedScope(frozenset({NAME}))
SOURCE = """
import abc
import collections
import functools
import json
import sys
import fixed_subject_neighbour
from json import dumps as written

LIMIT = 1000
NAMES = ["a", "b"]
TABLE = {"a": 1, "b": (2, NAMES)}
ORDERED = collections.OrderedDict(a=1, b=2)
SET = {1}
NUMBERS = [int("1000000")]
PAIR = [1, 2], [3]
COUNTED = enumerate([1, 2, 3])
ALIAS = list[int]
CALLED = []

class Base:
    shared = []

class Parent(Base):
    pass

class Kind(Parent):
    __slots__ = ("value",)
    def __init__(self, value=None):
        self.value = value
    @property
    def shown(self):
        return len(str(self.value))
    @staticmethod
    def made():
        return Other()
    @classmethod
    def bound(cls):
        return cls

class Other:
    pass

class Abstract(abc.ABC):
    @abc.abstractmethod
    def run(self): ...

class Slotted:
    __slots__ = ("first", "second")

SLOTTED = Slotted()
SLOTTED.first = NAMES

class Hooked(abc.ABC):
    @classmethod
    def __subclasshook__(cls, kind):
        return True

class Meta(type):
    pass

class Made(metaclass=Meta):
    pass

INSTANCE = Other()
INSTANCE.first = 1
INSTANCE.second = NAMES
PART = functools.partial(Kind.made, 1, x=NAMES)
METHOD = Kind.bound

def closing():
    count = 0
    def inner(step=NAMES, *, named=LIMIT):
        nonlocal count
        count += step
        return count
    return inner

CLOSURE = closing()

def counting():
    return COUNTED

def slotted():
    return SLOTTED

def whole():
    return globals()

def late():
    import fixed_subject_neighbour.below
    from fixed_subject_neighbour import thing
    return thing

def function(registry):
    missing_until_defined
    written({}), json.dumps, fixed_subject_neighbour.thing, late
    return (
        LIMIT, TABLE, ORDERED, SET, ALIAS, Kind, Made, Abstract, INSTANCE, PART,
        METHOD, CLOSURE, CALLED, NUMBERS, PAIR, Hooked, sys.maxsize, ascii(registry),
    )
"""


class Thing:
    """An object of nobody's package."""


class Mortal:
    """One that says when it ends."""

    ended: list[str]

    def __del__(self) -> None:
        self.ended.append("ended")


@pytest.fixture
def subject() -> Iterator[Any]:
    """A module that is followed, whose neighbour is not."""
    made = types.ModuleType(NAME)
    neighbour = types.ModuleType("fixed_subject_neighbour")
    neighbour.thing = Thing()  # type: ignore[attr-defined]  # a module has what is set
    sys.modules |= {NAME: made, neighbour.__name__: neighbour}
    try:
        exec(compile(SOURCE, NAME, "exec"), vars(made))
        yield made
    finally:
        for name in (NAME, neighbour.__name__):
            sys.modules.pop(name, None)


@pytest.fixture(autouse=True)
def _collected() -> None:
    # Classes of earlier tests that become garbage are subclasses of these bases.
    gc.collect()


def heap() -> Heap:
    return Heap(SCOPE, fixed=True)


def told(reader: Heap, subject: Any, registry: object = ()) -> StateForm:
    return state(
        reader,
        {"step": subject.function, "use": subject.closing},
        {"registry": registry},
    )


def state(
    reader: Heap,
    lasting: Mapping[str, object],
    roots: Mapping[str, object] | None = None,
) -> StateForm:
    """Return a form once everything that changed has left the fixed part."""
    for _ in range(8):
        with suppress(ExplorationRestart):
            return reader.form(roots or {}, lasting)
    raise AssertionError("it restarts for ever")


def is_seen(
    reader: Heap,
    before: StateForm,
    lasting: Mapping[str, object],
    roots: Mapping[str, object] | None = None,
) -> bool:
    """Return True if a form is another one, or cannot be compared with the first."""
    try:
        return reader.form(roots or {}, lasting) != before
    except ExplorationRestart:
        # From now on it is state.
        assert state(reader, lasting, roots) == state(reader, lasting, roots)
        return True


def roots_of(subject: Any) -> Mapping[str, object]:
    return {"step": subject.function, "use": subject.closing}


def renewed(subject: Any) -> None:
    """Another number, where the one before may have stood."""
    del subject.NUMBERS[0]
    subject.NUMBERS.append(int("1000001"))


def set_code(subject: Any) -> None:
    subject.function.__code__ = subject.late.__code__


def set_cell(subject: Any) -> None:
    subject.CLOSURE.__closure__[0].cell_contents = 7


def unset_cell(subject: Any) -> None:
    del subject.CLOSURE.__closure__[0].cell_contents


def other_order(subject: Any) -> None:
    subject.TABLE["a"] = subject.TABLE.pop("a")


def no_library_function(subject: Any) -> None:
    subject.written = lambda given: None


def other_class(subject: Any) -> None:
    subject.INSTANCE.__class__ = subject.Base


def other_attributes(subject: Any) -> None:
    subject.INSTANCE.third = subject.INSTANCE.__dict__.pop("second")


def subclass(subject: Any) -> None:
    namespace = {"__module__": NAME}
    subject.CALLED.append(type("Late", (subject.Base,), namespace))


def unlisted_subclass(subject: Any) -> None:
    subject.Late = type("Late", (subject.Base,), {"__module__": NAME})


def neighbour(subject: Any) -> Any:
    return sys.modules["fixed_subject_neighbour"]


def below(subject: Any) -> None:
    name = "fixed_subject_neighbour"
    sys.modules[name] = types.ModuleType(name)


CHANGES: dict[str, Callable[[Any], object]] = {
    "a global is rebound": lambda s: setattr(s, "LIMIT", 1001),
    "a global is gone": lambda s: delattr(s, "LIMIT"),
    "a missing global is there": lambda s: setattr(s, "missing_until_defined", 1),
    "a global is an equal text": lambda s: setattr(s, "LIMIT", "1000"),
    "a list grows": lambda s: s.NAMES.append("c"),
    "a list has another member": lambda s: s.NAMES.__setitem__(0, "z"),
    "a list has another number": renewed,
    "an item moves to the next list": lambda s: s.PAIR[1].append(s.PAIR[0].pop(0)),
    "a dict has another value": lambda s: s.TABLE.update(a=2),
    "a dict has another key": lambda s: s.TABLE.update(c=s.TABLE.pop("a")),
    "a dict has another order": other_order,
    "an OrderedDict has another order": lambda s: s.ORDERED.move_to_end("a"),
    "a set has a member more": lambda s: s.SET.add(2),
    "a set has another member": lambda s: (s.SET.clear(), s.SET.add(2)),
    "a function has other defaults": lambda s: setattr(s.closing, "__defaults__", (1,)),
    "a closure has other defaults": lambda s: setattr(s.CLOSURE, "__defaults__", ()),
    "keyword defaults change": lambda s: s.CLOSURE.__kwdefaults__.update(named=2),
    "a function has attributes": lambda s: setattr(s.function, "calls", 1),
    "a function has other annotations": lambda s: s.function.__annotations__.update(
        registry=int
    ),
    "a function has other code": set_code,
    "a function has another name": lambda s: setattr(s.function, "__name__", "g"),
    "a function has another qualname": lambda s: setattr(
        s.function, "__qualname__", "g"
    ),
    "a function has another module": lambda s: setattr(s.function, "__module__", "g"),
    "a function has another text": lambda s: setattr(s.function, "__doc__", "g"),
    "a cell has other contents": set_cell,
    "a cell is empty": unset_cell,
    "an instance has other attributes": other_attributes,
    "an instance has another class": other_class,
    "an instance has one more": lambda s: setattr(s.INSTANCE, "third", 3),
    "a class has an attribute": lambda s: setattr(s.Kind, "hits", 1),
    "a class of a base has one": lambda s: setattr(s.Base, "hits", 1),
    "an attribute of a class changes": lambda s: s.Base.shared.append(1),
    "a class has other bases": lambda s: setattr(s.Parent, "__bases__", (s.Other,)),
    "a class has another name": lambda s: setattr(s.Kind, "__name__", "Else"),
    "a class has another qualname": lambda s: setattr(s.Kind, "__qualname__", "Else"),
    "a class has another module": lambda s: setattr(s.Kind, "__module__", "nowhere"),
    "a metaclass has an attribute": lambda s: setattr(s.Meta, "hits", 1),
    "a class has a subclass": unlisted_subclass,
    "a class has a subclass that is listed": subclass,
    "a class is registered": lambda s: s.Abstract.register(s.Other),
    "a class answers by its hook": lambda s: issubclass(s.Other, s.Hooked),
    "a partial has another argument": lambda s: s.PART.keywords.update(x=1),
    "a partial has another state": lambda s: s.PART.__setstate__(
        (s.Kind.made, (2,), {}, None)
    ),
    "a name is another function": no_library_function,
    "a neighbour has another thing": lambda s: setattr(neighbour(s), "thing", s.NAMES),
    "a module is another one": below,
    "a module is no longer loaded": lambda s: sys.modules.pop(
        "fixed_subject_neighbour"
    ),
    "a module has another name": lambda s: setattr(s, "__name__", "nowhere"),
}
# What is not followed may change unseen: `harness.state.untracked_writes` looks after
# it.
UNSEEN = {"a neighbour has another thing"}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_is_seen(subject: Any, change: str) -> None:
    reader = heap()
    before = state(reader, roots_of(subject))
    assert not is_seen(reader, before, roots_of(subject))

    CHANGES[change](subject)

    assert is_seen(reader, before, roots_of(subject)) == (change not in UNSEEN)


def test_what_others_have_under_a_name_is_seen(
    subject: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = heap()
    before = state(reader, roots_of(subject))

    monkeypatch.setattr(builtins, "ascii", lambda given: "")

    assert is_seen(reader, before, roots_of(subject))


@pytest.mark.parametrize(
    ("owner", "name"),
    [(functools, "singledispatch"), (collections, "Counter"), (abc.ABC, "__module__")],
)
def test_what_yields_no_longer_what_it_named(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = heap()
    lasting = {
        "step": functools.singledispatch,
        "use": collections.Counter,
        "see": abc.ABC,
    }
    before = state(reader, lasting)

    monkeypatch.setattr(owner, name, "nothing")

    assert is_seen(reader, before, lasting)


def test_any_global_may_be_read(subject: Any) -> None:
    lasting = {"step": subject.whole}
    del subject.COUNTED
    reader = heap()
    before = state(reader, lasting)

    subject.unheard_of = 1

    assert is_seen(reader, before, lasting)


@pytest.mark.parametrize("kind", ["object", "address", "number"])
def test_a_set_of_one(subject: Any, kind: str) -> None:
    member = Thing()
    subject.SET = {{"object": member, "address": id(member), "number": 1}[kind]}
    reader = heap()
    forms = [told(reader, subject, each) for each in ((), [member], (), [member])]
    assert forms[0] == forms[2] != forms[1] == forms[3]
    assert (told(reader, subject, [Thing()]) == forms[1]) == (kind == "number")


def test_a_set_with_room_for_more(subject: Any) -> None:
    subject.SET.add(2)
    reader = heap()
    before = state(reader, roots_of(subject))

    subject.SET.update(range(100))
    subject.SET.difference_update(range(100))
    subject.SET.update((1, 2))

    assert is_seen(reader, before, roots_of(subject))


def test_what_moves_in_c_is_seen(subject: Any) -> None:
    lasting = {"step": subject.counting}
    reader = heap()
    before = state(reader, lasting)

    next(subject.COUNTED)

    assert is_seen(reader, before, lasting)


def test_what_moves_to_another_slot_is_seen(subject: Any) -> None:
    lasting = {"step": subject.slotted}
    reader = heap()
    before = state(reader, lasting)

    subject.SLOTTED.second = subject.SLOTTED.first
    del subject.SLOTTED.first

    assert is_seen(reader, before, lasting)


def test_what_is_ignored_is_ignored_each_time(subject: Any) -> None:
    reader = Heap(FollowedScope(SCOPE.packages, ("registry.hits",)), fixed=True)
    registry = subject.Other()
    forms = set()
    for turn in range(3):
        registry.hits = turn
        forms.add(told(reader, subject, registry).exact)
    assert len(forms) == 1


def test_roots_that_differ_are_seen(subject: Any) -> None:
    first = {"step": subject.function}
    for other in (
        {"step": subject.late},
        {"use": subject.function},
        {"step": subject.function, "use": subject.late},
    ):
        reader = heap()
        assert is_seen(reader, state(reader, first), other)


def test_what_the_registry_shares_with_a_step_is_one_object(subject: Any) -> None:
    reader = heap()
    shared = [told(reader, subject, [subject.NAMES]) for _ in range(3)]
    equal = [told(reader, subject, [list(subject.NAMES)]) for _ in range(3)]

    assert len({form.exact for form in shared}) == 1
    assert len({form.exact for form in equal}) == 1
    assert shared[0] != equal[0]


@pytest.mark.parametrize("watcher", ["weak reference", "finalizer", "set of weak ones"])
def test_what_could_be_noticed_is_not_kept_alive(subject: Any, watcher: str) -> None:
    ended: list[str] = []
    mortal = Thing()
    subject.INSTANCE.held = mortal
    reader = heap()
    told(reader, subject)
    seen: object = weakref.ref(mortal)
    if watcher == "finalizer":
        seen = weakref.finalize(mortal, ended.append, "ended")
    elif watcher == "set of weak ones":
        seen = weakref.WeakSet([mortal])
    reference = weakref.ref(mortal)
    told(reader, subject, seen)

    del subject.INSTANCE.held, mortal

    assert reference() is None


def test_what_says_how_it_ends_is_not_kept_alive(subject: Any) -> None:
    ended: list[str] = []
    subject.INSTANCE.held = Mortal()
    subject.INSTANCE.held.ended = ended
    reader = heap()
    told(reader, subject)

    del subject.INSTANCE.held

    assert ended == ["ended"]


def capsule(destructor: Any = None) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.argtypes, new.restype = [ctypes.c_void_p] * 3, ctypes.py_object
    return new(
        1, None, ctypes.cast(destructor, ctypes.c_void_p) if destructor else None
    )


@pytest.mark.parametrize("held", [capsule(), NotImplemented])
def test_a_class_that_holds_what_owns_memory_only_is_described_once(
    held: object, subject: Any
) -> None:
    """Each form described every method of 40 classes of tensors."""
    subject.Kind.held = held
    reader = heap()
    state(reader, roots_of(subject))
    assert reader._fixed is not None
    assert not any(each is subject.Kind for each in reader._fixed.deferred)


def test_a_capsule_with_a_destructor_is_not_kept_alive(subject: Any) -> None:
    ended: list[str] = []
    destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda _: ended.append("e"))
    subject.INSTANCE.held = capsule(destructor)
    reader = heap()
    told(reader, subject)

    del subject.INSTANCE.held

    assert ended == ["e"]


def test_nothing_is_kept_alive_once_it_is_forgotten(subject: Any) -> None:
    subject.INSTANCE.held = Thing()
    reference = weakref.ref(subject.INSTANCE.held)
    reader = heap()
    told(reader, subject)

    del subject.INSTANCE.held
    reader.forget()
    gc.collect()

    assert reference() is None


def test_answers_of_an_abstract_class_are_state_and_the_class_stays_fixed(
    subject: Any,
) -> None:
    """Each class that answered was described again in each form, with all of it."""
    reader = heap()
    before = state(reader, roots_of(subject))

    issubclass(subject.Other, subject.Hooked)
    answered = reader.form({}, roots_of(subject))
    issubclass(subject.Kind, subject.Hooked)
    both = reader.form({}, roots_of(subject))
    reader.empty_caches()

    assert len({before, answered, both}) == 3
    assert both.objects < before.objects + 5
    assert reader.form({}, roots_of(subject)) == before


def test_which_classes_are_registered_is_state(subject: Any) -> None:
    """A fixed part was built without any, and then with one or the other."""
    seen = []
    for kind in (subject.Other, subject.Made):
        abstract = abc.ABCMeta("Abstract", (), {"__module__": NAME})
        subject.Abstract = abstract
        reader = heap()
        abstract.register(kind)
        seen.append(state(reader, roots_of(subject)))
    assert seen[0] != seen[1]


def test_kinds_of_objects_that_nothing_changes_are_held_and_not_compared(
    subject: Any,
) -> None:
    constant: Any = (range(8), [1].append, list[int], int | str, (1, []), slice(1, 2))
    detector = ChangeDetector([subject.NAMES, *constant, *constant[4]])
    assert detector.unchanged()
    constant[4][1].append(1)
    assert detector.changed() == [constant[4][1]]


def test_the_plan_of_a_class_ends_with_the_class(subject: Any) -> None:
    """A plan of an instance in one form serves the next ones."""
    reader = heap()
    roots = roots_of(subject)
    one, other = subject.Slotted(), subject.Slotted()
    one.first = other.first = 1
    other.second = 2
    first = state(reader, roots, {"registry": one})
    assert reader.form({"registry": one}, roots) == first
    assert reader.form({"registry": other}, roots) != first
    assert reader.is_complete
    # From now on a slot is unknown.
    subject.Slotted.__slots__ = ("first",)
    state(reader, roots, {"registry": other})
    assert not reader.is_complete


def test_a_weak_reference_is_met_in_each_form(subject: Any) -> None:
    subject.Reference = type(
        "Reference", (weakref.ref,), {"__module__": NAME, "__qualname__": "Reference"}
    )
    subject.CALLED.append(subject.Reference)
    reader, roots = heap(), roots_of(subject)
    assert not state(reader, roots).weak
    for _ in range(3):
        reference = subject.Reference(subject.Other)
        assert reader.form({"registry": [reference]}, roots).weak
        assert not reader.form({}, roots).weak
