"""Words: what callers may write where a schema asks for something else.

True only here: what becomes of arrays, dtypes and devices
as people write them.  A call is tried as it is; only when it does not fit its schema is
it read again, so that a call in the schema's own words pays nothing.

=================== ============================= ==============================
written             where the schema has          becomes
=================== ============================= ==============================
input=              `self` or `indices`           that argument
inplace=            no such argument              the result, copied to the first
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

from typing import Any

from numpy import generic, ndarray

from runtime.errors.call import CallError
from runtime.schema.argument import Argument
from runtime.schema.checked import renamed
from runtime.schema.device import Device
from runtime.tensors.data import as_tensor
from runtime.tensors.elements import supported
from runtime.tensors.making import from_numpy
from runtime.tensors.tensor import Tensor

# What NumPy passes along as None to whoever has a method of a name that it calls.
UNSAID = frozenset({"out", "dtype"})


# What layers may ask to write over what it is given.
ACTIVATIONS = frozenset({"relu", "silu", "elu", "leaky_relu"})


def again(
    run: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: CallError
) -> Any:
    """The call in the schema's words, if that is another one.

    Raises:
        CallError: `error`, if there is nothing to read in another way.
        UnsupportedData, UnknownDevice: a dtype or a device that there is not.
    """
    if "inplace" in kwargs and run.schema.name.base in ACTIVATIONS:
        rest = {name: value for name, value in kwargs.items() if name != "inplace"}
        if "input" in rest and "self" not in rest:
            rest["self"] = rest.pop("input")
        first = args[0] if args else rest.pop("self", None)
        if not kwargs["inplace"] or not isinstance(first, Tensor):
            return run(*(args or (first,)), **rest)
        # What is to be run backwards is kept as it was.
        kept = first.clone() if first.requires_grad else first
        return first.copy_(run(kept, *args[1:], **rest))
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


def read_operand(value: Any, device: Device) -> Any:
    """An array as a tensor, NumPy's number as Python's, all else as it is."""
    if isinstance(value, generic) or (isinstance(value, ndarray) and not value.shape):
        return value.item()
    if isinstance(value, ndarray):
        return as_tensor(value, device=device)
    return value


def _renamed(kwargs: dict[str, Any], arguments: dict[str, Argument]) -> dict[str, Any]:
    """The keyword arguments under the schema's names, less what is `UNSAID`."""
    said = {
        name: value
        for name, value in kwargs.items()
        if value is not None or name not in UNSAID or name in arguments
    }
    return renamed(said, arguments)


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
