"""Newly started children with one fresh registry each.

A newly started child has a separate interpreter.  The scenario's functions cannot be
sent, so the module that created it is imported again under its name, and the scenario
is found by its digest; it has to be a variable of its module.  `serve_registry` of
`harness.exploration.explore_scenario` is the other side.

Rules:
- all children have the same hash seed, because otherwise their states could not be
  compared;
- the scenario's output in a child is written to standard error: standard output is the
  channel.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.processes.messages import PipeEnd
from everyorder.harness.scenario.scenario import Scenario

_MAIN = (
    "import sys; sys.path[:] = {path!r}; "
    "from everyorder.harness.exploration.explore_scenario import serve_registry; {call}"
)


class Spawner:
    """Starts the children of one scenario.

    Raises:
        NotAScenario: the file that created the scenario is unknown.
    """

    def __init__(self, scenario: Scenario) -> None:
        files = _source_files(scenario)
        if not files:
            raise NotAScenario(
                found="isolation='spawn' for functions that no file has",
                wanted="a scenario that is a variable of a module, or 'fork'",
            )
        call = (
            f"serve_registry({files!r}, "
            f"{scenario.digest!r}, {scenario.name!r}, {os.getpid()})"
        )
        self._program = _MAIN.format(path=sys.path, call=call)
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def child(self, ended: list[int]) -> tuple[int, PipeEnd]:
        """Return a fresh child: process id and channel; `ended` may be reaped.

        Raises:
            OSError: the system refuses a process, or descriptors for its channel.
        """
        for pid in ended:
            self.status(pid)
        seed = os.environ.get("PYTHONHASHSEED", "")
        child = subprocess.Popen(  # noqa: S603  # our own interpreter, our own program
            [sys.executable, "-c", self._program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed if seed.isdigit() else "0"},
        )
        # First: without a descriptor for its channel, `close` ends it.
        self._children[child.pid] = child
        assert child.stdin is not None, "it is a pipe"
        assert child.stdout is not None, "it is a pipe"
        channel = PipeEnd(os.dup(child.stdout.fileno()), os.dup(child.stdin.fileno()))
        child.stdin.close()
        child.stdout.close()
        return child.pid, channel

    def status(self, pid: int) -> int:
        """Return the exit status; kill a child that runs on without its channel."""
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


def _source_files(scenario: Scenario) -> list[tuple[str, str]]:
    """Return files that may have created the scenario, with the names of their modules.

    The likeliest is first.
    """
    functions: list[Any] = [
        *(function for step in scenario.steps for function in step.functions),
        *(use.perform for use in scenario.uses),
        scenario.create,
        scenario.observe,
        scenario.check,
    ]
    places = (place for each in functions for place in _function_places(each))
    files = {
        str(Path(file).resolve()): name for file, name in places if Path(file).is_file()
    }
    ends = scenario.source
    its_own = [
        each for each in files.items() if Path(each[0]).as_posix().endswith(ends)
    ]
    return its_own or list(files.items())


def _function_places(function: Any) -> Iterator[tuple[str, str]]:
    """Yield files and modules of a function, and of the functions that it wraps."""
    if isinstance(function, partial):
        for each in (function.func, *function.args):
            yield from _function_places(each)
    elif isinstance(function, MethodType):
        yield from _function_places(function.__func__)
    elif isinstance(function, FunctionType):
        yield function.__code__.co_filename, function.__module__
    elif isinstance(function, type):
        module = sys.modules.get(function.__module__)
        name = getattr(module, "__file__", None)
        if name is not None:
            yield name, function.__module__
