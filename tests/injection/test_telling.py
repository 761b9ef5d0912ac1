"""What a leg of interruptions says at its end."""

from tests.injection.telling import NAME, Told, kept, nobody, tell, total


def test_a_line_and_the_total() -> None:
    places = Told(operation="copy_", points=3, of=9, seed=7)
    timed = Told(operation="a timer", rounds=20, came=4, seed=8, failures=1)
    assert str(places) == "copy_: 3 of 9 points, seed 7: 0 failures"
    assert str(timed) == "a timer: 20 rounds, 4 interrupted, seed 8: 1 failures"
    assert total([places, timed]) == (
        "interrupted: 2 operations, 3 points, 20 rounds, 2 seeds, 1 failures"
    )


def test_what_is_told_is_kept() -> None:
    properties: list[tuple[str, object]] = [("other", 1)]
    told = Told(operation="copy_", points=3, of=9)
    tell(lambda name, value: properties.append((name, value)), told)
    assert properties[1][0] == NAME
    assert kept(properties) == [told]
    tell(nobody, told)
