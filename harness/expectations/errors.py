"""What can be wrong with expect files themselves; a mismatch is not an error.

True only here: the reader of these errors is a person who edited, merged or moved
files, or a job that must not write.  Each text says which file and what to do.
"""

from dataclasses import dataclass

from harness.errors import HarnessError


@dataclass(eq=False, kw_only=True)
class DamagedExpectFile(HarnessError, ValueError):
    """An expect file cannot be read; `line` counts from 1."""

    source: str
    line: int
    reason: str
    found: str

    @property
    def damage(self) -> str:
        """The place and the line as found."""
        return (
            f"{self.source}:{self.line}: {self.reason}; the line reads {self.found!r}"
        )

    def render(self) -> str:
        """The place, the line as found, and the two ways out."""
        return (
            f"{self.damage}. "
            "Restore the file from version control, or accept what is observed now "
            "with --everyorder-update=all, which writes it anew."
        )


@dataclass(eq=False, kw_only=True)
class CannotReadExpectFile(HarnessError, OSError):
    """The system does not let an expect file be read, though it is there."""

    source: str
    reason: str

    def render(self) -> str:
        """The file and the system's reason."""
        return (
            f"{self.source} is there and cannot be read: {self.reason}. "
            "Make it a file that may be read, or remove it."
        )


@dataclass(eq=False, kw_only=True)
class CannotWriteExpectFile(HarnessError, OSError):
    """The system does not let expect files be written; `done` says which were."""

    source: str
    reason: str
    done: tuple[str, ...] = ()

    def render(self) -> str:
        """The file, the system's reason, and how far the writing came."""
        before = ", ".join(self.done)
        so_far = f"written before: {before}" if before else "no expect file was written"
        return f"{self.source} cannot be written: {self.reason}; {so_far}."


@dataclass(eq=False, kw_only=True)
class WritesForbidden(HarnessError, PermissionError):
    """Expect files were about to be written by a job of continuous integration."""

    variable: str
    value: str

    def render(self) -> str:
        """The variable that forbids it and where to do it instead."""
        return (
            f"expect files are never written while {self.variable}={self.value!r} is "
            "set. Accept the change on a developer's machine and commit the files, or "
            f"set {self.variable}=0 if this is one."
        )


@dataclass(eq=False, kw_only=True)
class BadScenarioPath(HarnessError, ValueError):
    """A scenario's path cannot be the path of a file below `expect/`."""

    path: str
    reason: str

    def render(self) -> str:
        """The path and what is wrong with it."""
        return f"no expect file can belong to the scenario {self.path!r}: {self.reason}"
