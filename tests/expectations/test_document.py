"""What of a report is expected."""

from itertools import combinations

from harness.engine import State
from harness.expectations import Body, Digest, Document, Key, document_of
from harness.expectations.body import digest_of
from tests.expectations.samples import report


def test_a_report_becomes_a_document() -> None:
    found = report(
        {(1,): (("state", "two"),), (): "nothing"},
        {((1,), 0): (("error", "Refused"),)},
        pinned="the newest wins",
    )
    assert document_of(found) == Document(
        scenario="scenarios/test_demo/pair",
        steps=('impl("demo::f", k1)', 'impl("demo::f", k2)'),
        uses=('call("demo::f", "cpu")',),
        pinned="the newest wins",
        strategy="graph",
        guarantee=("graph: any length", "walk:2: the last two"),
        edges=8,
        entries=(
            (Key(()), (("observation", "nothing"),)),
            (Key((1,)), (("state", "two"),)),
            (Key((1,), 0), (("error", "Refused"),)),
        ),
    )
    assert document_of(found).ordered
    assert document_of(found).size == "2 states, 8 edges, 1 failing edge"


def test_above_256_states_only_the_corners_are_kept_in_full() -> None:
    states = {
        state: (("state", f"{state}"),)
        for size in range(10)
        for state in combinations(range(9), size)
    }
    failures: dict[tuple[State, int], Body] = {((0, 1, 2), 3): (("error", "Refused"),)}
    found = document_of(report(states, failures, steps=9))
    bodies = dict(found.entries)
    full = [key for key, body in found.entries if not isinstance(body, Digest)]
    assert len(full) == 1 + 9 + 36 + 1
    assert bodies[Key((0, 1, 2))] == digest_of(states[0, 1, 2])
    assert bodies[Key((0, 1, 2), 3)] == digest_of((("error", "Refused"),))
    assert bodies[Key(tuple(range(9)))] == states[tuple(range(9))]

    eight = {state: body for state, body in states.items() if 8 not in state}
    assert not any(
        isinstance(body, Digest)
        for _, body in document_of(report(eight, steps=8)).entries
    )
