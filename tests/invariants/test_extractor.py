"""Laws of the extractor, on entries broken by hand."""

from everyorder.invariants import state_laws
from everyorder.runtime.dispatch.registration_record import (
    NO_EXTRACTOR,
    DispatchArgPositions,
)
from tests.invariants.healthy import healthy


def test_the_extractor() -> None:
    known, unknown = (
        state_laws.the_schema_says_which_arguments_count,
        state_laws.without_a_schema_no_argument_is_looked_at,
    )
    assert known.find(healthy().place()) == []
    assert unknown.find(healthy().place()) == []
    place = healthy().place(extractor=DispatchArgPositions((0,), (1,)))
    assert known.find(place) == [
        ("d::f, arguments", "tensors [0], lists []", "tensors [0], lists [1]")
    ]
    place = healthy().place(definitions=())
    assert known.find(place) == []
    assert unknown.find(place) == [("d::f, arguments", "none", "tensors [0], lists []")]
    assert unknown.find(healthy().place(definitions=(), extractor=NO_EXTRACTOR)) == []
