"""Strategies for any registry: scenarios that shrink, print as code, and are pinned."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, find, given, settings
from hypothesis import strategies as st

from everyorder import Scenario, step, steps, use
from everyorder.harness.base.errors import CannotReplay, NotAScenario
from everyorder.harness.engine.replay_id import encode
from everyorder.harness.strategies import (
    calls,
    check,
    replayed,
    scenarios,
    scenarios_within,
)
from everyorder.harness.strategies.generated import RELATIONS
from tests.strategies import book as books
from tests.strategies.book import GENERATED, Book

PARTS = scenarios_within(books.WHOLE)
QUIET = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=list(HealthCheck),
)


def failure_of(test: Callable[[], object]) -> str:
    with pytest.raises(AssertionError) as caught:
        test()
    return str(caught.value)


@cache
def shrunk(strategy: st.SearchStrategy[Scenario]) -> str:
    """The failure of the smallest scenario that Hypothesis finds."""

    @QUIET
    @given(strategy)
    def test(scenario: Scenario) -> None:
        check(scenario)

    return failure_of(test)


def pasted(failure: str) -> Scenario:
    """The scenario of the code that a failure prints."""
    _, _, rest = failure.partition("the scenario as code:\n\n")
    names: dict[str, Any] = {}
    exec(rest.partition("\n\npin it:")[0], names)
    scenario = names["scenario"]
    assert isinstance(scenario, Scenario)
    return scenario


@pytest.mark.parametrize("strategy", [GENERATED, PARTS])
def test_a_failure_shrinks_and_its_code_fails_alike(
    strategy: st.SearchStrategy[Scenario],
) -> None:
    failure = shrunk(strategy)
    scenario = pasted(failure)
    assert (len(scenario.steps), len(scenario.uses)) == (2, 1)
    again = failure_of(partial(check, scenario))
    # What is printed below the code is that of the scenario, too; its lambdas have no
    # file from which they could be printed again.
    head, _, _ = failure.partition("the scenario as code:")
    assert again.startswith(head)


def test_the_line_of_an_example_pins_the_failure() -> None:
    failure = shrunk(GENERATED)
    found = re.search(r'@example\(replayed\("(\S+)", scenario\)\)', failure)
    assert found is not None
    scenario = pasted(failure)
    assert replayed(found[1], scenario) is scenario

    @settings(QUIET, phases=[Phase.explicit])
    @given(GENERATED)
    @example(replayed(found[1], scenario))
    def pinned(scenario: Scenario) -> None:
        check(scenario)

    assert "owners" in failure_of(pinned)


def test_a_replay_id_finds_its_part_of_a_scenario() -> None:
    failure = shrunk(PARTS)
    found = re.search(r'replayed\("(\S+)"', failure)
    assert found is not None
    part = replayed(found[1], books.WHOLE)
    assert part.digest == pasted(failure).digest
    assert part.digest != books.WHOLE.digest


def test_ids_of_others_and_damaged_ones_are_refused() -> None:
    foreign = encode("0" * 12, 6, (0, 1, 2))
    with pytest.raises(CannotReplay) as caught:
        replayed(foreign, books.WHOLE)
    assert caught.value.code == "ForeignReplayId"
    assert "that the failure printed as code" in str(caught.value)
    own = encode(books.WHOLE.digest, 7, (0, 1, 4))
    assert replayed(own, books.WHOLE) is books.WHOLE
    swapped = own[:-1] + ("0" if own[-1] != "0" else "1")
    for damaged in (swapped, own[:4], "", f"9{own[1:]}"):
        with pytest.raises(CannotReplay) as caught:
            replayed(damaged, books.WHOLE)
        assert caught.value.code == "BadReplayId"


def test_a_part_brings_what_it_needs_and_forgets_the_rest() -> None:
    one = step("one", _add("one"), undo=_remove("one"))
    two = step("two", _add("two"), undo=_remove("two"), requires=one)
    six = step("six", _add("six"), undo=_remove("six"), after=two, excludes="ten")
    ten = step("ten", _add("ten"), undo=_remove("ten"), ends="one")
    whole = Scenario(one, ten, two, six, create=Book, observe=str, ordered=[(ten, one)])
    part = whole.part([six], [])
    assert [str(each) for each in part.steps] == ["one", "two", "six"]
    assert part.steps[2].excludes == ()
    assert part.ordered == ()
    alone = whole.part([ten], [])
    assert (alone.steps[0].ends, alone.digest) != (ten.ends, whole.digest)
    assert whole.part(whole.steps, []).digest == whole.digest


def _add(name: str) -> Callable[[Any], None]:
    return partial(_call, "add", name)


def _remove(name: str) -> Callable[[Any], None]:
    return partial(_call, "remove", name)


def _call(method: str, name: str, book: Any) -> None:
    getattr(book, method)(name)


@QUIET
@given(st.data())
def test_drawn_relations_make_valid_scenarios(data: st.DataObject) -> None:
    adds = calls("add", Book.add, st.sampled_from("abcd"), undo=Book.remove)
    strategy = scenarios(
        [adds], create=Book, observe=len_of, max_steps=4, relations=RELATIONS
    )
    scenario = data.draw(strategy)
    assert 1 <= len(scenario.steps) <= 4
    built: dict[str, Any] = {}
    exec(scenario.as_code(), built)
    assert built["scenario"].digest == scenario.digest
    assert built["scenario"].relations == scenario.relations


def len_of(book: Book) -> str:
    return str(len(book.numbers))


def test_each_relation_is_drawn() -> None:
    adds = calls("add", Book.add, st.sampled_from("abcd"), undo=Book.remove)
    strategy = scenarios(
        [adds],
        create=Book,
        observe=len_of,
        relations=RELATIONS,
    )
    for name in RELATIONS:
        find(
            strategy,
            lambda scenario, name=name: bool(getattr(scenario.relations, name)),  # type: ignore[misc]  # a default
            settings=settings(QUIET, max_examples=500),
        )


def test_mistakes_of_the_arguments_are_not_hidden() -> None:
    adds = calls("add", Book.add, st.just("a"), undo=Book.remove)

    @QUIET
    @given(scenarios([adds]))
    def without_create(scenario: Scenario) -> None:
        raise AssertionError("no scenario is valid")

    with pytest.raises(NotAScenario, match="without create"):
        without_create()
    with pytest.raises(NotAScenario, match="without strategies"):
        calls("add", Book.add)


def test_code_is_refused_where_it_would_not_mean_the_same() -> None:
    local = "a"
    with_local = Scenario(
        step("a", lambda book: book.add(local), undo=None),
        uses=[use("count", lambda book: len(book.numbers))],
        create=Book,
    )
    with pytest.raises(NotAScenario, match="uses the local local"):
        with_local.as_code()
    assert repr(with_local) == "<Scenario without a name: a, count>"
    nameless = Scenario(
        *steps("add", {"x": object()}, Book.add, undo=Book.remove),
        create=Book,
        observe=str,
    )
    with pytest.raises(NotAScenario, match="which is not named"):
        nameless.as_code()


def test_a_value_that_a_scenario_has_prints_as_code() -> None:
    values = {
        "nothing": None,
        "list": [1.5, float("inf"), b"x", {1, 2}, frozenset(), set()],
        "class": Book,
        "pair": ((1,), {"a": 2j}),
    }
    whole = Scenario(
        *steps("add", values, Book.add, undo=Book.remove),
        *steps("put", "xy", Book.add, undo=Book.remove, symmetric=True),
        step("builtin", dict.clear, undo=None, raises=KeyError, requires="add(class)"),
        uses=[use("len", len, raises=(TypeError, KeyError)), use("has", dict.items)],
        given=[step("first", _add("first"), undo=_remove("first"))],
        create=Book,
        observe=str,
        unordered=True,
        ignore=["registry.x"],
    )
    built: dict[str, Any] = {}
    exec(whole.as_code(), built)
    again = built["scenario"]
    assert (again.digest, again.relations) == (whole.digest, whole.relations)
    assert (again.ignore, again.unordered) == (whole.ignore, True)
    assert again.uses[0].raises == (TypeError, KeyError)


MISSING = """
import sys
sys.modules["hypothesis"] = None
try:
    import {module}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "module", ["everyorder.harness.strategies", "everyorder.runtime.strategies"]
)
def test_a_missing_extra_is_named(module: str) -> None:
    program = MISSING.format(module=module)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    text = " ".join(ran.stdout.split())
    assert "python -m pip install 'everyorder[hypothesis]'" in text
