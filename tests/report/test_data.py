import json
from dataclasses import asdict

from harness.report.data import document
from harness.report.unexplored import Unexplored
from tests.report.samples import ALL, GRAPH, ORDER, ORDER_VIOLATION, PROVEN, STEPS


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
        "strategy": "graph+walk:2+words:3",
        "assumptions": list(PROVEN.exploration.assumptions),
        "skipped": list(PROVEN.exploration.skipped),
        "complete": True,
        "planned": 628,
        "seconds": 0.0123,
        "states": 8,
        "failing": 1,
        "executed": asdict(PROVEN.exploration.executed),
        "violations": [],
    }
    assert found["format"] == 1
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
            "replay_id": ORDER.replay_id(ORDER_VIOLATION),
        }
    ]
    assert found["unexplored"] == [
        {"scenario": "s/a", "where": "a.py:1", "reason": "gone"}
    ]


def test_every_report_can_be_written() -> None:
    verdicts = [each["verdict"] for each in json.loads(document(ALL))["scenarios"]]
    assert verdicts == [report.verdict for report in ALL]
