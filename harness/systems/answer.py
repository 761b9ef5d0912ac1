"""What a use answered and what was observed, as values to compare.

True only here: which answers can be compared, and how.  An answer is kept and compared
with later ones, so it is written down at once in its canonical form, by exact types: a
list that the registry still holds would change with it and be equal to itself for ever,
and `True` would be equal to `1`.

Rules:
- what has not run yet is no answer (a generator, a coroutine): it is refused;
- what is observed is text: it goes into expect files and reports as it is.
"""

from collections.abc import (
    AsyncIterator,
    Hashable,
    ItemsView,
    Iterator,
    KeysView,
    ValuesView,
)
from inspect import isawaitable
from typing import Any

from harness.errors import NotAScenario
from harness.heap import canonical
from harness.scenario.mistakes import kind_of
from harness.scenario.step import UseStep

# What to write in place of what `observe` must not return.
_INSTEAD: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "text; does it lack a return?"),
    ((bytes, bytearray), "text: repr(...), or .decode() if it is one"),
    (dict, "text: '\\n'.join(f'{key}: {value}' for key, value in ...items())"),
    ((list, tuple, set, frozenset), "text: '\\n'.join(map(str, ...))"),
    (Iterator, "text: '\\n'.join(map(str, ...))"),
)


def checked_answer(use: UseStep, answer: Any, registry: object = None) -> Hashable:
    """The answer of a use as a value; text stays the text it is.

    What is in the registry, where the answer leads back to it, is no part of that.

    Raises:
        NotAScenario: it has not run yet, so that it cannot be compared.
    """
    if type(answer) is str:
        return answer
    if isinstance(answer, (KeysView, ValuesView, ItemsView)):
        answer = list(answer)
    if isinstance(answer, (Iterator, AsyncIterator)) or isawaitable(answer):
        raise NotAScenario(
            found=f"{kind_of(answer)}, returned by the use {use.text!r}",
            wanted="what it gives: list(...), or the result that is awaited",
        )
    return canonical(answer, unordered=use.unordered, registry=registry)


def checked_observation(seen: Any, *, unordered: bool) -> str:
    """What was observed; lines are sorted if their order does not count.

    Raises:
        NotAScenario: it is no text.
    """
    if isinstance(seen, str):
        # Not by its class, which may say otherwise of equality, or of itself.
        text = str.__str__(seen)
        return "\n".join(sorted(text.splitlines())) if unordered else text
    instead = "text: str(...)"
    for kinds, words in _INSTEAD:
        if isinstance(seen, kinds):
            instead = words
            break
    raise NotAScenario(found=f"{kind_of(seen)}, returned by observe", wanted=instead)


def checked_laws(told: Any) -> tuple[str, ...]:
    """What a check reported, one text for each broken law.

    Raises:
        NotAScenario: it is no list of texts.
    """
    if not told:
        return ()
    if isinstance(told, str):
        return (str.__str__(told),)
    try:
        return tuple(
            str.__str__(each if isinstance(each, str) else str(each)) for each in told
        )
    except TypeError:
        raise NotAScenario(
            found=f"{type(told).__name__}, returned by check",
            wanted="a list of texts, one for each broken law, or an empty one",
        ) from None
