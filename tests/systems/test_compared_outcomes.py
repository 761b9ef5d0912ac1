"""What of an answer and of an exception is compared, by scenarios.

Each registry is right but for one thing: the last step that was done decides what an
answer or an exception carries.  The twin decides it by the active steps.
"""

import _queue
import ctypes
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, step, use


class Formats:
    """Two formats, and which of them was added last."""

    def __init__(self) -> None:
        self.json = self.text = False
        self.newest = "none"

    def add(self, name: str) -> Callable[[], None]:
        setattr(self, name, True)
        self.newest = name
        return lambda: setattr(self, name, False)


def scenario_of(outcome: Callable[[str], Any], *, right: bool) -> Scenario:
    """Return a scenario whose use has an outcome by the last step, or by the active."""

    def find(formats: Formats) -> Any:
        if not (formats.json and formats.text):
            return "none"
        return outcome("text" if right else formats.newest)

    return Scenario(
        step("add(json)", lambda formats: formats.add("json")),
        step("add(text)", lambda formats: formats.add("text")),
        uses=[use("find", find)],
        create=Formats,
        observe=lambda formats: f"{formats.json} {formats.text}",
    )


class Handler:
    """One of two handlers that are alike."""

    def run(self) -> None:
        """Handle."""


class Level(Enum):
    """One of two members."""

    JSON = 1
    TEXT = 2


class Failed(LookupError):
    """An exception with an attribute."""

    def __init__(self, message: str, **attributes: object) -> None:
        super().__init__(message)
        vars(self).update(attributes)


class Slotted(Exception):
    """An exception with a slot."""

    __slots__ = ("best",)


def made(base: type[BaseException]) -> type[Exception]:
    """Return a class with a name that others have, too."""
    return type("PluginError", (base, Exception), {"__module__": __name__})


def factory() -> Callable[[], None]:
    """Return one of two functions that are alike."""
    return lambda: None


JSON_HANDLER, TEXT_HANDLER = Handler(), Handler()
MISSING, EMPTY = object(), object()
FIRST, SECOND = factory(), factory()
BY_BASE = {"json": made(OSError), "text": made(LookupError)}


def chosen(json: Any, text: Any) -> Callable[[str], Any]:
    """Return the function that answers with one of two values."""
    return lambda name: json if name == "json" else text


def raising(error: Callable[[str], BaseException]) -> Callable[[str], Any]:
    """Return the function that raises an error by a name."""

    def function(name: str) -> Any:
        raise error(name)

    return function


def local_member() -> object:
    """Return a member of an enumeration that no module knows."""

    class Local(Enum):
        ONE = 1

    return Local.ONE


def slotted(name: str) -> Slotted:
    error = Slotted("no")
    setattr(error, "best", name)  # noqa: B010  # it has no annotation
    return error


def noted(name: str) -> ValueError:
    error = ValueError("no")
    error.add_note(name)
    return error


class Several(ExceptionGroup[Exception]):
    """A group that is made by other arguments."""

    def __new__(cls, members: list[Exception], code: int) -> "Several":
        return super().__new__(cls, "failed", members)


class Ending(BaseException):
    """An exception that is not an `Exception`."""


class Silent(OSError):
    """An exception whose text does not show its arguments."""

    def __str__(self) -> str:
        return "failed"


class Slotless:
    """Instances without attributes and weak references."""

    __slots__ = ()


LEFT, RIGHT = Slotless(), Slotless()


def ending(name: str) -> Ending:
    error = Ending("no")
    vars(error)["best"] = name
    return error


NAMED = {
    "an instance without weak references": chosen(LEFT, RIGHT),
    "a sentinel": chosen(MISSING, EMPTY),
    "an instance": chosen(JSON_HANDLER, TEXT_HANDLER),
    "an instance in a list": chosen([JSON_HANDLER], [TEXT_HANDLER]),
    "a bound method": chosen(JSON_HANDLER.run, TEXT_HANDLER.run),
    "a function of a factory": chosen(FIRST, SECOND),
}
ERRORS: dict[str, Callable[[str], BaseException]] = {
    "an attribute": lambda name: Failed("no", best=name),
    "a list in an attribute": lambda name: Failed("no", best=[name, 1]),
    "a dict in an attribute": lambda name: Failed("no", best={name: {name}}),
    "a member of an enumeration": lambda name: Failed("no", best=Level[name.upper()]),
    "a class": lambda name: Failed("no", best=int if name == "json" else str),
    "a function": lambda name: Failed("no", best=noted if name == "json" else slotted),
    "a slot": slotted,
    "a note": noted,
    "a number as a text": lambda name: ValueError(1 if name == "json" else "1"),
    "the order of members": lambda name: ExceptionGroup(
        "no", [ValueError(each) for each in sorted(("json", "text"), key=name.__eq__)]
    ),
    "an attribute of a member": lambda name: ExceptionGroup(
        "no", [Failed("no", best=name)]
    ),
    "a member of a group with its own arguments": lambda name: Several(
        [ValueError(name)], 5
    ),
    "an attribute of what is not an Exception": ending,
    "a list or a tuple": lambda name: Failed(
        "no", best=[1] if name == "json" else (1,)
    ),
    "a class or its text": lambda name: Failed(
        "no", best=int if name == "json" else "<class 'int'>"
    ),
    "an argument that the text does not show": lambda name: Silent(2, name),
    "the object of a UnicodeDecodeError": lambda name: UnicodeDecodeError(
        "ascii", name.encode(), 0, 1, "no"
    ),
    "the name of an ImportError": lambda name: ImportError("no", name=name),
    "a class of the same name": lambda name: BY_BASE[name]("no"),
    "a short address": lambda name: ValueError(
        f"a device at 0x{'40' if name == 'json' else '48'}"
    ),
    "the text of a RecursionError": lambda name: RecursionError(f"{name} calls itself"),
    "the text of a MemoryError": lambda name: MemoryError(f"pool {name} is full"),
}


