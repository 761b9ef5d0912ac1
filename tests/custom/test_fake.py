# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""Fake kernels: spec 3.13.3 and 3.13.4."""

from typing import Any

import pytest

from runtime import Tensor, ops, tensor
from runtime.errors.custom_op import MissingFake, UnfitKernel
from runtime.library import custom_op
from tests.custom.functions import add_one, double, like, repeatedly


def meta(*size: int) -> Tensor:
    made: Tensor = ops.core.zeros([*size], device="meta")
    return made


@pytest.mark.parametrize("devices", [None, "cpu"])
def test_without_one(devices: Any) -> None:
    with custom_op("mine::f", double, mutates_args=(), device_types=devices) as made:
        for _ in range(12):
            with pytest.raises(MissingFake) as refused:
                made(meta(2))
    assert str(refused.value) == (
        "`mine::f` has no fake kernel: it was called with meta tensors, which have a\n"
        "shape and no data.\n"
        "  schema: mine::f(Tensor x) -> Tensor\n"
        "  to do:  @register_fake on what custom_op returned, or "
        "register_fake('mine::f',\n"
        "          fn), with a function that returns empty tensors of the right shape"
    )
    assert isinstance(refused.value, NotImplementedError)


def test_the_newest_one_is_used() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        assert made.register_fake(like) is like
        for result in repeatedly(lambda: made(meta(2))):
            assert (result.shape, result.device.type) == ((2,), "meta")

        @made.register_fake
        def longer(x: Tensor) -> Any:
            return meta(x.shape[0] + 1)

        assert made(meta(2)).shape == (3,)
        assert made(tensor([1.0])).tolist() == [2.0]
        # The first one is there no more; the one that refuses is.
        state = made.handle.dump_state()
        assert [name in state for name in ("like", "longer", "missing_fake")] == [
            False,
            True,
            True,
        ]


def test_it_gets_every_argument() -> None:
    def scale(x: Tensor, n: int = 2, *, m: int = 3) -> Tensor:
        return x * n * m

    with custom_op("mine::f", scale, mutates_args=()) as made:
        made.register_fake(lambda x, n, *, m: meta(n, m))
        assert made(meta(1)).shape == (2, 3)
        with pytest.raises(UnfitKernel):
            made.register_fake(lambda x: x)
        assert made(meta(1), 4).shape == (4, 3)


def written(x: Tensor, *, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a.copy_(x), b.copy_(x)


def into(x: Tensor) -> Tensor:
    return x.add_(1)


def test_what_only_writes_needs_none() -> None:
    x, y = meta(1), meta(1)
    with custom_op("mine::f", add_one, mutates_args=("x",)) as made:
        assert repeatedly(lambda: made(x))[-1] is None
    with custom_op("mine::f", into, mutates_args=("x",), tags="inplace") as made:
        assert made(x) is x
    with custom_op("mine::f", written, mutates_args=("a", "b"), tags="out") as made:
        first, second = made(x, a=x, b=y)
        assert first is x
        assert second is y


def test_what_writes_and_returns_needs_one() -> None:
    def both(x: Tensor) -> Tensor:
        return x.add_(1) * 1

    with custom_op("mine::f", both, mutates_args=("x",)) as made:
        with pytest.raises(MissingFake):
            made(meta(1))
        made.register_fake(like)
        assert made(meta(1)).shape == (1,)


def test_a_gradient_of_meta_tensors() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_fake(like)
        made.register_autograd(lambda ctx, g: g * 2)
        x = meta(3).requires_grad_()
        made(x).sum().backward()
        assert x.grad is not None
        assert (x.grad.shape, x.grad.device.type) == ((3,), "meta")
