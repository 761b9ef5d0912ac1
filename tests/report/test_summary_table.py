"""The table of all reports, and what stands beside verdicts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

import pytest

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.engine.result import Closure
from everyorder.harness.report import (
    ScenarioNotes,
    note_lines,
    notes_of,
    verdict_line,
)
from everyorder.harness.report.summary_table import duration, overview, summary
from everyorder.harness.report.verdict import Report, Unexplored
from tests.report.samples import (
    ALL,
    CUT,
    HOLDS,
    ORDER,
    PINNED,
    PROVEN,
    VACUOUS,
    violated,
)

BROKEN = Unexplored("scenarios/test_broken/gone", "", "the process ended")

TABLE = """\
scenario            n states transitions strategy      guarantee  verdict  time
───────────────────────────────────────────────────────────────────────────────
test_composites
  two_kernels       3      8         628 graph +walk:2 any length proven  12 ms
                                         +histories:3
test_broken
  newest_wins       3      5         628 walk:1        last 1     pinned  1.2 s
  within_a_walk     3      8         628 walk:1        last 1     holds   1.2 s
  order_matters     3      8         628 walk:1        none       ORDER   1.2 s
  law_is_broken     3      8         628 walk:1        none       LAW     1.2 s
  not_deterministic 3      8         628 walk:1        none       FLAKY   1.2 s
  cut_short         3      8         628 walk:1        none       CUT     1.2 s
  gone                                                            FAILED
───────────────────────────────────────────────────────────────────────────────
8 scenarios               53       4,396                          3 ok    7.5 s
"""


SHORT_TABLE = """\
scenario        verdict  time
─────────────────────────────
test_composites
  two_kernels   proven  12 ms
test_broken
  within_a_walk holds   1.2 s
  gone          FAILED
