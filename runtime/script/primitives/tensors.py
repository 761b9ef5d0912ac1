"""Values of any type, and tensors as values: identity, conversions, `item`, sizes.

What computes with tensors are operators of `core`; here is how a program gets Python's
values out of a tensor, is told of its form, and makes one of values.

Rules:
- `is` compares identity, which is that of Python's objects: of small ints it is what
  CPython makes of them;
- the hash of a str differs from one process to the next, and that of a tensor is its
  identity: `hash` is marked as not deterministic, so that no pass computes it early;
- a tensor of one element is its number; any other number of elements is refused by the
  tensor itself, as is a tensor without elements in memory;
- an int beyond 64 bits (of an unsigned tensor, or of a large float) is refused;
- what `item` and `tolist` give has a type that only the program knows: it says so by an
  annotation, which is checked where it stands;
- sizes are a list of ints, where Python has a tuple of a class of its own.
"""

import operator
from collections.abc import Iterator
from operator import attrgetter, methodcaller
from typing import Any

from runtime.autograd.modes import is_grad_enabled
from runtime.schema.codes import Device, DType
from runtime.script.primitives.numbers import bounded
from runtime.script.primitives.row import Row, Way, attribute, binary, call, method, row
from runtime.tensors.data import tensor

_HASHED = "1; 1.0; True; 'a'; None; (1, 'a'); 1j; [1]; nan; T0; MOST; -1"


def _device(type: str, index: int | None = None) -> Device:  # noqa: A002  # the field's own word
    return Device.parse(type if index is None else f"{type}:{index}")


def _object_rows() -> Iterator[Row]:
    samples = "T0, T0; T0, T1; None, None; True, None; 'a', None"
    schema = "is_.t(t a, u b) -> bool"
    yield row(schema, binary("is"), operator.is_, samples)
    schema = "is_not.t(t a, u b) -> bool"
    yield row(schema, binary("is not"), operator.is_not, samples)
    samples = "device('cpu'), device('cpu'); device('cuda:1'), device('cuda:0')"
    for symbol, name, function in (
        ("==", "eq", operator.eq),
        ("!=", "ne", operator.ne),
    ):
        schema = f"{name}.Device(Device a, Device b) -> bool"
        yield row(schema, binary(symbol), function, samples)
    samples = "'cpu'; 'cuda', 1; 'cuda:1'; 'cuda:x'"
    way = Way("function", Device, "device")
    schema = "device.text(str type, int? index=None) -> Device"
    yield row(schema, way, _device, samples, raises=True)
    for name, result, get in (
        ("type", "str", operator.attrgetter("type")),
        ("index", "int?", operator.attrgetter("index")),
    ):
        schema = f"{name}.Device(Device self) -> {result}"
        samples = "device('cpu'); device('cuda:1')"
        yield row(schema, attribute(name), get, samples)
    tags = ("nondeterministic_seeded",)
    way = Way("function", is_grad_enabled, "is_grad_enabled")
    # No constant: a `with` around it decides.
    yield row("is_grad_enabled.mode() -> bool", way, is_grad_enabled, "", tags=tags)
    schema = "hash.t(t object) -> int"
    yield row(schema, call(hash), hash, _HASHED, raises=True, tags=tags)


OBJECT_ROWS = tuple(_object_rows())


_ONE = "tensor(2); tensor([2.5]); tensor(True); tensor([1, 2]); tensor([])"


def _item(self: Any) -> Any:
    return self.item()


def _to_list(self: Any) -> Any:
    return self.tolist()


def _shape(self: Any) -> list[int]:
    return list(self.shape)


def _size_of(self: Any, dim: int) -> int:
    size: int = self.size(dim)
    return size


def _stride(self: Any) -> list[int]:
    return list(self.stride())


def _dtype(self: Any) -> int:
    code: int = self.dtype.code
    return code


