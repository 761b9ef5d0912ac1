"""Execution of a step: where its function runs, and how its result becomes the undo.

A step's function is called with the registry, and what it returns is

- a generator, which runs to its `yield` and from there on to undo (synchronous or not);
- a coroutine, which is awaited, and its result taken in its place;
- an object with `close()` (or `aclose()`), the handle itself;
- a context manager (synchronous or not), which is entered, and exited to undo;
- a function without parameters, which undoes.

With `undo=` the result goes to that function if it requires one; with `undo=None` it is
dropped, as `registry.add(...)` alone on a line drops it.

Each fresh system has a `contextvars.Context` and, from the first coroutine on, an event
loop; both end with it, so what a step sets in a context variable is gone after a reset,
and every coroutine of a system sees what the others set, as under `asyncio.Runner`.

Rules:
- an object with `close()` is live already, even if it could be entered, too;
- what is none of these is refused by name (`NotAScenario`): a step that is not undone
  would be "proven" without ever having been;
- a handle holds nothing but what the scenario gave it: it is part of the state;
- nothing is awaited inside of `call`: a context cannot be entered twice;
- what is still pending when an operation ends is state that goes on by itself: it is
  told (`pending`), never waited for;
- `close` ends as `asyncio.run` does: tasks are cancelled, generators closed;
- a registry may hold the loop: of that only what a registry can have set is its state
  (`_changes`), and nothing of the harness hangs on it;
- `asyncio` is imported by the first coroutine: most registries have none.
"""

import sys
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from importlib import import_module
from inspect import (
    GEN_CREATED,
    getgeneratorstate,
    isasyncgen,
    isawaitable,
    iscoroutine,
    isgenerator,
)
from operator import itemgetter
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario.mistakes import (
    check_undo,
    count_required,
    discard,
    is_unstarted,
    kind_of,
)

if TYPE_CHECKING:
    import asyncio


T = TypeVar("T")
P = ParamSpec("P")


class ScenarioLoop:
    """Runs functions and awaitables of one fresh system."""

    def __init__(
        self, importing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._context = copy_context()
        # Entered while `asyncio` is imported, which belongs to no operation.
        self._importing = importing
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function where the context variables of the system are seen."""
        return self._context.run(function, *args, **kwargs)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Run the loop until the awaitable is done; its result, or its error.

        Raises:
            NotAScenario: a loop is running in this thread already.
        """
        if "asyncio" not in sys.modules:
            with self._importing():
                import_module("asyncio")
                initialize_asyncio()
        import asyncio

        if asyncio._get_running_loop() is not None:
            if iscoroutine(awaitable):
                awaitable.close()
            raise NotAScenario(
                found="a coroutine, while an event loop runs in this thread",
                wanted="explore() to be called outside of coroutines",
            )
        if self._loop is None:
            self._loop = _new_loop()
        own = iscoroutine(awaitable)
        coroutine: Coroutine[Any, Any, T] = awaitable if own else _wrap(awaitable)  # type: ignore[assignment]  # it is a coroutine
        task = self._loop.create_task(coroutine, context=self._context)
        return self._loop.run_until_complete(task)

    @property
    def changed(self) -> Any:
        """The loop, if a setting or attribute of it differs from those of a new one."""
        loop = self._loop
        return loop if loop is not None and _changes(loop) else None

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
        """Errors that nobody awaited, or that the loop was told of, as texts."""
        return () if self._loop is None else tuple(_BASELINES[self._loop].failures)

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
    """Stands for the loop of a dispatcher, whose steps are no coroutines."""

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


_CURRENT: ContextVar[ScenarioLoop | NoLoop] = ContextVar("everyorder_loop")


def current_loop() -> ScenarioLoop | NoLoop:
    """The loop in which a step that is prepared now will run."""
    return _CURRENT.get(NoLoop())


@contextmanager
def as_current_loop(loop: ScenarioLoop) -> Iterator[None]:
    """Context: steps that are prepared run in `loop`."""
    token = _CURRENT.set(loop)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@dataclass(frozen=True)
class _Baseline:
    """A new loop, to compare it with later.

    `failures` are texts of errors that nobody awaited; `names` are those of the loop's
    own attributes, and `settings` are as they were when it was made.
    """

    failures: list[str]
    names: frozenset[str]
    settings: tuple[Any, ...]


_BASELINES: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Baseline]" = (
    WeakKeyDictionary()
)
_SETTINGS = (
    "_exception_handler",
    "_task_factory",
    "_default_executor",
    "_debug",
    "_closed",
    "slow_callback_duration",
)


def initialize_asyncio() -> None:
    """Let asyncio create its state of the process before states are compared."""
    events = sys.modules.get("asyncio.events")
    # From 3.14 on, asking for it by its public name warns.
    names = ("_get_event_loop_policy", "get_event_loop_policy")
    for name in names:
        policy = getattr(events, name, None)
        if policy is not None:
            policy()
            return


