"""`out=` of functions with several results: a tensor for each."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import linalg
from everyorder.runtime.errors.autograd import WriteRefused
from everyorder.runtime.errors.tensor import TargetRefused, WrongOption
from tests.coded import code

SQUARE = [[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 6.0]]
CALLS: dict[str, Callable[..., Any]] = {
    "sort": lambda x, **out: runtime.sort(x, 0, True, **out),
    "topk": lambda x, **out: runtime.topk(x, 2, largest=False, **out),
    "max": lambda x, **out: runtime.max(x, 1, **out),
    "min": lambda x, **out: runtime.min(x, dim=0, keepdim=True, **out),
    "median": lambda x, **out: runtime.median(x, -1, **out),
    "cummax": lambda x, **out: runtime.cummax(x, 0, **out),
    "cummin": lambda x, **out: runtime.cummin(x, dim=1, **out),
    "slogdet": linalg.slogdet,
    "qr": lambda x, **out: linalg.qr(x, "complete", **out),
    "svd": lambda x, **out: linalg.svd(x, False, **out),
    "eigh": linalg.eigh,
}


def made(dtype: str = "float64", requires_grad: bool = False) -> Any:
    return runtime.tensor(SQUARE, dtype=dtype, requires_grad=requires_grad)


def targets_for(results: Any) -> list[Any]:
    """Tensors of the shapes and dtypes of results, in columns and not in rows."""
    return [
        runtime.zeros_like(each.mT).mT if each.ndim > 1 else each * 0
        for each in results
    ]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_targets(name: str) -> None:
    call, x = CALLS[name], made()
    expected = call(x)
    for targets in (targets_for(expected), tuple(targets_for(expected))):
        results = call(x, out=targets)
        assert type(results) is type(expected)
        for result, target, other in zip(results, targets, expected, strict=True):
            assert result is target
            assert target.tolist() == other.tolist()
            assert target._version == 1
    assert [each.tolist() for each in call(x, out=None)] == [
        each.tolist() for each in expected
    ]


@pytest.mark.parametrize("name", CALLS)
def test_targets_without_elements_are_resized_on_any_device(name: str) -> None:
    for device in ("cpu", "meta"):
        x = made().to(device)
        expected = CALLS[name](x)
        targets = [
            runtime.empty(0, dtype=each.dtype, device=device) for each in expected
        ]
        CALLS[name](x, out=targets)
        assert [each.shape for each in targets] == [each.shape for each in expected]


def test_a_target_may_be_the_operand() -> None:
    x, places = runtime.tensor([3.0, 1.0, 2.0]), runtime.zeros(3, dtype=runtime.int64)
    runtime.sort(x, out=(x, places))
    assert (x.tolist(), places.tolist()) == ([1.0, 2.0, 3.0], [1, 2, 0])


@pytest.mark.parametrize("name", CALLS)
def test_anything_but_a_target_for_each_is_refused(name: str) -> None:
    x = made()
    (first, *rest) = targets_for(CALLS[name](x))
    for out in (first, (first,), [first, *rest, first]):
        with pytest.raises(WrongOption, match=f"`{name}` does not take") as caught:
            CALLS[name](x, out=out)
        assert "tensors: " in caught.value.fits


@pytest.mark.parametrize("name", CALLS)
def test_one_tensor_is_not_two_targets(name: str) -> None:
    x = made()
    first, second, *rest = CALLS[name](x)
    wide = runtime.zeros(36, dtype=runtime.complex128)
    views = [wide[: each.numel()].reshape(each.shape) for each in (first, second)]
    with pytest.raises(TargetRefused, check=code("TargetsOverlap")):
        CALLS[name](x, out=(*views, *rest))
    assert not wide.any()


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_recorded(name: str) -> None:
    targets = targets_for(CALLS[name](made()))
    with pytest.raises(WriteRefused, check=code("OutRequiresGrad")):
        CALLS[name](made(requires_grad=True), out=targets)
    with runtime.no_grad():
        CALLS[name](made(requires_grad=True), out=targets)
    assert not any(each.requires_grad for each in targets)


class Log(runtime.TorchDispatchMode):
    """Lists the keywords of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[str]]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # as people write it
        self.seen.append((str(func), sorted(kwargs or {})))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_the_targets_by_name() -> None:
    x, places = made(), runtime.zeros(3, 3, dtype=runtime.int64)
    with Log() as log:
        values, _ = runtime.sort(x, out=(x, places))
    assert log.seen == [("core.sort.out", ["indices", "values"])]
    assert values is x


def test_the_other_forms_of_the_greatest_element_have_one_target() -> None:
    x, out = made(), runtime.empty(0, dtype=runtime.float64)
    for function, expected in ((runtime.max, 6.0), (runtime.median, 2.0)):
        assert function(x, out=out) is out
        assert out.item() == expected
    both = runtime.empty(0, dtype=runtime.float64)
    assert runtime.max(x, -x, out=both).tolist() == SQUARE
