"""Rows about limits: what the same work takes without any of our code.

True only here: each row is a lower bound of rows that miss their targets, written with
plain Python, NumPy, Numba and the standard library; it has no target of its own.  What
a figure above its bound holds beyond it is ours.
"""

import math
import os
import socket
import threading
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from tests.bench.compare import torch
from tests.bench.row import Row, pairs, ratio

BOUND = "beside"
NOTE = "no target: a bound without our code"
COUNT, TURNS = 20_000, 9
SECONDS = 1.0


def bound(what: str, figure: str) -> Row:
    """A row without a target."""
    return Row(f"bound: {what}", figure, BOUND, None, NOTE)


def repeated(run: Callable[[], object], count: int = COUNT) -> Callable[[], object]:
    """The same, so many times."""

    def many() -> None:
        for _ in range(count):
            run()

    return many


def over(run: Callable[[], object], other: Callable[[], object]) -> str:
    """The ratio of two functions in turn, and the nanoseconds of each."""
    measured = pairs(repeated(run), repeated(other), TURNS)
    one, two = (median(each) / COUNT * 1e9 for each in zip(*measured, strict=True))
    return f"{ratio(measured):.2f} ({one:.0f} ns, {two:.0f} ns)"


class Fields:
    """As many fields as a tensor has."""

    __slots__ = tuple("abcdefghijkl")


def made(shape: tuple[int, ...], strides: tuple[int, ...]) -> Fields:
    """An object of twelve fields, set one by one."""
    result = Fields.__new__(Fields)
    result.a, result.b, result.c, result.d = shape, strides, 0, None  # type: ignore[attr-defined]
    result.e = result.f = result.g = result.h = None  # type: ignore[attr-defined]
    result.i = result.j = result.k = result.l = None  # type: ignore[attr-defined]
    return result


def compiled_add() -> Any:
    """A loop over three arrays as Numba compiles it, without a check of types."""
    import numba

    def add(x: Any, y: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = x[i] + y[i]

    loop: Any = numba.njit(nogil=True, error_model="numpy")(add)
    return loop.compile("void(float32[::1], float32[::1], float32[::1])")


def of_calls() -> Iterator[Row]:
    """Calls: of a compiled loop, for one number and for a thousand; of a view."""
    add = compiled_add()
    x, y, out = (np.ones(1000, np.float32) for _ in range(3))
    yield bound(
        "1,000 float32 added by a compiled loop, called from Python, over np.add",
        over(lambda: add(x, y, out), lambda: np.add(x, y, out)),
    )
    if torch is None:
        return
    a, b = np.ones(1, np.float32), np.ones(1, np.float32)
    tensor, other = torch.ones(1), torch.ones(1)

    def one() -> Fields:
        result = np.empty(1, np.float32)
        add(a, b, result)
        return made((1,), (1,))

    yield bound(
        "one number: `np.empty`, a compiled loop, an object of twelve fields, over "
        "torch.add",
        over(one, lambda: torch.add(tensor, other)),
    )
    plane = torch.ones(10, 100)

    def view(shape: tuple[int, ...]) -> Fields:
        if math.prod(shape) != 1000:
            raise ValueError(shape)
        return made(shape, (shape[1], 1))

    yield bound(
        "a view: the sizes compared, an object of twelve fields, over torch's reshape",
        over(lambda: view((100, 10)), lambda: plane.reshape(100, 10)),
    )


def handing_over() -> Iterator[Row]:
    """What a second thread costs: work is handed over, and its end is waited for."""
    asked, answered = threading.Semaphore(0), threading.Semaphore(0)
    going = True

    def work() -> None:
        while True:
            asked.acquire()
            if not going:
                return
            answered.release()

    thread = threading.Thread(target=work)
    thread.start()
    times = []
    for _ in range(2_000):
        begun = perf_counter()
        asked.release()
        answered.acquire()
        times.append(perf_counter() - begun)
    going = False
    asked.release()
    thread.join()
    yield bound(
        "work handed to another thread of Python, and its end waited for",
        f"{median(times) * 1e6:.1f} µs",
    )


def answers(count: int) -> int:
    """How many answers a second so many processes get, each from the next one."""
    links = [socket.socketpair() for _ in range(count)]
    read, write = os.pipe()
    children = []
    for place in range(count):
        child = os.fork()
        if not child:
            try:
                got = _ask(links[place][0], links[place - 1][1])
                os.write(write, got.to_bytes(8, "little"))
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    total = sum(int.from_bytes(os.read(read, 8), "little") for _ in range(count))
    for one, other in links:
        one.close()
        other.close()
    os.close(read)
    os.close(write)
    return int(total / SECONDS)


def _ask(asking: socket.socket, asked: socket.socket) -> int:
    """Ask by one socket while a thread answers by the other; return how often."""

    def answer() -> None:
        while data := asked.recv(64):
            asked.sendall(data)

    threading.Thread(target=answer, daemon=True).start()
    count, end = 0, perf_counter() + SECONDS
    asking.settimeout(SECONDS)
    try:
        while perf_counter() < end:
            asking.sendall(b"x" * 64)
            asking.recv(64)
            count += 1
    except OSError:
        pass  # the other one has ended
    return count


def many_processes() -> Iterator[Row]:
    """What sockets and switches between processes leave of the throughput."""
    two, many = answers(2), answers(24)
    yield bound(
        "64 bytes asked and answered by plain sockets, 24 processes over 2",
        f"{many / two:.2f} ({many} a second, {two} a second)",
    )


LIMIT_ROWS = (of_calls, handing_over, many_processes)
