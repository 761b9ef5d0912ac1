"""Programs, and graphs of some as they are emitted and cleaned up: `programs/`.

`python -m tests.script.emission.graphs --write` writes the graphs again; review the
changes before you commit them. A case is a program and calls of its functions; those
with an `[out]`, which short ones have for each way that control flows, have a graph.
"""

import re
import sys
from pathlib import Path

from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.ir import graph_text
from everyorder.runtime.script.ir.program import Program
from tests.script.emission.both import NAMES
from tests.tools.golden import Golden

GOLDEN = Golden(Path(__file__).parent / "programs", "tests.script.emission.graphs")
WITH_GRAPH = [name for name, case in GOLDEN.cases.items() if case.output is not None]


def programs() -> dict[str, tuple[str, list[str]]]:
    """Return the programs, text and calls, by their names."""
    result: dict[str, tuple[str, list[str]]] = {}
    for name, case in GOLDEN.cases.items():
        source, *calls = re.split("^>>> ", case.input, flags=re.M)
        result[name] = source, [call.removesuffix("\n") for call in calls]
    return result


def graphs(source: str) -> str:
    """Return the schemas and graphs of the functions of a program."""
    functions = compile_text(source, Program(), NAMES)
    return "\n".join(f"{each.schema}\n{graph_text(each.graph)}" for each in functions)


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    sources = programs()
    GOLDEN.write(
        lambda case: graphs(sources[case.name][0]) if case.output is not None else None
    )
