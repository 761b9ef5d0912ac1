"""Faults on real processes: killed, stopped, cut off, full, forked."""

import errno
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zmq

from everyorder.runtime.rpc.transport import Link, LinkState, LocalTransport, sockets
from everyorder.runtime.rpc.transport.addresses import Keys, parse_address
from everyorder.runtime.rpc.transport.sockets import SocketTransport
from tests.forking import in_child, needs_fork
from tests.rpc.transport.inbox import ROOT, Inbox, Process, folder, process
from tests.rpc.transport.proxying import Proxy

ECHO = "tests.rpc.transport.echoing"


class World:
    """A worker here, and programs that send back what they get."""

    def __init__(self, ends: ExitStack, kind: str, **more: Any) -> None:
        self._ends = ends
        home = ends.enter_context(folder())
        self.keys = Keys.create(f"{home}/keys") if kind == "tcp" else None
        self.folder = self.keys.folder if self.keys else ""
        self.address = "tcp://127.0.0.1:0" if kind == "tcp" else f"ipc://{home}/s/"
        self.worker = SocketTransport(self.address, self.keys, **more)
        ends.callback(self.worker.close, linger=0)
        self.inbox = Inbox()
        self.inbox.start(self.worker)

    def program(self, address: str = "") -> tuple[Process, str]:
        """A program, and its endpoint."""
        made = self.start(address)
        return made, made.line()

    def start(self, address: str = "") -> Process:
        """A program that has not said its endpoint yet."""
        arguments = [address or self.address, self.folder]
        return self._ends.enter_context(process(*arguments, module=ECHO))

    def ask(self, endpoint: str, *frames: bytes) -> None:
        self.worker.send(endpoint, [self.worker.endpoint.encode(), *frames])

    def echo(self, endpoint: str, text: bytes) -> None:
        """Check that a program answers; packets may be lost while a link is made."""

        def answered() -> bool:
            self.worker.wake_at(0.2)
            self.ask(endpoint, text)
            return [text] in self.inbox.packets

        self.inbox.until(answered)


