"""Both ends of a pytest run: its options, and the results that are written at its end.

`hooks.py` declares the flags; a flag has priority over the ini file, and an argument
in a test over both. At the end the process that writes reads the journal of every
process, killed ones included, writes all accepted documents at once, and reports expect
files without a scenario as stale.

Rules:
- a run whose strategy or budget is chosen by a flag may reach fewer states: it reports
  no stale entries, and cannot accept anything;
- under continuous integration accepting is refused if a flag requests it, and ignored
  if only the ini file does;
- a debugger needs the scenario in its own process;
- files are stale only if the run covered the catalogue: no part of it was deselected,
  ignored, interrupted or broken;
- a test that did not pass may not have reached all of its scenarios, and the scenarios
  of a skipped module are unknown: their files are not reported as stale;
- stale files, two tests with one scenario, and a damaged journal fail the run;
- the output is one line with the counts, the problems that it cannot express, and the
  notes on verdicts: guarantees, assumptions, skipped parts.
"""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import nan
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.base.columns import wrap_lines
from everyorder.harness.base.errors import FileError, HarnessError
from everyorder.harness.base.place import Place
from everyorder.harness.expectations import (
    FOLDER,
    InlineEdit,
    Store,
    parse,
    read_all,
    with_sharing,
)
from everyorder.harness.exploration.paths import is_below, path_of
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.processes.watch import (
    OPERATION_SECONDS,
    SCENARIO_SECONDS,
    Limits,
)
from everyorder.harness.report import ScenarioNotes, note_lines
from everyorder.harness.report.text import plural

ALL = "all"
NEW = "new"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Options:
    """The options that are in effect in this process."""

    update: str = NONE
    strategy: str = "auto"
    budget: float | None = None
    is_custom: bool = False
    limits: Limits = field(default_factory=Limits)
    in_process: bool = False

    @property
    def in_children(self) -> bool:
        """Return True if each scenario is explored in a separate child."""
        return CAN_FORK and not self.in_process

    @property
    def cannot_fork(self) -> bool:
        """Return True if children are requested, but this system cannot fork."""
        return not CAN_FORK and not self.in_process

    def accepts(self, scenario: str, node: str, *, only_new: bool) -> bool:
        """Return True if a mismatch of this scenario in this test is accepted."""
        if self.update in (NONE, ALL):
            return self.update == ALL
        if self.update == NEW:
            return only_new
        return node == self.update or fnmatchcase(scenario, self.update)


def options_of(config: pytest.Config) -> Options:
    """Read and check the options.

    Raises:
        pytest.UsageError: a value is invalid, or flags exclude each other; wrapped.
    """
    try:
        return _options_of(config)
    except pytest.UsageError as error:
        head = "ERROR: "  # pytest prints it before the text
        text = wrap_lines(str(error), head=head, indent="  ")
        raise pytest.UsageError(text.removeprefix(head)) from None


def _options_of(config: pytest.Config) -> Options:
    update = config.getoption("everyorder_update")
    strategy = config.getoption("everyorder_strategy")
    budget = config.getoption("everyorder_budget")
    is_custom = strategy is not None or budget is not None
    if update is not None:
        _check_update(config, update, is_custom)
    else:
        update = _ini_update(config)
    chosen = strategy or str(config.getini("everyorder_strategy"))
    _check_strategy(chosen)
    return Options(
        update=update,
        strategy=chosen,
        budget=budget if budget is not None else _ini_budget(config),
        is_custom=is_custom,
        limits=Limits(
            _limit(config, "operation_timeout", OPERATION_SECONDS),
            _limit(config, "timeout", SCENARIO_SECONDS),
        ),
        in_process=any(map(config.getoption, _DEBUGGING))
        or bool(config.getini("everyorder_in_process")),
    )


# Flags, by destination, that require exploration in the process of pytest itself.
_DEBUGGING = ("everyorder_in_process", "usepdb", "trace")


def _check_update(config: pytest.Config, update: str, is_custom: bool) -> None:
    error = _forbidden()
    if error is not None:
        raise pytest.UsageError(f"--everyorder-update: {error}")
    if is_custom:
        raise pytest.UsageError(
            "--everyorder-update writes down every state that is reached, so it does "
            "not go with --everyorder-strategy or --everyorder-budget, which may reach "
            "fewer; put a lasting choice into the ini file (everyorder_strategy, "
            "everyorder_budget)."
        )
    file = update.partition("::")[0]
    if "::" not in update and Path(config.invocation_params.dir, file).exists():
        raise pytest.UsageError(
            f"--everyorder-update took {update!r} for its value; write "
            f"'--everyorder-update=all {update}'."
        )


