"""Asynchronous hooks: coroutine functions that run at startup or for each event.

Steps and uses are coroutines: connecting awaits, and so does sending.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

Hook = Callable[[int], Awaitable[str]]


async def log(event: int) -> str:
    return f"log {event}"


async def trace(event: int) -> str:
    await asyncio.sleep(0)
    return f"trace {event}"


async def alarm(event: int) -> str:
    return f"alarm {event}"


class AsyncHooks:
    """Calls the hooks one after the other, sorted by name."""

    def __init__(self) -> None:
        self._hooks: list[Hook] = []
        self._plan: tuple[Hook, ...] | None = None

    async def connect(self, hook: Hook) -> None:
        self._hooks.append(hook)
        self._plan = None

    async def disconnect(self, hook: Hook) -> None:
        self._hooks.remove(hook)
        self._plan = None

    def _sorted(self) -> tuple[Hook, ...]:
        return tuple(sorted(self._hooks, key=lambda hook: hook.__name__))

    async def send(self, event: int) -> list[str]:
        if self._plan is None:
            self._plan = self._sorted()
        return [await hook(event) for hook in self._plan]

    def size(self) -> int:
        return len(self._hooks)


class GatheringHooks(AsyncHooks):
    """Runs the hooks at once and lists their answers by name."""

    async def send(self, event: int) -> list[str]:
        return list(await asyncio.gather(*(hook(event) for hook in self._sorted())))


class PerEventHooks(AsyncHooks):
    """Sorts for each event; a lock keeps connecting apart from sending."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = asyncio.Lock()

    async def connect(self, hook: Hook) -> None:
        async with self._lock:
            await super().connect(hook)

    async def send(self, event: int) -> list[str]:
        async with self._lock:
            return [await hook(event) for hook in self._sorted()]


class LifespanHooks(AsyncHooks):
    """Starts on the first event, and again after a change."""

    def __init__(self) -> None:
        super().__init__()
        self._started: frozenset[str] = frozenset()

    async def _start(self) -> None:
        self._started = frozenset(hook.__name__ for hook in self._hooks)

    async def send(self, event: int) -> list[str]:
        if len(self._started) != len(self._hooks) or self._plan is None:
            await self._start()
        return [*sorted(self._started), *await super().send(event)]


class QueueHooks(AsyncHooks):
    """Puts each hook into a queue and empties it."""

    async def send(self, event: int) -> list[str]:
        queue: asyncio.Queue[Hook] = asyncio.Queue()
        for hook in self._sorted():
            queue.put_nowait(hook)
        answers = []
        while not queue.empty():
            answers.append(await queue.get_nowait()(event))
        return answers


class ContextHooks(AsyncHooks):
    """Connects by an asynchronous context manager inside."""

    @asynccontextmanager
    async def _batch(self) -> Any:
        self._plan = None
        yield self._hooks
        self._plan = self._sorted()

    async def connect(self, hook: Hook) -> None:
        async with self._batch() as hooks:
            hooks.append(hook)

    async def disconnect(self, hook: Hook) -> None:
        async with self._batch() as hooks:
            hooks.remove(hook)


class StalePlanHooks(AsyncHooks):
    async def disconnect(self, hook: Hook) -> None:
        self._hooks.remove(hook)


class CompletionOrderHooks(AsyncHooks):
    async def send(self, event: int) -> list[str]:
        answers: list[str] = []

        async def run(hook: Hook) -> None:
            answers.append(await hook(event))

        await asyncio.gather(*map(run, self._hooks))
        return answers


class OneShotHooks(AsyncHooks):
    async def send(self, event: int) -> list[str]:
        answers = await super().send(event)
        if alarm in self._hooks and len(self._hooks) > 1:
            self._plan = tuple(hook for hook in self._sorted() if hook is not alarm)
        return answers


class StartedHooks(LifespanHooks):
    async def send(self, event: int) -> list[str]:
        if not self._started:
            await self._start()
        return [*sorted(self._started), *await AsyncHooks.send(self, event)]


class PoppedHooks(AsyncHooks):
    async def disconnect(self, hook: Hook) -> None:
        await asyncio.sleep(0)
        self._hooks.pop()
        self._plan = None


class IteratingHooks(AsyncHooks):
    async def disconnect(self, hook: Hook) -> None:
        for each in self._hooks:
            if each is hook or each is log:
                self._hooks.remove(each)
        self._plan = None


class BatchedHooks(ContextHooks):
    @asynccontextmanager
    async def _batch(self) -> Any:
        before = self._plan
        yield self._hooks
        self._plan = before if before and len(before) > 1 else None


class PendingHooks(AsyncHooks):
    """Connects in a task that only the next event waits for."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[Hook] = []

    async def connect(self, hook: Hook) -> None:
        self._pending.append(hook)

    async def disconnect(self, hook: Hook) -> None:
        if hook in self._pending:
            self._pending.remove(hook)
        else:
            await super().disconnect(hook)

    async def send(self, event: int) -> list[str]:
        while self._pending:
            await super().connect(self._pending.pop(0))
        return await super().send(event)


class RefusingHooks(AsyncHooks):
    async def connect(self, hook: Hook) -> None:
        if self._plan is not None and len(self._plan) == 2:
            raise RuntimeError("hooks are running")
        await super().connect(hook)


class LostLockHooks(PerEventHooks):
    async def connect(self, hook: Hook) -> None:
        if self._lock.locked():
            raise RuntimeError("busy")
        if len(self._hooks) == 2:
            await self._lock.acquire()
        await AsyncHooks.connect(self, hook)

    async def send(self, event: int) -> list[str]:
        return [await hook(event) for hook in self._sorted()]


def connected(hook: Hook) -> Callable[[Any], Any]:
    async def connect(hooks: Any) -> Callable[[], Any]:
        await hooks.connect(hook)
        return lambda: hooks.disconnect(hook)

    return connect


async def send(hooks: Any) -> list[str]:
    return await hooks.send(7)  # type: ignore[no-any-return]  # answers


HOOKS = Interface(
    "async hooks",
    (
        Registration("await hooks.connect(log)", connected(log)),
        Registration("await hooks.connect(trace)", connected(trace)),
        Registration("await hooks.connect(alarm)", connected(alarm)),
    ),
    (("await hooks.send(7)", send),),
    lambda hooks: f"{hooks.size()} hooks",
)


def specimens() -> Iterator[Specimen]:
    """Yield all registries of asynchronous hooks."""
    yield from specimens_of(
        HOOKS,
        (
            AsyncHooks,
            GatheringHooks,
            PerEventHooks,
            LifespanHooks,
            QueueHooks,
            ContextHooks,
        ),
        {
            StalePlanHooks: "the plan survives that a hook is disconnected",
            CompletionOrderHooks: "answers are listed in the order of completion",
            OneShotHooks: "a hook is left out of the plan by an event",
            StartedHooks: "what is connected after the start is not started",
            PoppedHooks: "disconnecting removes the newest hook",
            IteratingHooks: "the list is changed while it is gone through",
            BatchedHooks: "a plan of two hooks outlives a change",
            PendingHooks: "a hook is only counted after an event",
            RefusingHooks: "a hook is refused after an event with two others",
            LostLockHooks: "the lock of the third hook is never released",
        },
    )
