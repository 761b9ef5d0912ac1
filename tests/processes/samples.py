"""Main functions of children that a spawned one can import, and who is alive."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


@contextmanager
def without_descriptors() -> Iterator[None]:
    """Let this process have no free descriptor for a while."""
    import resource  # only where processes fork

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(name) for name in os.listdir("/dev/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    fillers: list[int] = []
    try:
        with suppress(OSError):
            while True:
                fillers.append(os.dup(0))
        yield
    finally:
        for each in fillers:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
