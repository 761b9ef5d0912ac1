"""Laws of the table, on entries broken by hand."""

from dataclasses import replace
from types import SimpleNamespace

from everyorder.invariants import state_laws
from everyorder.runtime.dispatch.dispatch_table import NO_FALLBACKS, table_of
from everyorder.runtime.dispatch.registration_record import ClassRule
from tests.invariants.healthy import healthy


def test_a_slot_that_runs_another_kernel() -> None:
    system = healthy()
    held = system.entry().table
    drawn = tuple(
        system.token("CPU", 1) if token is system.token("CPU") else token
        for token in held.kernels
    )
    place = system.place(table=held._replace(kernels=drawn))
    assert state_laws.slots_run_what_the_rules_say.find(place) == [
        ("d::f at CPU", "'new'", "'old'")
    ]
    assert state_laws.slots_say_which_rule_filled_them.find(place) == []


def test_a_kernel_that_only_looks_the_same() -> None:
    system = healthy()
    held = system.entry().table
    twin = replace(system.token("CPU"))
    drawn = tuple(
        twin if token is system.token("CPU") else token for token in held.kernels
    )
    place = system.place(table=held._replace(kernels=drawn))
    assert state_laws.slots_run_what_the_rules_say.find(place) == [
        ("d::f at CPU", "'new'", "another 'new'")
    ]


def test_the_ambiguous_slot_is_known() -> None:
    system = healthy()
    place = system.place()
    slots = {slot.key.name: slot for slot in place.live}
    assert slots["AutogradOther"].provenance == "ambiguous autogradother"
    assert state_laws.slots_run_what_the_rules_say.find(place) == []
    # The table of one kernel less: nothing is ambiguous any more.
    fewer = {
        key: tokens
        for key, tokens in system.entry().implementations.items()
        if key.name != "SparseCPU"
    }
    stale = table_of(fewer, system.state.fallbacks)
    place = system.place(table=stale)
    assert state_laws.slots_run_what_the_rules_say.find(place) == [
        ("d::f at SparseCPU", "'sparse'", "'math'"),
        ("d::f at AutogradOther", "'ambiguous autogradother'", "'math'"),
    ]
    assert state_laws.slots_say_which_rule_filled_them.find(place) == [
        ("d::f at SparseCPU", "kernel", "math kernel"),
        ("d::f at AutogradOther", "ambiguous autogradother", "math kernel"),
    ]


def test_fallbacks_of_another_state() -> None:
    system = healthy()
    stale = table_of(system.entry().implementations, NO_FALLBACKS)
    place = system.place(table=stale)
    found = state_laws.tables_hold_the_fallbacks_of_the_state.find(place)
    assert found == [
        ("d::f at Python", "'python fallback'", "no fallback"),
        (
            "d::f at AutogradOther, AutogradCPU, AutogradCUDA, AutogradHIP and 14 more",
            "'autograd fallback'",
            "no fallback",
        ),
    ]
    assert state_laws.slots_run_what_the_rules_say.find(place) == [
        ("d::f at Python", "'python fallback'", "'missing'")
    ]


def test_a_missing_slot_with_a_kernel() -> None:
    place = healthy().place()
    missing = next(slot for slot in place.live if slot.kernel is None)
    kernel = healthy().token("CPU").kernel
    slots = tuple(
        slot._replace(kernel=kernel) if slot is missing else slot for slot in place.live
    )
    place._live = slots
    assert state_laws.a_slot_without_kernel_says_missing.find(place) == [
        (f"d::f at {missing.key.name}", "no kernel", "missing")
    ]
    place._live = tuple(
        slot._replace(kernel=None) if slot.provenance == "kernel" else slot
        for slot in slots
        if slot is not missing and slot.key.name != missing.key.name
    )
    assert state_laws.a_slot_without_kernel_says_missing.find(place) == [
        ("d::f at CPU, SparseCPU, AutogradCPU", "a kernel, being kernel", "none")
    ]


def test_callers_of_another_entry() -> None:
    law = state_laws.callers_belong_to_their_entry
    system = healthy()
    place = system.place()
    assert law.find(place) == []
    place.entry.memo["caller"] = SimpleNamespace(table=None, schema=None)
    assert law.find(place) == [
        (
            "d::f, remembered caller",
            "built from this entry",
            "built from another",
        )
    ]
    place.entry.memo["caller"] = SimpleNamespace(table=place.entry.table, schema="s")
    assert law.find(place) == [("d::f, remembered caller", "d::f(Tensor x) -> ()", "s")]
    schema = place.entry.schema
    made = SimpleNamespace(table=place.entry.table, schema=schema)
    place.entry.memo["caller"] = made
    rule = ClassRule(place.entry.name, int, print, "old")
    made.runners = SimpleNamespace(rules=(rule,))
    assert law.find(place) == [
        ("d::f, remembered caller", "nothing", "classrule 'old'")
    ]
    made.runners.rules = place.entry.rules
    assert law.find(place) == []
