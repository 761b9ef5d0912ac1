"""What programs for torch rely on at the edges of operators."""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc, no-untyped-call"

import ast
import builtins
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import everyorder.runtime as m
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from tests.autograd.made import grad_of
from tests.coded import code


@pytest.mark.parametrize(
    ("padding", "shape"), [("same", (1, 1, 5)), ("valid", (1, 1, 2)), (1, (1, 1, 4))]
)
def test_conv1d_takes_words_for_its_padding(padding: str | int, shape: object) -> None:
    x, kernel = m.arange(5.0).reshape(1, 1, 5), m.ones(1, 1, 4)
    assert m.conv1d(x, kernel, padding=padding).shape == shape


def test_conv1d_puts_the_odd_place_last() -> None:
    x, kernel = m.arange(1.0, 5.0).reshape(1, 1, 4), m.ones(1, 1, 2)
    found = m.conv1d(x, kernel, padding="same")
    assert found.tolist() == [[[3, 5, 7, 4]]]


def test_what_has_a_slope_of_zero_keeps_its_history() -> None:
    chances = m.tensor([0.25, 0.75], requires_grad=True)
    m.bernoulli(chances).sum().backward()
    x = m.tensor([0.0, 2.0, float("nan")], requires_grad=True)
    count = m.norm(x, 0)
    count.backward()
    assert count.item() == 2
    assert [grad_of(t).tolist() for t in (chances, x)] == [[0, 0], [0, 0, 0]]


def test_the_gradient_of_an_empty_part_is_empty() -> None:
    nothing = m.zeros(0, requires_grad=True)
    m.cat([nothing, m.ones(2, 2)], dim=1).sum().backward()
    assert grad_of(nothing).shape == (0,)


def test_conversions_take_a_memory_format() -> None:
    x = m.ones(2, 3, 4, 5)
    assert x.double(memory_format=m.channels_last).stride() == (60, 1, 15, 3)
    assert x.int().stride() == (60, 20, 5, 1)


@pytest.mark.parametrize(
    ("sides", "wanted"),
    [
        ((-4, 5), [4, 4, 4, 4, 4]),
        ((5, -4), [1, 1, 1, 1, 1]),
        ((-2, 3), [3, 4, 4, 4, 4]),
        ((3, -2), [1, 1, 1, 1, 2]),
    ],
)
def test_what_is_cut_off_is_still_the_nearest(
    sides: tuple[int, int], wanted: list[int]
) -> None:
    x = m.arange(1.0, 5.0).reshape(1, 1, 4)
    assert m.pad(x, sides, "replicate").tolist() == [[wanted]]


def test_integers_are_spaced_from_an_integer_to_an_integer() -> None:
    found = m.linspace(4.9, -3.9, 8, dtype=m.int64)
    assert found.tolist() == m.linspace(4, -3, 8, dtype=m.int64).tolist()


@pytest.mark.parametrize("kind", [RuntimeError, IndexError])
def test_parts_that_are_not_there(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="start and length"):
        m.narrow(m.ones(20, 10), 1, 11, 0)
    with pytest.raises(kind, match="no dimension 0"):
        m.narrow(m.tensor(1.0), 0, 0, 1)
    with pytest.raises(kind, match="no elements"):
        m.amax(m.ones(5, 0), dim=1)


@pytest.mark.parametrize("name", ["relu", "silu", "elu", "leaky_relu"])
def test_activations_write_over_what_they_are_given(name: str) -> None:
    run = getattr(m, name)
    x = m.tensor([-1.0, 2.0])
    expected = run(x).tolist()
    assert run(x, inplace=False).tolist() == expected
    assert x.tolist() == [-1, 2]
    assert run(input=x, inplace=True) is x
    assert x.tolist() == expected
    leaf = m.tensor([-1.0, 2.0], requires_grad=True)
    run(leaf * 1, inplace=True).sum().backward()
    other = m.tensor([-1.0, 2.0], requires_grad=True)
    run(other * 1).sum().backward()
    assert grad_of(leaf).tolist() == grad_of(other).tolist()


