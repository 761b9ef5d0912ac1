"""Summarise the runs of pytest that make up `make test`.

    python -m tests.tools.summary build/legs rpc rest ...

Each run, a leg of the Makefile, has written `LEG.xml` in the form `xunit1` of JUnit,
which names files.  The failed tests of all legs are printed and, last, one line with
the sums.  The exit code is 1 if a test failed, if a leg wrote nothing, because it
crashed, or if none of its tests ran.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True)
class LegSummary:
    """The figures of one leg; `seconds` are those of the wall's clock."""

    tests: int
    skipped: int
    seconds: float
    failed: tuple[str, ...]


def read(path: Path) -> LegSummary:
    """Read what a leg has written.

    Raises:
        FileNotFoundError: the leg has written nothing.
        ElementTree.ParseError: the leg was ended while it wrote.
    """
    suites = ElementTree.parse(path).getroot().iter("testsuite")  # our own file
    tests = skipped = 0
    seconds, failed = 0.0, []
    for suite in suites:
        tests += int(suite.get("tests", 0))
        skipped += int(suite.get("skipped", 0))
        seconds += float(suite.get("time", 0))
        # A test that fails at its end as well has two of these; it is one test.
        failed += [
            f"{case.get('file')}::{case.get('name')}"
            for case in suite.iter("testcase")
            if case.find("failure") is not None or case.find("error") is not None
        ]
    return LegSummary(tests, skipped, seconds, tuple(dict.fromkeys(failed)))


def summary(folder: Path, legs: list[str]) -> tuple[list[str], bool]:
    """Return the lines that summarise the legs, and True if all tests passed."""
    lines, read_legs, empty_legs = [], [], 0
    for leg in legs:
        try:
            read_legs.append(read(folder / f"{leg}.xml"))
        except (FileNotFoundError, ElementTree.ParseError):
            lines.append(f"CRASHED {leg}: it wrote no result; see its output above")
            continue
        if read_legs[-1].tests == read_legs[-1].skipped:
            empty_legs += 1
            lines.append(f"EMPTY {leg}: none of its tests ran; see LEG_{leg}, Makefile")
    lines += sorted(f"FAILED {name}" for leg in read_legs for name in leg.failed)
    skipped = sum(leg.skipped for leg in read_legs)
    failed = sum(len(leg.failed) for leg in read_legs)
    passed = sum(leg.tests for leg in read_legs) - skipped - failed
    longest = max((leg.seconds for leg in read_legs), default=0.0)
    minutes, seconds = divmod(round(longest), 60)
    is_good = len(read_legs) == len(legs) and not failed and not empty_legs
    figures = [
        f"{passed:,} passed",
        *([f"{failed:,} failed"] if failed else []),
        *(
            [f"{len(legs) - len(read_legs)} crashed"]
            if len(read_legs) < len(legs)
            else []
        ),
        *([f"{empty_legs} empty"] if empty_legs else []),
        f"{skipped:,} skipped",
    ]
    runs = f"{len(legs)} run{'s' * (len(legs) > 1)}, the longest {minutes}:{seconds:02}"
    lines.append(f"tests: {', '.join(figures)}; {runs}")
    return lines, is_good


def main() -> None:
    """Print the summary; exit with 1 if a test failed."""
    folder, *legs = sys.argv[1:]
    lines, is_good = summary(Path(folder), legs)
    print("\n".join(lines))
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
