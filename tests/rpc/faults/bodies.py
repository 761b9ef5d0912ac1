"""What workers are asked in tests of faults."""

import os
import resource
from collections import Counter
from threading import Event

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