def _new_loop() -> "asyncio.AbstractEventLoop":
    """A loop of the platform's kind, which `harness.state` can read."""
    import asyncio

    from everyorder.harness.state.accessors import set_exact_accessor
    from everyorder.harness.state.c_call_audit import pause_call_audit
    from everyorder.harness.state.layout import Accessor

    with pause_call_audit():
        loop = asyncio.new_event_loop()
    set_exact_accessor(type(loop), Accessor(parts=_changes, ignores_attributes=True))
    loop.set_exception_handler(_record_failure)
    _BASELINES[loop] = _Baseline([], frozenset(_attributes(loop)), _settings(loop))
    return loop


# Sources of errors, by the name under which asyncio passes them to the handler.
_SOURCES = {
    "task": "a task that nobody awaits failed",
    "future": "a task that nobody awaits failed",
    "handle": "a callback of the event loop failed",
    "asyncgen": "an asynchronous generator failed when it was closed",
}
_REPORTED = "the event loop was told of an error"


def _record_failure(loop: "asyncio.AbstractEventLoop", told: dict[str, Any]) -> None:
    error = told.get("exception")
    text = told["message"] if error is None else f"{type(error).__name__}: {error}"
    what = next((what for key, what in _SOURCES.items() if key in told), _REPORTED)
    _BASELINES[loop].failures.append(f"{what}: {text}")


def _attributes(loop: Any) -> dict[str, Any]:
    return getattr(loop, "__dict__", {})


def _settings(loop: Any) -> tuple[Any, ...]:
    return tuple(getattr(loop, name, None) for name in _SETTINGS)


def _changes(loop: Any) -> list[tuple[str, Any]]:
    """The settings and attributes of a loop that changed; tasks are `Loop.pending`.

    Raises `Unreadable` for a loop of somebody else.
    """
    from everyorder.harness.state.layout import Unreadable

    baseline = _BASELINES.get(loop)
    if baseline is None:
        raise Unreadable
    pairs = zip(_SETTINGS, _settings(loop), baseline.settings, strict=True)
    added = [
        pair for pair in _attributes(loop).items() if pair[0] not in baseline.names
    ]
    return [(name, now) for name, now, made in pairs if now is not made] + sorted(
        added, key=itemgetter(0)
    )


