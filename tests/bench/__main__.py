"""`python -m tests.bench [--write FILE] [NAME...]`: run rows, print, file them.

Names choose among the functions of `ROWS`; then nothing may be written, since the table
is written whole.
"""

import gc
import os
import sys
from pathlib import Path

from tests.bench.archive import ARCHIVE_ROWS
from tests.bench.calls import CALL_ROWS
from tests.bench.cold_start import COLD_ROWS
from tests.bench.compiling import COMPILING_ROWS
from tests.bench.expectations import EXPECTATION_ROWS
from tests.bench.fusion import FUSION_ROWS
from tests.bench.futures import FUTURE_ROWS
from tests.bench.kernels import kernels
from tests.bench.libraries import LIBRARY_ROWS
from tests.bench.limits import LIMIT_ROWS
from tests.bench.proofs import PROOF_ROWS
from tests.bench.python_dispatch import DISPATCH_ROWS
from tests.bench.realistic import REALISTIC_ROWS
from tests.bench.remote_calls import REMOTE_ROWS
from tests.bench.row import Row
from tests.bench.rows import ROWS as HARNESS_ROWS
from tests.bench.script_running import RUNNING_ROWS
from tests.bench.sessions import SESSION_ROWS
from tests.bench.training import TRAINING_ROWS

ROWS = (
    *HARNESS_ROWS,
    *PROOF_ROWS,
    *EXPECTATION_ROWS,
    *REALISTIC_ROWS,
    *LIBRARY_ROWS,
    *CALL_ROWS,
    *DISPATCH_ROWS,
    *FUTURE_ROWS,
    *FUSION_ROWS,
    *RUNNING_ROWS,
    *COMPILING_ROWS,
    *COLD_ROWS,
    *ARCHIVE_ROWS,
    *TRAINING_ROWS,
    *SESSION_ROWS,
    *REMOTE_ROWS,
    kernels,
    *LIMIT_ROWS,
)

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
# What others run; a thread that waits for a processor holds up all of its team.
BUSY = 0.7
VERDICTS = {True: "met", False: "missed", None: "not run"}


def table(rows: list[Row]) -> str:
    lines = ["| what | figure | target | |", "|---|---|---|---|"]
    for row in rows:
        said = row.why if row.met is False and row.why else row.note
        note = f" ({said})" if said else ""
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
    target = None
    if "--write" in arguments:
        at = arguments.index("--write")
        target = Path(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2 :]
    known = {measure.__name__: measure for measure in ROWS}
    unknown = [name for name in arguments if name not in known]
    if unknown or (arguments and target):
        found = ", ".join(unknown) or "--write beside names"
        print(f"cannot run {found}; rows: {', '.join(known)}", file=sys.stderr)
        return 2
    if (load := os.getloadavg()[0]) > BUSY:
        print(f"the machine is busy ({load:.1f}): rows on two threads say little")
    # What was imported, torch above all, is not to be walked by every collection.
    gc.collect()
    gc.freeze()
    for name in arguments or known:
        for row in known[name]():
            print(f"{row.what}: {row.figure}; {row.target}: {VERDICTS[row.met]}")
            sys.stdout.flush()
            rows.append(row)
    if target:
        write(target, table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
