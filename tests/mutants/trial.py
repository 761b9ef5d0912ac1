"""Trials: the run that is to kill, beside a module of a package that is mutated.

True only here: the process in which a mutant lives, and how it dies.  A trial is a fork
of a process that has imported nothing that knows the package, so every module that
imports the mutated one is imported anew, beside it.

| outcome   | means                                                                |
|-----------|----------------------------------------------------------------------|
| killed    | a part of the run fails, or has no end (`Target.seconds`)            |
| survived  | every part that was asked for passes                                 |
| discarded | the package cannot be imported, or what the run is made of not be    |
|           | loaded: what never ran is not killed                                 |

`python -m tests.mutants.trial TARGET` reads one order a line (JSON, see `Order`) and
writes one line for each; with the name "" nothing is mutated.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any, Literal, Protocol

from tests.mutants.mutation import NoSuchMutation, mutated
from tests.mutants.target import DISPATCH, ROOT, TARGETS, Target

# The timer of each clock, and the signal by which it ends a process.
CLOCKS = {
    "wall": (signal.ITIMER_REAL, signal.SIGALRM),
    "processor": (signal.ITIMER_PROF, signal.SIGPROF),
}

# Seconds of a part that is remembered for a mutant, beside which some have no end.
# Beside the right code they have no more, and the slowest takes a sixth of it.
REMEMBERED = 15

Outcome = Literal["killed", "survived", "discarded"]


@dataclass(frozen=True, slots=True)
class Order:
    """What to try a mutant on: these parts of the run first, then all others, if asked.

    `known` says that all parts can be loaded beside the mutant: then they are loaded
    only if they are needed.  What is in `without` is not tried at all.  One part has so
    many `seconds`, 0 for those of the target.
    """

    name: str
    first: tuple[str, ...] = ()
    everything: bool = True
    without: tuple[str, ...] = ()
    known: bool = False
    seconds: int = 0

    def limit(self, path: str) -> int:
        """Seconds that a part has; 0 for those of the target."""
        remembered = self.known and path in self.first
        return self.seconds or (REMEMBERED if remembered else 0)


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a mutant: killed `by` a part of the run, and `how`.

    `seconds` are those of the processor.
    """

    name: str
    outcome: Outcome
    by: str = ""
    how: str = ""
    seconds: float = 0.0


class Run(Protocol):
    """What mutants are tried on."""

    def begin(self, order: Order) -> None:
        """Import what is needed; what this raises discards the mutant."""

    def paths(self, order: Order) -> Iterator[str]:
        """The names of the parts that are asked for, one after the other.

        What has to be imported for others than the first may raise, as above.
        """

    def fails(self, path: str) -> str:
        """How a part fails; "" where it passes."""


class Nursery:
    """A process whose forks are the trials of one target; a context."""

    def __init__(self, target: Target) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, target.name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tried(self, order: Order) -> Trial:
        """Try a mutant in a process of its own."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None, "asked for a pipe"
        assert answers is not None, "asked for a pipe"
        print(json.dumps(asdict(order)), file=asked, flush=True)
        answer = answers.readline()
        assert answer, f"the nursery died of {order.name}"
        return Trial(**json.loads(answer))

    def __enter__(self) -> "Nursery":
        self._process.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        # It ends when there are no more orders.
        self._process.__exit__(*raised)


def run(orders: Iterable[Order], target: Target = DISPATCH) -> Iterator[Trial]:
    """Try mutants, one after the other, each in a process of its own."""
    with Nursery(target) as nursery:
        for order in orders:
            yield nursery.tried(order)


class _Mutated(SourceFileLoader):
    """Loads one module with one mutation."""

    mutation: str

    def get_code(self, fullname: str) -> Any:
        text = Path(self.path).read_text(encoding="utf-8")
        module = fullname.rpartition(".")[2]
        return mutated(module, text, self.mutation, self.path)


class _Finder(MetaPathFinder):
    """Finds the mutated module before anybody else finds the right one."""

    def __init__(self, target: Target, name: str) -> None:
        self.name = name
        module = name.partition(":")[0]
        self.module = f"{target.package}.{module}"
        self.file = target.folder / f"{module}.py"

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """The spec of the mutated module, None for all others."""
        if fullname != self.module:
            return None
        loader = _Mutated(fullname, str(self.file))
        loader.mutation = self.name
        return spec_from_file_location(fullname, self.file, loader=loader)


def _tried(target: Target, order: Order, told: Callable[[str], object]) -> Trial:
    """Try a mutant, here; `told` hears of each part of the run before it begins."""
    if order.name:
        finder = _Finder(target, order.name)
        if not finder.file.exists():
            how = told_briefly(NoSuchMutation(order.name))
            return Trial(order.name, "discarded", how=how)
        sys.meta_path.insert(0, finder)
    timer, _ = CLOCKS[target.clock]
    module, _, name = target.run.partition(":")
    try:
        run: Run = getattr(import_module(module), name)()
        run.begin(order)
        for path in run.paths(order):
            told(path)
            signal.setitimer(timer, order.limit(path) or target.seconds)
            how = run.fails(path)
            signal.setitimer(timer, 0)
            if how:
                return Trial(order.name, "killed", path, how)
    except Exception as error:
        return Trial(order.name, "discarded", how=told_briefly(error))
    return Trial(order.name, "survived")


def told_briefly(error: BaseException) -> str:
    """An exception as one line."""
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]


def _fork(target: Target, order: Order) -> Trial:
    """Try a mutant in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with suppress(ValueError, OSError):  # not everywhere is it a limit
            memory = target.memory
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        # Mutants may trace to it, and the answers of others go the other way.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
        with os.fdopen(writing, "w", buffering=1) as answers:
            try:
                found = _tried(target, order, lambda path: print(path, file=answers))
                print(json.dumps(asdict(found)), file=answers)
            finally:
                answers.flush()
                os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        lines = answers.read().splitlines()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if lines and lines[-1].startswith("{"):
        return Trial(**{**json.loads(lines[-1]), "seconds": seconds})
    ended = os.waitstatus_to_exitcode(status)
    _, late = CLOCKS[target.clock]
    how = "no end" if ended == -late else f"the process ended by {ended}"
    if not lines:
        return Trial(order.name, "discarded", how=how, seconds=seconds)
    return Trial(order.name, "killed", lines[-1], how, seconds)


def main() -> None:
    """Serve orders, one a line."""
    target = TARGETS[sys.argv[1]]
    for module in target.loaded:
        import_module(module)
    assert target.package not in sys.modules, "trials import it, each its own"
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        given = json.loads(line)
        lists = {key: tuple(given[key]) for key in ("first", "without")}
        order = Order(**{**given, **lists})
        print(json.dumps(asdict(_fork(target, order))), file=answers)


if __name__ == "__main__":
    main()
