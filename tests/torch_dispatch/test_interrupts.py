"""Exceptions that come at any place: a signal, the end of recursion, Ctrl-C.

True only here: exceptions are put between two instructions, at every place where Python
looks for signals (after a call, at the first instruction, at a jump backwards).
"""

import dis
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

from everyorder.runtime.errors.registration import KeyMisuse
from everyorder.runtime.errors.torch_dispatch import ContextError, ModeStackError
from everyorder.runtime.keys import (
    LOCAL,
    DispatchKey,
    exclude_keys,
    force_keys,
    include_keys,
    local,
    preserve_keys,
)
from everyorder.runtime.keys.local import view_of
from everyorder.runtime.tensors.keys import MODED, STATE, Presence
from everyorder.runtime.torch_dispatch import (
    Context,
    TorchDispatchMode,
    context,
    current_modes,
    disable_current_modes,
    enable_reentrant_dispatch,
    modes,
    pop_mode_temporarily,
)
from everyorder.runtime.torch_dispatch.fallback import HANDLING
from tests.coded import code
from tests.torch_dispatch.kinds import core, counted, vector
from tests.torch_dispatch.thread_state import Look, nobody_entered

# The code that changes what a thread is in, without `finally`: a tracer cannot tell the
# last instruction of a body from the first one behind it.
FILES = (modes.__file__, context.__file__, local.__file__, f"<{HANDLING}")

# What looks for signals, in CPython 3.11 and later.
LOOKING = {"RESUME", "JUMP_BACKWARD", "CALL", "CALL_FUNCTION_EX", "CALL_KW"}

PLAIN = vector(1.0, 2.0)
COUNTED = counted(1.0, 2.0)


class Interrupt(BaseException):
    """What a signal raises."""


