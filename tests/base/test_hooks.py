"""Hooks: each is set once, by an area above, and all are set when all is loaded."""

from importlib import import_module
from typing import Any

import pytest

from everyorder.runtime.base import hooks
from everyorder.runtime.base.hooks import Hook

HOOKS = {name: hook for name, hook in vars(hooks).items() if isinstance(hook, Hook)}


@pytest.mark.parametrize("name", HOOKS)
def test_each_is_answered_when_all_is_loaded(name: str) -> None:
    for area in (
        "everyorder.runtime.bootstrap",
        "everyorder.runtime.jit",
        "everyorder.runtime.script.tracing",
    ):
        import_module(area)
    assert HOOKS[name].get() is HOOKS[name].answer
    assert len({hook.question for hook in HOOKS.values()}) == len(HOOKS)


def test_a_second_answer_is_refused_and_the_first_stays() -> None:
    hook: Hook[Any] = Hook("a function")
    hook.set(len)
    with pytest.raises(AssertionError, match="a function: answered already"):
        hook.set(import_module)
    assert hook.get() is len


def test_a_module_that_is_imported_anew_answers_again() -> None:
    """Ctrl-C behind the answer ends a first import; the next one must be possible."""
    hook: Hook[Any] = Hook("a function")
    hook.set(len)
    hook.set(max)
    assert hook.get() is max


def test_who_must_have_an_answer_is_told_that_there_is_none() -> None:
    with pytest.raises(AssertionError, match="a number: nobody has answered"):
        Hook[int]("a number").get()
