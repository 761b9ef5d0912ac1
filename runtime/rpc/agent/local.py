"""Local workers: a whole group on this machine, for the time of a block.

Nobody else has to start these workers. The thread that opens the block is the first of
them; the others are threads of this process, or processes of their own.

Rules:
- the block leaves nobody behind, however it ends: in good order the group shuts down as
  one; after an error all stop at once, and processes that do not are killed;
- a process that is forked in the block is none of the workers: it leaves the block, and
  ends, without doing anything to those of its parent.
"""

import multiprocessing
import multiprocessing.process
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from logging import getLogger
from multiprocessing.process import BaseProcess
from shutil import rmtree
from threading import Thread
from typing import Any, Literal, get_args
from weakref import WeakSet

from runtime.errors.rpc import RpcError, RpcMisuse
from runtime.rpc.agent.agent import Agent
from runtime.rpc.agent.joining import checked_name, join, meeting
from runtime.rpc.agent.options import RpcBackendOptions, Settings
from runtime.rpc.agent.starting import init_rpc, lives, stop
from runtime.rpc.agent.threads import Seat, current_agent, seat
from runtime.rpc.identities import WorkerInfo

LOG = getLogger("runtime.rpc")

How = Literal["threads", "spawn", "fork"]

_NUMBERS = count()
# Workers here end by this block alone, and a busy machine may hold any of them up.
_NEAR = Settings(dead=60.0, expire=70.0)
# A process that was told to end, and is at something, has so long.
_END_SECONDS = 10.0
# Processes of this one, whom a forked child would end at its own end.
_CHILDREN: WeakSet[BaseProcess] = WeakSet()


@contextmanager
def local_workers(
    workers: int | Sequence[str] = 2,
    *,
    how: How = "threads",
    options: RpcBackendOptions | None = None,
) -> Iterator[tuple[WorkerInfo, ...]]:
    """A group of workers, of which this thread is the first, while a block runs.

    `workers` are their names, or how many there are: "worker0", "worker1" and so on.
    `how` is "threads", or how processes are begun; the functions that are called must
    then be those of a module, except with "fork".

    Raises:
        RpcMisuse: this thread is a worker already.
        RpcMisuse: there are no such workers.
        JoinTimeout: they did not come together.
    """
    names = _names(workers)
    if how not in get_args(How):
        raise RpcMisuse(
            code="RpcMisuse",
            call="local_workers",
            found=f"how={how!r}",
            wanted=", ".join(map(repr, get_args(How))),
        )
    own = seat()
    if own.agent is not None:
        raise RpcMisuse(code="AlreadyInitialized", name=own.agent.name)
    options = options or RpcBackendOptions(session=_NEAR)
    process = os.getpid()
    with ExitStack() as stack:
        if how == "threads":
            place = f"local://local-{next(_NUMBERS)}"
        else:
            # Not one that is removed when any process ends which knows of it.
            folder = tempfile.mkdtemp(prefix="rpc-")
            stack.callback(rmtree, folder, ignore_errors=True)
            place = f"ipc://{folder}"
        options = replace(options, init_method=place)
        group = _Threads() if how == "threads" else _Processes(how)
        try:
            group.begin(names, options)
            where = meeting(place, 0, len(names))
            agent = join(names[0], where, options, own, group.is_over)
            lives(agent)
            yield tuple(node.info for node in agent.nodes())
            if os.getpid() == process:
                group.end(agent)
        except BaseException:
            started = seat().agent
            if started is not None and os.getpid() == process:
                stop(started, graceful=False)
            raise
        finally:
            if os.getpid() == process:
                group.close()
            else:
                # The folder is the parent's.
                stack.pop_all()


def _names(workers: int | Sequence[str]) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    if isinstance(workers, int):
        names = tuple(f"worker{n}" for n in range(workers))
    elif isinstance(workers, Sequence) and not isinstance(workers, str):
        names = tuple(checked_name(name) for name in workers)
    if not names or len(set(names)) < len(names):
        raise RpcMisuse(
            code="RpcMisuse",
            call="local_workers",
            found=f"the workers {workers!r}",
            wanted="one name at least, and each of them once; or how many there are",
        )
    return names


class _Threads:
    """Workers beside this one in its process."""

    def __init__(self) -> None:
        self._agents: list[Agent] = []
        self._joining: list[Thread] = []
        self._over = False

    def is_over(self) -> bool:
        """Whether the group cannot come together any more, or need not."""
        return self._over

    def begin(self, names: Sequence[str], options: RpcBackendOptions) -> None:
        """Have all but the first join."""
        for rank, name in enumerate(names[1:], 1):
            where = meeting(options.init_method, rank, len(names))
            self._run(self._join, name, where, options)

    def _join(self, name: str, where: Any, options: RpcBackendOptions) -> None:
        try:
            agent = join(name, where, options, Seat(), self.is_over)
        except RpcError as error:
            if not self._over:
                LOG.warning("%s: %s", name, error)
            # The first one is told that nobody comes.
            self._over = True
            return
        lives(agent)
        self._agents.append(agent)

    def _run(self, target: Callable[..., object], *args: Any) -> None:
        thread = Thread(target=target, args=args, daemon=True)
        self._joining.append(thread)
        thread.start()

    def end(self, first: Agent) -> None:
        """Shut all down as one."""
        self._wait()
        for agent in self._agents:
            self._run(stop, agent)
        stop(first)

    def _wait(self) -> None:
        for thread in self._joining:
            thread.join()
        self._joining.clear()

    def close(self) -> None:
        """Stop who is left."""
        self._over = True
        self._wait()
        for agent in self._agents:
            if not agent.ended:
                stop(agent, graceful=False)


class _Processes:
    """Workers in processes of their own."""

    def __init__(self, how: str) -> None:
        self._context: Any = multiprocessing.get_context(how)
        self._processes: list[BaseProcess] = []

    def is_over(self) -> bool:
        """Whether the group cannot come together any more."""
        return any(each.exitcode is not None for each in self._processes)

    def begin(self, names: Sequence[str], options: RpcBackendOptions) -> None:
        """Have all but the first join."""
        for rank, name in enumerate(names[1:], 1):
            process = self._context.Process(
                target=_serve, args=(name, rank, len(names), options), daemon=True
            )
            process.start()
            _CHILDREN.add(process)
            self._processes.append(process)

    def end(self, first: Agent) -> None:
        """Shut all down as one; the others wait for it."""
        stop(first)
        for process in self._processes:
            process.join(_END_SECONDS)

    def close(self) -> None:
        """End who is left."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join()
            process.close()


def _serve(name: str, rank: int, world_size: int, options: RpcBackendOptions) -> None:
    """What a process of its own does: serve until all are done."""
    init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    stop(current_agent("local_workers"), serves=True)


def _in_child() -> None:
    # As `multiprocessing` does in the children that it starts itself.
    for each in [*_CHILDREN]:
        multiprocessing.process._children.discard(each)  # type: ignore[attr-defined]


# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