─────────────────────────────
3 scenarios     2 ok    1.3 s
"""


def printed(table: object, width: int = 80) -> str:
    text = StringIO()
    from rich.console import Console

    Console(file=text, width=width).print(table)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def test_table_of_everything() -> None:
    assert printed(overview(ALL, (BROKEN,))) == TABLE


def test_large_numbers_and_long_names_fit_80_columns() -> None:
    executed = replace(PROVEN.exploration.executed, transitions=1_048_576)
    exploration = replace(PROVEN.exploration, executed=executed, seconds=90.0)
    large = replace(PROVEN, scenario="s/f/" + "long" * 20, exploration=exploration)
    lines = printed(overview([large]), width=200).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split() == [
        *("longlonglonglong…", "3", "8", "1,048,576", "graph", "+walk:2"),
        *("any", "length", "proven", "90.0", "s"),
    ]


def test_the_usual_strategy_is_told_once() -> None:
    lines = printed(overview([PROVEN, PROVEN, ALL[1]])).splitlines()
    assert [lines[row].split()[4] for row in (3, 4, 6)] == ["usual", "usual", "walk:1"]
    assert lines[-1] == "usual strategy: graph+walk:2+histories:3"
    short = [report for report in ALL if report is not PROVEN]
    assert "usual" not in printed(overview(short))


def test_a_proof_that_assumes_something_has_a_star() -> None:
    exploration = replace(
        PROVEN.exploration,
        strategy="graph",
        closure=Closure(8, 40, 4, closed=True, unread=("registry._items",)),
    )
    report = replace(PROVEN, exploration=exploration)
    pinned = replace(report, scenario="s/f/p", order_dependent="the newest wins")
    lines = printed(overview([report, pinned])).splitlines()
    assert lines[3].split()[-4:] == ["length", "proven*", "12", "ms"]
    assert lines[5].split()[-4:] == ["length", "pinned*", "12", "ms"]


def test_verdicts_that_are_new() -> None:
    reports = [violated("not fresh"), violated("hidden"), violated("unpinned"), VACUOUS]
    lines = printed(overview(reports)).splitlines()
    assert [" ".join(line.split()[-4:-2]) for line in lines[3:7]] == [
        *("none UNFRESH", "none HIDDEN", "NO PIN", "none VACUOUS"),
    ]
    assert summary(reports) == (
        "4 scenarios: 1 without a fresh start, 1 with hidden state, 1 pinned for "
        "nothing, 1 vacuous; 32 states, 2,512 transitions"
    )


def test_what_died_is_told_apart_from_what_was_not_explored() -> None:
    others = [
        Unexplored("s/a/exits", "", "exit code 0", verdict="crashed"),
        Unexplored("s/a/sleeps", "", "60 s", verdict="hung"),
        Unexplored("s/a/gone", "", "no such file"),
        Unexplored("s/a/too", "", "no such file"),
        Unexplored("s/a/gpu", "", "no GPU", verdict="skipped"),
    ]
    lines = printed(overview([PROVEN], others)).splitlines()
    assert [line.split() for line in lines[6:11]] == [
        *(["exits", "CRASHED"], ["sleeps", "HUNG"], ["gone", "FAILED"]),
        *(["too", "FAILED"], ["gpu", "skipped"]),
    ]
    assert summary([PROVEN], others) == (
        "6 scenarios: 1 proven, 1 crashed, 1 hung, 2 not explored, 1 skipped; 8 "
        "states, 628 transitions"
    )


def test_table_of_nothing() -> None:
    assert printed(overview([])).splitlines()[-1].split() == [
        *("0", "scenarios", "0", "0", "0", "ok", "0", "ms")
    ]


def test_summary_has_the_worst_first() -> None:
    assert summary(ALL, (BROKEN,)) == (
        "8 scenarios: 1 flaky, 1 with a broken law, 1 dependent on order, 1 cut "
        "short, 1 pinned, 1 holding, 1 proven, 1 not explored; 53 states, 4,396 "
        "transitions"
    )
    assert summary([]) == "0 scenarios: nothing to explore; 0 states, 0 transitions"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (99.94, "99.9 s"),
        (99.96, "1:40"),
        (3600.0, "1:00:00"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


LEGEND = [
    "proven: for histories of any length, in one thread and one process, if nothing",
    "  tells equal states apart (ids, `is` between equal values, orders of sets,",
    "  hashes that changed, clocks, caches of the standard library)",
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


def verbose_lines(reports: Sequence[Report], width: int = 80) -> list[str]:
    return note_lines(map(notes_of, reports), width=width, verbose=True)


def test_nothing_to_note() -> None:
    assert verbose_lines([]) == []


def test_every_proof_has_its_scope_and_its_assumption() -> None:
    assert verbose_lines([QUIET]) == LEGEND
    assert verbose_lines([QUIET, QUIET]) == LEGEND


def test_equal_assumptions_are_told_once_with_their_scenarios() -> None:
    dicts = {"unread": ("registry._items",)}
    reports = [
        sample("first", **dicts),
        sample("second", assumed=("it calls _codecs.register",)),
        sample("third", **dicts),
        sample("fourth", **dicts, assumed=("it calls _codecs.register",)),
        sample("fifth", **dicts),
    ]
    assert verbose_lines(reports) == [
        *LEGEND,
        "* assumes: the order of registry._items is never read (4 scenarios)",
        "* assumes: it calls _codecs.register (second, fourth)",
    ]


def test_what_is_open_and_what_was_skipped() -> None:
    seen = "closed, except for what a sqlite3.Connection holds (registry._db)"
    skipped = "graph: the states did not close: 2,013 after 2,012 operations"
    reports = [sample("sealed", opaque=(seen,)), sample("grows", skipped=(skipped,))]
    assert verbose_lines(reports[:1])[-1] == f"open: {seen} (sealed)"
    assert verbose_lines(reports[1:]) == [
        *LEGEND,
        f"skipped: {skipped} (grows)",
    ]


def test_what_did_not_pass_has_no_notes() -> None:
    found = replace(VACUOUS.exploration, skipped=("a",), proven=True)
    assert verbose_lines([ORDER, CUT, replace(VACUOUS, exploration=found)]) == []


def test_long_names_are_never_broken() -> None:
    path = "registry." + "x" * 90
    lines = verbose_lines([sample("long", unread=(path,))])
    assert lines[len(LEGEND) :] == [
        "* assumes: the order of",
        f"  {path}",
        "  is never read (long)",
    ]
    short = verbose_lines([sample("s", unread=("a b",))], width=30)
    assert short[-2:] == ["* assumes: the order of a b is", "  never read (s)"]


CLAIM = "guarantee: walk:1: every operation was taken after every last operation"


def test_verbose_notes_have_the_guarantees_of_what_is_not_proven() -> None:
    skipped = sample("late", skipped=("walk:2 would take 9 operations",))
    assert verbose_lines([QUIET, HOLDS, skipped, PINNED]) == [
        *LEGEND,
        CLAIM,
        "  (within_a_walk, newest_wins)",
        "skipped: walk:2 would take 9 operations (late)",
    ]
    assert verbose_lines([HOLDS], width=200) == [f"{CLAIM} (within_a_walk)"]


def test_a_note_outlives_a_journal() -> None:
    sealed = sample("sealed", assumed=("a",), opaque=("b",), skipped=("c",))
    one = notes_of(sealed)
    assert (one.scenario, one.proven) == ("scenarios/test_s/sealed", False)
    assert one.texts[-2:] == (("open", "b"), ("skipped", "c"))
    crossed = json.loads(json.dumps(one))
    assert note_lines([ScenarioNotes(*crossed)]) == note_lines([one])


BRIEF_LEGEND = [
    "proven: for histories of any length, in one thread and one process; -v shows",
    "  what that assumes",
]


def test_notes_are_counted_unless_all_are_wanted() -> None:
    assert note_lines([]) == []
    assert note_lines(map(notes_of, [ORDER, CUT, HOLDS])) == []
    assert note_lines(map(notes_of, [QUIET, HOLDS])) == BRIEF_LEGEND
    seen = sample("seen", assumed=("a", "b"), skipped=("walk:2",))
    assert note_lines(map(notes_of, [seen])) == [
        *BRIEF_LEGEND,
        "2 further assumptions, 1 omitted part; -v shows them",
    ]
    one = sample("one", opaque=("c",))
    assert note_lines(map(notes_of, [QUIET, one])) == [
        *BRIEF_LEGEND,
        "1 open question of 1 scenario; -v shows it",
    ]


def test_one_scenario_is_a_sentence() -> None:
    assert verdict_line(PROVEN) == (
        "scenarios/test_composites/two_kernels: proven: no history of any length makes "
        "a\ndifference (12 ms)"
    )


def test_the_short_table_has_no_words_to_learn() -> None:
    assert printed(overview([PROVEN, HOLDS], (BROKEN,), verbose=False)) == SHORT_TABLE
