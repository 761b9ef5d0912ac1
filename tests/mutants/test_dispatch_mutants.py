"""Each planted fault in dispatch to Python is found by exploring one scenario.

The same scenario without the fault is in the catalogue, and breaks no law there.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.harness import explore
from everyorder.invariants import Violation, forget
from everyorder.runtime.keys import preserve_keys
from everyorder.runtime.tensors.keys import STATE
from tests.mutants.dispatch_mutants import DISPATCH, KEPT, DispatchMutant


@pytest.fixture(autouse=True)
def _clean_thread() -> Iterator[None]:
    stack, snapshot, context = STATE.stack, STATE.snapshot, STATE.context
    with preserve_keys():
        yield
    STATE.stack, STATE.snapshot, STATE.context = stack, snapshot, context
    KEPT.clear()
    forget()


# Found late: by few orders of many.
LATE = {"classes_kept_by_few_orders"}


def marked(mutant: DispatchMutant) -> Any:
    marks = [pytest.mark.slow] if mutant.name in LATE else []
    return pytest.param(mutant, id=mutant.name, marks=marks)


@pytest.mark.parametrize("mutant", [*map(marked, DISPATCH)])
def test_exploring_finds_the_fault(mutant: DispatchMutant) -> None:
    with mutant.patch():
        (violation,) = explore(mutant.scenario, stop_after=1).exploration.violations
    if violation.kind != "law":
        assert violation.kind == mutant.found
        return
    assert isinstance(violation.found, tuple)
    laws = {each.law for each in violation.found if isinstance(each, Violation)}
    assert mutant.found in laws, violation


def test_names_are_unique_and_say_what_is_wrong() -> None:
    assert len({mutant.name for mutant in DISPATCH}) == len(DISPATCH)
    assert all(mutant.what and mutant.what[-1] != "." for mutant in DISPATCH)