def test_nothing_else_writes_over_what_it_is_given() -> None:
    for call in (m.exp, m.softmax, m.tril):
        with pytest.raises(CallError, check=code("UnknownArgument")):
            call(m.ones(2, 2), inplace=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: m.softmax(input=x, dim=0),
        lambda x: m.exp(input=x),
        lambda x: m.clamp(input=x, min=0.0),
        lambda x: m.sort(input=x)[0],
        lambda x: m.max(input=x, dim=0)[0],
        lambda x: m.std(input=x, dim=0),
        lambda x: m.norm(input=x),
        lambda x: m.mse_loss(input=x, target=x),
        lambda x: m.embedding(input=m.tensor([0]), weight=x),
    ],
)
def test_the_first_argument_may_be_called_input(call: Callable[..., Any]) -> None:
    assert isinstance(call(m.ones(2, 2)), m.Tensor)


def test_an_argument_by_two_names_is_refused() -> None:
    with pytest.raises(CallError, check=code("DuplicateArgument")):
        m.clamp(m.ones(2), input=m.ones(2), min=0)
    with pytest.raises(CallError, check=code("UnknownArgument")):
        m.norm(m.ones(2), dim=0, axis=0)


def test_embedding_takes_the_order_of_layers_and_that_of_the_operator() -> None:
    rows, numbers = m.eye(3), m.tensor([2, 0])
    expected = [[0, 0, 1], [1, 0, 0]]
    assert m.embedding(rows, numbers).tolist() == expected
    assert m.embedding(numbers, rows).tolist() == expected
    table = m.eye(3).requires_grad_()
    # Of layers the last row; of the operator none.
    m.embedding(numbers, table, padding_idx=-1).sum().backward()
    assert grad_of(table).sum(1).tolist() == [3, 0, 0]
    table.grad = None
    m.embedding(table, numbers, -1).sum().backward()
    assert grad_of(table).sum(1).tolist() == [3, 0, 3]


def test_numbers_of_elements() -> None:
    assert m.numel(m.ones(2, 3)) == 6


def test_differences_of_bools_are_refused() -> None:
    truth, ones = m.tensor([True]), m.tensor([1])
    for call in (lambda: truth - ones, lambda: ones - truth, lambda: truth - 1):
        with pytest.raises(DTypeRefused):
            call()
    assert (ones - True).tolist() == [0]


def test_promotion_decides_whether_a_composite_takes_its_tensors() -> None:
    truth, whole, real = m.tensor([True]), m.tensor([2]), m.tensor([0.5])
    assert m.addcmul(truth, whole, whole).tolist() == [5]
    assert m.addcdiv(whole, real, real).tolist() == [3.0]
    assert m.mse_loss(whole, real).tolist() == 2.25
    with pytest.raises(DTypeRefused, match="mse_loss"):
        m.mse_loss(real, m.tensor([1j]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: m.lerp(x, y, 0.5),
        lambda x, y: m.lerp(x, y, x),
        lambda x, y: m.addmm(x, y, y),
        lambda x, y: m.addmv(x[0], y, y[0]),
        lambda x, y: m.baddbmm(x[None], y[None], y[None]),
        lambda x, y: m.meshgrid(x[0], y[0]),
        lambda x, y: m.batch_norm(x, y[0], y[0]),
        lambda x, y: m.group_norm(x, 2, y[0]),
    ],
)
def test_one_dtype_is_asked_for(call: Callable[..., Any]) -> None:
    with pytest.raises(DTypeRefused):
        call(m.ones(2, 2), m.ones(2, 2, dtype=m.float64))


@pytest.mark.parametrize("kind", [m.float16, m.bfloat16])
def test_layers_keep_the_dtype_of_their_input(kind: Any) -> None:
    x, wide = m.ones(2, 2, 3).to(kind), m.ones(2)
    assert m.batch_norm(x, wide, wide, wide, wide).dtype is kind
    assert m.group_norm(x, 2, wide, wide).dtype is kind
    assert m.rms_norm(x, (3,), m.ones(3)).dtype is kind


def test_norms_in_another_dtype() -> None:
    half = m.tensor([3.0, 4.0]).half()
    assert half.norm(dtype=m.float64).dtype is m.float64
    assert half.norm().dtype is m.float16
    for x, narrow in (([3.0, 4.0], m.float16), ([1j], m.float32)):
        with pytest.raises(DTypeRefused):
            m.tensor(x).norm(dtype=narrow)


def test_grids_are_made_of_lines() -> None:
    with pytest.raises(ShapesDoNotFit, check=code("ShapesDoNotFit")):
        m.meshgrid(m.ones(2, 2), m.ones(2))


