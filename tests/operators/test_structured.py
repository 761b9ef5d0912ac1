"""The framework: one declaration, every form, on a dispatcher of its own."""

from typing import Any

import numpy as np
import pytest

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.kernel import direct
from runtime.dispatch.library import Library
from runtime.errors.operands import DevicesDiffer, TargetDType, TargetShape
from runtime.errors.registration import NamespaceTaken, UnknownOperator
from runtime.operators import core, install
from runtime.operators.backends import MODULES, table_for, table_of
from runtime.operators.call import NAMESPACE
from runtime.operators.install import ORIGIN
from runtime.operators.number import number_for
from runtime.operators.plan import FLOAT32, Plan, common_device, same_device
from runtime.operators.produce import clashes, prepared, produce, write_to
from runtime.operators.structured import Structured, Written
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.elements import compute_dtype
from runtime.tensors.making import wrap_number
from runtime.tensors.tensor import Tensor
from tests.operators.made import LETTERS, META, shown, tensor


def plan_twice(call: str, self: Tensor, times: int) -> Plan:
    """An operator that repeats along the last dimension; it reads what it wrote not."""
    shape = (*self.shape[:-1], self.shape[-1] * times)
    dtype = self.dtype

    def run(table: Any, out: Tensor, x: Tensor, count: int) -> None:
        table["cat"](out, [x] * count, len(shape) - 1)

    outputs = ((shape, dtype),)
    return Plan(
        outputs, self.device, (self, times), compute_dtype(dtype), (0,), None, run
    )


TWICE = Structured("twice", "Tensor self, int times=2", plan_twice, in_place=True)


def test_the_forms_of_a_declaration() -> None:
    forms = list(TWICE.defined())
    assert [form.schema for form in forms] == [
        "twice(Tensor self, int times=2) -> Tensor",
        "twice_(Tensor(a!) self, int times=2) -> Tensor(a!)",
        "twice.out(Tensor self, int times=2, *, Tensor(a!) out) -> Tensor(a!)",
    ]
    shown_names = [
        [(key, kernel.facts.name) for key, kernel in form.kernels] for form in forms
    ]
    assert shown_names == [
        [("CPU", "twice_cpu"), ("CUDA", "twice_cuda"), ("Meta", "twice_meta")],
        [("CPU", "twice__cpu"), ("CUDA", "twice__cuda"), ("Meta", "twice__meta")],
        [
            ("CPU", "twice_out_cpu"),
            ("CUDA", "twice_out_cuda"),
            ("Meta", "twice_out_meta"),
        ],
    ]


def test_the_forms_of_an_overload() -> None:
    declared = Structured(
        "bound.Tensor",
        "Tensor self, *, Tensor? by=None",
        plan_twice,
        in_place=True,
        tags=("pointwise",),
    )
    assert [(form.schema, form.tags) for form in declared.defined()] == [
        ("bound.Tensor(Tensor self, *, Tensor? by=None) -> Tensor", ("pointwise",)),
        (
            "bound_.Tensor(Tensor(a!) self, *, Tensor? by=None) -> Tensor(a!)",
            ("pointwise",),
        ),
        (
            "bound.Tensor_out(Tensor self, *, Tensor? by=None, Tensor(a!) out) "
            "-> Tensor(a!)",
            ("pointwise",),
        ),
    ]


def test_several_results_have_no_out_form() -> None:
    declared = Structured(
        "two", "Tensor self", plan_twice, returns="(Tensor, Tensor)", in_place=False
    )
    assert [form.schema for form in declared.defined()] == [
        "two(Tensor self) -> (Tensor, Tensor)"
    ]


def test_written_operators_name_their_kernels() -> None:
    own = direct(lambda self: self, "mine")
    written = Written(
        "same.it(Tensor(a) self) -> Tensor(a)",
        {
            "CPU": lambda self: self,
            "CompositeImplicitAutograd": lambda self: self,
            "CompositeExplicitAutograd": lambda self: self,
            "AutogradCPU": own,
        },
    )
    (form,) = written.defined()
    assert [(key, kernel.facts.name) for key, kernel in form.kernels] == [
        ("CPU", "same_it_cpu"),
        ("CompositeImplicitAutograd", "same_it_composite"),
        ("CompositeExplicitAutograd", "same_it_explicit"),
        ("AutogradCPU", "mine"),
    ]


def _installed() -> tuple[Dispatcher, list[Library]]:
    dispatcher = Dispatcher()
    library = Library("core", "DEF", dispatcher=dispatcher, origin="test")
    for form in TWICE.defined():
        library.define(form.schema)
        for key, kernel in form.kernels:
            library.impl(form.schema.partition("(")[0], kernel, key)
    return dispatcher, [library]


@pytest.mark.parametrize("letter", ["l", "h", "f"])
def test_forms_agree_on_every_backend(letter: str) -> None:
    dispatcher, kept = _installed()
    call = dispatcher.find_op("core::twice")
    out_form = dispatcher.find_op("core::twice.out")
    assert call is not None
    assert out_form is not None
    dtype = LETTERS[letter]
    x = tensor([[1, 2]], dtype.name)
    expected = (dtype.name, [[1, 2, 1, 2]])
    assert shown(call(x)) == expected
    meta = call(core.empty([1, 2], dtype=dtype, device=META))
    assert (meta.shape, meta.dtype, meta.device) == ((1, 4), dtype, META)
    out = core.empty([0], dtype=dtype)
    assert out_form(x, out=out) is out
    assert shown(out) == expected
    meta_out = core.empty([0], dtype=dtype, device=META)
    assert out_form(core.empty([1, 2], dtype=dtype, device=META), out=meta_out).shape
    assert meta_out.shape == (1, 4)
    wide = core.empty([1, 8])
    target = core.slice(wide, 1, 0, 8, 2)
    out_form(x, out=target) if letter == "f" else core.copy_(target, call(x))
    assert target.numpy().tolist() == [[1, 2, 1, 2]]
    assert kept


