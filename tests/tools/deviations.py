"""Where the runtime differs from torch 2.13 by decision: `docs/deviations.toml`, read.

    python -m tests.tools.deviations      write docs/deviations.md anew

The table is data, so that documents, tests and the comparison with the real torch read
the same rows, and the runtime knows nothing of them.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

DOCUMENTS = Path(__file__).parents[2] / "docs"
TABLE = DOCUMENTS / "deviations.toml"
PRINTED = DOCUMENTS / "deviations.md"

HEAD = """\
# Deviations

Where the runtime differs from PyTorch 2.13 by decision, and why; the table is
`deviations.toml`. The last column names the prediction by which the comparison with the
real torch (`tests/torch/predictions.py`) expects the difference, and asserts that it
occurs.
"""
COLUMNS = """
| what | upstream | ours | why | predicted by |
|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference: its name, torch's behaviour, ours, the reason, a prediction."""

    what: str
    upstream: str
    ours: str
    why: str
    predicted_by: str = ""


SECTIONS = {
    section: tuple(
        Deviation(**{name.replace("-", "_"): text for name, text in row.items()})
        for row in rows
    )
    for section, rows in tomllib.loads(TABLE.read_text(encoding="utf-8")).items()
}
DEVIATIONS = tuple(each for rows in SECTIONS.values() for each in rows)


def cell(text: str) -> str:
    """Text that may stand between the bars of a table."""
    return text.replace("|", "\\|")


def line(each: Deviation) -> str:
    """A row as a line of a table."""
    predicted = f"`{each.predicted_by}`" if each.predicted_by else ""
    texts = (each.what, each.upstream, each.ours, each.why)
    return f"| {' | '.join(map(cell, texts))} | {predicted} |\n"


def printed() -> str:
    """The document: one table for each section."""
    return HEAD + "".join(
        f"\n## {section}\n{COLUMNS}{''.join(map(line, rows))}"
        for section, rows in SECTIONS.items()
    )


if __name__ == "__main__":
    PRINTED.write_text(printed(), encoding="utf-8")
