"""Replays tell what happened, operation by operation."""

import pytest

from everyorder.harness.base.errors import CannotReplay
from everyorder.harness.engine import Action, HistoryFault, Replay, replay
from tests.coded import code
from tests.engine.toys import Exclusive, Leaking, Newest, Stuck, Toy


def test_a_whole_replay() -> None:
    refused = ("Refused", "taken by 0")
    assert replay(Exclusive(2, 1), (0, 1, 2, 3, 0)) == Replay(
        history=(0, 1, 2, 3, 0),
        actions=(
            Action(0, "add", (0,), None, None),
            Action(1, "failing", (0,), refused, None),
            Action(2, "use", (0,), True, None),
            Action(3, "look", (0,), ((0,), ""), None),
            Action(0, "remove", (), None, None),
            Action(3, "look", (), ((), ""), None),
        ),
        faults=(),
    )


def test_watching_looks_after_every_operation() -> None:
    actions = replay(Toy(2, printed=True), [1, 0], watch=True).actions
    assert [(a.kind, a.state, a.fingerprint) for a in actions] == [
        ("add", (1,), ((1,), "")),
        ("look", (1,), ((1,), "")),
        ("add", (0, 1), ((0, 1), "")),
        ("look", (0, 1), ((0, 1), "")),
    ]


def test_the_empty_history_is_a_look() -> None:
    for watch in (False, True):
        played = replay(Toy(1), (), watch=watch)
        assert played.actions == (Action(1, "look", (), ((), ""), None),)
        assert played.state == ()


def test_order_of_activation() -> None:
    assert replay(Newest(3), (2, 0), order_dependent=True).state == (2, 0)
    assert replay(Newest(3), (2, 0)).state == (0, 2)


def test_faults_within_the_history() -> None:
    assert replay(Leaking(2), (1, 1)).faults == (
        HistoryFault("leak", (), None, "Handle", 2),
    )


def test_a_replay_ends_where_an_undo_raises() -> None:
    played = replay(Stuck(2), (1, 0, 1, 0))
    assert [action.kind for action in played.actions] == ["add", "add"]
    assert played.faults == (
        HistoryFault("undo", (0, 1), None, ("Refused", "held by 0"), 3),
    )
    assert replay(Stuck(2), (0, 1, 1)).state == (0, 1)


def test_a_replay_without_any_action_has_no_state() -> None:
    assert Replay((), (), ()).state == ()


def test_a_foreign_history() -> None:
    with pytest.raises(CannotReplay, check=code("UnknownOperation")):
        replay(Toy(2), (0, 7))
