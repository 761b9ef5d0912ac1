"""Tensors like another one: what is not given, its shape, dtype or device, is its.

True only here: `zeros_like(x)` has the shape of `x`, `x.new_zeros(size)` another one;
the rest of what is not given is that of `x`, in both.

Rules:
- each calls the factory of its name, which chooses the backend by the device, and is
  refused by its own name;
- for tensors in host memory that are to stay as they are there is nothing to choose:
  constants have kernels of the CPU;
- random numbers come from the default generator;
- `zeros_like` lies in memory as its tensor does, or as `memory_format=` says;
  `new_zeros` row by row.
"""

from collections.abc import Callable
from typing import Any

from runtime.operators.call import core
from runtime.operators.factories import check_size, filled
from runtime.operators.memory_format import laid, strides_of
from runtime.operators.plan import CPU, Shape
from runtime.operators.produce import fresh
from runtime.operators.scalar import check_fill
from runtime.operators.structured import Written, composed
from runtime.schema.codes import DType, MemoryFormat
from runtime.schema.device import Device
from runtime.tensors.tensor import Tensor

NAMES = ("empty", "zeros", "ones", "rand", "randn")
RANDOM = ("rand", "randn")
# What they hold; None: whatever it is.
CONSTANTS: dict[str, int | None] = {"empty": None, "zeros": 0, "ones": 1}
# What two calls in a row give of them is not the same.
TAGS = {
    "empty": ("nondeterministic_bitwise",),
    **dict.fromkeys(RANDOM, ("nondeterministic_seeded",)),
}
_PLACE = "*, ScalarType? dtype=None, Device? device=None"
OPTIONS = _PLACE + ", MemoryFormat? memory_format=None"
NEW_OPTIONS = _PLACE + ", bool pin_memory=False"

_EXPLICIT = "CompositeExplicitAutograd"
Maker = Callable[..., Tensor]


def _own(self: Tensor, dtype: DType | None, device: Device | None) -> dict[str, Any]:
    """The options of a factory: those of `self` where others are not given."""
    return {
        "dtype": self.dtype if dtype is None else dtype,
        "device": self.device if device is None else device,
    }


def _stays(self: Tensor, device: Device | None) -> bool:
    """Whether what is made like `self` lies in host memory, as `self` does."""
    return self.device is CPU and (device is None or device is CPU)


def _like(name: str) -> Maker:
    call = f"core::{name}_like"

    def make(
        self: Tensor,
        dtype: DType | None,
        device: Device | None,
        memory_format: MemoryFormat | None,
    ) -> Tensor:
        strides = strides_of(call, self, memory_format)
        made: Tensor = getattr(core, name)(self.shape, **_own(self, dtype, device))
        return laid(made, strides)

    return composed(call, make)


def _short(name: str) -> Maker:
    """The kernel of the CPU, of a constant."""
    general = _like(name)
    value = CONSTANTS[name]

    def make(
        self: Tensor,
        dtype: DType | None,
        device: Device | None,
        memory_format: MemoryFormat | None,
    ) -> Tensor:
        if self._place is not None or memory_format or not _stays(self, device):
            return general(self, dtype, device, memory_format)
        return _constant(self.shape, self.dtype if dtype is None else dtype, value)

    return make


def _constant(shape: Shape, kind: DType, value: int | None) -> Tensor:
    """A tensor in host memory; without a value, its elements are any."""
    if value is None:
        return fresh(shape, kind, CPU)
    return filled(shape, kind, CPU, value)


def _kernels(name: str) -> dict[str, Any]:
    explicit = {_EXPLICIT: _like(name)}
    return {**explicit, "CPU": _short(name)} if name in CONSTANTS else explicit


def _full_like(
    self: Tensor,
    value: Any,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    strides = strides_of("core::full_like", self, memory_format)
    made: Tensor = core.full(self.shape, value, **_own(self, dtype, device))
    return laid(made, strides)


_general_full: Maker = composed("core::full_like", _full_like)


def _short_full(
    self: Tensor,
    value: Any,
    dtype: DType | None,
    device: Device | None,
    memory_format: MemoryFormat | None,
) -> Tensor:
    """`full_like` on the CPU."""
    if self._place is not None or memory_format or not _stays(self, device):
        return _general_full(self, value, dtype, device, memory_format)
    kind = self.dtype if dtype is None else dtype
    check_fill("core::full_like", value, kind, "fill_value")
    return filled(self.shape, kind, CPU, value)


def _new(name: str) -> Maker:
    def make(
        self: Tensor,
        size: list[int],
        dtype: DType | None,
        device: Device | None,
        pin_memory: bool,
    ) -> Tensor:
        options = _own(self, dtype, device)
        made: Tensor = getattr(core, name)(size, **options, pin_memory=pin_memory)
        return made

    return composed(f"core::new_{name}", make)


def _short_new(name: str) -> Maker:
    """The kernel of the CPU, of a constant of any size."""
    general, call = _new(name), f"core::new_{name}"
    value = CONSTANTS[name]

    def make(
        self: Tensor,
        size: list[int],
        dtype: DType | None,
        device: Device | None,
        pin_memory: bool,
    ) -> Tensor:
        if pin_memory or not _stays(self, device):
            return general(self, size, dtype, device, pin_memory)
        kind = self.dtype if dtype is None else dtype
        return _constant(check_size(call, size), kind, value)

    return make


def _new_full(
    self: Tensor,
    size: list[int],
    value: Any,
    dtype: DType | None,
    device: Device | None,
    pin_memory: bool,
) -> Tensor:
    options = _own(self, dtype, device)
    made: Tensor = core.full(size, value, **options, pin_memory=pin_memory)
    return made


# What each is for, behind `new_`.
SAYS = {
    "empty": "Elements of any value, dtype and device those of the tensor.",
    "zeros": "Zeros, dtype and device those of the tensor.",
    "ones": "Ones, dtype and device those of the tensor.",
}

OPERATORS = (
    *(
        Written(
            f"{name}_like(Tensor self, {OPTIONS}) -> Tensor",
            _kernels(name),
            TAGS.get(name, ()),
        )
        for name in NAMES
    ),
    Written(
        f"full_like(Tensor self, Scalar fill_value, {OPTIONS}) -> Tensor",
        {_EXPLICIT: _general_full, "CPU": _short_full},
    ),
    *(
        Written(
            f"new_{name}(Tensor self, int[] size, {NEW_OPTIONS}) -> Tensor",
            {_EXPLICIT: _new(name), "CPU": _short_new(name)},
            TAGS.get(name, ()),
            says=SAYS[name],
            only="method",
        )
        for name in CONSTANTS
    ),
    Written(
        "new_full(Tensor self, int[] size, Scalar fill_value,"
        f" {NEW_OPTIONS}) -> Tensor",
        {_EXPLICIT: composed("core::new_full", _new_full)},
        says="One number everywhere, dtype and device those of the tensor.",
        only="method",
    ),
)
