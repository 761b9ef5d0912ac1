"""Uses of the dispatcher: calls and look-ups that must not change anything.

The answer of a call lists the kernels and handlers that ran, or the error. Its
arguments are those of `harness.scenario.effects`.

After every single call the thread must be as before; calls that change it are added to
`LabelRecorder.disturbed`.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from everyorder.harness.scenario.effects import (
    CONTEXT,
    Arguments,
    arguments_of,
    calls_for,
    check_probe,
    effects_of,
    fits,
    is_per_system,
    key_bits_of,
    probe_tensor,
)
from everyorder.harness.scenario.recorder import LabelRecorder, Moment
from everyorder.harness.scenario.step import UseStep
from everyorder.invariants.run import Call, Lockable, Surroundings, surroundings
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.state import OperatorEntry
from everyorder.runtime.dispatch.watch import DEPTH
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.call import MissingKernel
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.schema.parser import parse_name
from everyorder.runtime.tensors.keys import STATE

# The kind of tensors for a call in a context.
PLAIN = "cpu"


def answers(
    target: Dispatcher,
    handle: OperatorHandle,
    kinds: tuple[str, ...],
    before: Moment | None = None,
) -> list[tuple[str, str]]:
    """Call an operator with each kind of tensors; return pairs of kind and answer.

    Without a schema the arguments are unknown: one call answers for all kinds. `before`
    is the current state of the thread, if the caller has it.
    """
    recorder: LabelRecorder = target.recorder  # type: ignore[attr-defined]  # the system's dispatcher has one
    ran, locked = recorder.labels, recorder.locked
    call, before = handle.call, before or Moment()
    entry = target.state.entry(handle.name)
    if entry is None or not entry.definitions:
        shared_answer = _answer(call, ((), {}), ran)
        if locked or not before.is_unchanged():
            _note_disturbance(target, recorder, handle, before)
        return [(kind, shared_answer) for kind in kinds]
    live, copies = before.live, before.copies
    pairs = []
    for kind, (positional, named) in calls_for(entry.definitions[0].reading, kinds):
        # As `_answer` and `is_unchanged`, without calls: most of a walk is spent here.
        ran.clear()
        try:
            call(*positional, **named)
        except MissingKernel as error:
            ran.append(f"MissingKernel: {error.reason}")
        except Exception as error:
            ran.append(_error_answer(error))
        pairs.append((kind, ran[0] if len(ran) == 1 else _joined(ran)))
        if live != copies or locked:
            before = _note_disturbance(target, recorder, handle, before)
            live, copies = before.live, before.copies
    return pairs


def answer_per_system(target: Dispatcher, handle: OperatorHandle, kind: str) -> str:
    """Call an operator with a tensor of a step, or in a context of a step.

    If the step is not active, return the answer "no KIND".
    """
    effects = effects_of(target)
    what, _, name = kind.partition(":")
    before = Moment()
    if what == CONTEXT:
        context = effects.contexts.get(name)
        if context is None:
            return f"no {kind}"
        call = handle.call

        def inside(*arguments: Any, **named: Any) -> Any:
            with context:
                return call(*arguments, **named)

        answer = _answer_with(target, inside, handle, probe_tensor(PLAIN))
    else:
        tensor = effects.tensor(kind)
        if tensor is None:
            return f"no {kind}"
        answer = _answer_with(target, handle.call, handle, tensor)
    if effects.recorder.locked or not before.is_unchanged():
        _note_disturbance(target, effects.recorder, handle, before)
    return answer


def _answer_with(
    target: Dispatcher, call: Callable[..., Any], handle: OperatorHandle, tensor: Any
) -> str:
    entry = target.state.entry(handle.name)
    arguments: Arguments = ((), {})
    if entry is not None and entry.definitions:
        arguments = arguments_of(entry.definitions[0].reading, tensor)
    return _answer(call, arguments, effects_of(target).recorder.labels)


def answers_and_calls(
    target: Dispatcher, handle: OperatorHandle, kinds: tuple[str, ...]
) -> tuple[list[tuple[str, str]], tuple[Call, ...]]:
    """Return `answers`, and each call with its surroundings, for the laws of a run."""
    recorder: LabelRecorder = target.recorder  # type: ignore[attr-defined]  # the system's dispatcher has one
    lock: Lockable = target.lock  # type: ignore[attr-defined]  # and this

    def sample() -> Surroundings:
        return surroundings(LOCAL, DEPTH, lock, STATE)

    pairs: list[tuple[str, str]] = []
    calls = []
    for kind in kinds:
        state = target.state
        entry = state.entry(handle.name)
        bits = 0
        if entry is not None and entry.definitions:
            bits = key_bits_of(entry.definitions[0].reading, kind)
        recorder.sample = sample
        before = sample()
        try:
            pairs += answers(target, handle, (kind,))
        finally:
            recorder.sample = None
        inside = tuple(recorder.inside)
        recorder.inside.clear()
        ran = recorder.labels[0] if inside else None
        sampled = bits, before, sample(), inside, ran, not _is_bound(entry, kind)
        calls.append(Call(str(handle.name), state, *sampled))
    # These calls are reported with the calls above.
    recorder.disturbed.clear()
    return pairs, tuple(calls)


def _is_bound(entry: OperatorEntry | None, kind: str) -> bool:
    """Return False if the arguments of a call do not fit the schema."""
    definition = entry and entry.definition
    return definition is None or fits(definition.reading, kind)


def _answer(call: Callable[..., object], arguments: Arguments, ran: list[str]) -> str:
    ran.clear()
    positional, named = arguments
    try:
        call(*positional, **named)
    except Exception as error:
        ran.append(_error_answer(error))
    return _joined(ran)


def _error_answer(error: Exception) -> str:
    """Return an error as an answer; errors of the runtime are shown by their code."""
    if isinstance(error, MissingKernel):
        return f"MissingKernel: {error.reason}"
    if isinstance(error, EveryorderError):
        return error.code
    return f"raises {type(error).__name__}"


def _joined(ran: list[str]) -> str:
    return " > ".join(ran) or "ran no step's kernel"


def _note_disturbance(
    target: Dispatcher,
    recorder: LabelRecorder,
    handle: OperatorHandle,
    before: Moment,
) -> Moment:
    """Record a call that changed its thread, or ran a function under the lock.

    Returns the state of the thread after it.
    """
    lock: Lockable = target.lock  # type: ignore[attr-defined]  # the system's dispatcher has one
    after = Moment()
    early, late = before.with_lock(lock), after.with_lock(lock)
    inside = (replace(early, locked=True),) if recorder.locked else ()
    recorder.locked.clear()
    call = Call(str(handle.name), target.state, 0, early, late, inside)
    recorder.disturbed.append(call)
    return after


def call(op: str, kind: str = "cpu") -> UseStep:
    """Return a use that calls an operator with tensors of a kind.

    The kinds are in `harness.scenario.effects`.

    Raises:
        BadScenario: `kind` is unknown and does not list dispatch keys.
    """
    name = parse_name(op)
    check_probe(kind)

    def perform(target: Dispatcher) -> Hashable:
        handle = OperatorHandle(target, name)
        if is_per_system(kind):
            return answer_per_system(target, handle, kind)
        return answers(target, handle, (kind,))[0][1]

    return UseStep(f'call("{op}", "{kind}")', perform, (op,), "dispatcher")


def look_up(op: str, *, constant: bool = False) -> UseStep:
    """Return a use that finds an operator's schema, as `Dispatcher.find_schema` does.

    `constant` is as for `use`.
    """

    def perform(target: Dispatcher) -> Hashable:
        return str(target.find_schema(op))

    return UseStep(f'look_up("{op}")', perform, (op,), "dispatcher", constant=constant)
