"""Tensors like another one: its shape, and its dtype and device unless given.

True only here: each calls the factory of its name, which chooses the backend by the
device.  For tensors in host memory that are to stay as they are there is nothing to
choose: constants have kernels of the CPU.
"""

from collections.abc import Callable
from typing import Any

from runtime.operators.call import core
from runtime.operators.factories import filled
from runtime.operators.plan import CPU
from runtime.operators.produce import fresh
from runtime.operators.scalar import check_fill
from runtime.operators.structured import Written
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.tensor import Tensor

NAMES = ("empty", "zeros", "ones", "rand", "randn")
# What they hold; None: whatever it is.
CONSTANTS: dict[str, int | None] = {"empty": None, "zeros": 0, "ones": 1}
OPTIONS = "*, ScalarType? dtype=None, Device? device=None"


def _like(name: str) -> Callable[..., Tensor]:
    def make(self: Tensor, dtype: DType | None, device: Device | None) -> Tensor:
        made: Tensor = getattr(core, name)(
            self.shape,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
        )
        return made

    return make


def _short(name: str) -> Callable[..., Tensor]:
    """The kernel of the CPU, of a constant."""
    general = _like(name)
    value = CONSTANTS[name]

    def make(self: Tensor, dtype: DType | None, device: Device | None) -> Tensor:
        if self.device is not CPU or (device is not None and device is not CPU):
            return general(self, dtype, device)
        kind = self.dtype if dtype is None else dtype
        if value is None:
            return fresh(self.shape, kind, CPU)
        return filled(self.shape, kind, CPU, value)

    return make


def _kernels(name: str) -> dict[str, Any]:
    explicit = {"CompositeExplicitAutograd": _like(name)}
    return {**explicit, "CPU": _short(name)} if name in CONSTANTS else explicit


def _full_like(
    self: Tensor, value: Any, dtype: DType | None, device: Device | None
) -> Tensor:
    made: Tensor = core.full(
        self.shape,
        value,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
    )
    return made


def _short_full(
    self: Tensor, value: Any, dtype: DType | None, device: Device | None
) -> Tensor:
    """`full_like` on the CPU."""
    if self.device is not CPU or (device is not None and device is not CPU):
        return _full_like(self, value, dtype, device)
    kind = self.dtype if dtype is None else dtype
    check_fill("core::full_like", value, kind, "fill_value")
    return filled(self.shape, kind, CPU, value)


OPERATORS = (
    *(
        Written(
            f"{name}_like(Tensor self, {OPTIONS}) -> Tensor",
            _kernels(name),
        )
        for name in NAMES
    ),
    Written(
        f"full_like(Tensor self, Scalar fill_value, {OPTIONS}) -> Tensor",
        {"CompositeExplicitAutograd": _full_like, "CPU": _short_full},
    ),
)