class Runs(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class Declines(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return NotImplemented


class Reenters(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with enable_reentrant_dispatch():
            return func(*args, **(kwargs or {}))


def a_class() -> None:
    core.neg(COUNTED)


def a_mode() -> None:
    with Runs():
        core.neg(PLAIN)


def nested_modes() -> None:
    with Runs(), Runs():
        core.neg(PLAIN)


def a_mode_that_declines() -> None:
    with Declines():
        core.neg(COUNTED)


def a_list() -> None:
    with Runs():
        core.cat([COUNTED, PLAIN])


def no_mode_for_a_while() -> None:
    with Runs(), disable_current_modes():
        core.neg(PLAIN)


def one_mode_less_for_a_while() -> None:
    with Runs(), Runs(), pop_mode_temporarily():
        core.neg(PLAIN)


def reentrant() -> None:
    with Runs(), Reenters():
        core.neg(PLAIN)


PROGRAMS = [
    a_class,
    a_mode,
    nested_modes,
    a_mode_that_declines,
    a_list,
    no_mode_for_a_while,
    one_mode_less_for_a_while,
    reentrant,
]


def places(code: CodeType) -> set[int]:
    """The offsets before which a signal may be handled."""
    found, last = set(), ""
    for each in dis.get_instructions(code):
        if last in LOOKING:
            found.add(each.offset)
        last = each.opname
    return found


class Interrupting:
    """A tracer that raises `Interrupt` at the n-th place."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.where: str | None = None
        self.known: dict[CodeType, set[int]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(FILES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            if code not in self.known:
                self.known[code] = places(code)
            self.left -= frame.f_lasti in self.known[code]
            if self.left == 0 and self.where is None:
                self.where = code.co_qualname
                raise Interrupt
        return self


def interrupted(program: Callable[[], None], at: int) -> str | None:
    """Run with an interrupt at that place; the function it came in, None past all."""
    tracer, before = Interrupting(at), sys.gettrace()
    sys.settrace(tracer)
    try:
        program()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
    return tracer.where


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_signal_at_any_place(program: Callable[[], None]) -> None:
    """C1: the first instruction of an exit included."""
    for _ in range(20):
        program()
    before, at, seen = Look(), 1, 0
    while (where := interrupted(program, at)) is not None:
        at, seen = at + 1, seen + 1
        assert before.unchanged(), where
        assert current_modes() == ()
    assert seen > 3
    assert nobody_entered()


GUARDS: list[Any] = [
    exclude_keys(DispatchKey.Python),
    include_keys(DispatchKey.Python),
    preserve_keys(),
    force_keys(DispatchKey.Python, DispatchKey.Tracer),
    Context("attacked"),
]


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("guard", GUARDS, ids=lambda each: type(each).__name__)
def test_a_signal_at_any_place_of_a_guard(guard: Any, moved: bool) -> None:
    """C1: the first instruction of `__exit__` included.

    The keys are those that the guard left, or others by then.
    """
    outside = LOCAL.view
    with guard:
        inside = LOCAL.view
    if moved:
        inside = view_of(inside.included | DispatchKey.Tracer.bits, inside.excluded)

    def program() -> None:
        with guard:
            LOCAL.view = inside

    def found() -> tuple[Any, ...]:
        return LOCAL.view, LOCAL.switched_in, LOCAL.switched_out, STATE.context

    before = found()
    program()
    after, at, missed = found(), 1, []
    LOCAL.view = outside
    while (where := interrupted(program, at)) is not None:
        at += 1
        if found() not in (before, after):
            missed.append(where)
        with pytest.raises((KeyMisuse, ContextError)):
            guard.__exit__()
        LOCAL.view = outside
    LOCAL.view = outside
    assert at > 3
    assert missed == []


def deeper(levels: int, program: Callable[[], None]) -> None:
    """Run a program so many calls below this one."""
    if levels:
        deeper(levels - 1, program)
    else:
        program()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_end_of_recursion_at_any_depth(program: Callable[[], None]) -> None:
    """C1: leaving never needs more depth than entering."""
    for _ in range(20):
        program()
    before, limit, done, failed = Look(), sys.getrecursionlimit(), 0, 0
    # With room for what runs the tests.
    sys.setrecursionlimit(300)
    try:
        for levels in range(100, 300):
            try:
                deeper(levels, program)
                done += 1
            except RecursionError:
                failed += 1
            assert before.unchanged(), levels
    finally:
        sys.setrecursionlimit(limit)
    assert done
    assert failed


def left_entered(error: type[BaseException], inside: Callable[[], Any]) -> None:
    """Enter a mode by `with`, do that inside, and raise."""
    with Runs():
        inside()
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_takes_along_what_it_left_entered(
    error: type[BaseException],
) -> None:
    """C1: and no other error stands in its place."""
    before = Look()
    with Runs() as outer:
        with pytest.raises(error):
            left_entered(error, lambda: [Runs().__enter__() for _ in range(3)])
        assert current_modes() == (outer,)
    assert before.unchanged()
    assert nobody_entered()


def test_an_interruption_of_who_is_put_aside() -> None:
    """C1: nothing is left of it, and that is no error."""
    before = Look()
    with pytest.raises(KeyboardInterrupt):
        left_entered(KeyboardInterrupt, disable_current_modes().__enter__)
    assert before.unchanged()


@pytest.mark.parametrize("error", [KeyError, GeneratorExit])
def test_an_error_does_not_take_others_along(error: type[BaseException]) -> None:
    """Bad input: who was entered later may still be needed; but the block is over."""
    before, inner = Look(), Runs()
    with pytest.raises(ModeStackError, check=code("ModeNotInnermost")) as caught:
        left_entered(error, inner.__enter__)
    assert isinstance(caught.value.__context__, error)
    assert caught.value.stack == ("Runs", "Runs")
    assert current_modes() == (inner,)
    inner.__exit__()
    assert before.unchanged()
    del caught
    assert nobody_entered()


def test_the_presence_of_a_mode_ends_without_python_code() -> None:
    """Nothing that a signal could interrupt: who was there would stay for ever."""
    assert not hasattr(Presence, "__del__")
    presence = Presence(MODED)
    assert len(MODED) == 1
    del presence
    assert not MODED
