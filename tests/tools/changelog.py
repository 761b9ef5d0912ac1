"""Build a section of the changelog from the fragments in `.changes/`.

    python -m tests.tools.changelog                         print the unreleased section
    python -m tests.tools.changelog --release 2030-01-31    write it into CHANGELOG.md

A fragment is a file `.changes/TOPIC.KIND.md` that holds one entry. Two branches that
change different things add different files, so they do not conflict. A release writes
the section of the version that `pyproject.toml` names and deletes the fragments.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAGMENTS = ROOT / ".changes"
CHANGELOG = ROOT / "CHANGELOG.md"

# The kinds of Keep a Changelog 1.1.0, in the order of the sections.
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")

UNRELEASED = "## Unreleased\n"
_NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")


def fragments(folder: Path) -> list[Path]:
    """Return the fragments in a folder, sorted by name.

    Raises:
        ValueError: a file is not named `TOPIC.KIND.md`, or does not begin with `- `.
    """
    paths = sorted(folder.glob("*.md"))
    for path in paths:
        if _NAME.fullmatch(path.name) is None:
            kinds = ", ".join(KINDS)
            raise ValueError(
                f"invalid fragment name '{path.name}': expected TOPIC.KIND.md with a "
                f"lower-case topic and one of the kinds {kinds}"
            )
        if not path.read_text(encoding="utf-8").startswith("- "):
            raise ValueError(
                f"invalid fragment '{path.name}': expected a list item; begin the "
                "entry with `- `"
            )
    return paths


def body(paths: Iterable[Path]) -> str:
    """Return the entries as Markdown, one heading for each kind that has entries."""
    entries: dict[str, str] = dict.fromkeys(KINDS, "")
    for path in paths:
        kind = path.name.split(".")[1]
        entries[kind] += path.read_text(encoding="utf-8").strip() + "\n"
    return "\n".join(
        f"### {kind.capitalize()}\n\n{text}" for kind, text in entries.items() if text
    )


def release(changelog: str, version: str, day: date, entries: str) -> str:
    """Return the changelog with a section for a version below "Unreleased".

    Raises:
        ValueError: the version has a section already, or "Unreleased" is missing.
    """
    if re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        raise ValueError(
            f"version {version} has a section already: set the new version in "
            "pyproject.toml first"
        )
    if UNRELEASED not in changelog:
        raise ValueError(f"the changelog lacks the heading '{UNRELEASED.strip()}'")
    head, _, rest = changelog.partition(UNRELEASED)
    note, heading, older = rest.partition("\n## ")
    section = f"\n## {version} - {day.isoformat()}\n\n{entries}"
    return head + UNRELEASED + note + section + heading + older


def current_version() -> str:
    """Return the version in `pyproject.toml`."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version: str = document["project"]["version"]
    return version


def main(arguments: list[str]) -> int:
    """Print the section, or write it into the changelog."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.changelog")
    parser.add_argument(
        "--release", type=date.fromisoformat, metavar="DATE", help="as YYYY-MM-DD"
    )
    day: date | None = parser.parse_args(arguments).release
    try:
        paths = fragments(FRAGMENTS)
        if day is None:
            print(body(paths), end="")
            return 0
        old = CHANGELOG.read_text(encoding="utf-8")
        new = release(old, current_version(), day, body(paths))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    CHANGELOG.write_text(new, encoding="utf-8")
    for path in paths:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
