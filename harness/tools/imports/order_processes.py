"""The orders of imports to play, and the processes that play them.

Up to `MOST_EXHAUSTIVE` modules, every subset is imported in every order. Above that,
each single module, each pair in both orders, and all modules in the rows of a sequence
covering array (`harness.engine.covering_arrays`), in which any `STRENGTH` of them occur
in every one of their orders.

Each thread of a pool has a zygote (`harness.tools.imports.import_zygote`) that forks a
child for each order; with isolation "spawn", or on a platform without fork, each order
starts a new interpreter.

Rules:
- the hash seed is the same in all of them, because sets of texts are in another order
  under another seed; it is 0 unless the environment has one, and it is removed from
  the environment of children;
- a zygote has a separate session, so that Ctrl-C reaches this process only, and ends
  when its input is closed, here or because this process has ended.
"""

import marshal
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from itertools import combinations, permutations
from pathlib import Path
from pkgutil import iter_modules
from queue import SimpleQueue
from tempfile import TemporaryFile
from types import CodeType
from typing import IO, Any, Literal, Self, TypeAlias

from everyorder.harness.engine.covering_arrays import rows
from everyorder.harness.engine.reference import count_arrangements
from everyorder.harness.processes.fork import CAN_FORK, exit_text
from everyorder.harness.tools.imports.import_observation import Observation, unpack

Order: TypeAlias = tuple[str, ...]

# Five modules have 325 orders, ten to twenty seconds of a core; six have 1,956.
MOST_EXHAUSTIVE = 5

# Import cycles and patches of patches involve two or three modules.
STRENGTH = 3


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """Sets of modules, smallest first, with the orders to play of each."""

    sets: tuple[tuple[Order, ...], ...]
    possible: int
    every: bool

    @property
    def orders(self) -> int:
        """Return the number of orders to play."""
        return sum(map(len, self.sets))


def plan(modules: Order) -> OrderPlan:
    """Return the orders to play of these modules.

    Raises:
        BadStrategy: there are too many modules for a covering array.
    """
    count = len(modules)
    possible = count_arrangements(count) - 1
    if count <= MOST_EXHAUSTIVE:
        sets = tuple(
            tuple(permutations(chosen))
            for size in range(1, count + 1)
            for chosen in combinations(modules, size)
        )
        return OrderPlan(sets, possible, every=True)
    covering = tuple(
        tuple(modules[index] for index in row) for row in rows(count, STRENGTH)
    )
    small = tuple(
        tuple(permutations(chosen))
        for size in (1, 2)
        for chosen in combinations(modules, size)
    )
    return OrderPlan((*small, covering), possible, every=False)


def neighbours(orders: Sequence[Order]) -> list[tuple[Order, Order]]:
    """Return pairs of orders that differ by the exchange of two adjacent modules."""
    present = set(orders)
    pairs = []
    for order in orders:
        for place in range(len(order) - 1):
            other = swap(order, place)
            if other in present and orders.index(order) < orders.index(other):
                pairs.append((order, other))
    return pairs


def swap(order: Order, place: int) -> Order:
    """Return the order with the module at `place` and the next one exchanged."""
    first, second = order[place : place + 2]
    return (*order[:place], second, first, *order[place + 2 :])


def path(first: Order, second: Order) -> list[Order]:
    """Return the orders between two; each swaps two neighbouring modules."""
    steps, current = [first], first
    for index, module in enumerate(second):
        place = current.index(module)
        while place > index:
            place -= 1
            current = swap(current, place)
            steps.append(current)
    return steps


Isolation: TypeAlias = Literal["fork", "spawn"]

SCRIPT = Path(__file__).with_name("import_zygote.py")

# A new interpreter has to start before it can play an order.
START_SECONDS = 10.0

# The modules of `everyorder` that a child imports, except those of `harness.state`.
OWN_MODULES = (
    "everyorder",
    "everyorder.coded_error",
    "everyorder.harness",
    "everyorder.harness.base",
    "everyorder.harness.base.errors",
    "everyorder.harness.engine",
    "everyorder.harness.engine.independence",
    "everyorder.harness.engine.protocol",
    "everyorder.harness.state",
    "everyorder.harness.tools",
    "everyorder.harness.tools.imports",
    "everyorder.harness.tools.imports.import_observation",
)

FACES = ("everyorder", "everyorder.harness", "everyorder.harness.engine")


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """The end of a process that did not send an observation."""

    kind: Literal["died", "hung"]
    code: int
    printed: str

    @property
    def reason(self) -> str:
        """Return the end in words."""
        if self.kind == "hung":
            return "did not end in time"
        verb = "died of" if self.code < 0 else "ended by itself with"
        return f"{verb} {exit_text(self.code)}"


Outcome: TypeAlias = Observation | ProcessEnd


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """The options that all orders share; `seconds` is for each order."""

    uses: tuple[str, ...]
    watch: tuple[str, ...]
    path: str
    seconds: float
    isolation: Isolation


def usual_isolation() -> Isolation:
    """Return "fork" if the platform supports it, else "spawn"."""
    return "fork" if CAN_FORK else "spawn"


