"""Forms and operators come and go in any order: a function runs what is there.

What a program means is decided when it is compiled, by the forms that are registered
then; which operator runs is decided when it runs.  The explorer of the harness plays
all short histories of two steps and two uses, and looks at what compiled functions do.
"""

from collections.abc import Callable, Hashable

import pytest

from everyorder import runtime
from everyorder.harness.engine import SystemBase, explore
from everyorder.runtime import Tensor
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    SpecialForm,
    Sugared,
    call_forms,
    compile_function,
    register_special_form,
    sugar_of_value,
)
from everyorder.runtime.script.emission.call_matching import forms_of_operator
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Function, Program

X = runtime.tensor([3.0])


def shown(x: Tensor) -> Tensor:
    """In Python it is this; a script means what is registered for it."""
    return x + 1


def asks_form(x: Tensor) -> Tensor:
    return shown(x)


def asks_operator(x: Tensor) -> Tensor:
    return runtime.ops.orders.scaled(x)  # type: ignore[no-any-return]  # as all of `ops`


def run(made: Function) -> str:
    """What a compiled function gives, or that it raises."""
    try:
        return str(call(made, (X,), {}).item())
    except EveryorderError:
        return "raises"


def compiled(function: Callable[..., object]) -> str:
    """What a function gives that is compiled now, or that it cannot be."""
    try:
        return run(compile_function(function, Program()))
    except EveryorderError:
        return "raises"


def form(operator: str) -> Callable[[], object]:
    """Let `shown` mean an operator of two equal arguments; gives what undoes it."""

    def emit(e: Emitter, arguments: Arguments) -> Sugared:
        (given,) = arguments.positional
        value = sugar_of_value(given.value(e))
        forms = forms_of_operator(operator)
        return call_forms(e, "shown", forms, Arguments((value, value)))

    return register_special_form(shown, SpecialForm("shown", emit, shown)).close


def negated() -> Callable[[], object]:
    """Let `orders::scaled` be a kernel that negates."""
    library = runtime.Library("orders", "FRAGMENT")
    library.define("scaled(Tensor x) -> Tensor", kernel=lambda x: -x)
    return library.close


class Programs(SystemBase):
    """Two things to register, and functions that were compiled before as uses."""

    uses = 2

    def __init__(self, *steps: Callable[[], Callable[[], object]]) -> None:
        self.made = steps
        self.steps = len(steps)
        self.live: list[Callable[[], object]] = []
        with runtime.Library("orders", "FRAGMENT") as library:
            library.define("scaled(Tensor x) -> Tensor", kernel=lambda x: x)
            self.known = compile_function(asks_operator, Program())

    def reset(self) -> None:
        while self.live:
            self.live.pop()()

    def collect(self) -> None:
        """Nothing here waits for it."""

    def do(self, step: int) -> object:
        self.live.append(self.made[step]())
        return self.live[-1]

    def undo(self, step: int, handle: object) -> None:
        assert callable(handle)
        self.live.remove(handle)
        handle()

    def use(self, use: int) -> Hashable:
        return (run(self.known), compiled(asks_form))[use]

    def observe(self) -> Hashable:
        return compiled(asks_form), compiled(asks_operator), run(self.known)


def test_what_runs_depends_on_what_is_registered() -> None:
    system = Programs(lambda: form("core::mul"), negated)
    try:
        found = explore(system, "walk:1+histories:3")
        assert not found.violations
        assert len(found.states) == 4
        handles = [system.do(0), system.do(1)]
        assert system.observe() == ("9.0", "-3.0", "-3.0")
        system.undo(1, handles[1])
        assert system.observe() == ("9.0", "raises", "raises")
        system.undo(0, handles[0])
        assert system.observe() == ("4.0", "raises", "raises")
    finally:
        system.reset()


def test_a_second_form_of_an_object_is_refused() -> None:
    close = form("core::mul")
    try:
        with pytest.raises(AlreadyRegistered, match="special forms: <function shown"):
            form("core::sub")
        assert compiled(asks_form) == "9.0"
    finally:
        close()
    assert compiled(asks_form) == "4.0"


class Stale(Programs):
    """A planted fault: what was compiled first is run ever after."""

    def __init__(self) -> None:
        super().__init__(lambda: form("core::mul"), negated)
        self.kept: str | None = None

    def reset(self) -> None:
        super().reset()
        self.kept = None

    def use(self, use: int) -> Hashable:
        self.kept = self.kept or compiled(asks_form)
        return self.kept

    def observe(self) -> Hashable:
        return self.kept or compiled(asks_form)


def test_a_stale_function_would_be_found() -> None:
    system = Stale()
    try:
        assert explore(system, "histories:2").violations
    finally:
        system.reset()
