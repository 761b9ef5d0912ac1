"""Rows about the realistic registries of the second zoo, and the same for Hypothesis.

A person who tests a registry with Hypothesis writes a state machine whose rules are the
operations, and compares with a registry that has the same active steps and no history.
`machine_of` is that for a specimen.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import iscoroutinefunction
from itertools import islice
from statistics import median
from time import process_time
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)

from everyorder import explore
from tests.bench.row import Row, apart, beside_fixed_work, limited
from tests.zoo.realistic.__main__ import percentile
from tests.zoo.realistic.judge import REFUTED, scenario_of
from tests.zoo.realistic.registries import all_specimens
from tests.zoo.realistic.specimen import Specimen

# One in how many of the registries is explored, of all and of the faulty ones.
SHARE = 6
FAULTY_SHARE = 8

# What Hypothesis does if nobody configures it.
SETTINGS = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


def realistic() -> Iterator[Row]:
    """The processor time to the verdict of right and faulty registries."""
    chosen = [*islice(all_specimens(), 0, None, SHARE)]
    times, slow = beside_fixed_work(lambda: [*map(_seconds_of, chosen)])
    what = f"{len(times)} realistic registries, to the verdict, CPU seconds"
    yield limited(f"{what}, median", median(times), 1, slow)
    yield limited(f"{what}, 95th percentile", percentile(times, 0.95), 10, slow)


def _seconds_of(specimen: Specimen) -> float:
    started = process_time()
    verdict = explore(scenario_of(specimen)).verdict
    assert (verdict in REFUTED) == bool(specimen.fault), (specimen.name, verdict)
    return process_time() - started


def faults_beside_hypothesis() -> Iterator[Row]:
    """The same faults, sought by a Hypothesis state machine of each registry."""
    faulty = filter(_is_playable, all_specimens())
    chosen = [*islice(faulty, 0, None, FAULTY_SHARE)]
    ours, theirs = [], []
    for specimen in chosen:
        ours.append(_seconds_of(specimen))
        started = process_time()
        if _is_found(specimen):
            theirs.append(process_time() - started)
    count = len(chosen)
    texts = f"Hypothesis {len(theirs)}"
    texts += f" in {median(theirs):.2f} s" if theirs else ""
    yield Row(
        f"faults of {count} realistic registries, found in CPU seconds (median)",
        f"{count} in {median(ours):.2f} s, {texts}",
        "as many as Hypothesis",
        count >= len(theirs),
    )


def _is_playable(specimen: Specimen) -> bool:
    """Return True if a fault can be found by plain calls in any order of the steps."""
    interface = specimen.interface
    functions = [each.do for each in interface.steps]
    functions += [perform for _, perform in interface.uses]
    return (
        bool(specimen.fault)
        and not interface.ordered
        and not interface.collects
        and not any(map(iscoroutinefunction, functions))
        and not any(each.requires or each.after for each in interface.steps)
        and not any(each.lasting for each in interface.steps)
    )


def _is_found(specimen: Specimen) -> bool:
    try:
        run_state_machine_as_test(machine_of(specimen), settings=SETTINGS)
    except Exception:  # an assertion, or an undo that raises
        return True
    return False


def machine_of(specimen: Specimen) -> type[RuleBasedStateMachine]:
    """Return the state machine of a registry: its operations, and what must hold."""
    interface = specimen.interface
    steps, uses = interface.steps, interface.uses
    operations = st.integers(0, len(steps) + len(uses) - 1)

    class Machine(RuleBasedStateMachine):
        """What is registered decides what is observed and answered."""

        def __init__(self) -> None:
            super().__init__()
            self.registry = specimen.create()
            self.undo: dict[int, Any] = {}

        @rule(operation=operations)
        def play(self, operation: int) -> None:
            if operation >= len(steps):
                _, perform = uses[operation - len(steps)]
                assert _result(perform, self.registry) == _result(perform, self.twin())
            elif operation in self.undo:
                _close(self.undo.pop(operation))
            else:
                with suppress(Exception):  # it is refused, and not active
                    self.undo[operation] = steps[operation].do(self.registry)
            observe = interface.observe
            assert _result(observe, self.registry) == _result(observe, self.twin())

        def twin(self) -> Any:
            """Return a registry with the same active steps, and nothing before."""
            twin = specimen.create()
            for number in sorted(self.undo):
                with suppress(Exception):
                    steps[number].do(twin)
            return twin

    return Machine


def _close(undo: Any) -> None:
    close = getattr(undo, "close", undo)
    close()


def _result(function: Callable[[Any], Any], registry: Any) -> Any:
    """Return the answer, or the error, as text: answers need not have an equality."""
    try:
        return repr(function(registry))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


REALISTIC_ROWS = tuple(map(apart, (realistic, faults_beside_hypothesis)))
