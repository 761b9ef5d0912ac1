"""Wrong programs, with their errors: `wrong/`.

`python -m tests.script.emission.wrong_programs --write` writes the errors again; review
the changes before you commit them. The name of a case is its program in one line:
parameters, ` -> ` and the result if it is annotated, ` | ` and the body.
"""

import re
import sys
import warnings
from collections import deque
from pathlib import Path
from typing import Any

from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.ir.program import Program
from tests.script.emission.both import NAMES
from tests.tools.golden import Golden

GOLDEN = Golden(Path(__file__).parent / "wrong", "tests.script.emission.wrong_programs")
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
    "PlainClass": deque,
    "a_set": {1, 2},
    "open": open,
    "something": SOMETHING,
    "warnings": warnings,
}


def said(program: str) -> str:
    """Return the class and the text of the error of a program, as lines."""
    names = {**NAMES, **EXTRA}
    text = program + (HELPERS if re.search("helper|untyped|recursive", program) else "")
    try:
        compile_text(text, Program(), names)
    except (ProgramError, AnnotationError) as error:
        return f"{code_of(error)}: {error}\n"
    return "nothing\n"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write(lambda case: said(case.input))
