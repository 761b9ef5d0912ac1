"""Errors of archives: what cannot be saved, and files that are not, or no longer, ones.

Who must act: whoever saves (`NotSaveable`), or whoever has the file; nothing of an
archive that raises has been run, and nothing of it stays.

Rules: `archive` is the path, or a word for a buffer; `member` is the file within.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class ArchiveError(EveryorderError):
    """Base of the errors of saving and loading."""


@dataclass(eq=False, kw_only=True)
class NotSaveable(ArchiveError, TypeError):
    """The value `found` at `place` has no form in an archive, for a `reason`."""

    place: str
    found: str
    reason: str
    hint: str = ""

    def render(self) -> str:
        """What cannot be saved, where it is, and what to do."""
        rows = [("to do", self.hint)] if self.hint else []
        text = f"{self.found} cannot be saved: {self.reason}."
        return page(text, ("at", self.place), *rows)


@dataclass(eq=False, kw_only=True)
class NotAnArchive(ArchiveError, ValueError):
    """The file is no archive of programs, for a `reason`."""

    archive: str
    reason: str

    def render(self) -> str:
        """The file and the reason."""
        return f"{self.archive} is no archive of a program: {self.reason}."


@dataclass(eq=False, kw_only=True)
class DamagedArchive(ArchiveError, ValueError):
    """A member of the archive breaks a rule of the format."""

    archive: str
    member: str
    reason: str

    def render(self) -> str:
        """The member, and what is wrong with it."""
        text = f"The archive {self.archive} is damaged: {self.reason}."
        return page(text, ("in", self.member))


@dataclass(eq=False, kw_only=True)
class NewerArchive(ArchiveError, ValueError):
    """The archive has a format `found` above what this reader knows."""

    archive: str
    found: int
    known: int

    def render(self) -> str:
        """Both numbers, and what to do."""
        text = f"{self.archive}: format {self.found}, this reader knows up to"
        hint = "Load it with a newer version, or save it again with this one."
        return page(
            f"{text} {self.known}: it may mean something else.", ("to do", hint)
        )


@dataclass(eq=False, kw_only=True)
class ArchiveTooLarge(ArchiveError, ValueError):
    """An archive has more of something than the reader takes."""

    archive: str
    what: str
    found: int
    limit: int

    def render(self) -> str:
        """What there is too much of, and the limit."""
        text = f"The archive {self.archive} is refused: {self.what}"
        return f"{text}, {self.found}, is above the limit of {self.limit}."


@dataclass(eq=False, kw_only=True)
class OperatorNotHere(ArchiveError, LookupError):
    """A program in the archive calls an operator that nobody has registered."""

    archive: str
    member: str
    operator: str

    def render(self) -> str:
        """The operator, who calls it, and what to do."""
        text = f"{self.archive} needs the operator {self.operator}, which is not here."
        hint = "Import what registers it, and load again."
        return page(text, ("called in", self.member), ("to do", hint))
