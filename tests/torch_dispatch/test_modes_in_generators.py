"""Generators and coroutines that hold modes, and are ended somewhere else."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.torch_dispatch import HandlerError, ModeStackError
from everyorder.runtime.torch_dispatch import (
    TorchDispatchMode,
    current_modes,
    disable_current_modes,
    enable_reentrant_dispatch,
)
from tests.coded import code, coded, kind_of
from tests.torch_dispatch.kinds import core, vector
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.thread_state import Look, nobody_entered
from tests.torch_dispatch.worlds import Ours, leaves

ModeNotInnermost = coded(ModeStackError, "ModeNotInnermost")
OutsideOfHandler = coded(HandlerError, "OutsideOfHandler")
PutAsideElsewhere = coded(ModeStackError, "PutAsideElsewhere")

PLAIN = vector(1.0)


class Runs(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def holding(manager: Any) -> Iterator[None]:
    """A generator that is inside of a block."""
    with manager:
        yield


def test_a_generator_that_ends_inside_of_another_mode() -> None:
    """Bad input: an error, and each takes its own mode along."""
    before, mine, its = Look(), Runs(), Runs()
    generator: Any = holding(its)
    next(generator)
    with mine:
        with pytest.raises(ModeNotInnermost):
            generator.close()
        assert current_modes() == (mine,)
        core.neg(PLAIN)
    assert before.unchanged()


def test_a_generator_that_outlives_the_mode_outside() -> None:
    """Bad input: an error, and each takes its own mode along."""
    before, mine, its = Look(), Runs(), Runs()
    generator: Any = holding(its)
    with pytest.raises(ModeNotInnermost), mine:
        next(generator)
    assert current_modes() == (its,)
    generator.close()
    assert before.unchanged()
    assert core.neg(PLAIN).tolist() == [-1.0]


def test_tasks_that_take_turns() -> None:
    """7.6: modes belong to threads: an error in one, and nothing is left."""
    import asyncio

    before = Look()

    async def run(turns: int) -> None:
        with Runs():
            for _ in range(turns):
                await asyncio.sleep(0)

    async def both() -> list[Any]:
        return [*await asyncio.gather(run(1), run(3), return_exceptions=True)]

    first, second = asyncio.run(both())
    assert kind_of(first) is ModeNotInnermost
    assert second is None
    assert before.unchanged()
    del first
    assert nobody_entered()


def ended_elsewhere(generator: Any) -> Any:
    """Close a generator in another thread: what it raises, and what is there then."""
    found: list[Any] = []

    def end() -> None:
        mine, before = Runs(), Look()
        with mine:
            try:
                generator.close()
            except Exception as error:
                found.append(error)
            found.append(current_modes() == (mine,))
        found.append(before.unchanged())

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    return found


def test_modes_are_not_put_back_in_another_thread() -> None:
    """C1: where the garbage collector ends a generator, for instance."""
    before = Look()
    mode = Runs()
    mode.__enter__()
    generator: Any = holding(disable_current_modes())
    next(generator)
    error, *rest = ended_elsewhere(generator)
    assert kind_of(error) is PutAsideElsewhere
    assert str(error) == (
        "Modes were suspended in another thread than the one that restores them.\n"
        "  modes: Runs\n"
        "  to do: exit the context that suspends modes in the thread that entered it"
    )
    assert rest == [True, True]
    # Nobody brings it back; here nothing is entered, and so it is.
    assert before.unchanged()


def test_the_keys_outside_are_not_brought_to_another_thread(world: Ours) -> None:
    """C1: neither are those of a handler that has ended."""
    op = unary(world)
    kept: list[Any] = []

    def keeps(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        kept.extend(holding(enable_reentrant_dispatch()) for _ in range(2))
        for each in kept:
            next(each)
        [error, *rest] = ended_elsewhere(kept[1])
        assert kind_of(error) is OutsideOfHandler
        assert rest == [True, True]
        return leaves(world, who, func, types, args, kw)

    before = Look()
    op(world.made(world.subclass("A", answer=keeps)))
    assert before.unchanged()
    with pytest.raises(HandlerError, check=code("OutsideOfHandler")):
        kept[0].close()
    assert before.unchanged()


def test_what_puts_modes_aside_can_be_entered_inside_of_itself() -> None:
    """7.6: each block brings back what it found."""
    before, aside = Look(), disable_current_modes()
    with Runs() as outer:
        with aside as found:
            assert found == (outer,)
            with Runs() as inner, aside:
                assert current_modes() == ()
            assert current_modes() == ()
            assert inner not in current_modes()
        assert current_modes() == (outer,)
    assert before.unchanged()


def test_keys_that_change_while_modes_are_aside_stay() -> None:
    """7.6: only what modes include is brought back."""
    from everyorder.runtime.keys import LOCAL, DispatchKey

    before, guard = Look(), runtime.exclude_keys(DispatchKey.AutogradCPU)
    with Runs():
        with disable_current_modes():
            guard.__enter__()
        inside = LOCAL.view
        assert len(current_modes()) == 1
        guard.__exit__()
        assert LOCAL.view is not inside
    assert before.unchanged()
