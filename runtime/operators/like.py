"""Tensors like another one: its shape, and its dtype and device unless given.

True only here: nothing is computed; each calls the factory of its name, which chooses
the backend by the device.
"""

from collections.abc import Callable
from typing import Any

from runtime.operators.call import core
from runtime.operators.structured import Written
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.tensor import Tensor

NAMES = ("empty", "zeros", "ones", "rand", "randn")
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


OPERATORS = (
    *(
        Written(
            f"{name}_like(Tensor self, {OPTIONS}) -> Tensor",
            {"CompositeExplicitAutograd": _like(name)},
        )
        for name in NAMES
    ),
    Written(
        f"full_like(Tensor self, Scalar fill_value, {OPTIONS}) -> Tensor",
        {"CompositeExplicitAutograd": _full_like},
    ),
)
