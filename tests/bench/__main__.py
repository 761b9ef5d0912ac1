"""`python -m tests.bench [--write README.md]`: run all rows, print, file the table."""

import gc
import sys
from pathlib import Path

from tests.bench.row import Row
from tests.bench.rows import ROWS

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
VERDICTS = {True: "met", False: "missed", None: "not run"}


def table(rows: list[Row]) -> str:
    lines = ["| what | figure | target | |", "|---|---|---|---|"]
    for row in rows:
        note = f" ({row.note})" if row.note else ""
        verdict = VERDICTS[row.met] + note
        lines.append(f"| {row.what} | {row.figure} | {row.target} | {verdict} |")
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    old = path.read_text(encoding="utf-8")
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{text}{END}{tail}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    rows: list[Row] = []
    # What was imported, torch above all, is not to be walked by every collection.
    gc.collect()
    gc.freeze()
    for measure in ROWS:
        for row in measure():
            print(f"{row.what}: {row.figure}; {row.target}: {VERDICTS[row.met]}")
            sys.stdout.flush()
            rows.append(row)
    if "--write" in arguments:
        write(Path(arguments[arguments.index("--write") + 1]), table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
