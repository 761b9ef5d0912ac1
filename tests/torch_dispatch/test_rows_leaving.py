"""Leaving modes that are not the innermost ones: by `leave`, and by no other way."""

from itertools import permutations, product
from typing import Any, ClassVar

import pytest

from everyorder import runtime
from everyorder.runtime.errors.torch_dispatch import ModeStackError
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.torch_dispatch import TorchDispatchMode, current_modes, leave
from tests.coded import code
from tests.torch_dispatch.programs import unary
from tests.torch_dispatch.thread_state import Look, nobody_entered
from tests.torch_dispatch.worlds import Ours


class Named(TorchDispatchMode):
    def __init__(self, name: str, heard: list[str]) -> None:
        self.name = name
        self.heard = heard

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.heard.append(self.name)
        return func(*args, **(kwargs or {}))


class Fake(Named):
    infra: ClassVar[str | None] = "FAKE"


def entered(*classes: type[Named]) -> tuple[list[Any], list[str]]:
    heard: list[str] = []
    modes = [cls(str(number), heard) for number, cls in enumerate(classes)]
    for mode in modes:
        mode.__enter__()
    return modes, heard


KINDS = [*product((Named, Fake), repeat=1), (Named,) * 3, (Named, Fake, Named)]
ORDERS = [
    pytest.param(kinds, order, id=f"{'-'.join(k.__name__ for k in kinds)} {order}")
    for kinds in KINDS
    for order in permutations(range(len(kinds)))
]


@pytest.mark.parametrize(("kinds", "order"), ORDERS)
def test_modes_are_left_in_every_order(
    kinds: tuple[type[Named], ...], order: tuple[int, ...]
) -> None:
    """D1: those that are left are heard, and at the end the thread is as it was."""
    before = Look()
    modes, heard = entered(*kinds)
    here: list[Any] = [*current_modes()]
    for place in order:
        leave(modes[place])
        here.remove(modes[place])
        assert list(current_modes()) == here
        assert bool(LOCAL.included & HANDLED) == bool(here)
        heard.clear()
        runtime.ones(1)
        assert heard == [mode.name for mode in reversed(here)]
    assert before.unchanged()
    del here, modes
    assert nobody_entered()


def test_the_innermost_entry_of_a_mode_is_left() -> None:
    """7.6: one that was entered twice is left twice."""
    (one, other), _ = entered(Named, Named)
    one.__enter__()
    leave(one)
    assert current_modes() == (one, other)
    leave(one)
    leave(other)
    assert current_modes() == ()


def test_leaving_what_is_not_there() -> None:
    """Bad input: refused."""
    stranger = Named("stranger", [])
    with pytest.raises(ModeStackError, check=code("EmptyModeStack")) as caught:
        leave(stranger)
    assert str(caught.value) == (
        "Named is exited, and no mode is entered in this thread.\n"
        "  modes: none are entered"
    )
    (mode,), _ = entered(Named)
    before = Look()
    with pytest.raises(ModeStackError, check=code("ModeNotEntered")) as refused:
        leave(stranger)
    assert before.unchanged()
    assert str(refused.value) == (
        "Named is exited, and it is not entered in this thread.\n"
        "  modes: Named\n"
        "  to do: exit it once for each time that it was entered"
    )
    leave(mode)


def test_a_handler_may_not_leave_others(world: Ours) -> None:
    """Bad input: a mode that a handler leaves is back."""
    op, outer = unary(world), world.mode("Outer")

    def leaves_outer(
        world: Any, who: Any, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:
        leave(outer)
        return func(*args)

    with outer, world.mode("Middle"), world.mode("Inner", leaves_outer):
        before = Look()
        with pytest.raises(ModeStackError, check=code("ModeStackChanged")) as caught:
            op(world.tensor(1.0))
        assert before.unchanged()
    assert caught.value.stack == ("Outer", "Middle")
