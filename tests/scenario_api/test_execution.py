"""Steps of every kind, done and undone; what is none is refused by its name."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps
from inspect import isawaitable
from typing import Any

import pytest

from everyorder.harness.base.errors import NotAScenario
from everyorder.harness.scenario import Step, step, steps
from everyorder.harness.scenario.execution import (
    ScenarioLoop,
    UndoHandle,
    as_current_loop,
)


class Names:
    """A registry with as many ways in as there are kinds of steps."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.functions: dict[str, Callable[..., Any]] = {}

    def add(self, name: str) -> None:
        self.names.append(name)

    def remove(self, name: str) -> None:
        self.names.remove(name)

    @contextlib.contextmanager
    def active(self, name: str) -> Iterator[None]:
        self.add(name)
        yield
        self.remove(name)

    def register(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.functions[function.__name__] = function
        return function

    def fluent(self, name: str) -> "Names":
        self.add(name)
        return self

    def close(self) -> None:
        self.names.clear()


def returns_a_function(to: Names) -> Any:
    to.add("a")
    return partial(to.remove, "a")


def yields(to: Names) -> Iterator[None]:
    to.add("a")
    yield
    to.remove("a")


def is_a_context(to: Names) -> Any:
    return to.active("a")


class Entered:
    """A context manager by hand."""

    def __init__(self, to: Names) -> None:
        self.to = to

    def __enter__(self) -> str:
        self.to.add("a")
        return "a"

    def __exit__(self, *_: object) -> None:
        self.to.remove("a")


async def awaits(to: Names) -> Any:
    to.add("a")

    async def undo() -> None:
        to.remove("a")

    return undo


async def awaits_and_returns_a_function(to: Names) -> Any:
    to.add("a")
    return lambda: to.remove("a")


async def yields_later(to: Names) -> AsyncIterator[None]:
    to.add("a")
    yield
    to.remove("a")


class EnteredLater:
    """An asynchronous context manager by hand."""

    def __init__(self, to: Names) -> None:
        self.to = to

    async def __aenter__(self) -> None:
        self.to.add("a")

    async def __aexit__(self, *_: object) -> None:
        self.to.remove("a")


class ClosedLater:
    """What asynchronous libraries hand out."""

    def __init__(self, to: Names) -> None:
        to.add("a")
        self.to = to

    async def aclose(self) -> None:
        self.to.remove("a")


async def adds(to: Names) -> str:
    to.add("a")
    return "a"


async def removes(to: Names, name: str) -> None:
    to.remove(name)


@pytest.fixture
def loop() -> Iterator[ScenarioLoop]:
    made = ScenarioLoop()
    yield made
    made.close()


def perform(made: Step, names: Names, loop: ScenarioLoop) -> Any:
    with as_current_loop(loop):
        return made.prepare(names, "step 1")()


def end(handle: Any, loop: ScenarioLoop) -> None:
    result = loop.call(handle.close)
    if isawaitable(result):
        loop.wait(result)


KINDS: dict[str, Step] = {
    "returns a function": step("a", returns_a_function),
    "generator function": step("a", yields),
    "returns a generator": step("a", lambda to: yields(to)),
    "returns a context manager": step("a", is_a_context),
    "class of context managers": step("a", Entered),
    "coroutine function, asynchronous undo": step("a", awaits),
    "coroutine function": step("a", awaits_and_returns_a_function),
    "returns a coroutine": step("a", lambda to: awaits(to)),
    "asynchronous generator function": step("a", yields_later),
    "returns an asynchronous generator": step("a", lambda to: yields_later(to)),
    "asynchronous context manager": step("a", EnteredLater),
    "object with aclose()": step("a", ClosedLater),
    "asynchronous with an undo": step("a", adds, undo=removes),
    "context manager function of contextlib": step(
        "a", contextlib.contextmanager(yields)
    ),
    "asynchronous context manager of contextlib": step(
        "a", contextlib.asynccontextmanager(yields_later)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_every_kind_runs_and_is_undone(kind: str, loop: ScenarioLoop) -> None:
    """A generator or a coroutine was its own handle, and never ran."""
    names = Names()
    for _ in range(2):
        handle = perform(KINDS[kind], names, loop)
        assert names.names == ["a"]
        end(handle, loop)
        assert names.names == []


@pytest.mark.parametrize(
    ("undo", "arguments"),
    [
        (lambda names: [names], ["registry"]),
        (lambda names, result: [names, result], ["registry", "result"]),
        (lambda names, result, more=1: [names, result], ["registry", "result"]),
        # A loop binds its variable by a default.
        (lambda names, key="own": [names, key], ["registry", "own"]),
        (lambda names, *, key="own": [names, key], ["registry", "own"]),
        (lambda names="own": [names], ["registry"]),
        (lambda *both: [*both], ["registry", "result"]),
        (lambda names, *rest: [names, *rest], ["registry", "result"]),
        (lambda names, key="own", *rest: [names, key, *rest], ["registry", "own"]),
    ],
)
def test_an_undo_gets_the_result_if_it_requires_it(
    undo: Any, arguments: list[str], loop: ScenarioLoop
) -> None:
    one = step("a", lambda names: "result", undo=undo)
    handle = one.prepare("registry", "step 1")()
    assert handle.close() == arguments


@pytest.mark.parametrize(
    ("undo", "arguments"),
    [
        (lambda names, key: [names, key], ["registry", "a"]),
        (lambda names, key, result: [names, key, result], ["registry", "a", "result"]),
        (lambda names, key, how="own": [names, key, how], ["registry", "a", "own"]),
        (lambda names, key="own": [names, key], ["registry", "a"]),
        (lambda *all_: [*all_], ["registry", "a", "result"]),
    ],
)
def test_an_undo_of_several_steps_gets_the_result_if_it_requires_it(
    undo: Any, arguments: list[str]
) -> None:
    (one,) = steps("add", "a", lambda names, key: "result", undo=undo)
    assert one.prepare("registry", "step 1")().close() == arguments


def test_an_object_with_close_is_live_even_if_it_could_be_entered(
    loop: ScenarioLoop,
) -> None:
    names = Names()

    class Live(Entered):
        def close(self) -> None:
            self.to.remove("live")

    def live(to: Names) -> Live:
        to.add("live")
        return Live(to)

    handle = perform(step("live", live), names, loop)
    assert names.names == ["live"]
    end(handle, loop)
    assert names.names == []


def test_a_generator_that_runs_already_is_a_handle(loop: ScenarioLoop) -> None:
    names = Names()

    def started(to: Names) -> Any:
        def run() -> Iterator[None]:
            to.add("a")
            try:
                yield
            finally:
                to.remove("a")

        made = run()
        next(made)
        return made

    handle = perform(step("a", started), names, loop)
    assert names.names == ["a"]
    end(handle, loop)
    assert names.names == []


def test_a_handle_ends_its_step_once(loop: ScenarioLoop) -> None:
    names = Names()
    for kind in ("generator function", "returns a context manager"):
        handle = perform(KINDS[kind], names, loop)
        handle.close()
        handle.close()
        assert names.names == []


def test_a_handle_holds_what_the_scenario_gave(loop: ScenarioLoop) -> None:
    names = Names()
    handle = perform(step("a", Entered), names, loop)
    assert isinstance(handle, UndoHandle)
    assert isinstance(handle.resource, Entered)
    second = perform(step("b", lambda to: "ticket", undo=Names.remove), names, loop)
    assert second.resource == "ticket"


def test_errors_of_steps_pass(loop: ScenarioLoop) -> None:
    def fails(to: Names) -> Iterator[None]:
        if not to.names:
            raise LookupError("taken")
        yield

    async def fails_later(_: Names) -> None:
        raise LookupError("taken")

    for do in (fails, fails_later):
        with pytest.raises(LookupError, match="taken"):
            perform(step("a", do), Names(), loop)


def twice(to: Names) -> Iterator[None]:
    yield
    yield


async def twice_later(to: Names) -> AsyncIterator[None]:
    yield
    yield


def never(to: Names) -> Iterator[None]:
    if to.names:
        yield


async def never_later(to: Names) -> AsyncIterator[None]:
    if to.names:
        yield


ONE_YIELD = "expected one yield: the code before it does the step, the rest undoes it."


def refused(call: Callable[..., object], *arguments: Any) -> str:
    with pytest.raises(NotAScenario) as caught:
        call(*arguments)
    return str(caught.value).removeprefix("a scenario cannot use ")


@pytest.mark.parametrize("do", [twice, twice_later])
def test_a_generator_that_yields_twice(do: Any, loop: ScenarioLoop) -> None:
    handle = perform(step("a", do), Names(), loop)
    assert refused(end, handle, loop) == (
        f"a generator that yields twice, returned by 'a'; {ONE_YIELD}"
    )


@pytest.mark.parametrize("do", [never, never_later])
def test_a_generator_that_does_not_yield(do: Any, loop: ScenarioLoop) -> None:
    assert refused(perform, step("a", do), Names(), loop) == (
        f"a generator that does not yield, returned by 'a'; {ONE_YIELD}"
    )


@pytest.mark.parametrize("undo", [None, Names.remove])
def test_what_would_never_run(undo: Any, loop: ScenarioLoop) -> None:
    wanted = (
        "expected a function that does the step, or a generator without undo=: the "
        "code after its yield undoes the step."
    )
    for do, kind in (
        (lambda to: yields(to), "the generator yields"),
        (is_a_context, "the context manager Names.active"),
        (lambda to: yields_later(to), "the asynchronous generator yields_later"),
    ):
        made = step("a", do, undo=undo)
        assert refused(perform, made, Names(), loop) == (
            f"{kind}, returned by 'a' with undo=; {wanted}"
        )


@pytest.mark.parametrize(
    ("do", "kind"),
    [
        (yields, "the generator yields"),
        (is_a_context, "the context manager Names.active"),
        (yields_later, "the asynchronous generator yields_later"),
    ],
)
def test_what_cannot_refuse_and_be_undone_later(
    do: Any, kind: str, loop: ScenarioLoop
) -> None:
    made = step("a", do, may_refuse=True)
    assert refused(perform, made, Names(), loop) == (
        f"{kind}, returned by 'a' with may_refuse; expected undo=..., a function that "
        "can be called again where it refused (may_refuse)."
    )


def test_an_undo_that_refuses_can_be_called_again(loop: ScenarioLoop) -> None:
    names = Names()
    refusals = iter([True, False])

    def undo(to: Names) -> None:
        if next(refusals):
            raise RuntimeError("in use")
        to.remove("a")

    made = step("a", lambda to: to.add("a"), undo=undo, may_refuse=True)
    handle = perform(made, names, loop)
    with pytest.raises(RuntimeError, match="in use"):
        handle.close()
    assert names.names == ["a"]
    handle.close()
    assert names.names == []


def registered() -> str:
    return "registered"


def with_parameters(value: object) -> str:
    return str(value)


def wrapping(to: Names, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    to.functions["wrapped"] = function
    return wrapper


def defines(to: Names) -> Any:
    @to.register
    def own() -> None: ...

    return own


@pytest.mark.parametrize(
    ("do", "name"),
    [
        (lambda to: to.register(registered), "registered"),
        (lambda to: to.register(with_parameters), "with_parameters"),
        (partial(Names.register, function=registered), "registered"),
        (lambda to: wrapping(to, registered), "registered"),
        (defines, "own"),
    ],
)
def test_a_decorator_that_returns_the_function(
    do: Any, name: str, loop: ScenarioLoop
) -> None:
    assert refused(perform, step("a", do), Names(), loop) == (
        f"{name}, returned by 'a': it returned the function that was registered, as "
        "decorators do; expected undo=..., a function of the registry that "
        "removes it, or undo=None if the step stays."
    )


def test_a_function_that_undoes_may_be_known_by_name(loop: ScenarioLoop) -> None:
    """Only what the registry holds is taken for what was registered."""
    handle = perform(step("a", lambda to: registered), Names(), loop)
    assert handle.resource is registered


def test_a_step_that_returns_none(loop: ScenarioLoop) -> None:
    assert refused(perform, step("a", lambda to: to.add("a")), Names(), loop) == (
        "None, returned by 'a'; expected an undo: return a function without "
        "parameters or an object with close(), pass undo=..., or undo=None if the step "
        "stays."
    )


def test_a_step_that_returns_the_registry(loop: ScenarioLoop) -> None:
    """It has `close()`, which ends much more than the step."""
    assert refused(perform, step("a", lambda to: to.fluent("a")), Names(), loop) == (
        "the registry itself, returned by 'a'; expected an undo: undo=..., a "
        "function of the registry, or undo=None if the step stays."
    )


async def a_task(to: Names) -> Any:
    import asyncio

    return asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("do", "text"),
    [
        (
            lambda to: 5,
            "int, returned by 'a'; expected the function that undoes the step, or an "
            "object with close().",
        ),
        (
            lambda to: Entered,
            "the class Entered, returned by 'a'; expected the function that undoes "
            "the step, or undo=..., a function of the registry and of the returned "
            "value.",
        ),
        (
            lambda to: to.remove,
            "Names.remove(name: str) -> None, returned by 'a'; expected a function "
            "without parameters; undo=... receives the registry and the result.",
        ),
        (
            a_task,
            "an object of class Future, returned by 'a'; expected the function that "
            "undoes "
            "the step, as task.cancel.",
        ),
    ],
)
def test_what_undoes_nothing(do: Any, text: str, loop: ScenarioLoop) -> None:
    assert refused(perform, step("a", do), Names(), loop) == text


def test_coroutines_of_a_dispatcher_are_refused() -> None:
    assert refused(step("a", awaits).prepare(Names(), "step 1")) == (
        "a coroutine among the steps of a dispatcher; expected create=..., a function "
        "that makes a fresh registry."
    )
