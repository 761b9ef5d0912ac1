"""Views: memory that is shared, other dtypes on it, and what is no view."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare.plan import MOST
from everyorder.runtime.tensors import tensor
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code, coded
from tests.operators.refusals import assert_refused, message_of
from tests.operators.tensors import cube

OptionRefused = coded(WrongOption, "WrongOption")

ViewImpossible = coded(ShapesDoNotFit, "ViewImpossible")


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


def test_what_is_flat_is_itself() -> None:
    x = tensor([1.0, 2.0]).requires_grad_()
    assert core.flatten(x) is x
    y = tensor(np.zeros((2, 3)))
    assert core.flatten(y, 1, 1) is y
    assert core.flatten(y) is not y


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
    with pytest.raises(IndexOutOfRange) as caught:
        core.select(tensor(3), 0, 0)
    assert caught.value.fields() == {
        "operator": "core::select",
        "dim": 0,
        "shape": (),
        "repeated": False,
    }


def test_as_strided_stays_inside_the_storage() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.as_strided(cube(), [5, 5], [5, 1], 0)
    assert message_of(caught.value) == (
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
        "`core::view` cannot work on these shapes: size -1 at position 1 is not a "
        "size.\n"
        "  given: self (2, 3, 4), wanted (-1, -1)\n"
        "  fits:  sizes of zero and more, and -1 once",
    ),
    "view impossible": (
        lambda x: core.view(core.transpose(x, 0, 1), [24]),
        ViewImpossible,
        "`core::view` cannot view shape (3, 2, 4) as (24,) without a copy.\n"
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
        IndexOutOfRange,
        "`core::select` was given dimension 3 for shape (2, 3, 4), which has no such\n"
        "dimension.\n"
        "  fits: -3 to 2, each once",
    ),
    "slice step": (
        lambda x: core.slice(x, 0, None, None, 0),
        OptionRefused,
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
        IndexOutOfRange,
        "`core::permute` was given dimension -2 of shape (2, 3, 4) twice.\n"
        "  fits: -3 to 2, each once",
    ),
    "unsqueeze": (
        lambda x: core.unsqueeze(x, 4),
        IndexOutOfRange,
        "`core::unsqueeze` was given dimension 4 for shape (2, 3, 4, 1), which has no\n"
        "such dimension.\n"
        "  fits: -4 to 3, each once",
    ),
    "t": (
        core.t,
        ShapesDoNotFit,
        "`core::t` cannot work on these shapes: 3 dimensions are not a matrix.\n"
        "  given: self (2, 3, 4)\n"
        "  fits:  at most two dimensions; transpose(dim0, dim1) takes any",
    ),
    "as_strided": (
        lambda x: core.as_strided(x, [2], [1, 1]),
        ShapesDoNotFit,
        "`core::as_strided` cannot work on these shapes: stride does not have one "
        "number for each size.\n"
        "  given: size (2,), stride (1, 1)\n"
        "  fits:  as many strides as sizes",
    ),
    "diagonal": (
        lambda x: core.diagonal(x, 0, 1, -2),
        IndexOutOfRange,
        "`core::diagonal` was given dimension -2 of shape (2, 3, 4) twice.\n"
        "  fits: -3 to 2, each once",
    ),
    "split": (
        lambda x: core.split(x, 0),
        OptionRefused,
        "`core::split` does not take 0 for `split_size`.\n"
        "  fits: 1 and more, as dimension 0 has size 2",
    ),
    "split sizes": (
        lambda x: core.split_sizes(x, [1, 2]),
        OptionRefused,
        "`core::split.sizes` does not take [1, 2] for `split_sizes`.\n"
        "  fits: sizes that add up to 2, which dimension 0 has",
    ),
    "no dimension": (
        lambda x: core.select(core.view(core.slice(x, 0, 0, 0), [0]), 1, 0),
        IndexOutOfRange,
        "`core::select` was given dimension 1 for shape (0,), which has no such\n"
        "dimension.\n"
        "  fits: -1 to 0, each once",
    ),
    "expand": (
        lambda x: core.expand(x, [2, 6, 4]),
        ShapesDoNotFit,
        "`core::expand` cannot work on these shapes: only a dimension of size 1 can "
        "be\n"
        "repeated.\n"
        "  given: self (2, 3, 4), wanted (2, 6, 4)\n"
        "  fits:  sizes that end in (2, 3, 4), where each 1 and each new size is free",
    ),
    "expand fewer": (
        lambda x: core.expand(x, [3, 4]),
        ShapesDoNotFit,
        "`core::expand` cannot work on these shapes: only a dimension of size 1 can "
        "be\n"
        "repeated.\n"
        "  given: self (2, 3, 4), wanted (3, 4)\n"
        "  fits:  sizes that end in (2, 3, 4), where each 1 and each new size is free",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_view_is_refused_by_name(case: str) -> None:
    call, kind, text = WRONG[case]
    assert_refused(lambda: call(cube()), kind, text)


def test_dimensions_of_one_are_repeated_without_a_copy() -> None:
    base = cube()
    row = core.slice(base, 1, 0, 1)
    wide = core.expand(row, [5, -1, 3, 4])
    assert (wide.shape, wide.strides) == ((5, 2, 3, 4), (0, 12, 0, 1))
    assert wide.storage() is base.storage()
    assert wide.tolist() == [[[each] * 3 for (each,) in row.tolist()]] * 5


def test_more_elements_than_can_be_counted() -> None:
    one = core.slice(cube(), 0, 0, 1)
    assert core.expand(one, [MOST // 12, 3, 4]).shape == (MOST // 12, 3, 4)
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.expand(one, [MOST // 12 + 1, 3, 4])
    assert caught.value.fields() == {
        "operator": "core::expand",
        "argument": "size",
        "found": str((MOST // 12 + 1, 3, 4)),
        "fits": f"sizes with a product of at most {MOST}",
    }


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
        OptionRefused,
    ),
    "not side by side": (lambda m: m.ones(2, 3).t().view(m.int16), OptionRefused),
    "no dimension": (lambda m: m.ones(()).view(m.int64), OptionRefused),
    "no imaginary part": (lambda m: m.imag(m.ones(2)), DTypeRefused),
    "its attribute": (lambda m: m.ones(2).imag, DTypeRefused),
    "no complex numbers": (lambda m: m.view_as_real(m.ones(2)), DTypeRefused),
    "no pairs": (lambda m: m.view_as_complex(m.ones(3)), ShapesDoNotFit),
    "no dimension of pairs": (lambda m: m.view_as_complex(m.ones(())), ShapesDoNotFit),
    "apart": (lambda m: m.view_as_complex(m.ones(2, 2).t()), OptionRefused),
    "from an odd place": (lambda m: m.view_as_complex(m.ones(5)[1:3]), OptionRefused),
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
    with pytest.raises(WrongOption, check=code("WrongOption")):
        z.real.as_strided((5,), (1,), 0)
    with pytest.raises(WrongOption, check=code("WrongOption")):
        runtime.view_as_complex(runtime.ones(2, 2)).as_strided((3,), (1,), 0)
