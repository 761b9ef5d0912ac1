"""Conditions under which one scenario must get one verdict, with the same remarks.

Each *condition* is a fresh interpreter: its hash seed, the modules that it imported
before, the position of the scenario among others, and how often it was explored there.
`python -m tests.stability [--seeds N] [--all] [--whole]` prints the counts.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from everyorder.harness import Scenario, explore

ROOT = Path(__file__).parents[2]

# What a scenario is given, and how it is named in a table: its module and name.
Verdict = tuple[str, bool, tuple[str, ...]]

# Scenarios whose use fills a memo of another package, a lazy class, a weak set; and
# faulty ones, whose verdict must not change either.
NAMES = (
    *(f"lazy:{name}" for name in ("plugins_that_are_loaded_once", "a_table_by_type")),
    "memo:strptime",
    "memo:logger",
    "memo:fnmatch",
    "leaking:a_memo_of_an_answer",
    "leaking:the_names_that_ever_were",
    "zoo:once per process:107",
    "zoo:once per process:110",
    "zoo:class attribute:3023",
)
LONG_NAMES = (
    *NAMES,
    "deep:a_memo_by_the_active_names",
    "deep leaking:a_flag_for_one_order_of_three",
    "catalogue:tests.scenarios.test_teaching:one_key",
    "catalogue:tests.scenarios.test_registries:generic_function",
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to run a list of scenarios."""

    seed: int = 0
    imports: tuple[str, ...] = ()
    # How often each scenario is explored; the verdicts of all times are compared.
    times: int = 1
    backwards: bool = False
    worker: bool = False

    def __str__(self) -> str:
        parts = [f"seed {self.seed}", *(f"with {name}" for name in self.imports)]
        parts += [f"{self.times} times"] * (self.times > 1)
        parts += ["backwards"] * self.backwards + ["under xdist"] * self.worker
        return ", ".join(parts)


def whole_names() -> tuple[str, ...]:
    """Return the names of all registries of both zoos, and of the whole catalogue.

    A registry of the first zoo that fails by chance is left out: so is its verdict.
    """
    from tests.zoo.realistic.registries import all_specimens
    from tests.zoo.registries import SEEDS_TEST, entries

    return (
        *(f"realistic:{each.name}" for each in all_specimens()),
        *(
            f"zoo:{each.name.replace('/', ':')}"
            for each in entries(SEEDS_TEST)
            if not each.rate
        ),
        *(
            f"catalogue:{module}:{name}"
            for file in sorted((ROOT / "tests/scenarios").glob("test_*.py"))
            for module in [f"tests.scenarios.{file.stem}"]
            for name, value in vars(import_module(module)).items()
            if isinstance(value, Scenario)
        ),
    )


def scenario_of(name: str) -> Scenario:
    """Return the scenario of a name, built anew."""
    kind, _, rest = name.partition(":")
    if kind == "realistic":
        from tests.zoo.realistic import judge
        from tests.zoo.realistic.registries import all_specimens

        (specimen,) = (each for each in all_specimens() if each.name == rest)
        return judge.scenario_of(specimen)
    if kind == "catalogue":
        module, _, variable = rest.rpartition(":")
        scenario: Scenario = getattr(import_module(module), variable)
        return scenario
    if kind == "zoo":
        from tests.zoo.registries import entries

        group, _, seed = rest.partition(":")
        (entry,) = entries([int(seed)], group)
        return entry.build(entry.module).scenario(entry.name)
    if kind == "memo":
        from tests.stability.memos import MEMOS

        return MEMOS[rest]()
    from tests.systems import lazy_registries

    table = kind.upper().replace(" ", "_")
    build = getattr(lazy_registries, table)[rest]
    built: Scenario = build()
    return built


def verdicts(names: Sequence[str], times: int) -> dict[str, list[Verdict]]:
    """Return the verdicts of scenarios in this process, each so many times."""
    table: dict[str, list[Verdict]] = {}
    for name in names:
        scenario = scenario_of(name)
        for _ in range(times):
            report = explore(scenario)
            exploration = report.exploration
            remarks = tuple(
                sorted(f"{each.kind}: {each.text}" for each in exploration.caveats)
            )
            verdict = report.verdict, exploration.proven, remarks
            table.setdefault(name, []).append(verdict)
    return table


def verdicts_under(
    condition: Condition, names: Sequence[str]
) -> dict[str, list[Verdict]]:
    """Return the verdicts of scenarios in a fresh interpreter."""
    order = [*reversed(names)] if condition.backwards else [*names]
    command = [sys.executable, "-m", "tests.stability", "--here", json.dumps(order)]
    command += ["--times", str(condition.times)]
    for each in condition.imports:
        command += ["--import", each]
    if condition.worker:
        command += ["--worker"]
    environment = {**os.environ, "PYTHONHASHSEED": str(condition.seed)}
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise AssertionError(f"{condition}: {ran.stderr}")
    answer = json.loads(ran.stdout.splitlines()[-1])
    return {
        name: [(word, proven, tuple(lines)) for word, proven, lines in times]
        for name, times in answer.items()
    }


def differences(
    names: Sequence[str], conditions: Iterable[Condition]
) -> tuple[int, list[str]]:
    """Return the number of compared verdicts, and a line for each that differs."""
    first: dict[str, tuple[Condition, Verdict]] = {}
    lines: list[str] = []
    count = 0
    for condition in conditions:
        answer: Mapping[str, list[Verdict]] = verdicts_under(condition, names)
        for name, times in answer.items():
            for number, verdict in enumerate(times, 1):
                count += 1
                before, expected = first.setdefault(name, (condition, verdict))
                if verdict != expected:
                    lines.append(
                        f"{name}: {_text(expected)} ({before}), but {_text(verdict)} "
                        f"({condition}; time {number})"
                    )
    return count, lines


def _text(verdict: Verdict) -> str:
    word, proven, remarks = verdict
    return " | ".join((f"{word}{'' if proven else ', unproven'}", *remarks))
