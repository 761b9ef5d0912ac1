"""Wrong programs with remote calls, with their errors: `wrong_calls.test`.

`python -m tests.rpc.script.wrong_calls --write` writes the errors again; review the
changes before you commit them. The function `f` of a program is compiled.
"""

import linecache
import sys
from pathlib import Path
from typing import Any

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.ir.program import Program
from tests.rpc.script.fakes import World
from tests.tools.golden import Golden

GOLDEN = Golden(Path(__file__).with_suffix(".test"), "tests.rpc.script.wrong_calls")
PRELUDE = """
from typing import Any, Dict, List, Optional
from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.codec.named_functions import async_execution
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.script.ir.program import ignore
from tests.rpc.script import fakes as rpc
from tests.rpc.script.fakes import RRef
def two(x: Tensor, n: int, scale: float = 1.0) -> Tensor:
    return x * n * scale
def one(x: int, *, by: int) -> int:
    return x + by
"""


def defined(text: str) -> dict[str, Any]:
    """What a program defines, in a file of which the lines are known."""
    module = type(sys)("program")
    sys.modules["program"] = module
    for file, part in (("prelude.py", PRELUDE), ("program.py", text)):
        lines = part.splitlines(True)
        linecache.cache[file] = len(part), None, lines, file
        exec(compile(part, file, "exec", dont_inherit=True), vars(module))
    return vars(module)


def complaint(text: str) -> str:
    """What is said of a program; empty if nothing is.  Nothing of it is kept."""
    program = Program()
    with World().plugged():
        try:
            compile_function(defined(text)["f"], program)
        except EveryorderError as error:
            assert not program.functions
            return str(error)
        finally:
            del sys.modules["program"]
    return ""


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write(lambda case: f"{complaint(case.input)}\n")
