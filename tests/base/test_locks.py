"""Loading by several threads at once, and what a fork does to locks that are held."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everyorder.runtime.base import locks
from everyorder.runtime.base.locks import LOADING, load, renewed
from everyorder.runtime.base.registry import Registry
from tests.counting import unmeasured
from tests.forking import free_logging, in_child, needs_fork

# Each way in the wrong order of locks failed in nearly every process.
PROCESSES = 3

AT_ONCE = """
import sys, threading, traceback
sys.setswitchinterval(1e-5)  # many turns, as beside other work
import everyorder.runtime as r
def at_once(*calls):
    together, wrong = threading.Barrier(len(calls)), []
    def run(call):
        together.wait()
        try:
            call()
        except BaseException:
            wrong.append(traceback.format_exc())
    threads = [threading.Thread(target=run, args=(c,), daemon=True) for c in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread waits for ever"
    assert not wrong, wrong[0]
"""

FIRST_USES = {
    "kernels": """
x = r.ones(3)
at_once(lambda: x.exp(), lambda: x + x)
""",
    "layouts": """
x = r.ones(2, 3)
at_once(lambda: x + r.ones(3), lambda: x.exp(), lambda: x.add_(x), lambda: x.sum())
""",
    "surface": """
uses = (lambda: r.tensor([1.0]), lambda: r.ops.core.add, lambda: r.no_grad,
        lambda: r.Tensor)
at_once(*uses, *uses)
""",
}


@pytest.mark.parametrize("first", FIRST_USES)
@pytest.mark.parametrize("process", range(PROCESSES))
def test_first_uses_by_threads_at_once(first: str, process: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE + FIRST_USES[first]],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=unmeasured(),
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_load_gives_the_module_itself() -> None:
    assert load("everyorder.runtime.base.locks") is locks
    assert load("everyorder.runtime").__name__ == "everyorder.runtime"
    with pytest.raises(ModuleNotFoundError, match=r"everyorder\.runtime\.nowhere"):
        load("everyorder.runtime.nowhere.at_all")


def test_load_enters_through_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[tuple[str, bool]] = []

    def note(name: str) -> Any:
        other = threading.Thread(target=lambda: free.append(_take(LOADING)))
        free: list[bool] = []
        other.start()
        other.join()
        entered.append((name, free[0]))

    monkeypatch.setattr(locks, "import_module", note)
    load("everyorder.runtime.kernels.cpu.pointwise")
    names = [
        "everyorder",
        "everyorder.runtime",
        "everyorder.runtime.kernels",
        "everyorder.runtime.kernels.cpu",
    ]
    assert entered == [
        (n, False) for n in (*names, "everyorder.runtime.kernels.cpu.pointwise")
    ]
    assert _take(LOADING)


def test_lazy_names_and_namespaces_load_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from everyorder import runtime

    held: list[bool] = []

    def note(*_: Any) -> Any:
        other = threading.Thread(target=lambda: held.append(not _take(LOADING)))
        other.start()
        other.join()

    monkeypatch.setattr(runtime, "_loaded", note)
    name = "asked_for_by_a_test"
    assert getattr(runtime, name) is None
    monkeypatch.delattr(runtime, "asked_for_by_a_test")
    operators = runtime.dispatch.Operators(
        runtime.default_dispatcher, Registry("providers", {"provided": note})
    )
    assert operators.provided
    assert held == [True, True]


@pytest.fixture(autouse=True)
def _free_to_fork() -> None:
    """Whatever other tests have interrupted, no fork waits for it."""
    free_logging()


def _take(lock: Any) -> bool:
    """Whether the lock was free for this thread."""
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


@contextmanager
def _held(lock: Any) -> Iterator[None]:
    """Another thread holds the lock meanwhile."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    assert taken.wait(60)
    try:
        yield
    finally:
        done.set()
        thread.join()


def _short_locks() -> dict[str, Any]:
    from everyorder.runtime.autograd import node
    from everyorder.runtime.tensors import Generator, default_generator, tensor_impl

    return {
        "storage": tensor_impl._PLACE_LOCK,
        "history": node.HISTORY_LOCK,
        "gradient": node.Extra().lock,
        "generator": Generator()._lock,
        "default": default_generator._lock,
        "any": renewed(),
    }


@needs_fork
@pytest.mark.parametrize("name", list(_short_locks()))
def test_a_child_finds_short_locks_free(name: str) -> None:
    lock = _short_locks()[name]
    with _held(lock):
        assert in_child(lambda: _take(lock))
        assert not _take(lock)
    assert _take(lock)


def _long_locks() -> dict[str, Any]:
    from everyorder.runtime.autograd import install as autograd
    from everyorder.runtime.kernels.compile import jit
    from everyorder.runtime.operators import install as operators

    modules = sys.modules
    return {
        "loading": LOADING,
        "compiling": jit._LOCK,
        "operators": modules[operators.__module__]._LOCK,
        "autograd": modules[autograd.__module__]._LOCK,
    }


@needs_fork
@pytest.mark.parametrize("name", list(_long_locks()))
def test_a_fork_waits_for_long_work(name: str) -> None:
    lock = _long_locks()[name]
    done: list[bool] = []
    with _held(lock):
        forking = threading.Thread(target=lambda: done.append(in_child(free)))

        def free() -> bool:
            return _take(lock)

        forking.start()
        forking.join(0.2)
        assert not done
    forking.join(60)
    assert done == [True]
    assert _take(lock)


@needs_fork
def test_who_holds_a_long_lock_may_fork() -> None:
    with LOADING:
        assert in_child(lambda: _take(LOADING))
    with _held(LOADING):
        assert not _take(LOADING)
    assert _take(LOADING)


@needs_fork
def test_a_fork_needs_no_order_of_long_locks() -> None:
    """The other thread holds the second one, and then takes the first one."""
    first, second = locks._AWAITED[:2]
    holds_second, forks = threading.Event(), threading.Event()
    acquired: list[bool] = []

    def take_both() -> None:
        with second:
            holds_second.set()
            assert forks.wait(60)
            # After this pause the fork waits for `second`.
            threading.Event().wait(0.2)
            if first.acquire(timeout=5):
                first.release()
                acquired.append(True)

    thread = threading.Thread(target=take_both, daemon=True)
    thread.start()
    assert holds_second.wait(60)
    forks.set()
    assert in_child(lambda: _take(first) and _take(second))
    thread.join(60)
    assert acquired == [True]


COMPILING = """
import os, sys, threading, time, faulthandler, warnings
from everyorder.runtime import Tensor, jit, tensor

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
def program():
    def f(x: Tensor) -> Tensor:
        return x * x + x.sin().sum()
    return f

def compile_again():
    while True:
        jit.script(program())(tensor([1.0]))

jit.script(program())(tensor([1.0]))
sys.setswitchinterval(1e-5)
threading.Thread(target=compile_again, daemon=True).start()
faulthandler.dump_traceback_later(60, exit=True)
end = time.monotonic() + 5
while time.monotonic() < end:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
os._exit(0)
"""


@needs_fork
def test_a_process_forks_while_another_thread_compiles(tmp_path: Path) -> None:
    """A program needs its source, so it is a file."""
    file = tmp_path / "compiling.py"
    file.write_text(COMPILING)
    process = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=unmeasured(),
    )
    assert (process.returncode, process.stderr) == (0, "")


def test_locks_are_not_kept_for_forks() -> None:
    before = len(locks._RENEWED)
    lock = renewed()
    assert len(locks._RENEWED) == before + 1
    del lock
    assert len(locks._RENEWED) == before


@pytest.mark.parametrize("name", [*_short_locks(), "watch"])
def test_who_holds_a_short_lock_may_take_it_again(name: str) -> None:
    """The collector, or a signal, may run code of anybody where objects are made."""
    from everyorder.runtime.dispatch.watch import WATCH

    lock = {**_short_locks(), "watch": WATCH._lock}[name]
    with lock:
        assert _take(lock) is (name != "any")


def test_who_is_set_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made first, looked again, only then set: what code of others set stays."""
    from everyorder.runtime.tensors import Storage, tensor, tensor_impl

    x = tensor([1.0, 2.0])
    views: list[Any] = []

    class Meddling(Storage):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            if not views:
                views.append(x)
                views.append(tensor_impl.ensure_place(x))

    monkeypatch.setattr(tensor_impl, "Storage", Meddling)
    assert tensor_impl.ensure_place(x) is views[1]
