"""Methods: operators on tensors in Python's syntax, `x + y`, `x.sum(0)`, `x[1:]`.

Importing this module installs them on `Tensor`, by `runtime.tensors.tensor.install`:
Python's operators, a method for each public operator
(`runtime.operators.bindings.python_bindings.public`), and the handwritten methods of
`_SINGLE` and `runtime.operators.bindings.python_api`.

Rules:
- the other side of `+`, `<` and their like is a tensor, a number, or a NumPy array,
  which becomes a tensor; for any other object the method returns NotImplemented, so
  that Python tries that side or raises;
- `==` compares elements, so the hash is by identity; a comparison with a list is
  refused: Python would return False, which is never intended;
- a call with two tensors binds and converts nothing: `x + y` looks up its bound kernel
  on the published entry, where its call stub has put it (`runtime.dispatch.call_stub`);
  it stores nothing of an entry.  If the kernel is missing, or calls are being watched,
  it is an ordinary call;
- a method of the same name as an operator takes its arguments; sizes and dimensions may
  be separate arguments.
"""

from collections.abc import Callable
from typing import Any

from numpy import dtype

from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.dispatch.call_stub import LOOK, bits_of, remembered
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.watch import WATCH
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.keys import LOCAL, DispatchKey
from everyorder.runtime.operators.bindings import python_api, python_bindings
from everyorder.runtime.operators.bindings.python_bindings import (
    normalize_torch_call,
    public,
    read_operand,
)
from everyorder.runtime.operators.declare.handles import NAMESPACE, core, handle_of
from everyorder.runtime.operators.declare.plan import bad_shapes
from everyorder.runtime.operators.install import install as install_operators
from everyorder.runtime.operators.subscripts import get_item, set_item
from everyorder.runtime.schema.binding import returner, stored_default
from everyorder.runtime.schema.call_errors import checked
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.types import IntType, ListType, unwrap_optional
from everyorder.runtime.schema.values import present
from everyorder.runtime.tensors.dtype_info import NUMBERS
from everyorder.runtime.tensors.from_data import tensor
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor, install

# Python's operator -> the operator; `__r...__` swaps the two sides.
ARITHMETIC = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")

# The method that converts -> the dtype, as in torch.
CONVERSIONS = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}

Method = Callable[..., Any]

# The operators whose sides may be swapped: a number goes to the right, as in most
# calls.
COMMUTATIVE = frozenset(
    {"add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"},
)

_ABSENT = object()


def arithmetic(symbol: str, name: str) -> Method:
    """Return the method `symbol` of tensors, which calls the operator `name`."""
    run = handle_of(name)
    return _two_sided(symbol, run, _read(run))


