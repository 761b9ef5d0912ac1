"""Operators of others that write to their arguments."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import everyorder.runtime.bootstrap  # noqa: F401  # sets the fallback on the default dispatcher
from everyorder.runtime import Dispatcher, DispatchKey, Library, Tensor, direct, tensor
from everyorder.runtime.autograd import inference_mode
from everyorder.runtime.autograd.inplace import install_version_fallback
from everyorder.runtime.dispatch.dispatcher import default_dispatcher, release
from everyorder.runtime.errors.autograd import BackwardRefused, WriteRefused
from everyorder.runtime.errors.registration import Conflict
from tests.autograd.made import grad_of, leaf
from tests.coded import code


def double_(x: Any) -> Any:
    x.detach().numpy()[...] *= 2
    return x


def swap_(x: Any, y: Any) -> tuple[Any, Any]:
    kept = x.numpy().copy()
    x.numpy()[...] = y.numpy()
    y.numpy()[...] = kept
    return x, y


def refuse_(x: Any) -> Any:
    raise ZeroDivisionError


def zero_all_(xs: Any) -> None:
    for x in xs:
        x.numpy()[...] = 0


def double_of(x: Any, out: Any) -> Any:
    out.numpy()[...] = 2 * x.numpy()
    return out


OPERATORS: dict[str, tuple[str, Callable[..., Any]]] = {
    "double_": ("double_(Tensor(a!) x) -> Tensor(a!)", double_),
    "swap_": (
        "swap_(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))",
        swap_,
    ),
    "refuse_": ("refuse_(Tensor(a!) x) -> Tensor(a!)", refuse_),
    "zero_all_": ("zero_all_(Tensor(a!)[] xs) -> ()", zero_all_),
    "double.out": (
        "double.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        double_of,
    ),
    "shown": ("shown(Tensor x) -> Tensor", lambda x: x.detach().clone()),
}


@pytest.fixture
def mine() -> Iterator[Callable[..., Any]]:
    """Calls an operator of another namespace, on the default dispatcher."""
    with Library("mine", "DEF") as library:
        for name, (schema, function) in OPERATORS.items():
            library.define(schema)
            library.impl(name, direct(function, name), "CPU")

        def call(name: str, *args: Any, **kwargs: Any) -> Any:
            found = default_dispatcher().find_op(f"mine::{name}")
            assert found is not None
            return found.call(*args, **kwargs)

        yield call


def test_a_gradient_that_needs_the_old_values_is_refused(
    mine: Callable[..., Any],
) -> None:
    x, factor = leaf(1, 2), tensor([3.0, 4.0], dtype="float64")
    y = x * factor
    mine("double_", factor)
    with pytest.raises(BackwardRefused) as refused:
        y.sum().backward()
    assert (refused.value.expected, refused.value.found) == (0, 1)
    assert x.grad is None


def test_a_view_has_the_version_of_its_base(mine: Callable[..., Any]) -> None:
    base = tensor([1.0, 2.0, 3.0])
    mine("double_", base[1:])
    assert base._version == 1
    assert base.tolist() == [1, 4, 6]


@pytest.mark.parametrize(
    ("name", "count", "versions"), [("swap_", 2, [1, 1]), ("refuse_", 1, [0])]
)
def test_everything_that_was_written_to(
    mine: Callable[..., Any], name: str, count: int, versions: list[int]
) -> None:
    given = [tensor([float(place)]) for place in range(count)]
    try:
        mine(name, *given)
    except ZeroDivisionError:
        assert name == "refuse_"
    assert [each._version for each in given] == versions


def test_lists_and_outputs(mine: Callable[..., Any]) -> None:
    first, second, out = tensor([1.0]), tensor([2.0]), tensor([3.0])
    mine("zero_all_", [first, second])
    mine("double.out", first, out=out)
    assert [t._version for t in (first, second, out)] == [1, 1, 1]
    assert out.item() == 0


def test_what_only_reads_raises_nothing(mine: Callable[..., Any]) -> None:
    x = tensor([1.0, 2.0])
    shown = mine("shown", x)
    assert (x._version, shown._version) == (0, 0)


def test_recorded_writes_raise_the_version_once(mine: Callable[..., Any]) -> None:
    y = leaf(1, 2) * 1
    mine("double_", y)
    assert y._version == 1
    assert y.grad_fn.name() == "DoubleBackward"


def test_kernels_of_the_key_itself_come_first(mine: Callable[..., Any]) -> None:
    seen = []

    def noted(name: str) -> Any:
        def own(x: Any) -> Any:
            seen.append(name)
            return x

        return direct(own, name)

    x = tensor([1.0])
    with Library("mine", "IMPL", "ADInplaceOrView") as library:
        for name in ("double_", "shown"):
            library.impl(name, noted(name))
            mine(name, x)
    assert (seen, x._version) == (["double_", "shown"], 0)


def test_inference_tensors_are_written_to_in_their_mode_only(
    mine: Callable[..., Any],
) -> None:
    with inference_mode():
        x = tensor([1.0])
        mine("double_", x)
        ordinary = tensor([1.0])
    assert x.tolist() == [2]
    with pytest.raises(WriteRefused, check=code("InferenceTensorUsed")):
        mine("double_", ordinary)
    assert ordinary.tolist() == [1]


def test_ordinary_tensors_are_tracked_in_inference_mode_too(
    mine: Callable[..., Any],
) -> None:
    x = tensor([1.0])
    with inference_mode():
        mine("double_", x)
    assert x._version == 1


def test_operators_of_core_do_not_come_there() -> None:
    left = [
        str(entry.name)
        for entry in default_dispatcher().state.namespaces["core"].values()
        if DispatchKey.ADInplaceOrView not in entry.implementations
    ]
    assert left == []


def test_another_dispatcher_is_given_it_on_demand() -> None:
    made = Dispatcher()
    fallbacks = Library("_", "IMPL", dispatcher=made)
    with pytest.raises(Conflict, check=code("DuplicateFallback")):
        install_version_fallback(fallbacks)
    release(made, "ADInplaceOrView")
    with fallbacks, Library("mine", dispatcher=made) as library:
        install_version_fallback(fallbacks)
        library.define("mine::double_(Tensor(a!) x) -> Tensor(a!)")
        library.impl("double_", direct(double_, "double_"), "CPU")
        found = made.find_op("mine::double_")
        assert found is not None
        x: Tensor = tensor([1.0])
        found.call(x)
        assert x._version == 1


def test_gradients_still_come(mine: Callable[..., Any]) -> None:
    x = leaf(1, 2)
    (x * x).sum().backward()
    assert grad_of(x).tolist() == [2, 4]
