"""Autocast: run an operator in the dtype that suits it, at the keys AutocastCPU and
AutocastCUDA.

This module decides which operators run in which dtype.

| family  | operators                  | floating-point tensors become               |
|---------|----------------------------|---------------------------------------------|
| low     | matrix products, linear,   | the fast dtype: bfloat16 on CPU, float16 on |
|         | convolutions               | CUDA, or the requested one                  |
| float32 | sums, norms, losses, exp,  | float32, if they are 16-bit floats          |
|         | log, pow and the like      |                                             |
| widest  | cat, stack, where, ...     | the widest floating dtype among them        |

Rules:
- an operator's declaration names its family (`runtime.operators.declare.structured`);
- an operator without a family runs in the dtype of its arguments;
- float64, integers and tensors of other devices are not cast;
- a leaf that requires grad (a weight) is cast once: the thread caches the copy, with
  its history so that its gradient flows, until it leaves the outermost autocast;
- an autocast kernel excludes the autocast keys, so the operators that it calls are not
  cast again.

Source of the families: the lists of upstream 2.13.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, Self

from everyorder.runtime.autograd.grad_edges import tensors_in
from everyorder.runtime.autograd.grad_mode import GRAD, Excluding, Mode
from everyorder.runtime.base.exits import Exit
from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.kernel import linked
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.keys import AUTOCAST_KEYS, LOCAL, DispatchKey
from everyorder.runtime.keys.local import guard_error, view_of
from everyorder.runtime.operators.declare.handles import NAMESPACE, core, is_defined
from everyorder.runtime.operators.install import FAMILIES
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.tensors.tensor import Tensor

FLOAT32 = DType.named("float32")
_HALVES = (DType.named("float16"), DType.named("bfloat16"))
CASTABLE = (*_HALVES, FLOAT32)

# Device type -> its key, and the dtype that is fast there.
DEVICES = {
    "cpu": (DispatchKey.AutocastCPU, DType.named("bfloat16")),
    "cuda": (DispatchKey.AutocastCUDA, DType.named("float16")),
}


class _AutocastState(threading.local):
    """The autocast state of one thread: depth, dtype per device, cache of cast
    weights.
    """

    depth: int = 0
    caches: bool = True
    dtypes: dict[str, DType] = {}  # noqa: RUF012  # replaced, never changed
    kept: dict[int, tuple[Tensor, DType, Tensor]] = {}  # noqa: RUF012  # as above


STATE = _AutocastState()

_BELOW = Excluding(AUTOCAST_KEYS.bits)


class autocast(Mode):  # noqa: N801  # used as a verb: `with autocast("cpu"):`
    """Run operators in the dtype that suits them, on one type of device.

    Args:
        device_type: `"cpu"` or `"cuda"`.
        dtype: float16 or bfloat16; None for the fast dtype of the device.
        enabled: False disables autocast inside the block.
        cache_enabled: cache the casts of weights until the outermost block is left.

    Raises:
        AutogradMisuse: the device or the dtype is not supported.
    """

    __slots__ = ("_caches", "_device", "_dtype", "_enabled")

    def __init__(
        self,
        device_type: str,
        dtype: DType | str | None = None,
        enabled: bool = True,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__()
        requested = dtype_served(device_type, dtype, _HALVES, " and ")
        self._device = device_type
        self._dtype = DEVICES[device_type][1] if requested is None else requested
        self._enabled = enabled
        self._caches = cache_enabled

    def _fresh(self) -> Mode:
        return autocast(self._device, self._dtype, self._enabled, self._caches)

    def __enter__(self) -> Self:
        view, bits = LOCAL.view, DEVICES[self._device][0].bits
        excluded = view.excluded & ~bits if self._enabled else view.excluded | bits
        inside = view_of(view.included, excluded)
        dtypes = {**STATE.dtypes, self._device: self._dtype}
        keys = view, LOCAL.switched_in, LOCAL.switched_out
        saved = keys, STATE.dtypes, STATE.caches, STATE.depth
        self._entry, LOCAL.view = (STATE.__dict__, saved, self._entry), inside
        STATE.dtypes, STATE.caches = dtypes, self._caches
        STATE.depth += 1
        return self

    @Exit
    def __exit__(self) -> Generator[None, None, None]:
        freed = False
        try:
            yield
        except GeneratorExit:
            freed = True
        finally:
            if not freed:
                entry = self._entry
                if entry is None or entry[0] is not STATE.__dict__:
                    raise guard_error(self, entry)
                _, (keys, STATE.dtypes, STATE.caches, STATE.depth), self._entry = entry
                LOCAL.view, LOCAL.switched_in, LOCAL.switched_out = keys
                if not STATE.depth:
                    STATE.kept = {}


def is_autocast_enabled(device_type: str) -> bool:
    """Return True if the thread runs operators on `device_type` in autocast dtypes.

    Raises:
        AutogradMisuse: the device is not supported.
    """
    dtype_served(device_type, None, (), "")
    return not LOCAL.excluded & DEVICES[device_type][0].bits


def dtype_served(
    device: str,
    dtype: DType | str | None,
    among: Sequence[DType],
    joint: str,
    *,
    optional: bool = True,
) -> DType | None:
    """Return the autocast dtype requested for a type of device, None for the default.

    Raises:
        AutogradMisuse: the device or the dtype is not supported, or `dtype` is None
            although `optional` is False. The message joins the names of the supported
            dtypes by `joint`.
    """
    name = dtype.name if isinstance(dtype, DType) else dtype
    name = DType.SYNONYMS.get(name, name) if name is not None else None
    names = [each.name for each in among]
    served = (None, *names) if optional else names
    if device not in DEVICES or name not in served:
        supported = " and ".join(DEVICES), *([joint.join(names)] if names else [])
        raise AutogradMisuse(
            code="AutocastRefused", device=device, dtype=str(name), known=supported
        )
    return None if name is None else DType.named(name)


def clear_autocast_cache() -> None:
    """Drop the casts of weights that the thread has cached."""
    STATE.kept = {}


def families() -> Iterator[tuple[str, str]]:
    """Yield each operator that autocast handles, with its family."""
    for declarations in FAMILIES:
        for each in declarations:
            if each.autocast:
                yield each.name, each.autocast


def install_autocast(dispatcher: Dispatcher, origin: str) -> tuple[Library, ...]:
    """Register the autocast kernels of every operator of a family that is defined."""
    libraries = []
    for device, (key, _) in DEVICES.items():
        library = Library(NAMESPACE, "IMPL", key, dispatcher=dispatcher, origin=origin)
        libraries.append(library)
        for name, family in families():
            if not is_defined(dispatcher.state, OperatorName(f"{NAMESPACE}::{name}")):
                continue
            label = f"{name}_autocast"
            kernel = linked(casting(partial(_CASTS[family], device)), label)
            library.impl(name, kernel, debug=label)
    return tuple(libraries)


def casting(cast: Callable[[tuple[Any, ...]], list[Any]]) -> Any:
    """Return the factory of a kernel that casts its arguments; see `linked`."""

    def factory(below: Any, keyset: Any) -> Callable[..., Any]:
        run = below.run

        def kernel(*arguments: Any) -> Any:
            view = LOCAL.view
            LOCAL.view = _BELOW[view]
            try:
                return run(*cast(arguments))
            finally:
                LOCAL.view = view

        return kernel

    return factory


def _to_low(device: str, arguments: tuple[Any, ...]) -> list[Any]:
    dtype = STATE.dtypes[device]
    return [cast_to(value, dtype, device) for value in arguments]


def _to_float32(device: str, arguments: tuple[Any, ...]) -> list[Any]:
    return [cast_to(value, FLOAT32, device, _HALVES) for value in arguments]


def _to_widest(device: str, arguments: tuple[Any, ...]) -> list[Any]:
    dtypes = {
        each.dtype
        for each in tensors_in(arguments)
        if each.number is None and each.dtype in CASTABLE and each.device.type == device
    }
    # Two different 16-bit floats have only float32 in common.
    return [*arguments] if len(dtypes) < 2 else _to_float32(device, arguments)


# Family -> the function that casts the arguments for a type of device.
_CASTS = {"low": _to_low, "float32": _to_float32, "widest": _to_widest}


def cast_to(
    value: Any,
    dtype: DType,
    device: str,
    from_: tuple[DType, ...] = CASTABLE,
    keeps: bool = True,
) -> Any:
    """Return `value` with the tensors on `device` cast to `dtype`, also inside lists.

    `keeps` allows the cast of a weight to be cached.
    """
    if isinstance(value, (list, tuple)):
        return [cast_to(each, dtype, device, from_, keeps) for each in value]
    if not isinstance(value, Tensor) or value.number is not None:
        return value
    if value.dtype is dtype or value.dtype not in from_ or value.device.type != device:
        return value
    if not keeps or not _is_weight(value):
        return core._to_copy(value, dtype=dtype)
    cached = STATE.kept.get(id(value))
    if cached is not None and cached[0] is value and cached[1] is dtype:
        return cached[2]
    copy = core._to_copy(value, dtype=dtype)
    STATE.kept = {**STATE.kept, id(value): (value, dtype, copy)}
    return copy


def _is_weight(tensor: Tensor) -> bool:
    """Return True if the cast of `tensor` should be cached: a trainable float32
    leaf.
    """
    if not (STATE.caches and GRAD.enabled and tensor._requires_grad):
        return False
    return tensor.dtype is FLOAT32 and tensor.is_leaf
