"""Wrong programs of classes and special forms, with their errors: `wrong_forms/`.

`python -m tests.script.emission.wrong_forms --write` writes the errors again; review
the changes before you commit them. The function `f` of a program is compiled.
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
from tests.tools.golden import Golden

GOLDEN = Golden(Path(__file__).with_suffix(""), "tests.script.emission.wrong_forms")
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


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write(lambda case: f"{complaint(case.input)}\n")
