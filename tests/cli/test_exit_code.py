from typing import get_args

from harness.cli import exits
from harness.outcome import VERDICTS, Failure


def test_every_code_has_a_sentence_and_every_verdict_a_code() -> None:
    values = [value for name, value in vars(exits).items() if name.isupper()]
    assert {code for code in values if isinstance(code, int) and code >= 10} == (
        set(exits.GATE) - {exits.OK} | {exits.INTERRUPTED}
    )
    assert set(exits.OF_VERDICT) == set(VERDICTS)
    assert set(exits.OF_FAILURE) == set(get_args(Failure))
    used = {*exits.OF_VERDICT.values(), *exits.OF_FAILURE.values()}
    used |= {*exits.OF_COMPARISON.values(), exits.NOT_LOADED}
    assert used == set(exits.GATE)
    assert set(exits.OF_COMPARISON) == {"unchanged", "changed", "missing", "stale"}
