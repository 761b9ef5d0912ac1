"""What a transport has told, and whoever waits for it.

`Inbox` is given to `start`; `until` waits for a condition, and fails after a minute.
`folder` is a short path that only this user opens: a socket's path has 103 bytes.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, current_thread

from everyorder.runtime.rpc.transport import Link, LinkState, Transport
from everyorder.runtime.rpc.transport.interface import Buffer

ROOT = Path(__file__).parents[3]
# Nothing takes as long: a test that waits for more has failed.
SECONDS = 60
# So often is looked whether something came of what was told.
LOOK = 0.05


class Inbox:
    """Packets, links and times, as they were told."""

    def __init__(self) -> None:
        self.packets: list[list[bytes]] = []
        self.raw: list[list[Buffer]] = []
        self.keys: list[str] = []
        self.links: list[Link] = []
        self.times = 0
        self.threads: set[object] = set()
        self.fails: list[Exception] = []
        self._changed = Condition()

    def start(self, transport: Transport) -> None:
        transport.start(self.packet, self.time, self.link)

    def packet(self, frames: list[Buffer], key: str) -> None:
        with self._changed:
            self.packets.append([bytes(each) for each in frames])
            self.raw.append(frames)
            self.keys.append(key)
            self._told()

    def time(self) -> None:
        with self._changed:
            self.times += 1
            self._told()

    def link(self, link: Link) -> None:
        with self._changed:
            self.links.append(link)
            self._told()

    def _told(self) -> None:
        self.threads.add(current_thread())
        self._changed.notify_all()
        if self.fails:
            raise self.fails.pop()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that what is told makes true, or what follows from it."""
        with self._changed:
            said = any(
                self._changed.wait_for(condition, LOOK)
                for _ in range(round(SECONDS / LOOK))
            )
        assert said, (self.packets[:9], self.links, self.times)

    def until_packets(self, many: int) -> None:
        self.until(lambda: len(self.packets) >= many)

    def tagged(self) -> list[bytes]:
        """The first frames of packets that have more than one."""
        return [each[0] for each in self.packets if len(each) > 1]

    def until_link(self, endpoint: str, state: LinkState) -> Link:
        def told() -> list[Link]:
            return [
                each
                for each in self.links
                if each.endpoint == endpoint and each.state is state
            ]

        self.until(lambda: bool(told()))
        return told()[-1]


@contextmanager
def folder() -> Iterator[str]:
    made = tempfile.mkdtemp(prefix="eo-")
    try:
        yield os.path.realpath(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def process(*arguments: str, module: str) -> Iterator["Process"]:
    """A module run as a program; it is killed at the end at the latest."""
    run = subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Process(run)
    finally:
        run.kill()
        run.wait()
        for pipe in (run.stdin, run.stdout):
            assert pipe is not None
            pipe.close()


class Process:
    """A program that is spoken to by lines."""

    def __init__(self, run: "subprocess.Popen[str]") -> None:
        self.run = run

    def line(self) -> str:
        assert self.run.stdout is not None
        return self.run.stdout.readline().strip()

    def say(self, line: str) -> None:
        assert self.run.stdin is not None
        self.run.stdin.write(line + "\n")
        self.run.stdin.flush()

    def stop(self) -> None:
        """Stop it as Ctrl-Z does; it has stopped when this returns."""
        self.run.send_signal(signal.SIGSTOP)
        os.waitpid(self.run.pid, os.WUNTRACED)

    def ended(self) -> int:
        assert self.run.stdin is not None
        self.run.stdin.close()
        return self.run.wait(SECONDS)


def sizes(frames: Sequence[Buffer]) -> list[int]:
    return [len(each) for each in frames]
