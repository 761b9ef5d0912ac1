"""Programs about modes, as those of `tests.torch_dispatch.programs`."""

from typing import Any

import pytest

from tests.torch_dispatch.programs import Program, many, unary
from tests.torch_dispatch.worlds import World, declines, leaves, runs


@pytest.mark.spec("dispatch 7.6", "factories and plain tensors")
@pytest.mark.spec("dispatch 8.4", "test_torch_dispatch_mode_basic")
@pytest.mark.spec("dispatch 8.4", "test_torch_dispatch_mode_unrelated_tensors")
def modes_hear_everything(world: World) -> None:
    """7.6: plain tensors and no tensors at all; `types` is empty.

    8.4 test_torch_dispatch_mode_basic, test_torch_dispatch_mode_unrelated_tensors.
    """
    f = unary(world)
    number = world.operator(
        "number(int n=0, *, bool q=False) -> int", lambda n=0, *, q=False: n
    )
    with world.mode("M"):
        f(world.tensor(1.0))
        world.note(repr(number(3)))
        world.note(repr(number(q=True)))


@pytest.mark.spec("dispatch 7.6", "off the stack while it is asked")
@pytest.mark.spec("dispatch 8.4", "test_nested_push_logging_tensor_mode")
@pytest.mark.spec("dispatch 8.4", "test_with_mode_created_separately")
@pytest.mark.spec("dispatch 8.4", "test_with_nested_modes", "test_get_cur_mode")
def modes_in_modes(world: World) -> None:
    """7.6: the innermost first, and it is off the stack while it is asked.

    8.4 test_nested_push_logging_tensor_mode, test_with_nested_modes, test_get_cur_mode,
    test_get_mode_stack, test_with_mode_created_separately.
    """
    f = unary(world)

    def tells(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        world.note(f"stack {world.stack()}")
        return runs(world, who, func, types, args, kwargs)

    outer, inner = world.mode("Outer", tells), world.mode("Inner", tells)
    x = world.tensor(1.0)
    with outer as entered:
        world.note(f"{entered is outer} {world.stack()}")
        f(x)
        with inner:
            world.note(f"{world.stack()}")
            f(x)
        f(x)
    world.note(f"{world.stack()}")
    f(x)


@pytest.mark.spec("dispatch 7.6", "a stack for each thread")
@pytest.mark.spec("dispatch 8.4", "test_nesting_same_mode", "test_all_same_mode")
def a_mode_twice(world: World) -> None:
    """7.6: an instance can be entered inside of itself.

    8.4 test_nesting_same_mode, test_all_same_mode.
    """
    f, mode = unary(world), world.mode("M")
    with mode, mode:
        world.note(f"{world.stack()}")
        f(world.tensor(1.0))
    world.note(f"{world.stack()}")


@pytest.mark.spec("dispatch 7.6", "off the stack while it is asked")
def a_mode_in_its_own_handler(world: World) -> None:
    """7.6: `with self` inside of the handler has it asked again."""
    f = unary(world)
    left = [3]

    def again(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        left[0] -= 1
        if left[0]:
            with who:
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    with world.mode("M", again):
        f(world.tensor(1.0))
        world.note(f"{world.stack()}")


@pytest.mark.spec("dispatch 7.6", "before classes; introspection")
@pytest.mark.spec("dispatch 8.4", "test_torch_dispatch_mode_subclass_priority")
def modes_before_classes(world: World) -> None:
    """7.6: 8.4 test_torch_dispatch_mode_subclass_priority."""
    op = many(world)
    a = world.subclass("A", answer=leaves)
    b = world.subclass("B", a, answer=leaves)
    one, other = world.made(a), world.made(b)
    with world.mode("M"):
        op(one, other)
        op(other, one)
    op(one, other)


@pytest.mark.spec("dispatch 7.3", "the innermost mode, then the classes")
@pytest.mark.spec("dispatch 9.2", "7 a mode that declines")
def a_mode_that_declines(world: World) -> None:
    """7.3: the outer mode is not asked, the classes are; 9.2.7."""
    f = unary(world)
    x = world.made(world.subclass("A", answer=leaves))
    with world.mode("Outer"), world.mode("Inner", declines):
        f(x)
        world.raises(lambda: f(world.tensor(1.0)), TypeError)
        world.note(f"{world.stack()}")


@pytest.mark.spec("dispatch 8.4", "test_notimplemented_mode")
def a_class_that_calls_again(world: World) -> None:
    """8.4 test_notimplemented_mode: 2 before, 1 after, 1 of the class."""
    f = unary(world)
    inside: list[Any] = []

    def unwraps(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        inside.append(1)
        return func(world.tensor(1.0))

    def declines_subclasses(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        world.note("before")
        if types:
            return NotImplemented
        result = func(*args, **kwargs)
        world.note("after")
        return result

    x = world.made(world.subclass("A", answer=unwraps))
    with world.mode("M", declines_subclasses):
        f(x)


@pytest.mark.spec("dispatch 7.3", "exceptions of handlers")
@pytest.mark.spec("dispatch 8.4", "test_exception_handling")
def handlers_that_raise(world: World) -> None:
    """7.3: 8.4 test_exception_handling: it goes on as it is, and all is as before."""
    f = unary(world)

    def fails(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        raise KeyError("mine")

    x = world.made(world.subclass("A", answer=fails))
    before = world.bits()
    world.raises(lambda: f(x), KeyError)
    world.note(str(world.bits() == before))
    with world.mode("Outer"), world.mode("Inner", fails):
        inside = world.bits()
        world.raises(lambda: f(world.tensor(1.0)), KeyError)
        world.note(f"{world.bits() == inside} {world.stack()}")
    try:
        with world.mode("M"):
            raise KeyError("mine")
    except KeyError:
        world.note(f"{world.bits() == before} {world.stack()}")


@pytest.mark.spec("dispatch 7.2", "the raw sets inside of handlers")
def keys_in_handlers(world: World) -> None:
    """7.2.3: the raw sets in a class's handler, in the last mode's and in another's."""
    f = unary(world)

    def tells(
        world: World, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        world.note(" ".join(map(hex, world.bits())))
        return leaves(world, who, func, types, args, kwargs)

    x = world.made(world.subclass("A", answer=tells))
    world.note(" ".join(map(hex, world.bits())))
    f(x)
    with world.mode("Outer", tells):
        world.note(" ".join(map(hex, world.bits())))
        f(world.tensor(1.0))
        with world.mode("Inner", tells):
            f(world.tensor(1.0))
    with world.mode("M", declines):
        f(x)
    world.note(" ".join(map(hex, world.bits())))


@pytest.mark.spec("dispatch 7.6", "no_dispatch; making is hidden")
@pytest.mark.spec("dispatch 8.4", "test_torch_dispatch_mode_respects_no_dispatch")
def hidden_modes(world: World) -> None:
    """7.6: modes put aside, all or the innermost.

    8.4 test_torch_dispatch_mode_respects_no_dispatch.
    """
    f = unary(world)
    x = world.made(world.subclass("A", answer=leaves))
    with world.mode("Outer"), world.mode("Inner"):
        with world.without_modes():
            world.note(f"without {world.stack()}")
            f(x)
        with world.without_innermost():
            world.note(f"but one {world.stack()}")
            f(x)
        with world.no_dispatch():
            world.note(f"none {world.stack()}")
            f(x)
        world.note(f"again {world.stack()}")
        f(x)


@pytest.mark.spec("dispatch 7.6", "rules for one operator and class")
def rules(world: World) -> None:
    """7.6: a rule for an operator and a class of modes stands before its method."""
    f = unary(world)
    other = world.operator("other(Tensor x) -> Tensor", lambda x: world.tensor(2.0))
    mode = world.mode("M")

    def rule(
        mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        world.heard(f"rule for {type(mode).__name__}", func, types, args, kwargs or {})
        return func(*args)

    world.rule(f, type(mode), rule)
    with mode:
        f(world.tensor(1.0))
        other(world.tensor(1.0))


PROGRAMS: tuple[Program, ...] = (
    modes_hear_everything,
    modes_in_modes,
    a_mode_twice,
    a_mode_in_its_own_handler,
    modes_before_classes,
    a_mode_that_declines,
    a_class_that_calls_again,
    handlers_that_raise,
    keys_in_handlers,
    hidden_modes,
    rules,
)
