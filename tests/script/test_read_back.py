"""What is printed of a graph is read back in these tests: a fault is found."""

import pytest

from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.ir import graph_text, printer
from everyorder.runtime.script.ir.program import Program


def test_a_text_that_reads_back_as_another_graph_fails_the_test_that_prints_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "def f(x: int) -> int:\n    return x + 3\n"
    (function,) = compile_text(text, Program())
    assert "value=3" in graph_text(function.graph)
    monkeypatch.setitem(printer._WRITERS, int, lambda value: f"{value}0")
    with pytest.raises(AssertionError, match="is read of"):
        graph_text(function.graph)
