"""`written`: the scenario of a name, tried in a process of its own.

True only here: the process.  The target is imported and called there and not here; its
output is thrown away, it has no input, and its folder is an empty one.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import HarnessError
from harness.writing.draft import Draft
from harness.writing.drafting import draft
from harness.writing.errors import TrialEnded
from harness.writing.printing import printed

# How long all trials may take together.
SECONDS = 30.0

# An interpreter of its own, and the target, have to be loaded first.
STARTING = 60.0

HOME = Path(__file__).parents[2]

_SCRIPT = (
    "import sys; sys.path.insert(0, {home!r}); "
    "from harness.writing.process import serve; serve()"
)


def written(target: str, *, path: str | Path = ".", seconds: float = SECONDS) -> str:
    """The text of a scenario of the target, for which `seconds` may be spent.

    `path` is the folder to import it from first.

    Raises:
        NoTarget: there is nothing of that name.
        NotTried: it acts on the machine.
        CannotCreate: no registry can be made.
        NothingRegisters: nothing of it registers.
        TrialEnded: it ended the process it was tried in, or stood still.
    """
    folder = str(Path(path).resolve())
    script = _SCRIPT.format(home=str(HOME))
    with TemporaryDirectory() as empty:
        process = subprocess.Popen(  # noqa: S603  # this interpreter and ourselves
            [sys.executable, "-P", "-c", script, target, folder, str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=empty,
            start_new_session=True,
        )
        try:
            told, errors = process.communicate(timeout=seconds + STARTING)
        except subprocess.TimeoutExpired:
            reason = "it did not come to an end"
            raise TrialEnded(target=target, reason=reason) from None
        finally:
            process.kill()
            process.wait()
    if not told:
        said = errors.decode(errors="replace").strip().rpartition("\n")[2]
        reason = f"its process ended with exit code {process.returncode}"
        if said:
            reason += f", saying {said!r}"
        raise TrialEnded(target=target, reason=reason)
    found: Draft | HarnessError = pickle.loads(told)  # noqa: S301  # of ourselves
    if isinstance(found, HarnessError):
        raise found
    return printed(found)


def serve() -> None:
    """Draft what the command line names, and write it to where the output was."""
    target, folder, seconds = sys.argv[1:]
    sys.argv[1:] = []
    output = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    try:
        found: Draft | HarnessError = draft(target, folder, float(seconds))
    except HarnessError as error:
        found = error
    with os.fdopen(output, "wb") as pipe:
        pipe.write(pickle.dumps(found))
        pipe.flush()
    os._exit(0)