def _forbidden() -> Exception | None:
    # Imported late: most runs of most projects accept nothing and do not need it.
    from everyorder.harness.expectations.store import forbidden

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
    """Return a limit in seconds; None if 0 removes it."""
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
    """Return the number, or NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return nan


def _check_strategy(strategy: str) -> None:
    if strategy == "auto":
        return
    from everyorder.harness.base.errors import BadStrategy
    from everyorder.harness.engine import parse

    try:
        parse(strategy)
    except BadStrategy as error:
        raise pytest.UsageError(str(error)) from None


# Options of pytest, by destination, that select a part of the tests.
_SELECTING = (
    "keyword",
    "markexpr",
    "deselect",
    "ignore",
    "ignore_glob",
    "lf",
    "stepwise",
    "collectonly",
    "continue_on_collection_errors",
)

# Verdicts in the order in which the summary counts them.
_WORDS = {
    "unchanged": "as expected",
    "accepted": "accepted",
    "not written": "not written",
    "not compared": "compared with nothing (expect=False)",
    "missing": "missing",
    "changed": "changed",
    "stale": "with stale entries",
    "order": "order-dependent",
    "unpinned": "pinned for nothing",
    "law": "breaking a law",
    "nondeterminism": "flaky",
    "cut short": "cut short",
    "hidden": "with hidden state",
    "not fresh": "without a fresh system",
    "typo": "with a typing error",
    "vacuous": "vacuous",
    "crashed": "crashed",
    "hung": "hung",
    "skipped": "skipped",
}


@dataclass(slots=True)
class Summary:
    """The results of a run."""

    scenarios: int = 0
    states: int = 0
    transitions: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    # Expect files of an older format.
    old: int = 0
    written: int = 0
    deleted: int = 0
    # Source files with `expect=`.
    rewritten: int = 0
    stale: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    # Steps that fail whatever is active.
    silent: list[str] = field(default_factory=list)
    # Guarantees, assumptions, bounds, and skipped parts.
    notes: list[ScenarioNotes] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Return True if the run fails independently of its tests."""
        return bool(self.stale or self.problems)

    def line(self) -> str:
        """Return the one line with the counts."""
        counts = [
            f"{self.verdicts[verdict]} {word}"
            for verdict, word in _WORDS.items()
            if self.verdicts[verdict]
        ]
        text = (
            f"everyorder: {plural(self.scenarios, 'scenario')}, "
            f"{plural(self.states, 'state')}, "
            f"{plural(self.transitions, 'transition')}: "
            f"{', '.join(counts) or 'nothing explored'}"
        )
        for count, done in ((self.written, "written"), (self.deleted, "deleted")):
            if count:
                text += f"; {plural(count, 'expect file')} {done}"
        if self.rewritten:
            text += f"; {plural(self.rewritten, 'source file')} rewritten"
        return text

    def silent_line(self) -> str:
        """Return the line on steps that are never active, which may be a mistake."""
        steps = plural(len(self.silent), "step")
        verb = "fails" if len(self.silent) == 1 else "fail"
        hint = "`everyorder run` says which, and how"
        return f"{steps} {verb} whatever is active; {hint}"

    def old_line(self) -> str:
        """Return the line on expect files that should be rewritten."""
        has = "has" if self.old == 1 else "have"
        return (
            f"{plural(self.old, 'expect file')} {has} an older format, which is still "
            "read; --everyorder-update=all rewrites it"
        )

    def note_lines(self, width: int, *, verbose: bool) -> list[str]:
        """Return the notes on scenarios, as lines of at most this width."""
        return note_lines(sorted(self.notes), width=width, verbose=verbose)

    def details(self) -> list[str]:
        """Return stale files and problems, one a line."""
        lines = [
            f"stale: {name} does not belong to any scenario" for name in self.stale
        ]
        if lines:
            lines.append("  delete them: pytest --everyorder-update=all")
        return lines + self.problems


