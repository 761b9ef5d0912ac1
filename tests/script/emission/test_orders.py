"""Forms and operators come and go in any order: a function runs what is there.

What a program means is decided when it is compiled, by the forms that are registered
then; which operator runs is decided when it runs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import runtime
from harness.scenario import Scenario, step, use
from runtime.script.emission import (
    Arguments,
    Emitter,
    SpecialForm,
    Sugared,
    call_forms,
    compile_function,
    register_special_form,
    sugar_of_value,
)
from runtime.script.emission.calls import forms_of_operator
from runtime.script.program import Function, Program
from runtime.script.running import call

X = runtime.tensor([1.0, 2.0])


def shown(x: runtime.Tensor) -> runtime.Tensor:
    """In Python it is this; a script means what is registered for it."""
    return x + 1


def twice(x: runtime.Tensor) -> runtime.Tensor:
    return x + x


def asks_form(x: runtime.Tensor) -> runtime.Tensor:
    return shown(x)


def asks_operator(x: runtime.Tensor) -> runtime.Tensor:
    return runtime.ops.orders.scaled(x)


# What undoes what is done now: handles lead to the whole dispatcher, and what a system
# holds is read as its state.
HANDLES: dict[str, Callable[[], object]] = {}
KEPT: dict[str, Function] = {}


class Forms:
    """The forms of `shown`, and the operator `orders::scaled`, of this process."""

    def __init__(self) -> None:
        KEPT.clear()
        while HANDLES:
            HANDLES.popitem()[1]()

    def form(self, operator: str) -> Callable[[], object]:
        """Let `shown` mean an operator of two equal arguments."""

        def emit(e: Emitter, arguments: Arguments) -> Sugared:
            (value,) = [each.value(e) for each in arguments.positional]
            forms = forms_of_operator(operator)
            given = Arguments((sugar_of_value(value), sugar_of_value(value)))
            return call_forms(e, "shown", forms, given)

        made = register_special_form(shown, SpecialForm("shown", emit, shown))
        return _undoing(operator, made.close)

    def operator(self, kernel: Callable[[Any], Any]) -> Callable[[], object]:
        """Register the operator, with a kernel of Python's."""
        library = runtime.Library("orders", "FRAGMENT")
        library.define("scaled(Tensor x) -> Tensor", kernel=kernel)
        return _undoing("scaled", library.close)


def _undoing(key: str, close: Callable[[], object]) -> Callable[[], object]:
    HANDLES[key] = close
    return partial(_undo, key)


def _undo(key: str) -> None:
    HANDLES.pop(key)()


def _result(function: Any, of: Forms) -> str:
    """What a function that is compiled now gives, or the class of the error."""
    try:
        made = compile_function(function, Program())
        return str(call(made, (X,), {}).tolist())
    except Exception as error:  # any: it is what is observed
        return type(error).__name__


def _kept(of: Forms) -> str:
    """What a function that was compiled once gives now."""
    try:
        if "asks" not in KEPT:
            KEPT["asks"] = compile_function(asks_operator, Program())
        return str(call(KEPT["asks"], (X,), {}).tolist())
    except Exception as error:  # as above
        return type(error).__name__


def _state(of: Forms) -> str:
    results = [_result(each, of) for each in (asks_form, asks_operator)]
    return "\n".join(results)


def _is_live(of: Forms) -> None:
    """A function that was compiled before gives what one gives that is compiled now."""
    fresh, kept = _result(asks_operator, of), _kept(of)
    gone = {"UnknownAttribute", "OperatorGone", "UnknownOperator", "AttributeError"}
    assert fresh == kept or (fresh[0] != "[" and kept[0] != "["), (fresh, kept, gone)


# One operator at a time: it has one name.
operators = Scenario(
    step("form(core::mul)", lambda to: to.form("core::mul")),
    step("operator(neg)", lambda to: to.operator(lambda x: -x)),
    uses=[
        use("a function that was compiled before", _is_live),
        use("compile a call of the form", partial(_result, asks_form)),
    ],
    create=Forms,
    observe=_state,
    fingerprint=_state,
)

# Of two forms of one object the newest counts.
forms = Scenario(
    step("form(core::mul)", lambda to: to.form("core::mul")),
    step("form(core::sub)", lambda to: to.form("core::sub")),
    uses=[use("compile a call of the form", partial(_result, asks_form))],
    create=Forms,
    observe=partial(_result, asks_form),
    fingerprint=_state,
    order_dependent="the newest form counts",
)
