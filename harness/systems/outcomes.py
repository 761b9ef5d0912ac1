"""What a scenario's own function raised, and what follows from it.

True only here: which exceptions are outcomes.  An `Exception` is, and so are those that
are none by descent but mean the same: `pytest.fail`, a cancelled task, what other
frameworks raise.  `pytest.skip` skips the scenario (`ScenarioSkipped`).  Whoever wants
to end the process or the session (`KeyboardInterrupt`, `SystemExit`, `pytest.exit`) is
let through.

Rules:
- an outcome is a name and a text; addresses in it are left out, because they differ
  from run to run;
- nothing here keeps an exception: its frames hold registries and handles.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from unittest import SkipTest

from harness.errors import HarnessError

T = TypeVar("T")
P = ParamSpec("P")

# Their texts tell where the machine gave up, not what the registry did.
_OF_THE_MACHINE = (RecursionError, MemoryError)
# Whoever raises these wants to end the process, or what runs.
_ENDING = (KeyboardInterrupt, SystemExit, GeneratorExit)
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+")


@dataclass(eq=False, kw_only=True)
class ScenarioSkipped(HarnessError, SkipTest):
    """A step, a use or another function of a scenario skipped it.

    Test runners skip the test out of which it comes.
    """

    reason: str

    def render(self) -> str:
        """The reason as given."""
        return self.reason


class Outcome(Exception):
    """An outcome by its name and its text, in place of a `kind` that was raised."""

    def __init__(
        self, name: str, text: str, kind: type[BaseException] = BaseException
    ) -> None:
        super().__init__(name, text)
        self.name = name
        self.text = text
        self.kind = kind


def settled(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function whose exceptions are outcomes; they are `Exception` then.

    Raises:
        ScenarioSkipped: it skipped the scenario.
    """
    told: Exception
    try:
        return function(*args, **kwargs)
    except _ENDING:
        raise
    except BaseException as error:
        reason = skip_reason(error)
        if reason is not None:
            told = ScenarioSkipped(reason=reason)
        elif isinstance(error, Exception) or _is(error, "Exit"):
            raise
        else:
            told = Outcome(*told_of(error), type(error))
    # Raised here: the error is no context of what stands for it.
    raise told


def skip_reason(error: BaseException) -> str | None:
    """Why the scenario is skipped, if this says that it is; else None."""
    if isinstance(error, ScenarioSkipped):
        return error.reason
    if isinstance(error, SkipTest) or _is(error, "Skipped"):
        return _text(error)
    return None


def told_of(error: BaseException) -> tuple[str, str]:
    """The name of an error's class and its text, without addresses."""
    if isinstance(error, Outcome):
        return error.name, error.text
    if type(error) in _OF_THE_MACHINE:
        return type(error).__name__, ""
    return type(error).__name__, _ADDRESS.sub("at 0x...", _text(error))


def _text(error: BaseException) -> str:
    """What an error says of itself, or what it raised when it was asked."""
    try:
        return str.__str__(str(error))
    except _ENDING:
        raise
    except BaseException as broken:
        if _is(broken, "Exit"):
            raise
        return f"<no text: {type(broken).__name__}>"


def is_one_of(error: Exception, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether it is, or stands for, an error of one of these classes."""
    kind = error.kind if isinstance(error, Outcome) else type(error)
    return issubclass(kind, kinds)


def is_failed_check(error: BaseException) -> bool:
    """Whether an `assert` or a `pytest.fail` said it: something does not hold."""
    if isinstance(error, Outcome):
        return error.name == "Failed"
    return isinstance(error, AssertionError)


def _is(error: BaseException, name: str) -> bool:
    """Whether it is that outcome of pytest, which need not be imported."""
    outcomes = sys.modules.get("_pytest.outcomes")
    kind = getattr(outcomes, name, None)
    return kind is not None and isinstance(error, kind)
