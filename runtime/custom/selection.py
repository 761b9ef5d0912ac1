"""The kernel at BackendSelect: operators without tensors find the device's kernel.

True only here: the argument that says which device is meant, and the way there.  It is
called `device`; None means the CPU.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.kernel import Kernel, linked
from runtime.errors.custom_op import NoDeviceArgument
from runtime.keys import KeySet, key_of_device
from runtime.schema.schema import Schema
from runtime.schema.types import DeviceType, is_dispatch_type, unwrap_optional


def takes_tensors(schema: Schema) -> bool:
    """Whether a call has tensors that say which backend is meant."""
    return any(is_dispatch_type(argument.type) for argument in schema.arguments)


def selecting(schema: Schema) -> Kernel:
    """The kernel for an operator without tensors.  Raises `NoDeviceArgument`."""
    for place, argument in enumerate(schema.arguments):
        kind = unwrap_optional(argument.type)
        if argument.name == "device" and kind == DeviceType:
            return linked(_factory(place), "backend_select")
    raise NoDeviceArgument(operator=str(schema.name), schema=str(schema))


def _factory(place: int) -> Callable[[Any, KeySet], Callable[..., Any]]:
    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        chosen: dict[str, Callable[..., Any]] = {}

        def select(*arguments: Any) -> Any:
            device = arguments[place]
            kind = "cpu" if device is None else device.type
            run = chosen.get(kind)
            if run is None:
                run = chosen[kind] = below.at(KeySet([key_of_device(kind)]))
            return run(*arguments)

        return select

    return factory
