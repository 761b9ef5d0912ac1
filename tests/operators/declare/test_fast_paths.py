"""Fast paths: what they give is what the general way gives, whatever the operands."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import ops
from everyorder.runtime.autograd import inference_mode
from everyorder.runtime.errors.tensor import DevicesDiffer, WrongOption
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.operators import core
from everyorder.runtime.operators.bindings import methods
from everyorder.runtime.operators.declare.fast_paths import SERIAL, disjoint
from everyorder.runtime.tensors import from_data
from everyorder.runtime.tensors.keys import (
    INFERRING,
    inference,
    inference_keys_of,
    keys_of,
)
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.tensors import shown, tensor

# The first call of a dtype goes the general way, and the second the short one.
TWICE = 2


def both(run: Any, *arguments: Any) -> Any:
    """The result of the fast path, after the general one has given the same."""
    first, *others = (run(*arguments) for _ in range(TWICE))
    for other in others:
        assert shown(other) == shown(first)
        assert (other.shape, other.strides) == (first.shape, first.strides)
    return first


LEFT = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
LAYOUTS: dict[str, tuple[Any, Any]] = {
    "a row": (LEFT, LEFT[0]),
    "a column": (LEFT, LEFT[:, :1]),
    "a row on the left": (LEFT[1], LEFT),
    "each other": (LEFT[:1], LEFT.T[:, :, None]),
    "no dimensions": (LEFT, np.float32(2.5)),
    "nothing": (LEFT[:0], LEFT[0]),
    "many": (np.ones((SERIAL, 2), np.float32), LEFT[0, :2]),
}


NUMPY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "lt": np.less,
    "eq": np.equal,
}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_broadcasting(name: str, layout: str) -> None:
    left, right = LAYOUTS[layout]
    with np.errstate(all="ignore"):
        expected = NUMPY[name](left, right)
    first, second = (getattr(core, name)(tensor(left), tensor(right)) for _ in "ab")
    assert first.dtype.name == second.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(first.numpy(), expected)
    np.testing.assert_array_equal(second.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool"])
def test_strided_operands(dtype: str) -> None:
    base = tensor(np.arange(24).reshape(4, 6), dtype)
    array = base.numpy()
    left, right = base[::2, 1::2], base[1::2, ::2]
    found = both(core.eq, left, right)
    assert found.tolist() == (array[::2, 1::2] == array[1::2, ::2]).tolist()
    found = both(core.mul, core.t(left), core.t(right))
    assert found.tolist() == (array[::2, 1::2] * array[1::2, ::2]).T.tolist()


def test_a_view_of_other_elements_goes_the_general_way() -> None:
    base = tensor([1 + 2j, 3 + 4j], "complex64")
    from everyorder.runtime.tensors.construction import view_of

    real = view_of(base, (2,), (2,), 0, tensor(0.0).dtype)
    assert both(core.add, real, tensor([10.0, 20.0])).tolist() == [11, 23]


@pytest.mark.parametrize("number", [2, 2.5, True, 1e300, 2j])
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "complex64"])
def test_a_number_on_the_left(number: Any, dtype: str) -> None:
    right = tensor([1, 2, 4], dtype)
    expected = core.neg(core.sub(right, number))
    assert shown(both(core.sub, number, right)) == shown(expected)
    column = core.t(core.unsqueeze(right, 0))
    assert both(core.sub, number, column).tolist() == [[x] for x in expected.tolist()]


def test_commutative_operators_take_a_number_on_either_side() -> None:
    assert {"add", "mul"} < methods.COMMUTATIVE
    x = tensor([1, 2, 4], "int32")
    assert shown(3 + x) == ("int32", [4, 5, 7])
    assert shown(3 * x) == ("int32", [3, 6, 12])
    assert shown(6 & x) == ("int32", [0, 2, 4])
    assert shown(1 | x) == ("int32", [1, 3, 5])
    assert shown(1 ^ x) == ("int32", [0, 3, 5])
    assert shown(10 - x) == ("int32", [9, 8, 6])
    assert x.__radd__("three") is NotImplemented


def test_squares() -> None:
    x = tensor([-3.0, 0.5])
    assert both(core.pow, x, 2).tolist() == [9, 0.25]
    assert both(core.pow, x, 2.0).tolist() == [9, 0.25]
    assert both(core.pow, x, 3).tolist() == [-27, 0.125]
    assert shown(both(core.pow, tensor([3], "int64"), 2)) == ("int64", [9])


def test_division_in_place() -> None:
    x = tensor([7.0, -7.0])
    assert both(lambda: core.div_(x.clone(), 2)).tolist() == [3.5, -3.5]
    assert both(lambda: core.div_(x.clone(), tensor([2.0, 7.0]))).tolist() == [3.5, -1]
    floored = both(lambda: core.div_(x.clone(), 2, rounding_mode="floor"))
    assert floored.tolist() == [3, -4]


def test_targets() -> None:
    x, y = tensor([1.0, 2.0]), tensor([3.0, 5.0])
    out = tensor([0.0, 0.0])
    for _ in range(TWICE):
        assert core.add_out(x, y, out=out) is out
        assert out.tolist() == [4, 7]
        assert core.add_out(x, y, alpha=2, out=out).tolist() == [7, 12]
        assert core.mul_out(x, y, out=out).tolist() == [3, 10]
        assert core.mul_out(x, y, out=tensor([0, 0], "float64")).tolist() == [3, 10]
        assert core.lt_out(x, y, out=tensor([0, 0], "bool")).tolist() == [True, True]
        same = x.clone()
        assert core.mul_out(same, y, out=same).tolist() == [3, 10]


def test_a_target_that_shares_memory_is_written_last() -> None:
    for _ in range(TWICE):
        base = tensor([1.0, 2.0, 3.0, 4.0])
        found = core.add_out(base[:3], base[:3], out=base[1:])
        assert (found.tolist(), base.tolist()) == ([2, 4, 6], [1, 2, 4, 6])


def test_what_shares_no_byte_is_apart() -> None:
    base, other = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    assert disjoint(base[:1], other[:1])
    assert disjoint(base[:1], base[1:])
    assert not disjoint(base[:2], base[1:])
    assert disjoint(base, base)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64"])
def test_copies(dtype: str) -> None:
    source = tensor([[1, 2], [3, 4]], dtype)
    target = tensor(np.zeros((2, 2)), dtype)
    assert core.copy_(target, source) is target
    assert shown(target) == shown(source)
    copied = core.clone(source)
    core.zero_(source)
    assert shown(source) == (dtype, [[0, 0], [0, 0]])
    assert shown(copied) == shown(target) == (dtype, [[1, 2], [3, 4]])


def test_a_copy_from_the_same_memory() -> None:
    base = tensor([1.0, 2.0, 3.0, 4.0])
    core.copy_(base[1:], base[:3])
    assert base.tolist() == [1, 1, 2, 3]


def test_many_elements_are_copied() -> None:
    many = tensor(np.arange(SERIAL + 1))
    assert core.clone(many).tolist() == many.tolist()
    assert core.copy_(core.zeros_like(many), many).tolist() == many.tolist()


def test_constants_like_a_tensor() -> None:
    x = tensor([[1.0, 2.0]])
    assert shown(core.zeros_like(x)) == ("float32", [[0, 0]])
    assert shown(core.ones_like(x, dtype=tensor(0, "int64").dtype)) == (
        "int64",
        [[1, 1]],
    )
    assert core.empty_like(x).shape == (1, 2)
    assert core.zeros_like(x, device="meta").device.type == "meta"
    assert core.ones_like(core.empty([2], device="meta")).device.type == "meta"


def test_numbers_like_a_tensor() -> None:
    x = tensor([[1, 2]], "int32")
    assert shown(core.full_like(x, 7)) == ("int32", [[7, 7]])
    assert core.full_like(x, 7, device="meta").device.type == "meta"
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.full_like(x, float("inf"))
    assert caught.value.fields()["operator"] == "core::full_like"


def test_a_device_in_host_memory_keeps_its_tensors() -> None:
    cpu = KeySet([DispatchKey.CPU])
    x = from_data.tensor([1.0, 2.0], device="privateuseone")
    runs: dict[str, tuple[Any, ...]] = {
        "exp": (x,),
        "add": (x, x),
        "mul": (x, from_data.tensor([[1.0]], device="privateuseone")),
        "sub": (x, 1.5),
        "clone": (x,),
        "sum": (x,),
        "softmax": (x, 0),
    }
    for name, arguments in runs.items():
        for _ in range(TWICE):
            found = getattr(core, name).redispatch(cpu, *arguments)
            assert found.device is x.device, name
    out = tensor([0.0, 0.0])
    for _ in range(TWICE):
        with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
            core.add_out.redispatch(cpu, x, x, out=out)
        with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
            core.add_.redispatch(cpu, out, x)
        with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
            core.add_.redispatch(cpu, out, x, alpha=2)
    assert out.tolist() == [0, 0]


def test_minus_zero_is_kept() -> None:
    assert np.signbit(core.full([1], -0.0).numpy()).tolist() == [True]


def test_tensors_of_inference_mode_are_known_by_their_keys() -> None:
    x = tensor([1.0, 2.0])
    runs: list[Any] = [
        lambda: core.add(x, x),
        lambda: core.add(x, 1.0),
        lambda: core.add(x, tensor([[1.0]])),
        lambda: core.exp(x),
        lambda: core.clone(x),
        lambda: core.zeros([2]),
        lambda: core.sum(x),
    ]
    for run in runs:
        run()
        outside: Tensor = run()
        with inference_mode():
            assert INFERRING
            inside: Tensor = run()
        assert outside.key_bits == keys_of("cpu").bits
        assert inside.key_bits == inference_keys_of("cpu").bits
    assert not INFERRING


def test_a_thread_in_inference_mode_leaves_others_alone() -> None:
    from threading import Thread

    x, found = tensor([1.0]), []
    ops.core.exp(x)

    def other() -> None:
        found.append((inference.active, ops.core.exp(x).key_bits))

    with inference_mode():
        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert found == [(False, keys_of("cpu").bits)]
