"""Hooks: each is set once, by an area above, and all are set when all is loaded."""

from importlib import import_module

import pytest

from runtime import hooks
from runtime.hooks import Hook

HOOKS = {name: hook for name, hook in vars(hooks).items() if isinstance(hook, Hook)}


@pytest.mark.parametrize("name", HOOKS)
def test_each_is_answered_when_all_is_loaded(name: str) -> None:
    for area in ("runtime.whole", "runtime.jit", "runtime.script.tracing"):
        import_module(area)
    assert HOOKS[name].get() is HOOKS[name].answer
    assert len({hook.question for hook in HOOKS.values()}) == len(HOOKS)


def test_a_second_answer_is_refused_and_the_first_stays() -> None:
    hook: Hook[int] = Hook("a number")
    hook.set(3)
    with pytest.raises(AssertionError, match="a number: answered already"):
        hook.set(4)
    assert hook.get() == 3


def test_who_must_have_an_answer_is_told_that_there_is_none() -> None:
    with pytest.raises(AssertionError, match="a number: nobody has answered"):
        Hook[int]("a number").get()
