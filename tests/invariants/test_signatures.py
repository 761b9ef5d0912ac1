"""Laws of signatures, on entries broken by hand."""

from everyorder.invariants import state_laws
from tests.invariants.healthy import healthy, typed_otherwise


def test_signatures() -> None:
    system = healthy()
    assert state_laws.typed_kernels_agree.find(system.place()) == []
    assert state_laws.typed_kernels_fit_the_schema.find(system.place()) == []
    other = healthy()
    other.libraries[1].impl("k", typed_otherwise, "CUDA", debug="int")
    held = other.entry("e::k").implementations
    place = system.place(implementations={**system.entry().implementations, **held})
    assert state_laws.typed_kernels_agree.find(place) == [
        ("d::f, implementation 'int'", "(Tensor _0) -> ()", "(int _0) -> ()")
    ]
    assert state_laws.typed_kernels_fit_the_schema.find(place) == [
        ("d::f, implementation 'int'", "d::f(Tensor x) -> ()", "(int _0) -> ()")
    ]
    place = system.place(implementations=held, definitions=())
    assert state_laws.typed_kernels_agree.find(place) == []
    assert state_laws.typed_kernels_fit_the_schema.find(place) == []