async def _wrap(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _cancel_all(loop: "asyncio.AbstractEventLoop") -> None:
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


class Closable(Protocol):
    """The undo handle of a step; `close` may return an awaitable."""

    def close(self) -> object:
        """End what the step did."""


Undo: TypeAlias = Callable[..., Any] | EllipsisType | None

# A generator and a context manager of one are over when they raised.
_ONCE = "undo=..., a function that can be called again where it refused (may_refuse)"


class UndoHandle:
    """Undoes a step by the `resource` that its function returned; once only.

    Exceptions of the undo pass.
    """

    __slots__ = ("__weakref__", "_done", "resource")

    def __init__(self, resource: Any) -> None:
        self.resource = resource
        self._done = False

    def close(self) -> object:
        """End what the step did."""
        if self._done:
            return None
        result = self.end()
        # An awaitable has ended nothing yet, and may refuse.
        self._done = not isawaitable(result)
        return result

    def end(self) -> object:
        """Undo the step; called by the first `close`."""
        return self.resource()


class _Resumed(UndoHandle):
    """A generator that stands at its `yield`."""

    __slots__ = ("text",)

    def __init__(self, resource: Generator[Any, Any, Any], text: str) -> None:
        super().__init__(resource)
        self.text = text

    def end(self) -> None:
        try:
            next(self.resource)
        except StopIteration:
            return
        self.resource.close()
        raise _yields_again(self.text)


class _ResumedAsync(UndoHandle):
    """An asynchronous generator that stands at its `yield`."""

    __slots__ = ("text",)

    def __init__(self, resource: AsyncGenerator[Any, Any], text: str) -> None:
        super().__init__(resource)
        self.text = text

    async def end(self) -> None:
        try:
            await anext(self.resource)
        except StopAsyncIteration:
            return
        await self.resource.aclose()
        raise _yields_again(self.text)


class _EnteredContext(UndoHandle):
    """A context manager that was entered."""

    __slots__ = ()

    def end(self) -> object:
        return type(self.resource).__exit__(self.resource, None, None, None)


class _EnteredAsync(UndoHandle):
    """An asynchronous context manager that was entered."""

    __slots__ = ()

    def end(self) -> object:
        return type(self.resource).__aexit__(self.resource, None, None, None)


class _ClosedAsync(UndoHandle):
    """An object with `aclose()`."""

    __slots__ = ()

    def end(self) -> object:
        return self.resource.aclose()


class _Second(UndoHandle):
    """A step with a function to undo it; holds the result of the first function."""

    __slots__ = ("_arguments", "_undo")

    def __init__(
        self, resource: Any, undo: Callable[..., Any], *arguments: Any
    ) -> None:
        super().__init__(resource)
        self._undo = undo
        self._arguments = arguments

    def end(self) -> object:
        return self._undo(*self._arguments)


class Lasting:
    """The handle of a step that stays; it keeps nothing alive."""

    __slots__ = ("__weakref__",)
    resource = None

    def close(self) -> None:
        """Refuse: nothing ends such a step."""
        raise AssertionError("a step with undo=None is never undone")


class Performance:
    """How one step is performed, on whatever registry; `text` names it in messages."""

    def __init__(
        self, text: str, do: Callable[[Any], Any], undo: Undo, *, may_refuse: bool
    ) -> None:
        self.text = text
        self.do = do
        self.undo = undo
        self.may_refuse = may_refuse
        self._takes_result = callable(undo) and count_required(undo, 2) in (2, None)
        # The code of returned functions that were checked.
        self._checked: set[object] = set()

    def perform(self, loop: ScenarioLoop | NoLoop, target: Any) -> Closable:
        """Do the step; its undo handle.  Errors of the step pass.

        Raises:
            NotAScenario: what was returned does not undo.
        """
        result = loop.call(self.do, target)
        if self.undo is ...:
            return self._handle(loop, target, result)
        result = self._await_result(loop, result)
        if is_unstarted(result):
            discard(result)
            keeps = "where it stays" if self.undo is None else "of its own"
            raise NotAScenario(
                found=f"{kind_of(result)}, returned by {self.text!r} with undo=",
                wanted=f"a function that does the step, or no undo= {keeps}: what "
                "follows the yield undoes",
            )
        if self.undo is None:
            return Lasting()
        arguments = (target, result) if self._takes_result else (target,)
        return _Second(result, self.undo, *arguments)

    def _await_result(self, loop: ScenarioLoop | NoLoop, result: Any) -> Any:
        return loop.wait(result) if iscoroutine(result) else result

    def _handle(
        self, loop: ScenarioLoop | NoLoop, target: Any, result: Any
    ) -> Closable:
        """The undo handle, by the kind of object that the step's function returned."""
        result = self._await_result(loop, result)
        kind = type(result)
        if is_unstarted(result):
            self._refuse_once(result)
        if isgenerator(result) and getgeneratorstate(result) == GEN_CREATED:
            return self._start(loop, result)
        if isasyncgen(result):
            return self._start_async(loop, result)
        if result is target:
            raise NotAScenario(
                found=f"the registry itself, returned by {self.text!r}",
                wanted="what undoes the step: undo=..., a function of the registry, "
                "or undo=None where it stays",
            )
        if callable(getattr(result, "close", None)) and not isinstance(result, type):
            return result  # type: ignore[no-any-return]  # it has close()
        if hasattr(kind, "__aenter__") and hasattr(kind, "__aexit__"):
            loop.wait(kind.__aenter__(result))
            return _EnteredAsync(result)
        if callable(getattr(kind, "aclose", None)):
            return _ClosedAsync(result)
        if hasattr(kind, "__enter__") and hasattr(kind, "__exit__"):
            loop.call(kind.__enter__, result)
            return _EnteredContext(result)
        code = getattr(result, "__code__", None)
        if code is None or code not in self._checked:
            check_undo(self.text, self.do, target, result)
            self._checked.add(code)
        return UndoHandle(result)

    def _start(
        self, loop: ScenarioLoop | NoLoop, generator: Generator[Any, Any, Any]
    ) -> UndoHandle:
        try:
            loop.call(next, generator)
        except StopIteration:
            raise _never_yields(self.text) from None
        return _Resumed(generator, self.text)

    def _start_async(
        self, loop: ScenarioLoop | NoLoop, generator: AsyncGenerator[Any, Any]
    ) -> UndoHandle:
        try:
            loop.wait(anext(generator))
        except StopAsyncIteration:
            raise _never_yields(self.text) from None
        return _ResumedAsync(generator, self.text)

    def _refuse_once(self, result: Any) -> None:
        """Refuse a generator where the undo may raise: it could not be undone later."""
        if self.may_refuse:
            discard(result)
            raise NotAScenario(
                found=f"{kind_of(result)}, returned by {self.text!r} with may_refuse",
                wanted=_ONCE,
            )


def _never_yields(text: str) -> NotAScenario:
    return NotAScenario(
        found=f"a generator that does not yield, returned by {text!r}",
        wanted="one yield: what stands before it does the step, what follows undoes it",
    )


def _yields_again(text: str) -> NotAScenario:
    return NotAScenario(
        found=f"a generator that yields twice, returned by {text!r}",
        wanted="one yield: what stands before it does the step, what follows undoes it",
    )
