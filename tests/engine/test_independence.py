"""Operations are joined by the places that one of them writes."""

from everyorder.harness.engine.independence import (
    EVERY,
    Accesses,
    Join,
    Place,
    parts_of,
    shared_places,
)

A: Place = ("registry.a", 1)
B: Place = ("registry.a", 2)
ALL: Place = ("registry.a", EVERY)
OTHER: Place = ("registry.b", EVERY)


def reads(*places: Place) -> Accesses:
    return Accesses(frozenset(places), frozenset())


def writes(*places: Place) -> Accesses:
    return Accesses(frozenset(places), frozenset(places))


def test_a_place_is_shared_if_one_operation_writes_it() -> None:
    assert shared_places(writes(A), reads(A)) == {A}
    assert shared_places(reads(A), writes(A)) == {A}
    assert shared_places(writes(A), writes(A)) == {A}
    assert not shared_places(reads(A), reads(A))
    assert not shared_places(writes(A), writes(B))


def test_every_place_of_a_container_is_shared_with_each() -> None:
    assert shared_places(writes(A), reads(ALL)) == {ALL}
    assert shared_places(reads(ALL), writes(A)) == {ALL}
    assert shared_places(writes(ALL), reads(A)) == {ALL}
    assert shared_places(writes(ALL), reads(ALL)) == {ALL}
    assert not shared_places(writes(A), reads(OTHER))
    assert not shared_places(reads(ALL), reads(ALL))


def test_parts_are_joined_through_a_third_operation() -> None:
    accesses = {0: writes(A), 1: writes(B), 2: reads(A, B), 3: reads(B)}
    parts, joins = parts_of(4, [(0,), (1,)], accesses)
    assert parts == ((0, 1, 2, 3),)
    assert joins == (Join(1, 2, frozenset({B})),)


def test_what_shares_nothing_stays_apart() -> None:
    accesses = {0: writes(A), 1: writes(B), 2: reads(A), 3: reads(OTHER)}
    parts, joins = parts_of(4, [(0,), (1,)], accesses)
    assert parts == ((0, 2), (1,), (3,))
    assert joins == ()


def test_groups_stay_groups_whatever_they_access() -> None:
    parts, _ = parts_of(3, [(0, 2), (1,)], {})
    assert parts == ((0, 2), (1,))
