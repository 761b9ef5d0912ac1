"""Torch depends on the order, by its own dispatcher, and the harness says so."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from everyorder.harness.engine import Square, explore
from everyorder.harness.systems.torch import CallResult
from tests.torch.bindings import invariants_text, load_torch, perform
from tests.torch.reference import torch_accepted_keys, torch_dump
from tests.torch.steps import (
    TorchCall,
    TorchDefine,
    TorchDefineInferred,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
    TorchStep,
)
from tests.torch.system import (
    FOO,
    ORDER_DEPENDENCE,
    TorchObservation,
    TorchSystem,
    order_dependence,
)

pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

OPERATOR = "everyorder_t::foo"
CI = "CompositeImplicitAutograd"
CE = "CompositeExplicitAutograd"
# What torch's own check says of a stale slot: the comparison that fails.
STALE = "expected_k._equalsBoxedAndUnboxed(dispatchTable_[idx])"
# Every key whose kernel torch forgets to tell the autograd slots of a composite about.
FORGOTTEN = {
    CE,
    *("Dense", "NestedTensor"),
    *(f"NestedTensor{b}" for b in ("CPU", "CUDA", "XPU", "HPU", "PrivateUse1", "Meta")),
    *(f"Quantized{b}" for b in ("CPU", "CUDA", "XPU", "PrivateUse1")),
    *(f"Sparse{b}" for b in ("CPU", "CUDA", "MPS", "XPU", "PrivateUse1", "Meta")),
    *(f"SparseCsr{b}" for b in ("CPU", "CUDA", "MPS", "XPU", "PrivateUse1", "Meta")),
}


def kernel(*_args: object) -> object:
    raise AssertionError("nothing is called here")


class Make:
    """Makes systems and remembers them, so that a failing test leaves none behind."""

    def __init__(self) -> None:
        self.made: list[TorchSystem] = []

    def __call__(self, steps: tuple[TorchStep, ...], **options: Any) -> TorchSystem:
        self.made.append(TorchSystem(steps, **options))
        return self.made[-1]

    def shortest(self) -> TorchSystem:
        self.made.append(order_dependence())
        return self.made[-1]


@pytest.fixture
def make() -> Iterator[Make]:
    make = Make()
    yield make
    for system in make.made:
        system.close()


def canonical(probes: tuple[CallResult, ...]) -> TorchObservation:
    """Both kernels on the operator, torch's check left out: the dumps are the same."""
    dumps = torch_dump((FOO, *ORDER_DEPENDENCE))
    return TorchObservation(*dumps, "", probes)


def ran(system: TorchSystem, *order: int) -> CallResult:
    """The only probe after these steps, on a fresh system; then all is undone."""
    system.reset()
    handles = [(step, system.do(step)) for step in order]
    (result,) = system.observe().probes
    for step, handle in reversed(handles):
        system.undo(step, handle)
    return result


def test_the_finding(make: Make) -> None:
    system = make.shortest()
    found = explore(system, "walk:0")
    system.close()
    (violation,) = found.violations
    assert violation.kind == "order"
    assert violation.state == (0, 1)
    assert violation.shortest == (1, 0)
    assert violation.proven_shortest
    assert violation.square == Square((), 1, 0)
    assert violation.expected == canonical((CallResult((f"0: {CI}",), "returned"),))
    assert violation.found == canonical((CallResult((f"1: {CE}",), "returned"),))


@pytest.mark.parametrize("strategy", ["walk:1", "histories:2", "arrangements", "full"])
def test_other_strategies_find_it_too(make: Make, strategy: str) -> None:
    (violation,) = explore(make.shortest(), strategy).violations
    assert (violation.kind, violation.shortest) == ("order", (1, 0))


def test_the_law_finds_it_without_a_call(make: Make) -> None:
    system = make(ORDER_DEPENDENCE, background=(FOO,), invariants="law")
    (violation,) = explore(system, "walk:0").violations
    assert (violation.kind, violation.state) == ("law", (0, 1))
    assert violation.found == (STALE,)
    assert violation.shortest == (0, 1)


def test_upstreams_own_five_steps_hold(make: Make) -> None:
    system = make(
        (
            FOO,
            TorchImpl(None, debug="default"),
            TorchImpl("CPU"),
            TorchImpl("Autograd"),
            TorchImpl("AutogradCPU"),
        ),
        uses=(TorchCall(),),
        probes=(TorchCall(), TorchCall(requires_grad=True)),
        invariants="law",
    )
    found = explore(system, "walk:1+histories:2")
    assert found.violations == ()
    assert found.complete
    assert len(found.states) == 32
    assert not found.failures


