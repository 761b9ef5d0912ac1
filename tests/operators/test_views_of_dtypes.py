"""Views in another dtype: parts of complex numbers, pairs, and the bytes themselves."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import runtime
from runtime import tensor
from runtime.errors.autograd import WriteRefused
from runtime.errors.operands import DTypeRefused, ShapesDoNotFit, WrongOption
from tests.coded import code

Program = Callable[[Any], Any]


def rounded(values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return [rounded(each) for each in values]
    if isinstance(values, complex):
        return round(values.real, 4), round(values.imag, 4)
    return round(values, 4) if isinstance(values, float) else values


def written_through_parts(m: Any) -> Any:
    z = m.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    w = z * 1
    w.real.mul_(3)
    w.imag.add_(1)
    (m.view_as_real(w) ** 2).sum().backward()
    return z.grad.tolist(), w.tolist()


def through_pairs(m: Any) -> Any:
    x = m.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    z = m.view_as_complex(x * 1)
    (z * z.conj()).real.sum().backward()
    return x.grad.tolist()


def set_parts(m: Any) -> Any:
    x = m.tensor([1.0, 2.0], requires_grad=True)
    z = m.zeros(2, dtype=m.complex64)
    z.real = x * 1
    z.imag = 2 * x
    (z * (1 + 1j)).abs().sum().backward()
    z.imag = 7
    return x.grad.tolist(), z.tolist()


def of_a_turned_matrix(m: Any) -> Any:
    z = m.tensor([[1 + 2j, 3 - 1j], [2j, 1]], requires_grad=True)
    w = (z * 1).t()
    w[0].imag.exp_()
    w.abs().sum().backward()
    return z.grad.tolist()


def a_view_of_a_view(m: Any) -> Any:
    z = m.tensor([1 + 2j, 1j], requires_grad=True)
    pairs = m.view_as_real(z * 1)
    line = pairs.view(-1)
    line[1:3].sin_()
    line.sum().backward()
    return z.grad.tolist(), pairs.tolist()


def written_to_behind_a_view(m: Any) -> Any:
    z = m.tensor([1 + 2j], requires_grad=True)
    w = z * 1
    part = w.imag
    w.mul_(2j)
    return part.tolist(), m.autograd.grad(part.sum(), z)[0].tolist()


def a_result_saved_of_a_part(m: Any) -> Any:
    z = m.tensor([0.5 + 2j, 1 + 1j], requires_grad=True)
    w = z * 1
    w.real.exp_()
    (slope,) = m.autograd.grad(w.real.sum(), z, create_graph=True)
    slope.real.sum().backward()
    return slope.tolist(), z.grad.tolist()


def one_storage(m: Any) -> Any:
    z = m.tensor([[1 + 2j, 3 - 1j], [5j, 6]])
    before = z._version
    z.imag[0, 0] = 9
    part = z.imag
    return (
        *(z.tolist(), z._version > before, part.storage_offset(), part.stride()),
        *(part.is_contiguous(), part.t().contiguous().tolist()),
        *((part @ part).tolist(), part.clone().stride(), part.sum().item()),
        m.add(m.ones(2, 2), m.ones(2, 2), out=z.real).tolist(),
        z.tolist(),
        m.real(part).tolist() == part.tolist(),
    )


def copied(m: Any) -> Any:
    z = m.tensor([[1 + 2j, 3 - 1j]])
    deep, again = copy.deepcopy(z.imag), pickle.loads(pickle.dumps(z.imag))
    z.imag.fill_(0)
    return deep.tolist(), again.tolist(), copy.copy(z.imag).tolist()


def without_elements(m: Any) -> Any:
    z = m.empty(2, 0, 3, dtype=m.complex128)
    on_meta = m.empty(2, 3, dtype=m.complex64, device="meta")
    return (
        *(list(m.view_as_real(z).shape), list(z.real.shape)),
        *(list(on_meta.imag.shape), on_meta.imag.stride()),
        *(on_meta.imag.storage_offset(), m.tensor(1 + 2j).imag.item()),
    )


def the_bytes(m: Any) -> Any:
    x = m.arange(8, dtype=m.int32).view(2, 4)
    x.view(m.int16)[0, 1] = 1
    return (
        *(x.tolist(), x.view(m.int16).tolist(), list(x.view(m.int64).shape)),
        *(x.view(m.float32).view(m.int32).tolist(), list(x.view(dtype=m.int8).shape)),
        *(x[:, 2:].view(m.int64).storage_offset(), x.view(m.uint8)[1, :5].tolist()),
    )


PROGRAMS: tuple[Program, ...] = (
    *(written_through_parts, through_pairs, set_parts, of_a_turned_matrix),
    *(a_view_of_a_view, written_to_behind_a_view, a_result_saved_of_a_part),
    *(one_storage, copied, without_elements, the_bytes),
)


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_as_torch(program: Program) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    assert rounded(program(runtime)) == rounded(program(torch))


def test_parts_are_written_through() -> None:
    slopes, values = written_through_parts(runtime)
    assert values == [3 + 3j, 9 + 0j]
    assert slopes == [18 + 6j, 54 + 0j]


def test_parts_share_the_storage() -> None:
    z = tensor([1 + 2j, 3 - 1j])
    assert z.real.storage() is z.imag.storage() is z.storage()
    z.real[0] = 9
    z.imag = tensor([4.0, 5.0])
    assert z.tolist() == [9 + 4j, 3 + 5j]
    assert runtime.view_as_complex(runtime.view_as_real(z)).tolist() == z.tolist()


REFUSED: dict[str, tuple[Program, type[Exception]]] = {
    "no whole number of elements": (
        lambda m: m.arange(3, dtype=m.int32).view(m.int64),
        WrongOption,
    ),
    "not side by side": (lambda m: m.ones(2, 3).t().view(m.int16), WrongOption),
    "no dimension": (lambda m: m.ones(()).view(m.int64), WrongOption),
    "no imaginary part": (lambda m: m.imag(m.ones(2)), DTypeRefused),
    "its attribute": (lambda m: m.ones(2).imag, DTypeRefused),
    "no complex numbers": (lambda m: m.view_as_real(m.ones(2)), DTypeRefused),
    "no pairs": (lambda m: m.view_as_complex(m.ones(3)), ShapesDoNotFit),
    "no dimension of pairs": (lambda m: m.view_as_complex(m.ones(())), ShapesDoNotFit),
    "apart": (lambda m: m.view_as_complex(m.ones(2, 2).t()), WrongOption),
    "from an odd place": (lambda m: m.view_as_complex(m.ones(5)[1:3]), WrongOption),
    "of halves": (
        lambda m: m.view_as_complex(m.ones(2, 2, dtype=m.bfloat16)),
        DTypeRefused,
    ),
}


@pytest.mark.parametrize(("program", "error"), REFUSED.values(), ids=REFUSED)
def test_refused(program: Program, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        program(runtime)
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.torch
@pytest.mark.parametrize(("program", "error"), REFUSED.values(), ids=REFUSED)
def test_torch_refuses_it_too(program: Program, error: type[Exception]) -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    with pytest.raises(RuntimeError):
        program(torch)


def test_a_part_that_is_turned_in_place_is_not_written_to() -> None:
    z = tensor([[1 + 2j, 3 - 1j]], requires_grad=True)
    part = (z * 1).real
    part.t_()
    with pytest.raises(WriteRefused, check=code("ViewModified")):
        part.mul_(2)


def test_as_strided_counts_elements_of_the_view() -> None:
    z = tensor([1 + 2j, 3 - 1j])
    assert z.real.as_strided((4,), (1,), 0).tolist() == [1, 2, 3, -1]
    with pytest.raises(WrongOption):
        z.real.as_strided((5,), (1,), 0)
    with pytest.raises(WrongOption):
        runtime.view_as_complex(runtime.ones(2, 2)).as_strided((3,), (1,), 0)
