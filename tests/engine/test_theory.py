"""Every strategy has its claims, and no claim is too large."""

from harness.engine import ASSUMPTIONS, GUARANTEES, KNOWN_STRATEGIES, parse


def test_every_strategy_has_its_claims() -> None:
    for known in KNOWN_STRATEGIES[1:]:
        (part,) = parse(known.replace("N", "2"))
        assert part.name == known.replace("N", "2")
        assert part.family in GUARANTEES
        assert part.family in ASSUMPTIONS
        assert "{" not in part.guarantee + part.assumption


def test_the_large_history_does_not_occur() -> None:
    for text in (*GUARANTEES.values(), *ASSUMPTIONS.values()):
        assert "exhaustive" not in text
