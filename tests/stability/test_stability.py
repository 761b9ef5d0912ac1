"""A verdict depends on the scenario alone, not on what ran before it.

The small share explores three scenarios in three interpreters, `make test-whole` all of
them under all conditions: `python -m tests.stability --all --large`, which prints its
counts and its seeds.
"""

import subprocess
import sys

import pytest

from tests.forking import needs_fork
from tests.stability.conditions import ROOT, Condition, differences

SHARE = ("lazy:a_table_by_type", "memo:logger", "leaking:a_memo_of_an_answer")
CONDITIONS = (
    Condition(seed=1),
    Condition(seed=2, times=2, backwards=True),
    Condition(seed=3, worker=True),
)


@needs_fork
def test_a_verdict_does_not_depend_on_what_ran_before() -> None:
    """The logger was "holds" and then "proven", and the leak the same."""
    assert differences(SHARE, CONDITIONS) == (12, [])


@needs_fork
@pytest.mark.nightly
def test_the_twentieth_time_says_the_same() -> None:
    conditions = Condition(seed=4), Condition(seed=4, times=20)
    assert differences(SHARE, conditions) == (len(SHARE) * 21, [])


@needs_fork
@pytest.mark.nightly
def test_every_scenario_under_every_condition() -> None:
    command = [sys.executable, "-m", "tests.stability", "--all", "--large"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ", 0 differences" in ran.stdout
