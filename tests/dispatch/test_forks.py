"""A fork while another thread registers, drains or begins to watch."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from everyorder.runtime.dispatch import (
    Dispatcher,
    Library,
    OperatorHandle,
    default_dispatcher,
)
from everyorder.runtime.dispatch import dispatcher as dispatchers
from everyorder.runtime.dispatch.watch import WATCH, TraceSinks
from everyorder.runtime.schema import OperatorName
from tests.base.test_locks import _held, _take
from tests.dispatch.samples import Ear, defined, op, says, silent
from tests.forking import SECONDS, ended_well, fork, in_child, needs_fork

pytestmark = needs_fork


class Waiting(Ear):
    """A listener that waits inside of what it is told, once."""

    def __init__(self) -> None:
        super().__init__()
        self.told, self.go_on = threading.Event(), threading.Event()

    def wait(self) -> None:
        if not self.told.is_set():
            self.told.set()
            assert self.go_on.wait(SECONDS)

    def on_operator_registered(self, name: OperatorName, schema: Any) -> None:
        self.wait()

    def on_operator_deregistered(self, name: OperatorName, schema: Any) -> None:
        self.wait()


@contextmanager
def meanwhile(write: Callable[[], object], ear: Waiting) -> Iterator[None]:
    """Another thread writes, and stands in the listener while the block runs."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            write()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ear.told.wait(SECONDS)
    try:
        yield
    finally:
        ear.go_on.set()
        thread.join(SECONDS)
    assert not thread.is_alive()
    assert failed == []


def registers(d: Dispatcher) -> bool:
    """Whether a thread can register, call, and take down."""
    with Library("more", "DEF", dispatcher=d) as library:
        library.define("foo(int x) -> int")
        library.impl("foo", says(3), "CompositeExplicitAutograd")
        if op(d, "more::foo")(1) != 3:
            return False
    return "more::foo" not in d.op_names()


def test_the_child_registers_while_a_thread_of_the_parent_does() -> None:
    d, ear = silent(), Waiting()
    listening = d.add_listener(ear)
    libraries: list[Library] = []
    with meanwhile(lambda: libraries.append(defined(d)), ear):
        # What the thread was about to publish did not happen there.
        assert in_child(lambda: d.op_names() == () and registers(d))
        assert not _take(d._lock)
    assert d.op_names() == ("test::foo",)
    assert registers(d)
    listening.close()


def test_the_child_takes_down_what_a_thread_of_the_parent_was_taking_down() -> None:
    d, ear = silent(), Waiting()
    library = defined(d)
    ear.told.set()
    listening = d.add_listener(ear)
    ear.told.clear()
    del library
    assert len(d.dropped) == 1
    with meanwhile(d.drain, ear):
        assert in_child(lambda: registers(d) and d.op_names() == ())
    assert d.op_names() == ()
    assert list(d.dropped) == []
    listening.close()


def test_the_number_of_a_thread_that_is_gone_may_come_again() -> None:
    d = silent()
    d._writer = threading.get_ident()
    d._telling = True
    assert registers(d)
    d._writer, d._telling = threading.get_ident(), True
    d.check_writable("whatever")


def test_a_listener_may_fork() -> None:
    """Both processes come back from the registration, each with its own lock."""
    d = silent()
    good = False

    class Forking(Ear):
        child: int | None = None

        def on_operator_registered(self, name: OperatorName, schema: Any) -> None:
            if self.child is None:
                self.child = fork()

    ear = Forking()
    listening = d.add_listener(ear)
    try:
        library = defined(d)
        good = d.op_names() == ("test::foo",) and registers(d)
    finally:
        if ear.child == 0:
            os._exit(0 if good else 1)
    assert ear.child is not None
    assert (good, ended_well(ear.child)) == (True, True)
    library.close()
    listening.close()


@pytest.mark.parametrize("name", ["default", "watch", "another watch"])
def test_a_child_finds_the_lock_free(name: str) -> None:
    other = TraceSinks()
    locks: dict[str, tuple[Any, Callable[[], bool]]] = {
        "default": (
            dispatchers._DEFAULT_LOCK,
            lambda: default_dispatcher() is default_dispatcher(),
        ),
        "watch": (WATCH._lock, lambda: _traces(WATCH)),
        "another watch": (other._lock, lambda: _traces(other)),
    }
    lock, use = locks[name]
    with _held(lock):
        assert in_child(use)
        assert not _take(lock)
    assert use()


def _traces(watch: TraceSinks) -> bool:
    with watch.tracing() as lines:
        watch.write("call", "test::foo", "CPU")
    return lines == ["[call] op=[test::foo], key=[CPU]"] and not watch.active


def test_a_fork_while_handles_are_made() -> None:
    """There is nothing to hold: the child gets handles whatever others do."""
    d = silent()
    over = threading.Event()

    def make() -> None:
        while not over.is_set():
            OperatorHandle(d, OperatorName("test::foo"))

    threads = [threading.Thread(target=make, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    name = OperatorName("test::foo")
    try:
        for _ in range(5):
            assert in_child(lambda: OperatorHandle(d, name) is OperatorHandle(d, name))
    finally:
        over.set()
        for thread in threads:
            thread.join(SECONDS)
