"""Linked kernels: made once for each keyset, and always above what is live now."""

from typing import Any

from everyorder.harness.scenario import Scenario, define, fallback, impl
from everyorder.harness.scenario.effects import probe_tensor
from everyorder.runtime.dispatch import Dispatcher, Library, Operators, fallthrough
from everyorder.runtime.dispatch.kernel_lookup import WARM
from everyorder.runtime.keys import DispatchKey, KeySet
from tests.scenarios.asking import Question, ask, asked, handle, often
from tests.scenarios.kernels import (
    all_spelled,
    linked_anew,
    linked_by_hand,
    linked_spelled,
    spelled,
    spelled_anew,
    spelled_fallback,
    spelled_keyed,
    stack_spelled,
    typed_spelled,
)

_X, _TRACED = probe_tensor("cpu"), probe_tensor("CPU+Tracer")
_FOLD = define("tree::fold(Tensor x, int n=1, Tensor? y=None) -> str")


def _f(*args: Any) -> Question:
    return often(lambda target: handle(target, "tree::fold")(*args))


_calls = ask(
    "tree::fold(...), linked",
    _f(_X),
    _f(_X, 2, _X),
    _f(probe_tensor("cpu below autograd")),
    _f(probe_tensor("CUDA+AutogradCUDA")),
    lambda target: handle(target, "tree::fold").call_boxed([_X, 3]),
    lambda target: handle(target, "tree::fold").call_for_key("Autograd", [_X]),
    lambda target: handle(target, "tree::fold").redispatch(
        KeySet(DispatchKey.AutogradCPU), _X
    ),
)

# A chain: each runs the kernel of the next key, whatever kind that one is of.
chains = Scenario(
    impl("tree::fold", linked_spelled, "Autograd"),
    impl("tree::fold", spelled, "CPU"),
    impl("tree::fold", linked_spelled, "ADInplaceOrView"),
    given=[_FOLD],
    **asked(_calls),
)

# What lies below is of any convention, and is given what a call gives it.
below_of_any_convention = Scenario(
    impl("tree::fold", all_spelled, "CPU"),
    impl("tree::fold", stack_spelled, "CUDA"),
    fallback(spelled_fallback, "CPU"),
    given=[_FOLD, impl("tree::fold", linked_spelled, "Autograd")],
    **asked(_calls),
)

# What a linked kernel passes and the schema does not allow is passed as it is.
passed_as_it_is = Scenario(
    impl("tree::fold", linked_anew, "Autograd"),
    impl("tree::fold", stack_spelled, "CPU"),
    impl("tree::fold", all_spelled, "CUDA"),
    given=[define("tree::fold(Tensor x, ScalarType dtype=float) -> str")],
    **asked(ask("tree::fold(x)", _f(_X), _f(probe_tensor("CUDA+AutogradCUDA")))),
)

# A linked kernel that chooses what runs by a keyset of its own.
chosen_by_hand = Scenario(
    impl("tree::fold", linked_by_hand, "AutogradCPU"),
    impl("tree::fold", typed_spelled, "CPU"),
    _FOLD,
    **asked(_calls),
)

# A linked fallback stands above every operator, and knows which one it is.
linked_fallbacks = Scenario(
    fallback(linked_spelled, "Tracer"),
    impl("tree::fold", spelled_keyed, "CPU", with_keyset=True),
    impl("tree::bend", spelled_anew, "CPU"),
    given=[_FOLD, define("tree::bend(Tensor x) -> str")],
    **asked(
        ask(
            "tree::fold(traced)",
            often(lambda target: handle(target, "tree::fold")(_TRACED)),
            often(lambda target: handle(target, "tree::bend")(_TRACED)),
        )
    ),
)

# A linked kernel at the lowest key has nothing below, and says so.
nothing_below = Scenario(
    impl("tree::fold", linked_spelled, "CPU"),
    impl("tree::fold", linked_spelled, "CompositeImplicitAutograd"),
    impl("tree::fold", fallthrough, "AutogradCPU"),
    given=[_FOLD],
    **asked(_calls),
)


def _by_packet_alone(target: Dispatcher) -> list[str]:
    """Kernels that are given the operator, of which nobody keeps a handle."""
    with Library("tree", "FRAGMENT", dispatcher=target, origin="asked") as library:
        library.define("unkept(Tensor x) -> str")
        library.impl("unkept", stack_spelled, "CPU")
        library.impl("unkept", linked_by_hand, "AutogradCPU")
        packet = Operators(lambda: target).tree.unkept
        below = probe_tensor("cpu below autograd")
        answers = [packet(x) for _ in range(WARM + 2) for x in (_X, below)]
    return [*dict.fromkeys(answers), ", ".join(target.op_names())]


# An operator that is called by its packet alone is given to kernels all the same.
given_without_a_handle = Scenario(
    define("tree::bend(Tensor x) -> str"),
    fallback(linked_spelled, "Tracer"),
    impl("tree::bend", spelled, "CPU"),
    **asked(ask("ops.tree.unkept(...)", _by_packet_alone)),
)


def _traced(target: Dispatcher) -> list[str]:
    op = handle(target, "tree::fold")
    with target.trace() as lines:
        for _ in range(2):
            op(_X)
        op.call_boxed([_X])
        op.redispatch(KeySet(DispatchKey.CPU), _X)
    return [str(line) for line in lines]


# The trace of a chain: one line for each kernel, deeper and deeper.
traces = Scenario(
    impl("tree::fold", linked_spelled, "AutogradCPU"),
    impl("tree::fold", spelled, "CPU"),
    _FOLD,
    **asked(ask("trace()", _traced, lambda target: len(_traced(target)))),
)
