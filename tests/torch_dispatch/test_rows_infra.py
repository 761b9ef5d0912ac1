"""Infra modes: one place each, below all modes of users."""

from typing import ClassVar

import pytest

from everyorder import runtime
from everyorder.runtime.errors.torch_dispatch import ModeStackError
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.torch_dispatch import current_modes
from tests.coded import code
from tests.torch_dispatch.test_modes import Hearing
from tests.torch_dispatch.thread_state import Look


class Fake(Hearing):
    infra: ClassVar[str | None] = "FAKE"


class Functional(Hearing):
    infra: ClassVar[str | None] = "FUNCTIONAL"


@pytest.mark.spec("dispatch 7.6", "infra modes")
def test_infra_modes_are_asked_last_in_their_own_order() -> None:
    """7.6: one place each, below all others, whenever they were entered."""
    user, fake, functional = Hearing(), Fake(), Functional()
    with functional, user, fake:
        assert current_modes() == (fake, functional, user)
        runtime.ones(1)
    assert [user.heard, fake.heard, functional.heard] == [["core.ones.default"]] * 3
    with user, functional:
        with fake:
            assert current_modes() == (fake, functional, user)
        assert current_modes() == (functional, user)
        assert LOCAL.included & HANDLED == HANDLED
    assert current_modes() == ()
    assert not LOCAL.included & HANDLED


def test_an_infra_mode_may_outlive_those_that_were_there_before() -> None:
    """7.6: the keys stay included as long as there is any mode."""
    user, fake = Hearing(), Fake()
    user.__enter__()
    fake.__enter__()
    user.__exit__()
    assert LOCAL.included & HANDLED == HANDLED
    runtime.ones(1)
    fake.__exit__()
    runtime.ones(1)
    assert (user.heard, fake.heard) == ([], ["core.ones.default"])
    assert not LOCAL.included & HANDLED
    fake.__enter__()
    user.__enter__()
    fake.__exit__()
    runtime.ones(1)
    user.__exit__()
    assert (user.heard, fake.heard) == (["core.ones.default"], ["core.ones.default"])
    assert not LOCAL.included & HANDLED


@pytest.mark.spec("dispatch 7.6", "infra modes")
def test_a_place_that_is_taken() -> None:
    """7.6: at most one infra mode of each kind; refused, nothing changed."""
    with Fake():
        before = Look()
        with pytest.raises(ModeStackError, check=code("ModeSlotTaken")) as caught:
            Fake().__enter__()
        assert before.unchanged()
    assert str(caught.value) == (
        "Fake is entered, but Fake occupies the place FAKE.\n"
        "  modes: Fake\n"
        "  to do: exit the other one first"
    )


def test_a_place_that_does_not_exist() -> None:
    """Bad input: `infra` is one of three words."""

    class Elsewhere(Hearing):
        infra: ClassVar[str | None] = "ELSEWHERE"

    before = Look()
    with pytest.raises(ModeStackError, check=code("NoModeSlot")) as caught:
        Elsewhere().__enter__()
    assert before.unchanged()
    assert str(caught.value) == (
        "Elsewhere is entered, and there is no place ELSEWHERE for infra modes.\n"
        "  modes: none are entered\n"
        "  to do: let `infra` be None, FAKE, PROXY or FUNCTIONAL"
    )
