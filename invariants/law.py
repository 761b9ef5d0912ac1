"""What a law is, and what it says when it is broken.

A law is one function with a name and a sentence; it looks at a frozen subject and lists
what it finds wrong.  It never raises and never repairs: a subject that cannot even be
read is reported like any other fault.

Rules:
- a law function returns findings `(where, expected, found)`, texts only, so that what
  is kept of a violation keeps no kernel alive;
- the name of a law is the name of its function, its sentence the first line of the
  docstring;
- `scope` says what it is about: a state, a step (before and after) or a whole run; a
  law of a state may look at one operator at a time (`per_operator`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Scope: TypeAlias = Literal["state", "step", "run"]

Finding: TypeAlias = tuple[str, str, str]
"""Where, what was expected there, what was found there."""

# More names than these would push the rest of a violation off the line.
NAMED_PLACES = 4


@dataclass(frozen=True, slots=True)
class Violation:
    """One law broken at one place."""

    law: str
    where: str
    expected: str
    found: str

    def __str__(self) -> str:
        return (
            f"{self.law} at {self.where}: expected {self.expected}, found {self.found}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """One law; `find` is its function, `check` what it says in violations."""

    name: str
    sentence: str
    scope: Scope
    find: Callable[[Any], list[Finding]]
    per_operator: bool = False

    def check(self, subject: Any) -> list[Violation]:
        """The violations of this law in `subject`; never raises."""
        try:
            findings = self.find(subject)
        except Exception as error:
            findings = [
                ("the whole subject", "something readable", type(error).__name__)
            ]
        return [Violation(self.name, *finding) for finding in findings]


def law(
    scope: Scope, *, per_operator: bool = False
) -> Callable[[Callable[[Any], list[Finding]]], Law]:
    """Decorator: make a law of a function that lists findings."""

    def make(function: Callable[[Any], list[Finding]]) -> Law:
        assert function.__doc__, "the sentence of a law is its docstring"
        sentence = function.__doc__.strip().partition("\n")[0]
        return Law(function.__name__, sentence, scope, function, per_operator)

    return make


def grouped(
    operator: object, differences: Iterable[tuple[str, str, str]]
) -> list[Finding]:
    """Findings of one operator; places that differ alike are reported together."""
    places: dict[tuple[str, str], list[str]] = {}
    for place, expected, found in differences:
        places.setdefault((expected, found), []).append(place)
    return [
        (f"{operator} at {_named(names)}", expected, found)
        for (expected, found), names in places.items()
    ]


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:NAMED_PLACES])
    left = len(names) - NAMED_PLACES
    return shown if left <= 0 else f"{shown} and {left} more"
