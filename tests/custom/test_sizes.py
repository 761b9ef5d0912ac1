"""Sizes that depend on elements: what fake kernels get, and what opcheck finds."""

from typing import Any

import pytest

import runtime
from runtime import Tensor, library
from runtime.errors.custom_op import SizeNotKnown
from runtime.errors.opcheck import FakeDiffers


@pytest.fixture
def places() -> Any:
    """The places of what is not 0, one a column."""

    @library.custom_op("sizes::places", mutates_args=())
    def places(x: Tensor, times: int = 1) -> Tensor:
        found = runtime.cat([runtime.nonzero(x)] * times, 0)
        made: Tensor = found.t().contiguous()
        return made

    yield places
    places.close()


def fake(places: Any, make: Any) -> None:
    places.register_fake(lambda x, times=1: make(x, library.get_ctx(), times))


def checked(places: Any, *args: Any) -> None:
    library.opcheck(places, args, test_utils=("test_faketensor",))


X = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))


def x() -> Tensor:
    return runtime.tensor(X)


def test_a_size_is_that_of_the_real_result(places: Any) -> None:
    fake(
        places,
        lambda x, ctx, times: x.new_empty(
            (x.dim(), ctx.new_dynamic_size()), dtype=runtime.int64
        ),
    )
    checked(places, x())
    checked(places, runtime.zeros(3))
    checked(places, x(), 3)


@pytest.mark.parametrize(
    ("make", "aspect"),
    [
        (lambda x, n: x.new_empty((n, x.dim()), dtype=runtime.int64), "shape"),
        (lambda x, n: x.new_empty((x.dim(), n + 1), dtype=runtime.int64), "shape"),
        (lambda x, n: x.new_empty((x.dim(), 4), dtype=runtime.int64), "shape"),
        (lambda x, n: x.new_empty((x.dim(), n)), "dtype"),
        (lambda x, n: x.new_empty((n, x.dim()), dtype=runtime.int64).t(), "strides"),
    ],
)
def test_what_else_differs_is_found(places: Any, make: Any, aspect: str) -> None:
    fake(places, lambda x, ctx, times: make(x, ctx.new_dynamic_size()))
    with pytest.raises(FakeDiffers) as caught:
        checked(places, runtime.ones(2, 3))
    assert caught.value.aspect == aspect


def test_bounds_are_held_against_the_real_size(places: Any) -> None:
    def make(x: Tensor, ctx: Any, times: int) -> Tensor:
        size = ctx.new_dynamic_size(min=1, max=9)
        made: Tensor = x.new_empty((x.dim(), size), dtype=runtime.int64)
        return made

    fake(places, make)
    checked(places, x())
    for other in (runtime.zeros(2), runtime.ones(10)):
        with pytest.raises(FakeDiffers) as caught:
            checked(places, other)
        assert (caught.value.aspect, caught.value.fake) == ("size", "1 to 9")


def test_several_sizes() -> None:
    @library.custom_op("sizes::parted", mutates_args=())
    def parted(x: Tensor) -> tuple[Tensor, Tensor]:
        return x[x > 0], x[x <= 0]

    @parted.register_fake
    def _(x: Tensor) -> tuple[Tensor, Tensor]:
        ctx = library.get_ctx()
        one, other = ctx.new_dynamic_size(), ctx.new_dynamic_size()
        return x.new_empty(one), x.new_empty(other)

    library.opcheck(parted, (runtime.tensor([1.0, -1.0, 2.0, 0.0, 5.0]),))
    parted.close()


def test_nobody_knows_it_otherwise(places: Any) -> None:
    fake(places, lambda x, ctx, times: x.new_empty(ctx.new_dynamic_size()))
    with pytest.raises(SizeNotKnown, match="nobody knows"):
        places(runtime.ones(2, device="meta"))
    with pytest.raises(SizeNotKnown):
        library.get_ctx().new_dynamic_size()


def test_more_than_anybody_asks_for(places: Any) -> None:
    fake(
        places,
        lambda x, ctx, times: [ctx.new_dynamic_size() for _ in range(99)] and x,
    )
    with pytest.raises(Exception, match="more than 8 sizes"):
        checked(places, x())
