"""Both ends of a pytest run: its options, and what is written and told at its end.

The flags are declared by `everyorder`, which needs nothing of ours for it; a flag goes
before the ini file, and what a test asks for itself before both.  In the end the one
process that writes reads the journal of every process, killed ones included, writes
what was accepted in one go, and calls expect files stale that belong to nothing.

A test's id has characters that no file may have on some system; in the path of a
scenario they are written as in a URL, so that two ids never meet in one path.

    tests/a/test_m.py::TestC::test_f[x/y]    a/test_m/TestC/test_f[x%2Fy]

Rules:
- a flag that changes how much is explored changes no expectation: strategy, guarantee
  and size are not compared then, and nothing can be accepted in such a run;
- under continuous integration accepting is refused where a flag asks for it, and
  ignored where only the ini file does;
- a debugger needs the scenario in its own process;
- files are stale only where the run covered the catalogue: nothing selected, ignored,
  interrupted or broke a part of it;
- a test that did not pass may not have reached all of its scenarios, and a module that
  was skipped has said nothing: their files are not called stale;
- stale files, two tests with one scenario, and a damaged journal fail the run;
- all is quiet but for one line with the counts, what that line cannot tell, and what
  stands beside the verdicts: guarantees, assumptions, what was skipped.
"""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import blake2b
from math import nan
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from everyorder.harness.base.errors import FileError, HarnessError
from everyorder.harness.expectations import Store, parse, read_all
from everyorder.harness.processes.child import CAN_FORK
from everyorder.harness.processes.watch import (
    OPERATION_SECONDS,
    SCENARIO_SECONDS,
    Limits,
)
from everyorder.harness.report import ScenarioNotes, brief_note_lines
from everyorder.harness.report.text import plural

# File systems take names of 255 bytes; suffixes and temporary names need some.
MOST_LETTERS = 120

# Beside letters, digits and `_.-~`, what every file system takes.
_SAFE = "[]=,+@ "


def source_and_name(node: str) -> tuple[str, str]:
    """The file of a test's id, and a scenario's name for the rest of it."""
    source, _, rest = node.partition("::")
    return source, "/".join(_part(part) for part in _parts(rest))


def path_of(node: str) -> str:
    """The path of the scenario that a test explores if it names none."""
    source, name = source_and_name(node)
    base = source.removesuffix(".py").removeprefix("tests/")
    return f"{base}/{name}" if name else base


def is_below(path: str, base: str) -> bool:
    """Whether a scenario's path is one that a test of this path may have explored."""
    if path == base or path.startswith(f"{base}/"):
        return True
    return path.startswith(f"{base}-") and path[len(base) + 1 :].isdigit()


def _parts(rest: str) -> list[str]:
    """The parts of an id; a parameter in brackets may hold '::' itself."""
    head, bracket, parameter = rest.partition("[")
    parts = head.split("::") if head else []
    if bracket and parts:
        parts[-1] += bracket + parameter
    return parts


def _part(part: str) -> str:
    written = quote(part, safe=_SAFE)
    if len(written) <= MOST_LETTERS:
        return written
    digest = blake2b(part.encode(), digest_size=8).hexdigest()
    return f"{written[:MOST_LETTERS]}-{digest}"


ALL = "all"
NEW = "new"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Options:
    """The options as they hold in this process."""

    update: str = NONE
    strategy: str = "auto"
    budget: float | None = None
    is_custom: bool = False
    limits: Limits = field(default_factory=Limits)
    in_process: bool = False

    @property
    def in_children(self) -> bool:
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


# Flags, by destination, of what has to happen in the process of pytest itself.
_DEBUGGING = ("everyorder_in_process", "usepdb", "trace")


def _check_update(config: pytest.Config, update: str, is_custom: bool) -> None:
    error = _forbidden()
    if error is not None:
        raise pytest.UsageError(f"--everyorder-update: {error}")
    if is_custom:
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
    from everyorder.harness.base.errors import BadStrategy
    from everyorder.harness.engine import parse

    try:
        parse(strategy)
    except BadStrategy as error:
        raise pytest.UsageError(str(error)) from None


