"""Deceitful registries are not plainly proven, and their right twins are proven.

A verdict is judged without the random walk after closure, which shares no assumption
about where state hides: what is tested here is the reading of the state.  The count of
all is printed.
"""

import pytest

from tests.state import (
    breakers_in_accessors,
    breakers_in_calls,
    breakers_in_forms,
    breakers_in_modules,
    breakers_in_objects,
)
from tests.state.breakers import Call, Place, verdict_of
from tests.zoo.realistic.judge import STRATEGIES

PLACES: dict[str, Place] = {
    **breakers_in_modules.PLACES,
    **breakers_in_objects.PLACES,
    **breakers_in_accessors.PLACES,
    **breakers_in_calls.IDENTITY,
    **breakers_in_forms.PLACES,
}
CALLS: dict[str, Call] = breakers_in_calls.CALLS

PROVING = ("graph", "parts")
OTHERS = [each for each in STRATEGIES if each not in PROVING]

# The breakers of each cause that are explored by `make test`, with their twins.
SHORT = (
    "an attribute of re",
    "an entry of re._cache",
    "the globals of caller 2",
    "subclass of bytearray of another package",
    "text, by `is`",
)
# `make test-long` explores one in so many of the others, `make test-whole` the rest.
LONG_SHARE = 16
SHORT_CALLS = ("datetime.datetime.now()", "os.path.exists('x')")


def _shares(
    names: dict[str, Place] | dict[str, Call], short: tuple[str, ...]
) -> list[object]:
    long = [name for name in names if name not in short]
    often = {*long[::LONG_SHARE]}
    return [
        pytest.param(
            name,
            marks=()
            if name in short
            else (pytest.mark.slow if name in often else pytest.mark.nightly),
        )
        for name in names
    ]


def test_there_are_150_deceitful_registries() -> None:
    count = len(PLACES) + len(CALLS)
    print(f"{count} deceitful registries, each with a right twin")
    assert count >= 150
    assert PLACES.keys() >= set(SHORT)
    assert CALLS.keys() >= set(SHORT_CALLS)


def test_a_breaker_that_hides_nothing_is_refuted() -> None:
    plain = Place("return self.misses", "self.misses = number")
    assert verdict_of(plain, faulty=True).word == "order"
    assert verdict_of(plain, faulty=False).plain


@pytest.mark.parametrize("name", _shares(PLACES, SHORT))
def test_a_hidden_number_is_not_plainly_proven_away(name: str) -> None:
    verdict = verdict_of(PLACES[name], faulty=True)
    assert not verdict.plain
    assert verdict.word != "vacuous"


@pytest.mark.parametrize("name", _shares(PLACES, SHORT))
def test_the_right_use_of_a_hiding_place_is_proven(name: str) -> None:
    verdict = verdict_of(PLACES[name], faulty=False)
    if PLACES[name].opaque:
        assert verdict.word == "holds"
        assert any("(registry.box" in each for each in verdict.remarks)
    else:
        assert verdict.word == "proven"


@pytest.mark.parametrize("name", _shares(CALLS, SHORT_CALLS))
def test_a_call_that_only_a_rare_state_makes_is_named(name: str) -> None:
    remarks = verdict_of(CALLS[name], faulty=True).remarks
    assert any(part in text for text in remarks for part in CALLS[name].names)


@pytest.mark.parametrize("name", _shares(CALLS, SHORT_CALLS))
def test_a_rare_call_of_a_pure_function_is_plainly_proven(name: str) -> None:
    assert verdict_of(CALLS[name], faulty=False).plain


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(len(PLACES)))
def test_no_strategy_proves_a_hidden_number_away(number: int) -> None:
    """Those that can prove, and one of the others, in turn."""
    place = [*PLACES.values()][number]
    for strategy in (*PROVING, OTHERS[number % len(OTHERS)]):
        assert not verdict_of(place, faulty=True, strategy=strategy).plain, strategy
