"""Children that are started anew, each by an interpreter of its own.

True only here: how a scenario gets there.  Its functions cannot be sent, so the file
that made it is loaded again, and the scenario is found by its digest; it has to be a
variable of its module.  `harness.registry_process` is the other side.

Rules:
- all children hash alike, or their states could not be compared;
- what the scenario prints goes to standard error: standard output is the channel.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from harness.errors import NotAScenario
from harness.scenario.scenario import Scenario
from harness.systems.channel import Channel

_MAIN = "import sys; sys.path[:] = {path!r}; import harness.registry_process; {call}"


class Spawner:
    """Starts the children of one scenario.

    Raises:
        NotAScenario: no file is known that made it.
    """

    def __init__(self, scenario: Scenario) -> None:
        files = _files(scenario)
        if not files:
            raise NotAScenario(
                found="isolation='spawn' for functions that no file has",
                wanted="a scenario that is a variable of a module, or 'fork'",
            )
        call = (
            f"harness.registry_process.main({[str(file) for file in files]!r}, "
            f"{scenario.digest!r}, {scenario.name!r}, {os.getpid()})"
        )
        self._program = _MAIN.format(path=sys.path, call=call)
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def child(self, ended: list[int]) -> tuple[int, Channel]:
        """A fresh child, by process id and channel; `ended` are not needed any more."""
        for pid in ended:
            self.status(pid)
        seed = os.environ.get("PYTHONHASHSEED", "")
        child = subprocess.Popen(  # noqa: S603  # our own interpreter, our own program
            [sys.executable, "-c", self._program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed if seed.isdigit() else "0"},
        )
        assert child.stdin is not None, "it is a pipe"
        assert child.stdout is not None, "it is a pipe"
        channel = Channel(os.dup(child.stdout.fileno()), os.dup(child.stdin.fileno()))
        child.stdin.close()
        child.stdout.close()
        self._children[child.pid] = child
        return child.pid, channel

    def status(self, pid: int) -> int:
        """How a child ended; one that goes on without its channel is killed."""
        child = self._children.pop(pid)
        try:
            return child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()

    def close(self) -> None:
        """End all children."""
        for child in self._children.values():
            child.kill()
            child.wait()
        self._children.clear()


def _files(scenario: Scenario) -> list[Path]:
    """The files that may have made it, the likeliest first."""
    functions: list[Any] = [
        *(function for step in scenario.steps for function in step.functions),
        *(use.perform for use in scenario.uses),
        scenario.create,
        scenario.observe,
        scenario.check,
    ]
    paths = (Path(name) for each in functions for name in _names(each))
    found = list(dict.fromkeys(path.resolve() for path in paths if path.is_file()))
    its_own = [path for path in found if path.as_posix().endswith(scenario.source)]
    return its_own or found


def _names(function: Any) -> Iterator[str]:
    """The files of a function, and of those that it was made of."""
    if isinstance(function, partial):
        for each in (function.func, *function.args):
            yield from _names(each)
    elif isinstance(function, MethodType):
        yield from _names(function.__func__)
    elif isinstance(function, FunctionType):
        yield function.__code__.co_filename
    elif isinstance(function, type):
        module = sys.modules.get(function.__module__)
        name = getattr(module, "__file__", None)
        if name is not None:
            yield name
