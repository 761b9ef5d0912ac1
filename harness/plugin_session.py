"""The end of a run, in the one process that writes: accept, find stale files, tell.

True only here: the whole picture.  The journal of every process is read, killed ones
included; accepted documents are written in one go; and where the run covered the whole
catalogue, expect files that belong to nothing are stale.

Rules:
- a run covers the catalogue if nothing selected, ignored, interrupted or broke a part;
- a test that did not pass may not have reached all of its scenarios, and a module that
  was skipped has said nothing: their files are not called stale;
- stale files, two tests with one scenario, and a damaged journal fail the run;
- all is quiet but for one line with the counts, what that line cannot tell, and what
  stands beside the verdicts: guarantees, assumptions, what was skipped.
"""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.expectations import CannotWriteExpectFile, Store, parse, read_all
from harness.plugin_options import ALL, NEW, NONE, Options
from harness.plugin_path import is_below, path_of
from harness.report import Noted, told_briefly

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
    """What the end of a run found and did."""

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
    notes: list[Noted] = field(default_factory=list)

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
            f"everyorder: {_plural(self.scenarios, 'scenario')}, "
            f"{_plural(self.states, 'state')}, "
            f"{_plural(self.transitions, 'transition')}: "
            f"{', '.join(counts) or 'nothing explored'}"
        )
        for count, done in ((self.written, "written"), (self.deleted, "deleted")):
            if count:
                text += f"; {_plural(count, 'expect file')} {done}"
        return text

    def unseen(self) -> str:
        """How many steps are never active, which may not be what was meant."""
        steps = _plural(len(self.silent), "step")
        verb = "fails" if len(self.silent) == 1 else "fail"
        told = "`everyorder run` says which, and how"
        return f"{steps} {verb} whatever is active; {told}"

    def told(self, width: int) -> list[str]:
        """What stands beside the verdicts, as lines of at most this width."""
        return told_briefly(sorted(self.notes), width=width)

    def details(self) -> list[str]:
        """What the line cannot tell: files that are stale, and what went wrong."""
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
            Noted(record["scenario"], record["proven"], record["notes"])
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
        touched = error.done if isinstance(error, CannotWriteExpectFile) else ()
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


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
