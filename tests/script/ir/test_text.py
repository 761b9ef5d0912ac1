"""Graphs as text, and text as graphs: random ones, whole and damaged."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.script.ir import Graph, check, graph_text, parse_graph, printed
from tests.schema.programs import PROGRAM
from tests.script.ir.graphs import (
    DISPATCHER,
    FUNCTIONS,
    GROWN,
    SOURCES,
    random_graph,
    rows,
    structure,
)

ROOT = Path(__file__).parent.parent.parent.parent
SEEDS = range(400)


def read(text: str, objects: tuple[object, ...] = ()) -> Graph:
    return parse_graph(
        text,
        namespace=PROGRAM,
        objects=objects,
        functions=FUNCTIONS,
        sources=SOURCES,
    )


@pytest.mark.spec("script 6.5", "texts read back")
def test_what_is_printed_reads_back_and_prints_the_same() -> None:
    for seed in SEEDS:
        graph = random_graph(Random(seed))
        drawn = printed(graph)
        again = read(drawn.text, drawn.objects)
        assert structure(again) == structure(graph), seed
        second = printed(again)
        assert second.text == drawn.text, seed
        assert all(
            one is other
            for one, other in zip(second.objects, drawn.objects, strict=True)
        )
        check(again, rows=rows)


def test_places_read_back_without_their_sources() -> None:
    for seed in SEEDS[:50]:
        drawn = printed(random_graph(Random(seed)))
        again = parse_graph(
            drawn.text, namespace=PROGRAM, objects=drawn.objects, functions=FUNCTIONS
        )
        assert graph_text(again) == drawn.text


def test_the_checker_accepts_all_and_every_kind_is_there() -> None:
    kinds = set()
    for seed in SEEDS:
        graph = random_graph(Random(seed))
        check(graph, rows=rows)
        todo = [graph]
        for each in todo:
            for node in each.nodes():
                kinds.add(node.kind)
                todo += [v for v in node.attributes.values() if isinstance(v, Graph)]
    assert kinds == set(GROWN)


TEXTS = """
from random import Random
from everyorder.runtime.script.ir import graph_text
from tests.script.ir.graphs import random_graph
for seed in range(60):
    print(graph_text(random_graph(Random(seed))).encode("utf-8", "backslashreplace"))
"""


def test_equal_graphs_have_equal_texts_whatever_hashes_are() -> None:
    texts = [
        subprocess.run(
            [sys.executable, "-c", TEXTS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert texts[0].count(b"\n") == 60


def damaged(random: Random, text: str) -> str:
    """The text with some pieces taken out, doubled, moved, or of other characters."""
    for _ in range(random.randrange(1, 4)):
        start = random.randrange(len(text) + 1)
        stop = min(len(text), start + random.randrange(12))
        piece = random.choice(
            (
                "",
                text[start:stop] * 2,
                *("(", ")", "[", "]", ":", "%", ",", "\n", "=", '"', "-", "#", "::"),
                *("%x.1", "block0():", "->", "return", "with", "prim::If", "1e999"),
                *("object(99)", "prim::fork_0", "9" * 30, "é", "\x00", "int", "?"),
            )
        )
        text = text[:start] + piece + text[stop:]
    return text


def refusal(text: str, objects: tuple[object, ...]) -> SchemaSyntaxError | None:
    """Why a text is refused, or None: what it is read as prints and reads the same."""
    try:
        again = printed(read(text, objects))
    except SchemaSyntaxError as error:
        return error
    assert graph_text(read(again.text, again.objects)) == again.text
    return None


def test_damaged_texts_are_read_or_refused() -> None:
    refused = 0
    for seed in range(3000):
        random = Random(seed)
        drawn = printed(random_graph(random, 5))
        text = damaged(random, drawn.text)
        error = refusal(text, drawn.objects)
        if error is not None:
            refused += 1
            assert error.source == text
            assert 0 <= error.span[0] <= error.span[1] <= len(text)
            assert str(error)
    assert 1500 < refused < 3000


@pytest.mark.parametrize(
    "text",
    ["", "graph", "graph(" * 5000, "(" * 5000, "graph():\n" + "  block0():\n" * 5000],
)
def test_texts_that_are_no_graph(text: str) -> None:
    with pytest.raises(SchemaSyntaxError):
        read(text)


def test_the_dispatcher_of_the_tests_has_the_operators() -> None:
    assert set(DISPATCHER.op_names()) <= set(GROWN)
