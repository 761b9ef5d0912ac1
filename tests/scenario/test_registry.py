from typing import Any

import numpy as np
import pytest

from harness.errors import NoFingerprint, NotAScenario
from harness.exploring import explore
from harness.scenario import (
    Scenario,
    call,
    define,
    look_up,
    reserve,
    step,
    together,
    use,
)
from harness.systems.registry import RegistrySystem
from runtime.dispatch.dispatcher import Dispatcher
from runtime.schema.parser import parse_name


def put(word: str) -> Any:
    def perform(words: set[str]) -> Any:
        if word in words:
            raise KeyError(word)
        words.add(word)
        return lambda: words.remove(word)

    return step(f'put("{word}")', perform)


def shown(words: set[str]) -> str:
    return ", ".join(sorted(words))


def scenario(**options: Any) -> Scenario:
    return Scenario(
        put("bee"),
        put("ant"),
        put("bee"),
        uses=[use("count", len), use("first", lambda words: min(words))],
        **{"create": set, "observe": shown, **options},
    )


def started(**options: Any) -> RegistrySystem:
    system = RegistrySystem(scenario(**options))
    system.reset()
    return system


def test_doing_and_undoing() -> None:
    system = started()
    assert (system.steps, system.uses) == (3, 2)
    assert system.observe() == (("state", ""),)
    handles = [system.do(0), system.do(1)]
    assert system.observe() == (("state", "ant, bee"),)
    system.undo(0, handles[0])
    assert system.observe() == (("state", "ant"),)


def test_a_failure_is_type_and_text() -> None:
    system = started()
    handle = system.do(0)
    with pytest.raises(KeyError) as caught:
        system.do(2)
    assert system.failure(caught.value) == (("error", "KeyError"), ("text", "'bee'"))
    assert handle is not None


def test_uses_answer_and_an_exception_is_an_answer() -> None:
    system = started()
    assert system.use(0) == 0
    found = system.use(1)
    assert isinstance(found, tuple)
    assert found[0] == ("error", "ValueError")
    handle = system.do(0)
    assert (system.use(0), system.use(1)) == (1, "bee")
    assert handle is not None


def test_a_reset_makes_a_fresh_one_and_gives_again() -> None:
    made: list[set[str]] = []

    def create() -> set[str]:
        made.append(set())
        return made[-1]

    system = started(create=create, given=[put("cow")])
    assert system.observe() == (("state", "cow"),)
    handle = system.do(0)
    system.reset()
    assert system.observe() == (("state", "cow"),)
    assert made == [{"bee"}, {"cow"}]
    assert handle is not None


def test_laws_are_the_scenarios_own() -> None:
    assert started().laws() == ()
    system = started(check=lambda words: ["too few"] if len(words) < 1 else [])
    assert system.laws() == ("too few",)
    handle = system.do(0)
    assert system.laws() == ()
    assert handle is not None


def test_fingerprint_is_the_scenarios_own() -> None:
    assert started().fingerprint() is None
    assert started(fingerprint=frozenset).fingerprint() == frozenset()


def test_explored() -> None:
    report = explore(scenario())
    assert report.verdict == "holds"
    assert [dict(seen)["state"] for seen in report.exploration.states.values()] == [  # type: ignore[call-overload]  # pairs of texts
        *("", "bee", "ant", "bee", "ant, bee", "ant, bee")
    ]
    assert explore(scenario(fingerprint=frozenset), "graph").verdict == "proven"
    with pytest.raises(NoFingerprint):
        explore(scenario(), "graph")


def test_a_stale_cache_is_found() -> None:
    class Cached:
        """Sorts once, and forgets to forget when a word goes."""

        def __init__(self) -> None:
            self.words: list[str] = []
            self.kept: list[str] | None = None

        def put(self, word: str) -> Any:
            self.words.append(word)
            self.kept = None
            return lambda: self.words.remove(word)

        def listed(self) -> str:
            if self.kept is None:
                self.kept = sorted(self.words)
            return ", ".join(self.kept)

    report = explore(
        Scenario(
            step("put(bee)", lambda to: to.put("bee")),
            step("put(ant)", lambda to: to.put("ant")),
            uses=[use("listed()", Cached.listed)],
            create=Cached,
            observe=Cached.listed,
        )
    )
    assert report.verdict == "order"
    (violation,) = report.exploration.violations
    assert violation.shortest is not None
    assert report.lines(violation.shortest)[-1].endswith(".close()")


