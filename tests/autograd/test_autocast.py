"""Autocast: which operators change dtypes, and what becomes of weights."""

from typing import Any

import pytest

from everyorder.runtime import Tensor, tensor
from everyorder.runtime.autograd import (
    autocast,
    clear_autocast_cache,
    is_autocast_enabled,
)
from everyorder.runtime.autograd.autocast import STATE, families
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.operators.declare.handles import core
from tests.autograd.made import grad_of
from tests.coded import coded
from tests.opinfo.info import on_cpu
from tests.opinfo.table import ROWS

AutocastRefused = coded(AutogradMisuse, "AutocastRefused")


def matrix(dtype: str = "float32", **how: Any) -> Tensor:
    return tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype, **how)


def test_products_are_low_and_sums_are_wide() -> None:
    x = matrix()
    with autocast("cpu"):
        product = core.mm(x, x)
        total = core.sum(product)
        mixed = core.cat([product, x])
        plain = core.add(product, product)
    dtypes = [str(t.dtype) for t in (product, total, mixed, plain)]
    assert dtypes == ["bfloat16", "float32", "float32", "bfloat16"]
    assert core.mm(x, x).dtype is x.dtype


def test_the_dtype_asked_for() -> None:
    x = matrix()
    with autocast("cpu", dtype="float16"):
        assert str(core.mm(x, x).dtype) == "float16"
        with autocast("cpu", dtype="bfloat16"):
            assert str(core.linear(x, x).dtype) == "bfloat16"
        assert str(core.mm(x, x).dtype) == "float16"


def test_what_stays_as_it_is() -> None:
    wide, whole = matrix("float64"), core.arange(3)
    with autocast("cpu"):
        assert str(core.mm(wide, wide).dtype) == "float64"
        assert str(core.sum(whole).dtype) == "int64"
        assert str(core.cat([whole, whole]).dtype) == "int64"
        # Of one number only, and the sum may be long: torch leaves it in float32, too.
        assert str(core.dot(tensor([1.0]), tensor([2.0])).dtype) == "float32"


def test_switching_off_inside() -> None:
    x, before = matrix(), LOCAL.view
    with autocast("cpu"):
        assert is_autocast_enabled("cpu")
        with autocast("cpu", enabled=False):
            assert not is_autocast_enabled("cpu")
            assert core.mm(x, x).dtype is x.dtype
        assert is_autocast_enabled("cpu")
    assert not is_autocast_enabled("cpu")
    assert LOCAL.view is before


def test_decorated() -> None:
    @autocast("cpu")
    def product(x: Tensor) -> str:
        return str(core.mm(x, x).dtype)

    assert product(matrix()) == "bfloat16"
    assert not is_autocast_enabled("cpu")


def test_weights_are_cast_once() -> None:
    weight, x = matrix(requires_grad=True), matrix()
    with autocast("cpu"):
        first = core.linear(x, weight)
        second = core.linear(x, weight)
        assert len(STATE.kept) == 1
        casts = [each.grad_fn.next_functions[1][0] for each in (first, second)]
        assert casts[0] is casts[1]
        with autocast("cpu"):
            pass
        assert len(STATE.kept) == 1
        clear_autocast_cache()
        assert STATE.kept == {}
        with autocast("cpu", cache_enabled=False):
            core.linear(x, weight)
        assert STATE.kept == {}
    core.sum(first).backward()
    assert (str(grad_of(weight).dtype), grad_of(weight).tolist()) == (
        "float32",
        [[4, 6], [4, 6]],
    )
    assert STATE.kept == {}


def test_what_is_not_served() -> None:
    with pytest.raises(AutocastRefused) as device:
        autocast("meta")
    assert str(device.value) == (
        "autocast('meta', dtype=None) does not exist.\n"
        "  known: cpu and cuda; float16 and bfloat16"
    )
    with pytest.raises(AutocastRefused):
        autocast("cpu", dtype="float64")
    with pytest.raises(AutocastRefused):
        is_autocast_enabled("xla")


def _sampled() -> list[tuple[str, str]]:
    known = {row.name for row in ROWS}
    found = [*families()]
    assert {name for name, _ in found} - known <= {"index_put", "addmv"}
    return [each for each in found if each[0] in known]


@pytest.mark.parametrize(("name", "family"), _sampled())
def test_an_operator_is_cast_for_as_its_declaration_says(
    name: str, family: str
) -> None:
    (row,) = [row for row in ROWS if row.name == name]
    given = "float32" if family == "low" else "bfloat16"
    # The first sample is the plainest: no dtype is asked for.
    args, kwargs = row.samples(given)[0].bound(on_cpu)
    with autocast("cpu"):
        found = row.call(*args, **kwargs)
    first = found[0] if isinstance(found, (list, tuple)) else found
    wanted = {"low": "bfloat16", "float32": "float32", "widest": given}[family]
    assert str(first.dtype) == wanted
