"""The main function of a process that holds one registry (`isolation="spawn"`).

True only here: where standard streams and the scenario come from.  The channel is what
were standard input and output; from then on nothing is read, and whatever is printed
goes to standard error.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.catalogue import load_file, root_of
from harness.errors import NotAScenario
from harness.scenario.scenario import Scenario
from harness.systems.isolated import become_child
from harness.systems.zygote import Channel, die_with_parent


def main(files: Sequence[str], digest: str, name: str, parent: int) -> None:
    """Serve the scenario of that digest from one of the files; never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    channel = Channel(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    scenario = _scenario(files, digest, name)
    if scenario is not None:
        become_child(scenario, channel)
    with suppress(EOFError, OSError):
        channel.receive()
        found = f"isolation='spawn' for a scenario that {' and '.join(files)} lacks"
        wanted = "a scenario that is a variable of its module, or 'fork'"
        channel.send(("error", NotAScenario(found=found, wanted=wanted)))


def _scenario(files: Sequence[str], digest: str, name: str) -> Scenario | None:
    """The scenario; one of that name if several have the digest."""
    found = [
        entry.scenario
        for file in map(Path, files)
        for entry in load_file(file, root_of(file)).entries
        if entry.scenario.digest == digest and entry.scenario.isolation == "spawn"
    ]
    found.sort(key=lambda each: each.name != name)
    return found[0] if found else None
