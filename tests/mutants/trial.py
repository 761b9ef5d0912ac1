"""Trials: the default run, beside a module of `runtime.dispatch` that is mutated.

True only here: the process in which a mutant lives, and what kills it.  A trial is a
fork of a process that has imported nothing of ours, so every module that imports the
mutated one is imported anew, beside it.  The default run is that of `everyorder gate`:
every scenario of the catalogue, explored, its laws checked, its expect file compared.

| outcome   | means                                                                |
|-----------|----------------------------------------------------------------------|
| killed    | a scenario fails: a law, an order or another violation, an           |
|           | expectation that differs, an exception out of the mutated package,   |
|           | or no end (`SECONDS`)                                                |
| survived  | every scenario that was asked for passes                             |
| discarded | the runtime cannot be imported, or the catalogue not be loaded: what |
|           | never ran is not killed                                              |

`python -m tests.mutants.trial` reads one order a line (JSON: `name`, `first`, `all`)
and writes one line for each; with the name "" nothing is mutated.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any, Literal

from tests.mutants.mutation import mutated

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "runtime.dispatch"
FOLDER = ROOT / "runtime" / "dispatch"
CATALOGUE = "tests/scenarios"

# What one scenario may take.  Most take a tenth of a second; the largest ten seconds.
SECONDS = 90
# A mutant that fills the memory is ended by a MemoryError, not by the machine; the
# right code takes a tenth of this.
MEMORY = 2 << 30

Outcome = Literal["killed", "survived", "discarded"]


@dataclass(frozen=True, slots=True)
class Order:
    """What to try a mutant on: these scenarios first, then all others, if asked.

    `known` says that the catalogue can be loaded beside the mutant: then it is loaded
    only if it is needed.  What is in `without` is not tried at all.
    """

    name: str
    first: tuple[str, ...] = ()
    everything: bool = True
    without: tuple[str, ...] = ()
    known: bool = False
    seconds: int = SECONDS


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a mutant: killed `by` a scenario, and `how`."""

    name: str
    outcome: Outcome
    by: str = ""
    how: str = ""
    seconds: float = 0.0


def run(orders: Iterable[Order]) -> Iterator[Trial]:
    """Try mutants, one after the other, each in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:
        assert nursery.stdin is not None, "asked for a pipe"
        assert nursery.stdout is not None, "asked for a pipe"
        for order in orders:
            print(json.dumps(asdict(order)), file=nursery.stdin, flush=True)
            answer = nursery.stdout.readline()
            assert answer, f"the nursery died of {order.name}"
            yield Trial(**json.loads(answer))
        nursery.stdin.close()


class _Mutated(SourceFileLoader):
    """Loads one module with one mutation."""

    mutation: str

    def get_code(self, fullname: str) -> Any:
        text = Path(self.path).read_text(encoding="utf-8")
        module = fullname.rpartition(".")[2]
        return mutated(module, text, self.mutation, self.path)


class _Finder(MetaPathFinder):
    """Finds the mutated module before anybody else finds the right one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = f"{PACKAGE}.{name.partition(':')[0]}"

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """The spec of the mutated module, None for all others."""
        if fullname != self.module:
            return None
        file = FOLDER / f"{fullname.rpartition('.')[2]}.py"
        loader = _Mutated(fullname, str(file))
        loader.mutation = self.name
        return spec_from_file_location(fullname, file, loader=loader)


def _tried(order: Order, told: Callable[[str], object]) -> Trial:
    """Try a mutant, here; `told` hears of each scenario before it is explored."""
    if order.name:
        sys.meta_path.insert(0, _Finder(order.name))
    default_run = DefaultRun()
    try:
        default_run.imports()
        if order.known or not order.everything:
            default_run.loads(sorted({_file(path) for path in order.first}))
        else:
            default_run.loads([CATALOGUE])
    except Exception as error:
        return Trial(order.name, "discarded", how=_shown(error))
    for path in default_run.paths(order):
        told(path)
        signal.alarm(order.seconds)
        how = default_run.fails(path)
        signal.alarm(0)
        if how:
            return Trial(order.name, "killed", path, how)
    return Trial(order.name, "survived")


