"""`tensor` and `as_tensor`: tensors from data of any kind.

This module alone converts Python numbers, nested lists, arrays and tensors to elements.

Rules:
- Python numbers become bool, int64, the default dtype or its complex form, the widest
  kind among them;
- arrays, tensors and NumPy's scalars keep their dtype, and are promoted in lists;
- a NumPy integer of an unsupported dtype counts as a Python int; an array of such
  integers raises;
- a complex number, alone or in a list, does not convert to a real dtype; of a complex
  array or tensor, the real parts are used;
- an int outside of int64, or of the requested integer dtype, raises; in a
  floating-point dtype, a number out of range becomes infinite;
- `tensor` copies; `as_tensor` shares memory if no element has to change;
- an array that is only read as an operand (`as_operand`) may be read-only.
"""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from everyorder.runtime.base.hooks import FILL
from everyorder.runtime.errors.tensor import ArithmeticRefused, BadSize, UnfitValue
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import (
    empty_tensor,
    from_cuda_array,
    from_flat,
    share_array,
    too_large,
    unshareable,
)
from everyorder.runtime.tensors.dtype_info import (
    DEFAULTS,
    NUMBERS,
    DTypeInfo,
    Number,
    dtype_of,
    info,
    numpy_dtype,
    parse_dtype,
)
from everyorder.runtime.tensors.interop import warn_read_only, writable
from everyorder.runtime.tensors.keys import check_unhandled
from everyorder.runtime.tensors.promotion import (
    number_dtype,
    promote_types,
)
from everyorder.runtime.tensors.shape import Size
from everyorder.runtime.tensors.storage import resolve_device
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import host_copy

if TYPE_CHECKING:
    import numpy as np

    Elements = np.ndarray[Any, Any]

# A number of each kind, by NumPy's letter of the widest kind among Python numbers.
_EXAMPLES: dict[str, Number] = {"b": False, "i": 0, "f": 0.0, "c": 0j}

_PLAIN = frozenset(NUMBERS)
# NumPy's limit of dimensions; a list that contains itself would have infinitely many.
_DEEPEST = 64


@checked
def tensor(
    data: Any,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = "cpu",
    requires_grad: bool = False,
) -> Tensor:
    """Return a new tensor with a copy of `data`, a number, list, array or tensor.

    The device None is the device of a tensor, and the CPU for other data.

    Raises:
        UnknownDevice: `device` is not a device.
        UnfitValue: an element is not a number, tensors do not support the dtype, or a
            dtype without gradients is combined with `requires_grad`.
        ArithmeticRefused: the dtype cannot hold a number.
        BadSize: nested lists have uneven lengths.
        SubclassError: `data` is a tensor whose class has a handler.
    """
    if device is None:
        place = data.device if isinstance(data, Tensor) else resolve_device("cpu")
    else:
        place = resolve_device(device)
    target = None if dtype is None else parse_dtype(dtype)
    if isinstance(data, Tensor):
        check_unhandled(data, "tensor(data)")
    if isinstance(data, Tensor) and data.is_meta and place.type == "meta":
        result = empty_tensor(data.shape, target or data.dtype, place)
    else:
        elements = _elements(data, target)
        result = from_flat(elements.flatten(), elements.shape, place)
    if requires_grad:
        result.requires_grad_()
    return result


