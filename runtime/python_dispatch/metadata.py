"""Metadata as operators: what a tensor says of itself, asked through the dispatcher.

True only here: the operators by which a handler is asked for the shape, the strides,
the device of its tensor, where the tensor was made so (`runtime.python_dispatch.
policies`).  For every other tensor the answer is read from its slots.  Beside them is
`set_`, which replaces what they read.

Rules:
- they are of namespace `core`, also those that are upstream's `prim`, which is that of
  an interpreter that this runtime does not have;
- a result is optional: a handler that returns None leaves the question to the slots;
- the kernels read slots, never the properties of a tensor: a property may ask;
- nothing is recorded: no result can have a gradient, and `set_` has no formula.
"""

from collections.abc import Callable
from math import prod
from typing import Any

from runtime.autograd.data import set_source
from runtime.autograd.install import kernels_of
from runtime.dispatch.dispatcher import default_dispatcher
from runtime.dispatch.kernel import direct, fallthrough
from runtime.dispatch.library import Library
from runtime.operators.call import NAMESPACE, core
from runtime.operators.install import ORIGIN
from runtime.schema import parse_schema
from runtime.schema.checked import checked
from runtime.schema.codes import Layout
from runtime.schema.device import Device
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.shape import is_contiguous as in_order
from runtime.tensors.tensor import Tensor, install

STRIDED = Layout.named("strided")


def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return len(self._shape)


def sym_size(self: Tensor) -> list[int]:
    """The sizes."""
    return [*self._shape]


def sym_numel(self: Tensor) -> int:
    """The number of elements."""
    return prod(self._shape)


def sym_stride(self: Tensor) -> list[int]:
    """The steps in the storage from one index to the next, in elements."""
    place = self._place
    return [*(contiguous_strides(self._shape) if place is None else place[2])]


def sym_storage_offset(self: Tensor) -> int:
    """The elements of the storage before the first one of the tensor."""
    place = self._place
    return 0 if place is None else place[1]


def is_contiguous(self: Tensor) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    place = self._place
    return place is None or in_order(self._shape, place[2])


def device(self: Tensor) -> Device:
    """Where the elements are."""
    return self._device


def layout(self: Tensor) -> Layout:
    """How the elements are arranged: every tensor of this runtime is strided."""
    return STRIDED


# The operator and what it reads.
OPERATORS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("dim(Tensor self) -> int?", dim),
    ("sym_size(Tensor self) -> SymInt[]?", sym_size),
    ("sym_numel(Tensor self) -> SymInt?", sym_numel),
    ("sym_stride(Tensor self) -> SymInt[]?", sym_stride),
    ("sym_storage_offset(Tensor self) -> SymInt?", sym_storage_offset),
    ("is_contiguous(Tensor self) -> bool?", is_contiguous),
    ("device(Tensor self) -> Device?", device),
    ("layout(Tensor self) -> Layout?", layout),
)

# What replaces all that they read.
SET = "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)"
EVERYWHERE = "CompositeExplicitAutograd"


def install_metadata(library: Library) -> None:
    """Define these operators in a library of namespace `core`."""
    for schema, function in OPERATORS:
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, direct(function, f"{name}_explicit"), EVERYWHERE)
        for key in ("Autograd", "ADInplaceOrView"):
            library.impl(name, fallthrough, key)
    library.define(SET, tags=("inplace", "inplace_view"))
    name = SET.partition("(")[0]
    library.impl(name, direct(set_source, "set__source_Tensor_explicit"), EVERYWHERE)
    for key, kernel in kernels_of(parse_schema(f"{NAMESPACE}::{SET}")):
        library.impl(name, kernel, key)


def set_(self: Tensor, source: Tensor) -> Tensor:
    """Have the elements of `source`, its shape and its strides, sharing memory.

    Raises `DoesNotFit`, and `NotReplaceable` for a view.
    """
    core.set__source_Tensor(self, source)
    return self


# It lives as long as the default dispatcher does.
LIBRARY = Library(NAMESPACE, "FRAGMENT", dispatcher=default_dispatcher(), origin=ORIGIN)
install_metadata(LIBRARY)
install("set_", checked(set_))
install("layout", property(layout, doc=layout.__doc__))