def test_assertions_say_what_is_missing() -> None:
    with pytest.raises(AssertionError, match="has a system of its own"):
        RegistrySystem(Scenario(reserve("a::b")))


def test_what_is_observed_is_text() -> None:
    listed = step("put", lambda to: lambda: None)
    with pytest.raises(NotAScenario) as caught:
        explore(Scenario(listed, create=list, observe=lambda it: it))
    assert str(caught.value) == (
        "a scenario cannot take list, returned by observe; it wants text."
    )


def test_a_step_that_returns_nothing_is_no_failing_step() -> None:
    with pytest.raises(NotAScenario):
        explore(Scenario(step("put", lambda to: None), create=list, observe=str))


@pytest.mark.parametrize(("told", "found"), [(True, "bool"), (1, "int")])
def test_a_check_returns_a_list(told: Any, found: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        explore(scenario(check=lambda _: told))
    assert str(caught.value) == (
        f"a scenario cannot take {found}, returned by check; it wants a list of texts, "
        "one for each broken law, or an empty one."
    )


def test_a_check_that_tells_one_text() -> None:
    """It is one broken law, not one for each letter."""
    assert started(check=lambda _: "broken").laws() == ("broken",)


@pytest.mark.parametrize("told", [[], (), None, "", iter(())])
def test_a_check_that_tells_nothing(told: Any) -> None:
    assert started(check=lambda _: told).laws() == ()


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (["a", {"b"}], ("a", frozenset({"b"}))),
        ({"a": [1]}, (("a", (1,)),)),
        (("a", ["b"]), ("a", ("b",))),
    ],
)
def test_an_answer_that_may_change_is_copied(answer: Any, kept: Any) -> None:
    asked = use("listed", lambda _: answer)
    system = RegistrySystem(
        Scenario(put("bee"), uses=[asked], create=set, observe=shown)
    )
    system.reset()
    assert system.use(0) == kept


@pytest.mark.parametrize("answer", [bytearray(b"a"), np.zeros(2), [np.zeros(1)]])
def test_an_answer_cannot_change(answer: Any) -> None:
    words = Scenario(
        put("bee"), uses=[use("listed", lambda _: answer)], create=set, observe=shown
    )
    with pytest.raises(NotAScenario) as caught:
        explore(words)
    assert str(caught.value) == (
        f"a scenario cannot take {type(answer).__name__}, returned by the use "
        "'listed'; it wants an answer that cannot change: text, a number, or a tuple "
        "of them."
    )


SCHEMA = "a::b(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Scenario(define(SCHEMA), create=set, observe=shown), f'define("{SCHEMA}")'),
        (
            Scenario(put("bee"), given=[reserve("a::b")], create=set, observe=shown),
            'reserve("a::b")',
        ),
        (
            Scenario(put("bee"), uses=[call("a::b")], create=set, observe=shown),
            'call("a::b", "cpu")',
        ),
        (
            Scenario(together(reserve("a::b")), create=set, observe=shown),
            'together(reserve("a::b"))',
        ),
    ],
)
def test_what_only_a_dispatcher_can_do(made: Scenario, text: str) -> None:
    with pytest.raises(NotAScenario) as caught:
        explore(made)
    assert str(caught.value) == (
        f"a scenario cannot take {text} with create=set, which makes set; it wants "
        "steps and uses of that registry, as step() and use() make them, or no create."
    )


def test_a_dispatcher_may_be_created() -> None:
    def names(dispatcher: Dispatcher) -> str:
        return str(dispatcher.snapshot().entry(parse_name("a::b")) is not None)

    made = Scenario(define(SCHEMA), create=Dispatcher, observe=names)
    assert explore(made).exploration.states == {
        (): (("state", "False"),),
        (0,): (("state", "True"),),
    }


class Proxy:
    """Stands for a dispatcher."""

    def __init__(self) -> None:
        self.real = Dispatcher()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_what_stands_for_a_dispatcher_is_one() -> None:
    made = Scenario(
        define("a::b(Tensor x) -> Tensor"),
        create=Proxy,
        observe=lambda proxy: str(proxy.op_names()),
    )
    assert explore(made, "walk:1").passed


def test_steps_by_hand_where_a_use_names_the_dispatcher() -> None:
    noted = step("note", lambda dispatcher: lambda: None)
    assert explore(Scenario(noted, uses=[look_up("a::b")]), "walk:1").passed
    assert explore(Scenario(noted, operators=["a::b"]), "walk:1").passed
