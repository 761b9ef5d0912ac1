"""Copies, fills, cat, even steps on the device: layouts, dtypes, to and from the host.

Elements at fault are found before anything is written; tensors go to other workers by
way of the host.
"""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.kernels.cuda.copy import (
    contiguous,
    first_outside,
    first_zero,
    require_indices,
)
from everyorder.runtime.rpc.codec import pack, restricted, unpack
from everyorder.runtime.tensors.construction import wrap_number
from tests.cuda.simulated.agreement import agree, empty, same
from tests.cuda.simulated.arrays import (
    COMPUTED,
    INTEGERS,
    STORED,
    form,
    fresh,
    get,
    host,
    on_host,
    put,
    samples,
    spaced,
)


def converted(array: np.ndarray, name: str) -> np.ndarray:
    """NumPy's conversion, 16-bit floats by way of float32."""
    with np.errstate(all="ignore"):
        if np.iscomplexobj(array) and form(name).kind != "c" and name != "bool":
            array = array.real
        if name == "bool":
            return np.asarray(array != 0)
        if "float16" in name or "float16" in str(array.dtype):
            array = array.astype(np.float32)
        return array.astype(form(name))


def small(name: str) -> np.ndarray:
    """Elements that fit every dtype but bool."""
    if name == "bool":
        return samples("bool", 12)
    signed = form(name).kind not in "u"
    return (np.arange(12) - (5 if signed else 0)).astype(np.float32).astype(form(name))


@pytest.mark.parametrize("of", STORED)
def test_every_dtype_becomes_every_other(of: str) -> None:
    array = small(of)
    for to in STORED:
        # Negative numbers are no unsigned ones; C leaves open what they become.
        given = array if to != "uint8" else np.abs(array)
        out = fresh((12,), to)
        CUDA["copy"](out, put(given))
        np.testing.assert_array_equal(get(out), converted(given, to), err_msg=to)
        assert get(out).dtype == form(to)


@pytest.mark.parametrize("name", STORED)
def test_layouts(name: str) -> None:
    array = samples(name) if name in COMPUTED else small(name).repeat(2)
    array = array.reshape(2, 3, 4)
    for layout, target in itertools.product((put, spaced), repeat=2):
        out = target(np.zeros_like(array))
        CUDA["copy"](out, layout(array))
        np.testing.assert_array_equal(get(out), array)
    CUDA["copy"](out, put(array[:1, :, :1]))
    np.testing.assert_array_equal(
        get(out), np.broadcast_to(array[:1, :, :1], array.shape)
    )


def every_half() -> np.ndarray:
    """All 65,536 patterns of 16 bits, thinned out to one in 13 (a prime)."""
    return np.arange(0, 1 << 16, 13, dtype=np.uint16)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sixteen_bits_widen_exactly(name: str) -> None:
    halves = every_half().view(form(name))
    out = fresh(halves.shape, "float32")
    CUDA["copy"](out, put(halves))
    np.testing.assert_array_equal(get(out), halves.astype(np.float32))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_to_the_nearest_even(name: str) -> None:
    rng = np.random.default_rng(5)
    steps = rng.integers(0, 1 << 32, 2000, dtype=np.uint64).astype(np.uint32)
    between = every_half()[:4000:8].view(form(name)).astype(np.float32)
    ties = between.view(np.uint32) + (0x1000 if name == "float16" else 0x8000)
    edges = np.array(
        [65504, 65519.99, 65520, 2**-24, 2**-25, 6.1e-5, -0.0, np.inf], np.float32
    )
    array = np.concatenate([steps.view(np.float32), ties.view(np.float32), edges])
    out = fresh(array.shape, name)
    CUDA["copy"](out, put(array))
    with np.errstate(all="ignore"):
        expected = array.astype(form(name))
    nan = np.isnan(array)
    np.testing.assert_array_equal(
        get(out).view(np.uint16)[~nan], expected.view(np.uint16)[~nan]
    )
    assert np.isnan(get(out)[nan].astype(np.float32)).all()


@pytest.mark.parametrize("name", STORED)
def test_fill(name: str) -> None:
    for layout in (put, spaced):
        out = layout(np.zeros((2, 3), form(name)))
        CUDA["fill"](out, 1)
        np.testing.assert_array_equal(get(out), np.ones((2, 3), form(name)))


def test_numbers_too_large_wrap_around_as_in_c() -> None:
    out = fresh((2,), "int8")
    CUDA["fill"](out, 300)
    np.testing.assert_array_equal(get(out), [44, 44])
    CUDA["fill"](out, -129)
    np.testing.assert_array_equal(get(out), [127, 127])


def test_a_number_is_copied_into_every_element() -> None:
    out = fresh((3,), "bfloat16")
    CUDA["copy"](out, wrap_number(2.5))
    np.testing.assert_array_equal(get(out), np.full(3, 2.5, ml_dtypes.bfloat16))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool"])
