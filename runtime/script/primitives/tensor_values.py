"""Primitives of any values, and of tensors: identity, conversions, `item`, sizes.

Operators of `core` compute with tensors; these primitives read Python values out of a
tensor, query its form, and create tensors from values.

Rules:
- `is` compares the identity of Python objects: for small ints it depends on CPython's
  cache;
- the hash of a str differs from one process to the next, and that of a tensor is its
  identity: `hash` is marked as not deterministic, so that no pass computes it early;
- a tensor of one element converts to its number; the tensor itself refuses any other
  number of elements, and a tensor without storage;
- an int beyond 64 bits (of an unsigned tensor, or of a large float) is refused;
- only the program knows the types of the results of `item` and `tolist`: it declares
  them by an annotation, which is checked at run time;
- sizes are a list of ints, where Python has `Size`, a subclass of tuple;
- an index tensor of integers without dimensions counts as an int, as in Python, so that
  the part it selects is a view: only at run time is it known which tensors are so.
"""

import builtins
import operator
from collections.abc import Iterator
from operator import attrgetter, methodcaller
from typing import Any

from everyorder.runtime.autograd.engine import backward, grad
from everyorder.runtime.autograd.grad_mode import is_grad_enabled
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.script.primitives.numbers import bounded
from everyorder.runtime.script.primitives.primitive_row import (
    PrimitiveRow,
    Way,
    attributes,
    call,
    functions,
    methods,
    operators,
    row,
)
from everyorder.runtime.tensors.from_data import as_tensor, tensor
from everyorder.runtime.tensors.generator import manual_seed
from everyorder.runtime.tensors.tensor import Tensor

# Tags of primitives whose results differ between processes, or between places.
_CHANGES = ("nondeterministic_seeded",)


# Tags of primitives that change what other values read.
_UNKNOWN = ("maybe_aliasing_or_mutating",)


def _number(x: bool) -> bool:
    return x


def _seed(seed: int) -> None:
    manual_seed(seed)


def _device(type: str, index: int | None = None) -> Device:  # noqa: A002  # the field's own word
    return Device.parse(type if index is None else f"{type}:{index}")


OBJECT_ROWS = (
    *operators(
        """
is_.t(t a, u b) -> bool
    T0, T0; T0, T1; None, None; True, None; 'a', None
is_not.t(t a, u b) -> bool
    T0, T0; T0, T1; None, None; True, None; 'a', None
eq.Device(Device a, Device b) -> bool
    device('cpu'), device('cpu'); device('cuda:1'), device('cuda:0')
ne.Device(Device a, Device b) -> bool
    device('cpu'), device('cpu'); device('cuda:1'), device('cuda:0')
"""
    ),
    row(
        "device.text(str type, int? index=None) -> Device",
        Way("function", Device, "device"),
        _device,
        "'cpu'; 'cuda', 1; 'cuda:1'; 'cuda:x'",
        raises=True,
    ),
    *attributes("""
type.Device(Device self) -> str
    device('cpu'); device('cuda:1')
index.Device(Device self) -> int?
    device('cpu'); device('cuda:1')
"""),
    # Not a constant: an enclosing `with` may change it.
    row(
        "is_grad_enabled.mode() -> bool",
        Way("function", is_grad_enabled, "is_grad_enabled"),
        is_grad_enabled,
        "",
        tags=_CHANGES,
    ),
    row(
        "number.bool(bool x) -> Scalar",
        Way("function", _number, "ops.script.number"),
        _number,
        "True; False",
    ),
    # Changes the numbers of every operator that draws some.
    row(
        "manual_seed.int(int seed) -> ()",
        Way("function", _seed, "ops.script.manual_seed"),
        _seed,
        "3; LEAST",
        tags=_UNKNOWN,
    ),
    row(
        "hash.t(t object) -> int",
        call(hash),
        hash,
        "1; 1.0; True; 'a'; None; (1, 'a'); 1j; [1]; nan; T0; MOST; -1",
        raises=True,
        tags=_CHANGES,
    ),
)


_ONE = "tensor(2); tensor([2.5]); tensor(True); tensor([1, 2]); tensor([])"


def _shape(self: Any) -> list[int]:
    return list(self.shape)


def _size_of(self: Any, dim: int) -> int:
    size: int = self.size(dim)
    return size


def _stride(self: Any) -> list[int]:
    return list(self.stride())


def _stride_of(self: Any, dim: int) -> int:
    stride: int = self.stride(dim)
    return stride


def _dtype(self: Any) -> int:
    code: int = self.dtype.code
    return code


def _layout(self: Any) -> int:
    code: int = self.layout.code
    return code


def _type(self: Any, dtype: Any) -> Any:
    return self.type(DType(dtype) if dtype.__class__ is int else dtype)


def _requires_grad_(self: Any, requires_grad: bool) -> Any:
    return self.requires_grad_(requires_grad)


def _backward(self: Any, *options: Any) -> None:
    self.backward(*options)


def _grad(*arguments: Any) -> list[Any]:
    return [*grad(*arguments)]


