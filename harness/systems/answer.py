"""What a use answered, if it can be compared.

True only here: which answers are refused.  An answer is kept and compared with later
ones, so it must be hashable.  Lists, sets and dicts are copied: one that a registry
still holds would change with it and be equal to itself for ever.  An array has no
equality that is true or false.
"""

from collections.abc import Hashable
from typing import Any

from harness.errors import NotAScenario
from harness.scenario.step import UseStep


def checked_answer(use: UseStep, answer: Hashable) -> Hashable:
    """The answer; raises `NotAScenario` where it cannot be kept and compared."""
    frozen: Hashable = _frozen(answer)
    try:
        hash(frozen)
    except TypeError:
        raise NotAScenario(
            found=f"{type(answer).__name__}, returned by the use {use.text!r}",
            wanted="an answer that cannot change: text, a number, or a tuple of them",
        ) from None
    return frozen


def _frozen(answer: Any) -> Any:
    """The answer with values that cannot change for lists, sets and dicts."""
    if type(answer) in (list, tuple):
        return tuple(map(_frozen, answer))
    if type(answer) is set:
        return frozenset(answer)
    if type(answer) is dict:
        return tuple((_frozen(key), _frozen(each)) for key, each in answer.items())
    return answer