def test_a_failing_step_holds_where_its_library_dies(make: Make) -> None:
    mismatch = TorchDefine("foo(Tensor x, Tensor y) -> Tensor")
    found = explore(make((mismatch, TorchImpl("CPU"))), "walk:1")
    assert found.violations == ()
    assert sorted(found.failures) == [((0,), 1), ((1,), 0)]


def test_torch_is_wedged_where_the_failing_library_lives(make: Make) -> None:
    mismatch = TorchDefineWithKernel("foo(Tensor x, Tensor y) -> Tensor")
    system = make((mismatch, TorchImpl("CUDA")), keep_failed=True)
    (violation,) = explore(system, "walk:0").violations
    assert (violation.kind, violation.state) == ("wedged", ())
    assert violation.shortest == (0,)


def test_the_finding_by_hand(make: Make) -> None:
    system = make.shortest()
    assert ran(system).outcome == (
        "NotImplementedError: Could not run 'everyorder_t::foo' with arguments from"
        " the 'CPU' backend."
    )
    assert ran(system, 0, 1) == CallResult((f"0: {CI}",), "returned")
    assert ran(system, 1, 0) == CallResult((f"1: {CE}",), "returned")


def test_dumps_hide_the_finding(make: Make) -> None:
    system = make.shortest()
    seen = []
    for order in ((0, 1), (1, 0)):
        system.reset()
        handles = [system.do(step) for step in order]
        seen.append(system.observe())
        handles.clear()
    assert seen[0][:3] == seen[1][:3]
    assert seen[0].probes != seen[1].probes


def test_upstreams_check_fails_on_the_real_name(make: Make) -> None:
    system = make(ORDER_DEPENDENCE, background=(FOO,), invariants="law")
    handles = [system.do(0)]
    assert system.laws() == ()
    handles.append(system.do(1))
    assert system.laws() == (STALE,)
    assert system.observe().invariants == ""
    system.reset()
    handles = [system.do(1), system.do(0)]
    assert system.laws() == ()
    assert len(handles) == 2


def test_all_pairs_that_leave_a_stale_table() -> None:
    library = perform(FOO, OPERATOR, kernel)
    keys = [key for key in torch_accepted_keys() if key != "Undefined"]
    stale: dict[tuple[str, str], set[str]] = {}
    for pair in combinations(keys, 2):
        for first, second in (pair, pair[::-1]):
            one = perform(TorchImpl(first), OPERATOR, kernel)
            assert invariants_text(OPERATOR) == ""
            two = perform(TorchImpl(second), OPERATOR, kernel)
            if invariants_text(OPERATOR):
                stale.setdefault(pair, set()).add(f"{first} first, both")
            one.reset()
            if invariants_text(OPERATOR):
                stale.setdefault(pair, set()).add(f"{first} first and removed")
            two.reset()
            assert invariants_text(OPERATOR) == ""
    library.reset()
    assert len(stale) == len(FORGOTTEN) == 25
    assert {key for pair in stale for key in pair} == FORGOTTEN | {CI}
    for pair, ways in stale.items():
        other = pair[0] if pair[1] == CI else pair[1]
        assert CI in pair
        assert ways == {f"{CI} first, both", f"{other} first and removed"}


def test_undefined_is_another_word_for_the_composite() -> None:
    assert torch_dump((TorchImpl("Undefined"),)) == torch_dump((TorchImpl(CI),))


def test_observation_of_a_well_behaved_set(make: Make) -> None:
    expected = torch_dump((FOO, TorchImpl("CPU", "python")))
    system = make(
        (FOO, TorchImpl("CPU", "python"), TorchImpl("AutogradCPU")),
        uses=(TorchCall(),),
        probes=(TorchCall(), TorchCall(slot="CUDA")),
    )
    assert (system.steps, system.uses, system.state()) == (3, 1, None)
    empty = system.observe()
    assert empty == TorchObservation(
        "",
        "",
        "",
        (CallResult((), f"RuntimeError: Could not find schema for {OPERATOR}."),) * 2,
    )
    handles = {step: system.do(step) for step in (1, 0)}
    seen = system.observe()
    assert seen[:2] == expected
    assert seen.invariants == ""
    assert seen.probes == (
        CallResult(("1: CPU",), "returned"),
        CallResult(
            (),
            f"NotImplementedError: Could not run '{OPERATOR}' with arguments from the"
            " 'CUDA' backend.",
        ),
    )
    assert system.use(0) == CallResult(("1: CPU",), "returned")
    assert system.observe() == seen
    for step, handle in handles.items():
        system.undo(step, handle)
    assert system.observe() == empty


