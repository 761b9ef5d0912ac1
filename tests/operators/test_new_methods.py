"""The methods `x.new_zeros(...)`, and in-place views, as people write them."""

from typing import Any

import pytest

from runtime import Tensor, tensor
from runtime.errors.call import CallError
from runtime.tensors.tensor import METHODS
from tests.coded import code

X = tensor([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (lambda: X.new_zeros(2, 3), (2, 3)),
        (lambda: X.new_zeros((2, 3)), (2, 3)),
        (lambda: X.new_zeros([4]), (4,)),
        (lambda: X.new_zeros(4), (4,)),
        (lambda: X.new_zeros(()), ()),
        (lambda: X.new_zeros(size=(2,)), (2,)),
        (lambda: X.new_empty(0, 2), (0, 2)),
        (lambda: X.new_ones(2, 1), (2, 1)),
        (lambda: X.new_full((2, 1), 3), (2, 1)),
        (lambda: X.new_full(2, 3), (2,)),
        (lambda: X.new_full((1,), fill_value=3), (1,)),
        (lambda: X.new_full(size=(1,), fill_value=3), (1,)),
    ],
)
def test_sizes_may_come_one_by_one(made: Any, shape: tuple[int, ...]) -> None:
    found = made()
    assert (type(found), found.shape, found.dtype) == (Tensor, shape, X.dtype)


def test_values_and_options() -> None:
    assert X.new_ones(2, dtype="int64").tolist() == [1, 1]
    assert X.new_full((1, 2), 3).tolist() == [[3, 3]]
    assert X.new_zeros(2, device="meta").is_meta
    leaf = X.new_zeros(2, requires_grad=True)
    assert (leaf.requires_grad, leaf.is_leaf) == (True, True)


def test_what_is_missing_is_named() -> None:
    for name, given, argument in (
        ("new_zeros", (), "size"),
        ("new_full", ((2,),), "fill_value"),
    ):
        with pytest.raises(
            CallError, check=code("MissingArgument"), match=f"without `{argument}`"
        ):
            getattr(X, name)(*given)


def test_in_place_views_return_the_tensor() -> None:
    x = tensor([[[1.0, 2.0]]])
    assert x.squeeze_() is x
    assert x.shape == (2,)
    assert x.unsqueeze_(0) is x
    assert x.unsqueeze_(dim=-1).shape == (1, 2, 1)
    assert x.squeeze_(0, 2).shape == (2,)
    assert x.unsqueeze_(0).squeeze_((0,)).unsqueeze_(1).t_().shape == (1, 2)
    assert x.transpose_(0, 1).transpose_(dim0=0, dim1=-1).shape == (1, 2)
    assert x.tolist() == [[1, 2]]


def test_help_says_what_they_do() -> None:
    for name in ("new_empty", "new_full", "new_ones", "new_zeros"):
        text = METHODS[name].__doc__ or ""
        assert text.startswith(("Elements", "One", "Ones", "Zeros"))
        assert f"Schema: `core::{name}(Tensor self, int[] size" in text
    assert (METHODS["t_"].__doc__ or "").startswith(
        "A view of a matrix with its dimensions exchanged, in place."
    )
