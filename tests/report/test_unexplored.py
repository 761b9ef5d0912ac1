from harness.report.unexplored import Unexplored


def test_where_and_why() -> None:
    assert Unexplored("s/a", "test_a.py:3", "gone").render() == "test_a.py:3: gone"
    assert Unexplored("s/a", "", "gone").render() == "s/a: gone"
