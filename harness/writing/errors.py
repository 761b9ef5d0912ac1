"""What can be wrong with asking for a scenario: what was named, and where it goes.

True only here: the reader has just typed a command; each text says what to type.
"""

from dataclasses import dataclass

from harness.errors import HarnessError


@dataclass(eq=False, kw_only=True)
class NoTarget(HarnessError, LookupError):
    """What was named cannot be found or imported."""

    target: str
    reason: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """What was named, why it is none, and what comes close."""
        text = f"{self.target}: {self.reason}"
        if self.near:
            return f"{text}; did you mean {' or '.join(self.near)}?"
        return f"{text}. Name a class as in package.module:Class, or a module."


@dataclass(eq=False, kw_only=True)
class NothingRegisters(HarnessError, LookupError):
    """Nothing was found that looks like registering something."""

    target: str
    pairs: str
    tried: tuple[str, ...]
    near: tuple[str, ...]
    lost: tuple[str, ...] = ()

    def render(self) -> str:
        """What was looked for, what was tried in vain, and where it may be instead."""
        text = f"{self.target} has nothing that registers. Looked for: {self.pairs}."
        if self.lost:
            text += f" No call came back of: {'; '.join(self.lost)}."
        if self.tried:
            text += f" Tried, without effect: {'; '.join(self.tried)}."
        if self.near:
            text += f" These have such names: {', '.join(self.near)}."
        return text


@dataclass(eq=False, kw_only=True)
class CannotCreate(HarnessError, ValueError):
    """No arguments were found with which a fresh registry can be made."""

    target: str
    tried: tuple[str, ...]
    reason: str

    def render(self) -> str:
        """What was tried, and how it ended."""
        tried = ", ".join(self.tried)
        return (
            f"{self.target} could not be made: tried {tried}; the last said: "
            f"{self.reason}. Name a function without parameters that makes one, as in "
            "package.module:make."
        )


@dataclass(eq=False, kw_only=True)
class NotTried(HarnessError, ValueError):
    """The target acts on the machine."""

    target: str

    def render(self) -> str:
        """Why nothing was called."""
        return (
            f"{self.target} acts on files, processes or the network, so nothing of it "
            "is called to see what it does; write its scenario by hand."
        )


@dataclass(eq=False, kw_only=True)
class TrialEnded(HarnessError, RuntimeError):
    """The process in which it was tried did not come to a result."""

    target: str
    reason: str

    def render(self) -> str:
        """How it ended."""
        return (
            f"{self.target} could not be tried: {self.reason}. --timeout gives it "
            "more time."
        )


@dataclass(eq=False, kw_only=True)
class FileExists(HarnessError, FileExistsError):
    """There is a file already where the scenario was to be written."""

    file: str

    def render(self) -> str:
        """The file, and what writes over it."""
        return f"{self.file} is there already; --force writes over it."


@dataclass(eq=False, kw_only=True)
class CannotSave(HarnessError, OSError):
    """The file cannot be written."""

    file: str
    reason: str

    def render(self) -> str:
        """The file and the system's reason."""
        return f"{self.file} cannot be written: {self.reason}"
