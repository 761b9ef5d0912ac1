from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from harness.report.table import duration, overview, summary
from harness.report.unexplored import Unexplored
from tests.report.samples import ALL, PROVEN

BROKEN = Unexplored("scenarios/test_broken/gone", "", "the process ended")

TABLE = """\
scenario            n sets edges strategy      guarantee  verdict  time
───────────────────────────────────────────────────────────────────────
test_composites
  two_kernels       3    8   628 graph +walk:2 any length proven  12 ms
                                 +words:3
test_broken
  newest_wins       3    5   628 walk:1        last 1     pinned  1.2 s
  within_a_walk     3    8   628 walk:1        last 1     holds   1.2 s
  order_matters     3    8   628 walk:1        none       ORDER   1.2 s
  law_is_broken     3    8   628 walk:1        none       LAW     1.2 s
  not_deterministic 3    8   628 walk:1        none       RANDOM  1.2 s
  cut_short         3    8   628 walk:1        none       CUT     1.2 s
  gone                                                    FAILED
───────────────────────────────────────────────────────────────────────
8 scenarios             53 4,396                          3 ok    7.5 s
"""


def printed(table: object, width: int = 80) -> str:
    text = StringIO()
    Console(file=text, width=width).print(table)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def test_table_of_everything() -> None:
    assert printed(overview(ALL, (BROKEN,))) == TABLE


def test_large_numbers_and_long_names_fit_80_columns() -> None:
    executed = replace(PROVEN.exploration.executed, edges=1_048_576)
    exploration = replace(PROVEN.exploration, executed=executed, seconds=90.0)
    large = replace(PROVEN, scenario="s/f/" + "long" * 20, exploration=exploration)
    lines = printed(overview([large]), width=200).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split() == [
        *("longlonglonglonglong…", "3", "8", "1,048,576", "graph", "+walk:2"),
        *("any", "length", "proven", "90.0", "s"),
    ]


def test_the_usual_strategy_is_told_once() -> None:
    lines = printed(overview([PROVEN, PROVEN, ALL[1]])).splitlines()
    assert [lines[row].split()[4] for row in (3, 4, 6)] == ["usual", "usual", "walk:1"]
    assert lines[-1] == "usual strategy: graph+walk:2+words:3"
    short = [report for report in ALL if report is not PROVEN]
    assert "usual" not in printed(overview(short))


def test_table_of_nothing() -> None:
    assert printed(overview([])).splitlines()[-1].split() == [
        *("0", "scenarios", "0", "0", "0", "ok", "0", "ms")
    ]


def test_summary_has_the_worst_first() -> None:
    assert summary(ALL, (BROKEN,)) == (
        "8 scenarios: 1 not deterministic, 1 with a broken law, 1 dependent on order, "
        "1 cut short, 1 pinned, 1 holding, 1 proven, 1 not explored; 53 states, "
        "4,396 edges"
    )
    assert summary([]) == "0 scenarios: nothing to explore; 0 states, 0 edges"


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
