"""The plugin's options: on the command line, and as defaults in the ini file.

True only here: precedence and refusals.  The flags are declared by `everyorder`, which
needs nothing of ours for it.  A flag goes before the ini file; what a test asks for
itself goes before both.

Rules:
- a flag that changes how much is explored changes no expectation: strategy, guarantee
  and size are not compared then, and nothing can be accepted in such a run;
- under continuous integration accepting is refused where a flag asks for it, and
  ignored where only the ini file does;
- a debugger needs the scenario in its own process.
"""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import nan
from pathlib import Path

import pytest

from harness.child import CAN_FORK
from harness.watch import OPERATION_SECONDS, SCENARIO_SECONDS, Limits

ALL = "all"
NEW = "new"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Options:
    """The options as they hold in this process."""

    update: str = NONE
    strategy: str = "auto"
    budget: float | None = None
    by_hand: bool = False
    limits: Limits = field(default_factory=Limits)
    in_process: bool = False

    @property
    def apart(self) -> bool:
        """Whether each scenario is explored in a child of its own."""
        return CAN_FORK and not self.in_process

    @property
    def cannot_fork(self) -> bool:
        """Whether children were wanted, and cannot be had here."""
        return not CAN_FORK and not self.in_process

    def accepts(self, scenario: str, node: str, *, only_new: bool) -> bool:
        """Whether a mismatch of this scenario, explored by this test, is accepted."""
        if self.update in (NONE, ALL):
            return self.update == ALL
        if self.update == NEW:
            return only_new
        return node == self.update or fnmatchcase(scenario, self.update)


def options_of(config: pytest.Config) -> Options:
    """Read and check the options.

    Raises:
        pytest.UsageError: a value of no meaning, or flags that exclude each other.
    """
    update = config.getoption("everyorder_update")
    strategy = config.getoption("everyorder_strategy")
    budget = config.getoption("everyorder_budget")
    by_hand = strategy is not None or budget is not None
    if update is not None:
        _check_update(config, update, by_hand)
    else:
        update = _ini_update(config)
    chosen = strategy or str(config.getini("everyorder_strategy"))
    _check_strategy(chosen)
    return Options(
        update=update,
        strategy=chosen,
        budget=budget if budget is not None else _ini_budget(config),
        by_hand=by_hand,
        limits=Limits(
            _limit(config, "operation_timeout", OPERATION_SECONDS),
            _limit(config, "timeout", SCENARIO_SECONDS),
        ),
        in_process=any(map(config.getoption, _DEBUGGING))
        or bool(config.getini("everyorder_in_process")),
    )


# Flags, by destination, of what has to happen in the process of pytest itself.
_DEBUGGING = ("everyorder_in_process", "usepdb", "trace")


def _check_update(config: pytest.Config, update: str, by_hand: bool) -> None:
    error = _forbidden()
    if error is not None:
        raise pytest.UsageError(f"--everyorder-update: {error}")
    if by_hand:
        raise pytest.UsageError(
            "--everyorder-update writes down how much is explored, so it does not go "
            "with --everyorder-strategy or --everyorder-budget; put a lasting choice "
            "into the ini file (everyorder_strategy, everyorder_budget)."
        )
    file = update.partition("::")[0]
    if "::" not in update and Path(config.invocation_params.dir, file).exists():
        raise pytest.UsageError(
            f"--everyorder-update took {update!r} for its value; write "
            f"'--everyorder-update=all {update}'."
        )


def _forbidden() -> Exception | None:
    # Imported late: most runs of most projects accept nothing and need no more.
    from harness.expectations.store import forbidden

    return forbidden()


def _ini_update(config: pytest.Config) -> str:
    update = str(config.getini("everyorder_update"))
    if update not in (ALL, NEW, NONE):
        raise pytest.UsageError(
            f"everyorder_update in the ini file is none, new or all, not {update!r}."
        )
    return NONE if update != NONE and _forbidden() else update


def _ini_budget(config: pytest.Config) -> float | None:
    text = str(config.getini("everyorder_budget"))
    seconds = _number(text) if text else None
    if seconds is not None and not seconds > 0:  # NaN is neither
        raise pytest.UsageError(
            "everyorder_budget in the ini file is a number of seconds above 0, not "
            f"{text!r}."
        )
    return seconds


def _limit(config: pytest.Config, name: str, usual: float) -> float | None:
    """A limit in seconds; None where 0 lifts it."""
    flag: float | None = config.getoption(f"everyorder_{name}")
    if flag is not None:
        return flag or None
    text = str(config.getini(f"everyorder_{name}"))
    seconds = _number(text) if text else usual
    if not seconds >= 0:
        raise pytest.UsageError(
            f"everyorder_{name} in the ini file is a number of seconds, not {text!r}."
        )
    return seconds or None


def _number(text: str) -> float:
    """The number, NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return nan


def _check_strategy(strategy: str) -> None:
    if strategy == "auto":
        return
    from harness.engine import parse
    from harness.errors import UnknownStrategy

    try:
        parse(strategy)
    except UnknownStrategy as error:
        raise pytest.UsageError(str(error)) from None
