"""When a thread wakes by itself, and who has to wake it."""

from math import inf
from time import monotonic
from typing import Any

import pytest

from everyorder.runtime.rpc.transport.interface import Alarm


def test_a_busy_thread_is_not_woken() -> None:
    alarm = Alarm()
    assert not alarm.set(0.0)
    assert alarm.sleep() == 0.0


@pytest.mark.parametrize(
    ("asleep", "then", "woken"),
    [(None, 5.0, True), (50.0, 5.0, True), (5.0, 50.0, False), (5.0, None, False)],
)
def test_a_sleeping_thread_is_woken_for_what_is_earlier(
    asleep: float | None, then: float | None, woken: bool
) -> None:
    alarm = Alarm()
    alarm.set(asleep)
    seconds = alarm.sleep()
    assert seconds is None if asleep is None else 0 < (seconds or 0) <= asleep
    assert alarm.set(then) is woken
    alarm.awake()
    assert not alarm.set(0.0)


class _Interrupted(Alarm):
    """Another thread sets the alarm to one second at one step of falling asleep."""

    __slots__ = ("step", "woken")

    def __init__(self) -> None:
        object.__setattr__(self, "step", -1)
        object.__setattr__(self, "woken", False)
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        self._pass()

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name == "_at":
            self._pass()
        return value

    def _pass(self) -> None:
        step = self.step
        object.__setattr__(self, "step", step - 1)
        if step == 0:
            object.__setattr__(self, "woken", self.set(1.0))


class _Careless(_Interrupted):
    """It reads the alarm before it says that it is about to sleep."""

    __slots__ = ()

    def sleep(self) -> float | None:
        at = self._at
        self._asleep = inf if at is None else at
        return None if at is None else max(0.0, at - monotonic())


def overslept(alarm: _Interrupted, before: float | None, step: int) -> bool:
    """Whether the thread sleeps for longer than the alarm says, and nobody wakes it."""
    alarm.set(before)
    object.__setattr__(alarm, "step", step)
    seconds = alarm.sleep()
    return not (alarm.woken or (seconds is not None and seconds <= 1.0))


@pytest.mark.parametrize("before", [None, 100.0])
@pytest.mark.parametrize("step", range(3))
def test_set_at_any_step_of_falling_asleep(before: float | None, step: int) -> None:
    if (before, step) != (None, 2):  # that fewer steps
        assert not overslept(_Interrupted(), before, step)


def test_one_that_reads_before_it_says_so_is_caught() -> None:
    assert [overslept(_Careless(), 100.0, step) for step in range(2)] == [True, False]


def test_it_goes_off_once() -> None:
    alarm = Alarm()
    assert not alarm.rings()
    alarm.set(100.0)
    assert not alarm.rings()
    alarm.set(0.0)
    assert alarm.rings()
    assert not alarm.rings()
    assert alarm.sleep() is None


def test_none_turns_it_off() -> None:
    alarm = Alarm()
    alarm.set(0.0)
    alarm.set(None)
    assert not alarm.rings()
