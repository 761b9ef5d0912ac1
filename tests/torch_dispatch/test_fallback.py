"""Where a call leaves for Python, and that the thread is afterwards as it was."""

import gc
import weakref
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import ops, python_dispatch
from everyorder.runtime.errors.torch_dispatch import EndlessDispatch, HandlerError
from everyorder.runtime.keys import LOCAL, DispatchKey, include_keys
from everyorder.runtime.tensors.keys import HANDLED, STATE
from everyorder.runtime.torch_dispatch.context import Context
from tests.coded import code
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.thread_state import Look
from tests.torch_dispatch.worlds import Ours, leaves, runs

core: Any = ops.core
tensors: Any = runtime.Tensor


def answering(answer: Callable[[], Any]) -> Callable[..., Any]:
    return lambda world, who, func, types, args, kwargs: answer()


@pytest.mark.spec("dispatch 7.2", "the snapshot of the outermost call")
def test_the_snapshot_is_that_of_the_outermost_call(world: Ours) -> None:
    """7.2.1: kept while the call lasts; calls inside of it have the same."""
    op, seen = unary(world), []

    def inner(world: Any, who: Any, func: Any, *given: Any) -> Any:
        seen.append(STATE.snapshot)
        return leaves(world, who, func, *given)

    def outer(world: Any, who: Any, func: Any, *given: Any) -> Any:
        seen.append(STATE.snapshot)
        op(y)
        seen.append(STATE.snapshot)
        return leaves(world, who, func, *given)

    x, y = (
        world.made(world.subclass("A", answer=outer)),
        world.made(world.subclass("B", answer=inner)),
    )
    before = LOCAL.view
    op(x)
    assert seen == [before, before, before]
    assert STATE.snapshot is None
    with include_keys(DispatchKey.VmapMode):
        included = LOCAL.view
        seen.clear()
        op(y)
    assert seen == [included]
    assert included is not before


@pytest.mark.spec("dispatch 7.2", "who is found, and what is excluded")
def test_python_by_hand_and_nobody_to_ask(world: Ours) -> None:
    """7.2.2: neither a mode nor an argument with a handler."""
    op, before = unary(world), Look()
    with (
        include_keys(DispatchKey.Python),
        pytest.raises(HandlerError, check=code("NothingToHandle")) as caught,
    ):
        op(world.tensor(1.0))
    assert str(caught.value) == (
        "`everyorder_worlds.f.default` was dispatched to Python, but no mode is "
        "entered\nand no argument is of a class with a `__torch_dispatch__`.\n"
        "  to do: enter a mode instead of including the key Python"
    )
    assert before.unchanged()


@pytest.mark.spec("dispatch 7.2", "who is found, and what is excluded")
def test_the_keys_above_python_are_excluded(world: Ours) -> None:
    """7.2.2: bits 29 to 60; not Python itself, and not PythonDispatcher."""
    op, seen = unary(world), []
    x = world.made(
        world.subclass("A", answer=answering(lambda: seen.append(LOCAL.excluded)))
    )
    op(x)
    assert seen == [sum(1 << bit for bit in range(29, 61))]
    assert not seen[0] & DispatchKey.Python.bits
    assert not seen[0] & DispatchKey.PythonDispatcher.bits