@checked
def as_tensor(
    data: Any,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Return `data` as a tensor: itself, sharing its memory, or a copy.

    A tensor of the requested dtype and device is returned itself.  A NumPy array or an
    array in CUDA memory is shared if no element has to change; a read-only array with a
    warning, `ReadOnlyMemory`.  Raises as `tensor` does.
    """
    result, read_only = shared_or_copied(data, dtype, device, share_read_only=True)
    if read_only:
        warn_read_only("as_tensor", stacklevel=3)
    return result


def as_operand(data: Any, *, device: Device | str | None = None) -> Tensor:
    """Return `as_tensor(data)`; a read-only array is copied, without a warning."""
    return shared_or_copied(data, None, device, share_read_only=False)[0]


def shared_or_copied(
    data: Any,
    dtype: DType | str | None,
    device: Device | str | None,
    *,
    share_read_only: bool,
) -> tuple[Tensor, bool]:
    """Return `data` as a tensor, and whether that shares read-only memory."""
    target = None if dtype is None else parse_dtype(dtype)
    if isinstance(data, Tensor):
        place = data.device if device is None else resolve_device(device)
        if target in (None, data.dtype) and place is data.device:
            return data, False
        return tensor(data, dtype=target, device=place), False
    if hasattr(data, "__cuda_array_interface__"):
        return as_tensor(from_cuda_array(data), dtype=target, device=device), False
    place = resolve_device("cpu" if device is None else device)
    elements = _elements(data, target)
    read_only = share_read_only and not elements.flags.writeable
    reason = unshareable(writable(elements) if read_only else elements)
    if place.type == "cpu" and reason is None:
        return share_array(elements, read_only=read_only), read_only
    return from_flat(elements.flatten(), elements.shape, place), False


def _elements(data: Any, target: DType | None) -> "Elements":
    """Return the elements as an array of a supported dtype, in native byte order."""
    import numpy as np

    if isinstance(data, Tensor):
        return _cast(host_copy(data, "tensor()"), target)
    if isinstance(data, (list, tuple)) or type(data) in NUMBERS:
        return _of_numbers(data, target)
    if isinstance(data, (str, bytes, dict, set)):
        raise UnfitValue(code="UnsupportedData", dtype=type(data).__name__, near=())
    elements = np.asarray(data)
    if isinstance(data, NUMBERS) and not isinstance(data, np.generic):
        return _of_numbers(elements.item(), target)
    if isinstance(data, np.generic):
        if _is_lacking(type(data)):
            return _of_numbers(elements.item(), target)
        _check_real(elements.dtype.kind == "c", target)
    return _cast(elements, target)


def _cast(elements: "Elements", target: DType | None) -> "Elements":
    import numpy as np

    kind = dtype_of(elements.dtype.newbyteorder("="))
    real = target is not None and not target.is_complex and target.name != "bool"
    if real and kind.is_complex:
        elements = elements.real
    form = numpy_dtype(target or kind)
    if form == elements.dtype:
        return elements
    # A number out of range converts as the machine does it, without NumPy's warning.
    with np.errstate(all="ignore"):
        return elements.astype(form)


def _of_numbers(data: Any, target: DType | None) -> "Elements":
    """Convert Python numbers and nested lists of numbers, arrays and tensors."""
    import numpy as np

    kinds = _kinds(data, 0)
    plain = kinds <= _PLAIN
    if not plain:
        if any(map(_is_lacking, kinds)):
            data = _without_lacking(data, 0)
            kinds = {int if _is_lacking(kind) else kind for kind in kinds}
        if any(issubclass(kind, (Tensor, np.ndarray)) for kind in kinds):
            return _of_arrays(data, target)
    elements = _array(data)
    if elements.size and elements.dtype.kind not in "biufcO":
        names = sorted(kind.__name__ for kind in kinds - {*NUMBERS})
        raise UnfitValue(
            code="UnsupportedData",
            dtype=names[0] if names else elements.dtype.name,
            near=(),
        )
    # Before the test for objects: NumPy stores integers of more than 64 bits as
    # objects, and they are refused as too large.
    if elements.size and all(issubclass(kind, int) for kind in kinds):
        return _of_integers(data, elements, target)
    if elements.dtype.kind == "O":
        raise UnfitValue(code="UnsupportedData", dtype=elements.dtype.name, near=())
    if target is None:
        target = None if plain else _promoted(kinds)
        if target is None:
            # NumPy reads Python's floats as float64 and complex128.
            example = _EXAMPLES.get(elements.dtype.kind)
            return _cast(elements, None if example is None else number_dtype(example))
    _check_real(elements.dtype.kind == "c", target)
    facts = info(target)
    if facts.kind in "iu" and elements.dtype.kind in "iuf" and elements.size:
        _check_range(elements, target, facts)
    return _cast(elements, target)


def _promoted(kinds: set[type]) -> DType | None:
    """Return the promoted dtype of NumPy's and Python's number classes, or None."""
    import numpy as np

    if not any(issubclass(kind, np.generic) for kind in kinds):
        return None
    dtypes = []
    for kind in kinds:
        plain = [each for each in NUMBERS if issubclass(kind, each)]
        if issubclass(kind, np.generic):
            dtypes.append(dtype_of(np.dtype(kind)))
        elif plain:
            dtypes.append(number_dtype(plain[0]()))
        else:
            return None
    return reduce(promote_types, dtypes)


def _is_lacking(kind: type) -> bool:
    """Return True for a NumPy class of integers of an unsupported dtype."""
    import numpy as np

    return issubclass(kind, np.unsignedinteger) and not issubclass(kind, np.uint8)


def _without_lacking(data: Any, depth: int) -> Any:
    """Return nested lists with Python ints for NumPy integers of unsupported dtypes."""
    if isinstance(data, (list, tuple)) and depth <= _DEEPEST:
        return [_without_lacking(each, depth + 1) for each in data]
    return int(data) if _is_lacking(type(data)) else data


def _check_real(is_complex: bool, target: DType | None) -> None:
    """Raise `UnfitValue` if complex numbers should become real elements."""
    if not is_complex or target is None:
        return
    if not target.is_complex and target.name != "bool":
        raise UnfitValue(
            asked=f"dtype={target.name!r}",
            fits="real numbers",
            found="a complex one",
            remedy="take the real parts, or leave dtype out",
        )


def _of_integers(data: Any, elements: "Elements", target: DType | None) -> "Elements":
    """Convert ints and bools of any length; `elements` is NumPy's reading of `data`."""
    import numpy as np

    kind = target or DType.named("bool" if elements.dtype.kind == "b" else "int64")
    facts = info(kind)
    if facts.kind in "fc":
        try:
            return _cast(np.array(data, np.float64), kind)
        except OverflowError:
            raise too_large(_extreme(data), kind) from None
    if elements.dtype.kind not in "bi":
        raise too_large(_extreme(data), kind)
    if facts.kind in "iu":
        _check_range(elements, kind, facts)
    return _cast(elements, kind)


def _of_arrays(data: Any, target: DType | None) -> "Elements":
    """Convert nested lists that hold arrays or tensors; promote as operators do."""
    import numpy as np

    dtypes: list[DType] = []
    plain = _without_tensors(data, dtypes)
    dtype = target or reduce(promote_types, dtypes)
    _check_real(any(each.is_complex for each in dtypes), dtype)
    form = numpy_dtype(dtype)
    if dtype.name == "bfloat16":
        return _array(plain, np.dtype("float32")).astype(form)
    return _array(plain, form)


def _without_tensors(data: Any, dtypes: list[DType]) -> Any:
    """Replace tensors in nested lists by arrays, and append the leaves' dtypes."""
    import numpy as np

    if isinstance(data, (list, tuple)):
        return [_without_tensors(each, dtypes) for each in data]
    leaf = host_copy(data, "tensor()") if isinstance(data, Tensor) else data
    if isinstance(leaf, (np.ndarray, np.generic)) and type(data) not in NUMBERS:
        dtypes.append(dtype_of(leaf.dtype))
        widened = leaf.dtype.name == "bfloat16"
        return leaf.astype(np.float32) if widened else leaf
    letter = np.array(leaf).dtype.kind
    if letter not in _EXAMPLES:
        raise UnfitValue(
            code="UnsupportedData", dtype=np.array(leaf).dtype.name, near=()
        )
    dtypes.append(number_dtype(_EXAMPLES[letter]))
    return leaf


def _array(data: Any, form: "np.dtype[Any] | None" = None) -> "Elements":
    import numpy as np

    try:
        if form is None:
            return np.array(data)
        with np.errstate(all="ignore"):
            return np.array(data, form)
    except ValueError:
        _check_even(data)
        raise


def _kinds(data: Any, depth: int) -> set[type]:
    """Return the classes of the leaves of nested lists."""
    if not isinstance(data, (list, tuple)) or depth > _DEEPEST:
        return {type(data)}
    kinds = set(map(type, data))
    nested = {kind for kind in kinds if issubclass(kind, (list, tuple))}
    if not nested:
        return kinds
    inner = (_kinds(each, depth + 1) for each in data if type(each) in nested)
    return (kinds - nested).union(*inner)


def _check_even(data: Any) -> None:
    """Raise `BadSize` for the first depth where lengths differ."""
    level = [data]
    for depth in range(_DEEPEST):
        lengths = tuple(len(each) if hasattr(each, "__len__") else 0 for each in level)
        if len(set(lengths)) > 1:
            raise BadSize(
                code="UnevenData", depth=depth, lengths=tuple(dict.fromkeys(lengths))
            )
        level = [one for each in level if hasattr(each, "__len__") for one in each]


def _extreme(data: Any) -> int:
    """Return the int of greatest magnitude in nested lists."""
    if not isinstance(data, (list, tuple)):
        return int(data)
    return max((_extreme(each) for each in data), key=abs)


def _check_range(elements: "Elements", target: DType, facts: DTypeInfo) -> None:
    """Raise `ArithmeticRefused` for a number outside of the integer dtype `target`."""
    low, high = elements.min().item(), elements.max().item()
    # Also False for NaN, which is outside of every range.
    if facts.smallest <= low and high <= facts.largest:
        return
    if isinstance(low, int):
        raise too_large(high if high > facts.largest else low, target)
    raise ArithmeticRefused(
        code="NumberTooLarge",
        value=repr(low if facts.smallest > low else high),
        dtype=target.name,
        smallest=int(facts.smallest),
        largest=int(facts.largest),
    )


# The slots of a tensor, in the order of `Tensor.__init__`.
_PARTS = (
    *("_flat", "_shape", "_dtype", "_device", "key_bits"),
    *("_place", "_requires_grad", "_history", "number"),
)


def fill(target: Tensor, *arguments: Any, device: Device | str = "cpu") -> None:
    """Initialize a tensor as `Tensor(...)` does: from sizes, from data, or empty.

    The dtype is the default dtype. Raises as `from_sizes_or_data` does.
    """
    source = from_sizes_or_data("Tensor", arguments, DEFAULTS.real, device)
    for name in _PARTS:
        setattr(target, name, getattr(source, name))


def from_sizes_or_data(
    asked: str, arguments: Sequence[Any], dtype: DType, device: Device | str = "cpu"
) -> Tensor:
    """Return a new tensor of sizes, of data, or without elements.

    The arguments 2, 3 give uninitialized elements of shape (2, 3), and so does a
    `Size`; [2, 3] gives these elements, and no argument none. A device may follow the
    sizes. `asked` is the called constructor.

    Raises:
        UnfitValue: the argument is a single number that is not an int, or several
            arguments are not all sizes; also as in `tensor`.
    """
    if len(arguments) > 1 and isinstance(arguments[-1], (str, Device)):
        *arguments, device = arguments
    if len(arguments) == 1 and isinstance(arguments[0], Size):
        (arguments,) = arguments
    if all(type(size) is int for size in arguments) or isinstance(arguments, Size):
        size = tuple(arguments) if arguments or isinstance(arguments, Size) else (0,)
        return empty_tensor(size, dtype, resolve_device(device))
    if len(arguments) > 1 or isinstance(arguments[0], (bool, int, float, complex)):
        raise UnfitValue(
            asked=asked,
            found=", ".join(repr(each) for each in arguments)[:60],
            fits="sizes, or data in lists or an array",
            remedy="call `tensor`, which takes a number, a dtype and a device",
        )
    return tensor(arguments[0], dtype=dtype, device=device)


FILL.set(fill)
