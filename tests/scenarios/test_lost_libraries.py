"""Libraries that are closed, lost, or used after their end."""

import sys
from typing import Any

from everyorder.harness.scenario import Scenario, call, define, impl, listen, step
from everyorder.harness.scenario.step import Step
from everyorder.runtime.dispatch import Dispatcher, Library, Registration
from everyorder.runtime.schema import OperatorName, Schema
from tests.scenarios.asking import answer, ask, asked, noting
from tests.scenarios.kernels import composed, on_cpu, on_cuda


class _Loses:
    """The handle of a library that nobody closes: its last reference goes."""

    def __init__(self, target: Dispatcher, library: Library) -> None:
        self._target = target
        self._library: Library | None = library

    @property
    def tokens(self) -> Any:
        return () if self._library is None else self._library.tokens

    def close(self) -> None:
        self._library = None
        self._target.drain()


def _lost(text: str, kernel: Any, key: str) -> Step:
    def do(target: Dispatcher) -> _Loses:
        library = Library("text", "FRAGMENT", dispatcher=target, origin=text)
        library.impl("index", noting(target, kernel, text), key)
        library.define(f"{text}(Tensor x) -> Tensor", debug=text)
        return _Loses(target, library)

    return step(text, do)


# What a lost library registered is gone with the next look for lost ones.
lost_and_drained = Scenario(
    _lost("first", on_cpu, "CPU"),
    _lost("second", on_cuda, "CUDA"),
    define("text::index(Tensor x) -> Tensor"),
    operators=["text::index", "text::first", "text::second"],
    uses=[call("text::index", "cpu"), call("text::index", "cuda")],
    probes=("cpu",),
)

# Listeners are told of what a lost library had defined.
lost_and_told = Scenario(
    _lost("first", on_cpu, "CPU"),
    listen(),
    operators=["text::index", "text::first"],
    probes=("cpu",),
)


def _next_writer(target: Dispatcher) -> list[object]:
    """Whoever registers next takes down what was lost, and so does whoever removes."""
    seen: list[object] = []
    for write in ("register", "unregister"):
        other = Library("text", "FRAGMENT", dispatcher=target, origin="other")
        held = other.reserve("index")
        lost = Library("text", "FRAGMENT", dispatcher=target, origin="lost")
        lost.define("lost(Tensor x) -> Tensor")
        lost.impl("index", on_cpu, "CUDA")
        del lost
        seen += [len(target.dropped), target.find_op("text::lost")]
        if write == "register":
            other.reserve("more")
        else:
            held.close()
        seen += [len(target.dropped), target.find_op("text::lost")]
        other.close()
    return [*seen, target.op_names()]


# Lost libraries wait for the next writer, whatever that one does.
taken_down_by_the_next_writer = Scenario(
    define("text::index(Tensor x) -> Tensor"),
    impl("text::index", on_cpu, "CPU"),
    listen(),
    **asked(ask("del library", _next_writer)),
)


class _Fails:
    """Raises when an operator goes."""

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        """Nothing."""

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        raise ArithmeticError(str(name))


def _unraisable(target: Dispatcher) -> list[object]:
    """Nobody is there to receive what a listener raises about a lost library."""
    told: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        with target.add_listener(_Fails()):
            lost = Library("text", "FRAGMENT", dispatcher=target, origin="lost")
            lost.define("lost(Tensor x) -> Tensor")
            del lost
            target.drain()
    finally:
        sys.unraisablehook = hook
    # Whatever else could not be raised meanwhile is none of ours.
    ours = [each for each in told if each.object is target]
    return [
        *((each.exc_type.__name__, each.exc_value, each.err_msg) for each in ours),
        target.op_names(),
    ]


class _Interrupts(_Fails):
    """Is interrupted when an operator goes."""

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        raise KeyboardInterrupt(str(name))


def _interrupted(target: Dispatcher) -> list[object]:
    """What interrupts listeners comes to the one who takes the library down."""
    with target.add_listener(_Interrupts()), target.add_listener(_Interrupts()):
        lost = Library("text", "FRAGMENT", dispatcher=target, origin="lost")
        lost.define("lost(Tensor x) -> Tensor")
        del lost
        try:
            target.drain()
        except KeyboardInterrupt as error:
            return [repr(error), *error.__notes__, target.op_names()]
    return ["not interrupted"]


# What listeners raise about a lost library is reported, and it is taken down.
reported_when_lost = Scenario(
    define("text::index(Tensor x) -> Tensor"),
    impl("text::index", on_cpu, "CPU"),
    **asked(ask("del library, with a listener that fails", _unraisable, _interrupted)),
)


def _opened(target: Dispatcher) -> Library:
    return Library("text", "FRAGMENT", dispatcher=target, origin="opened")


def _closed_registrations(target: Dispatcher) -> list[object]:
    with _opened(target) as library:
        first = library.define("parse(Tensor x) -> Tensor", kernel=composed)
        second = library.impl("parse", on_cpu, "CPU")
        seen: list[object] = [repr(first), repr(second), len(library.tokens)]
        first.close()
        first.close()
        seen += [repr(first), first.closed, second.closed, len(library.tokens)]
        seen += [len(first.tokens), len(second.tokens), target.op_names()]
    return [*seen, second.closed, library.tokens, target.op_names()]


def _after_its_end(target: Dispatcher) -> list[str]:
    library = _opened(target)
    library.define("parse(Tensor x) -> Tensor")
    library.close()
    library.close()
    return [
        answer(lambda: library.define("parse(Tensor x) -> Tensor")),
        answer(lambda: library.define("other(Tensor x) -> Tensor")),
        answer(lambda: library.impl("parse", on_cpu, "CPU")),
        answer(lambda: library.reserve("parse")),
        answer(lambda: library.fallback(on_cpu, "CPU")),
        answer(lambda: library.rule("parse", Registration, on_cpu)),
    ]


def _left_by_an_error(target: Dispatcher) -> str:
    library = _opened(target)
    try:
        with library.define("parse(Tensor x) -> Tensor"):
            raise ArithmeticError(", ".join(target.op_names()))
    except ArithmeticError as error:
        return f"{error}; then {', '.join(target.op_names())}, {library.tokens}"


# A registration ends once, by itself, by its library, or by leaving its block.
ended_once = Scenario(
    define("text::index(Tensor x) -> Tensor"),
    impl("text::parse", on_cpu, "CPU"),
    **asked(
        ask("close()", _closed_registrations, _after_its_end, _left_by_an_error),
    ),
)
