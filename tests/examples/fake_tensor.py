"""Tensors without elements: what a program would do, for the price of its shapes.

The idea: a `FakeTensor` has a tensor on `meta` and remembers the device that it is said
to be on.  In a `FakeTensorMode` each operator runs by its Meta kernel, which makes all
checks and computes shapes and dtypes.  A model that needs a rack of GPUs can be built,
run and differentiated on a laptop, and the first thing that does not fit says so.

    with FakeTensorMode():
        w = runtime.rand(50_000, 50_000, device="cuda", requires_grad=True)
        (w @ w).sum().backward()
    w.grad    # FakeTensor(shape=(50000, 50000), dtype=float32, device='cuda:0')

Rules:
- what needs the values of a tensor (`item`, `bool(x)`, `nonzero`, masks in brackets)
  raises `DataDependent`, which names the operator and the line;
- real tensors do not mix with fake ones (`MixedTensors`): convert them by
  `from_tensor`, or all by `allow_non_fake_inputs=True`; they are never written to;
- a real tensor of one element in host memory, as `tensor(0.5)` is, is a *constant*:
  what is computed from constants alone is computed for real, so that it is known;
- modes of users, and wrappers of another class around fake tensors, are asked first.
"""

import sys
from dataclasses import dataclass
from linecache import getline
from pathlib import Path
from traceback import walk_stack
from typing import Any, ClassVar

from everyorder.runtime import Device, Tensor
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.base import page
from everyorder.runtime.errors.tensor import NoData
from everyorder.runtime.operators.declare.plan import common_device
from everyorder.runtime.tensors.construction import empty_strided, resize_empty
from everyorder.runtime.torch_dispatch import TorchDispatchMode
from tests.examples.logging_tensor import found_in, mapped


@dataclass(eq=False, kw_only=True)
class FakeTensorError(EveryorderError, RuntimeError):
    """An operator cannot be pretended; it was called in `line`."""

    operator: str
    line: str
    why: ClassVar[str]
    remedy: ClassVar[str]

    def render(self) -> str:
        asked = f"`{self.operator}` {self.why}."
        return page(asked, ("called", self.line), ("to do", self.remedy))


class DataDependent(FakeTensorError):
    """An operator wants to read elements that a fake tensor does not have."""

    why = "depends on the values of a fake tensor, which has none"
    remedy = "choose by `where`, or compute what is needed from constants"


class MixedTensors(FakeTensorError):
    """A real tensor came to an operator of fake ones."""

    why = "was given a real tensor to compute with, or to write to, beside fake ones"
    remedy = "convert it first: `mode.from_tensor(x)`"


class FakeTensor(Tensor):
    """A shape, a dtype and a device; `meta` computes the first two."""

    meta: Tensor
    mode: "FakeTensorMode"

    @staticmethod
    def __new__(
        cls: type["FakeTensor"], mode: "FakeTensorMode", meta: Tensor, device: Device
    ) -> "FakeTensor":
        made: FakeTensor = Tensor._make_wrapper_subclass(
            cls,
            meta.shape,
            strides=meta.strides,
            storage_offset=meta.offset,
            dtype=meta.dtype,
            device=device,
        )
        made.meta, made.mode = meta, mode
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # Outside of the mode: it is entered for this one operator.
        with found_in((args, kwargs), FakeTensor)[0].mode:
            return func(*args, **(kwargs or {}))

    def __repr__(self) -> str:
        what = f"shape={self.shape}, dtype={self.dtype}"
        return f"FakeTensor({what}, device='{self.device}')"


