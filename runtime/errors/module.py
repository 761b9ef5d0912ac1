"""Errors of modules: their members, their state, and what scripts make of them.

Who must act: whoever writes a module, or loads the state of one; all are `ModuleError`,
one class for each thing that one can do about it.

Rules: modules are named by their classes, and what was given by its type: an error
keeps neither alive.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class ModuleError(EveryorderError):
    """Base of the errors of modules."""


@dataclass(eq=False, kw_only=True)
class ModuleNotInitialized(ModuleError, AttributeError):
    """A member was given to a module of class `module` before there was a place."""

    module: str
    member: str

    def render(self) -> str:
        """The class, the member, and what to call first."""
        return page(
            f"`{self.member}` was given to a `{self.module}` that has no place for it.",
            ("to do", "call `super().__init__()` first"),
        )


@dataclass(eq=False, kw_only=True)
class UnfitMember(ModuleError, TypeError, KeyError):
    """A module of class `module` cannot have `member`, for a `reason`."""

    module: str
    member: str
    reason: str

    def render(self) -> str:
        """The member, the class, and the reason."""
        return f"`{self.member}` cannot be a member of `{self.module}`: {self.reason}."


@dataclass(eq=False, kw_only=True)
class NoSuchMember(ModuleError, AttributeError):
    """A module of class `module` has no `wanted`, as `path`; `near` is similar."""

    module: str
    wanted: str
    path: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """The class, what it lacks, and what is similar."""
        rows = [("similar", ", ".join(self.near))] if self.near else []
        return page(f"`{self.module}` has no {self.wanted} `{self.path}`.", *rows)


@dataclass(eq=False, kw_only=True)
class NoForward(ModuleError, NotImplementedError):
    """A module of class `module` was called, which does not say what it computes."""

    module: str

    def render(self) -> str:
        """The class and what to define."""
        return page(
            f"`{self.module}` was called and has no `forward`.",
            ("to do", "define `forward(self, ...)` in the class"),
        )


@dataclass(eq=False, kw_only=True)
class StateMismatch(ModuleError, RuntimeError):
    """A state does not fit a module of class `module`, which stays as it was.

    `missing` are names that the state lacks, `unexpected` are those that the module
    lacks, `unfit` are sentences about others.
    """

    module: str
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()

    def render(self) -> str:
        """The class, and the names by what is wrong with them."""
        rows = [
            ("missing", ", ".join(self.missing)),
            ("unexpected", ", ".join(self.unexpected)),
            *[("unfit", each) for each in self.unfit],
        ]
        told = [row for row in rows if row[1]]
        return page(f"The state does not fit `{self.module}`.", *told)


@dataclass(eq=False, kw_only=True)
class UnfitIndex(ModuleError, IndexError, TypeError):
    """A container of class `module` with `length` modules has none at `index`."""

    module: str
    index: str
    length: int

    def render(self) -> str:
        """The index, and which there are."""
        there = "it is empty" if not self.length else f"the last is {self.length - 1}"
        return f"`{self.module}` has no module at {self.index}; {there}."


@dataclass(eq=False, kw_only=True)
class NotScriptable(ModuleError, TypeError):
    """`found` cannot be compiled, or not be used as what is compiled is.

    `reason` says why, `hint` what can be done (it may be empty).
    """

    found: str
    reason: str
    hint: str = ""

    def render(self) -> str:
        """What it was, the reason, and what to do."""
        rows = [("to do", self.hint)] if self.hint else []
        return page(f"{self.found} is not for scripts: {self.reason}.", *rows)