@pytest.mark.spec("dispatch 7.2", "the raw sets inside of handlers")
def test_python_stays_in_and_the_handler_is_asked_again(world: Ours) -> None:
    """7.2.3: calling the operator on the same tensors asks the handler again."""
    op, left = unary(world), [3]

    def again(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        left[0] -= 1
        if left[0]:
            return func(*args)
        return leaves(world, who, func, types, args, kw)

    op(world.made(world.subclass("A", answer=again)))
    assert world.lines == ["A: f.default(A) types=(A)"] * 3


@pytest.mark.spec("dispatch 7.2", "reentrant dispatch")
@pytest.mark.spec("dispatch 8.4", "test_autograd_in_attr")
def test_reentrant_dispatch_records_inside_of_a_handler() -> None:
    """7.2.4: 8.4 test_autograd_in_attr: what is inside of a wrapper records its own."""

    class Holder(runtime.Tensor):
        inside: runtime.Tensor

        @staticmethod
        def __new__(cls: Any, inside: Any) -> Any:
            made = tensors._make_wrapper_subclass(cls, inside.shape)
            made.inside = inside
            return made

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = [x.inside if isinstance(x, Holder) else x for x in args]
            plain = func(*given)
            with python_dispatch.enable_reentrant_dispatch():
                recorded = func(*given)
            found.append((plain.requires_grad, recorded.requires_grad))
            return Holder(recorded)

    found: list[Any] = []
    leaf = runtime.tensor([3.0], requires_grad=True)
    y: Any = core.mul(Holder(leaf), Holder(leaf))
    assert found == [(False, True)]
    y.inside.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [6.0]


@pytest.mark.spec("dispatch 7.2", "reentrant dispatch")
def test_reentrant_dispatch_asks_the_modes_on_the_stack(world: Ours) -> None:
    """7.2.4: those outside of the one that is asked, and those entered inside."""
    op = unary(world)

    def again(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        view = LOCAL.view
        with world.reentrant():
            func(*args)
        assert LOCAL.view is view
        with world.mode("Late"), world.reentrant():
            func(*args)
        return leaves(world, who, func, types, args, kw)

    x = world.made(world.subclass("A"))
    with world.mode("Outer"), world.mode("Inner", again):
        op(world.tensor(1.0))
    assert [line.partition(":")[0] for line in world.lines] == [
        *("Inner", "Outer", "Late", "Outer")
    ]
    # Where the outermost call was made, there was no mode.
    world.lines.clear()
    left = [1]

    def late(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        with world.mode("Late", leaves), world.reentrant():
            assert LOCAL.included & HANDLED == HANDLED
            func(*args)
        left[0] -= 1
        return leaves(world, who, func, types, args, kw)

    x = world.made(world.subclass("B", answer=late))
    op(x)
    assert world.lines == ["B: f.default(B) types=(B)", "Late: f.default(B) types=(B)"]


@pytest.mark.spec("dispatch 7.2", "reentrant dispatch")
def test_reentrant_dispatch_outside_of_a_handler() -> None:
    """7.2.4: refused."""
    with (
        pytest.raises(HandlerError, check=code("OutsideOfHandler")) as caught,
        python_dispatch.enable_reentrant_dispatch(),
    ):
        pass
    assert str(caught.value) == (
        "`enable_reentrant_dispatch()` restores the state at the start of dispatch "
        "to\n"
        "Python, and no handler runs in this thread.\n"
        "  to do: call it inside of a `__torch_dispatch__`"
    )


RAISED = (KeyError, KeyboardInterrupt, GeneratorExit, SystemExit, RecursionError)


def inside_of(modes: list[Any], op: Any, x: Any) -> None:
    with ExitStack() as entered:
        for mode in modes:
            entered.enter_context(mode)
        op(x)


@pytest.mark.spec("dispatch 7.3", "exceptions of handlers")
@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("place", ["class", "mode", "inner", "nested", "rule"])
def test_what_a_handler_raises_goes_on(
    world: Ours, kind: type[BaseException], place: str
) -> None:
    """7.3: unchanged, from wherever; the thread is as before."""
    op, error = unary(world), kind("mine")

    def fails() -> Any:
        raise error

    failing = answering(fails)
    x, plain = world.made(world.subclass("A", answer=failing)), world.tensor(1.0)
    ruled = world.mode("M")
    world.rule(op, type(ruled), lambda *given: fails())
    modes, given = {
        "class": ([], x),
        "mode": ([world.mode("M", failing)], plain),
        "inner": ([world.mode("Outer"), world.mode("Inner", failing)], plain),
        "nested": ([world.mode("Outer", failing), world.mode("Inner")], plain),
        "rule": ([ruled], plain),
    }[place]
    before = Look()
    with pytest.raises(kind) as caught:
        inside_of(modes, op, given)
    assert caught.value is error
    assert before.unchanged()


@pytest.mark.spec("dispatch 5.7", "exceptions, and the thread restored")
def test_a_wrong_result_leaves_the_thread_as_it_was(world: Ours) -> None:
    """5.7: the result is judged when everything is back."""
    op, before = unary(world), Look()
    x = world.made(world.subclass("A", answer=answering(lambda: 3)))
    with pytest.raises(HandlerError, check=code("WrongHandlerResult")):
        op(x)
    with world.mode("Outer"):
        inside = Look()
        with (
            world.mode("Inner"),
            pytest.raises(HandlerError, check=code("WrongHandlerResult")),
        ):
            op(x)
        assert inside.rest[0] is LOCAL.view
    assert before.unchanged()


def endless(op: Any, x: Any) -> EndlessDispatch:
    before = Look()
    with pytest.raises(EndlessDispatch) as caught:
        op(x)
    assert before.unchanged()
    error = caught.value
    assert isinstance(error, RecursionError)
    assert type(error.__cause__) is RecursionError
    assert error.depth >= 32
    return error


@pytest.mark.spec("dispatch 7.2", "the raw sets inside of handlers")
def test_a_class_that_calls_itself_without_end(world: Ours) -> None:
    """7.2.3: one clear error, and it says which handler."""

    def again(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        return func(*args, **kw)

    op = unary(world)
    error = endless(op, world.made(world.subclass("A", answer=again)))
    assert (error.handler, error.operator) == (
        "A.__torch_dispatch__",
        "everyorder_worlds.f.default",
    )
    error.depth = 99
    assert str(error) == (
        "`A.__torch_dispatch__` handled `everyorder_worlds.f.default` inside of "
        "itself 99\n"
        "times, and Python's recursion ends there.\n"
        "  to do: call the operator on the wrapped tensor, or call\n"
        "         `super().__torch_dispatch__`, or call it inside of `no_dispatch()`"
    )


def test_a_mode_that_enters_itself_without_end(world: Ours) -> None:
    """7.6: as a class that calls itself."""

    def again(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        with who:
            return func(*args, **kw)

    op = unary(world)
    with world.mode("M", again):
        assert endless(op, world.tensor(1.0)).handler == "M.__torch_dispatch__"


def test_a_recursion_of_the_handler_s_own_is_not_touched(world: Ours) -> None:
    """7.3: an ordinary RecursionError goes on as it is."""

    def handle(count: int) -> int:
        return 1 + handle(count + 1)

    op = unary(world)
    x = world.made(world.subclass("A", answer=answering(lambda: handle(0))))
    with pytest.raises(RecursionError) as caught:
        op(x)
    assert type(caught.value) is RecursionError


def test_a_recursion_below_many_handlers_is_not_touched(world: Ours) -> None:
    """7.3: not every deep one is a recursion of handlers."""
    op = unary(world)

    def down(count: int) -> int:
        return 1 + down(count + 1)

    def falls(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        return runs(world, who, func, types, args, kw) if world.stack() else down(0)

    modes = [world.mode("M", falls) for _ in range(36)]
    for mode in modes:
        mode.__enter__()
    try:
        with pytest.raises(RecursionError) as caught:
            op(world.tensor(1.0))
    finally:
        for mode in reversed(modes):
            mode.__exit__()
    assert type(caught.value) is RecursionError


def test_the_error_of_endless_dispatch_keeps_nothing_alive(world: Ours) -> None:
    """D3: it lies in no frame of its own traceback."""

    def again(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        return func(*args, **kw)

    op, x = unary(world), world.made(world.subclass("A", answer=again))
    alive = weakref.ref(x)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(EndlessDispatch):
            op(x)
        del x
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("place", ["class", "mode"])
def test_a_handler_that_leaves_a_context_entered(
    world: Ours, place: str, raises: bool
) -> None:
    """C1: the thread is in the context that it was in before."""
    op, other = unary(world), Context("other")

    def enters(world: Any, who: Any, func: Any, types: Any, args: Any, kw: Any) -> Any:
        other.__enter__()
        if raises:
            raise KeyError("mine")
        return world.tensor(1.0)

    x, before = world.made(world.subclass("A", answer=enters)), Look()
    with suppress(KeyError):
        if place == "class":
            op(x)
        else:
            with world.mode("M", enters):
                op(world.tensor(1.0))
    assert before.unchanged()
    other.__exit__()
    assert before.unchanged()
    other.close()
