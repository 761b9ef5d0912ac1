"""A world of workers, each a process, for the bodies of many tests.

True only here: how the processes are started, asked and reaped.  A process is told by a
pipe what to do, and answers with what went wrong, or None; who does not answer in
`SECONDS` is killed, with all others.
"""

import importlib
import multiprocessing
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from runtime import rpc
from runtime.rpc.session.settings import Settings

# No worker is lost because the machine is busy.
PATIENT = Settings(heartbeat=5.0, dead=100.0, expire=110.0, connect=100.0)
# For one body; generous, as machines are busy.
SECONDS = 120


def _guarded(act: Any, *args: Any) -> str | None:
    """What went wrong, as a text."""
    try:
        act(*args)
    except BaseException:
        return traceback.format_exc()
    return None


def _become(name: str, rank: int, size: int, address: str) -> None:
    options = rpc.RpcBackendOptions(init_method=address, session=PATIENT)
    rpc.init_rpc(name, rank=rank, world_size=size, rpc_backend_options=options)


def _run(module: str, name: str) -> None:
    getattr(importlib.import_module(module), name).body()


def member(name: str, rank: int, size: int, address: str, pipe: Connection) -> None:
    """One process: a worker until it is told to end."""
    threading.settrace(None)  # type: ignore[arg-type]  # a tracer's locks
    pipe.send(_guarded(_become, name, rank, size, address))
    try:
        while (asked := pipe.recv()) is not None:
            pipe.send(_guarded(_run, *asked))
        pipe.send(_guarded(rpc.shutdown))
    except EOFError:
        rpc.shutdown(graceful=False)


class World:
    """Workers of several processes, started by `fork` or by `spawn`."""

    def __init__(self, method: str, names: Sequence[str]) -> None:
        context: Any = multiprocessing.get_context(method)
        self._folder = tempfile.TemporaryDirectory(prefix="rpc")
        address = f"ipc://{self._folder.name}/world"
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            for rank, name in enumerate(names):
                here, there = context.Pipe()
                self._pipes.append(here)
                process = context.Process(
                    target=member,
                    args=(name, rank, len(names), address, there),
                    daemon=True,
                )
                self._processes.append(process)
                with warnings.catch_warnings():
                    # Python warns of forks beside threads.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                there.close()
            for place in range(len(names)):
                self._answer(place)
        except BaseException:
            self.kill()
            raise
        finally:
            sys.settrace(tracer)

    def ask(self, module: str, name: str) -> str | None:
        """Run the body of a test in the first worker: None, or what it raised."""
        self._pipes[0].send((module, name))
        return self._told(0)

    def end(self) -> None:
        """Shut all workers down, and wait for their processes."""
        try:
            for pipe in self._pipes:
                pipe.send(None)
            for place in range(len(self._pipes)):
                self._answer(place)
            for process in self._processes:
                process.join(SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Leave nothing behind, whatever happened."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join()
            process.close()
        for pipe in self._pipes:
            pipe.close()
        self._processes, self._pipes = [], []
        self._folder.cleanup()

    def _answer(self, place: int) -> None:
        told = self._told(place)
        if told is not None:
            raise RuntimeError(told)

    def _told(self, place: int) -> str | None:
        pipe = self._pipes[place]
        if not pipe.poll(SECONDS):
            self.kill()
            raise TimeoutError(f"the worker of rank {place} does not answer")
        told: str | None = pipe.recv()
        return told

    def __enter__(self) -> "World":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        frames: TracebackType | None,
    ) -> None:
        if error is None:
            self.end()
        else:
            self.kill()
