from typing import get_args

from harness.cli import exit_code
from harness.outcome import VERDICTS
from harness.report.unexplored import Failure


def test_every_code_has_a_sentence_and_every_verdict_a_code() -> None:
    values = [value for name, value in vars(exit_code).items() if name.isupper()]
    assert {code for code in values if isinstance(code, int) and code >= 10} == (
        set(exit_code.GATE) - {exit_code.OK} | {exit_code.INTERRUPTED}
    )
    assert set(exit_code.OF_VERDICT) == set(VERDICTS)
    assert set(exit_code.OF_FAILURE) == set(get_args(Failure))
    used = {*exit_code.OF_VERDICT.values(), *exit_code.OF_FAILURE.values()}
    used |= {*exit_code.OF_COMPARISON.values(), exit_code.NOT_LOADED}
    assert used == set(exit_code.GATE)
    assert set(exit_code.OF_COMPARISON) == {"unchanged", "changed", "missing", "stale"}
