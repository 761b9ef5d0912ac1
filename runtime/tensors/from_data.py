"""`tensor` and `as_tensor`: tensors of data of any kind.

True only here: how Python numbers, nested lists, arrays and tensors become elements.

Rules:
- Python numbers become bool, int64, float32 or complex64, the widest kind among them;
- arrays, tensors and NumPy's own scalars keep their dtype, and are promoted in lists;
- NumPy's integers of dtypes that tensors lack are Python's ints; arrays of them raise;
- a complex number is no real one, by itself or in a list: real elements are not made
  of it, but of an array or a tensor they are its real parts;
- an int that no int64, or not the integer dtype that is asked for, can hold raises; of
  a floating-point dtype, what is out of its range becomes infinite;
- `tensor` copies; `as_tensor` shares where nothing needs to change.
"""

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
    from_numpy,
    too_large,
    unshareable,
)
from everyorder.runtime.tensors.dtype_info import (
    DTypeInfo,
    Number,
    combine_categories,
    dtype_of,
    info,
    number_dtype,
    numpy_dtype,
    parse_dtype,
    promote_skip_none,
    promote_types,
)
from everyorder.runtime.tensors.keys import check_unhandled
from everyorder.runtime.tensors.storage import resolve_device
from everyorder.runtime.tensors.tensor import FLOAT32, Tensor
from everyorder.runtime.tensors.tensor_impl import host_copy

if TYPE_CHECKING:
    import numpy as np

    Elements = np.ndarray[Any, Any]

# The dtype of Python numbers, by NumPy's letter of the widest kind among them.
_DEFAULTS = {
    "b": DType.named("bool"),
    "i": DType.named("int64"),
    "f": DType.named("float32"),
    "c": DType.named("complex64"),
}
# What NumPy makes of Python's floats is twice as wide as what tensors default to; by
# NumPy's character.
_NARROWED = {
    "d": DType.named("float32"),
    "D": DType.named("complex64"),
}

_NUMBERS = (bool, int, float, complex)
_PLAIN = frozenset(_NUMBERS)
# NumPy has no more dimensions; a list that holds itself has endlessly many.
_DEEPEST = 64


