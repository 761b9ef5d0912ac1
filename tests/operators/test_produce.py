"""Producing: outputs, targets, and the arguments as kernels take them."""

from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DevicesDiffer, TargetRefused
from runtime.operators import core
from runtime.operators.plan import FLOAT32, Plan
from runtime.operators.produce import clashes, prepared, produce, table_of, write_to
from runtime.schema.codes import Device
from runtime.tensors.making import wrap_number
from runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.made import LETTERS, META, shown, tensor


def test_out_of_another_dtype_or_device_is_refused() -> None:
    whole = tensor([0, 0], "int64")
    with pytest.raises(TargetRefused, check=code("TargetDType")) as caught:
        core.exp_out(tensor([1.0, 2.0]), out=whole)
    assert str(caught.value) == (
        "`core::exp.out` computes float32, which does not convert to the int64 of "
        "`out`.\n"
        "  fits: float32, or a dtype that it converts to"
    )
    assert whole.numpy().tolist() == [0, 0]
    with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
        core.exp_out(core.empty([2], device=META), out=whole)
    wider = core.exp_out(tensor([0.0]), out=tensor([0.0], "float64"))
    assert shown(wider) == ("float64", [1.0])


def test_out_keeps_its_storage_when_it_is_resized() -> None:
    base = core.empty([0])
    view = core.slice(base, 0, 0, 0)
    core.exp_out(tensor([0.0, 0.0]), out=base)
    assert base.numpy().tolist() == [1.0, 1.0]
    assert view.storage() is base.storage()


def test_out_may_be_an_input() -> None:
    x = tensor([[1, 2], [3, 4]])
    core.add_out(x, x, out=x)
    assert x.numpy().tolist() == [[2, 4], [6, 8]]
    core.sum_out(x, [0], out=core.select(x, 0, 0))
    assert x.numpy().tolist() == [[8, 12], [6, 8]]


def test_arguments_as_kernels_take_them() -> None:
    cpu, table = Device("cpu"), table_of("CPU")
    x = tensor([1, 2], "int64")
    ready = prepared((x, wrap_number(2), 3, None, "on"), FLOAT32, None, cpu, table)
    assert shown(ready[0]) == ("float32", [1.0, 2.0])
    assert ready[1:] == (2.0, 3.0, None, "on")
    # Of numbers only, the first one stays a tensor.
    both = prepared((wrap_number(2), wrap_number(3)), FLOAT32, None, cpu, table)
    assert shown(both[0]) == ("float32", 2.0)
    assert both[1] == 3.0
    # What is not to be cast goes as it is.
    kept = prepared((x, x, 3), FLOAT32, (1,), cpu, table)
    assert kept[0] is x
    assert kept[1].dtype is FLOAT32
    assert type(kept[2]) is int


def test_a_cpu_point_beside_another_device_is_a_number() -> None:
    foreign = core._to_copy(tensor([1.0, 2.0]), device=Device("privateuseone"))
    ready = prepared((foreign, tensor(3.0)), FLOAT32, None, foreign.device, {})
    assert ready == (foreign, 3.0)


def test_results_that_are_not_asked_for_are_none() -> None:
    def run(table: Any, first: Tensor, second: None, value: float) -> None:
        assert second is None
        table["fill"](first, value)

    half = LETTERS["h"]
    outputs = (((2,), half), None)
    plan = Plan(outputs, Device("cpu"), (1.5,), FLOAT32, kernel=run)
    first, second = produce(plan, table_of("CPU"), "unused")
    assert shown(first) == ("float16", [1.5, 1.5])
    assert second is None


def test_a_start_is_copied_first() -> None:
    x = tensor([1.0, 2.0])

    def run(table: Any, out: Tensor) -> None:
        table["add"](out, out, 1.0, 1)

    plan = Plan((((2,), FLOAT32),), Device("cpu"), (), start=x, kernel=run)
    assert shown(produce(plan, table_of("CPU"), "unused")) == ("float32", [2.0, 3.0])
    assert shown(x) == ("float32", [1.0, 2.0])


def test_a_start_may_be_the_target() -> None:
    def run(table: Any, out: Tensor, by: Tensor) -> None:
        table["add"](out, out, by, 1)

    x = tensor([1.0, 2.0])
    outputs = (((2,), FLOAT32),)
    for by, expected in ((tensor([5.0, 5.0]), [6.0, 7.0]), (x, [12.0, 14.0])):
        plan = Plan(outputs, Device("cpu"), (by,), start=x, kernel=run)
        assert write_to(x, "self", plan, table_of("CPU"), "unused") is x
        assert x.numpy().tolist() == expected
    out = tensor([0.0, 0.0])
    plan = Plan(outputs, Device("cpu"), (x,), start=x, kernel=run)
    write_to(out, "out", plan, table_of("CPU"), "unused")
    assert out.numpy().tolist() == [24.0, 28.0]
    wide = tensor([0.0, 0.0], "float64")
    write_to(wide, "out", plan, table_of("CPU"), "unused")
    assert shown(wide) == ("float64", [24.0, 28.0])


def test_two_results_with_a_start() -> None:
    def run(table: Any, first: Tensor, second: Tensor) -> None:
        table["fill"](second, 3.0)

    plan = Plan(
        (((2,), FLOAT32), ((1,), LETTERS["h"])),
        Device("cpu"),
        (),
        start=tensor([1.0, 2.0]),
        kernel=run,
    )
    first, second = produce(plan, table_of("CPU"), "unused")
    assert shown(first) == ("float32", [1.0, 2.0])
    assert shown(second) == ("float16", [3.0])


def test_what_clashes_with_a_target() -> None:
    base = tensor(np.zeros((4, 4)))
    top, low = core.slice(base, 0, 0, 2), core.slice(base, 0, 2, 4)
    middle, same = core.slice(base, 0, 1, 3), core.slice(base, 0, 0, 2)
    assert not clashes(top, low, False)
    assert clashes(top, middle, True)
    assert not clashes(top, same, True)
    assert clashes(top, same, False)
    assert clashes(top, [None, [top]], False)
    assert not clashes(top, [3, tensor([1.0])], False)
    assert not clashes(top, core.slice(tensor(np.zeros((4, 4))), 0, 0, 2), False)
    empty = core.slice(base, 0, 1, 1)
    assert not clashes(top, empty, False)
