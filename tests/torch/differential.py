"""Our dispatcher against the real one: dumps byte for byte, over random histories.

True only here: what "the same" means.  After every single step and removal, on both
sides: the step is taken by both or by none, the dumped state is equal byte for byte,
and our *live* table is torch's *recomputed* one (torch's live one cannot be read, and
is known to be stale at times).  Where we deviate by decision, `predictions` says
how, and what is asked for is exactly that; nothing else passes.

How it works: the sides run in step; a step of which one side takes no part by
prediction is taken back on the other, and the history goes on.  What a refusal leaves
behind in torch is compared with its prediction and then taken down.  In the end of each
history both sides must have nothing left, ours by fingerprint.

`python -m tests.torch.differential [SCENARIOS [SEED]]` prints how far it got.
"""

import random
import sys
from dataclasses import dataclass
from typing import Any

from everyorder.runtime.dispatch.state import fingerprint
from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.keys import SLOTS, DispatchKey, kernel_key, members
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from tests.torch.bindings import load_torch
from tests.torch.coverage import Coverage
from tests.torch.language import SchemaWriter, damaged
from tests.torch.predictions import (
    ACCEPTED,
    LEFTOVERS,
    PRINTED,
    REFUSED,
    STEPS_ACCEPTED,
    STEPS_REFUSED,
    TABLES,
    Shown,
)
from tests.torch.reference import torch_accepted_keys, torch_builtin_fallbacks
from tests.torch.scenarios import Scenario, ScenarioWriter, all_keys
from tests.torch.sides import OurSide, TorchSide
from tests.torch.steps import (
    TorchDefine,
    TorchDefineInferred,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
    TorchStep,
)

