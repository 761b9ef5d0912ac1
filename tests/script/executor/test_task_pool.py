"""The pool: who runs a task, in which state, and what comes of interruptions."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.autograd import is_grad_enabled, no_grad
from everyorder.runtime.autograd.graph import saved_tensors_hooks
from everyorder.runtime.autograd.saved_hooks import HOOKS
from everyorder.runtime.keys import LOCAL, DispatchKey, exclude_keys
from everyorder.runtime.script.executor import (
    ForkFuture,
    TaskPool,
    call,
    executor,
    fork_pool,
)
from tests.script.executor.written import written


def test_who_waits_first_runs_a_task_that_has_not_begun() -> None:
    pool = TaskPool()
    with executor(threads=1):
        held, begun = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            held.wait()

        first = pool.fork(hold)
        begun.wait()
        # The only thread is busy.
        future = pool.fork(threading.get_ident)
        assert not future.done()
        assert future.wait() == threading.get_ident()
        assert pool.size == 1
        held.set()
        first.wait()


def test_a_task_runs_though_nobody_waits() -> None:
    done = threading.Event()
    pool = TaskPool()
    pool.fork(done.set)
    assert done.wait(60)


def test_a_wait_with_a_timeout_runs_nothing_here() -> None:
    pool = TaskPool()
    future = pool.fork(threading.get_ident)
    assert future.wait(60) != threading.get_ident()


def test_a_task_runs_once_however_many_wait() -> None:
    runs: list[int] = []
    results: list[int] = []

    def one_more() -> int:
        runs.append(1)
        return len(runs)

    for _ in range(50):
        future = fork_pool.fork(one_more)
        threads = [
            threading.Thread(target=lambda f=future: results.append(f.wait()))
            for _ in range(4)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(runs) == 50
    assert sorted(results) == sorted(list(range(1, 51)) * 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_nested_forks_never_wait_for_each_other(threads: int) -> None:
    pool = TaskPool()

    def tree(depth: int) -> int:
        if not depth:
            return 1
        parts = [pool.fork(tree, depth - 1) for _ in range(3)]
        return sum(each.wait() for each in reversed(parts))

    with executor(threads=threads):
        assert tree(6) == 3**6
        assert pool.size <= threads


def test_threads_are_as_many_as_the_options_say() -> None:
    pool = TaskPool()
    held = threading.Event()
    with executor(threads=2):
        tasks = [pool.fork(held.wait) for _ in range(10)]
        assert pool.size <= 2
        held.set()
        for each in tasks:
            each.wait()


@pytest.mark.spec("script 0.19", "owners")
def test_a_finished_task_keeps_nothing() -> None:
    class Thing:
        """An argument."""

    thing = Thing()
    found = weakref.ref(thing)
    future = ForkFuture(lambda each: None, (thing,))
    del thing
    assert found() is not None
    future.wait()
    gc.collect()
    assert found() is None


def test_what_a_task_raises_is_raised_by_everybody_who_waits() -> None:
    def fail() -> None:
        raise LookupError("lost")

    future = fork_pool.fork(fail)
    for _ in range(2):
        with pytest.raises(LookupError, match="lost"):
            future.wait()


def elsewhere(function: Callable[[], Any]) -> Any:
    """What a function gives as a task on another thread."""
    return TaskPool().fork(function).wait(60)


def test_a_task_has_the_state_of_the_thread_that_forked_it() -> None:
    assert elsewhere(is_grad_enabled) is True
    with no_grad():
        assert elsewhere(is_grad_enabled) is False
    with runtime.inference_mode():
        assert elsewhere(runtime.is_inference_mode_enabled) is True
    assert elsewhere(runtime.is_inference_mode_enabled) is False
    with exclude_keys(DispatchKey.AutogradCPU):
        assert elsewhere(lambda: LOCAL.view) is LOCAL.view
    with runtime.autocast("cpu"):
        assert elsewhere(lambda: runtime.is_autocast_enabled("cpu")) is True
    assert elsewhere(lambda: runtime.is_autocast_enabled("cpu")) is False


def test_hooks_of_saved_tensors_see_what_a_task_saves() -> None:
    packed: list[Any] = []

    def pack(saved: Any) -> Any:
        packed.append(saved.tolist())
        return saved

    x = runtime.ones(1, requires_grad=True)
    with saved_tensors_hooks(pack, lambda saved: saved):
        task = TaskPool().fork(lambda: x * x)
        task.wait(60)
        late = ForkFuture(lambda: x * x, ())
    assert packed == [[1], [1]]
    late.wait().backward()
    assert packed == [[1]] * 4
    elsewhere(lambda: x * x)
    assert packed == [[1]] * 4
    assert HOOKS.active is None


def test_modes_see_what_a_task_calls() -> None:
    seen: list[str] = []

    class Log(runtime.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func.name))
            return func(*args, **(kwargs or {}))

    x = runtime.ones(1)
    with Log():
        elsewhere(lambda: runtime.neg(x))
    elsewhere(lambda: runtime.neg(x))
    assert seen == ["core::neg"]


def test_who_runs_a_task_has_its_own_state_back() -> None:
    def change(fails: bool) -> None:
        no_grad().__enter__()
        if fails:
            raise ZeroDivisionError

    for fails in (False, True):
        with no_grad():
            task = ForkFuture(change, (fails,))
        view = LOCAL.view
        if fails:
            with pytest.raises(ZeroDivisionError):
                task.wait()
        else:
            task.wait()
        assert (is_grad_enabled(), LOCAL.view is view) == (True, True)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_leaves_the_future_complete(
    interrupt: type[BaseException],
) -> None:
    def stop() -> None:
        raise interrupt

    task = ForkFuture(stop, ())
    for _ in range(2):
        with pytest.raises(interrupt):
            task.wait()
    assert task.done()
    # A thread of the pool outlives it.
    pool = TaskPool()
    with executor(threads=1):
        lost = pool.fork(stop)
        with pytest.raises(interrupt):
            lost.wait(60)
        assert pool.fork(lambda: 3).wait() == 3


def test_an_interrupted_program_runs_again() -> None:
    stops = [True]

    def stop() -> None:
        if stops:
            stops.clear()
            raise KeyboardInterrupt

    function = written(
        "f(int n) -> int",
        """\
  %fut : Future(int) = prim::fork_0(%n)
  %r : int = prim::wait(%fut)
  return (%r)