def test_invariants_are_observed_by_default(make: Make) -> None:
    system = make(ORDER_DEPENDENCE, background=(FOO,))
    handles = [system.do(0), system.do(1)]
    assert system.observe().invariants == STALE
    assert system.laws() == ()
    assert len(handles) == 2


def test_a_python_fallback_runs(make: Make) -> None:
    system = make(
        (TorchFallback("CPU", "python"), TorchImpl("CUDA", "python")),
        background=(FOO,),
        probes=(TorchCall(slot="CPU"),),
    )
    assert ran(system, 0) == CallResult(("0: fallback CPU",), "returned")
    assert not ran(system, 1).ran


def test_a_background_kernel_is_named_as_such(make: Make) -> None:
    system = make(
        (TorchImpl("CPU", "python"),),
        background=(FOO, TorchImpl(None, "python")),
        probes=(TorchCall(),),
    )
    assert ran(system).ran == (f"background: {CI}",)
    assert ran(system, 0).ran == ("0: CPU",)


def test_failing_step(make: Make) -> None:
    system = make((FOO, TorchDefineWithKernel("foo(Tensor x) -> Tensor")))
    handle = system.do(0)
    before = system.observe()
    with pytest.raises(RuntimeError) as caught:
        system.do(1)
    assert system.failure(caught.value) == (
        "RuntimeError",
        "Tried to register an operator (everyorder_t::foo(Tensor x) -> Tensor) with"
        " the same name and overload name multiple times. Each overload's schema"
        " should only be registered with a single call to def(). Duplicate"
        " registration: registered at /dev/null:0. Original registration:"
        " registered at /dev/null:0",
    )
    assert system.observe() == before
    system.undo(0, handle)


def test_reset_takes_down_what_a_kept_failure_and_a_live_handle_left(
    make: Make,
) -> None:
    mismatch = TorchDefineWithKernel("foo(Tensor x, Tensor y) -> Tensor")
    system = make((mismatch, TorchImpl("CPU", "python")), keep_failed=True)
    empty = system.observe()
    with pytest.raises(RuntimeError):
        system.do(0)
    assert system.observe().state.splitlines()[1] == (
        "schema: everyorder_t::foo(Tensor x, Tensor y) -> Tensor"
    )
    held: Any = system.do(1)
    system.reset()
    assert system.observe() == empty
    del held
    system.do(1)  # the handle dies at once, and its registration with it
    assert system.observe() == empty


def test_reset_takes_down_an_ownerless_entry(make: Make) -> None:
    arguments = ", ".join(f"Tensor a{i}" for i in range(65))
    system = make((TorchDefine(f"foo({arguments}) -> ()"),))
    with pytest.raises(RuntimeError, match="65 arguments"):
        system.do(0)
    assert system.observe().state == f"name: {OPERATOR}\nschema: (none)\n"
    system.reset()
    assert system.observe().state == ""


def test_an_operator_of_somebody_else_is_refused(make: Make) -> None:
    library = perform(FOO, OPERATOR, kernel)
    with pytest.raises(RuntimeError) as caught:
        make(ORDER_DEPENDENCE)
    library.reset()
    assert str(caught.value).startswith(
        "everyorder_t::foo is registered by something else:\nname: everyorder_t::foo\n"
    )
    make(ORDER_DEPENDENCE).close()


def test_every_kind_of_step_comes_and_goes(make: Make) -> None:
    steps: tuple[TorchStep, ...] = (
        FOO,
        TorchDefineInferred(),
        TorchDefineWithKernel("foo(Tensor x) -> Tensor"),
        TorchImpl("CPU"),
        TorchImpl("CPU", "fallthrough"),
        TorchFallback("CUDA"),
    )
    system = make(steps)
    for step in range(system.steps):
        handle = system.do(step)
        assert (system.observe().state == "") is (step == 5)
        system.undo(step, handle)
        assert system.observe()[:2] == ("", "")
    system.close()
    names = load_torch()._C._dispatch_get_all_op_names()
    assert not [name for name in names if name.startswith("everyorder_t::")]
