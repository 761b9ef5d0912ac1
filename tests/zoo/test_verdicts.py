"""The judge complains of what is wrong, and of nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from everyorder.harness import Exploration, Report, Violation
from tests.zoo.behaviours import Again, CellModel, Mirror, Pattern
from tests.zoo.entry import Entry, Living
from tests.zoo.verdicts import examine, judge, known

STICKS = Pattern(((0, True), (1, True), (1, False)), sticks=True, unless=0)
FAULTY = CellModel(STICKS, 2, (0,), "look")
SOUND = CellModel(Mirror((1, 1), 2), 2, (0,), "look")


def entry(model: CellModel, **more: Any) -> Entry:
    def build(name: str) -> Living:
        raise AssertionError("only its report is judged")

    return Entry("class", 0, "variant", model, build, **more)


def report(
    *violations: Violation, complete: bool = True, proven: bool = False
) -> Report:
    exploration = Exploration(
        strategy="auto",
        guarantee="",
        assumptions=(),
        skipped=(),
        states={},
        failures={},
        executed=None,  # type: ignore[arg-type]  # nobody asks
        planned=0,
        violations=violations,
        complete=complete,
        seconds=0.0,
        proven=proven,
    )
    return Report("name", ("a", "b"), ("use",), None, exploration, "")


def violation(kind: Any, *shortest: int, shorter: bool = True) -> Violation:
    return Violation(
        kind,
        (),
        "expected",
        "found",
        shortest,
        shortest=shortest,
        proven_shortest=not shorter,
    )


PROVEN, HOLDS = report(proven=True), report()
CUT = report(complete=False)
ORDER = report(violation("order", 0, 1, 1, 0))
FLAKY = report(violation("nondeterminism", 0))
STALE = report(replace(violation("not fresh"), paths=("Registry.table: {} / {1}",)))

TOLD = {
    "faulty, proven": (entry(FAULTY), PROVEN, ["wrong: faulty, called proven"]),
    "faulty, holds": (entry(FAULTY), HOLDS, ["wrong: faulty, called holds"]),
    "faulty, cut short": (entry(FAULTY), CUT, ["open: faulty, called cut short"]),
    "faulty, order": (entry(FAULTY), ORDER, []),
    "faulty, flaky": (entry(FAULTY), FLAKY, ["wrong: faulty, called nondeterminism"]),
    "faulty, not fresh": (entry(FAULTY), STALE, ["wrong: faulty, called not fresh"]),
    "sound, proven": (entry(SOUND), PROVEN, []),
    "sound, holds": (entry(SOUND), HOLDS, ["open: correct, called holds"]),
    "sound, order": (
        entry(SOUND),
        ORDER,
        ["wrong: correct, called order", "wrong: nothing is seen in (0, 1, 1, 0)"],
    ),
    "sound, flaky": (entry(SOUND), FLAKY, ["wrong: correct, called nondeterminism"]),
    "flaky, flaky": (entry(SOUND, rate=0.01), FLAKY, []),
    "flaky, cut short": (entry(SOUND, rate=0.5), CUT, []),
    "flaky, holds": (entry(SOUND, rate=0.01), HOLDS, []),
    "often flaky, holds": (
        entry(SOUND, rate=0.5),
        HOLDS,
        ["wrong: flaky, called holds"],
    ),
    "flaky, order": (entry(SOUND, rate=0.5), ORDER, ["wrong: flaky, called order"]),
    "flaky, proven": (entry(SOUND, rate=0.01), PROVEN, ["wrong: flaky, called proven"]),
    "opaque and sound, holds": (entry(SOUND, seal="opaque"), HOLDS, []),
    "opaque and faulty, proven": (
        entry(FAULTY, seal="opaque"),
        PROVEN,
        ["wrong: faulty, called proven"],
    ),
    "opaque, faulty after four operations, holds": (
        entry(FAULTY, seal="opaque"),
        HOLDS,
        [],
    ),
    "opaque, faulty after three operations, holds": (
        entry(CellModel(Again(0, 2), 2, (), "look"), seal="opaque"),
        HOLDS,
        ["wrong: faulty, called holds"],
    ),
    "process, not fresh": (entry(FAULTY, seal="process"), STALE, []),
    "process, order": (
        entry(FAULTY, seal="process"),
        ORDER,
        ["wrong: not fresh, called order"],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_said_of_a_verdict(name: str) -> None:
    one, found, complaints = TOLD[name]
    assert judge(one, found) == complaints


def test_a_bounded_strategy_may_find_nothing() -> None:
    assert judge(entry(FAULTY), HOLDS, bounded=True) == []
    assert judge(entry(SOUND), HOLDS, bounded=True) == []
    assert judge(entry(FAULTY), PROVEN, bounded=True) != []


def test_no_shorter_is_held_against_the_same_operations() -> None:
    longer = violation("order", 0, 1, 1, 0, 3, shorter=False)
    assert judge(entry(FAULTY), report(longer)) == [
        "wrong: (0, 1, 1, 0, 3) is said to be shortest, and (0, 1, 1, 0) is shorter"
    ]
    unsaid = violation("order", 0, 1, 1, 0, 3)
    assert judge(entry(FAULTY), report(unsaid)) == []
    shortest = violation("order", 0, 1, 1, 0, shorter=False)
    assert judge(entry(FAULTY), report(shortest)) == []


def test_nothing_is_seen_in_a_history_that_has_no_fault() -> None:
    assert judge(entry(FAULTY), report(violation("order", 1, 0))) == [
        "wrong: nothing is seen in (1, 0)"
    ]


@pytest.mark.parametrize("seal", ["", "process"])
def test_not_fresh_without_a_difference_is_wrong(seal: str) -> None:
    """Systems were called not fresh, and the list of differences was empty."""
    empty = report(violation("not fresh"))
    one = entry(FAULTY, seal=seal)
    added = ["wrong: called not fresh, without a difference"]
    assert judge(one, empty) == judge(one, STALE) + added


def test_what_is_decidable() -> None:
    assert known(entry(SOUND)).decidable
    assert not known(entry(SOUND, seal="outside")).decidable
    assert not known(entry(SOUND, rate=0.5)).decidable
    silent = CellModel(STICKS, 2, (), "nowhere")
    assert known(entry(silent, seal="process")).expected == "harmless"


def test_what_cannot_be_asked_is_told() -> None:
    def build(name: str) -> Living:
        return Living(dict, lambda registry: 3, (("a", lambda registry: dict),), ())

    judged = examine(Entry("class", 0, "", SOUND, build))
    assert judged.has("open")
    assert not judged.has("wrong")
