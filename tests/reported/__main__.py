"""`python -m tests.reported [NAME...]`: explore faults of public reports.

A line has the name, the verdict and the shortest history; with `--json` it is data.
"""

import json
import sys
from collections.abc import Sequence

from everyorder.harness import explore
from tests.reported.table import REPORTED, ReportedScenario


def explored(reported: ReportedScenario) -> tuple[str, tuple[str, ...]]:
    """Return the verdict on a scenario, and the lines of its shortest history."""
    report = explore(reported.load())
    lines = [report.violation_lines(each) for each in report.exploration.violations[:1]]
    return report.verdict, tuple(line for history in lines for line in history)


def main(arguments: Sequence[str]) -> int:
    names = [each for each in arguments if each != "--json"]
    for reported in REPORTED:
        if not names or reported.name in names:
            verdict, history = explored(reported)
            if "--json" in arguments:
                line = json.dumps([reported.name, verdict, history])
            else:
                line = f"{reported.name:33} {verdict:6} {'; '.join(history)}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