def test_in_place_reads_before_it_writes() -> None:
    dispatcher, kept = _installed()
    in_place = dispatcher.find_op("core::twice_")
    assert in_place is not None
    x = tensor([3.0, 4.0])
    assert in_place(x, 1) is x
    assert shown(x) == ("float32", [3.0, 4.0])
    with pytest.raises(TargetShape):
        in_place(x)
    assert kept


def test_out_of_another_dtype_or_device_is_refused() -> None:
    whole = tensor([0, 0], "int64")
    with pytest.raises(TargetDType) as caught:
        core.exp_out(tensor([1.0, 2.0]), out=whole)
    assert str(caught.value) == (
        "`core::exp.out` computes float32, which does not convert to the int64 of "
        "`out`.\n"
        "  fits: float32, or a dtype that it converts to"
    )
    assert whole.numpy().tolist() == [0, 0]
    with pytest.raises(DevicesDiffer):
        core.exp_out(core.empty([2], device=META), out=whole)
    wider = core.exp_out(tensor([0.0]), out=tensor([0.0], "float64"))
    assert shown(wider) == ("float64", [1.0])


def test_out_keeps_its_storage_when_it_is_resized() -> None:
    base = core.empty([0])
    view = core.slice(base, 0, 0, 0)
    core.exp_out(tensor([0.0, 0.0]), out=base)
    assert base.numpy().tolist() == [1.0, 1.0]
    assert view.storage is base.storage


def test_out_may_be_an_input() -> None:
    x = tensor([[1, 2], [3, 4]])
    core.add_out(x, x, out=x)
    assert x.numpy().tolist() == [[2, 4], [6, 8]]
    core.sum_out(x, [0], out=core.select(x, 0, 0))
    assert x.numpy().tolist() == [[8, 12], [6, 8]]


def test_devices_go_together_or_not() -> None:
    point, line = tensor(1.0), tensor([1.0])
    meta_point = core.empty([], device=META)
    assert common_device("f", None, point) is Device("cpu")
    assert common_device("f", point, meta_point) is META
    assert common_device("f") is Device("cpu")
    assert same_device("f", None, line, point) is Device("cpu")
    assert same_device("f") is Device("cpu")
    with pytest.raises(DevicesDiffer):
        common_device("f", meta_point, line)
    with pytest.raises(DevicesDiffer) as caught:
        same_device("f", point, meta_point)
    assert str(caught.value) == (
        "`f` needs its tensors on one device, but they lie on cpu and meta.\n"
        "  fits:  one device for all; a CPU tensor without dimensions goes along\n"
        "  to do: move them with `.to(device)`"
    )


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


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (300, "uint8", 44),
        (-1, "uint8", 255),
        (128, "int8", -128),
        (2.9, "int64", 2),
        (2, "bool", True),
        (2, "bfloat16", 2.0),
        (True, "complex64", 1 + 0j),
    ],
)
def test_numbers_of_a_dtype(number: Any, dtype: str, expected: Any) -> None:
    found = number_for(number, DType.named(dtype))
    assert (found, type(found)) == (expected, type(expected))


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
        assert write_to(x, "self", "f", plan, table_of("CPU"), "unused") is x
        assert x.numpy().tolist() == expected
    out = tensor([0.0, 0.0])
    plan = Plan(outputs, Device("cpu"), (x,), start=x, kernel=run)
    write_to(out, "out", "f", plan, table_of("CPU"), "unused")
    assert out.numpy().tolist() == [24.0, 28.0]
    wide = tensor([0.0, 0.0], "float64")
    write_to(wide, "out", "f", plan, table_of("CPU"), "unused")
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


def test_tables_by_device() -> None:
    assert table_for(Device("cpu")) is table_of("CPU")
    assert table_for(Device("privateuseone")) is table_of("CPU")
    assert set(MODULES) == {"CPU", "CUDA", "Meta"}


def test_handles_by_attribute() -> None:
    assert core.add is core.add
    assert str(core.add.name) == "core::add"
    assert str(core.add_out.name) == "core::add.out"
    assert str(core.add_.name) == "core::add_"
    assert str(core.clamp_Tensor_out.name) == "core::clamp.Tensor_out"
    with pytest.raises(UnknownOperator) as caught:
        core.ad  # noqa: B018  # asked for
    assert "core::add" in caught.value.near
    with pytest.raises(AttributeError):
        core.__wrapped__  # noqa: B018  # asked for


def test_installing_on_another_dispatcher() -> None:
    dispatcher = Dispatcher()
    libraries = install(dispatcher)
    assert [library.kind for library in libraries].count("DEF") == 1
    keys = [library.key for library in libraries if library.kind == "IMPL"]
    assert len(keys) == len(set(keys))
    assert {"CPU", "CUDA", "Meta"} <= {key.name for key in keys if key}
    assert sorted(map(str, dispatcher.op_names())) == sorted(
        str(name)
        for name in default_dispatcher().op_names()
        if str(name).startswith(f"{NAMESPACE}::")
    )
    add = dispatcher.find_op("core::add")
    assert add is not None
    assert shown(add(tensor([1.0]), 2)) == ("float32", [3.0])
    state = dispatcher.dump_state("core::add")
    assert ORIGIN in state
    assert "add_cpu" in state
    with pytest.raises(NamespaceTaken):
        install(dispatcher)
    for library in reversed(libraries):
        library.close()
    assert not list(dispatcher.op_names())


def test_the_default_dispatcher_is_installed_on_once() -> None:
    assert install() is install(default_dispatcher())
