"""The event loop and the context variables of one fresh system."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.execution import (
    NoLoop,
    ScenarioLoop,
    as_current_loop,
    current_loop,
)

NUMBER: ContextVar[int] = ContextVar("number", default=0)


@pytest.fixture
def loop() -> Iterator[ScenarioLoop]:
    made = ScenarioLoop()
    yield made
    made.close()


async def set_number(number: int) -> int:
    NUMBER.set(number)
    await asyncio.sleep(0)
    return number


def test_all_of_a_system_see_the_same_variables(loop: ScenarioLoop) -> None:
    assert loop.wait(set_number(1)) == 1
    assert loop.call(NUMBER.get) == 1
    loop.call(NUMBER.set, 2)
    assert loop.wait(set_number(3)) == 3
    assert loop.call(NUMBER.get) == 3


def test_what_a_system_set_is_gone_with_it(loop: ScenarioLoop) -> None:
    loop.call(NUMBER.set, 1)
    assert NUMBER.get() == 0
    assert ScenarioLoop().call(NUMBER.get) == 0


def test_a_token_made_by_a_coroutine_can_be_reset_by_another(
    loop: ScenarioLoop,
) -> None:
    async def make() -> object:
        return NUMBER.set(7)

    async def back(token: object) -> None:
        NUMBER.reset(token)  # type: ignore[arg-type]  # a token of this variable

    loop.wait(back(loop.wait(make())))
    assert loop.call(NUMBER.get) == 0


def test_one_loop_for_all_coroutines(loop: ScenarioLoop) -> None:
    async def running() -> int:
        return id(asyncio.get_running_loop())

    assert loop.wait(running()) == loop.wait(running())


def test_tasks_and_callbacks_that_are_left(loop: ScenarioLoop) -> None:
    async def sleep() -> None:
        await asyncio.sleep(60)

    async def start() -> None:
        running = asyncio.get_running_loop()
        kept.append(running.create_task(sleep()))
        running.call_later(60, print)

    kept: list[object] = []
    assert (loop.pending, loop.scheduled) == ((), 0)
    loop.wait(start())
    (coroutine,) = loop.pending
    assert coroutine.__qualname__.endswith("sleep")
    assert loop.scheduled
    loop.close()
    assert (loop.pending, loop.scheduled) == ((), 0)


def test_a_task_that_fails_unseen_is_told(loop: ScenarioLoop) -> None:
    async def fail() -> None:
        raise LookupError("gone")

    async def start() -> None:
        task = asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(0)
        del task

    loop.wait(start())
    loop.wait(asyncio.sleep(0))
    assert loop.failures == ("a task that is not awaited failed: LookupError: gone",)


def test_what_is_reported_to_the_loop_is_no_task(loop: ScenarioLoop) -> None:
    async def report() -> None:
        running = asyncio.get_running_loop()
        running.call_exception_handler({"message": "gone"})
        running.call_soon(lambda: [].pop())
        await asyncio.sleep(0)

    loop.wait(report())
    assert loop.failures == (
        "an error was reported to the event loop: gone",
        "a callback of the event loop failed: IndexError: pop from empty list",
    )


def test_closing_ends_tasks_and_generators() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("task")

    async def count() -> object:
        try:
            yield 1
            yield 2
        finally:
            ended.append("generator")

    async def start() -> None:
        kept.append(asyncio.get_running_loop().create_task(wait()))
        numbers = count()
        await anext(numbers)  # type: ignore[call-overload]  # it is a generator
        kept.append(numbers)
        await asyncio.sleep(0)

    kept: list[object] = []
    loop = ScenarioLoop()
    loop.wait(start())
    loop.close()
    loop.close()
    assert sorted(ended) == ["generator", "task"]


def test_inside_of_a_running_loop(loop: ScenarioLoop) -> None:
    async def outer() -> None:
        with pytest.raises(NotAScenario) as caught:
            loop.wait(asyncio.sleep(0))
        assert str(caught.value) == (
            "a scenario cannot use a coroutine, while an event loop runs in this "
            "thread; expected explore() to be called outside of coroutines."
        )

    asyncio.run(outer())


def test_steps_learn_their_loop_while_they_are_prepared(loop: ScenarioLoop) -> None:
    assert isinstance(current_loop(), NoLoop)
    with as_current_loop(loop):
        assert current_loop() is loop
    assert isinstance(current_loop(), NoLoop)


def test_asyncio_is_imported_by_the_first_coroutine() -> None:
    program = (
        "import sys\n"
        "from contextlib import contextmanager\n"
        "from everyorder.harness.scenario.execution import ScenarioLoop\n"
        "@contextmanager\n"
        "def importing():\n"
        "    told.append('asyncio' in sys.modules)\n"
        "    yield\n"
        "    told.append('asyncio' in sys.modules)\n"
        "async def one():\n"
        "    return 1\n"
        "told = []\n"
        "loop = ScenarioLoop(importing)\n"
        "told.append(loop.call(len, 'ab'))\n"
        "told += [loop.wait(one()), loop.wait(one())]\n"
        "loop.close()\n"
        "print(told)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[2, False, True, 1, 1]\n"


def test_a_loop_that_is_dropped_is_closed() -> None:
    """By an object that only it has: an interrupt in `__del__` is printed, and lost."""
    assert not hasattr(ScenarioLoop, "__del__")
    loop = ScenarioLoop()

    async def running() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    inner = loop.wait(running())
    assert not inner.is_closed()
    del loop
    assert inner.is_closed()
