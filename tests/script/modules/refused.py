"""Modules that cannot be compiled, with their errors: `refused/`.

`python -m tests.script.modules.refused --write` writes the errors again; review the
changes before you commit them. A program compiles at its end.
"""

import linecache
import sys
from pathlib import Path
from typing import Any

from everyorder.runtime.errors.base import code_of
from tests.tools.golden import Golden

GOLDEN = Golden(Path(__file__).with_suffix(""), "tests.script.modules.refused")
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


def said(error: Exception | None) -> str:
    """Return the class and the text of an error, as lines."""
    return "nothing\n" if error is None else f"{code_of(error)}: {error}\n"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write(lambda case: said(complaint(case.input)))
