"""Words: what callers may write where a schema asks for something else.

True only here: the table of other names, and what becomes of arrays, dtypes and devices
as people write them.  A call is tried as it is; only when it does not fit its schema is
it read again, so that a call in the schema's own words pays nothing.

=================== ============================= ==============================
written             where the schema has          becomes
=================== ============================= ==============================
axis=, axes=        `dim` or `dims`               that argument
keepdims=, ddof=    `keepdim`, `correction`       that argument
out=, dtype=None    no such argument              nothing
an int              a list of ints                the list of it
a NumPy array       a tensor, tensors             a tensor beside the others
a NumPy number      a tensor, tensors             the Python number
float, np.float32   a dtype                       the dtype
"gpu"               a device                      `UnknownDevice`
=================== ============================= ==============================

Rule: nothing ran when a call did not fit, so that calling again repeats nothing.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from numpy import generic, ndarray

from runtime.errors.call import CallError
from runtime.schema.argument import Argument
from runtime.schema.device import Device
from runtime.tensors.data import as_tensor
from runtime.tensors.elements import supported
from runtime.tensors.making import from_numpy
from runtime.tensors.tensor import Tensor

# NumPy's words -> the schema's, the first that it has.
NAMES = {
    "axis": ("dim", "dims"),
    "axes": ("dims",),
    "keepdims": ("keepdim",),
    "ddof": ("correction",),
}

# What NumPy passes along as None to whoever has a method of a name that it calls.
UNSAID = frozenset({"out", "dtype"})


def again(
    run: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: CallError
) -> Any:
    """The call in the schema's words, if that is another one.

    Raises:
        CallError: `error`, if there is nothing to read in another way.
        UnsupportedData, UnknownDevice: a dtype or a device that there is not.
    """
    arguments = {argument.name: argument for argument in run.schema.arguments}
    named = _renamed(kwargs, arguments)
    place = next((each.device for each in args if isinstance(each, Tensor)), None)
    listed = [
        value if argument is None else _read(argument, value, place)
        for argument, value in zip(
            [*arguments.values(), *[None] * len(args)], args, strict=False
        )
    ]
    spoken = {
        name: _read(arguments[name], value, place) if name in arguments else value
        for name, value in named.items()
    }
    same = all(one is other for one, other in zip(listed, args, strict=True))
    if same and spoken.keys() == kwargs.keys():
        same = all(value is kwargs[name] for name, value in spoken.items())
        if same:
            raise error
    return run(*listed, **spoken)


def worded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A written function that takes NumPy's `axis` for its `dim`."""

    @wraps(function)
    def taking(*args: Any, **kwargs: Any) -> Any:
        # Both are for the function to refuse.
        if "axis" in kwargs and "dim" not in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        return function(*args, **kwargs)

    return taking


def read_operand(value: Any, device: Device) -> Any:
    """An array as a tensor, NumPy's number as Python's, all else as it is."""
    if isinstance(value, generic) or (isinstance(value, ndarray) and not value.shape):
        return value.item()
    if isinstance(value, ndarray):
        return as_tensor(value, device=device)
    return value


def _renamed(kwargs: dict[str, Any], arguments: dict[str, Argument]) -> dict[str, Any]:
    """The keyword arguments under the schema's names, less what is `UNSAID`."""
    named = {}
    for name, value in kwargs.items():
        if value is None and name in UNSAID and name not in arguments:
            continue
        others = () if name in arguments else NAMES.get(name, ())
        fit = (other for other in others if other in arguments and other not in kwargs)
        named[next(fit, name)] = value
    return named


def _read(argument: Argument, value: Any, device: Device | None) -> Any:
    """The value of an argument as its type has it; unchanged if it is no such word."""
    kind = str(argument.type).removesuffix("?")
    if kind == "ScalarType" and value is not None:
        return supported(value)
    if kind == "Device" and isinstance(value, str):
        return Device.parse(value)
    if kind == "int[]" and isinstance(value, int) and not isinstance(value, bool):
        return [value]
    place = device or Device("cpu")
    if kind == "Tensor" and isinstance(value, (ndarray, generic)):
        return _operand(argument, value, place)
    many = kind in ("Tensor[]", "Tensor?[]") and isinstance(value, (list, tuple))
    if many and any(isinstance(each, ndarray) for each in value):
        return [_operand(argument, each, place) for each in value]
    return value


def _operand(argument: Argument, value: Any, device: Device) -> Any:
    """An operand; what is written to shares the array's memory or is refused."""
    if argument.is_write and isinstance(value, ndarray):
        return from_numpy(value)
    return read_operand(value, device)
