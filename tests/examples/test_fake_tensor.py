"""Shapes without elements: what runs, what is refused, and what a whole step costs."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Device, Tensor, ops, tensor
from everyorder.runtime.errors.tensor import DevicesDiffer, ShapesDoNotFit
from everyorder.runtime.torch_dispatch import current_modes
from tests.coded import code
from tests.examples.fake_tensor import (
    DataDependent,
    FakeTensor,
    FakeTensorMode,
    MixedTensors,
)
from tests.examples.logging_tensor import LoggingTensor, mapped
from tests.examples.train_digits import MODELS, Adam, step
from tests.opinfo.info import OpInfo, listed, on_cpu
from tests.opinfo.table import ROWS
from tests.opinfo.test_schemas import dtype_for

# What needs values; `index` does so by masks only.
READING = ("_local_scalar_dense", "equal", "masked_select", "nonzero")


def fake(*shape: int, device: str = "cpu") -> FakeTensor:
    with FakeTensorMode():
        made = runtime.empty(*shape, device=device)
    assert isinstance(made, FakeTensor)
    return made


def test_no_machine_holds_this_product() -> None:
    with FakeTensorMode():
        w = runtime.rand(50_000, 50_000, device="cuda", requires_grad=True)
        (w @ w).sum().backward()
    found = "FakeTensor(shape=(50000, 50000), dtype=float32, device='cuda:0')"
    assert repr(w.grad) == found
    assert w.data_ptr() == 0


def test_devices_follow_the_operators() -> None:
    with FakeTensorMode():
        x = runtime.zeros(3, device="cuda:1")
        y = x * runtime.ones(()) + 2
        moved = ops.core._to_copy(y, device="cpu", dtype=runtime.float64)
        target = runtime.zeros(3, pin_memory=True)
        target.copy_(y)
        like = runtime.zeros_like(target, device="cuda")
    assert [str(each.device) for each in (y, moved, target, like)] == [
        "cuda:1",
        "cpu",
        "cpu",
        "cuda:0",
    ]
    assert moved.dtype is runtime.float64


def test_what_does_not_fit_is_refused_as_it_would_be() -> None:
    with FakeTensorMode():
        x = runtime.zeros(3)
        with pytest.raises(ShapesDoNotFit, check=code("ShapesRefused")):
            x + runtime.zeros(4)
        with pytest.raises(DevicesDiffer, match="cpu and cuda:0"):
            x + runtime.zeros(3, device="cuda")


@pytest.mark.parametrize(
    ("operator", "read"),
    [
        ("_local_scalar_dense", lambda x: x.sum().item()),
        ("_local_scalar_dense", lambda x: float(x[0])),
        ("_local_scalar_dense", lambda x: bool(x.any())),
        ("nonzero", lambda x: x.nonzero()),
        ("index", lambda x: x[x > 0]),
        ("masked_select", lambda x: x.masked_select(x > 0)),
        ("equal", lambda x: ops.core.equal(x, x)),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_reading_values_names_the_operator_and_the_line(
    operator: str, read: Callable[[Any], Any], inside: bool
) -> None:
    x = fake(3)
    with x.mode if inside else nullcontext(), pytest.raises(DataDependent) as caught:
        read(x)
    assert caught.value.operator == f"core.{operator}.default"
    name, _, code = caught.value.line.split(":", 2)
    assert name == "test_fake_tensor.py"
    assert "lambda x:" in code
    assert current_modes() == ()


def test_the_text_of_both_errors() -> None:
    x = fake(3)
    with pytest.raises(DataDependent) as caught:
        assert x.sum() > 3
    number = caught.value.line.split(":")[1]
    assert str(caught.value) == (
        "`core._local_scalar_dense.default` depends on the values of a fake tensor, "
        "which\nhas none.\n"
        f"  called: test_fake_tensor.py:{number}: assert x.sum() > 3\n"
        "  to do:  choose by `where`, or compute what is needed from constants"
    )
    with x.mode, pytest.raises(MixedTensors) as mixed:
        x + tensor([1.0, 2.0, 3.0])
    number = mixed.value.line.split(":")[1]
    assert str(mixed.value) == (
        "`core.add.default` was given a real tensor to compute with, or to write to,\n"
        "beside fake ones.\n"
        f"  called: test_fake_tensor.py:{number}: x + tensor([1.0, 2.0, 3.0])\n"
        "  to do:  convert it first: `mode.from_tensor(x)`"
    )


def test_the_line_is_the_programs_also_through_a_wrapper() -> None:
    x = LoggingTensor(fake(3))
    with pytest.raises(DataDependent) as caught:
        x.sum().item()
    assert caught.value.line.endswith(": x.sum().item()")


# As many elements come out as those that go in say.
SIZED = ("_unique", "bincount", "one_hot", "quantile", "repeat_interleave.self_Tensor")


# A wrapper keeps the shape that it was made with, whatever becomes of what it wraps.
SHAPED = [row for row in ROWS if row.name != "resize_"]


@pytest.mark.parametrize("row", SHAPED, ids=repr)
def test_every_operator_makes_what_it_would_make(row: OpInfo) -> None:
    mode = FakeTensorMode()

    def fakes(value: Any) -> Any:
        return mode.from_tensor(value) if isinstance(value, Tensor) else value

    for sample in row.samples(dtype_for(row)):
        args, kwargs = sample.bound(on_cpu)
        masked = any(each.values.dtype == bool for each in [*sample.arrays()][1:])
        reads = row.name in READING or (row.name == "index" and masked)
        found = None
        expected: Any = pytest.raises(DataDependent) if reads else nullcontext()
        # Without elements there is nothing that depends on them.
        maybe = suppress(DataDependent) if row.name in SIZED else nullcontext()
        with mode, expected, maybe:
            found = row.call(*mapped(fakes, args), **mapped(fakes, kwargs))
        if found is None:
            continue
        for one, other in zip(
            listed(found), listed(row.call(*args, **kwargs)), strict=True
        ):
            if other is not None:
                assert type(one) is FakeTensor
                assert (one.shape, one.dtype) == (other.shape, other.dtype), sample
                assert (one.strides, one.device) == (other.strides, other.device)


def test_assigning_where_a_mask_is_true_needs_no_values() -> None:
    with FakeTensorMode():
        x = runtime.zeros(3)
        x[x > 0] = 1.0
        x[0] = 2.0
    assert x.shape == (3,)


def test_real_tensors_are_refused_converted_or_allowed() -> None:
    real = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True).t()
    with FakeTensorMode() as mode:
        with pytest.raises(MixedTensors):
            real * 2
        assert type(mode.from_tensor(real) * 2) is FakeTensor
    with FakeTensorMode(allow_non_fake_inputs=True):
        y = real * 2
        assert type(y) is FakeTensor
        with pytest.raises(MixedTensors), runtime.no_grad():
            real.mul_(2)
        with pytest.raises(MixedTensors), runtime.no_grad():
            ops.core.add.out(y, y, out=tensor([0.0, 0.0]))
    converted = mode.from_tensor(real.detach(), "cuda")
    assert (converted.strides, converted.device) == ((1, 2), Device("cuda", 0))
    assert real.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_constants_are_known() -> None:
    with FakeTensorMode():
        rate = tensor(0.5) * 3
        assert rate.item() == 1.5
        assert rate > 1
        rate.mul_(2)
        assert float(rate.reshape(1, 1)[0]) == 3.0
        grown = rate.expand(1000)
        assert (type(rate), type(grown)) == (Tensor, FakeTensor)
        scaled = runtime.zeros(2) * rate
        assert type(scaled) is FakeTensor
        with pytest.raises(MixedTensors):
            rate.add_(scaled[0])


def test_views_writes_and_out() -> None:
    with FakeTensorMode():
        x = runtime.zeros(2, 3)
        view = x.t()
        version = x._version
        assert view.add_(1) is view
        assert (view.strides, x._version) == ((1, 3), version + 1)
        out = runtime.empty(0)
        assert ops.core.add.out(x, x, out=out) is out
        assert out.shape == (2, 3)
        parts = x.split(1)
    assert [each.shape for each in parts] == [(1, 3), (1, 3)]


def test_it_goes_on_outside_of_its_mode() -> None:
    x = fake(2, 3, device="cuda")
    y = x @ fake(3, 5, device="cuda")
    assert (type(y), y.shape, str(y.device)) == (FakeTensor, (2, 5), "cuda:0")


def test_in_host_memory_there_would_be_no_room() -> None:
    with FakeTensorMode():
        x = runtime.rand(2**30, 2**20)
        assert (x.t() @ x).exp().sum(0).shape == (2**20,)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_whole_step_of_training(name: str) -> None:
    make, model = MODELS[name]
    with FakeTensorMode() as mode:
        parameters = make()
        adam = Adam(parameters)
        for _ in range(2):
            pictures = runtime.rand(64, 1, 8, 8)
            loss = step(model, adam, pictures, runtime.randint(0, 10, (64,)))
    shapes = [each.shape for each in parameters]
    runtime.manual_seed(0)
    assert shapes == [each.shape for each in make()]
    assert {type(each) for each in (*parameters, *adam.means)} == {FakeTensor}
    assert (loss.shape, loss.dtype) == ((), runtime.float32)
    assert mode not in current_modes()


def test_a_step_with_real_parameters_leaves_them_alone() -> None:
    make, model = MODELS["mlp"]
    parameters = make()
    before = [each.tolist() for each in parameters]
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(each, "cuda") for each in parameters]
        pictures = runtime.rand(8, 1, 8, 8, device="cuda")
        step(
            model,
            Adam(fakes),
            pictures,
            runtime.zeros(8, dtype=runtime.int64, device="cuda"),
        )
    assert [each.tolist() for each in parameters] == before