class DefaultRun:
    """The harness, as far as it is needed here."""

    def __init__(self) -> None:
        self._scenarios: dict[str, Any] = {}

    def imports(self) -> None:
        """Import all of the package, and what is built on it."""
        for file in sorted(FOLDER.glob("*.py")):
            import_module(f"{PACKAGE}.{file.stem}".removesuffix(".__init__"))
        import_module("runtime.whole")

    def loads(self, paths: Sequence[str]) -> None:
        """Load scenarios.  Raises ImportError where a file of them cannot be loaded."""
        from harness.catalogue import load

        catalogue = load(paths, start=ROOT) if paths else None
        for each in catalogue.entries if catalogue else ():
            self._scenarios[each.scenario.path] = each.scenario
        if catalogue and catalogue.broken:
            raise ImportError(catalogue.broken[0].reason)

    def paths(self, order: Order) -> Iterator[str]:
        """What to explore, one after the other."""
        first = [path for path in order.first if path not in order.without]
        yield from (path for path in first if path in self._scenarios)
        if order.everything:
            self.loads([CATALOGUE])
            others = set(self._scenarios).difference(first, order.without)
            yield from sorted(others, key=lambda path: _size(self._scenarios[path]))

    def fails(self, path: str) -> str:
        """How a scenario fails; "" where it passes."""
        from harness.expectations import Store, compare
        from harness.exploring import explore

        try:
            report = explore(self._scenarios[path], stop_after=1)
        except Exception as error:
            # What the harness itself refuses is a wrong question, and no kill.
            return f"raised {_shown(error)}" if _is_ours(error) else ""
        if not report.passed:
            kinds = [each.kind for each in report.exploration.violations]
            return ", ".join(dict.fromkeys(kinds)) or report.verdict
        expected = Store(ROOT).read(path)
        if expected is None:
            return ""
        found = compare(expected, report, effort=False)
        return "" if found.passed else f"expectation {found.verdict}"


def _file(path: str) -> str:
    """The file of a scenario, from the root."""
    return f"tests/{path.rpartition('/')[0]}.py"


def _size(scenario: Any) -> tuple[int, str]:
    """The small ones first: nearly all mutants die of one."""
    return len(scenario.steps) + len(scenario.uses), scenario.path


def _is_ours(error: BaseException | None) -> bool:
    """Whether an exception comes out of the package under mutation."""
    while error is not None:
        frame = error.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code.co_filename.startswith(str(FOLDER)):
                return True
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
    return False


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:200]


def _fork(order: Order) -> Trial:
    """Try a mutant in a fork of this process."""
    begun = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with suppress(ValueError, OSError):  # not everywhere is it a limit
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        # Mutants may trace to it, and the answers of others go the other way.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
        with os.fdopen(writing, "w", buffering=1) as answers:
            try:
                found = _tried(order, lambda path: print(path, file=answers))
                print(json.dumps(asdict(found)), file=answers)
            finally:
                answers.flush()
                os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        lines = answers.read().splitlines()
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - begun
    if lines and lines[-1].startswith("{"):
        return Trial(**{**json.loads(lines[-1]), "seconds": seconds})
    ended = os.waitstatus_to_exitcode(status)
    how = "no end" if ended == -signal.SIGALRM else f"the process ended by {ended}"
    if not lines:
        return Trial(order.name, "discarded", how=how, seconds=seconds)
    return Trial(order.name, "killed", lines[-1], how, seconds)


def main() -> None:
    """Serve orders, one a line."""
    # What takes long to import and knows nothing of us.
    for module in ("ml_dtypes", "numpy", "pytest"):
        import_module(module)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        given = json.loads(line)
        lists = {key: tuple(given[key]) for key in ("first", "without")}
        order = Order(**{**given, **lists})
        print(json.dumps(asdict(_fork(order))), file=answers)


if __name__ == "__main__":
    main()
