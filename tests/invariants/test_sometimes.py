"""Sightings: a run that saw nothing is told so."""

import pytest

from everyorder.invariants import SOMETIMES, Violation, never_seen, sightings
from everyorder.runtime.dispatch import Dispatcher, Library
from tests.invariants.healthy import healthy


def test_what_a_healthy_state_shows() -> None:
    assert sightings(healthy().state) == {
        "a_direct_kernel",
        "an_ambiguous_slot",
        "a_math_kernel",
        "a_fallback",
        "a_missing_slot",
        "a_fallthrough",
        "masks_that_differ",
        "an_inactive_kernel",
        "a_dangling_kernel",
        "a_reservation",
        "a_typed_kernel",
        "several_operators",
        "a_claim",
        "a_listener",
    }


@pytest.mark.parametrize(
    ("key", "seen"),
    [
        ("CompositeExplicitAutograd", "a_default_backend_kernel"),
        ("CompositeImplicitAutogradNestedTensor", "a_nested_kernel"),
        ("Autograd", "an_autograd_kernel"),
        ("FuncTorchBatchedDecomposition", "a_batched_kernel"),
    ],
)
def test_what_an_alias_shows(key: str, seen: str) -> None:
    dispatcher = Dispatcher(builtin_fallbacks=False)
    library = Library("d", "FRAGMENT", dispatcher=dispatcher, origin="o")
    assert sightings(dispatcher.snapshot()) == {"no_operator"}
    with library.impl("f", lambda: None, key):
        state = dispatcher.snapshot()
        expected = {seen, "a_missing_slot", "a_dangling_kernel"}
        assert sightings(state) == expected
        # Remembered on the entry, with the same answer.
        assert sightings(state) == expected
    with library.define("f() -> ()"):
        assert sightings(dispatcher.snapshot()) == {
            "a_missing_slot",
            "a_bare_definition",
        }


def test_what_was_never_seen() -> None:
    assert never_seen(each.name for each in SOMETIMES) == []
    assert never_seen(["a_claim"], ["a_claim", "a_fallback"]) == [
        Violation(
            "a_fallback", "the whole run", "A slot runs a fallback.", "never seen"
        )
    ]
    assert len(never_seen([])) == len(SOMETIMES) == 22
