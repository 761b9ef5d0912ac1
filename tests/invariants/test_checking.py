"""What is remembered of verdicts, what is not, and that nothing is kept alive."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from everyorder.invariants import LAWS, Violation, check, check_step, checking, forget
from everyorder.invariants.live import FiledOperator, shape_of
from everyorder.runtime.dispatch import Dispatcher, Library
from everyorder.runtime.dispatch.dispatch_table import NO_FALLBACKS, table_of
from everyorder.runtime.dispatch.state import DispatcherState
from tests.invariants.healthy import healthy


@pytest.fixture(autouse=True)
def _fresh_memory() -> Iterator[None]:
    forget()
    yield
    forget()


class Counted:
    """Counts how often entries are judged in full."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    def law(self, place: Any) -> list[Violation]:
        """A law that always holds."""
        self.judged.append(place.text)
        return []


@pytest.fixture
def counted() -> Iterator[Counted]:
    """The laws of operators, replaced by one that counts."""
    found = Counted()
    law = mock.Mock(check=found.law)
    with mock.patch.object(checking, "OPERATOR_LAWS", (law,)):
        yield found


def test_an_entry_is_judged_once(counted: Counted) -> None:
    system = healthy()
    assert check(system.state) == []
    assert sorted(counted.judged) == ["d::f", "d::g", "e::h"]
    assert check(system.state) == []
    assert len(counted.judged) == 3


def test_equal_entries_are_judged_once(counted: Counted) -> None:
    check(healthy().state)
    dispatcher = Dispatcher(builtin_fallbacks=False)
    library = Library("d", "FRAGMENT", dispatcher=dispatcher, origin="o")

    def kernel() -> None:
        """One function: one reading."""

    for _ in range(3):
        with library.impl("k", kernel, "CPU", debug="same"):
            check(dispatcher.snapshot())
    assert counted.judged.count("d::k") == 1


def test_what_is_shared_with_a_checked_state_is_skipped(counted: Counted) -> None:
    system = healthy()
    library = Library("far", "FRAGMENT", dispatcher=system.dispatcher, origin="o")
    for number in range(5):
        library.impl(f"op{number}", lambda: None, "CPU", debug=str(number))
    before = system.dispatcher.snapshot()
    assert check(before) == []
    counted.judged.clear()
    library.impl("op0", lambda: None, "CUDA", debug="new")
    after = system.dispatcher.snapshot()
    with mock.patch.object(checking, "FiledOperator", wraps=FiledOperator) as placed:
        assert check(after, since=before) == []
    assert placed.call_count == 1
    assert counted.judged == ["far::op0"]
    assert check(after, since=after) == []


def test_other_fallbacks_or_rules_mean_looking_again() -> None:
    system = healthy()
    before = system.state
    assert check(before) == []
    stale = before._replace(fallbacks=NO_FALLBACKS)
    for since in (None, before):
        assert {each.law for each in check(stale, since)} == {
            "tables_hold_the_fallbacks_of_the_state",
            "slots_run_what_the_rules_say",
            "slots_say_which_rule_filled_them",
            "masks_leave_out_what_falls_through",
        }
    with mock.patch.object(checking, "FiledOperator", wraps=FiledOperator) as placed:
        check(before._replace(merges_alias_kinds=True), since=before)
    assert placed.call_count == 3


def test_faults_are_told_every_time() -> None:
    system = healthy()
    entry = system.entry()._replace(total=9, memo={})
    namespaces = {**system.state.namespaces, "d": {"d::f": entry}}
    state = system.state._replace(namespaces=namespaces)
    wanted = [Violation("the_total_counts_what_is_live", "d::f, total", "6", "9")]
    assert check(state) == wanted
    assert check(state) == wanted
    again = system.entry()._replace(total=9, memo={})
    namespaces = {**system.state.namespaces, "d": {"d::f": again}}
    assert check(system.state._replace(namespaces=namespaces)) == wanted


def test_a_memory_that_was_handed_on_is_not_believed() -> None:
    system = healthy()
    assert check(system.state) == []
    entry = system.entry()
    wrong = entry._replace(total=9)
    assert wrong.memo is entry.memo
    namespaces = {**system.state.namespaces, "d": {"d::f": wrong}}
    assert check(system.state._replace(namespaces=namespaces)) != []


def test_the_memory_of_shapes_is_bounded() -> None:
    with mock.patch.object(checking, "REMEMBERED", 2):
        for number in range(5):
            dispatcher = Dispatcher()
            library = Library("d", "FRAGMENT", dispatcher=dispatcher, origin="o")
            library.impl(f"op{number}", lambda: None, "CPU", debug="x")
            assert check(dispatcher.snapshot()) == []
            assert len(checking._LAWFUL) <= 2


def test_nothing_that_is_remembered_keeps_a_kernel_alive() -> None:
    dispatcher = Dispatcher()
    library = Library("d", "FRAGMENT", dispatcher=dispatcher, origin="o")

    def make() -> Any:
        return lambda: None

    kernel = make()
    watch = weakref.ref(kernel)
    registration = library.impl("f", kernel, "CPU", debug="x")
    del kernel
    assert check(dispatcher.snapshot()) == []
    registration.close()
    assert watch() is None, gc.get_referrers(watch())


def test_after_a_use_callers_are_looked_at() -> None:
    state = healthy().state
    assert check(state) == []
    assert check_step(state, state, "use") == []
    entry = state.namespaces["d"]["d::f"]
    entry.memo["caller"] = mock.Mock(table=None)
    assert [each.law for each in check_step(state, state, "use")] == [
        "callers_belong_to_their_entry"
    ]
    assert check_step(state, state, "fail") == []


def test_no_shape_where_the_laws_must_look() -> None:
    system = healthy()
    place, entry = system.place(), system.entry()
    assert shape_of(place) is not None
    assert shape_of(place) == shape_of(system.place())
    held, table = entry.implementations, entry.table
    foreign = tuple(token and replace(token) for token in table.kernels)
    cpu = system.token("CPU")
    through = replace(cpu, kernel=system.token("AutogradCPU").kernel)
    strange = {**held, cpu.key: (through,)}
    sparse = system.token("SparseCPU")
    sparse = replace(sparse, kernel=replace(sparse.kernel, facts=cpu.kernel.facts))
    other = {**held, sparse.key: (sparse,)}
    broken: tuple[dict[str, Any], ...] = (
        {"table": table_of(held, NO_FALLBACKS)},
        {"table": table._replace(kernels=())},
        {"table": table._replace(kernels=foreign)},
        {"definitions": entry.definitions * 2},
        {"implementations": strange},
        {"implementations": other},
        {"implementations": {}},
    )
    for fields in broken:
        assert shape_of(system.place(**fields)) is None


def test_a_state_that_cannot_be_read_is_reported() -> None:
    system = healthy()
    entry = system.entry()._replace(definitions=None, memo={})  # type: ignore[arg-type]  # broken on purpose
    namespaces = {**system.state.namespaces, "d": {"d::f": entry}}
    found = check(system.state._replace(namespaces=namespaces))
    assert (
        Violation(
            "the_total_counts_what_is_live",
            "the whole subject",
            "something readable",
            "TypeError",
        )
        in found
    )


def test_every_scope_is_there() -> None:
    assert {each.scope for each in LAWS} == {"state", "step", "run"}
    assert check(DispatcherState()) == []
