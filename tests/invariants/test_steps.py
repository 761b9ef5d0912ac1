"""Laws of a step, on pairs of states, right ones and made-up ones."""

import pytest

from everyorder.invariants import check, check_step
from everyorder.invariants.live import Change
from everyorder.runtime.dispatch.registration_record import RegistrationRecord
from everyorder.runtime.dispatch.state import DispatcherState
from everyorder.runtime.keys import DispatchKey
from tests.invariants.healthy import Healthy, healthy

CPU = DispatchKey.parse("CPU")


def told(
    before: DispatcherState,
    after: DispatcherState,
    change: Change,
    tokens: tuple[RegistrationRecord, ...] | None = None,
) -> list[str]:
    """The violations of a step as text."""
    return [str(each) for each in check_step(before, after, change, tokens)]


def with_kernel(
    system: Healthy,
) -> tuple[DispatcherState, tuple[RegistrationRecord, ...]]:
    """The state with one kernel more, and its token."""
    system.libraries[0].impl("f", lambda x: None, "CPU", debug="third")
    entry = system.entry()
    return system.dispatcher.snapshot(), (entry.implementations[CPU][0],)


def test_right_steps_break_no_law() -> None:
    system = healthy()
    before = system.state
    after, tokens = with_kernel(system)
    assert told(before, after, "add", tokens) == []
    assert told(before, after, "add") == []
    assert told(after, before, "remove", tokens) == []
    assert told(after, before, "remove") == []
    for change in ("fail", "use", "again"):
        assert told(before, before, change) == []


def test_an_add_that_does_nothing() -> None:
    system = healthy()
    _, tokens = with_kernel(system)
    assert told(system.state, system.state, "add", tokens) == [
        "an_add_adds_exactly_its_tokens at tokens that came: "
        "expected implementation 'third', found nothing"
    ]


def test_an_add_that_removes_and_a_removal_that_adds() -> None:
    system = healthy()
    before = system.state
    after, _ = with_kernel(system)
    assert told(after, before, "add") == [
        "an_add_adds_exactly_its_tokens at tokens that ended: "
        "expected nothing, found implementation 'third'"
    ]
    assert told(before, after, "remove", ()) == [
        "a_removal_removes_exactly_its_tokens at tokens that came: "
        "expected nothing, found implementation 'third'"
    ]


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ("fail", "a_failed_step_changes_nothing"),
        ("use", "a_use_changes_nothing"),
        ("again", "closing_twice_changes_nothing"),
    ],
)
def test_changes_where_nothing_should_change(change: Change, law: str) -> None:
    system = healthy()
    before = system.state
    after, _ = with_kernel(system)
    assert told(before, after, change) == [
        f"{law} at d::f, kernels: expected "
        "implementation 'new', implementation 'old', implementation 'sparse', "
        "implementation 'through', implementation 'math', found "
        "implementation 'third', implementation 'new', implementation 'old', "
        "implementation 'sparse', implementation 'through', implementation 'math'",
        f"{law} at d::f, total: expected 6, found 7",
        f"{law} at d::f, table: expected as before, found changed",
    ]


def test_parts_of_a_state_in_words() -> None:
    system = healthy()
    before = system.state
    system.libraries[1].close()
    after = system.dispatcher.snapshot()._replace(
        claims=(), subscriptions=(), merges_alias_kinds=True
    )
    assert told(before, after, "use") == [
        "a_use_changes_nothing at e::h: expected an operator, found nothing",
        "a_use_changes_nothing at the claims: expected claim 'own', found nothing",
        "a_use_changes_nothing at the listeners: "
        "expected subscription 'listener', found nothing",
        "a_use_changes_nothing at the rule for alias kinds: expected False, found True",
    ]


def test_a_state_that_reads_the_same_is_no_change() -> None:
    system = healthy()
    copied = system.state._replace(namespaces=dict(system.state.namespaces))
    assert told(system.state, copied, "use") == []


def test_a_new_kernel_behind_the_old_ones() -> None:
    system = healthy()
    before = system.state
    after, tokens = with_kernel(system)
    entry = system.entry()
    kernels = {**entry.implementations, CPU: entry.implementations[CPU][::-1]}
    wrong = entry._replace(implementations=kernels, memo={})
    namespaces = {**after.namespaces, "d": {**after.namespaces["d"], "d::f": wrong}}
    assert told(before, after._replace(namespaces=namespaces), "add", tokens) == [
        "the_newest_kernel_comes_first at d::f at CPU: expected "
        "implementation 'third', implementation 'old', implementation 'new', found "
        "implementation 'old', implementation 'new', implementation 'third'",
        "survivors_keep_their_order at d::f, CPU: expected "
        "implementation 'new', implementation 'old', found "
        "implementation 'old', implementation 'new'",
    ]


