"""Execution of a step: call its function, and turn the result into the undo handle.

A step's function is called with the registry. It returns one of these:

- a generator, which runs to its `yield`; undo runs the rest (synchronous or not);
- a coroutine, which is awaited; its result is used instead;
- an object with `close()` (or `aclose()`), which is the handle itself;
- a context manager (synchronous or not), which is entered; undo exits it;
- a function without parameters, which undoes the step.

With `undo=` the result is passed to that function if it requires one; with `undo=None`
it is dropped, as the statement `registry.add(...)` drops it.

Each fresh system has a `contextvars.Context` and, from the first coroutine on, an event
loop. Both end with the system, so a reset discards the context variables that a step
set, and every coroutine of a system sees the variables that the others set, as under
`asyncio.Runner`.

Rules:
- an object with `close()` is live already, even if it could be entered, too;
- any other result is refused by name (`NotAScenario`): otherwise a step with a broken
  undo would be "proven" although it was never undone;
- a handle holds only objects that the scenario returned: it is part of the state;
- `call` awaits nothing: a context cannot be entered twice;
- a task that is still pending when an operation ends is state that changes by itself;
  it is reported (`pending`), never awaited;
- `close` ends the loop as `asyncio.run` does: tasks are cancelled, generators closed;
- a registry may hold the loop: its state then includes only the parts of the loop that
  a registry can have set (`_changes`); no object of the harness is reachable from it;
- the first coroutine imports `asyncio`: most registries do not need it.
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
from decimal import getcontext, setcontext
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
        # Now, because reading the state of the thread would create it at some later
        # moment, and a registry may hold a copy of this context.
        self._context.run(_set_own_decimal_context)
        # Entered while `asyncio` is imported, which is not part of any operation.
        self._importing = importing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closer: _Closer | None = None

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with the context variables of the system."""
        return self._context.run(function, *args, **kwargs)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Run the loop until the awaitable is done; return its result.

        The error of an awaitable is not caught.

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
            self._closer = _Closer(self._loop)
        own = iscoroutine(awaitable)
        coroutine: Coroutine[Any, Any, T] = awaitable if own else _wrap(awaitable)  # type: ignore[assignment]  # it is a coroutine
        task = self._loop.create_task(coroutine, context=self._context)
        return self._loop.run_until_complete(task)

    @property
    def changed(self) -> Any:
        """Return the loop if its settings or attributes changed since its creation."""
        loop = self._loop
        return loop if loop is not None and _changes(loop) else None

    @property
    def pending(self) -> tuple[Any, ...]:
        """Return the coroutines of the unfinished tasks, oldest name first."""
        if self._loop is None:
            return ()
        import asyncio

        tasks = [task for task in asyncio.all_tasks(self._loop) if not task.done()]
        tasks.sort(key=lambda task: (len(task.get_name()), task.get_name()))
        return tuple(task.get_coro() for task in tasks)

    @property
    def scheduled(self) -> int:
        """Return the number of scheduled callbacks and watched files of the loop."""
        waiting = [
            *getattr(self._loop, "_ready", ()),
            *getattr(self._loop, "_scheduled", ()),
        ]
        selector = getattr(self._loop, "_selector", None)
        # The loop itself registers one file, by which other threads wake it.
        files = 0 if selector is None else len(selector.get_map()) - 1
        return sum(not handle.cancelled() for handle in waiting) + files

    @property
    def failures(self) -> tuple[str, ...]:
        """Return the texts of errors that were not awaited, or reported to the loop."""
        return () if self._loop is None else tuple(_BASELINES[self._loop].failures)

    def close(self) -> None:
        """Cancel the pending tasks and close the loop."""
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            return
        import asyncio

        try:
            # Dropped generators become tasks first.
            loop.run_until_complete(asyncio.sleep(0))
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
            self._closer = None


class _Closer:
    """Closes the loop of a system that was not closed.

    It is no finalizer, which would be seen at exit.  Systems without a loop have none:
    an interrupt that arrives in `__del__` is only printed.
    """

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self._loop = loop

    def __del__(self) -> None:
        self._loop.close()


def _set_own_decimal_context() -> None:
    """Copy the decimal context of the caller, or create one."""
    setcontext(getcontext().copy())


class NoLoop:
    """Stand-in for the loop of a dispatcher, whose steps cannot be coroutines."""

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function without a context."""
        return function(*args, **kwargs)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Raise `NotAScenario`."""
        if iscoroutine(awaitable):
            awaitable.close()
        raise NotAScenario(
            found="a coroutine among the steps of a dispatcher",
            wanted="create=..., a function that makes a fresh registry",
        )


_CURRENT: ContextVar[ScenarioLoop | NoLoop] = ContextVar("everyorder_loop")


def current_loop() -> ScenarioLoop | NoLoop:
    """Return the loop in which a step that is prepared now will run."""
    return _CURRENT.get(NoLoop())


@contextmanager
def as_current_loop(loop: ScenarioLoop) -> Iterator[None]:
    """Context: steps that are prepared inside run in `loop`."""
    token = _CURRENT.set(loop)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@dataclass(frozen=True)
