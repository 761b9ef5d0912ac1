"""Methods and Python's operators, and the fast path of two tensors."""

# What a type checker refuses is called here on purpose.
# mypy: disable-error-code="arg-type, call-arg, call-overload, misc"

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everyorder.runtime.autograd.install  # noqa: F401  # counts versions
from everyorder.runtime import Library, default_dispatcher
from everyorder.runtime.errors.call import CallError, KernelError
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.errors.tensor import (
    DeviceUnavailable,
    IndexOutOfRange,
    ShapesDoNotFit,
    UnfitValue,
    WrongOption,
)
from everyorder.runtime.keys import DispatchKey, KeySet, include_keys
from everyorder.runtime.operators import core
from everyorder.runtime.operators.bindings import functions, methods
from everyorder.runtime.operators.bindings.methods import (
    COMMUTATIVE,
    arithmetic,
    comparison,
    reflected,
)
from everyorder.runtime.operators.bindings.python_bindings import public
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors import tensor
from everyorder.runtime.tensors.tensor import METHODS, Tensor
from tests.coded import code
from tests.operators.refusals import message_of, one_line

LEFT = np.array([[1.0, -2.0, 3.5], [4.0, 0.5, -6.0]])
RIGHT = np.array([2.0, -3.0, 0.5])
BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.eq, operator.ne, operator.lt, operator.le, operator.gt),
    operator.ge,
)
BITWISE = (operator.and_, operator.or_, operator.xor)
IN_PLACE = (
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv),
    *(operator.ifloordiv, operator.imod),
)


@pytest.mark.parametrize("run", BINARY, ids=lambda run: run.__name__)
def test_pythons_operators_with_tensors_and_numbers_on_both_sides(run: Any) -> None:
    left, right = tensor(LEFT), tensor(RIGHT)
    assert run(left, right).tolist() == run(LEFT, RIGHT).tolist()
    assert run(left, 2).tolist() == run(LEFT, 2).tolist()
    assert run(2.5, left).tolist() == run(2.5, LEFT).tolist()
    assert run(left, np.float64(2)).tolist() == run(LEFT, 2).tolist()
    assert run(np.float64(2), left).tolist() == run(2, LEFT).tolist()


@pytest.mark.parametrize("run", IN_PLACE, ids=lambda run: run.__name__)
def test_in_place_operators_write_to_the_left_side(run: Any) -> None:
    base, array = tensor(LEFT), LEFT.copy()
    found = run(base, tensor(RIGHT))
    assert found is base
    assert base.tolist() == run(array, RIGHT).tolist()


@pytest.mark.parametrize("run", BITWISE, ids=lambda run: run.__name__)
def test_bitwise_operators(run: Any) -> None:
    left, right = np.array([6, 5, 3]), np.array([3, 3, 8])
    assert run(tensor(left), tensor(right)).tolist() == run(left, right).tolist()
    assert run(tensor(left), 3).tolist() == run(left, 3).tolist()
    assert run(3, tensor(left)).tolist() == run(3, left).tolist()


def test_powers_signs_and_products() -> None:
    base = tensor([1.0, 2.0, 3.0])
    assert (base**2).tolist() == [1, 4, 9]
    assert (2**base).tolist() == [2, 4, 8]
    assert (-base).tolist() == [-1, -2, -3]
    assert +base is base
    assert abs(-base).tolist() == [1, 2, 3]
    assert (~tensor([True, False])).tolist() == [False, True]
    assert (base @ base).item() == 14
    base **= 2
    assert base.tolist() == [1, 4, 9]


def test_foreign_objects_are_left_to_the_other_side() -> None:
    class Other:
        def __radd__(self, left: object) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]  # it equals everything

    base: Any = tensor([1.0])
    assert base + Other() == "mine"
    assert (base == Other()) is True
    assert (base == None) is False  # noqa: E711  # the comparison is the point
    assert (base != "a") is True
    for run in (operator.add, operator.lt, operator.matmul):
        with pytest.raises(TypeError):
            run(base, "a")
    with pytest.raises(TypeError):
        base @ 2
    assert hash(base) == hash(base)