def _as_tensor(data: Any, dtype: Any, device: Any) -> Any:
    return as_tensor(data, dtype=None if dtype is None else DType(dtype), device=device)


def _tensor(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Any:
    kind = DType(dtype) if dtype.__class__ is int else dtype
    place = "cpu" if device is None else device
    return tensor(data, dtype=kind, device=place, requires_grad=requires_grad)


def _part(self: Any, indices: list[Any]) -> Any:
    """Return `self[indices]`; None keeps a dimension."""
    return self[_subscript(indices)]


def _set_part(self: Any, indices: list[Any], values: Any) -> None:
    """Assign `self[indices] = values`; None keeps a dimension."""
    self[_subscript(indices)] = values


def _subscript(indices: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


def _spread(self: Any, first: list[Any], last: list[Any]) -> list[Any]:
    """Return the indices of all dimensions, with None between the two lists."""
    covered = sum(
        1 if each is None or each.dtype is not _BOOL else each.dim()
        for each in (*first, *last)
    )
    return [*first, *[None] * (self.dim() - covered), *last]


def _gradient_rows() -> Iterator[PrimitiveRow]:
    """Yield the functions of autograd, for one tensor or several in each place."""
    graph = "(x := tensor(2.5, requires_grad=True)) * 2"
    given = {
        "Tensor": ("one", "{}", "Tensor?"),
        "Tensor[]": ("list", "[{}]", "Tensor?[]?"),
    }
    for outputs, (name, output, seeds) in given.items():
        yield row(
            f"autograd_backward.{name}({outputs} tensors, {seeds} grad_tensors=None, "
            "bool? retain_graph=None, bool create_graph=False) -> ()",
            Way("function", backward, "backward"),
            backward,
            f"{output.format(graph)}; {output.format('tensor(2.5)')}",
            raises=True,
            tags=_UNKNOWN,
        )
        for inputs, (other, place, _) in given.items():
            yield row(
                f"autograd_grad.{name}_{other}({outputs} outputs, {inputs} inputs, "
                f"{seeds} grad_outputs=None, bool? retain_graph=None, "
                "bool create_graph=False, bool? allow_unused=None, "
                "bool materialize_grads=False) -> Tensor?[]",
                Way("function", grad, "grad"),
                _grad,
                f"{output.format(graph)}, {place.format('x')}; "
                f"{output.format(graph)}, {place.format('tensor(2.5)')}",
                raises=True,
                tags=_UNKNOWN,
            )


_BOOL = DType.named("bool")
_SOME = "tensor(2); tensor([[1.5], [2.5]]); tensor([]); META"
_TURNED = "tensor(2); tensor([[1.5], [2.5]]); tensor([[[1, 2]]]); tensor([])"
_ATTRIBUTES = {
    **dict.fromkeys(("ndim", "itemsize", "nbytes"), "int"),
    "device": "Device",
    "requires_grad": "bool",
    **dict.fromkeys(("is_leaf", "is_cuda", "is_cpu", "is_meta"), "bool"),
    "retains_grad": "bool",
}
_METHODS = {
    **dict.fromkeys(("dim", "numel", "element_size", "storage_offset"), "int"),
    **dict.fromkeys(("is_contiguous", "is_floating_point", "is_complex"), "bool"),
    **dict.fromkeys(("is_signed", "is_inference"), "bool"),
}

ROWS = (
    # Numbers of tensors with one element.
    *functions(
        builtins,
        f"""
int.Tensor(Tensor x) -> int  raises
    {_ONE}; tensor(1e19); tensor(1j); tensor(float('nan'))
float.Tensor(Tensor x) -> float  raises
    {_ONE}; tensor(1j)
complex.Tensor(Tensor real) -> complex  raises
    {_ONE}; tensor(1j)
bool.Tensor(Tensor x) -> bool  raises
    {_ONE}; tensor(0j)
len.Tensor(Tensor obj) -> int  raises
    tensor([1, 2]); tensor([[1], [2]]); tensor([]); tensor(1)
""",
        {"int": bounded("int", int)},
    ),
    *methods(
        Tensor,
        f"""
item.Tensor(Tensor self) -> Scalar  raises
    {_ONE}; tensor(1j)
tolist.Tensor(Tensor self) -> Any  raises
    tensor(2); tensor([1, 2]); tensor([[1.5], [2.5]]); tensor([]); META
size.Tensor(Tensor self) -> int[]
    {_SOME}
size.dim(Tensor self, int dim) -> int  raises
    tensor([[1.5], [2.5]]), 0; tensor([[1.5], [2.5]]), -1; tensor([1]), 1
stride.Tensor(Tensor self) -> int[]
    {_SOME}
stride.dim(Tensor self, int dim) -> int  raises
    tensor([[1.5], [2.5]]), 0; tensor([[1.5], [2.5]]), -1; tensor([1]), 1
requires_grad_.Tensor(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)  raises
    tensor(2); tensor(2.5); tensor(2.5), False
detach_.Tensor(Tensor(a!) self) -> Tensor(a!)
    tensor(2.5, requires_grad=True); tensor([1])
is_nonzero.Tensor(Tensor self) -> bool  raises
    {_ONE}; tensor(0j)
type.ScalarType(Tensor(a) self, ScalarType dtype) -> Tensor(a)
    tensor([1, 2]), float32; T0, float32
""",
        {
            "is_nonzero": methodcaller("is_nonzero"),
            "type": _type,
            "requires_grad_": _requires_grad_,
            "detach_": methodcaller("detach_"),
            "item": methodcaller("item"),
            "tolist": methodcaller("tolist"),
            "size.Tensor": _shape,
            "size.dim": _size_of,
            "stride.Tensor": _stride,
            "stride.dim": _stride_of,
        },
    ),
    *attributes(
        f"""
shape.Tensor(Tensor self) -> int[]
    {_SOME}
T.Tensor(Tensor(a) self) -> Tensor(a)
    {_TURNED}
data.Tensor(Tensor(a) self) -> Tensor(a)
    {_TURNED}
mT.Tensor(Tensor(a) self) -> Tensor(a)  raises
    {_TURNED}
dtype.Tensor(Tensor self) -> ScalarType
    {_SOME}
layout.Tensor(Tensor self) -> Layout
    {_SOME}
""",
        {"shape": _shape, "dtype": _dtype, "layout": _layout},
    ),
    *attributes(
        "\n".join(
            f"{name}.Tensor(Tensor self) -> {result}\n    {_SOME}"
            for name, result in _ATTRIBUTES.items()
        )
    ),
    *methods(
        Tensor,
        "\n".join(
            f"{name}.Tensor(Tensor self) -> {result}\n    {_SOME}"
            for name, result in _METHODS.items()
        ),
        {name: methodcaller(name) for name in _METHODS},
    ),
    # The gradients are those of any tensor that was computed with.
    row(
        "grad.Tensor(Tensor self) -> Tensor?",
        Way("attribute", "grad", "{0}.grad"),
        attrgetter("grad"),
        _SOME,
        tags=_UNKNOWN,
    ),
    row(
        "backward.Tensor(Tensor self, Tensor? gradient=None, "
        "bool? retain_graph=None, bool create_graph=False) -> ()",
        Way("method", "backward", "backward"),
        _backward,
        "tensor(2.5, requires_grad=True); tensor(2.5)",
        raises=True,
        tags=_UNKNOWN,
    ),
    row(
        "retain_grad.Tensor(Tensor self) -> ()",
        Way("method", "retain_grad", "retain_grad"),
        methodcaller("retain_grad"),
        "tensor(2.5, requires_grad=True); tensor(2.5)",
        raises=True,
        tags=_UNKNOWN,
    ),
    *_gradient_rows(),
    row(
        "as_tensor.Tensor(Tensor(a) data, *, ScalarType? dtype=None,"
        " Device? device=None) -> Tensor(a)",
        Way("function", as_tensor, "as_tensor"),
        _as_tensor,
        "T0; tensor(2)",
    ),
    row(
        "as_tensor.t(t data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
        Way("function", as_tensor, "as_tensor"),
        _as_tensor,
        "2; [1, 2]; [[1.5], [2.5]]; True; [[1], [1, 2]]",
        raises=True,
    ),
    row(
        "as_int.Tensor(Tensor x) -> int",
        Way("function", operator.index, "ops.script.as_int"),
        bounded("int", operator.index),
        "tensor(2); tensor([3]); tensor(2.5); tensor([1, 2]); tensor(True); tensor([])",
        raises=True,
    ),
    row(
        "part.Tensor(Tensor(a) self, Tensor?[] indices) -> Tensor(a)",
        Way("function", _part, "ops.script.part"),
        _part,
        "tensor([1, 2]), [tensor(1)]; tensor([[1, 2]]), [None, tensor([0])];"
        " tensor([1, 2]), [tensor(5)]",
        raises=True,
    ),
    row(
        "set_part.Tensor(Tensor(a!) self, Tensor?[] indices, Tensor values) -> ()",
        Way("function", _set_part, "ops.script.set_part"),
        _set_part,
        "tensor([1, 2]), [tensor(1)], T0; tensor([[1, 2]]), [None, tensor([0])], T0;"
        " tensor([1, 2]), [tensor(5)], T0",
        raises=True,
    ),
    row(
        "spread.Tensor(Tensor self, Tensor?[] first, Tensor?[] last) -> Tensor?[]",
        Way("function", _spread, "ops.script.spread"),
        _spread,
        "tensor([[1, 2]]), [], [T0]; tensor([[[1]]]), [T0], [None, T2]; T0, [], []",
    ),
    row(
        "tensor.t(t data, *, ScalarType? dtype=None, Device? device=None,"
        " bool requires_grad=False) -> Tensor",
        Way("function", tensor, "tensor"),
        _tensor,
        "2; [1, 2]; [[1.5], [2.5]]; True; [[1], [1, 2]]",
        raises=True,
    ),
)
