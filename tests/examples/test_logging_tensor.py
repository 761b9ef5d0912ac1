"""The trace of a wrapper, to the letter; and that logging changes no value."""

import threading

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, autograd, ops, tensor
from everyorder.runtime.errors.autograd import BackwardRefused
from everyorder.runtime.torch_dispatch.wrappers import flatten, unflatten
from tests.coded import code
from tests.examples.logging_tensor import LoggingTensor, capture_logs, log_input, short


def logged(*data: float, requires_grad: bool = False) -> LoggingTensor:
    return LoggingTensor(tensor([*data]), requires_grad=requires_grad)


@pytest.mark.spec("dispatch 0.2", "LoggingTensor has a tensor and is none")
@pytest.mark.spec("dispatch 7.10", "lines and ids")
@pytest.mark.spec("dispatch 8.4", "test_basic")
def test_forward_and_backward_to_the_letter() -> None:
    with capture_logs() as lines:
        x = logged(3.0, requires_grad=True)
        log_input("x", x)
        y = x * x
        grad_y = logged(1.0)
        log_input("grad_y", grad_y)
        (grad,) = autograd.grad(y, x, grad_y)
        assert isinstance(grad, LoggingTensor)
        log_input("grad", grad)
    assert lines == [
        "$0: f32[1] = input('x')",
        "$1: f32[1] = everyorder.runtime.ops.core.mul.default($0, $0)",
        "$2: f32[1] = input('grad_y')",
        "$3: f32[1] = everyorder.runtime.ops.core.mul.default($2, $0)",
        "$4: f32[1] = everyorder.runtime.ops.core.mul.default($2, $0)",
        "$5: f32[1] = everyorder.runtime.ops.core.add.default($3, $4)",
        "$5: f32[1] = input('grad')",
    ]
    assert grad.elem.tolist() == [6.0]


def test_without_types_as_it_was_before_they_came() -> None:
    with capture_logs(types=False) as lines:
        x = logged(1.0)
        log_input("x", x)
        x.exp()
    assert lines == [
        "$0 = input('x')",
        "$1 = everyorder.runtime.ops.core.exp.default($0)",
    ]


@pytest.mark.spec("dispatch 7.10", "dtypes, lists, scalars")
def test_arguments_by_name_numbers_lists_and_several_results() -> None:
    x = LoggingTensor(tensor([[1.0, 2.0], [3.0, 4.0]]))
    with capture_logs() as lines:
        ops.core.add(x, 1.5, alpha=2)
        ops.core.abs.out(x, out=LoggingTensor(runtime.zeros(2, 2)))
        x.add_(x)
        ops.core.sum(x, [0], True)
        runtime.zeros_like(x, dtype=runtime.int8)
        ops.core.topk(x, 1)
        ops.core.cat([x, x], 1)
        ops.core.equal(x, x)
        ops.core.view(x, [-1])
    assert lines == [
        "$1: f32[2, 2] = everyorder.runtime.ops.core.add.default($0, 1.5, alpha=2)",
        "$3: f32[2, 2] = everyorder.runtime.ops.core.abs.out($0, out=$2)",
        "$4: f32[2, 2] = everyorder.runtime.ops.core.add_.default($0, $0)",
        "$5: f32[1, 2] = everyorder.runtime.ops.core.sum.default($0, ['0'], True)",
        "$6: i8[2, 2] = everyorder.runtime.ops.core.zeros_like.default($0, dtype=int8)",
        "('$7: f32[2, 1]', '$8: i64[2, 1]') = "
        "everyorder.runtime.ops.core.topk.default($0, 1)",
        "$9: f32[2, 4] = everyorder.runtime.ops.core.cat.default(['$0', '$0'], 1)",
        "True = everyorder.runtime.ops.core.equal.default($0, $0)",
        "$10: f32[4] = everyorder.runtime.ops.core.view.default($0, ['-1'])",
    ]


def test_the_argument_that_was_written_to_is_the_result() -> None:
    x = logged(-2.0)
    out = logged(0.0)
    assert x.abs_() is x
    assert ops.core.neg.out(x, out=out) is out
    assert (x.elem.tolist(), out.elem.tolist()) == ([2.0], [-2.0])


@pytest.mark.spec("dispatch 7.10", "short ids for all tensors")
def test_other_tensors_print_in_full_unless_all_are_numbered() -> None:
    x, other = logged(1.0), tensor([2.0])
    with (
        capture_logs() as lines,
        capture_logs(use_shortid_for_all_tensors=True) as numbered,
    ):
        x + other
    assert lines == [
        "$1: f32[1] = everyorder.runtime.ops.core.add.default($0, tensor([2.]))"
    ]
    assert numbered == ["$2: f32[1] = everyorder.runtime.ops.core.add.default($0, $1)"]


def test_a_tensor_keeps_its_number_and_takes_it_along() -> None:
    x = logged(1.0)
    with capture_logs(types=False) as lines:
        for _ in range(3):
            # The result dies at once, and the next one may have its address.
            x.exp()
    assert lines == [
        f"${n} = everyorder.runtime.ops.core.exp.default($0)" for n in (1, 2, 3)
    ]


def test_nothing_is_written_after_a_capture_nor_by_other_threads() -> None:
    x = logged(1.0)
    with capture_logs() as lines:
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    x.exp()
    assert lines == []


def test_a_capture_ends_where_the_program_fails() -> None:
    x = logged(1.0, 2.0)
    with pytest.raises(runtime.EveryorderError), capture_logs() as lines:
        x + logged(1.0, 2.0, 3.0)
    x.exp()
    assert lines == []


@pytest.mark.spec("dispatch 7.10", "dtypes, lists, scalars")
@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *(("float64", "f64"), ("float32", "f32"), ("float16", "f16")),
        *(("bfloat16", "bf16"), ("complex64", "c64"), ("complex128", "c128")),
        *(("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64")),
        *(("uint8", "u8"), ("uint64", "u64"), ("bool", "b8"), ("complex32", "c32")),
    ],
)
def test_dtypes_have_short_names(dtype: str, name: str) -> None:
    assert short(dtype) == name


def test_gradients_are_those_of_plain_tensors() -> None:
    data = [[0.5, -1.0], [2.0, 0.25]]
    plain = tensor(data, requires_grad=True)
    wrapped = LoggingTensor(tensor(data), requires_grad=True)
    for x in (plain, wrapped):
        loss: Tensor = ((x @ x).relu() * x).sum()
        loss.backward()
    assert plain.grad is not None
    assert isinstance(wrapped.grad, LoggingTensor)
    assert wrapped.grad.elem.tolist() == plain.grad.tolist()


def test_a_saved_tensor_that_was_written_to_is_noticed() -> None:
    x = logged(2.0, requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
        z.sum().backward()


def test_it_never_learns_of_autograd() -> None:
    inside = tensor([1.0], requires_grad=True) * 2
    x = LoggingTensor(inside, requires_grad=True)
    assert not x.elem.requires_grad
    y = x.exp()
    assert isinstance(y, LoggingTensor)
    assert y.requires_grad
    assert not y.elem.requires_grad


def test_it_is_taken_apart_and_put_together() -> None:
    x = logged(1.0, 2.0)
    tensors, plan = flatten(x)
    assert tensors == (x.elem,)
    again = unflatten(tensors, plan)
    assert type(again) is LoggingTensor
    assert again.elem is x.elem
    assert repr(x) == "LoggingTensor(tensor([1., 2.]))"