ALONE = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "square": np.square,
    "tanh": np.tanh,
    "floor": np.floor,
}


@pytest.mark.parametrize("name", ALONE)
def test_operators_of_one_tensor(name: str) -> None:
    array = np.abs(LEFT)
    expected = ALONE[name](array)
    np.testing.assert_allclose(getattr(tensor(array), name)().numpy(), expected)
    np.testing.assert_allclose(
        getattr(functions, name)(tensor(array)).numpy(), expected
    )
    base = tensor(array)
    assert getattr(base, f"{name}_")() is base
    np.testing.assert_allclose(base.numpy(), expected)
    out = tensor(np.zeros(array.shape))
    assert getattr(functions, name)(tensor(array), out=out) is out
    np.testing.assert_allclose(out.numpy(), expected)
    assert getattr(functions, name)(tensor(array), out=None) is not out


CASES: dict[str, tuple[Callable[[Tensor], Any], Any]] = {
    "sum": (lambda x: x.sum(), LEFT.sum()),
    "sum dim": (lambda x: x.sum(0, True), LEFT.sum(0, keepdims=True)),
    "sum named": (lambda x: x.sum(dim=1, keepdim=True), LEFT.sum(1, keepdims=True)),
    "sum dtype": (lambda x: x.sum(dtype="float32"), LEFT.sum()),
    "mean": (lambda x: x.mean((0, 1)), LEFT.mean()),
    "max": (lambda x: x.max(1).values, LEFT.max(1)),
    "amax": (lambda x: x.amax(1), LEFT.max(1)),
    "argmin": (lambda x: x.argmin(0), LEFT.argmin(0)),
    "view": (lambda x: x.view(3, 2), LEFT.reshape(3, 2)),
    "view list": (lambda x: x.view((3, -1)), LEFT.reshape(3, 2)),
    "view named": (lambda x: x.view(size=[6]), LEFT.reshape(6)),
    "reshape": (lambda x: x.reshape(-1), LEFT.reshape(-1)),
    "permute": (lambda x: x.permute(1, 0), LEFT.T),
    "expand": (lambda x: x.expand(2, -1, -1), np.stack([LEFT, LEFT])),
    "flip": (lambda x: x.flip(0, 1), LEFT[::-1, ::-1]),
    "squeeze": (lambda x: x.unsqueeze(0).squeeze(), LEFT),
    "squeeze dim": (lambda x: x.unsqueeze(0).squeeze(0), LEFT),
    "T": (lambda x: x.T, LEFT.T),
    "mT": (lambda x: x.unsqueeze(0).mT, LEFT.T[None]),
    "view_as": (lambda x: x.view_as(tensor(np.zeros((3, 2)))), LEFT.reshape(3, 2)),
    "clamp": (lambda x: x.clamp(0, 2), LEFT.clip(0, 2)),
    "clamp max": (lambda x: x.clamp(max=1), LEFT.clip(None, 1)),
    "clamp tensor": (lambda x: x.clamp(tensor(RIGHT)), np.maximum(LEFT, RIGHT)),
    "clamp both": (
        lambda x: x.clamp(tensor(RIGHT), 3),
        np.minimum(np.maximum(LEFT, RIGHT), 3),
    ),
    "clamp_": (lambda x: x.clone().clamp_(0), LEFT.clip(0)),
    "clamp_ tensor": (
        lambda x: x.clone().clamp_(min=tensor(RIGHT)),
        np.maximum(LEFT, RIGHT),
    ),
    "where": (lambda x: x.where(x > 0, 0), np.where(LEFT > 0, LEFT, 0)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 9), np.where(LEFT > 0, 9, LEFT)),
    "scatter": (
        lambda x: x.scatter(1, tensor([[0], [1]]), 9),
        np.array([[9, -2, 3.5], [4, 9, -6]]),
    ),
    "scatter tensor": (
        lambda x: x.scatter(1, tensor([[0]]), tensor([[8.0]], dtype="float64")),
        np.array([[8, -2, 3.5], [4, 0.5, -6]]),
    ),
    "scatter_": (
        lambda x: x.clone().scatter_(1, tensor([[0], [1]]), 9),
        np.array([[9, -2, 3.5], [4, 9, -6]]),
    ),
    "narrow": (lambda x: x.narrow(1, -2, 2), LEFT[:, 1:]),
    "add alpha": (lambda x: x.add(x, alpha=2), LEFT * 3),
    "index_add": (
        lambda x: x.index_add(1, tensor([0]), x[:, :1], alpha=-1),
        LEFT * [0, 1, 1],
    ),
    "softmax": (lambda x: x.softmax(0).sum(0), np.ones(3)),
}


