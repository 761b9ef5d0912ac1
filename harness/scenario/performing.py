"""Performing a step: from what its function is, or returns, to what ends it.

True only here: the kinds of steps.  A step's function is called with the registry, and
what it returns is

- a generator, which runs to its `yield` and from there on to undo (synchronous or not);
- a coroutine, which is awaited, and its result taken in its place;
- an object with `close()` (or `aclose()`), the handle itself;
- a context manager (synchronous or not), which is entered, and exited to undo;
- a function without parameters, which undoes.

With `undo=` the result goes to that function if it requires one; with `undo=None` it is
dropped, as `registry.add(...)` alone on a line drops it.

Rules:
- an object with `close()` is live already, even if it could be entered, too;
- what is none of these is refused by name (`NotAScenario`): a step that is not undone
  would be "proven" without ever having been;
- a handle holds nothing but what the scenario gave it: it is part of the state.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from inspect import (
    GEN_CREATED,
    getgeneratorstate,
    isasyncgen,
    isawaitable,
    iscoroutine,
    isgenerator,
)
from types import EllipsisType
from typing import Any, Protocol, TypeAlias

from harness.errors import NotAScenario
from harness.scenario.loop import Loop, NoLoop
from harness.scenario.mistakes import check_undo, discard, kind_of, never_ran, required


class Closable(Protocol):
    """What a performed step returns; `close` may return an awaitable."""

    def close(self) -> object:
        """End what the step did."""


Undo: TypeAlias = Callable[..., Any] | EllipsisType | None

# A generator and a context manager of one are over when they raised.
_ONCE = "undo=..., a function that can be called again where it refused (may_refuse)"


class Handle:
    """Ends a step by what the scenario gave for it (`held`); the second time nothing.

    Exceptions of what ends it pass.
    """

    __slots__ = ("__weakref__", "_done", "held")

    def __init__(self, held: Any) -> None:
        self.held = held
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
        """What `close` does the first time."""
        return self.held()


class _Resumed(Handle):
    """A generator that stands at its `yield`."""

    __slots__ = ("text",)

    def __init__(self, held: Generator[Any, Any, Any], text: str) -> None:
        super().__init__(held)
        self.text = text

    def end(self) -> None:
        try:
            next(self.held)
        except StopIteration:
            return
        self.held.close()
        raise _yields_again(self.text)


class _ResumedAsync(Handle):
    """An asynchronous generator that stands at its `yield`."""

    __slots__ = ("text",)

    def __init__(self, held: AsyncGenerator[Any, Any], text: str) -> None:
        super().__init__(held)
        self.text = text

    async def end(self) -> None:
        try:
            await anext(self.held)
        except StopAsyncIteration:
            return
        await self.held.aclose()
        raise _yields_again(self.text)


class _Entered(Handle):
    """A context manager that was entered."""

    __slots__ = ()

    def end(self) -> object:
        return type(self.held).__exit__(self.held, None, None, None)


class _EnteredAsync(Handle):
    """An asynchronous context manager that was entered."""

    __slots__ = ()

    def end(self) -> object:
        return type(self.held).__aexit__(self.held, None, None, None)


class _ClosedAsync(Handle):
    """An object with `aclose()`."""

    __slots__ = ()

    def end(self) -> object:
        return self.held.aclose()


class _Second(Handle):
    """A step with a second function to undo it; holds what the first returned."""

    __slots__ = ("_arguments", "_undo")

    def __init__(self, held: Any, undo: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(held)
        self._undo = undo
        self._arguments = arguments

    def end(self) -> object:
        return self._undo(*self._arguments)


class Lasting:
    """The handle of a step that stays; it keeps nothing alive."""

    __slots__ = ("__weakref__",)
    held = None

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
        self._takes_result = callable(undo) and required(undo, 2) in (2, None)
        # What returned functions were judged by: their code.
        self._judged: set[object] = set()

    def perform(self, loop: Loop | NoLoop, target: Any) -> Closable:
        """Do the step; what ends it.  Raises what the step raises.

        Raises:
            NotAScenario: what was returned does not undo.
        """
        result = loop.call(self.do, target)
        if self.undo is ...:
            return self._handle(loop, target, result)
        result = self._awaited(loop, result)
        if never_ran(result):
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

    def _awaited(self, loop: Loop | NoLoop, result: Any) -> Any:
        return loop.wait(result) if iscoroutine(result) else result

    def _handle(self, loop: Loop | NoLoop, target: Any, result: Any) -> Closable:
        """What ends the step, by what its function returned."""
        result = self._awaited(loop, result)
        kind = type(result)
        if never_ran(result):
            self._refuse_once(result)
        if isgenerator(result) and getgeneratorstate(result) == GEN_CREATED:
            return self._resumed(loop, result)
        if isasyncgen(result):
            return self._resumed_async(loop, result)
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
            return _Entered(result)
        code = getattr(result, "__code__", None)
        if code is None or code not in self._judged:
            check_undo(self.text, self.do, target, result)
            self._judged.add(code)
        return Handle(result)

    def _resumed(self, loop: Loop | NoLoop, made: Generator[Any, Any, Any]) -> Handle:
        try:
            loop.call(next, made)
        except StopIteration:
            raise _never_yields(self.text) from None
        return _Resumed(made, self.text)

    def _resumed_async(
        self, loop: Loop | NoLoop, made: AsyncGenerator[Any, Any]
    ) -> Handle:
        try:
            loop.wait(anext(made))
        except StopAsyncIteration:
            raise _never_yields(self.text) from None
        return _ResumedAsync(made, self.text)

    def _refuse_once(self, result: Any) -> None:
        """What ran to its end, by an error, cannot undo another time."""
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
