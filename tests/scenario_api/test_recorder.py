"""What ran, and what an action left behind: which law is asked when."""

import gc
from collections.abc import Hashable, Iterator, Sequence
from threading import Lock
from typing import Any
from weakref import ref

import pytest

from everyorder.harness.engine import Budget
from everyorder.harness.exploration import confirmation, explore_scenario
from everyorder.harness.report import render
from everyorder.harness.scenario import Scenario, define, impl
from everyorder.harness.scenario import recorder as chapter
from everyorder.harness.scenario.recorder import (
    LabelRecorder,
    Leftovers,
    Moment,
    recorded_kernel,
)
from everyorder.harness.systems.dispatcher import DispatcherSystem
from everyorder.runtime.dispatch import fallthrough
from everyorder.runtime.dispatch.kernel import kernel_of
from everyorder.runtime.keys import LOCAL, DispatchKey, preserve_keys
from tests.scenarios.kernels import broken, on_cpu, typed_keyed


def test_a_recorded_kernel_notes_its_step_and_runs() -> None:
    recorder = LabelRecorder()
    kernel = kernel_of(on_cpu, False)
    made = recorded_kernel(kernel, "step 2", recorder)
    assert made.function is not None
    assert made.function("tensor", 1) == "tensor"
    assert made.function("again") == "again"
    assert recorder.labels == ["on_cpu (step 2)", "on_cpu (step 2)"]


def test_it_has_the_facts_and_the_convention_of_the_kernel() -> None:
    kernel = kernel_of(typed_keyed, False)
    made = recorded_kernel(kernel, "step 1", LabelRecorder())
    assert made.facts is kernel.facts
    assert made.with_keyset is kernel.with_keyset is True


def test_a_kernel_that_raises_is_noted() -> None:
    recorder = LabelRecorder()
    made = recorded_kernel(kernel_of(broken, False), "step 1", recorder)
    assert made.function is not None
    with pytest.raises(ArithmeticError, match="this kernel always fails"):
        made.function("tensor")
    assert recorder.labels == ["broken (step 1)"]


def test_nothing_to_record() -> None:
    kernel = kernel_of(on_cpu, False)
    assert recorded_kernel(kernel, "step 1", None) is kernel
    assert recorded_kernel(fallthrough, "step 1", LabelRecorder()) is fallthrough


LOCK = Lock()


class Made:
    """Something that a step makes."""


