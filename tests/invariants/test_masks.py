"""Laws of the masks, on entries broken by hand."""

from dataclasses import replace
from typing import Any

from everyorder.invariants import state_laws
from everyorder.invariants.live import FiledOperator
from tests.invariants.healthy import healthy


def masked(**fields: Any) -> FiledOperator:
    """`d::f` with other masks."""
    system = healthy()
    held = system.entry().table
    other = replace(held.masks, **fields)
    return system.place(table=held._replace(masks=other))


def test_masks() -> None:
    healthy_masks = healthy().entry().table.masks
    assert healthy_masks.per_backend
    place = healthy().place()
    for each in (
        state_laws.masks_leave_out_what_falls_through,
        state_laws.a_mask_a_backend_only_where_two_differ,
        state_laws.one_mask_for_all_only_where_none_differ,
        state_laws.masks_hold_every_backend,
    ):
        assert each.find(place) == []
    full = (1 << 62) - 1
    place = masked(by_backend=(full,) * 16)
    assert state_laws.masks_leave_out_what_falls_through.find(place)[:2] == [
        (
            "d::f, mask of CPU",
            "without Python, Autograd",
            "without nothing",
        ),
        ("d::f, mask of CUDA", "without Python", "without nothing"),
    ]
    assert state_laws.a_mask_a_backend_only_where_two_differ.find(place) == [
        ("d::f, masks", "one for all", "one a backend")
    ]
    place = masked(per_backend=False)
    assert state_laws.one_mask_for_all_only_where_none_differ.find(place) == [
        ("d::f, masks", "one a backend", "one for all")
    ]
    cut = (healthy_masks.by_backend[0] & ~2, *healthy_masks.by_backend[1:])
    place = masked(by_backend=cut)
    assert state_laws.masks_hold_every_backend.find(place) == [
        ("d::f, mask of CPU", "all backends", "0xfffd")
    ]
    assert state_laws.masks_leave_out_what_falls_through.find(place) == []