class _Baseline:
    """The initial state of a loop, for later comparison.

    `failures` are texts of errors that were not awaited; `names` are those of the
    loop's attributes, and `settings` are the initial values of `_SETTINGS`.
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
    """Create asyncio's state of the process before states are compared."""
    events = sys.modules.get("asyncio.events")
    # Python 3.14 warns when the public name is accessed.
    names = ("_get_event_loop_policy", "get_event_loop_policy")
    for name in names:
        policy = getattr(events, name, None)
        if policy is not None:
            policy()
            return


def _new_loop() -> "asyncio.AbstractEventLoop":
    """Return a loop of the platform's kind, which `harness.state` can read."""
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


# Kinds of errors, by the key under which asyncio passes their source to the handler.
_SOURCES = {
    "task": "a task that is not awaited failed",
    "future": "a task that is not awaited failed",
    "handle": "a callback of the event loop failed",
    "asyncgen": "an asynchronous generator failed when it was closed",
}
_REPORTED = "an error was reported to the event loop"


def _record_failure(loop: "asyncio.AbstractEventLoop", context: dict[str, Any]) -> None:
    error = context.get("exception")
    text = context["message"] if error is None else f"{type(error).__name__}: {error}"
    what = next((what for key, what in _SOURCES.items() if key in context), _REPORTED)
    _BASELINES[loop].failures.append(f"{what}: {text}")


def _attributes(loop: Any) -> dict[str, Any]:
    return getattr(loop, "__dict__", {})


def _settings(loop: Any) -> tuple[Any, ...]:
    return tuple(getattr(loop, name, None) for name in _SETTINGS)


def _changes(loop: Any) -> list[tuple[str, Any]]:
    """Return the settings and attributes of a loop that changed.

    Tasks are part of `ScenarioLoop.pending`.

    Raises:
        Unreadable: the loop was not created by `_new_loop`.
    """
    from everyorder.harness.state.layout import Unreadable

    baseline = _BASELINES.get(loop)
    if baseline is None:
        raise Unreadable
    pairs = zip(_SETTINGS, _settings(loop), baseline.settings, strict=True)
    added = [
        pair for pair in _attributes(loop).items() if pair[0] not in baseline.names
    ]
    return [
        (name, current) for name, current, original in pairs if current is not original
    ] + sorted(added, key=itemgetter(0))


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
        """Undo the step."""


Undo: TypeAlias = Callable[..., Any] | EllipsisType | None

# Generators and their context managers cannot continue after they raised.
_ONCE = "undo=..., a function that can be called again where it refused (may_refuse)"


class UndoHandle:
    """Undoes a step by the `resource` that its function returned; once only.

    Exceptions of the undo are not caught.
    """

    __slots__ = ("__weakref__", "_done", "resource")

    def __init__(self, resource: Any) -> None:
        self.resource = resource
        self._done = False

    def close(self) -> object:
        """Undo the step."""
        if self._done:
            return None
        result = self.end()
        # An awaitable has not ended anything yet, and may refuse.
        self._done = not isawaitable(result)
        return result

    def end(self) -> object:
        """Undo the step; called by the first `close`."""
        return self.resource()


class _Resumed(UndoHandle):
    """A generator that is suspended at its `yield`."""

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
    """An asynchronous generator that is suspended at its `yield`."""

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
    """The handle of a step that stays; it does not keep any object alive."""

    __slots__ = ("__weakref__",)
    resource = None

    def close(self) -> None:
        """Raise `AssertionError`: nothing ends such a step."""
        raise AssertionError("a step with undo=None is never undone")


class Performance:
    """The way in which one step is performed; `text` names the step in messages."""

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
        """Do the step and return its undo handle. Errors of the step are not caught.

        Raises:
            NotAScenario: the returned object cannot undo the step.
        """
        result = loop.call(self.do, target)
        if self.undo is ...:
            return self._handle(loop, target, result)
        result = self._await_result(loop, result)
        if is_unstarted(result):
            discard(result)
            raise NotAScenario(
                found=f"{kind_of(result)}, returned by {self.text!r} with undo=",
                wanted="a function that does the step, or a generator without undo=: "
                "the code after its yield undoes the step",
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
        """Return the undo handle, by the kind of object that the function returned."""
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
                wanted="an undo: undo=..., a function of the registry, "
                "or undo=None if the step stays",
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
        """Refuse a generator if the undo may raise: it could not be undone later."""
        if self.may_refuse:
            discard(result)
            raise NotAScenario(
                found=f"{kind_of(result)}, returned by {self.text!r} with may_refuse",
                wanted=_ONCE,
            )


def _never_yields(text: str) -> NotAScenario:
    return NotAScenario(
        found=f"a generator that does not yield, returned by {text!r}",
        wanted="one yield: the code before it does the step, the rest undoes it",
    )


def _yields_again(text: str) -> NotAScenario:
    return NotAScenario(
        found=f"a generator that yields twice, returned by {text!r}",
        wanted="one yield: the code before it does the step, the rest undoes it",
    )