def test_to_the_host_and_from_it(name: str) -> None:
    array = small(name).reshape(3, 4)
    for layout in (put, spaced):
        there = layout(np.zeros_like(array))
        CUDA["copy"](there, on_host(array))
        np.testing.assert_array_equal(get(there), array)
        here = host((3, 4), name)
        CUDA["copy"](here, there)
        np.testing.assert_array_equal(get(here), array)
    there = fresh((2, 3, 4), "float64")
    CUDA["copy"](there, on_host(small("int16").reshape(3, 4)))
    np.testing.assert_array_equal(
        get(there), np.broadcast_to(small("float64").reshape(3, 4), (2, 3, 4))
    )
    here = host((3, 4), "int32")
    CUDA["copy"](here, put(small("float32").reshape(3, 4)))
    np.testing.assert_array_equal(get(here), small("int32").reshape(3, 4))


def test_contiguous_copies_only_what_is_not() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    plain, scattered = put(array), spaced(array)
    assert contiguous(plain) is plain
    made = contiguous(scattered)
    assert made.is_contiguous()
    np.testing.assert_array_equal(get(made), array)


def test_nothing_is_copied_into_nothing() -> None:
    out = fresh((0, 3), "float32")
    CUDA["copy"](out, put(np.empty((0, 3), np.int8)))
    CUDA["fill"](out, 2)
    assert get(out).shape == (0, 3)


@pytest.mark.parametrize("dtype", STORED)
def test_every_dtype(dtype: str) -> None:
    first, second = samples(dtype)[:6].reshape(2, 3), samples(dtype)[6:16].reshape(2, 5)
    out = empty((2, 8), form(dtype))
    agree("cat", [out], [first, second], 1, compare=same)
    out = empty((8, 2), form(dtype))
    given = [first.T.copy(), second.T.copy()]
    agree("cat", [out], given, 0, compare=same)


def test_empty_ones_fit_everywhere() -> None:
    given = [np.zeros(0, np.int32), np.arange(6, dtype=np.int32).reshape(2, 3)]
    agree("cat", [empty((2, 3), np.int32)], given, 1, compare=same)
    agree("cat", [empty((0,), np.int32)], [given[0], given[0]], 0, compare=same)


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize(("start", "step"), [(0, 1), (5, -2), (0.5, 0.25)])
def test_steps(name: str, start: float, step: float) -> None:
    count = 2 if name == "bool" else 3
    if name == "uint8" and step < 0:
        count = 2
    expected, found = host((count,), name), fresh((count,), name)
    CPU["arange"](expected, start, step)
    CUDA["arange"](found, start, step)
    np.testing.assert_array_equal(get(found), get(expected))


def test_no_steps() -> None:
    out = fresh((0,), "int64")
    CUDA["arange"](out, 0, 1)
    assert get(out).shape == (0,)


@pytest.mark.parametrize("name", INTEGERS)
def test_the_first_one_is_found(name: str) -> None:
    array = np.array([[1, 2, 3], [9, 0, 9], [0, 2, 8]], name)
    for layout in (put, spaced):
        assert first_zero(layout(array)) == (4, 0)
        assert first_outside(layout(array), 0, 7) == (3, 9)
        assert first_outside(layout(array), 0, 9) is None


def test_nothing_is_at_fault_in_nothing() -> None:
    assert first_zero(put(np.empty(0, np.int64))) is None


def test_indices() -> None:
    index = put(np.array([0, 4, -1, 5]))
    require_indices("core::gather", put(np.array([0, 4])), 5, 1)
    require_indices("core::index", put(np.array([-5, 4])), 5, 1, wraps=True)
    with pytest.raises(IndexOutOfRange) as caught:
        require_indices("core::gather", index, 5, 1)
    assert caught.value.fields() == {
        "operator": "core::gather",
        "index": -1,
        "size": 5,
        "dim": 1,
        "wraps": False,
    }
    with pytest.raises(IndexOutOfRange) as caught:
        require_indices("core::index", index, 5, 1, wraps=True)
    assert caught.value.index == 5


def there(value: Any) -> Any:
    return unpack([bytearray(each) for each in pack(value).payload])


def restricted_there(value: Any) -> Any:
    payload = restricted.pack(value).payload
    return unpack([bytearray(each) for each in payload], trusted=False)


@pytest.mark.parametrize("send", [there, restricted_there])
def test_tensors_arrive_on_their_device(send: Any) -> None:
    sent = runtime.arange(12, dtype="float32").reshape(3, 4).to("cuda").transpose(0, 1)
    found = send(sent)
    assert (found.device, found.strides) == (sent.device, (1, 4))
    assert found.tolist() == sent.tolist()
    assert found.data_ptr() != sent.data_ptr()


@pytest.mark.parametrize("send", [there, restricted_there])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "complex64", "bool"])
def test_views_stay_views_and_send_what_they_show(send: Any, dtype: str) -> None:
    whole = runtime.tensor([0, 1] * 500, dtype=dtype).to("cuda")
    first, second = send([whole[100:104], whole[102:110]])
    assert first.storage() is second.storage()
    assert first.storage().nbytes() <= 10 * whole.itemsize + 16
    assert first.tolist() == whole[100:104].tolist()
    column = whole.reshape(100, 10)[:, 3]
    assert send(column).tolist() == column.tolist()


def test_large_ones_have_a_frame() -> None:
    sent = runtime.zeros(5000).to("cuda")
    packed = pack(sent)
    assert [memoryview(each).nbytes for each in packed.payload[1:]] == [20_000]
    found = unpack(packed.payload)
    found[0] = 1
    assert (sent[0].item(), found[0].item()) == (0, 1)
