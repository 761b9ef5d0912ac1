"""Wrong programs, and what is said of each.

`python -m tests.script.emission.wrong_programs --write` writes the files of `wrong/`
anew.  A line of `wrong_programs.txt` is parameters, ` -> ` and a result if it is
written, ` | ` and the body: `;;` ends a line, and `: ` behind the head of a block
begins its body, of which the statements are separated by `; `.
"""

import re
import sys
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.ir.program import Program
from tests.script.emission.both import NAMES

HERE = Path(__file__).parent
WRONG = HERE / "wrong"
HELPERS = """
def helper(a: int, b: int) -> int:
    return a + b
def untyped(a):
    return a.foo
def recursive(a: int):
    return recursive(a - 1)
"""
SOMETHING = object()
EXTRA: dict[str, Any] = {
    "PlainClass": OrderedDict,
    "a_set": {1, 2},
    "open": open,
    "something": SOMETHING,
    "warnings": warnings,
}
_HEADS = ("if ", "else:", "elif ", "for ", "while ", "with ")


def programs() -> dict[str, str]:
    """The programs by the names of their files."""
    found: dict[str, str] = {}
    for line in (HERE / "wrong_programs.txt").read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        head, body = re.split(r" \| (?!None)", line, maxsplit=1)
        given, _, result = head.partition(" -> ")
        ends = f" -> {result}" if result else ""
        lines = [f"def f({given}){ends}:"]
        for part in body.split(" ;; "):
            lines += _lines(part)
        name = re.sub(r"\W+", "-", line).strip("-")[:60]
        while name in found:
            name += "-"
        found[name] = "\n".join(lines) + "\n"
    return found


def _lines(part: str) -> list[str]:
    """The lines of a statement, or of a block."""
    if part.startswith(_HEADS):
        at = _end_of_head(part)
        inner = [f"        {each}" for each in part[at + 1 :].strip().split("; ")]
        return [f"    {part[: at + 1]}", *inner]
    return [f"    {each}" for each in part.split("; ")]


def _end_of_head(part: str) -> int:
    depth = 0
    for at, each in enumerate(part):
        depth += (each in "([{") - (each in ")]}")
        if each == ":" and not depth:
            return at
    raise ValueError(part)


def said(program: str) -> str:
    """What is said of a program: the class and the words of the error."""
    names = {**NAMES, **EXTRA}
    text = program + (HELPERS if re.search("helper|untyped|recursive", program) else "")
    try:
        compile_text(text, Program(), names)
    except (ProgramError, AnnotationError) as error:
        return f"{code_of(error)}: {error}\n"
    return "nothing\n"


def stored(name: str) -> Path:
    """The file of a program."""
    return WRONG / f"{name}.txt"


def document(program: str) -> str:
    """The file of a program: its text, and what is said of it."""
    return f"{program}\n{said(program)}"


if __name__ == "__main__":
    every = programs()
    if "--write" in sys.argv:
        for each in WRONG.glob("*.txt"):
            each.unlink()
        for each_name, each_text in every.items():
            stored(each_name).write_text(document(each_text))
    print(f"{len(every)} programs")
