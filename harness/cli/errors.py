"""What can be wrong with a command: each text says what to type instead.

True only here: the reader has just typed a command.  None of these is about a scenario
that fails; that is a result, with an exit code of its own (`exit_code.py`).
"""

from dataclasses import dataclass

from harness.errors import HarnessError


@dataclass(eq=False, kw_only=True)
class NoScenarios(HarnessError, LookupError):
    """There is nothing to explore."""

    where: str

    def render(self) -> str:
        """Where was looked, and what a scenario is."""
        return (
            f"there are no scenarios in {self.where}. A scenario is a module-level "
            "`Scenario` of a file called test_*.py."
        )


@dataclass(eq=False, kw_only=True)
class SeveralScenarios(HarnessError, LookupError):
    """One scenario was asked for, and the name fits more."""

    wanted: str
    found: tuple[str, ...]

    def render(self) -> str:
        """All that fit."""
        names = ", ".join(self.found)
        return f"{self.wanted!r} fits several scenarios: {names}. Name one of them."


@dataclass(eq=False, kw_only=True)
class NotToAccept(HarnessError, LookupError):
    """Something was to be accepted that no scenario and no expect file is called."""

    wanted: str
    near: tuple[str, ...] = ()

    def render(self) -> str:
        """What was asked for, and what comes close to it."""
        text = f"--accept {self.wanted}: no scenario has this path, name or pattern"
        if self.near:
            return f"{text}; did you mean {' or '.join(self.near)}?"
        return f"{text}; `everyorder review` lists what can be accepted."


@dataclass(eq=False, kw_only=True)
class NotLoaded(HarnessError, LookupError):
    """A scenario was asked for, and none could be loaded from there."""

    wanted: str
    reasons: tuple[str, ...]

    def render(self) -> str:
        """Each reason on its own lines."""
        if not self.reasons:
            return f"there are no scenarios in {self.wanted}"
        return "\n".join((f"{self.wanted!r} could not be loaded:", *self.reasons))


@dataclass(eq=False, kw_only=True)
class CannotLoad(HarnessError, OSError):
    """The process that loads scenarios ended before it had begun."""

    how: str

    def render(self) -> str:
        """How it ended, and how to see more."""
        return (
            f"the process that loads the scenarios ended ({self.how}) before it had "
            "imported any of them; --in-process does without it"
        )


@dataclass(eq=False, kw_only=True)
class CannotWrite(HarnessError, OSError):
    """The folder of a report cannot be made or written."""

    folder: str
    reason: str

    def render(self) -> str:
        """The folder and the system's reason."""
        return f"no report can be written to {self.folder}: {self.reason}"


@dataclass(eq=False, kw_only=True)
class BadState(HarnessError, ValueError):
    """A list of steps that is none, or not of this scenario."""

    text: str
    steps: int

    def render(self) -> str:
        """The list as written, and what it may hold."""
        return (
            f"{self.text!r} is no list of steps: write numbers from 1 to {self.steps}, "
            "each at most once, joined by commas, as in '3,1'; '' is nothing."
        )


@dataclass(eq=False, kw_only=True)
class CannotReplay(HarnessError, LookupError):
    """A replay id is sound, but no history could be found for it."""

    text: str
    reason: str

    def render(self) -> str:
        """Why, and what to try."""
        return f"replay id {self.text}: {self.reason}"


@dataclass(eq=False, kw_only=True)
class SkipsItself(HarnessError, ValueError):
    """A scenario was to be played, and one of its functions skips it."""

    scenario: str
    reason: str

    def render(self) -> str:
        """Which scenario, and the reason it gave."""
        text = f"{self.scenario} cannot be played here: it skips itself"
        return f"{text}: {self.reason}" if self.reason else text


@dataclass(eq=False, kw_only=True)
class NotADispatcher(HarnessError, ValueError):
    """A table or a trace was asked of a scenario of another registry."""

    scenario: str
    option: str

    def render(self) -> str:
        """What only a dispatcher has."""
        return (
            f"{self.option} shows the inside of a dispatcher, and {self.scenario} is a "
            "scenario of another registry; without it, what is observed is shown."
        )


@dataclass(eq=False, kw_only=True)
class UnknownOperator(HarnessError, LookupError):
    """An operator that the default dispatcher does not have."""

    name: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The name and what comes close to it."""
        text = f"the default dispatcher has no operator {self.name!r}"
        if self.near:
            return f"{text}; did you mean {' or '.join(self.near)}?"
        return (
            f"{text}; those of a scenario are shown by the scenario's name or path, "
            "see `everyorder show --help`."
        )


@dataclass(eq=False, kw_only=True)
class CannotServe(HarnessError, RuntimeError):
    """A worker could not start; `reason` says why."""

    name: str
    reason: str

    def render(self) -> str:
        """Which worker, and why it did not."""
        return f"worker {self.name}".rstrip() + f" could not start: {self.reason}"
