import json
from collections.abc import Hashable
from dataclasses import asdict, replace

from harness.engine.protocol import Caveat, State
from harness.engine.result import Closure
from harness.outcome import Unexplored
from harness.report.page import document
from tests.report.samples import (
    ALL,
    GRAPH,
    ORDER,
    ORDER_VIOLATION,
    PROVEN,
    STEPS,
    VACUOUS,
    broken,
    violated,
)


def test_what_passed() -> None:
    found = json.loads(document([PROVEN]))
    [scenario] = found["scenarios"]
    guarantee = scenario.pop("guarantee")
    assert guarantee.startswith(f"graph: {GRAPH}; walk:2: ")
    assert scenario == {
        "scenario": "scenarios/test_composites/two_kernels",
        "digest": "0123456789ab",
        "verdict": "proven",
        "passed": True,
        "steps": list(STEPS),
        "uses": ['call("demo::add", "cpu")'],
        "order_dependent": None,
        "ordered": [],
        "strategy": "graph+walk:2+histories:3",
        "assumptions": list(PROVEN.exploration.assumptions),
        "assumed": [],
        "open": [],
        "skipped": list(PROVEN.exploration.skipped),
        "vacuous": [],
        "proven": True,
        "closure": None,
        "spent": {},
        "complete": True,
        "planned": 628,
        "seconds": 0.0123,
        "states": 8,
        "failing": 1,
        "refused": 0,
        "executed": asdict(PROVEN.exploration.executed),
        "violations": [],
    }
    assert found["format"] == 3
    assert found["unexplored"] == []


def test_violations_and_what_was_not_explored() -> None:
    found = json.loads(document([ORDER], [Unexplored("s/a", "a.py:1", "gone")]))
    assert found["scenarios"][0]["violations"] == [
        {
            "kind": "order",
            "state": "{2 3}",
            "lines": [
                'step_3 = impl("demo::add", any_add, "CompositeImplicitAutograd")',
                'step_2 = impl("demo::add", cpu_add, "CPU")',
                'call("demo::add", "cpu")',
            ],
            "other": None,
            "shortest": True,
            "proven_shortest": True,
            "square": "from {}, 2 then 3 differs from 3 then 2",
            "difference": [
                "first divergence in 'table' (- expected, + found):",
                "    @@ -1,2 +1,2 @@",
                "    -AutogradCPU: cpu_add",
                "    +AutogradCPU: any_add",
                "     CPU: cpu_add",
            ],
            "paths": [],
            "replayed": 0,
            "frequency": None,
            "more": 0,
            "replay_id": ORDER.replay_id(ORDER_VIOLATION),
        }
    ]
    assert found["unexplored"] == [
        {
            "scenario": "s/a",
            "verdict": "failed",
            "where": "a.py:1",
            "reason": "gone",
            "operation": "",
            "history": [],
            "stack": [],
        }
    ]


def test_what_stands_between_states_and_a_proof() -> None:
    refused: dict[tuple[State, int], Hashable] = {((0, 1), 1): "no"}
    exploration = replace(
        PROVEN.exploration,
        closure=Closure(41, 205, 4, closed=True, unread=("registry._items",)),
        caveats=(
            Caveat("assumed", "it calls _codecs.register"),
            Caveat("assumed", "the order of a set is not read"),
        ),
        spent=(("graph", 750), ("stale", 250)),
        refusals=refused,
    )
    report = replace(PROVEN, exploration=exploration, pairs=((0, 2),))
    [scenario] = json.loads(document([report]))["scenarios"]
    assert scenario["closure"] == {
        "states": 41,
        "transitions": 205,
        "histories": 4,
        "closed": True,
        "order_read": False,
        "unread": ["registry._items"],
    }
    assert scenario["assumed"] == [
        "the order of registry._items is never read",
        "it calls _codecs.register",
        "the order of a set is not read",
    ]
    assert (scenario["open"], scenario["proven"]) == ([], True)
    assert scenario["spent"] == {"graph": 750, "stale": 250}
    assert scenario["ordered"] == [[STEPS[0], STEPS[2]]]
    assert scenario["refused"] == 1

    caveats = (Caveat("opaque", "a Connection"), Caveat("outside", "sys.path"))
    exploration = replace(exploration, caveats=caveats, proven=False)
    report = replace(report, exploration=exploration)
    [scenario] = json.loads(document([report]))["scenarios"]
    assert (scenario["verdict"], scenario["assumed"]) == ("holds", [])
    assert scenario["open"] == ["a Connection", "sys.path"]


def test_what_is_vacuous_or_flaky() -> None:
    flaky = violated("nondeterminism", expected="a", found="b", frequency=(1, 21))
    hidden = violated(
        "hidden", paths=("a: 1 / 2",), replayed=5, history=(1, 3), other=(0, 0, 1, 3)
    )
    found = json.loads(document([VACUOUS, flaky, hidden]))["scenarios"]
    assert (found[0]["verdict"], found[0]["passed"]) == ("vacuous", False)
    assert found[0]["vacuous"][1:3] == [
        f"{STEPS[2]} raises NameError whatever is active; if that is meant, "
        "declare raises=NameError",
        'call("demo::add", "cpu") answers the same whatever is active; if '
        "that is meant, declare constant=True",
    ]
    [one], [other] = found[1]["violations"], found[2]["violations"]
    assert (one["frequency"], one["replayed"], one["paths"]) == ([1, 21], 0, [])
    assert one["difference"][-1] == "found in 1 of 21 replays of this history"
    assert (other["frequency"], other["replayed"]) == (None, 5)
    assert other["paths"] == ["a: 1 / 2"]
    assert one["other"] is None
    assert other["lines"] == [f"step_2 = {STEPS[1]}", 'call("demo::add", "cpu")']
    assert other["other"] == [
        *(f"step_1 = {STEPS[0]}", "step_1.close()"),
        *(f"step_2 = {STEPS[1]}", 'call("demo::add", "cpu")'),
    ]


def test_every_report_can_be_written() -> None:
    verdicts = [each["verdict"] for each in json.loads(document(ALL))["scenarios"]]
    assert verdicts == [report.verdict for report in ALL]


def test_what_was_found_is_whole() -> None:
    violation = replace(ORDER_VIOLATION, expected="x\n" * 99, found="y" * 9_999)
    found = json.loads(document([broken("long", violation)]))
    assert found["scenarios"][0]["violations"][0]["difference"] == [
        "first divergence (- expected, + found):",
        "    @@ -1,99 +1 @@",
        *["    -x"] * 99,
        f"    +{'y' * 9_999}",
    ]
