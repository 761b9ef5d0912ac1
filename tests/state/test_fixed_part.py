"""What all states share is described once, and equal forms are still equal states."""

import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from everyorder.harness import explore
from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine.protocol import StateForm
from everyorder.harness.state import FollowedScope, Heap
from tests.zoo.entry import Entry
from tests.zoo.registries import CLASSES, SEEDS_TEST, entries

NAME = "fixed_part_subject"
SOURCE = """
import weakref

TABLE = {}
LATEST = None
PARTS = weakref.WeakValueDictionary()

class Part:
    pass

class Kind:
    count = 0
    part = None

    def read(self):
        return LATEST, TABLE, PARTS, helper()

def helper():
    return Part
"""


@pytest.fixture
def subject() -> Iterator[Any]:
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    exec(SOURCE, module.__dict__)  # its own source
    yield module
    del sys.modules[NAME]


def heap() -> Heap:
    return Heap(FollowedScope(frozenset({NAME})), fixed=True)


def form(reader: Heap, subject: Any, registry: object = None) -> StateForm:
    return reader.form({"registry": registry}, {"class": subject.Kind})


def settled(reader: Heap, subject: Any, registry: object = None) -> StateForm:
    """Return the form once everything that changed has left the fixed part."""
    for _ in range(8):
        try:
            return form(reader, subject, registry)
        except ExplorationRestart:
            continue
    raise AssertionError("it restarts for ever")


def test_only_what_is_not_fixed_is_described_again(subject: Any) -> None:
    reader = heap()
    whole = Heap(FollowedScope(frozenset({NAME})))

    cost = form(reader, subject).objects

    assert cost < form(whole, subject).objects
    assert form(reader, subject) == form(reader, subject)


def replace_global(subject: Any) -> None:
    subject.LATEST = [1]


def change_global(subject: Any) -> None:
    subject.TABLE["a"] = 1


def count(subject: Any) -> None:
    subject.Kind.count += 1


def add_method(subject: Any) -> None:
    subject.Kind.more = lambda self: 1


def replace_code(subject: Any) -> None:
    subject.helper.__code__ = (lambda: None).__code__


def set_attribute(subject: Any) -> None:
    subject.helper.hook = True


def set_default(subject: Any) -> None:
    subject.helper.__defaults__ = (1,)


def add_subclass(subject: Any) -> None:
    subject.Kind.kept = type("Below", (subject.Kind,), {"__module__": NAME})


CHANGES = (
    replace_global,
    change_global,
    count,
    add_method,
    replace_code,
    set_attribute,
    set_default,
    add_subclass,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_fixed_part_restarts_and_is_state_from_then_on(
    change: Any, subject: Any
) -> None:
    reader = heap()
    form(reader, subject)

    change(subject)

    with pytest.raises(ExplorationRestart) as restart:
        form(reader, subject)
    assert restart.value.code == "PartsChanged"
    now = settled(reader, subject)
    assert now == form(reader, subject)


class Lazy(types.ModuleType):
    """A module whose class has state, as in packages that load names late."""

    __slots__ = ("place",)

    @property
    def mode(self) -> object:
        return self.place


class Eager(Lazy):
    """Another class of modules with the same layout."""

    __slots__ = ()


@pytest.fixture
def lazy(subject: Any) -> Iterator[Any]:
    """Return a module of a subclass, which the subject holds."""
    module: Any = Lazy(f"{NAME}.lazy")
    subject.LATEST = module
    module.place, module.rows = 1, [[number] for number in range(50)]
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def test_a_module_of_a_subclass_is_described_once(subject: Any, lazy: Any) -> None:
    reader = heap()
    form(reader, subject)
    assert form(reader, subject).objects < len(lazy.rows)


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (lambda m: setattr(m, "place", 2), lambda m: setattr(m, "place", 1)),
        (lambda m: setattr(m, "name", 2), lambda m: delattr(m, "name")),
        (lambda m: m.rows[0].append(1), lambda m: m.rows[0].pop()),
        (
            lambda m: setattr(m, "__class__", Eager),
            lambda m: setattr(m, "__class__", Lazy),
        ),
    ],
    ids=["slot", "name", "value", "class"],
)
def test_each_change_of_a_module_of_a_subclass_is_state(
    there: Any, back: Any, subject: Any, lazy: Any
) -> None:
    reader = heap()
    form(reader, subject)
    there(lazy)
    with pytest.raises(ExplorationRestart):
        form(reader, subject)
    settled(reader, subject)
    back(lazy)
    one = settled(reader, subject)
    there(lazy)
    assert settled(reader, subject) != one
    back(lazy)
    assert settled(reader, subject) == one


