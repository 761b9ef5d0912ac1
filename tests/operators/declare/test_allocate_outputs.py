"""From plans to tensors: outputs, targets, memory that is shared, tables of kernels."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.dispatch import default_dispatcher
from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DTypeRefused,
    TargetRefused,
)
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare.allocate_outputs import (
    KEYS,
    MODULES,
    as_dtype,
    as_rows,
    clashes,
    expanded,
    in_order,
    overlap,
    prepared,
    produce,
    shaped,
    table_for,
    table_of,
    write_to,
)
from everyorder.runtime.operators.declare.plan import FLOAT32, INT64, CallPlan
from everyorder.runtime.schema import Schema
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import from_numpy, view_of, wrap_number
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of
from tests.coded import code
from tests.operators.tensors import LETTERS, META, cube, grid, shown, tensor, zeros
from tests.tensors.loading import noted


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
    plan = CallPlan(outputs, Device("cpu"), (1.5,), FLOAT32, kernel=run)
    first, second = produce(plan, table_of("CPU"), "unused")
    assert shown(first) == ("float16", [1.5, 1.5])
    assert second is None


def test_a_start_is_copied_first() -> None:
    x = tensor([1.0, 2.0])

    def run(table: Any, out: Tensor) -> None:
        table["add"](out, out, 1.0, 1)

    plan = CallPlan((((2,), FLOAT32),), Device("cpu"), (), start=x, kernel=run)
    assert shown(produce(plan, table_of("CPU"), "unused")) == ("float32", [2.0, 3.0])
    assert shown(x) == ("float32", [1.0, 2.0])


def test_a_start_may_be_the_target() -> None:
    def run(table: Any, out: Tensor, by: Tensor) -> None:
        table["add"](out, out, by, 1)

    x = tensor([1.0, 2.0])
    outputs = (((2,), FLOAT32),)
    for by, expected in ((tensor([5.0, 5.0]), [6.0, 7.0]), (x, [12.0, 14.0])):
        plan = CallPlan(outputs, Device("cpu"), (by,), start=x, kernel=run)
        assert write_to(x, "self", plan, table_of("CPU"), "unused") is x
        assert x.numpy().tolist() == expected
    out = tensor([0.0, 0.0])
    plan = CallPlan(outputs, Device("cpu"), (x,), start=x, kernel=run)
    write_to(out, "out", plan, table_of("CPU"), "unused")
    assert out.numpy().tolist() == [24.0, 28.0]
    wide = tensor([0.0, 0.0], "float64")
    write_to(wide, "out", plan, table_of("CPU"), "unused")
    assert shown(wide) == ("float64", [24.0, 28.0])


def test_two_results_with_a_start() -> None:
    def run(table: Any, first: Tensor, second: Tensor) -> None:
        table["fill"](second, 3.0)

    plan = CallPlan(
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


CPU = table_of("CPU")


def test_rows_are_a_view_where_they_can_be() -> None:
    base = cube()
    rows = as_rows(CPU, base)
    assert (rows.shape, rows.storage()) == ((6, 4), base.storage())
    assert shaped(CPU, base, base.shape) is base
    turned = core.permute(base, [2, 0, 1])
    copied = as_rows(CPU, turned)
    assert copied.storage() is not base.storage()
    assert copied.tolist() == grid(2, 3, 4).transpose(2, 0, 1).reshape(8, 3).tolist()


def test_contiguous_copies_and_dtypes() -> None:
    base = cube()
    assert in_order(CPU, base) is base
    assert as_dtype(CPU, base, INT64) is base
    turned = in_order(CPU, core.t(as_rows(CPU, base)))
    assert turned.is_contiguous()
    assert turned.tolist() == grid(6, 4).T.tolist()
    converted = as_dtype(CPU, base, FLOAT32)
    assert (converted.dtype, converted.tolist()) == (FLOAT32, base.tolist())


def test_dimensions_are_repeated_without_a_copy() -> None:
    base = cube()
    assert expanded(base, base.shape) is base
    row = core.slice(base, 1, 0, 1)
    wide = expanded(row, (5, 2, 3, 4))
    assert wide.storage() is base.storage()
    array = np.broadcast_to(grid(2, 3, 4)[:, :1], (5, 2, 3, 4))
    assert wide.tolist() == array.tolist()


# More than one thread's share, and far enough that a wild write would be noticed.
COUNT, FAR = 1000, 2**44


def ones() -> tuple[Tensor, Tensor]:
    """A tensor, and one on the array that it hands out."""
    x = tensor([1] * COUNT, "int64")
    return x, from_numpy(array_of(x))


def far() -> Tensor:
    return tensor([FAR] * COUNT, "int64")


SUM = [1, 1 + COUNT * FAR, *[1] * (COUNT - 2)]
WRITES: dict[str, tuple[Callable[[Tensor, Tensor], Any], list[int]]] = {
    "scatter_": (
        lambda x, index: core.scatter_(x, 0, index, far()),
        [1, FAR, *[1] * (COUNT - 2)],
    ),
    "scatter_.value": (
        lambda x, index: core.scatter__value(x, 0, index, FAR),
        [1, FAR, *[1] * (COUNT - 2)],
    ),
    "scatter_add_": (lambda x, index: core.scatter_add_(x, 0, index, far()), SUM),
    "index_add_": (lambda x, index: core.index_add_(x, 0, index, far()), SUM),
    "index_put_": (
        lambda x, index: core.index_put_(x, [index], far(), True),
        SUM,
    ),
    "gather.out": (
        lambda x, index: core.gather_out(far(), 0, index, out=x),
        [FAR] * COUNT,
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_index_in_the_memory_of_the_target(name: str) -> None:
    write, expected = WRITES[name]
    x, index = ones()
    write(x, index)
    assert x.tolist() == expected


def test_the_other_way_round() -> None:
    index, x = ones()
    core.scatter__value(x, 0, index, FAR)
    assert x.tolist() == [1, FAR, *[1] * (COUNT - 2)]


SHIFTED: dict[str, tuple[Callable[[Tensor, Tensor], Any], list[float]]] = {
    "in place": (core.add_, [0, 1, 3, 5, 7, 9]),
    "in place, scaled": (
        lambda x, y: core.add_(x, y, alpha=2),
        [0, 1, 4, 7, 10, 13],
    ),
    "out": (
        lambda x, y: core.add_out(y, tensor([2.0] * 5, "float64"), out=x),
        [0, 2, 3, 4, 5, 6],
    ),
    "out, other": (
        lambda x, y: core.add_out(tensor([2.0] * 5, "float64"), y, out=x),
        [0, 2, 3, 4, 5, 6],
    ),
    "copied": (core.copy_, [0, 0, 1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_a_shifted_array_is_read_as_it_was(name: str) -> None:
    write, expected = SHIFTED[name]
    # The first call of a dtype goes the general way, those after it the short one.
    for _ in range(3):
        array = np.arange(6.0)
        write(from_numpy(array[1:]), from_numpy(array[:-1]))
        assert array.tolist() == expected


@pytest.mark.parametrize("size", [3, 200])
def test_a_turned_array_is_copied_as_it_was(size: int) -> None:
    array = np.arange(size * size, dtype=np.float64).reshape(size, size)
    expected = array.T.copy()
    core.copy_(from_numpy(array), from_numpy(array.T))
    assert np.array_equal(array, expected)


def test_offsets_of_two_widths_are_compared_in_bytes() -> None:
    """The second half of complex numbers lies in the second half of their parts."""
    whole = tensor([1 + 2j, 3 + 4j], "complex64")
    last = view_of(whole, (1,), (1,), 1)
    parts = view_of(whole, (2,), (1,), 2, tensor([1.0]).dtype)
    first = view_of(whole, (2,), (1,), 0, tensor([1.0]).dtype)
    assert overlap(last, parts)
    assert not overlap(last, first)


def test_what_owns_its_memory_meets_nothing_else() -> None:
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    assert not overlap(x, y)
    assert overlap(x, x)
    assert not overlap(view_of(x, (1,), (1,), 0), view_of(x, (1,), (1,), 1))


def test_a_table_loads_once_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {"add": None}
    asked = noted(monkeypatch, SimpleNamespace(KERNELS=table))
    monkeypatch.setattr(
        "everyorder.runtime.operators.declare.allocate_outputs._TABLES", {}
    )
    assert table_of("CPU") is table_of("CPU") is table
    parents = (
        "everyorder",
        "everyorder.runtime",
        "everyorder.runtime.kernels",
        "everyorder.runtime.kernels.cpu",
    )
    assert asked == [(name, True) for name in parents]


def test_meta_has_no_kernels() -> None:
    assert MODULES["Meta"] is None
    with pytest.raises(AssertionError, match="Meta runs no kernels"):
        table_of("Meta")


def test_a_device_type_without_kernels_computes_in_host_memory() -> None:
    assert {KEYS[kind] for kind in ("cpu", "cuda", "meta")} == set(MODULES)
    assert table_for(Device("xpu", 0)) is table_for(Device("cpu")) is table_of("CPU")


def _pointwise() -> dict[str, Schema]:
    """Return the pointwise operators that have an out= form, by name."""
    found = {}
    for entry in default_dispatcher().state.namespaces["core"].values():
        definition = entry.definition
        if definition is not None and "pointwise" in definition.tags:
            name = str(definition.schema.name)
            if name.endswith("out") and definition.schema.arguments[-1].is_write:
                found[name.partition("::")[2]] = definition.schema
    return found


POINTWISE = _pointwise()
# The numbers of the operands, of which each operator has a finite result.
HALVES = ([0.1, 0.3, 0.7, 0.9], [0.3, 0.8, 0.6, 0.2], [0.7, 0.1, 0.9, 0.5])
REFUSED = {"bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("wide", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", POINTWISE)
def test_out_has_the_elements_of_the_result(name: str, wide: str, dtype: str) -> None:
    """A half is computed in float32, and rounded, whatever the dtype of `out` is."""
    short = name.removesuffix("out").rstrip("._").replace(".", "_")
    function = getattr(core, short)
    out_form = getattr(core, name.replace(".", "_"))
    arguments: list[Any] = []
    for argument, values in zip(POINTWISE[name].arguments, HALVES, strict=False):
        if argument.name == "condition":
            arguments.append(tensor([1, 0, 1, 0], "bool"))
        elif "Tensor" in str(argument.type) and not argument.kwarg_only:
            arguments.append(tensor(values, dtype))
        elif "Scalar" in str(argument.type) and not argument.kwarg_only:
            arguments.append(values[1])
    if short in REFUSED:
        with pytest.raises(DTypeRefused):
            function(*arguments)
        return
    if short == "acosh":
        arguments = [core.add(arguments[0], 1)]
    expected = core.to(function(*arguments), dtype=DType.named(wide))
    out = zeros(4, dtype=wide)
    assert out_form(*arguments, out=out) is out
    assert out.tolist() == expected.tolist()


def test_every_pointwise_operator_is_compared() -> None:
    assert len(POINTWISE) > 70
    x = tensor([0.1, 300.0], "float16")
    for out in (zeros(2), zeros(0)):
        core.mul_out(x, x, out=out)
        assert out.tolist() == [core.mul(x, x).tolist()[0], float("inf")]
