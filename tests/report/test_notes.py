"""What stands beside verdicts, for all scenarios together."""

import json
from dataclasses import replace

from harness.engine.protocol import Caveat
from harness.engine.result import Closure
from harness.outcome import Report
from harness.report import Noted, noted, told_briefly, told_notes
from tests.report.samples import CUT, HOLDS, ORDER, PINNED, PROVEN, VACUOUS

LEGEND = [
    "proven: for histories of any length, in one thread and one process, if nothing",
    "  tells equal states apart (ids, addresses, orders of sets, clocks, caches of",
    "  the standard library)",
]
QUIET = replace(PROVEN, exploration=replace(PROVEN.exploration, skipped=()))


def sample(
    name: str,
    *,
    unread: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
    opaque: tuple[str, ...] = (),
    skipped: tuple[str, ...] = (),
) -> Report:
    found = replace(
        PROVEN.exploration,
        proven=not opaque,
        skipped=skipped,
        closure=Closure(4, 16, 4, closed=True, unread=unread),
        caveats=(
            *(Caveat("assumed", text) for text in assumed),
            *(Caveat("opaque", text) for text in opaque),
        ),
    )
    return replace(PROVEN, scenario=f"scenarios/test_s/{name}", exploration=found)


def test_nothing_to_note() -> None:
    assert told_notes([]) == []
    assert told_notes([replace(HOLDS, exploration=HOLDS.exploration)]) == []


def test_every_proof_has_its_scope_and_its_assumption() -> None:
    assert told_notes([QUIET]) == LEGEND
    assert told_notes([QUIET, QUIET, HOLDS]) == LEGEND


def test_equal_assumptions_are_told_once_with_their_scenarios() -> None:
    dicts = {"unread": ("registry._items",)}
    reports = [
        sample("first", **dicts),
        sample("second", assumed=("it calls _codecs.register",)),
        sample("third", **dicts),
        sample("fourth", **dicts, assumed=("it calls _codecs.register",)),
        sample("fifth", **dicts),
    ]
    assert told_notes(reports) == [
        *LEGEND,
        "* assumes: the order of registry._items is never read (4 scenarios)",
        "* assumes: it calls _codecs.register (second, fourth)",
    ]


def test_what_is_open_and_what_was_skipped() -> None:
    seen = "closed, except for what a sqlite3.Connection holds (registry._db)"
    skipped = "graph: the states did not close: 2,013 after 2,012 operations"
    reports = [sample("sealed", opaque=(seen,)), sample("grows", skipped=(skipped,))]
    assert told_notes(reports[:1]) == [f"open: {seen} (sealed)"]
    assert told_notes(reports[1:]) == [
        *LEGEND,
        f"skipped: {skipped} (grows)",
    ]


def test_what_did_not_pass_has_no_notes() -> None:
    found = replace(VACUOUS.exploration, skipped=("a",), proven=True)
    assert told_notes([ORDER, CUT, replace(VACUOUS, exploration=found)]) == []


def test_long_names_are_never_broken() -> None:
    path = "registry." + "x" * 90
    lines = told_notes([sample("long", unread=(path,))])
    assert lines[len(LEGEND) :] == [
        "* assumes: the order of",
        f"  {path}",
        "  is never read (long)",
    ]
    short = told_notes([sample("s", unread=("a b",))], width=30)
    assert short[-2:] == ["* assumes: the order of a b is", "  never read (s)"]


def brief(*reports: Report, width: int = 80) -> list[str]:
    return told_briefly(map(noted, reports), width=width)


CLAIM = "guarantee: walk:1: every operation was taken after every last operation"


def test_below_a_line_of_counts_stands_the_guarantee_too() -> None:
    assert brief() == []
    assert brief(ORDER, CUT, VACUOUS) == []
    assert brief(QUIET) == LEGEND
    skipped = sample("late", skipped=("walk:2 would take 9 operations",))
    assert brief(QUIET, HOLDS, skipped, PINNED) == [
        *LEGEND,
        CLAIM,
        "  (within_a_walk, newest_wins)",
        "skipped: walk:2 would take 9 operations (late)",
    ]
    assert brief(HOLDS, width=200) == [f"{CLAIM} (within_a_walk)"]


def test_a_note_outlives_a_journal() -> None:
    sealed = sample("sealed", assumed=("a",), opaque=("b",), skipped=("c",))
    one = noted(sealed)
    assert (one.scenario, one.proven) == ("scenarios/test_s/sealed", False)
    assert one.texts[-2:] == (("open", "b"), ("skipped", "c"))
    crossed = json.loads(json.dumps(one))
    assert told_briefly([Noted(*crossed)]) == told_briefly([one])


def test_of_many_notes_the_last_are_counted() -> None:
    def named(count: int) -> list[Report]:
        return [sample(f"s{at}", skipped=(f"part {at}",)) for at in range(count)]

    # With the legend, two lines of which are one text, there are as many as may be.
    assert brief(*named(12))[-2:] == [
        "skipped: part 10 (s10)",
        "skipped: part 11 (s11)",
    ]
    assert brief(*named(15))[-2:] == [
        "skipped: part 10 (s10)",
        "... and 4 notes more; `everyorder run` tells them",
    ]
