from dataclasses import replace
from io import StringIO

import pytest

from harness.engine.result import Closure
from harness.outcome import Unexplored
from harness.report.table import duration, overview, summary
from tests.report.samples import ALL, PROVEN, VACUOUS, violated

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
