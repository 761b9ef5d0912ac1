"""Threads (spec 3.14): every call sees one published state, and nothing ever waits.

Bounded to about a second each.  Each reader checks what it got against what could have
been published: a kernel's answer is the pair (its own number, the number of the
fallback that the same call redispatched to), and these belong together or not at all.
"""

import gc
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder.runtime.dispatch import Dispatcher, Library, fingerprint
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.call import MissingKernel, OperatorGone
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors import tensor
from tests.dispatch.samples import FOO, Ear, everything, op, says, silent

SECONDS = 0.4
# On a busy machine threads may need longer to meet; no test waits for ever.
MOST_SECONDS = 20.0


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Change threads about every bytecode or so."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(
    *workers: Callable[[Callable[[], bool]], None],
    until: Callable[[], bool] = lambda: True,
) -> None:
    """Run workers until the time is over and they have met as `until` says.

    The first failure ends all and is raised.
    """
    begun = time.monotonic()
    failures: list[BaseException] = []

    def going() -> bool:
        elapsed = time.monotonic() - begun
        met = elapsed >= SECONDS and (until() or elapsed >= MOST_SECONDS)
        return not failures and not met

    def guarded(worker: Callable[[Callable[[], bool]], None]) -> None:
        try:
            worker(going)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(each,)) for each in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a thread waits for a lock that nobody frees"
    if failures:
        raise failures[0]


def test_calls_beside_registrations_see_published_states_only() -> None:
    d = silent()
    base = Library("test", "DEF", dispatcher=d, origin="here")
    base.define("foo(Tensor x) -> int")
    base.impl("foo", says(0), "CPU")
    before = everything(d)
    answers: set[Any] = set()
    calls = itertools.count()
    x = tensor([1.0])
    sets = (LOCAL.included, LOCAL.excluded)

    def calling(going: Callable[[], bool]) -> None:
        handle = op(d)
        while going():
            next(calls)
            answers.add(handle.call(x))
            assert (LOCAL.included, LOCAL.excluded) == sets

    def reading(going: Callable[[], bool]) -> None:
        while going():
            state = d.snapshot()
            entry = state.namespaces["test"]["test::foo"]
            held = sum(len(each) for each in entry.implementations.values())
            assert entry.total == held + len(entry.definitions)
            assert entry.table.fallbacks is state.fallbacks
            assert fingerprint(state) == fingerprint(state)

    def overriding(number: int) -> Callable[[Callable[[], bool]], None]:
        def worker(going: Callable[[], bool]) -> None:
            while going():
                with Library("test", "IMPL", "CPU", dispatcher=d) as library:
                    library.impl("foo", says(number))
                    library.impl("foo", says(number), debug="again")

        return worker

    def falling(going: Callable[[], bool]) -> None:
        while going():
            with Library("_", "IMPL", "Python", dispatcher=d) as library:
                library.fallback(says(-1))

    workers = (calling, calling, reading, overriding(1), overriding(2), falling)
    run(*workers, until=lambda: len(answers) >= 2)
    assert answers <= {0, 1, 2}
    assert len(answers) >= 2, "the test saw no override at all"
    assert next(calls) > 100
    assert everything(d) == before


def test_operators_that_come_and_go() -> None:
    d = silent()
    keep = Library("test", "FRAGMENT", dispatcher=d)
    keep.reserve("foo")
    handle = op(d)
    outcomes: set[Any] = set()
    x = tensor([1.0])

    def calling(going: Callable[[], bool]) -> None:
        while going():
            try:
                outcomes.add(handle.call(x))
            except Exception as error:
                outcomes.add(code_of(error))

    def coming_and_going(going: Callable[[], bool]) -> None:
        while going():
            with Library("test", "DEF", dispatcher=d) as library:
                library.define("foo(Tensor x) -> int")
                library.impl("foo", says(7), "CPU")

    run(calling, calling, coming_and_going, until=lambda: 7 in outcomes)
    known = {7, CallOf.missing, CallOf.gone, CallOf.undefined}
    assert 7 in outcomes
    assert outcomes <= known


class CallOf:
    """The names of what a call may raise while its operator comes and goes."""

    missing = MissingKernel.__name__
    gone = OperatorGone.__name__
    undefined = "CallWithoutSchema"


def test_two_kernels_registered_at_once_are_seen_at_once() -> None:
    """A definition with its kernel, and several keys, come in one state."""
    d = silent()
    seen: set[tuple[bool, ...]] = set()

    def looking(going: Callable[[], bool]) -> None:
        while going():
            held = d.snapshot().namespaces.get("test", {}).get("test::foo")
            if held is not None:
                names = {key.name for key in held.implementations}
                seen.add(("CPU" in names, "CUDA" in names))

    def writing(going: Callable[[], bool]) -> None:
        with Library("test", "FRAGMENT", dispatcher=d) as library:
            while going():
                library.impl("foo", says(1), ["CPU", "CUDA"]).close()

    run(looking, writing, until=lambda: bool(seen))
    assert seen == {(True, True)}


def test_exclusive_kernels_are_exclusive_among_threads() -> None:
    d = silent()
    won: list[int] = []
    worst: list[int] = []

    def claiming(number: int) -> Callable[[Callable[[], bool]], None]:
        def worker(going: Callable[[], bool]) -> None:
            with Library("test", "FRAGMENT", dispatcher=d) as library:
                while going():
                    try:
                        held = library.impl(
                            "foo", says(number), "CPU", allow_override=False
                        )
                    except Exception:
                        continue
                    entry = d.entry("test::foo")
                    assert entry is not None
                    worst.append(len(next(iter(entry.implementations.values()))))
                    won.append(number)
                    held.close()

        return worker

    run(claiming(1), claiming(2), claiming(3), until=lambda: len(won) > 10)
    assert max(worst) == 1
    assert len(won) > 10


def test_finalizers_never_deadlock() -> None:
    """Libraries die in every place: inside writers, listeners and the collector."""
    d = silent()
    before = everything(d)
    numbers = itertools.count()

    class Cycle:
        """Keeps its library until the collector comes by."""

        def __init__(self) -> None:
            self.me = self
            self.library = Library(f"n{next(numbers)}", "DEF", dispatcher=d)
            self.library.define(FOO, kernel=says(1))

    class Collector(Ear):
        def on_operator_registered(self, name: Any, schema: Any) -> None:
            Cycle.__init__.__defaults__  # noqa: B018  # allocate nothing, just look
            gc.collect(0)

    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        with d.add_listener(Collector()):

            def dropping(going: Callable[[], bool]) -> None:
                while going():
                    Cycle()

            run(dropping, dropping, dropping)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    d.drain()
    assert next(numbers) > 3
    assert everything(d) == before


def test_one_namespace_has_one_def_library_among_threads() -> None:
    d = silent()
    live: list[int] = []

    def opening(going: Callable[[], bool]) -> None:
        while going():
            try:
                library = Library("test", "DEF", dispatcher=d)
            except Exception:
                continue
            live.append(len(d.snapshot().claims))
            library.close()

    run(opening, opening, opening)
    assert set(live) == {1}
    assert d.snapshot().claims == ()


def test_dispatchers_do_not_know_each_other() -> None:
    first, second = Dispatcher(), Dispatcher()
    with Library("test", "DEF", dispatcher=first) as library:
        library.define(FOO)
        assert second.op_names() == ()
        Library("test", "DEF", dispatcher=second).close()
