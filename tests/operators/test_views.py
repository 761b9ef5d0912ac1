"""Views: shape, strides and elements as NumPy has them, on memory that is shared."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import (
    DimensionOutOfRange,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from runtime.operators.call import core
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.coded import coded
from tests.operators.grid import cube
from tests.operators.told import refused, told

ViewImpossible = coded(ShapesDoNotFit, "ViewImpossible")

Array = np.ndarray[Any, Any]


# name -> (operator, the same in NumPy)
CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "view": (lambda x: core.view(x, [6, -1]), lambda a: a.reshape(6, 4)),
    "view one": (lambda x: core.view(x, [24, 1]), lambda a: a.reshape(24, 1)),
    "select": (lambda x: core.select(x, 1, -1), lambda a: a[:, -1]),
    "select first": (lambda x: core.select(x, -3, 1), lambda a: a[1]),
    "slice": (lambda x: core.slice(x, 2, 1, None, 2), lambda a: a[:, :, 1::2]),
    "slice clamped": (lambda x: core.slice(x, 1, -9, 9), lambda a: a[:, -9:9]),
    "slice empty": (lambda x: core.slice(x, 1, 2, 1), lambda a: a[:, 2:1]),
    "slice beyond": (lambda x: core.slice(x, 0, 7), lambda a: a[7:]),
    "slice back": (lambda x: core.slice(x, 1, -2, -1), lambda a: a[:, -2:-1]),
    "transpose": (lambda x: core.transpose(x, 0, -1), lambda a: a.swapaxes(0, -1)),
    "transpose self": (lambda x: core.transpose(x, 1, 1), lambda a: a),
    "t": (lambda x: core.t(core.select(x, 0, 0)), lambda a: a[0].T),
    "t line": (lambda x: core.t(core.view(x, [24])), lambda a: a.reshape(24)),
    "permute": (lambda x: core.permute(x, [2, 0, 1]), lambda a: a.transpose(2, 0, 1)),
    "expand": (
        lambda x: core.expand(core.slice(x, 0, 0, 1), [2, 5, -1, 4]),
        lambda a: np.broadcast_to(a[:1, None], (2, 5, 3, 4))[:, :, :, :],
    ),
    "squeeze": (lambda x: core.squeeze(core.view(x, [1, 24, 1])), lambda a: a.ravel()),
    "squeeze dim": (
        lambda x: core.squeeze(core.view(x, [1, 24, 1]), 0),
        lambda a: a.reshape(24, 1),
    ),
    "squeeze kept": (lambda x: core.squeeze(x, [1]), lambda a: a),
    "unsqueeze": (lambda x: core.unsqueeze(x, 1), lambda a: a[:, None]),
    "unsqueeze last": (lambda x: core.unsqueeze(x, -1), lambda a: a[..., None]),
    "as_strided": (
        lambda x: core.as_strided(x, [2, 2], [3, 1], 5),
        lambda a: np.array([[5, 6], [8, 9]]),
    ),
    "diagonal": (
        lambda x: core.diagonal(x, 1, 1, 2),
        lambda a: a.diagonal(1, axis1=1, axis2=2),
    ),
    "diagonal below": (
        lambda x: core.diagonal(x, -1),
        lambda a: a.diagonal(-1),
    ),
    "diagonal outside": (lambda x: core.diagonal(x, 9), lambda a: a.diagonal(9)),
    "detach": (core.detach, lambda a: a),
    "alias": (core.alias, lambda a: a),
    "flatten": (lambda x: core.flatten(x, 1), lambda a: a.reshape(2, 12)),
    "reshape": (lambda x: core.reshape(x, [4, 6]), lambda a: a.reshape(4, 6)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_view_shows_what_numpy_shows(case: str) -> None:
    make, expected = CASES[case]
    base = cube()
    view, wanted = make(base), expected(np.arange(24).reshape(2, 3, 4))
    assert view.shape == wanted.shape
    assert view.tolist() == wanted.tolist()
    assert view.storage() is base.storage()
    assert (view.dtype, view.device, view.key_bits) == (
        base.dtype,
        base.device,
        base.key_bits,
    )


@pytest.mark.parametrize("case", CASES)
def test_a_view_on_meta_has_the_same_geometry(case: str) -> None:
    make, _ = CASES[case]
    here, there = make(cube()), make(tensor(cube(), device="meta"))
    assert (there.shape, there.strides, there.offset) == (
        here.shape,
        here.strides,
        here.offset,
    )
    assert there.is_meta


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES)
def test_a_view_is_as_upstream_has_it(case: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    ours = CASES[case][0](cube())
    theirs = UPSTREAM[case](torch.arange(24).reshape(2, 3, 4))
    assert (ours.shape, ours.strides, ours.offset) == (
        tuple(theirs.shape),
        tuple(theirs.stride()),
        theirs.storage_offset(),
    )


UPSTREAM: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(6, -1),
    "view one": lambda x: x.view(24, 1),
    "select": lambda x: x.select(1, -1),
    "select first": lambda x: x.select(-3, 1),
    "slice": lambda x: x[:, :, 1::2],
    "slice clamped": lambda x: x[:, -9:9],
    "slice empty": lambda x: x[:, 2:1],
    "slice beyond": lambda x: x[7:],
    "slice back": lambda x: x[:, -2:-1],
    "transpose": lambda x: x.transpose(0, -1),
    "transpose self": lambda x: x.transpose(1, 1),
    "t": lambda x: x[0].t(),
    "t line": lambda x: x.view(24).t(),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[:1].expand(2, 5, -1, 4),
    "squeeze": lambda x: x.view(1, 24, 1).squeeze(),
    "squeeze dim": lambda x: x.view(1, 24, 1).squeeze(0),
    "squeeze kept": lambda x: x.squeeze(1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unsqueeze last": lambda x: x.unsqueeze(-1),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 5),
    "diagonal": lambda x: x.diagonal(1, 1, 2),
    "diagonal below": lambda x: x.diagonal(-1),
    "diagonal outside": lambda x: x.diagonal(9),
    "detach": lambda x: x.detach(),
    "alias": lambda x: x.view_as(x),
    "flatten": lambda x: x.flatten(1),
    "reshape": lambda x: x.reshape(4, 6),
}


def test_writing_through_a_view_is_seen_by_the_base() -> None:
    base = cube()
    core.select(base, 2, 1).numpy()[...] = -1
    assert base.numpy()[:, :, 1].tolist() == [[-1] * 3] * 2
    assert base.numpy()[0, 0].tolist() == [0, -1, 2, 3]


def test_split_gives_views_that_fill_the_dimension() -> None:
    base = cube()
    parts = core.split(base, 2, 1)
    assert [part.shape for part in parts] == [(2, 2, 4), (2, 1, 4)]
    assert [part.tolist() for part in parts] == [
        base.numpy()[:, :2].tolist(),
        base.numpy()[:, 2:].tolist(),
    ]
    assert all(part.storage() is base.storage() for part in parts)
    sized = core.split_sizes(base, [1, 0, 3], -1)
    assert [part.shape for part in sized] == [(2, 3, 1), (2, 3, 0), (2, 3, 3)]
    assert [part.tolist() for part in core.split(tensor([1, 2]), 5)] == [[1, 2]]
    assert [p.shape for p in core.split(tensor([]), 0)] == [(0,)]


def test_tensors_without_elements_and_without_dimensions() -> None:
    none = tensor(np.zeros((2, 0, 3)))
    assert core.view(none, [0, 5]).shape == (0, 5)
    assert core.flatten(none).shape == (0,)
    assert core.select(none, 0, 1).shape == (0, 3)
    one = tensor(3)
    assert core.view(one, [1, 1]).tolist() == [[3]]
    assert core.flatten(one).tolist() == [3]
    assert core.unsqueeze(one, 0).tolist() == [3]
    assert core.squeeze(one, 0).tolist() == 3
    assert core.permute(one, []).tolist() == 3
    assert core.transpose(one, 0, -1).tolist() == 3
    assert core.expand(one, [2, 2]).tolist() == [[3, 3], [3, 3]]


def test_a_number_has_no_dimension_to_select_from() -> None:
    with pytest.raises(DimensionOutOfRange) as caught:
        core.select(tensor(3), 0, 0)
    assert caught.value.fields() == {
        "operator": "core::select",
        "dim": 0,
        "shape": (),
        "repeated": False,
    }


def test_as_strided_stays_inside_the_storage() -> None:
    with pytest.raises(WrongOption) as caught:
        core.as_strided(cube(), [5, 5], [5, 1], 0)
    assert told(caught.value) == (
        "`core::as_strided` does not take (5, 5), (5, 1) and 0 for `size, stride and "
        "storage_offset`. fits: a view of the 24 elements of the storage"
    )


WRONG: dict[str, tuple[Callable[[Tensor], object], type[Exception], str]] = {
    "view count": (
        lambda x: core.view(x, [5, 5]),
        ShapesDoNotFit,
        "`core::view` cannot work on these shapes: they do not have the same number "
        "of\n"
        "elements.\n"
        "  given: self (2, 3, 4), wanted (5, 5)\n"
        "  fits:  sizes whose product is 24",
    ),
    "view open": (
        lambda x: core.view(x, [-1, 5]),
        ShapesDoNotFit,
        "`core::view` cannot work on these shapes: they do not have the same number "
        "of\n"
        "elements.\n"
        "  given: self (2, 3, 4), wanted (-1, 5)\n"
        "  fits:  sizes whose product is 24",
    ),
    "view twice open": (
        lambda x: core.view(x, [-1, -1]),
        ShapesDoNotFit,
        "`core::view` cannot work on these shapes: size -1 at position 1 is no size.\n"
        "  given: self (2, 3, 4), wanted (-1, -1)\n"
        "  fits:  sizes of zero and more, and -1 once",
    ),
    "view impossible": (
        lambda x: core.view(core.transpose(x, 0, 1), [24]),
        ViewImpossible,
        "`core::view` cannot show shape (3, 2, 4) as (24,) without a copy.\n"
        "  strides: (4, 12, 1)\n"
        "  to do:   use reshape(...), which copies where it must",
    ),
    "select": (
        lambda x: core.select(x, 1, 3),
        IndexOutOfRange,
        "`core::select` was given index 3 for dimension 1, which has size 3.\n"
        "  fits:  -3 to 2\n"
        "  state: nothing was written",
    ),
    "select dimension": (
        lambda x: core.select(x, 3, 0),
        DimensionOutOfRange,
        "`core::select` was given dimension 3 for shape (2, 3, 4), which has no such\n"
        "dimension.\n"
        "  fits: -3 to 2, each once",
    ),
    "slice step": (
        lambda x: core.slice(x, 0, None, None, 0),
        WrongOption,
        "`core::slice` does not take 0 for `step`.\n  fits: 1 and more",
    ),
    "permute few": (
        lambda x: core.permute(x, [0, 1]),
        ShapesDoNotFit,
        "`core::permute` cannot work on these shapes: 2 dimensions are named.\n"
        "  given: self (2, 3, 4), dims (0, 1)\n"
        "  fits:  each of the 3 dimensions once",
    ),
    "permute twice": (
        lambda x: core.permute(x, [0, 1, -2]),
        DimensionOutOfRange,
        "`core::permute` was given dimension -2 of shape (2, 3, 4) twice.\n"
        "  fits: -3 to 2, each once",
    ),
    "unsqueeze": (
        lambda x: core.unsqueeze(x, 4),
        DimensionOutOfRange,
        "`core::unsqueeze` was given dimension 4 for shape (2, 3, 4, 1), which has no\n"
        "such dimension.\n"
        "  fits: -4 to 3, each once",
    ),
    "t": (
        core.t,
        ShapesDoNotFit,
        "`core::t` cannot work on these shapes: 3 dimensions are no matrix.\n"
        "  given: self (2, 3, 4)\n"
        "  fits:  at most two dimensions; transpose(dim0, dim1) takes any",
    ),
    "as_strided": (
        lambda x: core.as_strided(x, [2], [1, 1]),
        ShapesDoNotFit,
        "`core::as_strided` cannot work on these shapes: there is not one stride for "
        "each\n"
        "size.\n"
        "  given: size (2,), stride (1, 1)\n"
        "  fits:  as many strides as sizes",
    ),
    "diagonal": (
        lambda x: core.diagonal(x, 0, 1, -2),
        DimensionOutOfRange,
        "`core::diagonal` was given dimension -2 of shape (2, 3, 4) twice.\n"
        "  fits: -3 to 2, each once",
    ),
    "split": (
        lambda x: core.split(x, 0),
        WrongOption,
        "`core::split` does not take 0 for `split_size`.\n"
        "  fits: 1 and more, as dimension 0 has size 2",
    ),
    "split sizes": (
        lambda x: core.split_sizes(x, [1, 2]),
        WrongOption,
        "`core::split.sizes` does not take [1, 2] for `split_sizes`.\n"
        "  fits: sizes that add up to 2, which dimension 0 has",
    ),
    "no dimension": (
        lambda x: core.select(core.view(core.slice(x, 0, 0, 0), [0]), 1, 0),
        DimensionOutOfRange,
        "`core::select` was given dimension 1 for shape (0,), which has no such\n"
        "dimension.\n"
        "  fits: -1 to 0, each once",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_view_is_refused_by_name(case: str) -> None:
    call, kind, text = WRONG[case]
    refused(lambda: call(cube()), kind, text)
