"""Modes: the stack of a thread, what is on it when, and how it is put back."""

from contextlib import suppress
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import ops, python_dispatch
from everyorder.runtime.errors.torch_dispatch import ModeStackError
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import HANDLED, MODED, STATE
from everyorder.runtime.torch_dispatch import (
    TorchDispatchMode,
    current_mode,
    current_modes,
)
from tests.coded import code
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.thread_state import Look, nobody_entered
from tests.torch_dispatch.worlds import Ours, declines, leaves, runs

core: Any = ops.core


class Hearing(TorchDispatchMode):
    """Notes the names of operators."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.heard.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.spec("dispatch 7.6", "factories and plain tensors")
@pytest.mark.spec("dispatch 8.4", "test_torch_dispatch_mode_basic")
def test_factories_are_heard() -> None:
    """7.6: 8.4 test_torch_dispatch_mode_basic: what has no tensors has modes."""
    with Hearing() as mode:
        made = runtime.ones(2)
        made + made
    made + made
    assert mode.heard == ["core.ones.default", "core.add.default"]


def test_a_mode_hears_what_reads_an_element() -> None:
    """7.6: `item()` and `bool()` are operators, too."""
    x = runtime.tensor([3.0])
    with Hearing() as mode:
        assert x.item() == 3.0
        assert bool(x)
    assert x.item() == 3.0
    assert mode.heard == ["core._local_scalar_dense.default"] * 2


@pytest.mark.spec("dispatch 7.6", "before classes; introspection")
@pytest.mark.spec("dispatch 8.4", "test_get_cur_mode", "test_get_mode_stack")
@pytest.mark.spec("dispatch 8.4", "test_all_same_mode")
def test_introspection() -> None:
    """8.4 test_get_cur_mode, test_get_mode_stack, test_all_same_mode."""
    one, other = Hearing(), Hearing()
    assert (current_mode(), current_modes()) == (None, ())
    with one, other, one:
        assert current_mode() is one
        assert current_modes() == (one, other, one)
        assert python_dispatch.mode_at(0) is one
        assert python_dispatch.mode_at(1) is other
        assert python_dispatch.mode_at(-1) is one
    assert current_modes() == ()


@pytest.mark.spec("dispatch 7.6", "before classes; introspection")
@pytest.mark.parametrize(("depth", "place"), [(0, 0), (1, 1), (1, -2)])
def test_a_place_without_a_mode(depth: int, place: int) -> None:
    """7.6: an index that is too big."""
    modes = [Hearing() for _ in range(depth)]
    for mode in modes:
        mode.__enter__()
    with pytest.raises(ModeStackError, check=code("NoModeAtPlace")) as caught:
        python_dispatch.mode_at(place)
    for mode in modes:
        mode.__exit__()
    assert str(caught.value) == (
        f"There is no mode at place {place} of {depth}.\n"
        f"  modes: {'Hearing' if depth else 'none are entered'}"
    )


@pytest.mark.spec("dispatch 7.6", "before classes; introspection")
def test_the_innermost_of_none() -> None:
    """7.6: popping from an empty stack."""
    before = Look()
    with (
        pytest.raises(ModeStackError, check=code("EmptyModeStack")) as caught,
        python_dispatch.pop_mode_temporarily(),
    ):
        pass
    assert str(caught.value) == (
        "The innermost mode was requested, and no mode is entered.\n"
        "  modes: none are entered"
    )
    assert before.unchanged()


def test_putting_modes_aside_gives_them() -> None:
    """7.6: and they are back afterwards, also after an exception."""
    one, other = Hearing(), Hearing()
    with python_dispatch.disable_current_modes() as none:
        assert none == ()
    with one, other:
        before = Look()
        with suppress(KeyError), python_dispatch.disable_current_modes() as both:
            assert both == (one, other)
            assert not LOCAL.included & HANDLED
            raise KeyError
        assert before.unchanged()
        with suppress(KeyError), python_dispatch.pop_mode_temporarily() as last:
            assert last is other
            assert current_modes() == (one,)
            runtime.ones(1)
            raise KeyError
        assert before.unchanged()
    assert (one.heard, other.heard) == (["core.ones.default"], [])


def test_modes_are_heard_after_others_came_and_went_inside() -> None:
    """7.6: who puts modes aside, enters others and leaves them, changes nothing."""
    x = runtime.tensor([3.0])
    with Hearing() as mode:
        with python_dispatch.disable_current_modes(), Hearing():
            pass
        x.item()
    assert mode.heard == ["core._local_scalar_dense.default"]


@pytest.mark.spec("dispatch 7.6", "no_dispatch; making is hidden")
@pytest.mark.spec("dispatch 8.4", "test_torch_dispatch_mode_respects_no_dispatch")
def test_no_dispatch_also_hides_a_mode_that_is_entered_inside() -> None:
    """7.6: 8.4 test_torch_dispatch_mode_respects_no_dispatch."""
    with python_dispatch.no_dispatch(), Hearing() as mode:
        runtime.ones(1)
        runtime.tensor([3.0]).item()
    assert mode.heard == []


def test_a_handler_may_use_modes_of_its_own(world: Ours) -> None:
    """7.6: entered and left inside of it, they are no change; outer ones are heard."""
    op = unary(world)

    def helped(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        with world.mode("Helper"):
            return func(*args)

    x = world.made(world.subclass("A", answer=leaves))
    with world.mode("Outer"), world.mode("Inner", helped):
        before = Look()
        op(x)
        assert before.unchanged()
        # It holds the stack, and with it what is on it.
        del before
        assert runtime.tensor([3.0]).item() == 3.0
    heard = [line.partition(":")[0] for line in world.lines]
    assert heard[:4] == ["Inner", "Helper", "Outer", "A"]
    assert [line.partition("(")[0] for line in world.lines[4:]] == [
        "Inner: core._local_scalar_dense.default",
        "Helper: core._local_scalar_dense.default",
        "Outer: core._local_scalar_dense.default",
    ]
    assert nobody_entered()


def test_reading_is_heard_after_the_handler_used_modes(world: Ours) -> None:
    """7.6: a mode is still there after its handler entered and left another."""

    def helped(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        with world.mode("Helper"):
            pass
        return func(*args)

    op, x = unary(world), runtime.tensor([3.0])
    with world.mode("M", helped):
        op(x)
        x.item()
    assert [line.partition("(")[0] for line in world.lines] == [
        "M: f.default",
        "M: core._local_scalar_dense.default",
    ]


@pytest.mark.parametrize("outer", [0, 1])
def test_a_handler_that_leaves_a_mode_entered(world: Ours, outer: int) -> None:
    """Bad input: refused, and the modes are as before."""
    op, kept = unary(world), world.mode("Left")

    def enters(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        kept.__enter__()
        return leaves(world, who, func, types, args, kwargs)

    modes = [world.mode("Outer", declines)] * outer
    for mode in modes:
        mode.__enter__()
    before = Look()
    x = world.made(world.subclass("A", answer=enters))
    with pytest.raises(ModeStackError, check=code("ModeStackChanged")) as caught:
        op(x)
    assert before.unchanged()
    for mode in modes:
        mode.__exit__()
    assert str(caught.value) == (
        "`A.__torch_dispatch__` returned with other modes entered than at its "
        "call, Left;\n"
        "the modes before the call are restored.\n"
        "  modes: none are entered\n"
        "  to do: enter modes by `with`"
        if not outer
        else "`A.__torch_dispatch__` returned with other modes entered than at its "
        "call,\n"
        "Outer, Left; the modes before the call are restored.\n"
        "  modes: Outer\n"
        "  to do: enter modes by `with`"
    )
    del before, caught
    assert nobody_entered()


def test_a_mode_that_leaves_another_one(world: Ours) -> None:
    """Bad input: an outer mode that its handler leaves is back."""
    op, outer = unary(world), world.mode("Outer")

    def leaves_outer(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        outer.__exit__()
        return runs(world, who, func, types, args, kwargs)

    with outer, world.mode("Inner", leaves_outer):
        before = Look()
        with pytest.raises(ModeStackError, check=code("ModeStackChanged")) as caught:
            op(world.tensor(1.0))
        assert before.unchanged()
        assert caught.value.fields() == {
            "stack": ("Outer",),
            "handler": "Inner.__torch_dispatch__",
            "left": (),
        }
        assert " ".join(str(caught.value).split()) == (
            "`Inner.__torch_dispatch__` returned with other modes entered than at "
            "its call, none; the modes before the call are restored. modes: Outer "
            "to do: enter modes by `with`"
        )


def test_what_a_raising_handler_did_to_the_stack_is_undone(world: Ours) -> None:
    """Bad input: its exception goes on, the modes are as before."""
    op, kept = unary(world), world.mode("Left")

    def enters(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        kept.__enter__()
        raise KeyError("mine")

    x = world.made(world.subclass("A", answer=enters))
    before = Look()
    with pytest.raises(KeyError, match="mine") as caught:
        op(x)
    assert before.unchanged()
    del caught
    assert nobody_entered()


def test_leaving_in_the_wrong_order() -> None:
    """Bad input: refused, nothing is left, and in the right order all are."""
    one, other = Hearing(), Hearing()
    before = Look()
    one.__enter__()
    other.__enter__()
    inside = Look()
    with pytest.raises(ModeStackError, check=code("ModeNotInnermost")) as caught:
        one.__exit__()
    assert inside.unchanged()
    assert str(caught.value) == (
        "Hearing is exited, but Hearing is the innermost mode.\n"
        "  modes: Hearing, Hearing\n"
        "  to do: exit modes in the reverse of the order they were entered in, in "
        "the\n"
        "         thread that entered them"
    )
    other.__exit__()
    one.__exit__()
    assert before.unchanged()


def test_leaving_what_was_not_entered() -> None:
    """Bad input: refused."""
    with pytest.raises(ModeStackError, check=code("EmptyModeStack")) as caught:
        Hearing().__exit__()
    assert str(caught.value) == (
        "Hearing is exited, and no mode is entered in this thread.\n"
        "  modes: none are entered"
    )
    with Hearing() as entered:
        before = Look()
        with pytest.raises(ModeStackError, check=code("ModeNotInnermost")):
            Hearing().__exit__()
        assert before.unchanged()
        assert current_modes() == (entered,)


@pytest.mark.spec("dispatch 8.4", "test_exception_handling")
def test_the_stack_and_keys_after_a_mode() -> None:
    """8.4 test_exception_handling: of any exception, and of none."""
    before = Look()
    for error in (None, KeyError(), KeyboardInterrupt(), GeneratorExit()):
        try:
            with Hearing():
                assert STATE.stack
                assert MODED
                if error is not None:
                    raise error
        except BaseException as raised:
            assert raised is error  # noqa: PT017  # the very one
            del error
        assert before.unchanged()
    assert nobody_entered()


def test_a_mode_in_a_generator_stays_until_it_goes_on() -> None:
    """7.6: modes belong to threads: what a generator enters, its caller has, too."""

    def entering() -> Any:
        with Hearing() as mode:
            yield mode

    before = Look()
    generator = entering()
    mode = next(generator)
    assert current_modes() == (mode,)
    generator.close()
    assert before.unchanged()
