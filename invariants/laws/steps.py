"""Laws of a step: it does what it says, where it says, and nothing else.

True only here: two states are compared.  What a step leaves alone must be the very
same object before and after; that is how a registration is shown not to touch its
neighbours, at no cost.
"""

from invariants.law import Finding, law
from invariants.live import (
    differing,
    entry_reading,
    listed,
    reading,
    shown,
)
from invariants.step import Step
from runtime.dispatch.token import Token


@law("step")
def a_failed_step_changes_nothing(step: Step) -> list[Finding]:
    """A registration that is refused leaves every part of the state as it was."""
    return _unchanged(step)


@law("step")
def a_use_changes_nothing(step: Step) -> list[Finding]:
    """A call or a look-up leaves every part of the state as it was."""
    return _unchanged(step)


@law("step")
def closing_twice_changes_nothing(step: Step) -> list[Finding]:
    """Closing what is closed leaves every part of the state as it was."""
    return _unchanged(step)


@law("step")
def an_add_adds_exactly_its_tokens(step: Step) -> list[Finding]:
    """A registration makes its own tokens live, and no other token comes or goes."""
    return _exactly(step.tokens, ("came", step.came), ("ended", step.went))


@law("step")
def a_removal_removes_exactly_its_tokens(step: Step) -> list[Finding]:
    """A removal ends its own tokens, and no other token comes or goes."""
    return _exactly(step.tokens, ("ended", step.went), ("came", step.came))


@law("step")
def the_newest_kernel_comes_first(step: Step) -> list[Finding]:
    """A new kernel stands before all kernels that its key already had."""
    found = []
    for operator, part, before, after in step.rows:
        if operator and part not in ("definitions", "reservations", "rules"):
            fresh = [token for token in after if token not in before]
            wanted = [*fresh, *(token for token in after if token in before)]
            if wanted != list(after):
                found.append((f"{operator} at {part}", listed(wanted), listed(after)))
    return found


@law("step")
def survivors_keep_their_order(step: Step) -> list[Finding]:
    """What stays registered stays in the order in which it stood."""
    found = []
    for operator, part, before, after in step.rows:
        wanted = [token for token in before if token in after]
        kept = [token for token in after if token in before]
        if wanted != kept and part != "reservations":
            where = f"{operator}, {part}" if operator else f"the {part}"
            found.append((where, listed(wanted), listed(kept)))
    return found


@law("step")
def bystanders_are_left_alone(step: Step) -> list[Finding]:
    """An operator that a step does not name is the same, save for fallbacks."""
    found: list[Finding] = []
    settled = step.before.fallbacks is step.after.fallbacks
    for text, old, new in step.quiet:
        if settled:
            found.append((text, "the entry of before", "another entry"))
            continue
        before, after = entry_reading(old), entry_reading(new)
        found += [
            (f"{text}, {part}", "as before", "changed")
            for part in before
            if part not in ("table", "masks") and before[part] != after[part]
        ]
    return found


def _unchanged(step: Step) -> list[Finding]:
    before, after = reading(step.before), reading(step.after)
    return [
        (part, shown(old, "as before"), shown(new, "changed"))
        for part, old, new in differing(before, after)
    ]


def _exactly(
    tokens: tuple[Token, ...] | None,
    own: tuple[str, list[Token]],
    other: tuple[str, list[Token]],
) -> list[Finding]:
    found = []
    if other[1]:
        found.append((f"tokens that {other[0]}", "nothing", listed(other[1])))
    if tokens is not None and set(own[1]) != set(tokens):
        found.append((f"tokens that {own[0]}", listed(tokens), listed(own[1])))
    return found