def test_places_in_a_transposed_tensor_lie_row_by_row() -> None:
    places = m.tensor([[0, 1, 2], [2, 1, 0]]).t()
    assert m.one_hot(places).is_contiguous()
    x = m.ones(3, 2).t()
    assert x.masked_fill(x > 0, m.tensor(2.0)).is_contiguous()
    assert x.masked_fill(x > 0, 2.0).is_contiguous()


def test_what_has_no_dimension_is_unflattened_as_a_line_of_one() -> None:
    assert m.tensor(3.0).unflatten(0, (1, -1)).shape == (1, 1)
    with pytest.raises(WrongOption, check=code("WrongOption")):
        m.tensor(3.0).unflatten(0, (2,))
    with pytest.raises(IndexOutOfRange, check=code("DimensionOutOfRange")):
        m.tensor(3.0).unflatten(1, (1,))


def test_norms_over_the_last_dimensions_lie_row_by_row() -> None:
    x = m.ones(3, 2).t()
    assert m.rms_norm(x, (3,)).is_contiguous()
    assert m.layer_norm(x, (3,)).is_contiguous()


def test_dense_strides_are_kept_by_what_is_composed_of_pointwise_operators() -> None:
    x = m.ones(3, 2).t()
    for made in (x.nan_to_num(), m.logaddexp(x, x), m.hypot(x, x), x.fmod(2)):
        assert made.stride() == (1, 2)


def test_integers_have_no_decimals() -> None:
    assert m.round(m.tensor([3])).tolist() == [3]
    with pytest.raises(DTypeRefused):
        m.round(m.tensor([3]), decimals=1)


def test_what_is_chosen_of_repeated_elements_has_their_gradient() -> None:
    x = m.tensor([3.0, 1.0, 3.0], requires_grad=True)
    values = m.unique(x)
    assert isinstance(values, m.Tensor)
    (values * m.tensor([2.0, 5.0])).sum().backward()
    assert grad_of(x).tolist() == [5, 2, 0]


def test_weights_of_16_bits_are_counted_in_double_precision() -> None:
    found = m.bincount(m.tensor([0, 1, 1]), m.ones(3).half())
    assert (found.dtype, found.tolist()) == (m.float64, [1, 2])
    assert m.bincount(m.tensor([0]), m.ones(1)).dtype is m.float32


def test_one_number_is_looked_up_on_the_device_of_the_line() -> None:
    line = m.empty(4, device="meta")
    assert m.searchsorted(line, 1.0).device.type == "meta"


def test_filling_by_chance() -> None:
    x = m.zeros(1000)
    assert x.bernoulli_(1.0) is x
    assert x.sum().item() == 1000
    assert 300 < x.bernoulli_().sum().item() < 700
    assert x.bernoulli_(m.tensor(0.0)).sum().item() == 0
    whole = m.zeros(5, dtype=m.int64)
    assert whole.bernoulli_(1.0).tolist() == [1] * 5
    assert m.bernoulli(whole, 0.0).tolist() == [0] * 5


def test_random_complex_numbers() -> None:
    drawn = m.randn(20_000, dtype=m.complex64)
    sizes = drawn.abs().square()
    # Five standard errors; the two parts have a variance of a half each.
    assert abs(sizes.mean().item() - 1) < 5 / 20_000**0.5
    assert abs(drawn.real.var().item() - 0.5) < 0.05
    even = m.rand(1000, dtype=m.complex128)
    for part in (even.real, even.imag):
        assert 0 <= part.min().item() <= part.max().item() < 1
    assert m.randn_like(drawn).dtype is m.complex64


def test_logsumexp_of_complex_numbers() -> None:
    x = m.tensor([1 + 1j, 800 - 2j, 799 + 3j])
    expected = 800 + m.log((x - 800).exp().sum()).item()
    assert abs(x.logsumexp(0).item() - expected) < 1e-4
    nothing = m.nan_to_num(m.tensor([complex("nan+infj")]), nan=1.0, posinf=2.0)
    assert nothing.tolist() == [1 + 2j]
    assert m.l1_loss(m.tensor([3 + 4j]), m.tensor([0j])).item() == 5


def test_the_functions_use_no_builtin_that_is_an_operator_there() -> None:
    """`any` in a function of that module is `core.any`, once all names are there."""
    module = importlib.import_module("everyorder.runtime.operators.bindings.functions")
    taken = {
        name
        for name, value in vars(builtins).items()
        if name.isalpha() and vars(module).get(name, value) is not value
    }
    assert {"any", "max", "sum"} <= taken
    tree = ast.parse(inspect.getsource(module))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not used & taken
