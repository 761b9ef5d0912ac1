"""Laws of a run, on records of runs, right ones and made-up ones."""

import weakref
from dataclasses import replace
from threading import Lock
from types import SimpleNamespace
from typing import Any

from everyorder.invariants import Call, Run, Surroundings, check_run, surroundings
from everyorder.runtime.dispatch import fallthrough
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.keys import LOCAL, DispatchKey, KeySet
from tests.invariants.healthy import healthy

CALM = Surroundings(0, 0, (), (), 0, False)


def told(run: Run) -> list[str]:
    """The violations of a run as text."""
    return [str(each) for each in check_run(run)]


def called(state: DispatcherState, *keys: str, **fields: Any) -> Run:
    """A run of one call of `d::f`."""
    bits = KeySet(map(DispatchKey.parse, keys)).bits
    made = Call("d::f", state, bits, CALM, CALM)
    return Run(state, state, calls=(replace(made, **fields),))


def test_a_run_that_leaves_nothing() -> None:
    system = healthy()
    registration = system.libraries[0].impl("f", lambda x: None, "CUDA", debug="x")
    held = system.entry().implementations[DispatchKey.parse("CUDA")]
    assert told(Run(system.state, system.dispatcher.snapshot(), held)) == []
    registration.close()
    assert told(Run(system.state, system.dispatcher.snapshot())) == []


def test_what_is_left_and_what_is_lost() -> None:
    system = healthy()
    system.libraries[0].impl("f", lambda x: None, "CUDA", debug="x")
    end = system.dispatcher.snapshot()
    held = system.entry().implementations[DispatchKey.parse("CUDA")]
    assert told(Run(system.state, end))[-1] == (
        "open_handles_own_what_is_live at what is live: "
        "expected no handle, not live, found implementation 'x'"
    )
    assert told(Run(system.state, end))[:2] == [
        "teardown_leaves_nothing at d::f, kernels: expected "
        "implementation 'new', implementation 'old', implementation 'sparse', "
        "implementation 'through', implementation 'math', found "
        "implementation 'new', implementation 'old', implementation 'x', "
        "implementation 'sparse', implementation 'through', implementation 'math'",
        "teardown_leaves_nothing at d::f, total: expected 6, found 7",
    ]
    assert told(Run(system.state, system.state, held)) == [
        "open_handles_own_what_is_live at what is live: "
        "expected implementation 'x', found not live"
    ]


def test_what_is_gone_must_be_dead() -> None:
    class Kept:
        """Something to refer to."""

    kept = Kept()
    alive, dead = weakref.ref(kept), weakref.ref(Kept())
    state = healthy().state
    assert told(Run(state, state, released=(("kept", alive), ("lost", dead)))) == [
        "released_objects_are_dead at kept: expected dead, found alive"
    ]


def test_threads_are_restored_and_locks_are_free() -> None:
    state = healthy().state
    after = replace(CALM, included=4, nesting=1, locked=True)
    run = called(
        state, "CPU", after=after, inside=(replace(CALM, locked=True),), ran="new"
    )
    assert told(run) == [
        "calls_restore_their_thread at a call of d::f, included: expected 0, found 4",
        "calls_restore_their_thread at a call of d::f, nesting: expected 0, found 1",
        "calls_restore_their_thread at a call of d::f, locked: "
        "expected False, found True",
        "kernels_run_without_the_lock at a kernel of d::f: "
        "expected the lock is free, found the lock is held",
    ]


def test_a_call_runs_what_the_state_says() -> None:
    state = healthy().state
    assert told(called(state, "CPU", ran="new")) == []
    # A fallthrough is skipped, an autograd key without one is not.
    assert told(called(state, "CPU", "AutogradCPU", ran="new")) == []
    assert told(called(state, "CUDA", "AutogradCUDA", ran="math")) == []
    # Nobody can tell what an ambiguous slot runs: it refuses.
    assert told(called(state, "SparseCPU", "AutogradOther", ran=None)) == []
    assert told(called(state, "CPU", ran="old")) == [
        "calls_run_what_the_state_says at a call of d::f at CPU: "
        "expected implementation 'new', found old"
    ]
    assert told(called(state, "PythonDispatcher", ran="x")) == [
        "calls_run_what_the_state_says at a call of d::f at PythonDispatcher: "
        "expected nothing, found x"
    ]
    assert told(called(state, "CPU")) == [
        "calls_run_what_the_state_says at a call of d::f at CPU: "
        "expected implementation 'new', found nothing"
    ]


def test_what_falls_through_last_of_all_runs_nothing() -> None:
    system = healthy()
    library = system.libraries[0]
    library.impl("f", fallthrough, "CompositeImplicitAutograd", debug="passes")
    state = system.dispatcher.snapshot()
    assert told(called(state, "CUDA")) == []
    assert told(called(state, "CUDA", ran="passes")) == [
        "calls_run_what_the_state_says at a call of d::f at Undefined: "
        "expected nothing, found passes"
    ]


def test_without_a_schema_nothing_is_called() -> None:
    state = healthy().state
    for name in ("d::g", "d::none"):
        assert told(called(state, "CUDA", operator=name)) == []
        assert told(called(state, "CUDA", operator=name, ran="cuda")) == [
            f"calls_run_what_the_state_says at a call of {name}: "
            "expected nothing to call, found cuda"
        ]


def test_surroundings_are_sampled() -> None:
    lock = Lock()
    with lock:
        assert surroundings(LOCAL, SimpleNamespace(level=3), lock) == Surroundings(
            LOCAL.included,
            LOCAL.excluded,
            LOCAL.switched_in,
            LOCAL.switched_out,
            3,
            True,
        )