@pytest.mark.parametrize("case", CASES)
def test_methods_take_what_people_write(case: str) -> None:
    call, expected = CASES[case]
    found = call(tensor(LEFT))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.numpy(), expected)


def test_methods_that_give_several() -> None:
    base = tensor([3.0, 1.0, 2.0])
    ordered = base.sort(descending=True)
    assert ordered.values.tolist() == [3, 2, 1]
    assert ordered.indices.tolist() == [0, 2, 1]
    values, indices = functions.topk(base, 2)
    assert (values.tolist(), indices.tolist()) == ([3, 2], [0, 2])
    assert [part.tolist() for part in base.split(2)] == [[3, 1], [2]]
    assert [part.tolist() for part in base.split([1, 2])] == [[3], [1, 2]]
    assert [part.tolist() for part in base.chunk(2)] == [[3, 1], [2]]
    assert [part.tolist() for part in base.unbind()] == [3, 1, 2]
    rows, columns = functions.where(tensor([[0, 1], [1, 0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])


def test_functions_write_to_out() -> None:
    base, out = tensor([1.0, 5.0]), tensor([0.0, 0.0])
    assert functions.clamp(base, 2, out=out) is out
    assert out.tolist() == [2, 5]
    functions.clamp(base, max=tensor([0.5, 9.0]), out=out)
    assert out.tolist() == [0.5, 5]
    assert functions.scatter(base, 0, tensor([0]), 7, out=out) is out
    assert out.tolist() == [7, 5]
    functions.where(tensor([True, False]), base, 0, out=out)
    assert out.tolist() == [1, 0]
    mixed = tensor([1, 5]).clamp(tensor([2, 2]), 4)
    assert (mixed.dtype.name, mixed.tolist()) == ("int64", [2, 4])


def test_a_device_that_is_not_there_says_so() -> None:
    asked: list[object] = []
    for device in (None, 0, "cuda"):
        try:
            asked.append(tensor([1.0]).cuda(device).device.type)
        except DeviceUnavailable as error:
            asked.append(error.device.partition(":")[0])
    assert asked == ["cuda"] * 3


def test_conversions() -> None:
    base = tensor([0.0, 1.5])
    assert base.to("float64").dtype.name == "float64"
    assert base.to(DType.named("int64")).tolist() == [0, 1]
    assert base.to(tensor([1])).dtype.name == "int64"
    assert base.to("meta").is_meta
    assert base.to(Device("meta"), "float64").dtype.name == "float64"
    assert base.to(device="cpu", dtype="half").dtype.name == "float16"
    assert base.to("float32", False, True) is not base
    assert base.to("cpu") is base
    assert base.to(None) is base
    assert base.unsqueeze(0).squeeze().shape == (2,)
    assert base.cpu() is base
    assert base.type_as(tensor([1])).dtype.name == "int64"
    assert base.bool().tolist() == [False, True]
    assert [getattr(base, name)().dtype.name for name in methods.CONVERSIONS] == list(
        methods.CONVERSIONS.values()
    )


def test_a_method_names_its_schema_and_every_name_is_there() -> None:
    assert METHODS["exp"].__doc__ == (
        "Return e to the power of every element.\n\n"
        "Schema: `core::exp(Tensor self) -> Tensor`"
    )
    assert functions.exp.__name__ == "exp"
    names = {name for name, each in public().items() if each.method}
    assert names <= {*METHODS}
    assert len(functions.FUNCTIONS) == len(set(functions.FUNCTIONS))
    assert all(callable(getattr(functions, name)) for name in functions.FUNCTIONS)
    with pytest.raises(AttributeError):
        functions.nonsense  # noqa: B018  # asked for, not used
    with pytest.raises(LookupFailed, check=code("UnknownOperator")):
        core.nonsense  # noqa: B018  # asked for, not used


def test_what_methods_refuse() -> None:
    base = tensor([1.0, 2.0])
    with pytest.raises(ShapesDoNotFit) as few:
        base.mT  # noqa: B018  # asked for, not used
    with pytest.raises(TypeError):
        base.view()
    assert message_of(few.value) == one_line(
        "`Tensor.mT` cannot work on these shapes: there are no matrices. given: self "
        "(2,) fits: at least two dimensions"
    )
    with pytest.raises(IndexOutOfRange, check=code("PartOutOfRange")) as long:
        base.narrow(0, 1, 2)
    assert isinstance(long.value, ValueError)
    assert message_of(long.value) == one_line(
        "`narrow` does not take 1 and 2 for `start and length`. fits: a part of "
        "dimension 0, which has size 2"
    )
    with pytest.raises(WrongOption, check=code("WrongOption")) as none:
        base.chunk(0)
    assert message_of(none.value) == one_line(
        "`chunk` does not take 0 for `chunks`. fits: 1 and more"
    )


def test_torch_s_name_of_the_storage() -> None:
    x = tensor([[1.0, 2.0]])
    assert x.t().untyped_storage() is x.untyped_storage() is x.storage()


# Taking the place of a built-in kernel is what these tests are about.
pytestmark = pytest.mark.filterwarnings(
    "ignore::everyorder.runtime.dispatch.library.KernelOverridden"
)

# Enough calls for a call stub, and for the bound kernel that it finds.
WARM = 20


class Others:
    """What tensors know nothing of: it is asked when they have no answer."""

    def __radd__(self, other: Any) -> str:
        return "asked"

    def __gt__(self, other: Any) -> str:
        return "asked"


def warm(method: Callable[[Tensor, Any], Any], x: Tensor) -> None:
    for _ in range(WARM):
        method(x, x)


def test_two_tensors_numbers_and_arrays() -> None:
    x, y = tensor([1.0, 2.0]), tensor([3.0, 5.0])
    add = arithmetic("__add__", "add")
    for _ in range(WARM):
        assert add(x, y).tolist() == [4.0, 7.0]
        assert add(x, 1).tolist() == [2.0, 3.0]
        assert add(x, np.array([2.0, 2.0])).tolist() == [3.0, 4.0]
    assert add(x, "word") is NotImplemented
    assert x + Others() == "asked"
    assert (x < Others()) == "asked"


@pytest.mark.parametrize("name", ["add", "sub", "div", "mul", "pow"])
def test_defaults_are_those_of_the_schema(name: str) -> None:
    """`alpha` and `rounding_mode` come after the two sides."""
    x, y = tensor([1.0, 2.0]), tensor([3.0, 5.0])
    method = arithmetic("__x__", name)
    warm(method, x)
    assert method(x, y).tolist() == getattr(core, name)(x, y).tolist()
    assert method.__name__ == method.__qualname__ == "__x__"


def test_in_place_is_the_tensor_itself() -> None:
    x = tensor([1.0, 2.0])
    before, version = x, x._version
    for _ in range(WARM):
        x += tensor([1.0, 1.0])
    assert x is before
    assert x.tolist() == [21.0, 22.0]
    assert x._version == version + WARM


def test_sides_of_numbers_and_arrays_on_the_left() -> None:
    x = tensor([1.0, 2.0])
    assert (3 - x).tolist() == [2.0, 1.0]
    assert (3 + x).tolist() == [4.0, 5.0]
    assert (np.array([3.0, 3.0]) - x).tolist() == [2.0, 1.0]
    assert reflected("__rsub__", "sub")(x, "word") is NotImplemented
    assert reflected("__radd__", "add")(x, "word") is NotImplemented
    assert {"add", "mul"} <= COMMUTATIVE
    assert "sub" not in COMMUTATIVE


def test_a_comparison_with_a_list_is_refused() -> None:
    x = tensor([1.0])
    less = comparison("__lt__", "lt")
    with pytest.raises(UnfitValue) as refused:
        less(x, [1.0])
    assert refused.value.asked == "Tensor.__lt__"
    assert less(x, "word") is NotImplemented
    warm(less, x)
    assert less(x, tensor([2.0])).tolist() == [True]


def test_what_is_registered_later_is_what_runs() -> None:
    x, other = tensor([1.0]), tensor([7.0])
    add = arithmetic("__add__", "add")
    warm(add, x)
    with Library("core", "IMPL", "CPU") as library:
        library.impl("add", lambda self, right, alpha=1: other)
        for _ in range(WARM):
            assert add(x, x).tolist() == [7.0]
    assert add(x, x).tolist() == [2.0]


def test_what_a_kernel_returns_is_looked_at() -> None:
    x = tensor([1.0])
    add = arithmetic("__add__", "add")
    with Library("core", "IMPL", "CPU") as library:
        library.impl("add", lambda self, other, alpha=1: "no tensor")
        for _ in range(WARM):
            with pytest.raises(KernelError, check=code("WrongReturnType")):
                add(x, x)


def test_the_threads_keys_count() -> None:
    x = tensor([1.0])
    add = arithmetic("__add__", "add")
    warm(add, x)
    seen: list[str] = []

    def traced(self, other, alpha=1):  # type: ignore[no-untyped-def]  # any kernel
        seen.append(threading.current_thread().name)
        return self

    with Library("core", "IMPL", "Tracer") as library:
        library.impl("add", traced)
        with include_keys(KeySet(DispatchKey.Tracer)):
            assert add(x, x) is x
            other = threading.Thread(target=add, args=(x, x))
            other.start()
            other.join()
        add(x, x)
    assert seen == [threading.current_thread().name]


def test_who_watches_hears_of_it() -> None:
    x = tensor([1.0])
    add = arithmetic("__add__", "add")
    warm(add, x)
    with default_dispatcher().trace() as lines:
        add(x, x)
    assert ["op=[core::add]" in line for line in lines if "call]" in line] == [True]


def test_a_tensor_that_was_never_made_is_refused() -> None:
    class Wrapper(Tensor):
        pass

    unmade = object.__new__(Wrapper)
    x = tensor([1.0])
    add = arithmetic("__add__", "add")
    warm(add, x)
    for sides in ((unmade, x), (x, unmade), (unmade, unmade)):
        with pytest.raises(CallError, check=code("WrongArgumentType")):
            add(*sides)


def test_tensors_in_tensors_are_compared_as_by_equality() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    present: list[Any] = [1, 2.0, True, 3 + 0j, np.float32(4), np.array([9.0, 4.0])]
    present += [tensor([9.0, 2.0]), tensor([[1.0], [9.0]]), tensor(3)]
    assert all(each in x for each in present)
    absent = [5, 1j, float("nan"), tensor([2.0, 1.0]), tensor(0)]
    assert not any(each in x for each in absent)
    refused: list[Any] = [None, "1", [1.0, 2.0], (1,), {}]
    for wrong in refused:
        with pytest.raises(UnfitValue, match="a number, a tensor or an array"):
            wrong in x  # noqa: B015  # raises
    with pytest.raises(ShapesDoNotFit):
        tensor([1.0, 2.0, 3.0]) in x  # noqa: B015  # as above


def test_reversed_turns_the_first_dimension() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    turned: Any = reversed(x)
    assert turned.tolist() == [[3.0, 4.0], [1.0, 2.0]]
    one: Any = tensor(3.0)
    same: Any = reversed(one)
    assert same is one