@pytest.mark.parametrize("what", NAMED)
def test_which_of_two_alike_objects_is_the_answer_counts(what: str) -> None:
    report = explore(scenario_of(NAMED[what], right=False))
    assert report.verdict == "order"
    right = explore(scenario_of(NAMED[what], right=True))
    assert (right.verdict, right.exploration.caveats) == ("proven", ())


@pytest.mark.parametrize("what", ERRORS)
def test_what_an_error_carries_counts(what: str) -> None:
    report = explore(scenario_of(raising(ERRORS[what]), right=False))
    assert report.verdict == "order"
    right = explore(scenario_of(raising(ERRORS[what]), right=True))
    assert (right.verdict, right.exploration.caveats) == ("proven", ())


def test_the_report_shows_what_an_error_carries() -> None:
    report = explore(scenario_of(raising(ERRORS["an attribute"]), right=False))
    violation = report.exploration.violations[0]
    sides: Any = violation.expected, violation.found
    shown = {str(dict(fields)["with"]) for fields in sides}
    assert shown == {"{'best': 'json'}", "{'best': 'text'}"}


def test_an_object_that_an_error_carries_is_an_assumption() -> None:
    def refuse(name: str) -> Failed:
        return Failed("no", registry=SimpleNamespace(name=name), path="a")

    for right in (False, True):
        exploration = explore(scenario_of(raising(refuse), right=right)).exploration
        assert exploration.proven
        assert [each.text for each in exploration.caveats] == [
            "what an error carries (Failed.registry) is not compared"
        ]


@pytest.mark.parametrize(
    "made_by",
    [
        lambda name: factory(),
        lambda name: local_member(),
        lambda name: type("Local", (), {}),
        lambda name: {Handler(): 1},
        lambda name: [0] * 100_000,
    ],
    ids=["function", "member", "class", "key", "long"],
)
def test_what_no_module_knows_by_name_is_an_assumption(
    made_by: Callable[[str], Any],
) -> None:
    def refuse(name: str) -> Failed:
        return Failed("no", best=made_by(name))

    exploration = explore(scenario_of(raising(refuse), right=True)).exploration
    assert exploration.proven
    assert [each.text for each in exploration.caveats] == [
        "what an error carries (Failed.best) is not compared"
    ]


def test_the_order_in_which_attributes_were_set_does_not_count() -> None:
    def refuse(name: str) -> Failed:
        best, path = ("best", name == ""), ("path", 1)
        return Failed("no", **dict([best, path] if name == "json" else [path, best]))

    report = explore(scenario_of(raising(refuse), right=False))
    assert (report.verdict, report.exploration.caveats) == ("proven", ())


def test_an_error_that_cannot_be_read_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exception of the reader was the outcome, and the same each time."""

    def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("everyorder.harness.systems.carried.CarriedData.shown", fail)
    report = explore(scenario_of(raising(noted), right=False))
    assert report.verdict == "holds"
    (remark,) = [e.text for e in report.exploration.caveats if e.kind == "opaque"]
    assert remark.startswith("what a ValueError carries (reading it raised Zero")


def test_an_address_in_a_text_or_an_argument_does_not_count() -> None:
    def refuse(name: str) -> Failed:
        return Failed(f"no {object()!r}", best=repr(object()))

    report = explore(scenario_of(raising(refuse), right=True))
    assert (report.verdict, report.exploration.caveats) == ("proven", ())


def test_the_end_of_recursion_is_one_outcome() -> None:
    def endless(name: str) -> Any:
        return endless(name) if name else len(repr(endless(name)))

    assert explore(scenario_of(endless, right=True)).verdict == "proven"


def queue_of(name: str) -> Any:
    queue: Any = _queue.SimpleQueue()
    queue.put(name)
    return queue


@pytest.mark.parametrize(
    "outcome",
    [
        queue_of,
        ElementTree.Element,
        lambda name: [ElementTree.Element(name)],
        lambda name: ctypes.c_int(name == "json"),
    ],
)
def test_an_answer_that_cannot_be_read_is_not_proven(
    outcome: Callable[[str], Any],
) -> None:
    report = explore(scenario_of(outcome, right=False))
    assert report.verdict == "holds"
    (remark,) = [e.text for e in report.exploration.caveats if e.kind == "opaque"]
    assert "(the answer" in remark
