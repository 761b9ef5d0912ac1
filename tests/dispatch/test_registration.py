"""Registrations: ended once, by whoever comes first, and keeping nothing alive."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.dispatch import Dispatcher, Library, Registration, fingerprint
from everyorder.runtime.errors.registration import LibraryMisuse
from tests.coded import code
from tests.dispatch.samples import FOO, Ear, everything, op, says, silent


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """Nothing here may depend on garbage collection."""
    gc.disable()
    yield
    gc.enable()


def library(d: Dispatcher) -> Library:
    return Library("test", "FRAGMENT", dispatcher=d, origin="here")


def test_closing_is_idempotent() -> None:
    d = silent()
    before = everything(d)
    lib = library(d)
    first, second = lib.impl("foo", says(1), "CPU"), lib.impl("foo", says(2), "CPU")
    assert (first.closed, second.closed) == (False, False)
    first.close()
    first.close()
    assert (first.closed, second.closed) == (True, False)
    assert d.dump_table("test::foo").count("[kernel]") == 1
    second.close()
    lib.close()
    lib.close()
    assert everything(d) == before


def test_a_registration_is_a_context() -> None:
    d = silent()
    lib = library(d)
    with lib.define(FOO) as held:
        assert (held.closed, d.op_names()) == (False, ("test::foo",))
    assert (held.closed, d.op_names()) == (True, ())
    assert d.op_names() == ()
    with pytest.raises(ZeroDivisionError), lib.define(FOO):
        raise ZeroDivisionError
    assert d.op_names() == ()


def test_a_registration_prints_what_it_holds() -> None:
    lib = library(silent())
    held = lib.define(FOO, kernel=says(1), debug="one")
    assert repr(held) == "<Registration of here, one>"
    assert [token.debug for token in held.tokens] == ["here", "one"]
    other = lib.reserve("bar")
    assert lib.tokens == (*held.tokens, *other.tokens)
    held.close()
    assert held.tokens == ()
    assert lib.tokens == other.tokens
    assert repr(held) == "<Registration closed>"


def test_closing_a_library_closes_its_registrations() -> None:
    d = silent()
    lib = library(d)
    held = [lib.define(FOO), lib.impl("foo", says(1)), lib.reserve("bar")]
    lib.close()
    assert [each.closed for each in held] == [True, True, True]
    for each in held:
        each.close()
    assert d.op_names() == ()


def test_dropping_a_handle_does_nothing() -> None:
    d = silent()
    lib = library(d)
    held = lib.define(FOO)
    del held
    assert d.op_names() == ("test::foo",)


def test_a_lost_library_is_taken_down_by_the_next_writer() -> None:
    d = silent()
    before = fingerprint(d.snapshot())
    lib = library(d)
    held = lib.define(FOO)
    lib.impl("foo", says(1), "CPU")
    del lib
    # Still there: it is only noted.
    assert (held.closed, d.op_names()) == (False, ("test::foo",))
    d.drain()
    assert (held.closed, d.op_names()) == (True, ())
    held.close()
    assert fingerprint(d.snapshot()) == before
    assert not d.dropped
    d.drain()

    lib = library(d)
    lib.define(FOO)
    del lib
    other = Library("other", "FRAGMENT", dispatcher=d)
    other.define("bar(Tensor x) -> Tensor")
    assert d.op_names() == ("other::bar",)
    lib = library(d)
    lib.define(FOO)
    del lib
    other.close()
    assert d.op_names() == ()


def test_a_lost_library_holds_its_namespace_until_then() -> None:
    d = silent()
    lib = Library("test", "DEF", dispatcher=d)
    del lib
    # Registering drains first, so the claim of the lost library is in nobody's way.
    again = Library("test", "DEF", dispatcher=d)
    assert len(d.snapshot().claims) == 1
    again.close()


def test_an_exclusive_kernel_does_not_see_lost_ones() -> None:
    d = Dispatcher()
    lib = library(d)
    lib.impl("foo", says(1), "CPU", debug="lost")
    del lib
    lib = library(d)
    lib.impl("foo", says(2), "CPU", allow_override=False, debug="found")
    lib.impl("foo", says(2), "CUDA", debug="also")
    assert d.dump_state("test::foo").count("(inactive)") == 0


class Callee:
    """A kernel whose death can be seen."""

    def __call__(self, x: int) -> int:
        return 7


ENDS: dict[str, Callable[[Dispatcher, Library, Registration], None]] = {
    "handle": lambda d, lib, held: held.close(),
    "library": lambda d, lib, held: lib.close(),
    "exit": lambda d, lib, held: lib.__exit__(None, None, None),
}


@pytest.mark.parametrize("how", ENDS)
def test_what_is_closed_keeps_no_kernel_alive(how: str) -> None:
    d = silent()
    lib = library(d)
    kernel = Callee()
    dead = weakref.ref(kernel)
    lib.define("foo(int x) -> int")
    held = lib.impl("foo", kernel, "CompositeExplicitAutograd")
    assert op(d).call(1) == 7
    fingerprint(d.snapshot())
    d.dump_table("test::foo")
    del kernel
    assert dead() is not None
    ENDS[how](d, lib, held)
    assert dead() is None, "the handle, the library and the dispatcher still live"


def test_a_lost_library_keeps_no_kernel_alive_once_drained() -> None:
    d = silent()
    lib = library(d)
    kernel = Callee()
    dead = weakref.ref(kernel)
    held = lib.impl("foo", kernel, "CPU")
    del kernel, lib
    d.drain()
    assert dead() is None
    assert held.closed


def test_nor_does_a_failed_registration() -> None:
    d = silent()
    lib = library(d)
    kernel = Callee()
    dead = weakref.ref(kernel)
    with pytest.raises(KeyError):
        lib.impl("foo", kernel, ["CPU", "Nowhere"])
    del kernel
    assert dead() is None


def test_nor_does_a_call_that_is_over() -> None:
    d = silent()
    lib = library(d)
    lib.define("foo(int x) -> int")
    kernel = Callee()
    dead = weakref.ref(kernel)
    held = lib.impl("foo", kernel, "CompositeExplicitAutograd")
    handle, snapshot = op(d), d.snapshot()
    assert handle.call(1) == 7
    held.close()
    del kernel
    assert dead() is not None, "a snapshot keeps what it shows"
    del snapshot
    assert dead() is None
    assert handle.name.name == "test::foo"


def test_many_threads_close_one_handle_once() -> None:
    d = silent()
    lib = library(d)
    before = everything(d)
    for _ in range(50):
        held = lib.define(FOO, kernel=says(1))
        ear = Ear()
        subscription = d.add_listener(ear)
        start = threading.Barrier(4)

        def close(held: Registration, start: threading.Barrier) -> None:
            start.wait()
            held.close()

        threads = [threading.Thread(target=close, args=(held, start)) for _ in range(3)]
        for thread in threads:
            thread.start()
        start.wait()
        lib_closed = held.closed
        for thread in threads:
            thread.join()
        assert held.closed
        assert lib_closed in (True, False)
        assert ear.heard == ["+test::foo", "-test::foo"]
        subscription.close()
    assert everything(d) == before


def test_a_handle_and_its_library_close_at_once() -> None:
    for _ in range(50):
        d = silent()
        before = everything(d)
        lib = library(d)
        held = [lib.impl("foo", says(i), "CPU") for i in range(8)]
        threads = [threading.Thread(target=each.close) for each in held]
        threads.append(threading.Thread(target=lib.close))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert everything(d) == before


def test_a_library_closed_meanwhile_keeps_nothing() -> None:
    d = silent()
    lib = library(d)

    class Closer(Ear):
        """Stands for another thread that closes the library during the call."""

        def on_operator_registered(self, name: Any, schema: Any) -> None:
            thread = threading.Thread(target=lib.close)
            thread.start()
            while not lib._closed:
                pass
            threads.append(thread)

    threads: list[threading.Thread] = []
    with d.add_listener(Closer()):
        before = fingerprint(d.snapshot())
        with pytest.raises(LibraryMisuse, check=code("LibraryClosed")):
            lib.define(FOO)
        threads[0].join()
        assert fingerprint(d.snapshot()) == before


def test_a_listener_cannot_close_a_handle_which_stays() -> None:
    d = silent()
    lib = library(d)
    held = lib.impl("foo", says(1), "CPU")

    class Meddler(Ear):
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            held.close()

    with d.add_listener(Meddler()):
        with pytest.raises(LibraryMisuse, check=code("WriteInsideListener")) as caught:
            lib.define("bar(Tensor x) -> Tensor")
        assert caught.value.call == "Dispatcher.unregister(...)"
        assert not held.closed
    held.close()
    assert d.op_names() == ()


class Counted(Closeable):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_block_ends_what_it_is_of() -> None:
    with Counted() as made:
        assert made.closed == 0
    assert made.closed == 1


def test_an_exception_goes_on() -> None:
    made = Counted()
    with pytest.raises(KeyError), made:
        raise KeyError
    assert made.closed == 1


def test_how_it_ends_has_to_be_said() -> None:
    with pytest.raises(NotImplementedError, match="Closeable does not implement close"):
        Closeable().close()
