import pytest

from everyorder.harness.report.verdict import Failure, Unexplored, failure_counts


def test_where_and_why() -> None:
    assert Unexplored("s/a", "test_a.py:3", "gone").render() == "test_a.py:3: gone"
    assert Unexplored("s/a", "", "gone").render() == "s/a: gone"


def test_the_operation_those_before_it_and_the_stack() -> None:
    died = Unexplored(
        *("s/a", "test_a.py:3", "ended by SIGSEGV", "crashed", "step_2 = b()"),
        history=("step_1 = a()", "use()"),
        stack=("b() at test_a.py:9", "call() at test_a.py:1"),
    )
    assert died.render() == (
        "test_a.py:3: ended by SIGSEGV\n"
        "in\n"
        "    step_2 = b()\n"
        "after\n"
        "    step_1 = a()\n"
        "    use()\n"
        "stack, innermost call first:\n"
        "    b() at test_a.py:9\n"
        "    call() at test_a.py:1"
    )
    assert died.data() == {
        "scenario": "s/a",
        "verdict": "crashed",
        "where": "test_a.py:3",
        "reason": "ended by SIGSEGV",
        "operation": "step_2 = b()",
        "history": ["step_1 = a()", "use()"],
        "stack": ["b() at test_a.py:9", "call() at test_a.py:1"],
    }


def test_the_last_of_a_long_history_and_the_first_of_a_deep_stack() -> None:
    lines = tuple(str(number) for number in range(20))
    told = Unexplored("s/a", "", "60 s", "hung", history=lines, stack=lines).render()
    assert told.split("\n") == [
        *("s/a: 60 s", "after", "    ... 8 before"),
        *(f"    {number}" for number in range(8, 20)),
        "stack, innermost call first:",
        *(f"    {number}" for number in range(12)),
        "    ... and 8 more",
    ]


@pytest.mark.parametrize(
    ("verdict", "label", "sentence"),
    [
        ("crashed", "CRASHED", "crashed"),
        ("hung", "HUNG", "hung"),
        ("failed", "FAILED", "not explored"),
    ],
)
def test_verdicts(verdict: Failure, label: str, sentence: str) -> None:
    one = Unexplored("s/a", "", "why", verdict)
    assert (one.label, one.sentence) == (label, sentence)
    assert failure_counts([one, one]) == [f"2 {sentence}"]


def test_the_worst_is_counted_first() -> None:
    verdicts: tuple[Failure, ...] = ("failed", "hung", "crashed", "failed")
    others = [Unexplored("s/a", "", "why", verdict) for verdict in verdicts]
    assert failure_counts(others) == ["1 crashed", "1 hung", "2 not explored"]
    assert failure_counts([]) == []