def test_a_new_name_of_a_module_leaves_its_other_names_fixed(
    subject: Any, lazy: Any
) -> None:
    """The names of a registry's module change with each registration."""
    reader = heap()
    form(reader, subject)
    lazy.first = [1]
    with pytest.raises(ExplorationRestart):
        form(reader, subject)
    one = settled(reader, subject)
    lazy.second = [2]
    two = form(reader, subject)
    assert (one.objects, two.objects) < (10, 10)
    assert one != two
    del lazy.second
    assert form(reader, subject) == one
    del lazy.first
    assert settled(reader, subject) != one


def test_the_fixed_part_ignores_a_name_of_a_module(subject: Any) -> None:
    subject.TABLE.update({number: [number] for number in range(50)})
    subject.LATEST = 1
    scope = FollowedScope(frozenset({NAME}), (f"{NAME}.LATEST",))
    reader = Heap(scope, fixed=True)
    form(reader, subject)
    subject.LATEST = 2  # it leaves the fixed part, as what changes does
    first = settled(reader, subject)
    assert first.objects < len(subject.TABLE)
    subject.LATEST = 3
    assert form(reader, subject) == first
    subject.TABLE[0].append(1)
    with pytest.raises(ExplorationRestart):
        form(reader, subject)


@pytest.mark.parametrize("path", [f"{NAME}.Kind.count", "*.count", "registry.count"])
def test_an_ignored_attribute_is_left_out_with_a_fixed_part(
    path: str, subject: Any
) -> None:
    """Where only a whole walk knows the path, nothing is fixed."""
    scope = FollowedScope(frozenset({NAME}), (path,))
    whole, reader = Heap(scope), Heap(scope, fixed=True)
    registry = types.SimpleNamespace(count=1)
    changes: tuple[Callable[[], None], ...] = (
        lambda: None,
        lambda: setattr(subject.Kind, "count", 1),
        lambda: setattr(registry, "count", 2),
    )
    for change in changes:
        before = [form(whole, subject, registry), settled(reader, subject, registry)]
        change()
        after = [form(whole, subject, registry), settled(reader, subject, registry)]
        assert (before[0] == after[0]) == (before[1] == after[1])


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (lambda s: s.TABLE.update(a=1), lambda s: s.TABLE.clear()),
        (lambda s: setattr(s, "LATEST", [1]), lambda s: setattr(s, "LATEST", None)),
        (lambda s: setattr(s.Kind, "count", 1), lambda s: setattr(s.Kind, "count", 0)),
        (lambda s: setattr(s.helper, "hook", 1), lambda s: delattr(s.helper, "hook")),
    ],
    ids=["dict", "global", "class", "function"],
)
def test_what_changes_back_has_the_first_form_again(
    there: Any, back: Any, subject: Any
) -> None:
    reader = heap()
    form(reader, subject)
    there(subject)
    with pytest.raises(ExplorationRestart):
        form(reader, subject)
    back(subject)

    first = settled(reader, subject)
    there(subject)
    second = form(reader, subject)
    back(subject)

    assert second != first
    assert form(reader, subject) == first


def test_new_objects_in_each_system_have_one_form(subject: Any) -> None:
    reader = heap()
    forms = set()
    for number in range(12):
        subject.LATEST = {"made": [subject.Part(), lambda: subject]}
        subject.Kind.part = subject.Part()
        forms.add(settled(reader, subject))
        if number == 5:
            forms.clear()

    assert len(forms) == 1


