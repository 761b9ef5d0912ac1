"""Modes and handlers belong to threads, and threads do not disturb each other."""

import gc
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings

from everyorder import runtime
from everyorder.runtime.errors.torch_dispatch import ModeStackError
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import MODED, STATE
from everyorder.runtime.torch_dispatch import current_modes, register_torch_dispatch
from tests.coded import coded, kind_of
from tests.forking import ended_well, fork, needs_fork
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.random_programs import EXPECTED, Player, acts, handlers
from tests.torch_dispatch.thread_state import Look, nobody_entered
from tests.torch_dispatch.worlds import Ours, leaves, opened, runs

EmptyModeStack = coded(ModeStackError, "EmptyModeStack")

# A thread that takes longer hangs.
SECONDS = 30


def in_threads(*runs: Callable[[], Any]) -> list[Any]:
    """What each returns, or raises, all started together."""
    start, found = threading.Barrier(len(runs)), [None] * len(runs)

    def run(number: int) -> None:
        start.wait(SECONDS)
        try:
            found[number] = runs[number]()
        except BaseException as error:
            found[number] = error  # type: ignore[call-overload]  # whatever it was

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    return found


@pytest.mark.spec("dispatch 7.6", "a stack for each thread")
def test_a_thread_starts_without_modes(world: Ours) -> None:
    """7.6: the stack belongs to the thread, and so do the keys."""
    op = unary(world)
    x = world.tensor(1.0)

    def other() -> Any:
        op(x)
        return current_modes(), STATE.snapshot, hex(LOCAL.included)

    with world.mode("M"):
        assert in_threads(other) == [((), None, "0x404000000")]
    assert world.lines == []


def test_a_thread_that_a_handler_starts_has_nothing_either(world: Ours) -> None:
    """7.2: neither a snapshot nor excluded keys."""
    op, found = unary(world), []

    def starts(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        found.extend(in_threads(lambda: (STATE.snapshot, hex(LOCAL.excluded))))
        return leaves(world, who, func, types, args, kw)

    op(world.made(world.subclass("A", answer=starts)))
    assert found == [(None, "0x1ff8000000000")]


def test_a_mode_of_two_threads(world: Ours) -> None:
    """7.6: one object may be entered in several threads at once."""
    op, mode = unary(world), world.mode("M")
    x, met = world.tensor(1.0), threading.Barrier(2)

    def enters() -> int:
        with mode:
            met.wait(SECONDS)
            op(x)
            met.wait(SECONDS)
        op(x)
        return len(current_modes())

    assert in_threads(enters, enters) == [0, 0]
    assert world.lines == ["M: f.default(Tensor) types=()"] * 2


def test_leaving_in_another_thread(world: Ours) -> None:
    """Bad input: refused there, and the mode stays entered here."""
    mode = world.mode("M")
    with mode:
        before = Look()
        [error] = in_threads(lambda: mode.__exit__())
        assert before.unchanged()
    assert kind_of(error) is EmptyModeStack
    assert str(error) == (
        "M is exited, and no mode is entered in this thread.\n  modes: none are entered"
    )


def test_a_thread_that_ends_with_modes_entered(world: Ours) -> None:
    """D3: its stack ends with it; nothing remembers the thread or keeps the mode."""
    assert nobody_entered()
    modes = [world.mode("M")]

    def enters() -> int:
        for mode in modes * 2:
            mode.__enter__()
        return len(MODED)

    assert in_threads(enters) == [2]
    assert nobody_entered()
    alive = weakref.ref(modes.pop())
    gc.collect()
    assert alive() is None


def test_the_state_of_a_dead_thread_goes(world: Ours) -> None:
    """D3: also what a handler has put aside when the thread's function ends."""
    op = unary(world)

    class Token:
        pass

    def holds() -> Any:
        token = Token()
        mode = world.mode("M")
        mode.token = token
        mode.__enter__()
        with world.no_dispatch():
            op(world.tensor(1.0))
        return weakref.ref(token)

    [alive] = in_threads(holds)
    gc.collect()
    assert alive() is None


@settings(max_examples=40)
@given(program=acts, does=handlers, other=acts, others=handlers)
def test_programs_in_two_threads(
    program: Any, does: Any, other: Any, others: Any
) -> None:
    """C1: each thread is afterwards as it was before, whatever the other one does."""

    def plays(player: Player, program: Any) -> list[Any]:
        before = Look()
        with suppress(*EXPECTED):
            player.play(program)
        player.close()
        assert before.unchanged()
        return player.changed

    with opened(Ours) as world:
        one, two = Player(world, does, "one"), Player(world, others, "two")
        found = in_threads(lambda: plays(one, program), lambda: plays(two, other))
    assert found == [[], []]


def test_the_first_call_by_many_threads_at_once() -> None:
    """C2: what is made for an operator once may be made by several threads."""
    for _ in range(5):
        with opened(Ours) as world:
            op = unary(world)
            x = world.made(world.subclass("A", answer=leaves))
            found = in_threads(*[lambda: op(x).tolist()] * 8)  # noqa: B023  # joined
            assert found == [[2.0]] * 8


def test_rules_come_and_go_while_others_call(world: Ours) -> None:
    """C2: a call has the rule or the method, and never an error."""
    op, mode, plain = unary(world), world.mode("M", runs), world.tensor(7.0)
    world.heard = lambda *given: None  # type: ignore[method-assign]  # many lines
    done = threading.Event()

    def registers() -> None:
        for _ in range(300):
            register_torch_dispatch(op, type(mode), lambda *given: plain).close()
        done.set()

    def calls() -> set[bool]:
        found: set[bool] = set()
        with mode:
            while not (done.is_set() and found):
                found.add(op(plain) is plain)
        return found

    registered, *called = in_threads(registers, calls, calls)
    assert registered is None
    assert [type(found) for found in called] == [set, set]
    assert op(plain) is not plain


def test_no_lock_is_held_while_a_handler_runs(world: Ours) -> None:
    """C2: another thread registers meanwhile, and calls."""
    op, done = unary(world), threading.Event()

    def waits(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        started.set()
        assert done.wait(SECONDS)
        return leaves(world, who, func, types, args, kw)

    started = threading.Event()
    x = world.made(world.subclass("A", answer=waits))

    def registers() -> str:
        assert started.wait(SECONDS)
        with runtime.Library("everyorder_meanwhile", "DEF") as library:
            library.define("g(Tensor x) -> Tensor")
            library.impl("g", lambda x: x, "CompositeExplicitAutograd")
            other: Any = runtime.ops.everyorder_meanwhile.g
            mode = world.mode("M", leaves)
            with register_torch_dispatch(op, type(mode), lambda *given: 0), mode:
                pass
            other(world.tensor(1.0))
        done.set()
        return "registered"

    called, registered = in_threads(lambda: op(x), registers)
    assert registered == "registered"
    assert called.tolist() == [2.0]


@needs_fork
def test_a_fork_inside_of_a_handler(world: Ours) -> None:
    """C2: the child is inside of the handler, too, and can call and register rules."""
    op, mode = unary(world), world.mode("N", leaves)

    def forks(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        child = fork()
        if child == 0:
            code = 1
            try:
                with mode, register_torch_dispatch(op, type(mode), lambda *given: 5):
                    pass
                with mode:
                    leaves(world, who, func, types, args, kw)
                code = 0
            finally:
                os._exit(code)
        assert ended_well(child)
        return leaves(world, who, func, types, args, kw)

    before = Look()
    op(world.made(world.subclass("A", answer=forks)))
    assert before.unchanged()
