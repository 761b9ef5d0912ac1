"""Each planted fault is found by its law, and by no law that has nothing to do with it.

The same history without it breaks no law; so a law that always fails is found too.
"""

from collections.abc import Iterator

import pytest

from everyorder.invariants import LAWS, forget
from everyorder.runtime.dispatch.watch import DEPTH
from everyorder.runtime.keys import preserve_keys
from tests.mutants.driver import play
from tests.mutants.mutant import Mutant
from tests.mutants.registry import MUTANTS


@pytest.fixture(autouse=True)
def _clean_thread() -> Iterator[None]:
    with preserve_keys():
        yield
    DEPTH.level = 0
    forget()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_law_finds_the_fault(mutant: Mutant) -> None:
    with mutant.patch():
        found = play(mutant.history, merges=mutant.merges, blind=mutant.blind)
    assert {each.law for each in found} == {mutant.law} | mutant.also, found


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_history_is_lawful_without_the_fault(mutant: Mutant) -> None:
    assert play(mutant.history, merges=mutant.merges, blind=mutant.blind) == []


def test_every_law_has_its_mutant() -> None:
    assert {mutant.law for mutant in MUTANTS} == {law.name for law in LAWS}


def test_names_are_unique_and_say_what_is_wrong() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.what and mutant.what[-1] != "." for mutant in MUTANTS)
