"""Wrong programs of classes and special forms, each with all that is said of it.

`python -m tests.script.emission.wrong_forms --write` writes anew what is said; look at
what changed before it is kept.  A program is what stands between its title and the
rule; its function `f` is compiled.
"""

import linecache
import sys
from pathlib import Path
from typing import Any

import everyorder.runtime.jit  # noqa: F401  # modules and their forms, `super` among them
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.schema.declared import EnumType
from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.ir.program import Program

FILE = Path(__file__).parent / "wrong_forms.txt"
TITLE, RULE = "=== ", "-" * 72 + "\n"
PRELUDE = """
import warnings
from dataclasses import InitVar, dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Optional
from everyorder.runtime import Tensor
from everyorder.runtime.futures import Await, Future
from everyorder.runtime.futures import awaitable, awaitable_nowait, awaitable_wait
from everyorder.runtime.script.ir.program import (
    annotate, fork, ignore, interface, is_scripting, unchecked_cast, unused, wait,
)
"""


def defined(text: str) -> dict[str, Any]:
    """What a program defines, in a file of which the lines are known."""
    names: dict[str, Any] = {"__name__": "program", "__file__": "program.py"}
    exec(PRELUDE, names)
    linecache.cache["program.py"] = len(text), None, text.splitlines(True), "program.py"
    sys.modules["program"] = module = type(sys)("program")
    vars(module).update(names)
    exec(compile(text, "program.py", "exec", dont_inherit=True), vars(module))
    return vars(module)


def complaint(text: str) -> str:
    """What is said of a program; empty if nothing is.  Nothing of it is kept."""
    program = Program()
    try:
        compile_function(defined(text)["f"], program)
    except EveryorderError as error:
        assert not program.functions
        # An enum is whole by itself.
        kept = map(program.namespace.find, program.namespace.qualnames)
        assert all(isinstance(each, EnumType) for each in kept)
        return str(error)
    finally:
        del sys.modules["program"]
    return ""


def stored(file: Path = FILE) -> dict[str, tuple[str, str]]:
    """The programs of a file and what is said of each, by their titles."""
    found = {}
    for part in file.read_text(encoding="utf-8").split(f"\n{TITLE}")[1:]:
        title, _, rest = part.partition("\n")
        program, _, words = rest.partition(RULE)
        found[title] = program, words.removesuffix("\n")
    return found


def document(said: dict[str, tuple[str, str]]) -> str:
    """The text of the file."""
    parts = [
        f"\n{TITLE}{title}\n{p}{RULE}{words}\n" for title, (p, words) in said.items()
    ]
    return "".join(parts)


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    known = {title: (p, complaint(p)) for title, (p, _) in stored().items()}
    FILE.write_text(document(known), encoding="utf-8")
