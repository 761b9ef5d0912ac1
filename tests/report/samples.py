"""Reports made by hand, one for each verdict."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from everyorder.harness.engine.protocol import State
from everyorder.harness.engine.result import (
    Counts,
    Exploration,
    Kind,
    Square,
    Vacuity,
    Violation,
)
from everyorder.harness.engine.strategy import DETERMINISM, EQUAL_STATES, SCOPE
from everyorder.harness.report.verdict import Report

STEPS = (
    'define("demo::add(Tensor x, Tensor y) -> Tensor")',
    'impl("demo::add", cpu_add, "CPU")',
    'impl("demo::add", any_add, "CompositeImplicitAutograd")',
)

GRAPH = (
    "every finite history, of any length, shows what its active steps say (proof "
    "over every operation at every complete state)"
)


def observation(state: State) -> Hashable:
    lines = ["name: demo::add", "schema: (none)"]
    if 0 in state:
        lines[1] = "schema: demo::add(Tensor x, Tensor y) -> Tensor"
    table = "".join(
        f"{key}: {kernel}\n"
        for step, key, kernel in (
            (1, "CPU", "cpu_add"),
            (2, "CUDA..Meta", "any_add (math kernel) <tag>"),
        )
        if step in state
    )
    calls = "cpu: cpu_add\n" if 0 in state and 1 in state else "cpu: MissingKernel\n"
    return (("state", "\n".join(lines) + "\n"), ("table", table), ("calls", calls))


def cube(n: int) -> dict[State, Hashable]:
    sets = [tuple(i for i in range(n) if mask >> i & 1) for mask in range(1 << n)]
    sets.sort(key=lambda state: (len(state), state))
    return {state: observation(state) for state in sets}


FAILURES: Mapping[tuple[State, int], Hashable] = {
    ((1,), 2): (("error", "NoSuchOperator"), ("operator", "demo::add")),
}

PROVEN = Report(
    scenario="scenarios/test_composites/two_kernels",
    steps=STEPS,
    uses=('call("demo::add", "cpu")',),
    order_dependent=None,
    exploration=Exploration(
        strategy="graph+walk:2+histories:3",
        guarantee=(
            f"graph: {GRAPH}; walk:2: every operation was taken from every reachable "
            "state after every history of the last 2 operations, in one run; "
            "histories:3: every history of at most 3 operations agrees, seen only at "
            "its end"
        ),
        assumptions=(DETERMINISM, f"graph: {EQUAL_STATES}", f"graph: {SCOPE}"),
        skipped=("kA:1 would take 1,240 operations, the budget allows 1,000",),
        states=cube(3),
        failures=FAILURES,
        executed=Counts(628, 290, 289, 7, 40, 660, 86),
        planned=628,
        violations=(),
        complete=True,
        seconds=0.0123,
        proven=True,
    ),
    digest="0123456789ab",
)

ORDER_VIOLATION = Violation(
    kind="order",
    state=(1, 2),
    expected=(("state", "same\n"), ("table", "AutogradCPU: cpu_add\nCPU: cpu_add\n")),
    found=(("state", "same\n"), ("table", "AutogradCPU: any_add\nCPU: cpu_add\n")),
    history=(0, 1, 0, 2, 4),
    shortest=(2, 1, 3),
    square=Square((), 1, 2),
    proven_shortest=True,
)


def broken(name: str, *violations: Violation, complete: bool = False) -> Report:
    exploration = replace(
        PROVEN.exploration,
        strategy="walk:1",
        guarantee="walk:1: every operation was taken after every last operation",
        assumptions=(DETERMINISM,),
        skipped=(),
        violations=violations,
        complete=complete,
        planned=1_000,
        seconds=1.25,
        proven=False,
    )
    return replace(
        PROVEN, scenario=f"scenarios/test_broken/{name}", exploration=exploration
    )


ORDER = broken("order_matters", ORDER_VIOLATION)
LAW = broken(
    "law_is_broken",
    Violation(
        kind="law",
        state=(0, 1),
        expected=(),
        found=(("tables_agree", "demo::add at CPU", "cpu_add", "missing"), "plain"),
        history=(0, 1),
    ),
)
RANDOM = broken(
    "not_deterministic",
    Violation("nondeterminism", (0,), "a\nb\n", "a\nc\n", (0,), (0,)),
)
CUT = broken("cut_short")
HOLDS = broken("within_a_walk", complete=True)
PINNED = replace(
    broken("newest_wins", complete=True), order_dependent="the newest kernel wins"
)
PINNED = replace(
    PINNED,
    exploration=replace(
        PINNED.exploration,
        states={
            state: observation(tuple(sorted(state)))
            for state in ((), (0,), (1,), (0, 1), (1, 0))
        },
    ),
)
VACUOUS = replace(
    HOLDS,
    scenario="scenarios/test_broken/nothing_happens",
    exploration=replace(
        HOLDS.exploration,
        vacuous=(
            Vacuity(1, "changes nothing that is looked at or asked"),
            Vacuity(2, "raises NameError whatever is active", ("NameError",)),
            Vacuity(3, "answers the same whatever is active"),
            Vacuity(4, "shows the same whatever is active"),
        ),
    ),
)


def violated(kind: Kind, **more: Any) -> Report:
    """A report of one violation, which has a place and no history."""
    values: dict[str, Any] = {"state": (), "expected": None, "found": None}
    violation = Violation(kind, **(values | {"history": ()} | more))
    return broken(kind.replace(" ", "_"), violation)


ALL = (PROVEN, PINNED, HOLDS, ORDER, LAW, RANDOM, CUT)
