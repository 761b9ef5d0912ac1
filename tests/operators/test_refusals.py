"""What is refused: in our words, by the name of the operator, and nothing is written.

True only here: tensors without elements, arguments beyond all use, and targets of calls
that fail; every other bad input is a row of `tests.opinfo.test_bad_input`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import (
    BadSize,
    DTypeRefused,
    IndexOutOfRange,
    OperandError,
    OutOfMemory,
    WrongOption,
)
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare.structured import naming
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.refusals import message_of
from tests.operators.tensors import META, shown, tensor


def integers(*values: Any) -> Tensor:
    return tensor(values, "int64")


# The last of three places is none.
BAD = integers(0, 7)
SOURCE = tensor([5.0, 6.0])

OUT: dict[str, Any] = {
    "scatter.out": lambda x, out: core.scatter_out(x, 0, BAD, SOURCE, out=out),
    "scatter.value_out": lambda x, out: core.scatter_value_out(x, 0, BAD, 5.0, out=out),
    "scatter_add.out": lambda x, out: core.scatter_add_out(x, 0, BAD, SOURCE, out=out),
    "index_add.out": lambda x, out: core.index_add_out(x, 0, BAD, SOURCE, out=out),
    "index_copy.out": lambda x, out: core.index_copy_out(x, 0, BAD, SOURCE, out=out),
    "index_fill.out": lambda x, out: core.index_fill_out(x, 0, BAD, 5.0, out=out),
    **{
        f"scatter_reduce.out {how}": lambda x, out, how=how: core.scatter_reduce_out(
            x, 0, BAD, SOURCE, how, include_self=False, out=out
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
    },
}


@pytest.mark.parametrize("name", OUT)
def test_a_refused_call_leaves_out_alone(name: str) -> None:
    out = tensor([9.0, 9.0, 9.0])
    with pytest.raises(IndexOutOfRange) as caught:
        OUT[name](tensor([1.0, 2.0, 3.0]), out)
    assert caught.value.fields()["operator"] == f"core::{name.split()[0]}"
    assert out.tolist() == [9, 9, 9]


def test_what_fits_is_written_to_out() -> None:
    x, out = tensor([1.0, 2.0, 3.0]), tensor([9.0, 9.0, 9.0])
    core.scatter_out(x, 0, integers(0, 2), SOURCE, out=out)
    assert (x.tolist(), out.tolist()) == ([1, 2, 3], [5, 2, 6])
    core.scatter_out(x, 0, integers(0, 2), SOURCE, out=x)
    assert x.tolist() == [5, 2, 6]


ROW = [[1.0, 2.0]]


def test_targets_of_composites_are_refused_by_their_own_names() -> None:
    x = tensor(ROW)
    calls: dict[str, tuple[Any, ...]] = {
        "matmul.out": (core.matmul_out, x, tensor([1.0])),
        "stack.out": (core.stack_out, [x], 4),
    }
    for name, (call, *arguments) in calls.items():
        with pytest.raises(OperandError) as caught:
            call(*arguments, out=tensor([]))
        assert caught.value.fields()["operator"] == f"core::{name}"


def test_other_errors_pass_a_composite_as_they_are() -> None:
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        naming("core::fails", fails)()


def test_composites_write_to_out_once() -> None:
    out = core.zeros([1, 1])
    core.matmul_out(tensor(ROW), core.t(tensor(ROW)), out=out)
    assert (out.tolist(), out._version) == ([[5]], 1)
    out = core.zeros([1, 1, 2])
    core.stack_out([tensor(ROW)], out=out)
    assert (out.tolist(), out._version) == ([ROW], 1)


def test_a_mask_on_meta_does_not_change_the_shape_that_is_put_to() -> None:
    x = core.empty([3], device=META)
    mask = core.empty([3], dtype=tensor(0, "bool").dtype, device=META)
    found = core.index_put(x, [mask], core.empty([], device=META))
    assert (found.shape, found.device) == ((3,), META)


BOOL, UINT8 = DType.named("bool"), DType.named("uint8")
IMAGE = tensor([[[[0.0] * 4] * 4]])
KERNEL = tensor([[[[1.0]]]])
FLAGS = tensor([True, False], "bool")
WHOLE = tensor([1, 2], "int64")
REALS = tensor([1.0, 2.0])
FIRST = tensor([0], "int64")
SIZES = "one number, or two for height and width"

OPTIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "dilation": (
        lambda: core.max_pool2d(IMAGE, 1, 1, 0, 2**62),
        f"`core::max_pool2d` does not take [{2**62}, {2**62}] for `dilation`. "
        f"fits: {SIZES}, 1 and more, at most 2147483647",
    ),
    "padding": (
        lambda: core.conv2d(IMAGE, KERNEL, None, 1, 2**40),
        f"`core::conv2d` does not take [{2**40}, {2**40}] for `padding`. "
        f"fits: {SIZES}, 0 and more, at most 2147483647",
    ),
    "stride": (
        lambda: core.conv2d(IMAGE, KERNEL, None, 0),
        f"`core::conv2d` does not take [0, 0] for `stride`. fits: {SIZES}, 1 and more",
    ),
    "fill": (
        lambda: core.fill_(core.clone(FLAGS), 3j),
        "`core::fill_` does not take 3j for `value`. "
        "fits: a real number, as the elements are bool",
    ),
    "full": (
        lambda: core.full([2], 3j, dtype=BOOL),
        "`core::full` does not take 3j for `fill_value`. "
        "fits: a real number, as the elements are bool",
    ),
    "masked_fill": (
        lambda: core.masked_fill(FLAGS, FLAGS, 3j),
        "`core::masked_fill` does not take 3j for `value`. "
        "fits: a real number, as the elements are bool",
    ),
    "scatter": (
        lambda: core.scatter_value(WHOLE, 0, FIRST, float("inf")),
        "`core::scatter.value` does not take inf for `value`. "
        "fits: a finite number, as the elements are int64",
    ),
    "index_add": (
        lambda: core.index_add(WHOLE, 0, FIRST, FIRST, alpha=float("nan")),
        "`core::index_add` does not take nan for `alpha`. "
        "fits: a finite number, as the elements are int64",
    ),
    "var": (
        lambda: core.var(REALS, correction=3j),
        "`core::var` does not take 3j for `correction`. fits: a real number",
    ),
    "arange": (
        lambda: core.arange_start(0, 5, 1e-320),
        f"`core::arange.start` does not take {1e-320!r} for `step`. "
        f"fits: a number that leads there in at most {2**63 - 1} steps",
    ),
    "expand": (
        lambda: core.expand(core.view(FIRST, [1, 1]), [2**32, 2**31]),
        f"`core::expand` does not take ({2**32}, {2**31}) for `size`. "
        f"fits: sizes with a product of at most {2**63 - 1}",
    ),
    "input_strides": (
        lambda: core.as_strided_backward(REALS, [2], [1, 1], 0, [2], [1], 0),
        "`core::as_strided_backward` does not take [1, 1] for `input_strides`. "
        "fits: one stride for each of [2]",
    ),
    "strides": (
        lambda: core.as_strided_backward(REALS, [2], [1], 0, [2], [], 0),
        "`core::as_strided_backward` does not take [] for `stride`. "
        "fits: one stride for each of [2]",
    ),
    "num_weights": (
        lambda: core.embedding_backward(tensor([[1.0]]), FIRST, -3, -1),
        "`core::embedding_backward` does not take -3 for `num_weights`. "
        "fits: 0 or more, the rows of the table",
    ),
    "randperm": (
        lambda: core.randperm(257, dtype=UINT8),
        "`core::randperm` does not take 257 for `n`. "
        "fits: at most 256, as the elements are uint8",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str) -> None:
    call, text = OPTIONS[name]
    with pytest.raises(WrongOption) as caught:
        call()
    assert message_of(caught.value) == text


def test_bool_is_not_summed_up_as_bool() -> None:
    with pytest.raises(DTypeRefused) as caught:
        core.cumsum(REALS, 0, dtype=BOOL)
    assert message_of(caught.value) == (
        "`core::cumsum` does not take `dtype` of dtype bool. fits: numbers, not bool"
    )


def test_all_of_a_byte_can_be_permuted() -> None:
    found = core.randperm(256, dtype=UINT8)
    assert sorted(found.tolist()) == list(range(256))


def test_more_than_the_memory() -> None:
    with pytest.raises(OutOfMemory, check=code("NotEnoughMemory")):
        core.zeros([2**62])
    with pytest.raises(OutOfMemory, check=code("NotEnoughMemory")):
        core.conv2d(IMAGE, KERNEL, None, 1, 2**30)


def test_a_window_longer_than_the_image() -> None:
    """In a moment: what lies on the padding is stepped over at once."""
    found = core.max_pool2d(IMAGE, 2**31 - 1, 1, 2**30 - 1)
    assert (found.shape, found.tolist()[0][0][0]) == (IMAGE.shape, [0] * 4)


@pytest.mark.parametrize("place", [-1, 4, 2**40])
def test_places_of_maxima_outside_of_the_image(place: int) -> None:
    image, places = tensor([[[[0.0] * 2] * 2]]), tensor([[[[place]]]], "int64")
    with pytest.raises(IndexOutOfRange) as caught:
        core.max_pool2d_with_indices_backward(KERNEL, image, 2, 2, 0, 1, False, places)
    assert (caught.value.index, caught.value.size) == (place, 4)
    assert caught.value.operator == "core::max_pool2d_with_indices_backward"


def test_more_dimensions_than_numpy_has() -> None:
    x = core.ones([1] * 65)
    with pytest.raises(BadSize, check=code("TooManyDimensions")) as caught:
        x.numpy()
    assert message_of(caught.value) == (
        "`numpy()` creates an array of NumPy, which has at most 64 dimensions; the "
        "tensor has 65. to do: merge dimensions first, by `.reshape(...)`"
    )
    assert repr(x) == f"tensor(..., shape={x.shape}, dtype=float32)"
    assert core.reshape(x, [1]).tolist() == [1.0]


EMPTY = runtime.zeros(3, 0)
NINE = tensor([9], "int64")
READS_AND_WRITES: dict[str, Callable[[Any], Any]] = {
    "index": lambda at: EMPTY[at],
    "index of two": lambda at: runtime.zeros(3, 2, 0)[at, at],
    "index_select": lambda at: EMPTY.index_select(0, at),
    "index_put": lambda at: EMPTY.index_put((at,), runtime.zeros(1, 0)),
    "index_put_": lambda at: EMPTY.index_put_((at,), tensor(1.0)),
    "index_add": lambda at: EMPTY.index_add(0, at, runtime.zeros(1, 0)),
    "index_add_": lambda at: EMPTY.index_add_(0, at, runtime.zeros(1, 0)),
    "index_copy": lambda at: EMPTY.index_copy(0, at, runtime.zeros(1, 0)),
    "index_fill": lambda at: EMPTY.index_fill(0, at, 1.0),
    "embedding": lambda at: core.embedding(EMPTY, at),
}


@pytest.mark.parametrize("name", READS_AND_WRITES)
def test_a_place_that_is_not_there_is_refused_where_nothing_is_read(name: str) -> None:
    with pytest.raises(IndexOutOfRange) as caught:
        READS_AND_WRITES[name](NINE)
    assert (caught.value.index, caught.value.dim) == (9, 0)
    assert caught.value.size == 3
    assert name.split()[0].rstrip("_") in caught.value.operator
    assert READS_AND_WRITES[name](tensor([1], "int64")).numel() == 0


@pytest.mark.parametrize("name", ["index", "index_put", "index_fill"])
def test_the_least_place_from_the_end(name: str) -> None:
    do = READS_AND_WRITES[name]
    assert do(tensor([-3], "int64")).numel() == 0
    with pytest.raises(IndexOutOfRange, check=code("IndexOutOfRange")):
        do(tensor([-4], "int64"))


def test_no_places_of_nothing_are_fine() -> None:
    none = core.empty([0], dtype=NINE.dtype)
    assert runtime.zeros(0, 3)[none].shape == (0, 3)
    assert runtime.zeros(0, 3).index_select(0, none).shape == (0, 3)
    wide = tensor([[9]], "int64")
    # Nothing is picked, as the indices have no place in common: as in NumPy.
    found = runtime.zeros(3, 4, 2)[wide, core.empty([0, 1], dtype=NINE.dtype)]
    assert found.shape == (0, 1, 2)


TOO_LARGE = (0, 2**62, 2**62)


@pytest.mark.parametrize(
    "make",
    [
        lambda: runtime.empty(TOO_LARGE),
        lambda: runtime.zeros(*TOO_LARGE),
        lambda: runtime.full(TOO_LARGE, 1.0),
        lambda: runtime.empty(TOO_LARGE, device="meta"),
        lambda: runtime.zeros(0).reshape(TOO_LARGE),
        lambda: runtime.zeros(0, 1, 1).expand(TOO_LARGE).clone(),
    ],
)
def test_strides_that_no_integer_holds_are_refused(make: Any) -> None:
    with pytest.raises(BadSize, check=code("BadStrides")) as caught:
        make()
    assert caught.value.shape == TOO_LARGE
    assert "do not fit 64 bits" in str(caught.value)


def test_large_sizes_whose_strides_fit() -> None:
    assert runtime.empty(2**62, 0, 2**62).strides == (2**62, 2**62, 1)
    assert runtime.zeros(0, 1, 1).expand(TOO_LARGE).strides == (1, 0, 0)


@pytest.mark.parametrize(("value", "places"), [(2.0, [0]), (0.0, [])])
def test_where_one_number_is_true(value: float, places: list[int]) -> None:
    for found in (runtime.where(tensor(value)), runtime.where(tensor(value) > 1)):
        assert [shown(each) for each in found] == [("int64", places)]


@pytest.mark.parametrize("count", [1, 3])
def test_pieces_of_nothing(count: int) -> None:
    pieces = runtime.zeros(2, 0).chunk(count, 1)
    assert [piece.shape for piece in pieces] == [(2, 0)] * count