# Fixed, so that a difference is found again; what they cover is asserted by a test.
SCENARIOS, SCHEMAS, SEED = 5_000, 6_000, 2_013
_KIND_OF = {
    TorchDefine: "definition by schema",
    TorchDefineInferred: "definition by name",
    TorchDefineWithKernel: "definition with kernel",
    TorchFallback: "fallback",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the sides differ and nobody predicted it, or the reverse."""

    scenario: Scenario
    position: int
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        steps = "\n".join(f"  {i}: {s}" for i, s in enumerate(self.scenario.steps))
        played = self.scenario.history[: self.position + 1]
        history = ", ".join(map(str, played))
        return (
            f"{self.what} of {self.scenario.operator} after {history}\n{steps}\n"
            f"expected:\n{self.expected}\nfound:\n{self.found}"
        )


class Differential:
    """Plays scenarios on both sides; `differences` and `coverage` are the outcome."""

    def __init__(self) -> None:
        self._readable = frozenset(torch_accepted_keys())
        self.coverage = Coverage(self._readable)
        self.differences: list[Difference] = []
        self._ours = OurSide()
        self._torch = TorchSide()
        self._builtin = {
            each.key: f"{'fallthrough ' * each.is_fallthrough}{each.debug}"
            " [backend fallback]"
            for each in torch_builtin_fallbacks()
        }
        self._clean = fingerprint(self._ours.start)

    def play(self, scenario: Scenario) -> None:
        """Run one scenario on both sides, comparing after each operation."""
        self.coverage.numbers["scenarios"] += 1
        self.coverage.constructs.update(scenario.constructs)
        live: dict[int, tuple[Any, Any]] = {}
        for position, entry in enumerate(scenario.history):
            if entry >= 0:
                self._do(scenario, position, live)
            elif ~entry in live:
                ours, torch = live.pop(~entry)
                self._ours.undo(ours)
                self._torch.undo(torch)
            else:  # the step was refused
                continue
            self._compare(scenario, position, live)
        found = fingerprint(self._ours.dispatcher.snapshot())
        if found != self._clean or live:
            self._differ(scenario, len(scenario.history), "rest", "nothing", str(found))

    def _do(
        self, scenario: Scenario, position: int, live: dict[int, tuple[Any, Any]]
    ) -> None:
        number = scenario.history[position]
        step, operator = scenario.steps[number], scenario.operator
        taken = self._taken(scenario, live)
        before = self._shown(operator)
        torch = self._torch.do(step, operator)
        if torch is None:
            self._check_leftovers(scenario, position, before, taken)
        ours = self._ours.do(step, operator)
        if torch is None and ours is None:
            self.coverage.numbers["steps that both refuse"] += 1
            return
        if ours is not None:
            self._count(step, shared=torch is not None)
        predictions = STEPS_ACCEPTED if torch is None else STEPS_REFUSED
        fired = [each.__name__ for each in predictions if each(step, self._readable)]
        self.coverage.predictions.update(fired)
        expected = "refused" if (torch is None) != bool(fired) else "taken"
        if (ours is None) != (expected == "refused"):
            found = "refused" if ours is None else "taken"
            self._differ(scenario, position, "verdict", expected, found)
        if torch is not None and ours is not None:
            live[number] = (ours, torch)
        elif torch is not None:
            self._torch.undo(torch)
        else:
            self._ours.undo(ours)

    def _check_leftovers(
        self, scenario: Scenario, position: int, before: Shown, taken: dict[str, str]
    ) -> None:
        step = scenario.steps[scenario.history[position]]
        after = self._shown(scenario.operator)
        fired = [each.__name__ for each in LEFTOVERS if each(step, before, taken)]
        if bool(fired) != (after != before):
            self._differ(scenario, position, "leftover", str(fired), after.state)
        self.coverage.predictions.update(fired)
        self._torch.forget(scenario.operator)
        if self._shown(scenario.operator) != before:
            self._differ(scenario, position, "clean-up", before.state, "something else")

    def _compare(
        self, scenario: Scenario, position: int, live: dict[int, tuple[Any, Any]]
    ) -> None:
        self.coverage.numbers["comparisons of both dumps"] += 1
        state, table = self._ours.dumps(scenario.operator)
        shown = self._shown(scenario.operator)
        expected = self._expected_state(scenario, shown.state, live)
        if state != expected:
            self._differ(scenario, position, "state", expected, state)
        slots = dict(shown.table)
        taken = self._taken(scenario, live)
        for predict in TABLES:
            changed = predict(Shown(shown.state, slots), taken)
            self.coverage.predictions[predict.__name__] += changed != slots
            slots = changed
        expected = "".join(
            f"{key.name}: {slots[key.name]}\n" for key in SLOTS if key.name in slots
        )
        if table != expected:
            self._differ(scenario, position, "table", expected, table)
        entry = self._ours.entry(scenario.operator)
        if entry is not None:
            self.coverage.table(entry)

    def _expected_state(
        self, scenario: Scenario, state: str, live: dict[int, tuple[Any, Any]]
    ) -> str:
        """Torch's state with its schema as we print it."""
        defined = [getattr(scenario.steps[number], "schema", None) for number in live]
        for schema in filter(None, defined):
            parsed = load_torch()._C.parse_schema(schema)
            head, schema_line, rest = state.split("\n", 2)
            for predict in PRINTED:
                changed = predict(schema_line, parsed)
                self.coverage.predictions[predict.__name__] += changed != schema_line
                schema_line = changed
            return f"{head}\n{schema_line}\n{rest}"
        return state

    def _taken(
        self, scenario: Scenario, live: dict[int, tuple[Any, Any]]
    ) -> dict[str, str]:
        """The live fallbacks, as a table shows them."""
        taken = dict(self._builtin)
        for number in live:
            step = scenario.steps[number]
            if isinstance(step, TorchFallback):
                through = "fallthrough " * (step.kind == "fallthrough")
                for key in members(DispatchKey.parse(step.key)):
                    taken[key.name] = f"{through}{step.printed} [backend fallback]"
        return taken

    def _shown(self, operator: str) -> Shown:
        state, table = self._torch.dumps(operator)
        return Shown(state, _by_key(table))

    def _count(self, step: TorchStep, *, shared: bool) -> None:
        self.coverage.numbers["steps taken"] += 1
        kind = step.kind if isinstance(step, TorchImpl) else _KIND_OF[type(step)]
        self.coverage.kinds[kind] += 1
        if isinstance(step, TorchImpl):
            key = kernel_key(DispatchKey.parse(step.key or "Undefined")).name
            self.coverage.keys[key] += 1
            self.coverage.shared_keys[key] += shared

    def _differ(
        self, scenario: Scenario, position: int, what: str, expected: str, found: str
    ) -> None:
        self.differences.append(Difference(scenario, position, what, expected, found))


def _by_key(table: str) -> dict[str, str]:
    found = {}
    for line in table.splitlines():
        key, _, found[key] = line.partition(": ")
    return found


def compare(scenarios: int = SCENARIOS, seed: int = SEED) -> Differential:
    """Play that many scenarios.

    Raises:
        ImportError: there is no torch.
    """
    writer = ScenarioWriter(seed, all_keys())
    differential = Differential()
    for number in range(scenarios):
        differential.play(writer.scenario(number))
    return differential


_DEVIANT_EVERY = 30


def compare_schemas(coverage: Coverage, count: int, seed: int) -> list[str]:
    """The differences that nobody predicted, as text; counts go to `coverage`.

    Of every three texts one is as the grammar has it, one more of the same is damaged
    by one word, and the third is plain again; one in thirty is a known deviation
    instead.  For a damaged text that we read and torch does not, one prediction must
    apply; the reverse is not asked, since two words of such a text may be wrong at
    once.  Whatever we read must print as text that reads back to the same value.

    Raises:
        ImportError: there is no torch.
    """
    chance = random.Random(seed)  # repeatable on purpose
    writer = SchemaWriter(chance)
    differences = []
    for number in range(count):
        deviant = number % _DEVIANT_EVERY == 0
        written = writer.deviant() if deviant else writer.text()
        text, whole = written.text, deviant or number % 3 != 1
        if whole:
            coverage.constructs.update(written.constructs)
        else:
            text = damaged(chance, text)
        coverage.numbers["schema texts" if whole else "damaged schema texts"] += 1
        found = _schema_difference(coverage, text, whole)
        if found:
            differences.append(f"schema {text!r}: {found}")
    return differences


def _schema_difference(coverage: Coverage, text: str, whole: bool) -> str | None:
    """What is wrong with one text, None if nothing is."""
    theirs, ours = _theirs(text), _ours(text)
    if ours is not None and parse_schema(str(ours)) != ours:
        return f"{ours} does not read back"
    if theirs is None:
        if ours is None:
            return "a whole text that nobody reads" if whole else None
        fired = [each.__name__ for each in ACCEPTED if each(text)]
        coverage.predictions.update(fired)
        return None if fired else f"only we read it, as {ours}"
    refused = [each.__name__ for each in REFUSED if each(text, theirs)]
    coverage.predictions.update(refused)
    if refused or ours is None:
        return None if refused and ours is None else f"{refused} foretold, read {ours}"
    printed = str(theirs)
    for predict in PRINTED:
        changed = predict(printed, theirs)
        coverage.predictions[predict.__name__] += changed != printed
        printed = changed
    return None if printed == str(ours) else f"{printed} foretold, printed {ours}"


def _theirs(text: str) -> Any:
    try:
        return load_torch()._C.parse_schema(text)
    except (RuntimeError, ValueError, IndexError):
        return None


def _ours(text: str) -> Schema | None:
    try:
        return parse_schema(text)
    except SchemaSyntaxError:
        return None


def main(arguments: list[str]) -> int:
    """Run both comparisons and print what they covered; 1 where the sides differ."""
    scenarios = int(arguments[0]) if arguments else SCENARIOS
    seed = int(arguments[1]) if len(arguments) > 1 else SEED
    played = compare(scenarios, seed)
    differences = [str(each) for each in played.differences]
    differences += compare_schemas(played.coverage, SCHEMAS, seed)
    print(played.coverage.report())
    for text in differences[:5]:
        print(f"\nunpredicted: {text}")
    print(f"\n{len(differences)} unpredicted differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
