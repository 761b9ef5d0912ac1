import pytest

from harness.scenario.recorder import Recorder, recorded
from runtime.dispatch import fallthrough
from runtime.dispatch.kernel import kernel_of
from tests.scenarios.kernels import broken, on_cpu, typed_keyed


def test_a_recorded_kernel_notes_its_step_and_runs() -> None:
    recorder = Recorder()
    kernel = kernel_of(on_cpu, False)
    made = recorded(kernel, "step 2", recorder)
    assert made.function is not None
    assert made.function("tensor", 1) == "tensor"
    assert made.function("again") == "again"
    assert recorder.ran == ["on_cpu (step 2)", "on_cpu (step 2)"]


def test_it_has_the_facts_and_the_convention_of_the_kernel() -> None:
    kernel = kernel_of(typed_keyed, False)
    made = recorded(kernel, "step 1", Recorder())
    assert made.facts is kernel.facts
    assert made.with_keyset is kernel.with_keyset is True


def test_a_kernel_that_raises_is_noted() -> None:
    recorder = Recorder()
    made = recorded(kernel_of(broken, False), "step 1", recorder)
    assert made.function is not None
    with pytest.raises(ArithmeticError, match="this kernel always fails"):
        made.function("tensor")
    assert recorder.ran == ["broken (step 1)"]


def test_nothing_to_record() -> None:
    kernel = kernel_of(on_cpu, False)
    assert recorded(kernel, "step 1", None) is kernel
    assert recorded(fallthrough, "step 1", Recorder()) is fallthrough