def test_a_bystander_that_was_rebuilt() -> None:
    system = healthy()
    before = system.state
    after, tokens = with_kernel(system)
    rebuilt = system.entry("d::g")._replace(memo={})
    namespaces = {**after.namespaces, "d": {**after.namespaces["d"], "d::g": rebuilt}}
    assert told(before, after._replace(namespaces=namespaces), "add", tokens) == [
        "bystanders_are_left_alone at d::g: "
        "expected the entry of before, found another entry"
    ]


def test_fallbacks_rebuild_tables_and_nothing_else() -> None:
    system = healthy()
    before = system.state
    registration = system.libraries[2].fallback(lambda op: None, "CUDA", debug="x")
    after = system.dispatcher.snapshot()
    assert told(before, after, "add") == []
    wrong = system.entry("e::h")._replace(total=2, memo={})
    namespaces = {**after.namespaces, "e": {"e::h": wrong}}
    assert told(before, after._replace(namespaces=namespaces), "add") == [
        "bystanders_are_left_alone at e::h, total: expected as before, found changed"
    ]
    registration.close()
    assert told(after, system.dispatcher.snapshot(), "remove") == []


def test_listeners_keep_their_order() -> None:
    system = healthy()
    for name in ("second", "third"):
        system.dispatcher.add_listener(system.state.subscriptions[0].listener, name)
    before = system.dispatcher.snapshot()
    first, second, third = before.subscriptions
    after = before._replace(subscriptions=(third, second))
    assert told(before, after, "remove", (first,)) == [
        "survivors_keep_their_order at the listeners: expected "
        "subscription 'second', subscription 'third', found "
        "subscription 'third', subscription 'second'"
    ]


def test_operators_that_come_and_go() -> None:
    system = healthy()
    before = system.state
    library = system.libraries[0]
    with library.impl("z", lambda: None, "CPU", debug="z"):
        after = system.dispatcher.snapshot()
        assert told(before, after, "add") == []
        assert told(after, before, "remove") == []
    # One goes, another comes: neither may be overlooked.
    namespaces = {**after.namespaces, "d": dict(after.namespaces["d"])}
    del namespaces["d"]["d::g"]  # type: ignore[attr-defined]  # a copy, not a state's
    swapped = after._replace(namespaces=namespaces)
    assert told(before, swapped, "add") == [
        "an_add_adds_exactly_its_tokens at tokens that ended: "
        "expected nothing, found implementation 'cuda'"
    ]


def test_namespaces_that_come_and_go() -> None:
    system = healthy()
    before = system.state
    reservation = system.entry("e::h").reservations[0]
    system.libraries[1].close()
    after = system.dispatcher.snapshot()
    assert told(before, after, "remove", (reservation,)) == []
    assert told(after, before, "add", (reservation,)) == []
    assert told(after, before, "remove") == [
        "a_removal_removes_exactly_its_tokens at tokens that came: "
        "expected nothing, found reservation 'other'"
    ]


def test_an_entry_under_another_name() -> None:
    system = healthy()
    held = dict(system.state.namespaces["d"])
    held["d::q"] = held.pop("d::g")
    namespaces = {**system.state.namespaces, "d": held}
    after = system.state._replace(namespaces=namespaces)
    assert [each.law for each in check(after, since=system.state)] == [
        "operators_are_filed_under_their_names"
    ]


def test_a_rebuilt_entry_that_reads_the_same_is_no_change() -> None:
    system = healthy()
    before = system.state
    entry = system.entry()._replace(reservations=(), memo={})
    part = {**before.namespaces["d"], "d::f": entry}
    after = before._replace(namespaces={**before.namespaces, "d": part})
    assert told(before, after, "fail") == []
    reserved = entry._replace(reservations=system.entry("e::h").reservations)
    part = {**part, "d::f": reserved}
    after = before._replace(namespaces={**before.namespaces, "d": part})
    assert told(before, after, "fail") == [
        "a_failed_step_changes_nothing at d::f, reservations: "
        "expected nothing, found reservation 'other'"
    ]
