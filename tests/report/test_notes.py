"""What stands beside verdicts, for all scenarios together."""

from dataclasses import replace

from harness.engine.protocol import Caveat
from harness.engine.result import Closure
from harness.outcome import Report
from harness.report import told_notes
from tests.report.samples import CUT, HOLDS, ORDER, PROVEN, VACUOUS

LEGEND = [
    "proven: for histories of any length, in one thread and one process, if nothing",
    "  tells equal states apart (ids, addresses, orders of sets, clocks)",
]
QUIET = replace(PROVEN, exploration=replace(PROVEN.exploration, skipped=()))


def noted(
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
        noted("first", **dicts),
        noted("second", assumed=("it calls _codecs.register",)),
        noted("third", **dicts),
        noted("fourth", **dicts, assumed=("it calls _codecs.register",)),
        noted("fifth", **dicts),
    ]
    assert told_notes(reports) == [
        *LEGEND,
        "* assumes: the order of registry._items is never read (4 scenarios)",
        "* assumes: it calls _codecs.register (second, fourth)",
    ]


def test_what_is_open_and_what_was_skipped() -> None:
    seen = "closed, except for what a sqlite3.Connection holds (registry._db)"
    skipped = "graph: the states did not close: 2,013 after 2,012 operations"
    reports = [noted("sealed", opaque=(seen,)), noted("grows", skipped=(skipped,))]
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
    lines = told_notes([noted("long", unread=(path,))])
    assert lines[2:] == [
        "* assumes: the order of",
        f"  {path}",
        "  is never read (long)",
    ]
    short = told_notes([noted("s", unread=("a b",))], width=30)
    assert short[-2:] == ["* assumes: the order of a b is", "  never read (s)"]
