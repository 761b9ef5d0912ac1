"""`python -m tests.libraries [NAME...]`: explore real libraries, each in a process.

A row has the seconds of processor time until the first operation and until the verdict,
the verdict, and how many remarks limit it.  Packages that are missing are named; they
are those of the extra `libraries`.  With `--json` and one name the row is data.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from time import process_time
from typing import Any, NamedTuple

from everyorder.harness import explore
from everyorder.harness.systems.registry import RegistrySystem
from tests.libraries.table import LIBRARIES, LibraryScenario


class Measured(NamedTuple):
    """What one exploration took, in seconds of processor time, and what it said."""

    name: str
    first: float
    seconds: float
    verdict: str
    operations: int
    remarks: int
    # The shortest history that shows a fault, a line for each operation.
    history: Sequence[str] = ()

    def row(self) -> str:
        return (
            f"{self.name:20} {self.first:5.1f} s {self.seconds:6.1f} s  "
            f"{self.verdict:10} {self.operations:6,} operations, "
            f"{self.remarks} remarks"
        )


def measured(library: LibraryScenario) -> Measured:
    """Explore one scenario in this process."""
    warnings.simplefilter("ignore")  # those of the libraries, once for each system
    scenario = library.load()
    perform = RegistrySystem._perform
    first: list[float] = []

    def timed(system: RegistrySystem, *arguments: Any) -> Any:
        first.append(process_time() - start)
        RegistrySystem._perform = perform  # type: ignore[method-assign]  # as it was
        return system._perform(*arguments)

    RegistrySystem._perform = timed  # type: ignore[assignment, method-assign]  # once
    start = process_time()
    report = explore(scenario)
    seconds = process_time() - start
    exploration = report.exploration
    played = exploration.executed.transitions
    lines = [report.violation_lines(each) for each in exploration.violations[:1]]
    return Measured(
        *(library.name, first[0], seconds, report.verdict, played),
        len(exploration.caveats),
        [line for history in lines for line in history],
    )


def main(arguments: Sequence[str]) -> int:
    names = [each for each in arguments if each != "--json"]
    chosen = [each for each in LIBRARIES if not names or each.name in names]
    missing = [each.package for each in chosen if not each.is_installed]
    if missing:
        print("not installed:", ", ".join(sorted(set(missing))))
    present = [each for each in chosen if each.is_installed]
    if len(names) == 1:
        for library in present:
            result = measured(library)
            line = json.dumps(result) if "--json" in arguments else result.row()
            print(line, flush=True)
        return 0
    commands = (
        [sys.executable, "-m", "tests.libraries", each.name] for each in present
    )
    return max((subprocess.run(each).returncode for each in commands), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
