"""The event loop of one fresh system, and its context variables.

True only here: where the scenario's own functions run.  Each fresh system has a
`contextvars.Context` and, from the first coroutine on, an event loop; both end with
it, so what a step sets in a context variable is gone after a reset, and every
coroutine of a system sees what the others set, as under `asyncio.Runner`.

Rules:
- nothing is awaited inside of `call`: a context cannot be entered twice;
- what is still pending when an operation ends is state that goes on by itself: it is
  told (`pending`), never waited for;
- `close` ends as `asyncio.run` does: tasks are cancelled, generators closed;
- a registry may hold the loop: of that only what a registry can have set is its state
  (`_read`), and nothing of the harness hangs on it;
- `asyncio` is imported by the first coroutine: most registries have none.
"""

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from importlib import import_module
from inspect import iscoroutine
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from harness.errors import NotAScenario

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
P = ParamSpec("P")


class Loop:
    """Runs functions and awaitables of one fresh system."""

    def __init__(
        self, importing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._context = copy_context()
        # Entered while `asyncio` is imported, which is nobody's operation.
        self._importing = importing
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function where the context variables of the system are seen."""
        return self._context.run(function, *args, **kwargs)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Run the loop until that is done; what it returns, or raises.

        Raises:
            NotAScenario: a loop is running in this thread already.
        """
        if "asyncio" not in sys.modules:
            with self._importing():
                import_module("asyncio")
                make_ready()
        import asyncio

        if asyncio._get_running_loop() is not None:
            if iscoroutine(awaitable):
                awaitable.close()
            raise NotAScenario(
                found="a coroutine, while an event loop runs in this thread",
                wanted="explore() to be called outside of coroutines",
            )
        if self._loop is None:
            self._loop = _made()
        own = iscoroutine(awaitable)
        coroutine: Coroutine[Any, Any, T] = awaitable if own else _awaited(awaitable)  # type: ignore[assignment]  # it is a coroutine
        task = self._loop.create_task(coroutine, context=self._context)
        return self._loop.run_until_complete(task)

    @property
    def changed(self) -> Any:
        """The loop, if something of it was set that is not so when it is made."""
        loop = self._loop
        return loop if loop is not None and _read(loop) else None

    @property
    def pending(self) -> tuple[Any, ...]:
        """The coroutines of the tasks that are not done, oldest name first."""
        if self._loop is None:
            return ()
        import asyncio

        tasks = [task for task in asyncio.all_tasks(self._loop) if not task.done()]
        tasks.sort(key=lambda task: (len(task.get_name()), task.get_name()))
        return tuple(task.get_coro() for task in tasks)

    @property
    def scheduled(self) -> int:
        """How many callbacks the loop has yet to call, and files it watches."""
        waiting = [
            *getattr(self._loop, "_ready", ()),
            *getattr(self._loop, "_scheduled", ()),
        ]
        selector = getattr(self._loop, "_selector", None)
        # One is the loop's own, by which other threads wake it.
        files = 0 if selector is None else len(selector.get_map()) - 1
        return sum(not handle.cancelled() for handle in waiting) + files

    @property
    def failures(self) -> tuple[str, ...]:
        """What failed unawaited, or was reported to the loop, as texts."""
        return () if self._loop is None else tuple(_OURS[self._loop].failures)

    def close(self) -> None:
        """End whatever is pending, and the loop."""
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            return
        import asyncio

        try:
            # Generators that were dropped become tasks first.
            loop.run_until_complete(asyncio.sleep(0))
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    def __del__(self) -> None:
        # Of a system that nobody closed; no finalizer, which would be seen at exit.
        if self._loop is not None:
            self._loop.close()


class NoLoop:
    """Where no system was prepared for coroutines: functions are just called."""

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function."""
        return function(*args, **kwargs)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Refuse; raises `NotAScenario`."""
        if iscoroutine(awaitable):
            awaitable.close()
        raise NotAScenario(
            found="a coroutine among the steps of a dispatcher",
            wanted="create=..., a function that makes a fresh registry",
        )


_CURRENT: ContextVar[Loop | NoLoop] = ContextVar("everyorder_loop")


def current_loop() -> Loop | NoLoop:
    """Where a step that is prepared now will run."""
    return _CURRENT.get(NoLoop())


@contextmanager
def preparing(loop: Loop) -> Iterator[None]:
    """Context: steps that are prepared run in `loop`."""
    token = _CURRENT.set(loop)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@dataclass(frozen=True)
class _Ours:
    """What is known of a loop that was made here.

    `failures` are texts of what failed where nobody awaited it; `names` are those of
    the loop's own attributes, and `settings` are as they were when it was made.
    """

    failures: list[str]
    names: frozenset[str]
    settings: tuple[Any, ...]


_OURS: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Ours]" = WeakKeyDictionary()
_SETTINGS = (
    "_exception_handler",
    "_task_factory",
    "_default_executor",
    "_debug",
    "_closed",
    "slow_callback_duration",
)


def make_ready() -> None:
    """Have asyncio make what it makes once in a process, before anybody looks."""
    events = sys.modules.get("asyncio.events")
    # From 3.14 on, asking for it by its public name warns.
    names = ("_get_event_loop_policy", "get_event_loop_policy")
    for name in names:
        policy = getattr(events, name, None)
        if policy is not None:
            policy()
            return


def _made() -> "asyncio.AbstractEventLoop":
    """A loop of the platform's kind, which a canonical form can read."""
    import asyncio

    from harness.heap.accessors import know_exactly
    from harness.heap.calls import unheard
    from harness.heap.known import Known

    with unheard():
        loop = asyncio.new_event_loop()
    know_exactly(type(loop), Known(parts=_read, alone=True))
    loop.set_exception_handler(_failed)
    _OURS[loop] = _Ours([], frozenset(_attributes(loop)), _settings(loop))
    return loop


# What failed, by the name under which asyncio hands it to the handler of errors.
_SAID = {
    "task": "a task that nobody awaits failed",
    "future": "a task that nobody awaits failed",
    "handle": "a callback of the event loop failed",
    "asyncgen": "an asynchronous generator failed when it was closed",
}
_REPORTED = "the event loop was told of an error"


def _failed(loop: "asyncio.AbstractEventLoop", told: dict[str, Any]) -> None:
    error = told.get("exception")
    text = told["message"] if error is None else f"{type(error).__name__}: {error}"
    what = next((what for key, what in _SAID.items() if key in told), _REPORTED)
    _OURS[loop].failures.append(f"{what}: {text}")


def _attributes(loop: Any) -> dict[str, Any]:
    return getattr(loop, "__dict__", {})


def _settings(loop: Any) -> tuple[Any, ...]:
    return tuple(getattr(loop, name, None) for name in _SETTINGS)


def _read(loop: Any) -> list[tuple[str, Any]]:
    """What somebody set of a loop; tasks and callbacks are told apart.

    Raises `Unreadable` for a loop of somebody else.
    """
    from harness.heap.known import Unreadable

    ours = _OURS.get(loop)
    if ours is None:
        raise Unreadable
    pairs = zip(_SETTINGS, _settings(loop), ours.settings, strict=True)
    added = [pair for pair in _attributes(loop).items() if pair[0] not in ours.names]
    return [(name, now) for name, now, made in pairs if now is not made] + sorted(
        added, key=itemgetter(0)
    )


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _cancel_all(loop: "asyncio.AbstractEventLoop") -> None:
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