class Processes:
    """Plays orders, several at a time; a context manager that leaves no process."""

    def __init__(self, request: OrderRequest, jobs: int) -> None:
        self._request = request
        self._idle: SimpleQueue[_Zygote] = SimpleQueue()
        self._zygotes: list[_Zygote] = []
        self._spawned: set[subprocess.Popen[bytes]] = set()
        self._pool = ThreadPoolExecutor(jobs)
        if request.isolation == "fork":
            for _ in range(jobs):
                self._idle.put(self._start_zygote())

    def _start_zygote(self) -> "_Zygote":
        zygote = _Zygote(self._request)
        self._zygotes.append(zygote)
        return zygote

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for zygote in self._zygotes:
            zygote.end()
        for process in tuple(self._spawned):
            process.kill()
        self._pool.shutdown(cancel_futures=True)
        for zygote in self._zygotes:
            zygote.wait()

    def play(
        self,
        orders: Sequence[Order],
        *,
        whole: bool = False,
        disturbance: int = 0,
        tell: Callable[[], None] = lambda: None,
    ) -> list[Outcome]:
        """Return the observation after each order; with `whole`, also the states.

        `disturbance` is the amount of memory allocated first, so that addresses differ,
        and `tell` is called when an order is done.
        """
        futures: list[Future[Outcome]] = [
            self._pool.submit(self._play, order, whole, disturbance) for order in orders
        ]
        outcomes = []
        for future in futures:
            outcomes.append(future.result())
            tell()
        return outcomes

    def _play(self, order: Order, whole: bool, disturbance: int) -> Outcome:
        request = self._request
        message = marshal.dumps(
            {
                "modules": list(order),
                "uses": list(request.uses),
                "watch": list(request.watch),
                "seconds": request.seconds,
                "whole": whole,
                "disturbance": disturbance,
            }
        )
        if request.isolation == "spawn":
            return self._play_spawned(message)
        zygote = self._idle.get()
        try:
            how, code, printed, packed = zygote.answer(message)
        except EOFError:
            code = zygote.wait()
            if code:  # the system has killed it
                zygote = self._start_zygote()
            return ProcessEnd("died", code, "")
        finally:
            self._idle.put(zygote)
        if how == "seen":
            return unpack(packed)
        return ProcessEnd(how, code, printed.decode(errors="replace"))

    def _play_spawned(self, message: bytes) -> Outcome:
        """Play one order in a new interpreter."""
        request = self._request
        with TemporaryFile() as printed:
            process = _start(request, printed)
            self._spawned.add(process)
            try:
                body, _ = process.communicate(
                    _codes() + message, request.seconds + START_SECONDS
                )
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return ProcessEnd("hung", 0, _text(printed))
            finally:
                self._spawned.discard(process)
            if body:
                return unpack(body)
            return ProcessEnd("died", process.returncode, _text(printed))


@cache
def _codes() -> bytes:
    """Return the modules that a child needs: file, whether a package, and code.

    They are packed twice: `marshal.load` reads each value of a file by itself.
    """
    heap = find_spec("everyorder.harness.state")
    assert heap is not None, "it is part of this package"
    infos = iter_modules(heap.submodule_search_locations)
    names = (*OWN_MODULES, *(f"everyorder.harness.state.{each.name}" for each in infos))
    codes: dict[str, tuple[str, bool, CodeType]] = {}
    for name in names:
        spec = find_spec(name)
        assert spec is not None, "it is part of this package"
        assert spec.origin is not None, "all modules of this package are files"
        # Not by the module's own loader: pytest's would rewrite assertions, and import
        # itself.
        code = SourceFileLoader(name, spec.origin).get_code(name)
        # Only the submodules of these packages are needed; their `__init__` imports
        # more.
        if code is None or name in FACES:
            code = compile("", spec.origin, "exec")
        codes[name] = (spec.origin, spec.submodule_search_locations is not None, code)
    return marshal.dumps(marshal.dumps(codes))


class _Zygote:
    """A process that forks a child for each order."""

    def __init__(self, request: OrderRequest) -> None:
        self._process = process = _start(request, subprocess.DEVNULL)
        assert process.stdin is not None, "it was started with a pipe"
        assert process.stdout is not None, "it was started with a pipe"
        self._input, self._output = process.stdin, process.stdout
        with suppress(OSError):
            self._input.write(_codes())

    def answer(self, message: bytes) -> tuple[Any, int, bytes, bytes]:
        """Return the end of the child that plays an order, as the zygote sends it.

        Raises:
            EOFError: the zygote has ended.
        """
        try:
            self._input.write(message)
            self._input.flush()
            reply = marshal.load(self._output)  # noqa: S302  # from our own child
        except (OSError, ValueError):
            raise EOFError from None
        return reply  # type: ignore[no-any-return]  # as the zygote sends it

    def end(self) -> None:
        """Have it end: without input it kills its child."""
        with suppress(OSError):
            self._input.close()

    def wait(self) -> int:
        """Return its exit code, when it has ended."""
        self.end()
        self._output.close()
        return self._process.wait()


def _start(request: OrderRequest, errors: IO[bytes] | int) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    seeded = "" if "PYTHONHASHSEED" in environment else "seeded"
    environment.setdefault("PYTHONHASHSEED", "0")
    return subprocess.Popen(  # noqa: S603  # this interpreter and our script
        [sys.executable, str(SCRIPT), request.path, request.isolation, seeded],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
        start_new_session=True,
    )


def _text(printed: IO[bytes]) -> str:
    printed.seek(0)
    return printed.read().decode(errors="replace")