def _tensor(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    kind = DType(dtype) if dtype.__class__ is int else dtype
    place = "cpu" if device is None else device
    return tensor(data, dtype=kind, device=place, requires_grad=requires_grad)


def _forms() -> Iterator[Row]:
    """What a tensor says of its form, and the making of one."""
    some = "tensor(2); tensor([[1.5], [2.5]]); tensor([]); META"
    yield row("shape.Tensor(Tensor self) -> int[]", attribute("shape"), _shape, some)
    yield row("size.Tensor(Tensor self) -> int[]", method("size"), _shape, some)
    schema = "size.dim(Tensor self, int dim) -> int"
    samples = "tensor([[1.5], [2.5]]), 0; tensor([[1.5], [2.5]]), -1; tensor([1]), 1"
    yield row(schema, method("size"), _size_of, samples, raises=True)
    yield row("stride.Tensor(Tensor self) -> int[]", method("stride"), _stride, some)
    schema = "T.Tensor(Tensor(a) self) -> Tensor(a)"
    turned = "tensor(2); tensor([[1.5], [2.5]]); tensor([[[1, 2]]]); tensor([])"
    yield row(schema, attribute("T"), attrgetter("T"), turned)
    schema = "mT.Tensor(Tensor(a) self) -> Tensor(a)"
    yield row(schema, attribute("mT"), attrgetter("mT"), turned, raises=True)
    schema = "dtype.Tensor(Tensor self) -> ScalarType"
    yield row(schema, attribute("dtype"), _dtype, some)
    for name, result in (
        ("ndim", "int"),
        ("device", "Device"),
        ("requires_grad", "bool"),
        ("is_cuda", "bool"),
        ("is_cpu", "bool"),
        ("is_meta", "bool"),
    ):
        schema = f"{name}.Tensor(Tensor self) -> {result}"
        yield row(schema, attribute(name), attrgetter(name), some)
    for name, result in (
        ("dim", "int"),
        ("numel", "int"),
        ("element_size", "int"),
        ("storage_offset", "int"),
        ("is_contiguous", "bool"),
        ("is_floating_point", "bool"),
        ("is_complex", "bool"),
    ):
        schema = f"{name}.Tensor(Tensor self) -> {result}"
        yield row(schema, method(name), methodcaller(name), some)
    schema = (
        "tensor.t(t data, *, ScalarType? dtype=None, Device? device=None,"
        " bool requires_grad=False) -> Tensor"
    )
    samples = "2; [1, 2]; [[1.5], [2.5]]; True; [[1], [1, 2]]"
    way = Way("function", tensor, "tensor")
    yield row(schema, way, _tensor, samples, raises=True)


def _rows() -> Iterator[Row]:
    to_int = bounded("int", int)
    samples = f"{_ONE}; tensor(1e19); tensor(1j); tensor(float('nan'))"
    yield row("int.Tensor(Tensor x) -> int", call(int), to_int, samples, raises=True)
    schema = "float.Tensor(Tensor x) -> float"
    yield row(schema, call(float), float, f"{_ONE}; tensor(1j)", raises=True)
    schema = "complex.Tensor(Tensor real) -> complex"
    yield row(schema, call(complex), complex, f"{_ONE}; tensor(1j)", raises=True)
    schema = "bool.Tensor(Tensor x) -> bool"
    yield row(schema, call(bool), bool, f"{_ONE}; tensor(0j)", raises=True)
    schema = "item.Tensor(Tensor self) -> Scalar"
    yield row(schema, method("item"), _item, f"{_ONE}; tensor(1j)", raises=True)
    schema = "tolist.Tensor(Tensor self) -> Any"
    samples = "tensor(2); tensor([1, 2]); tensor([[1.5], [2.5]]); tensor([]); META"
    yield row(schema, method("tolist"), _to_list, samples, raises=True)
    schema = "len.Tensor(Tensor obj) -> int"
    samples = "tensor([1, 2]); tensor([[1], [2]]); tensor([]); tensor(1)"
    yield row(schema, call(len), len, samples, raises=True)


ROWS = (*_rows(), *_forms())
