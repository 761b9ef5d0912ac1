"""What was found out about a registry: the data of which a scenario is printed.

True only here: the data.  Operations are source text, in which the registry is called
`registry` and what a step returned `result`; a remark becomes a `# TODO:` comment.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

# How a step ends: by this text, by what it returned, or not at all.
RETURNED = "<returned>"
Undo: TypeAlias = str | None


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step: what does it, and what undoes it (text, `RETURNED`, or None)."""

    do: str
    undo: Undo
    remark: str = ""


@dataclass(frozen=True, slots=True)
class UseDraft:
    """A use: what is asked, and whether its order follows that of registration."""

    ask: str
    unordered: bool = False
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario that was tried.

    `own` says whether the target is of the project itself, `guessed` whether arguments
    of `create` were; `lines` are what is observed; `remarks` stand above the scenario.
    """

    target: str
    create: str
    kind: Literal["class", "function", "object", "module"]
    registry: str
    own: bool
    guessed: bool
    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    steps: tuple[StepDraft, ...]
    uses: tuple[UseDraft, ...]
    lines: tuple[UseDraft, ...]
    remarks: tuple[str, ...] = ()
