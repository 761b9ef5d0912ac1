"""Graphs of programs, as they are emitted and cleaned up.

`python -m tests.script.emission.graphs --write` writes the files of `graphs/` anew.
"""

import re
import sys
from pathlib import Path

from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.ir import graph_text
from everyorder.runtime.script.ir.program import Program
from tests.script.emission.both import NAMES

HERE = Path(__file__).parent
GRAPHS = HERE / "graphs"
# The programs whose graphs are kept: short ones, with each way that control goes.
KEPT = (
    *("assignments", "swap", "starred targets", "unpack a list", "early return"),
    *("element and slice targets", "augmented targets are computed once"),
    *("return in a loop", "break and continue", "while", "while True"),
    *("while True with return", "list that grows while it is gone through"),
    *("dictionary that changes while it is gone through", "tuples are unrolled"),
    *("return in an unrolled loop", "zip and enumerate", "joins", "joins with None"),
    *("optional refinement", "optional truth", "optional in a loop", "unions"),
    *("isinstance of what is known", "short circuit", "chained comparisons"),
    *("comprehensions", "f-strings", "raise", "raise in every branch", "assert"),
    *("calls", "recursion", "nothing is returned", "flags behind flags", "tensors"),
    *("tensor subscripts", "no_grad", "conditions of constants"),
    "order of computation",
)


def programs() -> dict[str, tuple[str, list[str]]]:
    """The programs of `programs.txt`: text and calls, by their titles."""
    text = (HERE / "programs.txt").read_text()
    found: dict[str, tuple[str, list[str]]] = {}
    for each in re.split(r"^### ", text, flags=re.M)[1:]:
        title, _, rest = each.partition("\n")
        lines = rest.split("\n")
        source = "\n".join(line for line in lines if not line.startswith(">>> "))
        found[title] = source, [line[4:] for line in lines if line.startswith(">>> ")]
    return found


def stored(title: str) -> Path:
    """The file of a program."""
    return GRAPHS / f"{re.sub(r'[^a-zA-Z]+', '-', title)}.txt"


def document(source: str) -> str:
    """The text of a program, and the graphs of its functions."""
    functions = compile_text(source, Program(), NAMES)
    graphs = [f"{each.schema}\n{graph_text(each.graph)}" for each in functions]
    return "\n".join([source.rstrip("\n"), "", *graphs])


if __name__ == "__main__":
    every = programs()
    if "--write" in sys.argv:
        for each_file in GRAPHS.glob("*.txt"):
            each_file.unlink()
        for each_title in KEPT:
            stored(each_title).write_text(document(every[each_title][0]))
    print(f"{len(KEPT)} programs")
