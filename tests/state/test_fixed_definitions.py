"""What must not be held refers to classes and functions, which are described once."""

import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine.protocol import StateForm
from everyorder.harness.state import FollowedScope, Heap

NAME = "fixed_definitions_subject"
SCOPE = FollowedScope(frozenset({NAME}))
SOURCE = """
class Only:
    value = 0

class OfInstance:
    value = 0

class Freed:
    kind = OfInstance

    def __init__(self):
        self.made = OfInstance()

    def __del__(self):
        pass

def guarded(held=Freed()):
    return Only

class Kind:
    guarded = guarded
    held = Freed()
"""
METHODS = "\n".join(f"    def method_{n}(self): return {n}" for n in range(100))


def loaded(source: str) -> types.ModuleType:
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    exec(source, module.__dict__)  # its own source
    return module


@pytest.fixture
def subject() -> Iterator[Any]:
    yield loaded(SOURCE)
    del sys.modules[NAME]


def form(reader: Heap, subject: Any) -> StateForm:
    return reader.form({"registry": None}, {"class": subject.Kind})


def settled(reader: Heap, subject: Any) -> StateForm:
    """Return the form once everything that changed has left the fixed part."""
    for _ in range(8):
        try:
            return form(reader, subject)
        except ExplorationRestart:
            continue
    raise AssertionError("it restarts for ever")


@pytest.mark.parametrize("kind", ["Only", "OfInstance"])
def test_a_class_that_only_such_an_object_reaches_is_described_once(kind: str) -> None:
    """Each form described the parser of omegaconf, and the models of Django."""
    sizes = []
    for more in ("", METHODS):
        subject = loaded(SOURCE.replace(f"{kind}:\n", f"{kind}:\n{more}\n"))
        sizes.append(form(Heap(SCOPE, fixed=True), subject).objects)
    del sys.modules[NAME]
    assert sizes[0] == sizes[1]


@pytest.fixture
def rows(subject: Any) -> Iterator[Any]:
    """Yield the subject of an exploration; what it refers to is older than that."""

    def with_rows(count: int) -> Any:
        subject.Kind.held.rows = [[n, {n: []}] for n in range(count)]
        gc.collect()
        gc.freeze()
        return subject

    yield with_rows
    gc.unfreeze()


@pytest.mark.parametrize("count", [1, 100])
def test_what_is_older_is_described_once(count: int, rows: Any) -> None:
    """Each form of torch.library described 10,000 such objects."""
    subject = rows(count)
    reader = Heap(SCOPE, fixed=True)
    assert form(reader, subject).objects < 20


def test_a_change_of_what_is_older_is_state(rows: Any) -> None:
    subject = rows(9)
    reader = Heap(SCOPE, fixed=True)
    form(reader, subject)
    row = subject.Kind.held.rows[4][1][4]
    row.append(1)
    with pytest.raises(ExplorationRestart):
        form(reader, subject)
    second = settled(reader, subject)
    row.clear()
    first = form(reader, subject)
    subject.Kind.held.rows.reverse()
    third = settled(reader, subject)
    assert len({first, second, third}) == 3


def test_what_must_not_be_held_below_it_is_not_held(rows: Any) -> None:
    subject = rows(9)
    subject.Kind.held.rows[4][1][4].append(subject.Freed())
    reader = Heap(SCOPE, fixed=True)
    form(reader, subject)
    watches = [weakref.ref(subject.Kind.held), weakref.ref(row := subject.Freed())]
    subject.Kind.held.rows[3][1][3].append(row)
    del row
    settled(reader, subject)
    subject.Kind.held = subject.guarded.__defaults__ = None
    assert [watch() for watch in watches] == [None, None]


def replace_code(subject: Any) -> None:
    subject.guarded.__code__ = (lambda held=None: [held]).__code__


def restore_code(subject: Any) -> None:
    code = compile("def guarded(held=None):\n return Only", "guarded", "exec")
    (own,) = (each for each in code.co_consts if type(each) is types.CodeType)
    subject.guarded.__code__ = own


def rebind(subject: Any) -> None:
    subject.Only = subject.OfInstance


def set_value(of: str, value: int) -> Callable[[Any], None]:
    return lambda subject: setattr(getattr(subject, of), "value", value)


@pytest.mark.parametrize(
    ("there", "back"),
    [
        (set_value("Only", 1), set_value("Only", 0)),
        (set_value("OfInstance", 1), set_value("OfInstance", 0)),
        (replace_code, restore_code),
    ],
    ids=["class of a global", "class of an instance", "code"],
)
def test_a_change_of_them_is_state(
    there: Callable[[Any], None], back: Callable[[Any], None], subject: Any
) -> None:
    reader = Heap(SCOPE, fixed=True)
    back(subject)
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


def test_a_name_that_is_bound_anew_is_state(subject: Any) -> None:
    reader = Heap(SCOPE, fixed=True)
    form(reader, subject)
    rebind(subject)
    with pytest.raises(ExplorationRestart):
        form(reader, subject)
    assert settled(reader, subject) == form(reader, subject)


def test_classes_that_are_made_anew_have_one_form(subject: Any) -> None:
    """Each system has its own class of that name: it is described with the system."""
    reader = Heap(SCOPE, fixed=True)
    forms = set()
    for number in range(12):
        subject.Only = type("Only", (), {"__module__": NAME, "value": [number and 1]})
        subject.Kind.held = subject.Freed()
        forms.add(settled(reader, subject))
        if number == 8:
            forms.clear()
    assert len(forms) == 1


@pytest.mark.parametrize("of", ["function", "its code"])
def test_what_must_not_be_held_is_not_held(of: str, subject: Any) -> None:
    """Its name was resolved, and what a name resolves to was held."""
    if of == "its code":
        subject.Kind.by_code = weakref.WeakKeyDictionary({subject.guarded.__code__: 1})
    reader = Heap(SCOPE, fixed=True)
    settled(reader, subject)
    function = subject.guarded
    watch = weakref.ref(function if of == "function" else function.__code__)
    del function, subject.guarded, subject.Kind.guarded
    assert watch() is None


def test_a_method_that_is_replaced_restarts_once(subject: Any) -> None:
    """It was found by its name again and again, until nothing was fixed any longer."""
    reader = Heap(SCOPE, fixed=True)
    form(reader, subject)
    restarts = 0
    for number in range(12):
        subject.OfInstance = type("OfInstance", (), {"__module__": NAME, "n": number})
        subject.Kind.held = subject.Freed()
        try:
            form(reader, subject)
        except ExplorationRestart:
            restarts += 1
    assert restarts <= 4
    assert reader._changed is not None
    assert not reader._changed.everything