class FakeTensorMode(TorchDispatchMode):
    """Makes fake tensors of everything; asked after all modes of users."""

    infra = "FAKE"

    def __init__(self, *, allow_non_fake_inputs: bool = False) -> None:
        self.allow_non_fake_inputs = allow_non_fake_inputs

    def from_tensor(self, real: Tensor, device: str | None = None) -> FakeTensor:
        """A fake leaf like a real tensor; said to be on `device` if it is given."""
        meta = empty_strided(real.shape, real.strides, real.dtype, Device("meta"))
        place = real.device if device is None else numbered(Device.parse(device))
        made = FakeTensor(self, meta, place)
        made.requires_grad_(real.requires_grad)
        return made

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not all(issubclass(each, FakeTensor) for each in types):
            return NotImplemented
        kwargs = kwargs or {}
        given = found_in((args, kwargs), Tensor)
        if given and "device" not in kwargs and all(map(is_constant, given)):
            found = func(*args, **kwargs)
            # What grew, as by `expand`, is no constant any more.
            grew = not all(map(is_constant, found_in(found, Tensor)))
            return mapped(self.from_tensor, found) if grew else found
        for place, argument in enumerate(func.schema.arguments):
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            if argument.is_write and not isinstance(value, FakeTensor):
                raise MixedTensors(operator=str(func), line=caller())

        def fake(value: Any) -> Any:
            if type(value) is not Tensor or value.number is not None:
                return value
            if self.allow_non_fake_inputs or is_constant(value):
                return self.from_tensor(value)
            raise MixedTensors(operator=str(func), line=caller())

        args, kwargs = mapped(fake, args), mapped(fake, kwargs)
        name, placed = func.name.name, found_in((args, kwargs), Tensor)
        # A copy may come from any device.
        placed = placed[:1] if name == "core::copy_" else placed
        device = kwargs.get("device") or common_device(*placed, call=name)
        return self._run(func, args, kwargs, numbered(device))

    def _run(self, func: Any, args: Any, kwargs: Any, device: Device) -> Any:
        """Run the Meta kernel; what it makes is said to be on `device`."""
        options = {name: each for name, each in kwargs.items() if name != "pin_memory"}
        if any(each.name == "device" for each in func.schema.arguments):
            options["device"] = Device("meta")
        try:
            found = func(*mapped(meta_of, args), **mapped(meta_of, options))
        except NoData as error:
            raise DataDependent(operator=str(func), line=caller()) from error
        known = {id(fake.meta): fake for fake in found_in((args, kwargs), FakeTensor)}
        for fake in known.values():
            if fake.shape != fake.meta.shape:
                # `out` had no elements, and was given room.
                resize_empty(fake, fake.meta.shape)

        def outer(value: Any) -> Any:
            if isinstance(value, Tensor) and id(value) not in known:
                return FakeTensor(self, value, device)
            return known.get(id(value), value)

        return mapped(outer, found)


def meta_of(value: Any) -> Any:
    return value.meta if isinstance(value, FakeTensor) else value


def is_constant(tensor: Tensor) -> bool:
    """Whether the value is known, and cheap to compute with."""
    return type(tensor) is Tensor and tensor.is_cpu and tensor.numel() == 1


def numbered(device: Device) -> Device:
    """The device as tensors have it: `cuda` is `cuda:0`, `cpu:0` is `cpu`."""
    index = None if device.type in ("cpu", "meta") else device.index or 0
    return Device(device.type, index)


def caller() -> str:
    """File, number and text of the line that called the operator."""
    stack = list(walk_stack(sys._getframe()))
    # Handlers of modes and wrappers may have passed the call on: the outermost counts.
    names = [frame.f_code.co_name for frame, _ in stack]
    outermost = len(names) - 1 - names[::-1].index("__torch_dispatch__")
    outside = stack[outermost + 1 :]
    # What the runtime generates has no name.
    modules = [
        str(at.f_globals.get("__name__", "everyorder.runtime.")) for at, _ in outside
    ]
    ours = [f"{each}.".startswith("everyorder.runtime.") for each in modules]
    frame, number = outside[ours.index(False)]
    path = frame.f_code.co_filename
    return f"{Path(path).name}:{number}: {getline(path, number).strip()}"
