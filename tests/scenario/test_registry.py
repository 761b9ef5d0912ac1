from typing import Any

import pytest

from harness.errors import NoFingerprint, NotAScenario
from harness.exploring import explore
from harness.scenario import Scenario, step, use
from harness.systems.registry import RegistrySystem


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
    assert system.laws() == ["too few"]
    handle = system.do(0)
    assert system.laws() == []
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
        RegistrySystem(Scenario(step("put", lambda to: None)))


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