def comparison(symbol: str, name: str) -> Method:
    """Return the method `symbol` of tensors, which calls the comparison `name`.

    The method raises `UnfitValue` for a list or tuple.
    """
    run = handle_of(name)
    read = _read(run)

    def other_side(self: Tensor, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            raise UnfitValue(
                asked=f"Tensor.{symbol}",
                found=f"a {type(other).__name__}",
                fits="a tensor, a number or an array",
                remedy="runtime.tensor(...) of it, or `.tolist()` of the tensor",
            )
        return read(self, other)

    return _two_sided(symbol, run, other_side)


def reflected(symbol: str, name: str) -> Method:
    """Return the method `symbol` for tensors on the right of the operator `name`."""
    run = handle_of(name)

    def exchanged(self: Tensor, other: Any) -> Any:
        ready = operand(other, self.device)
        return NotImplemented if ready is _ABSENT else run(ready, self)

    method = _read(run) if name in COMMUTATIVE else exchanged
    method.__name__ = method.__qualname__ = symbol
    return method


def matmul(self: Tensor, other: Any) -> Any:
    """Return `self @ other`."""
    ready = read_operand(other, self.device)
    return core.matmul(self, ready) if isinstance(ready, Tensor) else NotImplemented


def matmul_reflected(self: Tensor, other: Any) -> Any:
    """Return `other @ self` for an array `other`."""
    ready = read_operand(other, self.device)
    return core.matmul(ready, self) if isinstance(ready, Tensor) else NotImplemented


def operand(value: Any, device: Device) -> Any:
    """Return a tensor or number to compute with; arrays become tensors.

    Returns `_ABSENT` for any other object.

    Raises:
        UnfitValue: tensors do not support the dtype of the array.
    """
    if hasattr(value, "key_bits") or isinstance(value, (int, float, complex)):
        return value
    ready = read_operand(value, device)
    return _ABSENT if ready is value else ready


def _read(run: OperatorHandle) -> Method:
    """Return a method that runs the operator on `self` and the converted other side."""

    def method(self: Tensor, other: Any) -> Any:
        ready = operand(other, self.device)
        return NotImplemented if ready is _ABSENT else run(self, ready)

    return method


def _two_sided(symbol: str, run: OperatorHandle, other_side: Method) -> Method:
    """Return a method that leaves objects other than tensors to `other_side`."""
    callee = run._callee
    schema = run._schema
    key = callee.keyring.key(callee.caller(callee.current_entry()).reading)
    rest = [present(each.type, stored_default(each)) for each in schema.arguments[2:]]
    method: Method = _sides(len(rest))(
        *(callee.dispatcher, NAMESPACE, callee.text, key, run, returner(schema)),
        *(other_side, rest),
    )
    method.__name__ = method.__qualname__ = symbol
    return method


@template(
    "two sides",
    "_dispatcher, place, text, _key, run, _returns, other_side, rest",
    NUMBERS=frozenset(NUMBERS),
    Tensor=Tensor,
    _AttributeError=AttributeError,
    _LOCAL=LOCAL,
    _WATCH=WATCH,
)
def _sides(count: int) -> list[str]:
    """Return the text of a method for operators with `count` more arguments."""
    more = numbered(count)
    bits = bits_of(("self", "other"))
    body = [
        *block("try:", remembered("[place][text]", bits)),
        "except (AttributeError, KeyError):",
        "    return run(self, other)",
        "if _WATCH.active:",
        "    return run(self, other)",
        f"_result = _kernel(self, other, {more})",
        *LOOK,
        "return _result",
    ]
    body = [
        *block("if isinstance(other, Tensor):", body),
        "if type(other) in NUMBERS:",
        "    return run(self, other)",
        "return other_side(self, other)",
    ]
    unpacked = [f"{more}, = rest"] if count else []
    return [*unpacked, *block("def method(self, other):", body)]


def _method(name: str) -> Method:
    """Return the method that calls the operator, by the kinds of its arguments."""
    arguments = handle_of(name).schema.arguments[1:]
    if not arguments:
        return _without_arguments(name)
    if name.startswith("new_"):
        return _new(name)
    by_place = [each for each in arguments if not each.kwarg_only]
    if len(by_place) == 1 and unwrap_optional(by_place[0].type) == ListType(IntType):
        return _listed(name)
    return _general(name)


def _without_arguments(name: str) -> Method:
    """Return a method without arguments except the tensor."""
    run = handle_of(name)
    return python_bindings.describe(name, lambda self: run(self))


def _general(name: str) -> Method:
    """Return a method that takes any arguments of the operator."""
    return python_bindings.describe(name, python_bindings.plain(name))


def _listed(name: str) -> Method:
    """Return a method with a list of numbers, which may be separate arguments."""
    run = handle_of(name)

    def method(self: Tensor, *values: Any, **kwargs: Any) -> Any:
        if kwargs or not values:
            if len(values) > 1:
                values = (python_bindings.sizes(values),)
            try:
                return run(self, *values, **kwargs)
            except CallError as error:
                return normalize_torch_call(run, (self, *values), kwargs, error)
        return run(self, python_bindings.sizes(values))

    return python_bindings.describe(name, method)


def _view() -> Method:
    """Return the method `view`, of sizes or of a dtype."""
    of_sizes, of_dtype = handle_of("view"), handle_of("view_dtype")
    general = _listed("view")

    def view(self: Tensor, *values: Any, **kwargs: Any) -> Any:
        if kwargs or not values:
            if kwargs.keys() == {"dtype"}:
                return of_dtype(self, kwargs["dtype"])
            return general(self, *values, **kwargs)
        if type(values[0]) is DType:
            return of_dtype(self, *values)
        return of_sizes(self, python_bindings.sizes(values))

    return python_bindings.describe("view", view)


def _real(name: str) -> property:
    """Return the property `x.real` or `x.imag`, which can be assigned as well."""
    read = handle_of(name)

    def write(self: Tensor, value: Any) -> None:
        set_item(read(self), ..., value)

    return property(lambda self: read(self), write)


def _new(name: str) -> Method:
    """Return a method that makes a tensor of another size."""
    run = handle_of(name)
    # `new_full(size, fill_value)`: its size is one argument.
    filled = name == "new_full"

    def method(
        self: Tensor, *values: Any, requires_grad: bool = False, **options: Any
    ) -> Any:
        if filled and values:
            args: tuple[Any, ...] = (python_bindings.sizes(values[:1]), *values[1:])
        else:
            args = (python_bindings.sizes(values),) if values else ()
        tensor: Tensor = run(self, *args, **python_bindings.parse_options(options))
        return tensor.requires_grad_() if requires_grad else tensor

    return python_bindings.describe(name, method)


def _conversion(name: str, kind: DType) -> Method:
    def method(self: Tensor, *, memory_format: Any = None) -> Tensor:
        converted: Tensor = core.to(self, dtype=kind, memory_format=memory_format)
        return converted

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor with elements of dtype {kind}."
    return method


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Convert to a dtype and a device: `to(dtype)`, `to("cuda")`, `to(other)`.

    Raises:
        UnfitValue: tensors do not support the dtype, or a name is neither a device nor
            a dtype; other errors as in `core::to`.
    """
    options = dict(kwargs)
    places = ["non_blocking", "copy"]
    for value in args:
        if isinstance(value, Tensor):
            options.update(dtype=value.dtype, device=value.device)
        elif isinstance(value, (DType, type, dtype)):
            options["dtype"] = value
        elif isinstance(value, Device):
            options["device"] = value
        elif isinstance(value, str):
            options["dtype" if value in _DTYPES else "device"] = _place_name(value)
        elif value is not None:
            options[places.pop(0) if places else "more"] = value
    converted: Tensor = core.to(self, **python_bindings.parse_options(options))
    return converted


def _place_name(name: str) -> str:
    """Return the name of a device or a dtype.  Raises `UnfitValue` for any other."""
    if name in _DTYPES:
        return name
    try:
        Device.parse(name)
    except UnknownDevice as error:
        near = error.near or nearest(name, sorted(_DTYPES))
        raise UnfitValue(
            asked="Tensor.to",
            found=f"{name!r}, which is neither",
            fits="a device, a dtype or a tensor",
            near=near,
        ) from None
    return name


def pin_memory(self: Tensor) -> Tensor:
    """Return a copy in host memory that a CUDA device reads directly."""
    copied: Tensor = core._to_copy(self, pin_memory=True)
    return copied


def cpu(self: Tensor) -> Tensor:
    """Return the tensor in host memory: itself if it is there."""
    return to(self, "cpu")


def cuda(self: Tensor, device: Any = None) -> Tensor:
    """Return the tensor on a CUDA device: an index, a device, or the current one."""
    if isinstance(device, int):
        device = Device("cuda", device)
    return to(self, "cuda" if device is None else device)


def transposed(self: Tensor) -> Tensor:
    """Return a view with the dimensions in reverse order."""
    turned: Tensor = core.permute(self, range(len(self.shape) - 1, -1, -1))
    return turned


def matrices_transposed(self: Tensor) -> Tensor:
    """Return a view with the last two dimensions swapped.

    Raises:
        ShapesDoNotFit: the tensor has fewer than two dimensions.
    """
    if len(self.shape) < 2:
        raise bad_shapes(
            "there are no matrices",
            "at least two dimensions",
            ("self", self),
            call="Tensor.mT",
        )
    turned: Tensor = core.transpose(self, -2, -1)
    return turned


def like(name: str) -> Method:
    """Return a method that reshapes a tensor like another: `view_as`, ..."""
    run = handle_of(name)

    def method(self: Tensor, other: Tensor) -> Tensor:
        shaped: Tensor = run(self, list(other.shape))
        return shaped

    method.__name__ = method.__qualname__ = f"{name}_as"
    method.__doc__ = f"`{name}` to the shape of `other`."
    return method


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor with the dtype and on the device of `other`."""
    return to(self, other)


def reversed_places(self: Tensor) -> Tensor:
    """Return a tensor with the places of the first dimension in reverse order."""
    turned: Tensor = core.flip(self, [0]) if self.shape else self
    return turned


def positive(self: Tensor) -> Tensor:
    """Return the tensor itself."""
    return self


def untyped_storage(self: Tensor) -> Storage:
    """Return `storage()`, by torch's name."""
    return self.storage()


def is_inference(self: Tensor) -> bool:
    """Return True if the tensor was made in inference mode."""
    return not self.key_bits & _OUTSIDE


# Every tensor that was not made in inference mode has this key.
_OUTSIDE = DispatchKey.ADInplaceOrView.bits


def is_nonzero(self: Tensor) -> bool:
    """Return True if the one element is not zero.

    Raises:
        BadSize: the tensor does not have exactly one element.
        NoData: the tensor is on `meta`.
    """
    return bool(self)


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a copy of `data` with the dtype and on the device of `self`.

    Raises as `tensor` does.
    """
    return tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return the elements of `self` where the condition holds, else of `other`."""
    chosen: Tensor = core.where(condition, self, other)
    return chosen


_DTYPES = frozenset({*DType.NAMES, *DType.SYNONYMS})


def install_methods() -> None:
    """Install every method and Python operator on `Tensor`."""
    install_operators()
    for name, each in public().items():
        if each.method and name not in (*python_api.HANDWRITTEN, "view"):
            install(name, _method(name))
    for symbol, name in ARITHMETIC.items():
        install(f"__{symbol}__", arithmetic(f"__{symbol}__", name))
        install(f"__i{symbol}__", arithmetic(f"__i{symbol}__", f"{name}_"))
        install(f"__r{symbol}__", reflected(f"__r{symbol}__", name))
    for name in COMPARISONS:
        install(f"__{name}__", comparison(f"__{name}__", name))
    for name, kind in CONVERSIONS.items():
        install(name, checked(_conversion(name, DType.named(kind))))
    for name in ("view", "reshape", "expand"):
        install(f"{name}_as", checked(like(name)))
    install("view", checked(_view()))
    for name in ("real", "imag"):
        install(name, _real(name))
    for name, method in python_api.HANDWRITTEN.items():
        install(name, method)
    for name, single in _SINGLE.items():
        # Python itself calls the methods of its operators, always with the right
        # arguments.
        if isinstance(single, property) or name.startswith("__"):
            install(name, single)
        else:
            install(name, checked(single))


_SINGLE: dict[str, Method | property] = {
    "__abs__": lambda self: core.abs(self),
    "__getitem__": get_item,
    "__invert__": lambda self: core.bitwise_not(self),
    "__matmul__": matmul,
    "__rmatmul__": matmul_reflected,
    "__neg__": lambda self: core.neg(self),
    "__pos__": positive,
    "__reversed__": reversed_places,
    "__setitem__": set_item,
    # NumPy's scalars and arrays defer the operation to the tensor (torch's number).
    "__array_priority__": property(lambda self: 1000),
    "T": property(transposed),
    "clamp_": python_api.clamp_,
    "bernoulli_": python_api.bernoulli_,
    "clip_": python_api.clamp_,
    "fill_": python_api.fill_,
    "index_fill_": python_api.index_fill_,
    "lerp_": python_api.lerp_,
    "masked_fill_": python_api.masked_fill_,
    "round_": python_api.round_,
    "cpu": cpu,
    "cuda": cuda,
    "is_inference": is_inference,
    "is_nonzero": is_nonzero,
    "mT": property(matrices_transposed),
    "new_tensor": new_tensor,
    "pin_memory": pin_memory,
    "random_": python_api.random_,
    "scatter_": python_api.scatter_,
    "to": to,
    "type_as": type_as,
    "untyped_storage": untyped_storage,
    "where": where,
}


install_methods()
