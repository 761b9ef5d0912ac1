"""Forks in scripts: who is forked, with which arguments, and what is waited for."""

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.futures import Future
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import fork, wait
from tests.script.emission.scripts import agrees, compiled, kinds, script

pytestmark = pytest.mark.spec("futures 2.3", "fork and wait")

X = runtime.tensor([1.0, 2.0])


def plus(n: int, m: int = 2, k: int = 3) -> int:
    return n * 100 + m * 10 + k


def test_fork_and_wait() -> None:
    def f(n: int) -> int:
        one = fork(plus, n)
        two = fork(plus, n, k=4)
        return wait(one) + two.wait()

    agrees(f, (1,), (-3,))


def test_the_nodes_of_forks() -> None:
    def f(n: int) -> int:
        return wait(fork(plus, n))

    found = kinds(compiled(f))
    assert found.count("prim::fork") + found.count("prim::forkClosure") == 1
    assert found.count("prim::wait") == 1


@pytest.mark.spec("futures 2.1", "the type of scripts")
def test_the_type_of_a_fork() -> None:
    def f(n: int):  # type: ignore[no-untyped-def]  # it is inferred
        return fork(plus, n)

    made = compiled(f)
    assert str(made.schema) == "f(int n) -> Future(int)"
    future = call(made, (1,), {})
    assert isinstance(future, Future)
    assert future.wait() == 123


def test_defaults_and_keywords() -> None:
    def f() -> list[int]:
        futures = [fork(plus, 1), fork(plus, 1, 5), fork(plus, m=1, n=2, k=7)]
        return [wait(each) for each in futures]

    agrees(f)


class Scaled:
    def __init__(self, by: int) -> None:
        self.by = by

    def times(self, n: int) -> int:
        return n * self.by

    def all(self, n: int) -> int:
        return wait(fork(self.times, n))

    def __call__(self, n: int) -> int:
        return n + self.by

    @staticmethod
    def half(n: int) -> int:
        return n // 2


def test_methods_are_forked() -> None:
    def f(n: int) -> list[int]:
        s = Scaled(3)
        one, two, three = fork(s.times, n), fork(Scaled.half, n), fork(s, n)
        return [wait(one), wait(two), wait(three), s.all(n)]

    agrees(f, (5,))


def test_operators_are_forked() -> None:
    def f(x: Tensor) -> Tensor:
        return wait(fork(runtime.ops.core.add, x, x))

    assert script(f)(X).tolist() == [2.0, 4.0]


@pytest.mark.spec("script 6.2", "starred arguments")
def test_starred_arguments_of_known_length() -> None:
    def f(pair: tuple[int, int]) -> int:
        return wait(fork(plus, *pair))

    agrees(f, ((1, 2),))


def test_several_results() -> None:
    def g(n: int) -> tuple[int, str]:
        return n, str(n)

    def f(n: int) -> str:
        a, b = wait(fork(g, n))
        return b * a

    agrees(f, (3,))


def test_forks_in_forks() -> None:
    def inner(n: int) -> int:
        return n + 1

    def outer(n: int) -> Future[int]:
        return fork(inner, n)

    def f(n: int) -> int:
        return wait(wait(fork(outer, n)))

    agrees(f, (3,))


def test_futures_are_values() -> None:
    def f(n: int) -> int:
        futures: list[Future[int]] = []
        for each in range(n):
            futures.append(fork(plus, each))  # noqa: PERF401  # a loop is what is tested
        total = 0
        for future in futures:
            total += wait(future)
        return total

    agrees(f, (0,), (4,))


def test_a_future_of_python() -> None:
    def f(future: Future[int]) -> int:
        return future.wait() + 1

    given: Future[int] = Future()
    given.set_result(41)
    assert script(f)(given) == 42


def test_what_a_fork_raises_comes_out_of_wait() -> None:
    def g(n: int) -> int:
        if n > 0:
            raise ValueError("too large")
        return n

    def f(n: int) -> int:
        future = fork(g, n)
        return wait(future)

    scripted = script(f)
    assert scripted(0) == 0
    with pytest.raises(Exception, match="too large"):
        scripted(1)


def test_a_fork_that_gives_nothing() -> None:
    def g(log: list[int]) -> None:
        log.append(1)

    def f() -> list[int]:
        log: list[int] = []
        wait(fork(g, log))
        return log

    agrees(f)


def test_forks_of_one_function_in_loops_and_branches() -> None:
    def f(n: int) -> int:
        total = 0
        for each in range(n):
            if each % 2 == 0:
                total += wait(fork(plus, each))
            else:
                later = fork(plus, each, k=each)
                total -= later.wait()
        return total

    agrees(f, (0,), (1,), (5,))
