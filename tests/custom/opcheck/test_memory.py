"""Which tensors share memory, and the bytes of a storage."""

import numpy as np

from runtime import from_numpy, ops, tensor
from runtime.custom.opcheck.sample import bytes_of, elements_of, shared, shown_bytes

core = ops.core


def test_how_tensors_share() -> None:
    x = tensor([1.0, 2.0, 3.0])
    assert shared(x, x) == "they are one object"
    assert shared(x[0:1], x[1:2]) == "they are on one storage"
    assert shared(x, core.clone(x)) == ""
    array = np.zeros(4, np.float32)
    one, other, apart = (from_numpy(array[part]) for part in np.s_[:2, 1:3, 2:])
    assert shared(one, other) == "their memory overlaps"
    assert shared(one, apart) == ""
    meta = tensor([1.0], device="meta")
    assert shared(meta, tensor([1.0], device="meta")) == ""


def test_the_bytes_that_a_view_shows() -> None:
    x = tensor([1, 2, 3, 4], dtype="int16")
    layout = (2,), (2,), 1
    shown = shown_bytes(x, layout, 8)
    assert shown.tolist() == [False, False, True, True, False, False, True, True]
    held = bytes_of(x.storage())
    assert held is not None
    assert elements_of(x, layout, held).tolist() == [2, 4]
    core.fill_(x, 0)
    assert elements_of(x, layout, held).tolist() == [2, 4]


def test_there_are_no_bytes_on_meta() -> None:
    assert bytes_of(tensor([1.0], device="meta").storage()) is None


def test_what_has_no_elements_shows_nothing() -> None:
    x = tensor([], dtype="float32")
    assert not shown_bytes(x, ((0,), (1,), 5), 4).any()
