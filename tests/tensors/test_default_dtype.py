"""The default dtype: what has it, and what does not."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, jit, set_default_dtype, tensor
from everyorder.runtime.errors.tensor import UnfitValue


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Returns to float32 after each test."""
    yield
    set_default_dtype(runtime.float32)


def whole() -> Tensor:
    return tensor([1, 2])


# Expressions whose dtype is the default one.
REAL: dict[str, Callable[[], Any]] = {
    "tensor of a float": lambda: tensor(1.5),
    "tensor of floats": lambda: tensor([1, 2.5]),
    "tensor of nothing": lambda: tensor([]),
    "as_tensor": lambda: runtime.as_tensor([1.5]),
    "Tensor of data": lambda: Tensor([1, 2]),
    "Tensor of sizes": lambda: Tensor(2, 3),
    "empty": lambda: runtime.empty(2),
    "zeros": lambda: runtime.zeros(2),
    "ones": lambda: runtime.ones(2),
    "full": lambda: runtime.full((2,), 1.5),
    "eye": lambda: runtime.eye(2),
    "arange": lambda: runtime.arange(2.0),
    "linspace": lambda: runtime.linspace(0, 1, 3),
    "logspace": lambda: runtime.logspace(0, 1, 3),
    "rand": lambda: runtime.rand(2),
    "randn": lambda: runtime.randn(2),
    "a division of integers": lambda: whole() / 2,
    "a root of integers": lambda: whole().sqrt(),
    "a logarithm of bools": lambda: (whole() > 1).log1p(),
    "logsumexp of integers": lambda: runtime.logsumexp(whole(), 0),
    "angle of integers": lambda: runtime.angle(whole()),
    "integers and a float": lambda: whole() + 1.5,
    "integers between floats": lambda: whole().clamp(0.5, 1.5),
    "where of floats": lambda: runtime.where(whole() > 1, 1.5, 2.5),
    "on meta": lambda: runtime.ones(2, device="meta"),
}
# Expressions with a dtype of their own.
OTHER: dict[str, tuple[Callable[[], Any], str]] = {
    "a dtype": (lambda: runtime.ones(2, dtype=runtime.float32), "float32"),
    "integers": (whole, "int64"),
    "a range of integers": (lambda: runtime.arange(3), "int64"),
    "a typed constructor": (lambda: runtime.FloatTensor([1]), "float32"),
    "a conversion": (lambda: whole().float(), "float32"),
    "like another": (
        lambda: runtime.ones(1, dtype=runtime.float16).new_zeros(2),
        "float16",
    ),
    "a tensor and a float": (
        lambda: runtime.ones(1, dtype=runtime.float32) + 1.5,
        "float32",
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", REAL)
def test_what_has_the_default_dtype(name: str, dtype: str) -> None:
    # Once before: no plan or kernel of another default stays.
    for _ in range(3):
        REAL[name]()
    set_default_dtype(dtype)
    for _ in range(3):
        assert REAL[name]().dtype.name == dtype


@pytest.mark.parametrize("name", OTHER)
def test_what_has_a_dtype_of_its_own(name: str) -> None:
    set_default_dtype(runtime.float64)
    call, dtype = OTHER[name]
    assert call().dtype.name == dtype


def test_complex_numbers_follow_in_width() -> None:
    assert tensor(1j).dtype is runtime.complex64
    set_default_dtype(runtime.float64)
    for value in (tensor(1j), tensor([1.5, 1j]), whole() * 1j, runtime.full((1,), 1j)):
        assert value.dtype is runtime.complex128
    set_default_dtype(runtime.bfloat16)
    assert tensor(1j).dtype is runtime.complex64


def test_values_are_those_of_the_dtype() -> None:
    set_default_dtype(runtime.float64)
    assert tensor(0.1).item() == 0.1
    assert (tensor([1]) / 3).item() == 1 / 3
    assert runtime.linspace(0, 1, 4)[1].item() == 1 / 3


def test_the_text_names_every_other_dtype() -> None:
    set_default_dtype(runtime.float64)
    assert repr(tensor([1.5])) == "tensor([1.5])"
    assert repr(tensor([1.5], dtype=runtime.float32)) == "tensor([1.5], dtype=float32)"
    assert repr(tensor([1j])) == "tensor([0.+1.j])"


def test_limits_and_promotion_follow() -> None:
    set_default_dtype(runtime.float64)
    assert runtime.get_default_dtype() is runtime.float64
    assert runtime.finfo().dtype == "float64"
    assert runtime.result_type(whole(), 1.5) is runtime.float64


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_only_floats_are_defaults(dtype: str) -> None:
    with pytest.raises(UnfitValue, match="takes a floating-point dtype"):
        set_default_dtype(dtype)
    assert runtime.get_default_dtype() is runtime.float32


def scripted(x: Tensor) -> Tensor:
    return (x / 2 + 1.5) * 2.5


def test_compiled_functions_follow() -> None:
    function = jit.script(scripted)
    for dtype in (runtime.float32, runtime.float64, runtime.float32):
        set_default_dtype(dtype)
        for _ in range(4):
            assert function(whole()).dtype is dtype
