"""Every error that the harness raises on purpose, and their base.

True only here: an error is data.  A leaf is a keyword-only dataclass whose fields say
what happened; words exist only in `render`.  A violation is not an error: it is a
result (`harness.engine.Violation`); errors are for questions that cannot be asked.

Rules:
- a leaf is declared `@dataclass(eq=False, kw_only=True)` and defines `render`;
- a field never holds a system, a handle or another live object.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any


class HarnessError(Exception):
    """Base of all errors of `harness`; its fields say what happened."""

    def render(self) -> str:
        """The whole text shown to a person; every leaf defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not say what happened")

    def fields(self) -> dict[str, Any]:
        """The fields by name, in declaration order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]  # every leaf is a dataclass

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (type(self), self.fields())


def _rebuild(kind: type[HarnessError], values: dict[str, Any]) -> HarnessError:
    return kind(**values)


@dataclass(eq=False, kw_only=True)
class UnknownStrategy(HarnessError, ValueError):
    """A strategy was named that does not exist, or with a wrong parameter."""

    name: str
    known: tuple[str, ...]

    def render(self) -> str:
        """The name as written, and every strategy there is."""
        return (
            f"no strategy is called {self.name!r}; there are {', '.join(self.known)}. "
            "Join several by '+', as in 'graph+walk:2'."
        )


@dataclass(eq=False, kw_only=True)
class NoFingerprint(HarnessError, ValueError):
    """A proof on complete states was asked of a system that does not show them."""

    strategy: str

    def render(self) -> str:
        """What the strategy needs and what to use in its place."""
        return (
            f"{self.strategy!r} compares complete states, but the system's "
            "state() is None. Return the whole state from it, or explore with "
            "'walk:1' or 'kA:1', which need none."
        )


@dataclass(eq=False, kw_only=True)
class BadFingerprint(HarnessError, ValueError):
    """A fingerprint was seen to be something else than the complete state."""

    reason: str

    def render(self) -> str:
        """What was seen, and what a fingerprint is."""
        return (
            f"the system's state() cannot be a complete state: {self.reason}. "
            "Return all that later steps may read, copied into tuples and texts, or "
            "None where that cannot be had."
        )


@dataclass(eq=False, kw_only=True)
class NotSymmetric(HarnessError, ValueError):
    """Two steps that are told to be exchangeable are not."""

    one: str
    other: str
    reason: str

    def render(self) -> str:
        """Both steps, and what tells them apart."""
        return (
            f"{self.one} and {self.other} are told to be symmetric, and are not: "
            f"{self.reason}. Leave symmetric=True out, or make them alike; a use that "
            "asks for one of them tells them apart, too, and so does a value that is "
            "read as another thing."
        )


@dataclass(eq=False, kw_only=True)
class TooLarge(HarnessError, ValueError):
    """A plan is larger than anything that could be run."""

    what: str
    size: int
    limit: int

    def render(self) -> str:
        """The size, the limit and the way out."""
        return (
            f"{self.what} comes to {self.size:,}, above the limit of {self.limit:,}. "
            "Choose a smaller parameter or another strategy, or 'auto' with a budget."
        )


@dataclass(eq=False, kw_only=True)
class UnknownOperation(HarnessError, ValueError):
    """A history holds an operation that the system does not have."""

    history: tuple[int, ...]
    operation: int
    operations: int

    def render(self) -> str:
        """The operation, and those that there are."""
        return (
            f"operation {self.operation} of the history {list(self.history)} is none "
            f"of 0..{self.operations - 1}; was the scenario changed since?"
        )


@dataclass(eq=False, kw_only=True)
class BadReplayId(HarnessError, ValueError):
    """A replay id cannot be read, or belongs to something else."""

    text: str
    reason: str

    def render(self) -> str:
        """The id as written and what is wrong with it."""
        return f"replay id {self.text!r}: {self.reason}"


@dataclass(eq=False, kw_only=True)
class NotAScenario(HarnessError, TypeError):
    """A scenario was given something that it cannot be made of."""

    found: str
    wanted: str

    def render(self) -> str:
        """What was found and what belongs there."""
        return f"a scenario cannot take {self.found}; it wants {self.wanted}."


@dataclass(eq=False, kw_only=True)
class UnknownProbe(HarnessError, ValueError):
    """Tensors of a kind were asked for that there is not."""

    kind: str
    near: tuple[str, ...]
    known: tuple[str, ...]

    def render(self) -> str:
        """The kind as written, what is near, and all kinds."""
        near = f" Near: {', '.join(map(repr, self.near))}." if self.near else ""
        return (
            f"there are no tensors of kind {self.kind!r}.{near} Kinds: "
            f"{', '.join(map(repr, self.known))}; or name keys, as 'CPU+Tracer'."
        )
