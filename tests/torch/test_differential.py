"""Our dispatcher and language equal torch's, except where predicted; and this can fail.

The long runs are one test each, so that no worker repeats them.
"""

import pytest

from everyorder.runtime.dispatch import dispatch_table as table
from everyorder.runtime.dispatch.dispatch_table import RULES
from tests.torch import differential
from tests.torch.coverage import (
    KINDS,
    REGISTRABLE,
    ROWS,
    Coverage,
)
from tests.torch.differential import (
    SCENARIOS,
    SCHEMAS,
    SEED,
    Differential,
    compare,
    compare_schemas,
    main,
)
from tests.torch.language import CONSTRUCTS
from tests.torch.predictions import PREDICTIONS
from tests.torch.reference import torch_accepted_keys
from tests.torch.scenarios import (
    Scenario,
    ScenarioWriter,
    all_keys,
)
from tests.torch.steps import TorchDefine, TorchImpl

pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

FOO = "everyorder_t::foo"


def test_all_scenarios_and_schemas(capsys: pytest.CaptureFixture[str]) -> None:
    assert SCENARIOS >= 5_000
    assert SCHEMAS >= 3_000
    assert main([]) == 0
    printed = capsys.readouterr().out
    with capsys.disabled():
        print(f"\n{printed}")
    assert "never seen" not in printed
    lines = [line.strip() for line in printed.splitlines()]
    assert lines[0] == f"{SCENARIOS:,}  scenarios"
    assert f"{len(KINDS)} of   {len(KINDS)}  kinds of registrations" in lines
    assert f"{len(ROWS)} of  {len(ROWS)}  rows of the table's rules" in lines
    assert "142 of 142  keys with a kernel" in lines
    assert "100 of 100  keys with a kernel on both sides" in lines
    constructs = len(CONSTRUCTS)
    assert f"{constructs} of  {constructs}  constructs of the schema grammar" in lines
    assert f"{len(PREDICTIONS)} of  {len(PREDICTIONS)}  predicted deviations" in lines
    assert lines[-1] == "0 unpredicted differences"


def test_the_seed_decides_the_scenarios() -> None:
    def some(seed: int) -> list[Scenario]:
        writer = ScenarioWriter(seed, all_keys())
        return [writer.scenario(number) for number in range(50)]

    assert some(SEED) == some(SEED)
    assert some(SEED) != some(SEED + 1)


def test_a_missing_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    table._recipe.cache_clear()
    monkeypatch.setattr(table, "RULES", RULES[:-1])
    try:
        found = compare(300).differences
    finally:
        table._recipe.cache_clear()
    assert {each.what for each in found} == {"table"}
    assert all("[batched kernel]" in each.expected for each in found)
    assert "[batched kernel]" not in found[0].found
    assert str(found[0]).startswith("table of everyorder_t::foo")


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("TABLES", "table"),
        ("PRINTED", "state"),
        ("STEPS_REFUSED", "verdict"),
        ("STEPS_ACCEPTED", "verdict"),
        ("LEFTOVERS", "leftover"),
    ],
)
def test_no_prediction_is_idle(
    table: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differential, table, ())
    assert {each.what for each in compare(200).differences} == {what}


@pytest.mark.parametrize("table", ["PRINTED", "REFUSED", "ACCEPTED"])
def test_no_prediction_of_the_language_is_idle(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differential, table, ())
    found = compare_schemas(Coverage(()), 1_000, SEED)
    assert found
    assert all(each.startswith("schema ") for each in found)


def test_a_prediction_that_fires_without_cause_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def everything(_step: object, _readable: object) -> bool:
        return True

    monkeypatch.setattr(differential, "STEPS_REFUSED", (everything,))
    played = Differential()
    played.play(Scenario(FOO, (TorchImpl("CPU"),), (0, ~0), frozenset()))
    (found,) = played.differences
    assert (found.what, found.expected, found.found) == ("verdict", "refused", "taken")


def test_coverage_names_what_it_missed() -> None:
    played = Differential()
    steps = (TorchDefine("foo(Tensor x) -> Tensor"), TorchImpl("CPU"))
    played.play(Scenario(FOO, steps, (0, 1, ~0, ~1), frozenset({"optional"})))
    assert played.differences == []
    missed = played.coverage.missed()
    assert set(missed["keys with a kernel"]) == set(REGISTRABLE) - {"CPU"}
    shared = set(REGISTRABLE) & set(torch_accepted_keys())
    assert set(missed["keys with a kernel on both sides"]) == shared - {"CPU"}
    assert missed["rows of the table's rules"] == list(ROWS[1:-2])
    assert missed["kinds of registrations"] == [
        each for each in KINDS if each not in ("t_t", "definition by schema")
    ]
    assert set(missed["constructs of the schema grammar"]) == set(CONSTRUCTS) - {
        "optional"
    }
    assert missed["predicted deviations"] == list(PREDICTIONS)
    assert dict(played.coverage.numbers) == {
        "scenarios": 1,
        "steps taken": 2,
        "comparisons of both dumps": 4,
    }
