"""How common mistakes are recognised."""

import functools
import gc
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness.scenario.mistakes import accepts


def _decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "nothing": lambda: None,
    "one": lambda one: None,
    "default": lambda one, two=2: None,
    "defaults only": lambda one=1, two=2: None,
    "any number": lambda *rest: None,
    "one and more": lambda one, *rest: None,
    "names": lambda **names: None,
    "name needed": lambda *, name: None,
    "name given": lambda one, *, name=1: None,
    "one name of two needed": lambda *, name, other=1: None,
    "positional": lambda one, /, two: None,
    "decorated": _decorated(lambda one: None),
    "method": "text".startswith,
    "partial": functools.partial(lambda one, two: None, 1),
    "class": dict,
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("count", range(4))
def test_what_a_function_takes_is_what_its_signature_says(
    function: str, count: int
) -> None:
    asked = FUNCTIONS[function]
    try:
        inspect.signature(asked).bind(*range(count))
        told = True
    except TypeError:
        told = False
    except ValueError:  # some builtins have none
        told = True
    assert accepts(asked, count) is told


@pytest.mark.parametrize("count", [0, 1])
def test_asking_changes_nothing_of_the_function(count: int) -> None:
    """Functions were given a `__dict__`, and told to change when they were called."""

    def function() -> None: ...

    bound = functools.partial(function)
    method = type("Owner", (), {"function": function})().function
    known = [gc.get_referents(each) for each in (function, bound)]
    for each in (function, bound, method):
        accepts(each, count)
    assert [gc.get_referents(each) for each in (function, bound)] == known
