"""Futures in random order, against a model that is small enough to be read.

The model completes by recursion, knows no threads, and keeps one list of callbacks; it
says which futures are complete, with what, and in which order callbacks ran.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from everyorder.runtime.errors import CallbackFailed, FutureMisuse
from everyorder.runtime.futures import Future, call_end_callbacks, collect_all

# A value, or the text of an error; None before that.
State = tuple[str, Any] | None


class Model:
    """A future, by its definition."""

    def __init__(self) -> None:
        self.state: State = None
        self.callbacks: list[Callable[[], None]] = []

    def complete(self, state: State) -> bool:
        if self.state is not None:
            return False
        self.state = state
        for callback in self.callbacks:
            callback()
        return True

    def when_complete(self, callback: Callable[[], None]) -> None:
        if self.state is None:
            self.callbacks.append(callback)
        else:
            callback()


class Broken(Exception):
    """An error of a test."""


def state_of(future: Future[Any]) -> State:
    if not future.done():
        return None
    error = future.error()
    if error is None:
        return "value", future.value()
    return "error", error.error if isinstance(error, CallbackFailed) else str(error)


def written(error: str) -> str:
    """How a callback's error reads that raised `Broken(error)`."""
    return f"{Broken.__module__}.Broken: {error}"


# What a callback does: the value that it returns for its number and its future's state.
Kind = Callable[[int, State], State]


def returns(number: int, state: State) -> State:
    return "value", number


def raises(number: int, state: State) -> State:
    return "error", written(str(number))


def hands_on(number: int, state: State) -> State:
    assert state is not None, "its future is complete"
    kind, found = state
    if kind == "value":
        return "value", found
    told_before = found.startswith(Broken.__module__)
    return "error", found if told_before else written(found)


KINDS: list[Kind] = [returns, raises, hands_on]


class Futures(RuleBasedStateMachine):
    """Every pair of a future and its model, and two logs."""

    futures = Bundle("futures")

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Future[Any], Model]] = []
        self.log: list[int] = []
        self.modelled: list[int] = []
        self.count = 0

    def number(self) -> int:
        self.count += 1
        return self.count

    def kept(self, future: Future[Any], model: Model) -> tuple[Future[Any], Model]:
        self.pairs.append((future, model))
        return self.pairs[-1]

    def callback(self, number: int, kind: Kind) -> Callable[[Future[Any]], Any]:
        def called(future: Future[Any]) -> Any:
            self.log.append(number)
            if kind is raises:
                raise Broken(str(number))
            return future.wait() if kind is hands_on else number

        return called

    @rule(target=futures)
    def create(self) -> Any:
        return self.kept(Future(), Model())

    @rule(pair=futures)
    def set_result(self, pair: Any) -> None:
        future, model = pair
        number = self.number()
        try:
            future.set_result(number)
            completed = True
        except FutureMisuse as error:
            if error.code != "AlreadySettled":
                raise
            completed = False
        assert completed is model.complete(("value", number))

    @rule(pair=futures)
    def set_exception(self, pair: Any) -> None:
        future, model = pair
        number = str(self.number())
        try:
            future.set_exception(Broken(number))
            completed = True
        except FutureMisuse as error:
            if error.code != "AlreadySettled":
                raise
            completed = False
        assert completed is model.complete(("error", number))

    @rule(pair=futures)
    def set_error_if_needed(self, pair: Any) -> None:
        future, model = pair
        number = str(self.number())
        needed = future.set_error_if_needed(Broken(number))
        assert needed is model.complete(("error", number))

    @rule(target=futures, pair=futures, kind=st.sampled_from(KINDS))
    def then(self, pair: Any, kind: Kind) -> Any:
        (future, model), child, number = pair, Model(), self.number()

        def modelled() -> None:
            self.modelled.append(number)
            child.complete(kind(number, model.state))

        made = future.then(self.callback(number, kind))
        model.when_complete(modelled)
        return self.kept(made, child)

    @rule(target=futures, pair=futures, inner=futures)
    def then_async(self, pair: Any, inner: Any) -> Any:
        (future, model), (result, of), child = pair, inner, Model()
        number = self.number()

        def modelled() -> None:
            self.modelled.append(number)
            of.when_complete(lambda: child.complete(of.state) and None)

        def called(settled: Future[Any]) -> Future[Any]:
            self.log.append(number)
            return result  # type: ignore[no-any-return]  # of a bundle

        made = future.then_async(called)
        model.when_complete(modelled)
        return self.kept(made, child)

    @rule(pair=futures, kind=st.sampled_from(KINDS))
    def add_done_callback(self, pair: Any, kind: Kind) -> None:
        future, model = pair
        number = self.number()
        future.add_done_callback(self.callback(number, kind))
        model.when_complete(lambda: self.modelled.append(number))

    @rule(pair=futures, completed=futures)
    def complete_from_a_callback(self, pair: Any, completed: Any) -> None:
        (future, model), (other, of), number = pair, completed, self.number()

        def called(settled: Future[Any]) -> None:
            self.log.append(number)
            other.set_error_if_needed(Broken(str(number)))

        def modelled() -> None:
            self.modelled.append(number)
            of.complete(("error", str(number)))

        future.add_done_callback(called)
        model.when_complete(modelled)

    @rule(target=futures, pairs=st.lists(futures, max_size=4))
    def collect_all(self, pairs: Any) -> Any:
        combined, members = Model(), [future for future, _ in pairs]
        models = [model for _, model in pairs]

        left = len(models)

        def modelled() -> None:
            nonlocal left
            left -= 1
            if left > 0:
                return
            states = [model.state for model in models]
            errors = [state for state in states if state and state[0] == "error"]
            combined.complete(errors[0] if errors else ("value", members))

        made = collect_all(members)
        for model in models:
            model.when_complete(modelled)
        if not models:
            modelled()
        return self.kept(made, combined)

    @rule(target=futures, pair=futures)
    def call_end_callbacks(self, pair: Any) -> Any:
        (future, model), after, number = pair, Model(), self.number()

        def ended() -> None:
            self.modelled.append(number)

        made = call_end_callbacks(future, self.callback(number, returns))
        model.when_complete(ended)
        model.when_complete(lambda: after.complete(model.state) and None)
        return self.kept(made, after)

    @invariant()
    def alike(self) -> None:
        assert self.log == self.modelled
        for future, model in self.pairs:
            assert state_of(future) == model.state
            assert not (future.done() and future._callbacks)


TestFutures = Futures.TestCase
TestFutures.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
