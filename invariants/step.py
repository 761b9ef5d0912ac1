"""A step: the states before and after, and what was meant to happen.

True only here: how two states are compared.  What is the same object on both sides is
not looked into, so a step costs what it touched.

`tokens` are the registrations that an add made live or a removal ended; None where the
caller does not know them, in which case the laws ask only that nothing happened in the
other direction.

======== ==================================================================
change   what was played
======== ==================================================================
add      registrations that succeeded
remove   registrations that were closed
fail     registrations that were refused
use      calls and look-ups
again    a registration or library that was closed a second time
======== ==================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from invariants.live import replaced
from runtime.dispatch.state import DispatcherState, OperatorEntry
from runtime.dispatch.token import Token

Change: TypeAlias = Literal["add", "remove", "fail", "use", "again"]

Row: TypeAlias = tuple[str, str, Sequence[Any], Sequence[Any]]
"""Operator (empty: the state's own), part, what stood there and what stands there."""


@dataclass(slots=True)
class Step:
    """What step laws look at; made by `step_of`, and not changed after that.

    `came` and `went` are the tokens that are live on one side only, as each place
    tells it; `rows` are the sequences of tokens that are not the same object; `quiet`
    are the entries that were replaced although no token of theirs came or went.
    """

    before: DispatcherState
    after: DispatcherState
    change: Change
    tokens: tuple[Token, ...] | None
    came: list[Token] = field(default_factory=list)
    went: list[Token] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    quiet: list[tuple[str, OperatorEntry, OperatorEntry]] = field(default_factory=list)

    def compare(
        self, operator: str, part: str, before: Sequence[Any], after: Sequence[Any]
    ) -> None:
        """Take in one sequence of tokens, as it was and as it is."""
        if before is not after:
            self.rows.append((operator, part, before, after))
            self.came += [token for token in after if token not in before]
            self.went += [token for token in before if token not in after]

    def compare_operators(
        self, text: str, before: OperatorEntry | None, after: OperatorEntry | None
    ) -> None:
        """Take in one operator; None where it does not exist."""
        moved = len(self.came) + len(self.went)
        old = {} if before is None else before.implementations
        new = {} if after is None else after.implementations
        if new is not old:
            fresh = 0
            for key, kernels in new.items():
                known = old.get(key, ())
                if known is not kernels:
                    fresh += not known
                    self.compare(text, key.name, known, kernels)
            if len(old) > len(new) - fresh:
                for key, kernels in old.items():
                    if key not in new:
                        self.compare(text, key.name, kernels, ())
        held = () if before is None else before.definitions
        now = () if after is None else after.definitions
        if held is not now:
            self.compare(text, "definitions", held, now)
        kept = () if before is None else before.reservations
        left = () if after is None else after.reservations
        if kept is not left:
            self.compare(text, "reservations", kept, left)
        ruled = () if before is None else before.rules
        rules = () if after is None else after.rules
        if ruled is not rules:
            self.compare(text, "rules", ruled, rules)
        if before and after and len(self.came) + len(self.went) == moved:
            self.quiet.append((text, before, after))


def step_of(
    before: DispatcherState,
    after: DispatcherState,
    change: Change,
    tokens: tuple[Token, ...] | None = None,
) -> Step:
    """The step from one published state to the next."""
    step = Step(before, after, change, tokens, [], [], [], [])
    if before.claims is not after.claims:
        step.compare("", "claims", before.claims, after.claims)
    if before.subscriptions is not after.subscriptions:
        step.compare("", "listeners", before.subscriptions, after.subscriptions)
    if before.fallbacks is not after.fallbacks:
        step.compare("", "fallbacks", before.fallbacks.tokens, after.fallbacks.tokens)
    old, new = before.namespaces, after.namespaces
    for namespace, operators in new.items():
        held = old.get(namespace, {})
        if held is operators:
            continue
        fresh = len(operators)
        for text in replaced(held, operators):
            known = held.get(text)
            fresh -= known is None
            step.compare_operators(text, known, operators[text])
        if fresh < len(held):
            for text in held.keys() - operators.keys():
                step.compare_operators(text, held[text], None)
    for namespace in old.keys() - new.keys():
        for text, entry in old[namespace].items():
            step.compare_operators(text, entry, None)
    return step
