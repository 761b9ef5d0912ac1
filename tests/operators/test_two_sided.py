"""Methods with two sides: the fast path of two tensors does what a call does."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime.autograd.install  # counts versions
import runtime.operators.methods  # noqa: F401  # puts the methods on tensors
from runtime import Library, default_dispatcher
from runtime.errors.call import CallError, KernelError
from runtime.errors.tensor import UnfitValue
from runtime.keys import DispatchKey, KeySet, include_keys
from runtime.operators import core
from runtime.operators.methods import COMMUTATIVE, arithmetic, comparison, reflected
from runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.made import tensor

# Taking the place of a built-in kernel is what these tests are about.
pytestmark = pytest.mark.filterwarnings(
    "ignore::runtime.dispatch.library.KernelOverridden"
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