def finish(
    config: pytest.Config,
    options: Options,
    folder: Path,
    passed: Set[str],
    exitstatus: int,
) -> Summary:
    """Read the journal, write the accepted documents, and return the summary.

    `passed` are the ids of the tests that passed, in any process.
    """
    reading = read_all(folder)
    store = Store(config.rootpath)
    summary = Summary(problems=list(reading.damage))
    # A test that ran twice (on several workers, or again) counts by its last result.
    results: dict[str, dict[str, Any]] = {}
    claimed_twice: set[str] = set()
    for record in reading.records:
        if record["kind"] == "result":
            other = results.get(record["scenario"])
            if other is not None and other["node"] != record["node"]:
                claimed_twice.add(record["scenario"])
                one, two = sorted((record["node"], other["node"]))
                summary.problems.append(
                    f"{one} and {two} both explore {record['scenario']}; "
                    "give one another name"
                )
            results[record["scenario"]] = record
    for record in results.values():
        summary.scenarios += 1
        summary.states += record["states"]
        summary.transitions += record["transitions"]
        summary.silent += record["silent"]
        summary.old += record["old"]
        summary.notes.append(
            ScenarioNotes(record["scenario"], record["proven"], record["notes"])
        )
        if not record["accepted"]:
            summary.verdicts[record["verdict"]] += 1
    if interrupted := store.interrupted():
        summary.problems.append(interrupted)
    if not _found_target(options, results):
        summary.problems.append(
            f"--everyorder-update={options.update}: no such scenario was explored"
        )
    # A run of some of the tests, or one that lost records, proves no file to be stale.
    unknown: tuple[str, ...] = ()
    if _is_whole(config, exitstatus) and not reading.damage:
        unknown = _stale(store, results, reading.records, passed)
    accepted = {
        scenario: parse(record["document"], scenario)
        for scenario, record in results.items()
        if record["accepted"] and scenario not in claimed_twice
    }
    places = {
        scenario: Place(**record["inline"]["place"])
        for scenario, record in results.items()
        if record["inline"]
    }
    edits = [
        InlineEdit(scenario, places[scenario], at["before"], document)
        for scenario, document in accepted.items()
        if (at := results[scenario]["inline"])
    ]
    inline = with_sharing(edits, places)
    fileless = {edit.scenario for edit in inline}
    documents = {name: each for name, each in accepted.items() if name not in fileless}
    obsolete = unknown if options.update == ALL else ()
    touched: tuple[str, ...] = ()
    failed = False
    try:
        if accepted or obsolete:
            touched = store.apply({**documents, **dict.fromkeys(obsolete)}, inline)
    except HarnessError as error:
        failed = True
        # Files are replaced one by one, so some of them may be written by now.
        touched = error.done if isinstance(error, FileError) else ()
        summary.problems.append(f"not written: {error}")
    summary.deleted = len(set(map(store.name, obsolete)) & set(touched))
    in_folder = sum(name.startswith(f"{FOLDER}/") for name in touched)
    summary.rewritten = len(touched) - in_folder
    summary.written = in_folder - summary.deleted
    for scenario, record in results.items():
        if record["accepted"]:
            was_written = scenario in accepted and not failed
            is_done = was_written or store.name(scenario) in touched
            summary.verdicts["accepted" if is_done else "not written"] += 1
    summary.stale = tuple(
        store.name(name)
        for name in unknown
        if name not in obsolete or (failed and store.name(name) not in touched)
    )
    return summary


def _found_target(options: Options, results: dict[str, dict[str, Any]]) -> bool:
    """Return True if the one scenario to accept was explored."""
    return options.update in (ALL, NEW, NONE) or any(
        options.accepts(scenario, record["node"], only_new=False)
        for scenario, record in results.items()
    )


def _is_whole(config: pytest.Config, exitstatus: int) -> bool:
    """Return True if the run selected all tests, and was not interrupted."""
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return False
    if any(getattr(config.option, name, None) for name in _SELECTING):
        return False
    if config.option.maxfail and exitstatus != pytest.ExitCode.OK:
        return False
    start = config.invocation_params.dir
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        arguments = [Path(start, arg).resolve() for arg in config.args]
    else:
        arguments = [Path(config.rootpath, arg).resolve() for arg in config.args]
    root = config.rootpath
    patterns = config.getini("testpaths")
    folders = [path for each in patterns for path in root.glob(each)] or [root]
    required = [path.resolve() for path in folders]
    return all(
        any(path.is_relative_to(argument) for argument in arguments)
        for path in required
    )


def _stale(
    store: Store,
    results: dict[str, dict[str, Any]],
    records: Iterable[dict[str, Any]],
    passed: Set[str],
) -> tuple[str, ...]:
    current = set(results)
    spared: set[str] = set()
    for record in records:
        if record["kind"] == "collected":
            if record["deselected"]:
                return ()
            current.update(record["scenarios"])
            nodes = set(record["explorers"]) - passed
            spared.update(map(path_of, nodes))
        elif record["kind"] == "skipped":
            spared.add(path_of(record["node"]))
    # A scenario with `expect=` does not use its file.
    fileless = {name for name, record in results.items() if record["fileless"]}
    return tuple(
        name
        for name in store.stale(current - fileless)
        if name in fileless or not any(is_below(name, base) for base in spared)
    )