@pytest.fixture(autouse=True)
def _clean_thread() -> Iterator[None]:
    with preserve_keys():
        yield


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the collector was asked for: the oldest generation, each time."""
    found: list[int] = []

    class Collector:
        @staticmethod
        def collect(oldest: int = 2) -> int:
            found.append(oldest)
            return gc.collect(oldest)

    monkeypatch.setattr(chapter, "gc", Collector)
    return found


def told(left: Leftovers) -> list[str]:
    return [str(each) for each in left.memory_violations()]


def test_what_is_dead_at_once_needs_no_collector(collected: list[int]) -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    made = Made()
    recorder.watch("kernel", made)
    left.note_done(0)
    assert (recorder.objects, left.garbage) == ([], [])
    left.note_undone(0)
    del made
    assert (told(left), collected) == ([], [])


def test_what_is_kept_is_told_every_time(collected: list[int]) -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    kept = Made()
    for _ in range(2):
        recorder.watch("kernel", kept)
        left.note_refusal()
        assert told(left) == [
            "released_objects_are_dead at kernel: expected dead, found alive"
        ]
    assert len(collected) == 2


def test_what_lies_in_a_cycle_waits_for_others_of_its_kind(
    collected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapter, "TOGETHER", 2)
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    kept: list[Any] = []

    def cycle() -> None:
        made: Any = Made()
        made.itself = made
        recorder.watch("class", made)
        left.note_done(0)
        left.note_undone(0)
        kept[:] = [made] if keep else []

    keep = False
    counts = []
    for _ in range(3):
        cycle()
        assert told(left) == []
        counts.append(len(collected))
    # Once to learn that it is one, and once for two together.
    assert counts == [1, 1, 2]
    keep = True
    cycle()
    assert told(left) == []
    cycle()
    assert told(left) == [
        "released_objects_are_dead at class: expected dead, found alive"
    ]


def _cycle(recorder: LabelRecorder, left: Leftovers) -> Any:
    made: Any = Made()
    made.itself = made
    recorder.watch("class", made)
    left.note_done(0)
    left.note_undone(0)
    return made


def test_what_still_waits_at_the_end_is_looked_for(collected: list[int]) -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    for _ in range(2):
        _cycle(recorder, left)
        assert told(left) == []
    collected.clear()
    # The young suffice, and then nothing waits any more.
    assert (left.final_violations(), collected) == ([], [1])
    assert (left.final_violations(), collected) == ([], [1])
    kept = _cycle(recorder, left)
    assert told(left) == []
    also = _cycle(recorder, left)
    collected.clear()
    kind = "released_objects_are_dead at class: expected dead, found alive"
    assert [str(each) for each in left.final_violations()] == [kind, kind]
    assert (kept is also, collected, left.final_violations()) == (False, [1, 2], [])


def test_in_a_hurry_nothing_waits() -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    left.hurry()
    _cycle(recorder, left)
    assert told(left) == []
    kept = _cycle(recorder, left)
    assert told(left) == [
        "released_objects_are_dead at class: expected dead, found alive"
    ]
    assert kept.itself is kept


def test_a_step_may_say_only_when_it_is_undone_what_goes_with_it() -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    kept = Made()
    recorder.watch("context", kept)
    left.note_undone(0)
    assert told(left) == [
        "released_objects_are_dead at context: expected dead, found alive"
    ]


def test_what_a_system_made_goes_with_it() -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    given, done, dispatcher = Made(), Made(), Made()
    recorder.watch("given", given)
    left.begin_system(given=True)
    recorder.watch("done", done)
    left.note_done(0)
    left.end_system(("the dispatcher", ref(dispatcher)))
    assert [where for where, _ in left.garbage] == ["the dispatcher", "given", "done"]
    recorder.watch("given to all", given)
    left.begin_system(given=False)
    assert recorder.objects == []


def test_the_thread_is_judged_modes_and_keys_excepted_where_they_may_change() -> None:
    recorder = LabelRecorder()
    left = Leftovers(recorder)
    left.begin_system(given=False)
    assert left.thread_violations("add", LOCK, modes_may_change=False) == []
    LOCAL.included |= DispatchKey.Tracer.bits
    assert [
        each.law for each in left.thread_violations("add", LOCK, modes_may_change=False)
    ] == ["operations_leave_the_thread_alone"]
    # It is told once.
    assert left.thread_violations("add", LOCK, modes_may_change=False) == []
    LOCAL.included &= ~DispatchKey.Tracer.bits
    assert left.thread_violations("remove", LOCK, modes_may_change=True) == []


def test_moments() -> None:
    before = Moment()
    assert before.is_unchanged()
    assert before.is_of_this_thread()
    LOCAL.excluded |= DispatchKey.Tracer.bits
    now = Moment()
    assert (before.is_unchanged(), now.is_unchanged()) == (False, True)
    assert before.with_lock(LOCK) != now.with_lock(LOCK)
    assert before.with_lock(LOCK, like=now) == now.with_lock(LOCK)
    before.restore()
    assert (before.is_unchanged(), now.is_unchanged()) == (True, False)


def test_a_moment_of_another_thread_is_not_here() -> None:
    from threading import Thread

    made: list[Moment] = []
    thread = Thread(target=lambda: made.append(Moment()))
    thread.start()
    thread.join()
    assert not made[0].is_of_this_thread()


KEPT: list[object] = []


class LateSystem(DispatcherSystem):
    """Keeps something that is told of only at the end, or again in a hurry."""

    found = False

    def remaining_leaks(self) -> Sequence[Hashable]:
        super().remaining_leaks()
        return ("kept",)

    def collect_always(self) -> None:
        super().collect_always()
        KEPT.append(self)

    def laws(self) -> Sequence[Hashable]:
        return ("at once",) if self.found and self in KEPT else super().laws()


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("budget", [None, Budget(steps=500), Budget(seconds=9)])
def test_what_is_seen_at_the_end_is_explored_again(
    monkeypatch: pytest.MonkeyPatch, budget: Budget | None, *, found: bool
) -> None:
    monkeypatch.setattr(explore_scenario, "dispatcher_of", LateSystem)
    monkeypatch.setattr(LateSystem, "found", found)
    scenario = Scenario(define("a::flip(Tensor x) -> Tensor"))
    report = explore_scenario.explore(scenario, "walk:1", budget=budget)
    KEPT.clear()
    (violation,) = report.exploration.violations
    assert (report.verdict, violation.kind, violation.history) == ("law", "law", ())
    assert violation.found == (
        ("at once",) if found else ("kept", confirmation.LEAK_WITHOUT_ORDER)
    )
    assert str(violation.found[0]) in render(report)


def test_nothing_is_watched_where_no_law_is_asked() -> None:
    """Else what is watched grows with the history, and nobody takes it away."""
    scenario = Scenario(
        define("a::plain(Tensor x) -> Tensor"), impl("a::plain", lambda x: x, "CPU")
    )
    for laws in (True, False):
        system = DispatcherSystem(scenario, view="upstream", laws=laws)
        for _ in range(3):
            system.reset()
            handles = [system.do(step) for step in range(2)]
            for step in (1, 0):
                system.undo(step, handles[step])
        kept = (system._recorder.objects, system._leftovers.garbage)
        assert any(kept) is laws
