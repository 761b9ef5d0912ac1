from harness.cli import exit_code
from harness.outcome import VERDICTS


def test_every_code_has_a_sentence_and_every_verdict_a_code() -> None:
    values = [value for name, value in vars(exit_code).items() if name.isupper()]
    assert {code for code in values if isinstance(code, int) and code >= 10} == (
        set(exit_code.GATE) - {exit_code.OK} | {exit_code.INTERRUPTED}
    )
    assert set(exit_code.OF_VERDICT) == set(VERDICTS)
    assert set(exit_code.OF_COMPARISON) == {"unchanged", "changed", "missing", "stale"}
