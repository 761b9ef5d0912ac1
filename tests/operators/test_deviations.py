"""What operators of `core` do otherwise than upstream: a test for each row."""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc, no-untyped-call"

import pytest

import everyorder.runtime as m
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    ShapesDoNotFit,
    TargetRefused,
    WrongOption,
)
from tests.autograd.made import grad_of
from tests.coded import code, coded

UnknownArgument = coded(CallError, "UnknownArgument")


def test_results_lie_row_by_row() -> None:
    x = m.ones(3, 4).t()
    assert m.nonzero(x).stride() == (2, 1)
    assert m.cat([x, x]).is_contiguous()
    assert (x + x).stride() == (1, 4)


def test_out_with_elements_is_not_resized() -> None:
    with pytest.raises(TargetRefused, check=code("TargetShape")):
        m.exp(m.ones(2), out=m.empty(3))
    out = m.empty(0)
    assert m.exp(m.ones(2, 3).t(), out=out).stride() == (2, 1)


def test_out_of_a_wider_dtype() -> None:
    out = m.empty(1, dtype=m.float64)
    assert m.gather(m.ones(2), 0, m.tensor([1]), out=out).dtype is m.float64


def test_conj_is_computed() -> None:
    x = m.tensor([1 + 2j])
    y = x.conj()
    x.zero_()
    assert y.tolist() == [1 - 2j]
    assert not hasattr(y, "is_conj")
    real = m.ones(2)
    assert real.conj().data_ptr() != real.data_ptr()


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: m.ones(2) + m.ones(3), ValueError),
        (lambda: m.ones(2).sum(3), IndexError),
        (lambda: m.acos(m.ones(2).to("bool")).bitwise_not(), TypeError),
        (lambda: m.gather(m.ones(2), 0, m.tensor([7])), IndexError),
        (lambda: m.arange(3) // 0, ZeroDivisionError),
        (lambda: m.mm(m.ones(2, 3), m.ones(2, 3)), RuntimeError),
    ],
)
def test_refusals_are_runtime_errors_and_more(call: object, kind: type) -> None:
    assert callable(call)
    with pytest.raises(RuntimeError) as caught:
        call()
    assert isinstance(caught.value, (EveryorderError, kind))
    assert isinstance(caught.value, kind)


def test_calls_that_do_not_fit_are_type_errors() -> None:
    with pytest.raises(TypeError):
        m.exp("x")


def test_a_number_on_either_side() -> None:
    assert m.maximum(2.0, m.tensor([1.0])).tolist() == [2]
    assert m.hypot(m.tensor([3.0]), 4).tolist() == [5]


def test_a_python_bool_is_a_number() -> None:
    assert (m.tensor([3]) - True).tolist() == [2]


def test_dimensions_of_what_has_none() -> None:
    one = m.tensor(3.0)
    assert m.roll(one, 1, 0).item() == 3
    assert m.unique(one, dim=0).shape == (1,)
    assert m.roll(m.ones(2), (), ()).tolist() == [1, 1]


def test_integers_in_windows() -> None:
    whole = m.ones(1, 1, 4, 4, dtype=m.int64)
    for call in (lambda: m.conv2d(whole, whole), lambda: m.avg_pool2d(whole, 2)):
        with pytest.raises(DTypeRefused):
            call()


def test_options_that_are_left_out() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")):
        m.norm(m.eye(2), "nuc")
    with pytest.raises(UnknownArgument):
        m.repeat_interleave(m.ones(2), 2, output_size=4)
    with pytest.raises(CallError, check=code("WrongArgumentType")):
        m.linspace(m.tensor(0.0), 1.0, 3)


def test_batch_norm_of_a_line() -> None:
    with pytest.raises(ShapesDoNotFit, check=code("ShapesDoNotFit")):
        m.batch_norm(m.ones(3), m.zeros(3), m.ones(3))


def test_the_dtype_of_an_empty_index() -> None:
    with pytest.raises(DTypeRefused):
        m.gather(m.ones(2), 0, m.empty(0, dtype=m.uint8))


def test_nothing_to_sum() -> None:
    assert m.tensor([True]).sum_to_size(1).dtype is m.bool