@pytest.fixture(params=["tcp", pytest.param("ipc", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with ExitStack() as ends:
        yield World(ends, request.param)


def test_killed(world: World) -> None:
    """It is told at once, sending goes on without it, and one that comes back works."""
    program, endpoint = world.program()
    world.echo(endpoint, b"before")
    program.run.send_signal(signal.SIGKILL)
    world.inbox.until_link(endpoint, LinkState.DOWN)
    world.inbox.until_link(endpoint, LinkState.ABSENT)
    for _ in range(1000):
        world.ask(endpoint, b"into the void")
    world.worker.forget(endpoint)
    assert world.worker.counts()["lost"] == 0
    again, same = world.program(endpoint.partition("#")[0])
    assert same == endpoint
    world.echo(endpoint, b"after")
    assert again.ended() == 0
    states = [each.state for each in world.inbox.links if each.endpoint == endpoint]
    assert states[:3] == [LinkState.UP, LinkState.DOWN, LinkState.ABSENT]


@pytest.mark.slow
def test_one_that_comes_back_gets_what_waited(world: World) -> None:
    program, endpoint = world.program()
    world.echo(endpoint, b"before")
    program.run.kill()
    world.inbox.until_link(endpoint, LinkState.ABSENT)
    sent = [b"%d" % number for number in range(100)]
    for each in sent:
        world.ask(endpoint, each)
    again, _ = world.program(endpoint.partition("#")[0])
    world.inbox.until(lambda: [sent[-1]] in world.inbox.packets)
    came = [each[0] for each in world.inbox.packets if each[0].isdigit()]
    assert came == sent
    assert again.ended() == 0


class Full:
    """A context that has no more files for sockets of a kind."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], kind: int) -> None:
        self._context = context
        self._kind = kind

    def socket(self, kind: int) -> zmq.Socket[bytes]:
        if kind == self._kind:
            raise zmq.ZMQError(errno.EMFILE)
        return self._context.socket(kind)


@pytest.mark.parametrize("kind", [zmq.PUSH, zmq.PAIR])
def test_no_more_files(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    """What would need another socket is lost and told; the next time it may be had."""
    _, there = world.program()
    _, other = world.program()
    world.echo(there, b"before")
    with monkeypatch.context() as patch:
        patch.setattr(world.worker, "_context", Full(world.worker._context, kind))
        world.ask(other, b"lost")
        told = Link(other, LinkState.ABSENT, detail="Too many open files")
        world.inbox.until(lambda: told in world.inbox.links)
        assert world.worker.counts()["lost"] == 1
        world.echo(there, b"meanwhile")
    world.echo(other, b"after")
    assert [b"lost"] not in world.inbox.packets


def test_stopped(world: World) -> None:
    """Nothing waits for it; when it goes on, everything is there, in order."""
    program, endpoint = world.program()
    world.echo(endpoint, b"before")
    program.stop()
    sent = [b"%d" % number for number in range(5000)]
    for each in sent:
        world.ask(endpoint, each, b"x" * 500)
    assert world.inbox.tagged() == []
    program.run.send_signal(signal.SIGCONT)
    world.inbox.until(lambda: len(world.inbox.tagged()) >= len(sent))
    assert world.inbox.tagged() == sent
    assert world.worker.counts()["lost"] == 0


@pytest.mark.slow
def test_stopped_and_full(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is lost and counted; nothing waits, here or at the end."""
    monkeypatch.setattr(sockets, "MOST_WAITING", 50)
    program, endpoint = world.program()
    world.echo(endpoint, b"before")
    program.stop()
    many = 20_000
    for number in range(many):
        world.ask(endpoint, b"%d" % number, b"x" * 5000)
    lost = world.worker.counts()["lost"]
    assert 0 < lost < many
    program.run.send_signal(signal.SIGCONT)
    world.inbox.until(lambda: len(world.inbox.tagged()) >= many - lost)
    came = [int(each) for each in world.inbox.tagged()]
    assert came == sorted({*came})
    assert len(came) == many - lost


def test_a_stopped_peer_does_not_hold_up_the_end(world: World) -> None:
    program, endpoint = world.program()
    world.echo(endpoint, b"before")
    program.stop()
    for _ in range(100):
        world.ask(endpoint, b"x" * 1_000_000)
    world.worker.close(linger=0.1)
    assert not world.worker._threads[0].is_alive()


@pytest.mark.slow
def test_a_stopped_peer_holds_up_nobody_else(world: World) -> None:
    (program, endpoint), (_, other) = world.program(), world.program()
    world.echo(endpoint, b"before")
    program.stop()
    for _ in range(100):
        world.ask(endpoint, b"x" * 1_000_000)
    world.echo(other, b"still here")


def test_reset() -> None:
    """A connection that is cut is told, made again, and used again."""
    with ExitStack() as ends:
        world = World(ends, "tcp")
        assert world.keys is not None
        _, endpoint = world.program()
        proxy = ends.enter_context(closing(Proxy(parse_address(endpoint).port)))
        through = str(replace(parse_address(endpoint), port=proxy.port))
        world.echo(through, b"before")
        for number in range(5):
            del world.inbox.links[:]
            for text in range(20):
                world.ask(through, b"%d" % text, b"in flight")
            proxy.reset()
            world.inbox.until_link(through, LinkState.DOWN)
            world.inbox.until_link(through, LinkState.UP)
            world.echo(through, b"after %d" % number)
            # Some were lost, and none came twice or out of turn.
            came = [int(each) for each in world.inbox.tagged()]
            assert came == sorted({*came})
            del world.inbox.packets[:]


@pytest.mark.slow
def test_24_workers() -> None:
    """Each is reached, each answers; all end."""
    with ExitStack() as ends:
        world = World(ends, "tcp")
        started = [world.start() for _ in range(24)]
        programs = [(program, program.line()) for program in started]
        for number, (_, endpoint) in enumerate(programs):
            for text in range(20):
                world.ask(endpoint, b"%d" % number, b"%d" % text)
        world.inbox.until_packets(24 * 20)
        for number in range(24):
            came = [e[1] for e in world.inbox.packets if e[0] == b"%d" % number]
            assert came == [b"%d" % text for text in range(20)]
        for program, _ in programs:
            assert program.run.stdin is not None
            program.run.stdin.close()
        assert [program.run.wait(60) for program, _ in programs] == [0] * 24


def test_24_workers_of_one_process() -> None:
    with ExitStack() as ends:
        home = ends.enter_context(folder())
        made = []
        for _ in range(24):
            worker, inbox = SocketTransport(f"ipc://{home}/"), Inbox()
            ends.callback(worker.close)
            inbox.start(worker)
            made.append((worker, inbox))
        for worker, _ in made:
            for other, _ in made:
                worker.send(other.endpoint, [worker.endpoint.encode()])
        for _, inbox in made:
            inbox.until_packets(24)
            assert sorted(inbox.packets) == sorted(
                [worker.endpoint.encode()] for worker, _ in made
            )


@needs_fork
def test_forked(world: World) -> None:
    """A child's transport is closed, its own one works, and the parent's goes on."""
    other, inbox = SocketTransport(world.address, world.keys), Inbox()
    inbox.start(other)
    local = LocalTransport("parent")
    with closing(other), closing(local):
        world.worker.send(other.endpoint, [b"before", b"x" * 1_000_000])
        inbox.until_packets(1)

        def child() -> bool:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                world.worker.send(other.endpoint, [b"by the child"])
                world.worker.wake_at(0)
                world.worker.forget(other.endpoint)
                lost = world.worker.counts()["lost"]
                world.worker.close()
                local.close()
                mine, own = SocketTransport(world.address, world.keys), Inbox()
                own.start(mine)
                mine.send(other.endpoint, [b"of the child", b"x" * 1_000_000])
                mine.send(mine.endpoint, [b"to itself"])
                own.until_packets(1)
                mine.close(linger=20)
                LocalTransport("parent").close()
            return own.packets == [[b"to itself"]] and lost == 1

        assert in_child(child)
        inbox.until_packets(2)
        world.worker.send(other.endpoint, [b"after"])
        inbox.until_packets(3)
        assert [each[0] for each in inbox.packets] == [
            b"before",
            b"of the child",
            b"after",
        ]
        assert LinkState.DOWN not in {
            each.state for each in world.inbox.links if each.endpoint == other.endpoint
        }


LEFT_OPEN = """
from everyorder.runtime.rpc.transport.sockets import SocketTransport
import sys
worker = SocketTransport(sys.argv[1])
worker.start(lambda *_: print("came", flush=True) or sys.exit(3), lambda: None)
worker.send(worker.endpoint, [b"x" * 1_000_000])
worker.send(sys.argv[1] + "nobody", [b"x" * 1_000_000])
"""


def printed_by(code: str, *options: str) -> str:
    """What a program prints that is told a folder, and ends without an error."""
    with folder() as home:
        run = subprocess.run(
            [sys.executable, *options, "-c", code, f"ipc://{home}/"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pytest.mark.parametrize("ending", ["", "worker.close()"])
def test_a_program_that_ends_ends(ending: str) -> None:
    """Whether it closes its worker or not; without a warning."""
    printed_by(LEFT_OPEN + ending, "-X", "dev", "-W", "error")


# Imported by remote calls, which read the interface of transports first.
TOLD_AT_EXIT = """
import everyorder.runtime.rpc
from everyorder.runtime.rpc.transport import sockets
close = sockets.SocketTransport.close
def told(self, linger=1.0):
    close(self, linger)
    print("closed", self._closed, "kept", not sockets.garbage.gc._stay_down, flush=True)
sockets.SocketTransport.close = told
"""


def test_what_is_left_open_is_closed_when_the_program_ends() -> None:
    """Before ZeroMQ frees the memory in which is what is still sent."""
    printed = printed_by(TOLD_AT_EXIT + LEFT_OPEN)
    assert printed.splitlines()[-1] == "closed True kept True"


CLOSED_BY_A_CALLBACK = """
import atexit, threading, time
atexit.register(lambda: print([each.name[:8] for each in threading.enumerate()]))
from everyorder.runtime.rpc.transport.sockets import SocketTransport
import sys
closed = threading.Event()
def close(*_):
    worker.close(linger=0.5)
    closed.set()
worker = SocketTransport(sys.argv[1])
worker.start(close, lambda: None)
worker.send(sys.argv[1] + "nobody", [b"x" * 1_000_000])
worker.send(worker.endpoint, [b"close"])
closed.wait()
"""


def test_what_a_callback_closes_has_ended_when_the_program_does() -> None:
    """It lingers in a thread of its own, and what it sends is not freed meanwhile."""
    assert "rpc ends" not in printed_by(CLOSED_BY_A_CALLBACK)


def test_nothing_is_left_behind(world: World) -> None:
    """No file, no thread, no shared memory."""
    import threading

    files, threads = len(os.listdir("/dev/fd")), threading.active_count()
    shared = {*Path("/dev/shm").iterdir()} if os.path.isdir("/dev/shm") else {*()}
    for _ in range(3):
        with (
            closing(SocketTransport(world.address, world.keys)) as one,
            closing(SocketTransport(world.address, world.keys)) as two,
        ):
            inbox = Inbox()
            inbox.start(one)
            two.start(inbox.packet, inbox.time, inbox.link)
            two.send(one.endpoint, [b"x" * 1_000_000])
            inbox.until_packets(1)
            one.forget(two.endpoint)
            two.forget(one.endpoint)
            inbox.until(lambda: Link(one.endpoint, LinkState.UP) in inbox.links)  # noqa: B023
        # Of large buffers that are sent, one thread of the library takes care.
        if not _:
            files, threads = len(os.listdir("/dev/fd")), threading.active_count()
    assert len(os.listdir("/dev/fd")) == files
    assert threading.active_count() == threads
    if shared:
        assert {*Path("/dev/shm").iterdir()} <= shared
