"""Registrations and scenarios of the runtime's dispatcher, for Hypothesis.

Few operators and few keys: steps of one scenario then meet each other.  A
scenario observes which kernel ran, and not what it computes.

Rules:
- two kernels at one key of one operator depend on their order, as the newest one runs,
  and listeners are called in theirs; a generated scenario has such pairs in `ordered=`;
- a step may be refused after others, and calls may find no kernel: errors are answers.
"""

import ast
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from everyorder.harness.scenario.registrations import (
    define,
    fallback,
    impl,
    library,
    listen,
    operator_of,
    reserve,
    together,
)
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.scenario.step import Step, UseStep
from everyorder.harness.scenario.uses import call, look_up
from everyorder.harness.strategies.generated import RELATIONS, Relation, scenarios
from everyorder.runtime.dispatch.kernel import fallthrough
from everyorder.runtime.strategies import schema_texts

__all__ = [
    "KEYS",
    "OPERATORS",
    "answers",
    "dispatcher_scenarios",
    "first_kernel",
    "registrations",
    "second_kernel",
    "share_a_place",
    "typed_kernel",
]

OPERATORS = ("t::f", "t::f.o", "u::g")
# A backend, autograd above it, two aliases that overlap with both, and one that a call
# passes through.
KEYS = ("CPU", "CUDA", "AutogradCPU", "Autograd", "CompositeImplicitAutograd", "Tracer")
# Where a kernel without a key is registered.
_DEFAULT = "CompositeImplicitAutograd"
# Signatures that meet: equal ones, one that `typed_kernel` fits, one of numbers alone.
_FORMS = (
    "(Tensor x) -> Tensor",
    "(Tensor self, int n=1) -> Tensor",
    "(int n) -> int",
    "(Tensor[] xs, *, float s=1.) -> ()",
)


def first_kernel(*args: Any, **kwargs: Any) -> Any:
    """Return the first argument."""
    return args[0] if args else None


def second_kernel(*args: Any, **kwargs: Any) -> Any:
    """Return the first argument."""
    return args[0] if args else None


def typed_kernel(n: int) -> int:
    """Return its argument; its signature is checked against schemas."""
    return n


_KERNELS = (first_kernel, second_kernel, typed_kernel, fallthrough)


def share_a_place(one: Step, other: Step) -> bool:
    """Return True if both steps register a kernel at one key, or both a listener."""
    return not _places(one).isdisjoint(_places(other))


def _places(step: Step) -> frozenset[tuple[str, str]]:
    """Return the operators and keys at which a step registers kernels."""
    places: set[tuple[str, str]] = set()
    # The text of such a step is code.
    for node in ast.walk(ast.parse(step.text, mode="eval")):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "impl":
            operator, _, *key = map(_constant, node.args)
            keys = key[0] if key else _DEFAULT
            key_lists = [keys] if isinstance(keys, str) else keys
            places |= {(operator, each) for each in key_lists}
        elif node.func.id == "listen":
            places.add(("", "listener"))
        elif any(each.arg == "kernel" for each in node.keywords):
            operator = str(operator_of(_constant(node.args[0])))
            places.add((operator, _DEFAULT))
    return frozenset(places)


def _constant(node: ast.expr) -> Any:
    return None if isinstance(node, ast.Name) else ast.literal_eval(node)


def registrations(
    operators: Sequence[str] = OPERATORS, keys: Sequence[str] = KEYS
) -> st.SearchStrategy[Step]:
    """Return a strategy for the steps of `torch.library`, and some of them together.

    Args:
        operators: names with their namespace.
        keys: the dispatch keys of kernels and fallbacks.
    """
    names, places = st.sampled_from(operators), st.sampled_from(keys)
    kernels = st.sampled_from(_KERNELS)
    forms = st.one_of(
        st.builds("{}{}".format, names, st.sampled_from(_FORMS)),
        schema_texts(names, variables=False),
    )
    namespaces = sorted({each.partition("::")[0] for each in operators})
    key_lists = st.lists(places, min_size=1, max_size=2, unique=True)
    one_step = st.one_of(
        st.builds(define, forms, kind=st.sampled_from(("FRAGMENT", "DEF"))),
        st.builds(define, forms, kernel=kernels),
        st.builds(impl, names, kernels, places, allow_override=st.booleans()),
        st.builds(impl, names, kernels, key_lists),
        st.builds(impl, names, kernels),
        st.builds(fallback, kernels, places),
        st.builds(reserve, names),
        st.builds(library, st.sampled_from(namespaces)),
        st.builds(listen),
    )
    return st.one_of(one_step, one_step, st.builds(together, one_step, one_step))


def answers(operators: Sequence[str] = OPERATORS) -> st.SearchStrategy[UseStep]:
    """Return a strategy for calls and look-ups of operators."""
    names = st.sampled_from(operators)
    kinds = st.sampled_from(("cpu", "cuda", "cpu below autograd", "CPU+Tracer"))
    return st.one_of(st.builds(call, names, kinds), st.builds(look_up, names))


def dispatcher_scenarios(
    operators: Sequence[str] = OPERATORS,
    keys: Sequence[str] = KEYS,
    *,
    max_steps: int = 3,
    max_uses: int = 2,
    relations: Sequence[Relation] = RELATIONS,
    **options: Any,
) -> st.SearchStrategy[Scenario]:
    """Return a strategy for scenarios of the dispatcher.

    Args:
        operators: names with their namespace.
        keys: the dispatch keys of kernels and fallbacks.
        max_steps: as for `scenarios`, as are the other arguments.
        max_uses: the limit of the drawn uses.
        relations: the relations to draw between steps.
        options: as for `Scenario`.
    """
    options.setdefault("probes", ("cpu",))
    return scenarios(
        [registrations(operators, keys)],
        [answers(operators)],
        max_steps=max_steps,
        max_uses=max_uses,
        relations=relations,
        ordered=share_a_place,
        **options,
    )
