"""The kernel at an autocast key: floating-point tensors cast to one dtype.

True only here: what a custom operator is cast to.  Tensors of the device, of a floating
type other than float64, become the chosen dtype, in lists too; the operator and what it
calls then run without autocast.  The casts are not kept: an operator that is to share
the cast weights of an `autocast` calls `core` operators.
"""

from collections.abc import Callable
from typing import Any

from runtime.autograd.autocast import DEVICES
from runtime.dispatch.kernel import Kernel, linked
from runtime.errors.autograd import AutocastRefused
from runtime.keys import AUTOCAST_KEYS, LOCAL, DispatchKey
from runtime.keys.local import view_of
from runtime.operators.call import core
from runtime.schema.codes import DType
from runtime.tensors.tensor import Tensor

# Types that are cast, and that can be cast to.
FLOATING = ("float16", "bfloat16", "float32")


def casting(device: str, dtype: DType | str) -> tuple[DispatchKey, Kernel]:
    """The key and the kernel.  Raises `AutocastRefused` for what is not served."""
    name = dtype.name if isinstance(dtype, DType) else DType.SYNONYMS.get(dtype, dtype)
    if device not in DEVICES or name not in FLOATING:
        known = " and ".join(DEVICES), ", ".join(FLOATING)
        raise AutocastRefused(device=device, dtype=name, known=known)
    wanted = DType.named(name)

    def factory(below: Any, keyset: Any) -> Callable[..., Any]:
        run = below.run

        def kernel(*arguments: Any) -> Any:
            view = LOCAL.view
            LOCAL.view = view_of(view.included, view.excluded | AUTOCAST_KEYS.bits)
            try:
                return run(*[_cast(value, device, wanted) for value in arguments])
            finally:
                LOCAL.view = view

        return kernel

    return DEVICES[device][0], linked(factory, f"autocast_to_{name}")


def _cast(value: Any, device: str, dtype: DType) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cast(each, device, dtype) for each in value]
    if not isinstance(value, Tensor) or value.number is not None:
        return value
    fits = value.dtype.name in FLOATING and value.device.type == device
    if not fits or value.dtype is dtype:
        return value
    return core._to_copy(value, dtype=dtype)