def test_the_first_of_equal_elements() -> None:
    assert m.topk(m.tensor([1, 2, 2, 2]), 2).indices.tolist() == [1, 2]


def test_what_cancels() -> None:
    x = m.tensor([[3.0, 5.0]], requires_grad=True)
    m.layer_norm(x[:, :1], (1,)).sum().backward()
    assert grad_of(x).abs().max().item() == 0
    large = m.tensor([4000 + 1j, 4001 - 2j], requires_grad=True)
    m.logsumexp(large, 0).abs().backward()
    small = m.tensor([1j, 1 - 2j], dtype=m.complex128, requires_grad=True)
    shifted = m.logsumexp(small, 0) + 4000
    shifted.abs().backward()
    apart = grad_of(large) - grad_of(small)
    assert apart.abs().max().item() < 1e-5


def test_acos_near_one() -> None:
    found = m.acos(m.tensor([1 + 1e-300j], dtype=m.complex128)).item()
    assert abs(found.real - 1e-150) < 1e-160
    zero = m.acos(m.tensor([0j], dtype=m.complex128)).imag
    assert m.atan2(zero, m.tensor(-1.0)).item() < 0


def test_xlogy_of_complex_numbers() -> None:
    assert m.xlogy(m.tensor([2j]), m.tensor([1 + 0j])).tolist() == [0]


def test_gradients_that_upstream_lacks() -> None:
    x = m.tensor([1.0, 2.0], requires_grad=True)
    m.scatter(x, 0, m.tensor([0]), m.tensor([3.0]), reduce="add").sum().backward()
    assert grad_of(x).tolist() == [1, 1]
    x.grad = None
    m.norm(x, 0, 0).backward()
    assert grad_of(x).tolist() == [0, 0]
    x.grad = None
    (x * 1).logical_and_(m.ones(2)).sum().backward()
    assert grad_of(x).tolist() == [0, 0]


def test_results_of_their_own() -> None:
    x = m.eye(2)
    for made in (m.einsum("ii->i", x), m.dropout(x, 0.5, training=False)):
        made.add_(1)
    assert x.tolist() == [[1, 0], [0, 1]]


def test_meta_tensors_are_refused_what_others_are() -> None:
    whole = m.ones(3, dtype=m.int64, device="meta")
    for call in (lambda: m.std(whole), lambda: m.softmax(whole, 0)):
        with pytest.raises(DTypeRefused):
            call()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_every_integer_is_a_place(dtype: str) -> None:
    x = m.tensor([5.0, 6.0, 7.0])
    places = m.tensor([2, 0, -1], dtype=dtype)
    assert x[places].tolist() == [7.0, 5.0, 7.0]
    x[places] = 0.0
    assert x.tolist() == [0.0, 6.0, 0.0]


def test_a_condition_is_bool() -> None:
    x, flags = m.ones(2), m.tensor([1, 0], dtype=m.uint8)
    for call in (
        lambda: m.where(flags, x, x),
        lambda: x.masked_fill(flags, 0.0),
        lambda: x.masked_select(flags),
    ):
        with pytest.raises(DTypeRefused, match="of dtype uint8"):
            call()
    assert m.where(flags != 0, x, -x).tolist() == [1.0, -1.0]


def test_windows_that_share_elements_are_not_written() -> None:
    x = m.arange(7.0)
    with pytest.raises(TargetRefused, check=code("TargetOverlaps")):
        x.unfold(0, 3, 2).add_(1)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    x.unfold(0, 2, 2).add_(1)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.0]


def test_values_and_indices_have_one_class() -> None:
    x = m.tensor([[2.0, 1.0]])
    kinds = {type(each) for each in (x.sort(), x.topk(1), x.max(0), x.cummax(1))}
    assert len(kinds) == 1
    assert x.sort()._fields == ("values", "indices")
    values, indices = x.median(1)
    assert (values.tolist(), indices.tolist()) == ([1.0], [1])
    assert m.linalg.qr(m.eye(2))._fields == ("Q", "R")


@pytest.mark.parametrize("name", ["mkldnn", "opengl", "opencl", "ideep"])
def test_libraries_are_not_devices(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"'{name}'"):
        m.device(name)
    assert m.device("meta").type == "meta"
