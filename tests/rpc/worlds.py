"""Worlds: workers for the bodies of tests, as threads of this process or processes.

True only here: how workers are started and reaped.

Rules: whatever a test does, nothing of its world is left: agents are closed, processes
are killed and waited for, and folders removed.  What a process raises is told with its
traceback by whoever asks it.
"""

import multiprocessing
import os
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

from everyorder.runtime.rpc.agent import (
    Agent,
    RpcBackendOptions,
    WorkerSlot,
    current_agent,
    in_worker_slot,
)
from everyorder.runtime.rpc.agent.rendezvous import join, parse_init_method
from everyorder.runtime.rpc.api.lifecycle import init_rpc, stop
from everyorder.runtime.rpc.protocol.events import Settings

# For what would never end; machines are busy.
SECONDS = 60.0
# Workers that a busy machine keeps from running are not lost.
PATIENT = Settings(heartbeat=0.3, dead=30.0, expire=40.0, connect=60.0)
# Workers that are lost soon, where that is what is tested.
HASTY = Settings(heartbeat=0.1, dead=0.5, expire=0.8, connect=0.5)

_NUMBERS = count()


def options(settings: Settings = PATIENT, **more: Any) -> RpcBackendOptions:
    """Options of a worker for a test."""
    made = RpcBackendOptions(join_timeout=SECONDS, session=settings)
    return replace(made, **more)


def place() -> str:
    """A place in this process where nobody else meets."""
    return f"local://world-{next(_NUMBERS)}"


def at_once(*calls: Callable[[], object]) -> list[Any]:
    """What the calls give, each on a thread of its own; raises what one of them did."""
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            results[number] = calls[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * SECONDS)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]
    return results


@contextmanager
def threads(*names: str, where: str = "", **more: Any) -> Iterator[list[Agent]]:
    """Workers of one static group beside each other in this process."""
    where = where or place()
    given = options(**more)
    seats = [WorkerSlot() for _ in names]

    def joined(rank: int) -> Agent:
        here = parse_init_method(where, rank, len(names))
        return join(names[rank], here, given, seats[rank])

    try:
        yield at_once(*(lambda rank=n: joined(rank) for n in range(len(names))))
    finally:
        for seat in seats:
            if seat.agent is not None:
                stop(seat.agent, graceful=False)


def stopped(*agents: Agent, graceful: bool = True, timeout: float = SECONDS) -> None:
    """Stop agents, all at once."""
    at_once(*(lambda agent=each: stop(agent, graceful, timeout) for each in agents))


class Process:
    """A worker in a process of its own, which runs functions of modules when asked."""

    def __init__(self, how: str, name: str, **more: Any) -> None:
        context: Any = multiprocessing.get_context(how)
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, name, more), daemon=True
        )
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            with warnings.catch_warnings():
                # Python warns of forks beside threads.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._process.start()
        finally:
            sys.settrace(tracer)
        there.close()
        self._asked = 1

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None, "it was started"
        return int(self._process.pid)

    def ask(self, function: Callable[..., Any], *args: Any) -> None:
        """Have it call a function, after what it was asked before."""
        self._pipe.send((function, args))
        self._asked += 1

    def answer(self) -> Any:
        """What a function gave, in the order of asking; first that it is a member.

        Raises:
            AssertionError: it raised, with its traceback, or does not answer.
        """
        assert self._asked, "it was asked"
        self._asked -= 1
        assert self._pipe.poll(2 * SECONDS), "the process does not answer"
        good, told = self._pipe.recv()
        assert good, told
        return told

    def do(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a function gives there."""
        self.ask(function, *args)
        while self._asked > 1:
            self.answer()
        return self.answer()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def close(self) -> None:
        """End it, whatever it is at."""
        self._pipe.close()
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._process.close()


def _serve(pipe: Any, name: str, more: dict[str, Any]) -> None:
    threading.settrace(None)
    rank = more.pop("rank", -1)
    size = more.pop("world_size", None)

    def become() -> None:
        init_rpc(name, rank=rank, world_size=size, rpc_backend_options=options(**more))

    _told(pipe, become)
    while True:
        try:
            function, args = pipe.recv()
        except (EOFError, OSError):
            return
        _told(pipe, function, *args)


def _told(pipe: Any, function: Callable[..., Any], *args: Any) -> None:
    try:
        told = True, function(*args)
    except BaseException:
        told = False, traceback.format_exc()
    pipe.send(told)


@contextmanager
def processes(
    how: str, names: Sequence[str], **more: Any
) -> Iterator[tuple[Agent, list[Process]]]:
    """A static group: this thread is its first worker, the others are processes."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rpc"))
        more = {"init_method": f"ipc://{folder}/w", **more}
        size = len(names)
        others = []
        for rank, name in enumerate(names[1:], 1):
            other = Process(how, name, rank=rank, world_size=size, **more)
            stack.callback(other.close)
            others.append(other)
        stack.enter_context(in_worker_slot())
        init_rpc(names[0], rank=0, world_size=size, rpc_backend_options=options(**more))
        agent = current_agent("processes")
        stack.callback(_ended, agent)
        for other in others:
            other.answer()
        yield agent, others


def _ended(agent: Agent) -> None:
    if not agent.ended:
        stop(agent, graceful=False)