@checked
def tensor(
    data: Any,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = "cpu",
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, an array, a tensor.

    The device None is that of a tensor, and the CPU for anything else.

    Raises `UnknownDevice`, `UnfitValue` for elements that are not numbers or a dtype
    that tensors lack, `ArithmeticRefused` for a number that the dtype cannot hold,
    `UnfitValue` where `requires_grad` makes no sense, `BadSize` for lists of uneven
    lengths, and `SubclassError` for a tensor whose class has a handler.
    """
    if device is None:
        place = data.device if isinstance(data, Tensor) else resolve_device("cpu")
    else:
        place = resolve_device(device)
    wanted = None if dtype is None else parse_dtype(dtype)
    if isinstance(data, Tensor):
        check_unhandled(data, "tensor(data)")
    if isinstance(data, Tensor) and data.is_meta and place.type == "meta":
        made = empty_tensor(data.shape, wanted or data.dtype, place)
    else:
        elements = _elements(data, wanted)
        made = from_flat(elements.flatten(), elements.shape, place)
    if requires_grad:
        made.requires_grad_()
    return made


@checked
def as_tensor(
    data: Any,
    *,
    dtype: DType | str | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """`data` as a tensor: itself, sharing its memory, or else a copy.

    A tensor that fits is returned as it is; a NumPy array that fits is shared, and so
    is an array in CUDA memory.  Raises as `tensor` does.
    """
    wanted = None if dtype is None else parse_dtype(dtype)
    if isinstance(data, Tensor):
        place = data.device if device is None else resolve_device(device)
        if wanted in (None, data.dtype) and place is data.device:
            return data
        return tensor(data, dtype=wanted, device=place)
    if hasattr(data, "__cuda_array_interface__"):
        return as_tensor(from_cuda_array(data), dtype=wanted, device=device)
    place = resolve_device("cpu" if device is None else device)
    elements = _elements(data, wanted)
    if place.type == "cpu" and unshareable(elements) is None:
        return from_numpy(elements)
    return from_flat(elements.flatten(), elements.shape, place)


def result_type(*values: Tensor | Number | DType) -> DType:
    """The dtype in which an operator combines the values.

    A dtype counts as a tensor with dimensions.  Raises ValueError without values.
    """
    if not values:
        raise ValueError("a result type needs a value")
    dimensioned: DType | None = None
    scalar: DType | None = None
    number: DType | None = None
    for value in values:
        if isinstance(value, Tensor) and value.number is None:
            dtype = value.dtype
            if value.shape:
                dimensioned = promote_skip_none(dimensioned, dtype)
            else:
                scalar = promote_skip_none(scalar, dtype)
        elif isinstance(value, DType):
            dimensioned = promote_skip_none(dimensioned, value)
        else:
            plain = value.number if isinstance(value, Tensor) else value
            assert plain is not None, "other tensors were taken above"
            number = promote_skip_none(number, number_dtype(plain))
    return combine_categories(dimensioned, scalar, number)


def _elements(data: Any, wanted: DType | None) -> "Elements":
    """The elements as an array of a supported dtype, in this machine's byte order."""
    import numpy as np

    if isinstance(data, Tensor):
        return _cast(host_copy(data, "tensor()"), wanted)
    if isinstance(data, (list, tuple)) or type(data) in _NUMBERS:
        return _of_numbers(data, wanted)
    if isinstance(data, (str, bytes, dict, set)):
        raise UnfitValue(code="UnsupportedData", dtype=type(data).__name__, near=())
    given = np.asarray(data)
    if isinstance(data, _NUMBERS) and not isinstance(data, np.generic):
        return _of_numbers(given.item(), wanted)
    if isinstance(data, np.generic):
        if _is_lacking(type(data)):
            return _of_numbers(given.item(), wanted)
        _check_real(given.dtype.kind == "c", wanted)
    return _cast(given, wanted)


def _cast(given: "Elements", wanted: DType | None) -> "Elements":
    import numpy as np

    kind = dtype_of(given.dtype.newbyteorder("="))
    real = wanted is not None and not wanted.is_complex and wanted.name != "bool"
    if real and kind.is_complex:
        given = given.real
    form = numpy_dtype(wanted or kind)
    if form == given.dtype:
        return given
    # Numbers out of range become what the machine makes of them, without a word.
    with np.errstate(all="ignore"):
        return given.astype(form)


def _of_numbers(data: Any, wanted: DType | None) -> "Elements":
    """Python numbers, nested in lists or not; arrays and tensors among them too."""
    import numpy as np

    kinds = _kinds(data, 0)
    plain = kinds <= _PLAIN
    if not plain:
        if any(map(_is_lacking, kinds)):
            data = _without_lacking(data, 0)
            kinds = {int if _is_lacking(kind) else kind for kind in kinds}
        if any(issubclass(kind, (Tensor, np.ndarray)) for kind in kinds):
            return _of_arrays(data, wanted)
    given = _array(data)
    if given.size and given.dtype.kind not in "biufcO":
        names = sorted(kind.__name__ for kind in kinds - {*_NUMBERS})
        raise UnfitValue(
            code="UnsupportedData",
            dtype=names[0] if names else given.dtype.name,
            near=(),
        )
    if given.size and all(issubclass(kind, int) for kind in kinds):
        return _of_integers(data, given, wanted)
    if given.dtype.kind == "O":
        raise UnfitValue(code="UnsupportedData", dtype=given.dtype.name, near=())
    if wanted is None:
        wanted = None if plain else _promoted(kinds)
        if wanted is None:
            return _cast(given, _NARROWED.get(given.dtype.char))
    _check_real(given.dtype.kind == "c", wanted)
    facts = info(wanted)
    if facts.kind in "iu" and given.dtype.kind in "iuf" and given.size:
        _check_range(given, wanted, facts)
    return _cast(given, wanted)


def _promoted(kinds: set[type]) -> DType | None:
    """The dtype of numbers of NumPy's classes, with Python's; else None."""
    import numpy as np

    if not any(issubclass(kind, np.generic) for kind in kinds):
        return None
    found = []
    for kind in kinds:
        plain = [each for each in _NUMBERS if issubclass(kind, each)]
        if issubclass(kind, np.generic):
            found.append(dtype_of(np.dtype(kind)))
        elif plain:
            found.append(number_dtype(plain[0]()))
        else:
            return None
    return reduce(promote_types, found)


def _is_lacking(kind: type) -> bool:
    """Numbers of such a class of NumPy's are integers of a dtype that tensors lack."""
    import numpy as np

    return issubclass(kind, np.unsignedinteger) and not issubclass(kind, np.uint8)


def _without_lacking(data: Any, depth: int) -> Any:
    """The nested lists with Python's ints for integers of dtypes that tensors lack."""
    if isinstance(data, (list, tuple)) and depth <= _DEEPEST:
        return [_without_lacking(each, depth + 1) for each in data]
    return int(data) if _is_lacking(type(data)) else data


def _check_real(is_complex: bool, wanted: DType | None) -> None:
    """Raise `UnfitValue` for complex numbers of which real elements are to be made."""
    if not is_complex or wanted is None:
        return
    if not wanted.is_complex and wanted.name != "bool":
        raise UnfitValue(
            asked=f"dtype={wanted.name!r}",
            fits="real numbers",
            found="a complex one",
            remedy="take the real parts, or leave dtype out",
        )


def _of_integers(data: Any, given: "Elements", wanted: DType | None) -> "Elements":
    """Ints and bools of any length; `given` is what NumPy made of them."""
    import numpy as np

    kind = wanted or DType.named("bool" if given.dtype.kind == "b" else "int64")
    facts = info(kind)
    if facts.kind in "fc":
        try:
            return _cast(np.array(data, np.float64), kind)
        except OverflowError:
            raise too_large(_extreme(data), kind) from None
    if given.dtype.kind not in "bi":
        raise too_large(_extreme(data), kind)
    if facts.kind in "iu":
        _check_range(given, kind, facts)
    return _cast(given, kind)


def _of_arrays(data: Any, wanted: DType | None) -> "Elements":
    """Nested lists with arrays or tensors in them: promoted as operators would."""
    import numpy as np

    found: list[DType] = []
    plain = _without_tensors(data, found)
    dtype = wanted or reduce(promote_types, found)
    _check_real(any(each.is_complex for each in found), dtype)
    form = numpy_dtype(dtype)
    if dtype.name == "bfloat16":
        return _array(plain, np.dtype("float32")).astype(form)
    return _array(plain, form)


def _without_tensors(data: Any, found: list[DType]) -> Any:
    """The nested lists with arrays for tensors; the dtypes of all leaves are noted."""
    import numpy as np

    if isinstance(data, (list, tuple)):
        return [_without_tensors(each, found) for each in data]
    given = host_copy(data, "tensor()") if isinstance(data, Tensor) else data
    if isinstance(given, (np.ndarray, np.generic)) and type(data) not in _NUMBERS:
        found.append(dtype_of(given.dtype))
        widened = given.dtype.name == "bfloat16"
        return given.astype(np.float32) if widened else given
    letter = np.array(given).dtype.kind
    if letter not in _DEFAULTS:
        raise UnfitValue(
            code="UnsupportedData", dtype=np.array(given).dtype.name, near=()
        )
    found.append(_DEFAULTS[letter])
    return given


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
    """The classes of the leaves of nested lists."""
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
    """The int of greatest magnitude in nested lists."""
    if not isinstance(data, (list, tuple)):
        return int(data)
    return max((_extreme(each) for each in data), key=abs)


def _check_range(given: "Elements", wanted: DType, facts: DTypeInfo) -> None:
    """Raise `ArithmeticRefused` for Python numbers outside of an integer dtype."""
    low, high = given.min().item(), given.max().item()
    # A NaN is not within any range.
    if facts.smallest <= low and high <= facts.largest:
        return
    if isinstance(low, int):
        raise too_large(high if high > facts.largest else low, wanted)
    raise ArithmeticRefused(
        code="NumberTooLarge",
        value=repr(low if facts.smallest > low else high),
        dtype=wanted.name,
        smallest=int(facts.smallest),
        largest=int(facts.largest),
    )


# What a tensor is made of, in the order of `Tensor.__init__`.
_PARTS = (
    *("_flat", "_shape", "_dtype", "_device", "key_bits"),
    *("_place", "_requires_grad", "_history", "number"),
)


def fill(made: Tensor, *given: Any, device: Device | str = "cpu") -> None:
    """Make a tensor what `Tensor(...)` says: of sizes, of data, or of nothing.

    `Tensor(2, 3)` has that shape and any elements, `Tensor([2, 3])` these elements, and
    `Tensor()` none; the dtype is float32.  `Tensor(other)` has the elements of a
    tensor.  Raises as `tensor`, and `UnfitValue` for a single number, and for several
    arguments that are not sizes; a device may come last.
    """
    if len(given) > 1 and isinstance(given[-1], (str, Device)):
        *given, device = given  # type: ignore[assignment]  # read, not kept
    if all(type(size) is int for size in given):
        found = empty_tensor(tuple(given) or (0,), FLOAT32, resolve_device(device))
    elif len(given) > 1 or isinstance(given[0], (bool, int, float, complex)):
        raise UnfitValue(
            asked="Tensor",
            found=", ".join(repr(each) for each in given)[:60],
            fits="sizes, or data in lists or an array",
            remedy="call `tensor`, which takes a number, a dtype and a device",
        )
    else:
        found = tensor(given[0], dtype=FLOAT32, device=device)
    for name in _PARTS:
        setattr(made, name, getattr(found, name))


FILL.set(fill)
