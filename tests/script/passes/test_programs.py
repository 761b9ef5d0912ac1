"""Random programs before and after passes: value, mutation, output, exception."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from everyorder.runtime.script.ir import Graph, check, copy_graph, graph_text
from everyorder.runtime.script.passes import (
    CLEANUP,
    OPTIMIZE,
    Pass,
    inline_calls,
    run_passes,
)
from tests.script.ir.graphs import random_graph, rows
from tests.script.passes.programs import outcome, random_program

INLINE = Pass("inline_calls", inline_calls)
# Each pass alone, and both orders.
LEGS: dict[str, Sequence[Pass]] = {
    **{each.name: (each,) for each in (*CLEANUP, *OPTIMIZE)},
    "CLEANUP": CLEANUP,
    "OPTIMIZE": OPTIMIZE,
    "inline_calls": (INLINE,),
    "INLINED": (INLINE, *OPTIMIZE),
}
# How many rounds; a pass by itself is done after the first.
ROUNDS = 8
# So many programs of the first ones have each pass fire.
FEW = 15


def compare(seed: int, fired: Counter[str], legs: Sequence[str] = tuple(LEGS)) -> None:
    """Make sure that no leg changes what a program does."""
    graph = random_program(Random(seed))
    check(graph)
    before = outcome(graph, Random(seed))
    for leg in legs:
        after, counts = passed(graph, LEGS[leg])
        if not any(counts.values()):
            continue
        assert outcome(after, Random(seed)) == before, (
            f"program {seed} does something else after {leg}:\n"
            f"{graph_text(graph)}\n{graph_text(after)}"
        )
        fired.update(counts)
        if len(LEGS[leg]) == 1:
            assert passed(after, LEGS[leg])[1] == {leg: 0}, (seed, leg)


def passed(graph: Graph, passes: Sequence[Pass]) -> tuple[Graph, dict[str, int]]:
    copied = copy_graph(graph)
    return copied, run_passes(copied, passes, rounds=ROUNDS, checked=True)


def test_programs_do_the_same_after_passes_and_each_pass_fires() -> None:
    fired: Counter[str] = Counter()
    for seed in range(FEW):
        compare(seed, fired)
    assert [name for name in LEGS if name.islower() and not fired[name]] == []


@pytest.mark.slow
def test_more_programs_do_the_same() -> None:
    fired: Counter[str] = Counter()
    for seed in range(FEW, FEW + 100):
        compare(seed, fired)


@pytest.mark.nightly
def test_many_programs_do_the_same_and_each_pass_fires_often() -> None:
    fired: Counter[str] = Counter()
    for seed in range(FEW, FEW + 2_000):
        compare(seed, fired)
    assert {
        name: fired[name] > 500 for name in LEGS if name.islower()
    } == dict.fromkeys((name for name in LEGS if name.islower()), True)


def test_graphs_of_every_kind_keep_all_laws() -> None:
    keep_all_laws(range(40))


@pytest.mark.slow
def test_more_graphs_of_every_kind_keep_all_laws() -> None:
    keep_all_laws(range(40, 400))


def keep_all_laws(seeds: range) -> None:
    for seed in seeds:
        graph = random_graph(Random(seed))
        # Operators of the tests are not known to the passes of the order: they are what
        # nothing is known of.
        run_passes(graph, OPTIMIZE, rounds=ROUNDS, checked=False)
        check(graph, rows=rows)
        text = graph_text(graph)
        run_passes(graph, OPTIMIZE, rounds=ROUNDS, checked=False)
        assert graph_text(graph) == text, seed


def test_what_comes_out_does_not_depend_on_the_run() -> None:
    texts = []
    for _ in range(2):
        graph = random_program(Random(5))
        run_passes(graph, OPTIMIZE, rounds=ROUNDS)
        texts.append(graph_text(graph))
    assert texts[0] == texts[1]
