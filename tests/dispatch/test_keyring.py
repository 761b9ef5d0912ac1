"""Interning: one living object for each name, and none that is kept alive."""

import gc
import threading
import weakref
from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, OperatorHandle
from everyorder.runtime.dispatch.handle import OperatorPacket
from everyorder.runtime.dispatch.registration import Interned
from everyorder.runtime.schema import OperatorName
from tests.dispatch.samples import defined, on, op, says, silent


class Thing:
    """What can be weakly held."""


def test_the_first_one_of_a_name_is_the_one() -> None:
    interned: Interned[Thing] = Interned()
    assert interned.get("a") is None
    first, second, other = Thing(), Thing(), Thing()
    assert interned.setdefault("a", first) is first
    assert interned.setdefault("a", second) is first
    assert interned.setdefault("b", other) is other
    assert (interned.get("a"), interned.get("b"), len(interned)) == (first, other, 2)


def test_nothing_is_kept_alive_and_the_next_one_takes_its_place() -> None:
    interned: Interned[Thing] = Interned()
    interned.setdefault("a", Thing())
    assert interned.get("a") is None
    for _ in range(3):
        second = Thing()
        assert interned.setdefault("a", second) is second
        assert interned.get("a") is second
        del second
    assert len(interned) == 1


def test_a_head_that_lags_behind_leads_to_the_end() -> None:
    interned: Interned[Thing] = Interned()
    interned.setdefault("a", Thing())
    stale = interned._heads["a"]
    second = interned.setdefault("a", Thing())
    interned._heads["a"] = stale  # a thread that was slow to cut the chain short
    assert interned.get("a") is second
    assert interned.setdefault("a", Thing()) is second
    del second
    third = Thing()
    assert interned.setdefault("a", third) is third
    assert interned._heads["a"]() is third


def test_who_asks_while_another_one_settles_gets_the_same() -> None:
    """A finalizer, a signal, another thread: they come between any two steps."""

    class Meddling(dict[str, Any]):
        def setdefault(self, name: str, made: Any = None) -> Any:
            if not self.meddled:
                self.meddled = True
                settled.append(interned.setdefault("a", Thing()))
            return super().setdefault(name, made)

        meddled = False

    for dead in (False, True):
        interned: Interned[Thing] = Interned()
        settled: list[Thing] = []
        if dead:
            interned.setdefault("a", Thing())
            interned._heads["a"].successor = Meddling()
        else:
            interned._heads = Meddling()
        assert interned.setdefault("a", Thing()) is settled[0]


def test_threads_get_one_handle() -> None:
    rounds, workers = 60, 6
    dispatcher = Dispatcher()
    defined(dispatcher)
    together = threading.Barrier(workers)
    found: list[list[OperatorHandle]] = [[] for _ in range(rounds)]

    def ask() -> None:
        for number in range(rounds):
            together.wait(30)
            handle = op(dispatcher)
            found[number].append(handle)
            together.wait(30)
            # All are dropped before the next round, so that one is made anew.
            found[number].append(handle) if number % 2 else found[number].clear()
            del handle

    threads = [threading.Thread(target=ask) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert [len(set(map(id, each))) for each in found] == [0, 1] * (rounds // 2)


def test_handles_and_packets_are_one_for_each_dispatcher() -> None:
    first, second = silent(), silent()
    name = OperatorName("test::foo")
    handle, packet = OperatorHandle(first, name), OperatorPacket(first, name)
    assert handle is OperatorHandle(first, OperatorName("test::foo"))
    assert handle is not OperatorHandle(first, OperatorName("test::foo", "out"))
    assert handle is not OperatorHandle(second, name)
    assert packet is OperatorPacket(first, name) is handle.overloadpacket
    assert packet is not OperatorPacket(second, name)
    defined(first)
    assert op(first) is handle is packet.default


@pytest.fixture
def _no_collector() -> Any:
    enabled = gc.isenabled()
    gc.disable()
    yield
    if enabled:
        gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("calls", [0, 3, 40])
def test_interning_keeps_no_dispatcher_and_no_kernel(calls: int) -> None:
    dispatcher = silent()
    library = defined(dispatcher, "foo(Tensor x) -> str")
    kernel: Any = says("mine")
    held = library.impl("foo", kernel, "CPU")
    handle = op(dispatcher)
    packet: Any = handle.overloadpacket
    x = on("CPU")
    assert [handle(x) for _ in range(calls)] == ["mine"] * calls
    assert [packet(x) for _ in range(calls)] == ["mine"] * calls
    dead = [weakref.ref(each) for each in (kernel, handle, packet)]
    del kernel
    held.close()
    assert dead[0]() is None
    del handle, packet
    assert [each() for each in dead[1:]] == [None, None]
    gone = weakref.ref(dispatcher)
    library.close()
    del dispatcher, library, held
    assert gone() is None


def test_a_handle_that_was_dropped_is_made_anew_with_its_call_stub() -> None:
    dispatcher = silent()
    library = Library("test", "DEF", dispatcher=dispatcher)
    library.define("foo(Tensor x) -> str")
    library.impl("foo", says("mine"), "CPU")
    x = on("CPU")
    for _ in range(100):
        assert op(dispatcher)(x) == "mine"
    assert len(dispatcher.keyring.handles) == 1
