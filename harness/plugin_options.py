"""The plugin's options: on the command line, and as defaults in the ini file.

True only here: names, precedence and refusals.  A flag goes before the ini file; what
a test asks for itself goes before both.

Rules:
- a flag that changes how much is explored changes no expectation: strategy, guarantee
  and size are not compared then, and nothing can be accepted in such a run;
- under continuous integration accepting is refused where a flag asks for it, and
  ignored where only the ini file does.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALL = "all"
NEW = "new"
NONE = "none"

_UPDATE_HELP = (
    "Accept what is observed: 'all' (the same as no value; gives up stale entries and "
    "files, too), 'new' (adds only), or one scenario by its path, a pattern of paths, "
    "or its test's id. Write the value with '='."
)
_STRATEGY_HELP = "How to explore: 'auto', or strategies joined by '+' (graph+walk:2)."
_BUDGET_HELP = "Seconds that one scenario may take; it is cut short, and fails, after."


@dataclass(frozen=True, slots=True)
class Options:
    """The options as they hold in this process."""

    update: str = NONE
    strategy: str = "auto"
    budget: float | None = None
    by_hand: bool = False

    def accepts(self, scenario: str, node: str, *, only_new: bool) -> bool:
        """Whether a mismatch of this scenario, explored by this test, is accepted."""
        if self.update in (NONE, ALL):
            return self.update == ALL
        if self.update == NEW:
            return only_new
        return node == self.update or fnmatchcase(scenario, self.update)


def add_options(parser: pytest.Parser) -> None:
    """Declare the flags and their ini twins."""
    group = parser.getgroup("everyorder", "everyorder: scenarios in every order")
    group.addoption(
        "--everyorder-update",
        nargs="?",
        const=ALL,
        metavar="all|new|SCENARIO",
        help=_UPDATE_HELP,
    )
    group.addoption("--everyorder-strategy", metavar="STRATEGY", help=_STRATEGY_HELP)
    group.addoption(
        "--everyorder-budget", type=_seconds, metavar="SECONDS", help=_BUDGET_HELP
    )
    parser.addini("everyorder_update", "none, new or all; see the flag.", default=NONE)
    parser.addini("everyorder_strategy", _STRATEGY_HELP, default="auto")
    parser.addini("everyorder_budget", _BUDGET_HELP, default="")


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
    )


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
    from harness.expectations.environment import forbidden

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
    try:
        return _seconds(text) if text else None
    except ValueError:
        raise pytest.UsageError(
            "everyorder_budget in the ini file is a number of seconds above 0, not "
            f"{text!r}."
        ) from None


def _seconds(text: str) -> float:
    """A time that something can be done in.  Raises `ValueError`."""
    seconds = float(text)
    if not seconds > 0:  # NaN is neither
        raise ValueError
    return seconds


# Argparse tells what was wanted by this name.
_seconds.__name__ = "number of seconds above 0"


def _check_strategy(strategy: str) -> None:
    if strategy == "auto":
        return
    from harness.engine import parse
    from harness.errors import UnknownStrategy

    try:
        parse(strategy)
    except UnknownStrategy as error:
        raise pytest.UsageError(str(error)) from None