def test_a_target_of_a_weak_reference_is_not_held(subject: Any) -> None:
    subject.LATEST = [subject.Part()]
    subject.PARTS["one"] = subject.LATEST[0]
    watch = weakref.ref(subject.LATEST[0])
    reader = heap()
    settled(reader, subject)

    subject.LATEST = None

    assert watch() is None


def test_what_closes_when_it_is_freed_is_not_held(subject: Any) -> None:
    ended: list[str] = []

    def suspended() -> Iterator[int]:
        try:
            yield 1
        finally:
            ended.append("ended")

    subject.TABLE["running"] = suspended()
    next(subject.TABLE["running"])
    settled(reader := heap(), subject)

    subject.TABLE.clear()

    assert ended == ["ended"]
    assert reader is not None


def agreeing(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many forms of an exploration agree with those of whole walks.

    Two forms that were made with one fixed part are equal if and only if the forms of
    whole walks are.
    """
    original = Heap.form
    by_fixed: dict[tuple[int, bytes], bytes] = {}
    by_whole: dict[tuple[int, bytes], bytes] = {}
    parts: list[object] = []
    times = 0

    def both(
        reader: Heap,
        roots: Mapping[str, object],
        lasting: Mapping[str, object] = MappingProxyType({}),
    ) -> StateForm:
        nonlocal times
        result = original(reader, roots, lasting)
        part = reader._fixed
        if part is None or not lasting or result.exact == b"":
            return result
        times += 1
        if not any(each is part for each in parts):
            parts.append(part)
        number = next(at for at, each in enumerate(parts) if each is part)
        anew = Heap(reader.scope)
        whole = original(anew, roots, lasting)
        assert by_fixed.setdefault((number, result.exact), whole.exact) == whole.exact
        assert by_whole.setdefault((number, whole.exact), result.exact) == result.exact
        assert result.weak == whole.weak
        return result

    monkeypatch.setattr(Heap, "form", both)
    with entry.living() as living:
        explore(living.scenario(entry.name))
    monkeypatch.undo()
    return times


@pytest.mark.parametrize("kind", [*CLASSES][::13])
def test_equal_forms_are_equal_states(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = entries([1], kind)
    assert agreeing(entry, monkeypatch) > 0


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, marks=pytest.mark.nightly if place % 12 else pytest.mark.slow
        )
        for place, kind in enumerate(CLASSES)
    ],
)
def test_equal_forms_are_equal_states_in_all_of_the_zoo(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for entry in entries([*SEEDS_TEST[:2]], kind):
        agreeing(entry, monkeypatch)


def test_an_ignored_name_that_only_a_later_state_reaches_is_named(subject: Any) -> None:
    """The walk from the fixed part left it out, and no caveat said so."""
    exec("HITS = [0]\ndef late(): return HITS", vars(subject))
    scope = FollowedScope(frozenset({NAME}), ignore=(f"{NAME}.HITS",))
    reader = Heap(scope, fixed=True)
    before = settled(reader, subject)
    assert (form(reader, subject), reader.caveats()) == (before, ())
    form(reader, subject, subject.late)
    assert [each.text for each in reader.caveats()] == [f"{NAME}.HITS is ignored"]


def test_as_many_unread_sets_at_other_paths_are_named(subject: Any) -> None:
    """A state with a set at another path had no more of them than one before."""
    reader = heap()
    settled(reader, subject)
    for registry in ([{1, 2}, set()], [set(), {1, 2}]):
        form(reader, subject, registry)
    assert [each.text for each in reader.caveats()] == [
        "the order of a set of 2 or more (registry[0], registry[1]) is not read"
    ]


def test_the_paths_of_unread_sets_are_limited(
    subject: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everyorder.harness.state.heap._MOST_NOTED_AGAIN", 0)
    reader = heap()
    settled(reader, subject)
    for registry in ([{1, 2}, set()], [set(), {1, 2}]):
        form(reader, subject, registry)
    assert [each.text for each in reader.caveats()] == [
        "the order of a set of 2 or more (registry[0] and perhaps more) is not read"
    ]
