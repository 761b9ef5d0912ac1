"""What a use answered, if it can be compared.

True only here: which answers are refused.  An answer is kept and compared with later
ones, so it must be hashable: a list that a registry still holds would change with it
and be equal to itself for ever; an array has no equality that is true or false.
"""

from collections.abc import Hashable

from harness.errors import NotAScenario
from harness.scenario.step import UseStep


def checked_answer(use: UseStep, answer: Hashable) -> Hashable:
    """The answer; raises `NotAScenario` where it cannot be kept and compared."""
    try:
        hash(answer)
    except TypeError:
        raise NotAScenario(
            found=f"{type(answer).__name__}, returned by the use {use.text!r}",
            wanted="an answer that cannot change: text, a number, or a tuple of them",
        ) from None
    return answer
