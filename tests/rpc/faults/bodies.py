"""What workers are asked in tests of faults."""

import gc
import os
import resource
from collections import Counter, deque
from threading import Event
from typing import Any
from weakref import WeakSet

from everyorder.runtime import rpc
from everyorder.runtime.errors import rpc as rpc_errors
from everyorder.runtime.rpc.agent import current_agent

RUNS: Counter[int] = Counter()
GATE = Event()


def double(number: int) -> int:
    """Twice the number; it is counted how often it was asked for."""
    RUNS[number] += 1
    return 2 * number


def hold(number: int) -> int:
    """The number, once the gate is open."""
    RUNS[number] += 1
    GATE.wait(60)
    return number


def open_gate() -> None:
    GATE.set()


def runs() -> dict[int, int]:
    return dict(RUNS)


def length(buffer: bytes) -> int:
    return len(buffer)


def memory() -> int:
    """Bytes of memory that this process has now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def fail(number: int) -> None:
    raise ValueError(str(number))


def fetched(reference: "rpc.RRef[int]") -> int:
    return reference.to_here()


def returned(reference: "rpc.RRef[int]") -> "rpc.RRef[int]":
    return reference


def left() -> dict[str, int]:
    """Counts of what is under way, and of references; all are 0 when it is quiet."""
    gc.collect()
    info = rpc.get_debug_info()
    return {
        name: int(count)
        for name, count in info.items()
        if int(count) and name not in STAY
    }


# What is no sign of anything under way: totals, and threads.
STAY = frozenset(
    {"resent", "garbage", "agent.thread_pool_size", "agent.num_idle_threads"}
)


def tables() -> dict[str, int]:
    """How much is in each container of the worker of this process, by its path."""
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("agent", current_agent("tables"))]
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, CONTAINERS):
            sizes[path] = len(value)
            # What is in one is of one kind, and belongs to no path of its own.
            continue
        if type(value).__module__.startswith("everyorder.runtime.rpc"):
            names = {*getattr(value, "__dict__", ())}
            for kind in type(value).__mro__:
                names.update(getattr(kind, "__slots__", ()))
            waiting += [
                (f"{path}.{name}", getattr(value, name))
                for name in sorted(names)
                if hasattr(value, name) and name != "__weakref__"
            ]
    # One for each peer.
    for place, channel in enumerate(current_agent("tables").session._channels.values()):
        for name in ("_early", "parts", "_outbox"):
            part = getattr(channel, name)
            if isinstance(part, CONTAINERS):
                sizes[f"channel {place}.{name}"] = len(part)
        for name in ("queue", "flight"):
            sizes[f"channel {place}.{name}"] = len(getattr(channel._outbox, name))
    return sizes


CONTAINERS = (dict, list, set, frozenset, deque, WeakSet)


def called_without_files(other: str) -> list[str]:
    """What calls to a worker give that was not called yet: without files, and with."""
    found = []

    def call() -> None:
        try:
            found.append(str(rpc.rpc_sync(other, double, args=(21,))))
        except rpc_errors.RpcError as error:
            found.append(type(error).__name__)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files() - 1, hard))
    try:
        call()
        call()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    call()
    return found
