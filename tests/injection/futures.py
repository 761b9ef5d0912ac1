"""Operations on futures and awaits, and what must be true after each, however it ended.

True only here: a world of futures that hang together, whose callbacks note that they
were begun.

After an operation that was interrupted
- either nothing happened, or the future is complete: then every callback of it, and of
  what follows, was begun once and in order, and nobody waits any more;
- who waited and was interrupted is forgotten;
- an await ran, or can be run again;
- the lock of all futures is free, and what could be done before can be done.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from everyorder.runtime.errors import CallbackFailed, FutureTimeout
from everyorder.runtime.futures import (
    Await,
    Future,
    awaitable,
    call_end_callbacks,
    collect_all,
    wait_all,
)
from everyorder.runtime.futures.awaits import _USERS
from everyorder.runtime.futures.completion import LOCK
from tests.futures.threads import until_waited_for

# Who has not ended by then waits for ever.
SECONDS = 10


class Noting:
    """A callback that notes its name, then returns or raises what it was given."""

    def __init__(self, log: list[str], name: str, result: object) -> None:
        self.log = log
        self.name = name
        self.result = result

    def __call__(self, future: Future[Any]) -> Any:
        self.log.append(self.name)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class World:
    """A future with callbacks of every kind, what follows from it, and an await."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.root: Future[int] = Future()
        self.inner: Future[int] = Future()
        self.root.add_done_callback(self.noting("a"))
        self.child = self.root.then(self.noting("b"))
        self.flat = self.child.then_async(self.noting("b.a", self.inner))
        self.flat.add_done_callback(self.noting("flat"))
        self.failed = self.root.then(self.noting("c", ValueError("c")))
        self.last = self.failed.then(lambda f: f.wait())
        self.root.add_done_callback(self.noting("d", ValueError("d")))
        self.all = collect_all([self.root, self.child, self.root])
        self.all.add_done_callback(self.noting("all"))
        self.after = call_end_callbacks(self.root, self.noting("e"))
        self.after.add_done_callback(self.noting("e.a"))
        self.aw: Await[int] = awaitable(self._body, 3, and_=4)
        self.runs = 0
        self.woken: list[object] = []
        self.threads: list[threading.Thread] = []
        # How many of them wait until the future is complete.
        self.waiting = 0

    def noting(self, name: str, result: object = None) -> Callable[[Any], Any]:
        """A callback of this world's log."""
        return Noting(self.log, name, result)

    def _body(self, number: int, and_: int) -> int:
        self.runs += 1
        return number + and_

    def start(self, function: Callable[[], object]) -> None:
        """Run something in another thread."""
        thread = threading.Thread(target=lambda: self.woken.append(function()))
        thread.daemon = True
        thread.start()
        self.threads.append(thread)

    def ended(self) -> bool:
        """Whether all of them end."""
        for thread in self.threads:
            thread.join(SECONDS)
        return not any(thread.is_alive() for thread in self.threads)


# In this order each is begun, once; `flat` follows `inner`.
ORDER = ["a", "b", "b.a", "c", "d", "all", "e", "e.a"]


def complete(world: World) -> None:
    """With a value."""
    world.root.set_result(0)


def fail(world: World) -> None:
    """With an error."""
    world.root.set_exception(ValueError("root"))


def complete_beside_who_waits(world: World) -> None:
    """Two threads wait for it."""
    for _ in range(2):
        world.start(lambda: world.root.wait(SECONDS))
    world.waiting = 2
    until_waited_for(world.root, 2)
    world.root.set_result(0)


def wait_in_vain(world: World) -> None:
    """Nobody completes it."""
    with suppress(FutureTimeout):
        world.root.wait(0)


def wait_for_another_thread(world: World) -> None:
    """Which completes it as soon as somebody waits, or was interrupted."""
    stop = threading.Event()

    def complete_it() -> None:
        while not (world.root._waiters or stop.is_set()):
            pass
        world.root.set_result(0)

    world.start(complete_it)
    try:
        world.root.wait(SECONDS)
    finally:
        stop.set()


def register_on_a_complete_one(world: World) -> None:
    """Callbacks run at once."""
    done: Future[int] = Future()
    done.set_result(0)
    for _ in range(2):
        with suppress(CallbackFailed):
            done.then(Noting([], "inline", ValueError())).wait()
    done.then_async(lambda f: done).wait()


def wait_for_all(world: World) -> None:
    """Of three, one of which follows."""
    one: Future[int] = Future()
    members = [one, one.then(lambda f: f.wait()), one]
    combined = collect_all(members)
    one.set_result(3)
    assert wait_all(members) == [3, 3, 3]
    assert combined.done()


def run_an_await(world: World) -> None:
    """Twice, and by an attribute."""
    assert world.aw.wait() == 7
    assert world.aw.real == 7


OPERATIONS: dict[str, Callable[[World], object]] = {
    each.__name__: each
    for each in (
        complete,
        fail,
        complete_beside_who_waits,
        wait_in_vain,
        wait_for_another_thread,
        register_on_a_complete_one,
        wait_for_all,
        run_an_await,
    )
}

# These start threads, which they must not be interrupted in.
WITH_THREADS = (complete_beside_who_waits, wait_for_another_thread)


def wrong(world: World) -> str | None:
    """What is wrong after an operation; None if nothing is."""
    if LOCK._is_owned():  # type: ignore[attr-defined]  # as Condition asks
        return "the lock is held"
    if not (world.waiting or world.ended()):
        return "a thread waits for ever"
    if not world.root.done():
        if world.log or len(world.root._waiters) != world.waiting:
            return f"before it is complete: {world.log}, {world.root._waiters}"
        world.root.set_result(0)
    if not world.ended():
        return "a thread waits for ever"
    return _wrong_of_awaits(world) or _wrong_of_a_complete_future(world)


def _wrong_of_awaits(world: World) -> str | None:
    if _USERS:
        _USERS.clear()
        return "an await is said to run"
    world.start(lambda: world.aw.wait())
    if not world.ended() or world.aw.wait() != 7 or not 1 <= world.runs <= 2:
        return f"an await that ran {world.runs} times"
    return None


def _wrong_of_a_complete_future(world: World) -> str | None:
    if [name for name in world.log if name != "flat"] != ORDER:
        return f"callbacks: {world.log}"
    if world.root._waiters:
        return "somebody is said to wait"
    for name in ("child", "failed", "last", "all", "after"):
        if not getattr(world, name).done():
            return f"`{name}` is not complete"
    if not world.inner.done():
        world.inner.set_result(1)
    if not world.flat.done() or world.log.count("flat") != 1:
        return "what follows another future is not complete"
    return None
