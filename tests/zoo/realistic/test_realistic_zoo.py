"""No verdict on a realistic registry is wrong, by any strategy.

The short leg explores a right one and a faulty one of some kinds; the long one all of
them by the default strategy and by three others in turn, in processes that have loaded
nothing else; `make test-whole` all of them by all strategies.  `python -m
tests.zoo.realistic --all` prints a table for each strategy.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tests.zoo.realistic import __main__ as program
from tests.zoo.realistic.__main__ import main, strategies_of
from tests.zoo.realistic.judge import DEFAULT, STRATEGIES, judge
from tests.zoo.realistic.oracle import Player, Truth, quiet, truth
from tests.zoo.realistic.registries import GROWING, KINDS, KNOWN, all_specimens
from tests.zoo.realistic.specimen import Specimen

ROOT = Path(__file__).parents[3]
PARTS = 86


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.split(".")[-1])
def test_the_first_of_each_kind(kind: ModuleType) -> None:
    specimens = [*kind.specimens()]
    first_faulty = next(each for each in specimens if each.fault)
    judged = [judge(each, truth(each)) for each in (specimens[0], first_faulty)]
    assert [each.line() for each in judged if each.complaints] == []
    assert [each.faulty for each in judged] == [False, True]


def test_each_strategy_takes_its_turn() -> None:
    turns = [strategies_of(number) for number in range(len(STRATEGIES))]
    assert {(turn[0], len({*turn})) for turn in turns} == {(DEFAULT, 4)}
    explicit = [each for turn in turns for each in turn[1:]]
    assert sorted(explicit) == sorted(STRATEGIES * 3)


def size_of(specimen: Specimen, changes: int) -> int:
    """The number of items in a registry's own lists after some changes of one step."""
    with quiet() as loop:
        player = Player(specimen, loop)
        player.play(1)
        for _ in range(2 * changes):
            player.play(0)
        attributes = vars(player.registry).values()
        return sum(len(each) for each in attributes if isinstance(each, list))


def test_what_is_left_out_of_the_graph_grows_with_each_change() -> None:
    growing = {each.name for each in all_specimens() if each.name in GROWING}
    assert growing == {*GROWING}
    for each in all_specimens():
        if each.name in GROWING:
            assert size_of(each, 50) - size_of(each, 10) == 40
            strategies = strategies_of(0, each.name)
            assert not {DEFAULT, "graph"} & {*strategies}
            assert "histories:3" in strategies


def test_a_known_wrong_verdict_passes_as_long_as_it_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And any other wrong verdict fails."""
    assert {*KNOWN} <= {each.name for each in all_specimens()}
    right, faulty = "circuit breaker/Breaker", "circuit breaker/LatchedBreaker"
    run = ["--only", "circuit breaker/"]

    def some() -> Iterator[Specimen]:
        return (each for each in all_specimens() if each.name in (right, faulty))

    def as_right(specimen: Specimen) -> Truth:
        return replace(truth(specimen), faulty=False)

    monkeypatch.setattr(program, "all_specimens", some)
    assert main(run) == 0
    monkeypatch.setattr(program, "KNOWN", {right: "its cause"})
    assert main(run) == 1
    assert f"{right}: remove it from KNOWN, proven" in capsys.readouterr().out
    # The verdict on the faulty one is wrong if it is held to be right.
    monkeypatch.setattr(program, "truth", as_right)
    monkeypatch.setattr(program, "all_specimens", lambda: [undeclared(faulty)])
    monkeypatch.setattr(program, "KNOWN", {})
    assert main(run) == 1
    monkeypatch.setattr(program, "KNOWN", {faulty: "its cause"})
    assert main(run) == 0


def undeclared(name: str) -> Specimen:
    """The specimen of a name, declared right."""
    (specimen,) = (each for each in all_specimens() if each.name == name)
    return replace(specimen, fault="")


def explored(part: int, strategies: str) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tests.zoo.realistic", strategies),
            *("--part", f"{part}/{PARTS}"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    print(ended.stdout)
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_verdict_is_wrong(part: int) -> None:
    ended = explored(part, "--some")
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_no_verdict_of_any_strategy_is_wrong(part: int) -> None:
    ended = explored(part, "--all")
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
