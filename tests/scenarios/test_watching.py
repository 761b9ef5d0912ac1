"""Watching: observers and traces of calls; whoever watches changes nothing."""

from contextlib import ExitStack, redirect_stderr
from io import StringIO
from typing import Any

from everyorder.harness.scenario import Scenario, define, fallback, impl
from everyorder.harness.scenario.effects import probe_tensor
from everyorder.runtime.dispatch import Dispatcher
from everyorder.runtime.dispatch.watch import DEPTH, WATCH
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.schema import Schema
from tests.scenarios.asking import answer, ask, asked, handle, raised
from tests.scenarios.kernels import broken, on_cpu, pass_below_tracer

_X = probe_tensor("CPU+Tracer")


class Eye:
    """An observer that notes what it sees, and raises where it is told to."""

    def __init__(self, name: str, seen: list[str], fails: str = "") -> None:
        self.name = name
        self.seen = seen
        self.fails = fails

    def before(
        self, operator: str, schema: Schema, arguments: tuple[Any, ...], keyset: KeySet
    ) -> object:
        self.seen.append(f"{self.name} sees {operator}, {len(arguments)}, {keyset}")
        if self.fails == "before":
            raise ValueError(self.name)
        return f"{self.name} saw"

    def after(self, context: object, outcome: object) -> None:
        told = raised(outcome) if isinstance(outcome, Exception) else outcome
        self.seen.append(f"{context} {told}")
        if self.fails == "after":
            raise OSError(self.name)


def _observed(target: Dispatcher, *fail: str) -> list[str]:
    """What observers see of a call, boxed or not, and of no redispatch."""
    seen: list[str] = []
    op = handle(target, "audio::echo")
    with ExitStack() as watching:
        for number, fails in enumerate(fail):
            watching.enter_context(WATCH.observing(Eye(f"eye {number}", seen, fails)))
        seen.append(answer(lambda: op(_X)))
        seen.append(answer(lambda: op.call_boxed([_X])))
        seen.append(answer(lambda: op.redispatch(KeySet(DispatchKey.CPU), _X)))
    return [*seen, f"then {WATCH.active}, {len(WATCH.observers)}, {DEPTH.level}"]


# Observers hear of calls inside of each other, and of the end whatever others do.
observers = Scenario(
    define("audio::echo(Tensor x) -> Tensor"),
    impl("audio::echo", on_cpu, "CPU"),
    impl("audio::echo", broken, "Tracer"),
    **asked(
        ask(
            "observing(...)",
            lambda target: _observed(target, "", ""),
            lambda target: _observed(target, "", "before"),
            lambda target: _observed(target, "after", ""),
        )
    ),
)


def _left_in_any_order(target: Dispatcher) -> list[str]:
    seen: list[str] = []
    one, two = Eye("one", seen), Eye("two", seen)
    watching = [WATCH.observing(each) for each in (one, two, one)]
    for each in watching:
        each.__enter__()
    for each in watching:
        each.__exit__(None, None, None)
        seen.append(answer(lambda: handle(target, "audio::echo")(_X)))
        seen.append(f"{len(WATCH.observers)} left, {WATCH.active}")
    return seen


def _traced(target: Dispatcher) -> list[str]:
    op = handle(target, "audio::echo")
    with target.trace() as outer:
        answer(lambda: op(_X))
        with target.trace() as inner:
            answer(lambda: op(_X))
        answer(lambda: op.call_boxed([_X]))
        answer(lambda: op.redispatch_boxed(KeySet(DispatchKey.CPU), [_X]))
        answer(lambda: op.call_for_key("CPU", [_X]))
    return [*map(str, outer), f"{len(inner)} inside", f"then {WATCH.active}"]


def _on_standard_error(target: Dispatcher) -> list[str]:
    """Where traces are written: to standard error only if that is asked for."""
    op = handle(target, "audio::echo")
    seen = []
    for asked_for in ({}, {"to_stderr": True}):
        with redirect_stderr(StringIO()) as written:
            with WATCH.tracing(**asked_for) as lines:
                answer(lambda: op(_X))
            answer(lambda: op(_X))
        seen.append(f"{len(lines)} lines, {len(written.getvalue().splitlines())} there")
    return [*seen, f"then {WATCH.active}, {len(WATCH.sinks)}"]


# Traces collect every call while they are open, indented by nesting.
traces = Scenario(
    define("audio::echo(Tensor x) -> Tensor"),
    impl("audio::echo", on_cpu, "CPU"),
    fallback(pass_below_tracer, "Tracer", with_keyset=True),
    **asked(
        ask(
            "trace(), observing(...)",
            _traced,
            _left_in_any_order,
            _on_standard_error,
        )
    ),
)
