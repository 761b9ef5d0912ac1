"""Which orders of dicts are never read matters for a proof only."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness import Report, Scenario, explore, steps, use
from everyorder.harness.engine import Budget, proof


class Registry:
    def __init__(self) -> None:
        self.items: dict[str, int] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.items[name] = 1
        return lambda: self.items.pop(name)


def explored(most: int) -> Report:
    return explore(
        Scenario(
            *steps("add", "abcde", Registry.add),
            uses=[use("count", lambda registry: len(registry.items))],
            create=Registry,
            observe=lambda registry: " ".join(sorted(registry.items)),
            check=lambda registry: ["many"] if len(registry.items) > most else [],
        ),
        budget=Budget(steps=20_000),  # too few for every order
    )


def test_a_fault_needs_one_example_of_what_a_proof_assumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The portraits for all of them took a sixth of an exploration of Django."""
    asked: list[int] = []
    unread = proof.orders_unread

    def noted(session: Any, variants: Any) -> tuple[str, ...]:
        asked.append(len(variants))
        return unread(session, variants)

    monkeypatch.setattr(proof, "orders_unread", noted)
    right = explored(5)
    assert right.assumes == ("the order of registry.items is never read",)
    assert asked.pop() > 1
    wrong = explored(4)
    assert wrong.verdict == "law"
    assert wrong.exploration.closure is not None
    assert wrong.exploration.closure.closed
    assert wrong.exploration.closure.unread == ("registry.items",)
    assert not wrong.exploration.proven
    assert asked == [1]
