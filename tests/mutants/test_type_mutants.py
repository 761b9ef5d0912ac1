"""Each planted fault in the types of programs is found by a test of theirs."""

import pytest

from tests.mutants.type_mutants import TYPES, TypeMutant

by_name = pytest.mark.parametrize("mutant", TYPES, ids=lambda mutant: mutant.name)


@by_name
def test_a_test_finds_the_fault(mutant: TypeMutant) -> None:
    with mutant.patch(), pytest.raises((AssertionError, pytest.fail.Exception)):
        mutant.finds()


@by_name
def test_without_the_fault_nothing_is_found(mutant: TypeMutant) -> None:
    mutant.finds()


def test_names_are_unique_and_say_what_is_wrong() -> None:
    assert len({mutant.name for mutant in TYPES}) == len(TYPES)
    assert all(mutant.what and mutant.what[-1] != "." for mutant in TYPES)
