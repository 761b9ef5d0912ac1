"""Main functions of children that a spawned one can import, and who is alive."""

import os
import time
from pathlib import Path
from typing import Any

from everyorder.harness.engine import progress
from everyorder.harness.processes.child import Parent


def echo(parent: Parent, first: Any) -> None:
    """Send the argument, then whatever is asked."""
    parent.send(first)
    try:
        while True:
            parent.send(parent.receive())
    except EOFError:
        return


def ends(parent: Parent, code: int) -> None:
    """Say something, and end."""
    parent.send("last words")
    os._exit(code)


def sleeps(parent: Parent) -> None:
    """Be about to play an operation, for ever."""
    with progress.watched(parent.cells) as beats:
        beats.progress(5, 9)
        beats.reset()
        beats.beat(3)
        parent.send("sleeping")
        time.sleep(1000)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