# Options of pytest, by destination, that leave out a part of what there is.
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
    written: int = 0
    deleted: int = 0
    stale: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    # Steps that fail whatever is active.
    silent: list[str] = field(default_factory=list)
    # Guarantees, assumptions, bounds, and what was skipped.
    notes: list[ScenarioNotes] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the run fails, whatever its tests say."""
        return bool(self.stale or self.problems)

    def line(self) -> str:
        """The one line with the counts."""
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
        return text

    def silent_line(self) -> str:
        """The number of steps that are never active, which may be a mistake."""
        steps = plural(len(self.silent), "step")
        verb = "fails" if len(self.silent) == 1 else "fail"
        told = "`everyorder run` says which, and how"
        return f"{steps} {verb} whatever is active; {told}"

    def note_lines(self, width: int) -> list[str]:
        """The notes on scenarios, as lines of at most this width."""
        return brief_note_lines(sorted(self.notes), width=width)

    def details(self) -> list[str]:
        """Stale files and problems, one a line."""
        lines = [f"stale: {name} belongs to no scenario" for name in self.stale]
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
    """Read the journal, write what was accepted, and sum up.

    `passed` are the ids of the tests that passed, in whatever process.
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
        summary.notes.append(
            ScenarioNotes(record["scenario"], record["proven"], record["notes"])
        )
        if not record["accepted"]:
            summary.verdicts[record["verdict"]] += 1
    if not _found_target(options, results):
        summary.problems.append(
            f"--everyorder-update={options.update}: no such scenario was explored"
        )
    unknown: tuple[str, ...] = ()
    if _is_whole(config, exitstatus) and not reading.damage:
        unknown = _stale(store, results, reading.records, passed)
    documents = {
        scenario: parse(record["document"], scenario)
        for scenario, record in results.items()
        if record["accepted"] and scenario not in claimed_twice
    }
    gone = unknown if options.update == ALL else ()
    touched: tuple[str, ...] = ()
    failed = False
    try:
        if documents or gone:
            touched = store.apply({**documents, **dict.fromkeys(gone)})
    except HarnessError as error:
        failed = True
        touched = error.done if isinstance(error, FileError) else ()
        summary.problems.append(f"not written: {error}")
    summary.deleted = len(set(map(store.name, gone)) & set(touched))
    summary.written = len(touched) - summary.deleted
    for scenario, record in results.items():
        if record["accepted"]:
            there = scenario in documents and not failed
            is_done = there or store.name(scenario) in touched
            summary.verdicts["accepted" if is_done else "not written"] += 1
    summary.stale = tuple(
        store.name(name)
        for name in unknown
        if name not in gone or (failed and store.name(name) not in touched)
    )
    return summary


def _found_target(options: Options, results: dict[str, dict[str, Any]]) -> bool:
    """Whether the one scenario that is to be accepted was among those explored."""
    return options.update in (ALL, NEW, NONE) or any(
        options.accepts(scenario, record["node"], only_new=False)
        for scenario, record in results.items()
    )


def _is_whole(config: pytest.Config, exitstatus: int) -> bool:
    """Whether the run was asked for everything, and came to its end."""
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return False
    if any(getattr(config.option, name, None) for name in _SELECTING):
        return False
    if config.option.maxfail and exitstatus != pytest.ExitCode.OK:
        return False
    start = config.invocation_params.dir
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        asked = [Path(start, arg).resolve() for arg in config.args]
    else:
        asked = [Path(config.rootpath, arg).resolve() for arg in config.args]
    root = config.rootpath
    patterns = config.getini("testpaths")
    found = [path for each in patterns for path in root.glob(each)] or [root]
    wanted = [path.resolve() for path in found]
    return all(any(path.is_relative_to(folder) for folder in asked) for path in wanted)


def _stale(
    store: Store,
    results: dict[str, dict[str, Any]],
    records: Iterable[dict[str, Any]],
    passed: Set[str],
) -> tuple[str, ...]:
    known = set(results)
    spared: set[str] = set()
    for record in records:
        if record["kind"] == "collected":
            if record["deselected"]:
                return ()
            known.update(record["scenarios"])
            nodes = set(record["explorers"]) - passed
            spared.update(map(path_of, nodes))
        elif record["kind"] == "skipped":
            spared.add(path_of(record["node"]))
    return tuple(
        name
        for name in store.stale(known)
        if not any(is_below(name, base) for base in spared)
    )
