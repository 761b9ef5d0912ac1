"""Modules that cannot be compiled, and what is said of them: `refused.txt`.

`python -m tests.script.modules.refused --write` writes the file anew.

Each part of the file begins with a line of equality signs and a title; a program
follows, whose end compiles, and behind a line of hyphens what is said.
"""

import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from everyorder.runtime.errors.base import code_of

FILE = Path(__file__).with_suffix(".txt")
BEGIN, LINE = "=== ", "-" * 72 + "\n"
NAMES = """\
import math
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, overload
from everyorder import runtime
from everyorder.runtime import Module, ModuleDict, ModuleList, Parameter
from everyorder.runtime import Sequential, Tensor
from tests.script.modules.zoo import Scale as Leaf
from everyorder.runtime.jit import (
    Attribute, CompilationUnit, ScriptModule, export, ignore, interface, script, unused
)
"""


class Refused(NamedTuple):
    """A program, and what is said of it."""

    program: str
    text: str


def stored() -> dict[str, Refused]:
    """What the file has, by its titles."""
    parts = FILE.read_text(encoding="utf-8").split(f"\n{BEGIN}")
    found = {}
    for part in parts:
        title, _, body = part.removeprefix(BEGIN).partition("\n")
        program, _, text = body.partition(LINE)
        assert title not in found, "a title stands once"
        found[title] = Refused(program, text.rstrip("\n"))
    return found


def complaint(program: str) -> Exception | None:
    """What a program raises when it is run."""
    name = "program.py"
    lines = program.splitlines(keepends=True)
    linecache.cache[name] = (len(program), None, lines, name)
    names: dict[str, Any] = {"__name__": "program"}
    exec(NAMES, names)
    try:
        exec(compile(program, name, "exec"), names)
    except Exception as error:
        return error
    return None


def document(parts: dict[str, Refused]) -> Iterator[str]:
    """The file, with what is said now."""
    for title, (program, _) in parts.items():
        yield f"{BEGIN}{title}\n{program}{LINE}{said(complaint(program))}\n"


def said(error: Exception | None) -> str:
    """The class and the text of an error."""
    return "nothing" if error is None else f"{code_of(error)}: {error}"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    made = "\n".join(document(stored()))
    FILE.write_text(made, encoding="utf-8")