with prim::fork_0 = graph(%m : int):
  prim::PythonOp[name="stop", object=object(0)]()
  return (%m)
""",
        objects=[stop],
    )
    with executor(threads=1, text_after=0):
        with pytest.raises(KeyboardInterrupt):
            call(function, (1,))
        assert call(function, (1,)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_a_pool_of_its_own() -> None:
    text = """
import os, threading
from everyorder.runtime.script.executor import fork_pool, executor
held = threading.Event()
begun = threading.Event()
with executor(threads=1):
    busy = fork_pool.fork(lambda: (begun.set(), held.wait()))
    begun.wait()
    waiting = fork_pool.fork(lambda: 3)
    child = os.fork()
    if not child:
        assert fork_pool.size == 0
        assert waiting.wait() == 3
        assert fork_pool.fork(lambda: 4).wait(60) == 4
        os._exit(7)
    held.set()
    busy.wait()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert waiting.wait() == 3
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)


def test_programs_run_in_many_threads_at_once() -> None:
    function = written(
        "f(int n) -> int",
        """\
  %yes : bool = prim::Constant[value=True]()
  %zero : int = prim::Constant[value=0]()
  %s : int = prim::Loop(%n, %yes, %zero)
    block0(%i : int, %x : int):
      %y : int = script::add.int(%x, %i)
      -> (%yes, %y)
  return (%s)
""",
    )
    results: list[list[int]] = []

    def work() -> None:
        results.append([call(function, (each,)) for each in range(60)])

    with executor(text_after=400):
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert results == [[n * (n - 1) // 2 for n in range(60)]] * 4


KERNEL = "%z : Tensor = core::sin(%x)"
PYTHON = '%z : Tensor = prim::PythonOp[name="long", object=object(2)](%x)'


@pytest.mark.spec("script 0.15", "locks and the order of imports")
@pytest.mark.spec("script 0.18", "the interpreter lock")
@pytest.mark.spec("boundary", "kernels release the interpreter lock")
@pytest.mark.parametrize(("line", "goes_on"), [(KERNEL, True), (PYTHON, False)])
def test_kernels_run_without_the_interpreter_lock(line: str, goes_on: bool) -> None:
    # No thread is made to give the lock up, so the thread that waits for `begun` comes
    # to run before `ended` only if what is between the two lets the lock go.
    begun, ended = threading.Event(), threading.Event()

    def long(x: Any) -> Any:
        for _ in range(20_000):
            pass
        return x

    program = written(
        "program(Tensor x) -> Tensor",
        f"""\
  prim::PythonOp[name="begun", object=object(0)]()
  {line}
  prim::PythonOp[name="ended", object=object(1)]()
  return (%z)
""",
        objects=[lambda: begun.set(), lambda: ended.set(), long],
    )
    call(program, (runtime.ones(4),))
    x = runtime.ones(1 << 20)
    pool, seen = TaskPool(), False
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        # The system may be slow to let a thread run: that once is enough.
        for _ in range(10):
            begun.clear()
            ended.clear()
            future = pool.fork(call, program, (x,))
            begun.wait()
            seen = seen or not ended.is_set()
            future.wait(60)
    finally:
        sys.setswitchinterval(interval)
    assert seen is goes_on
