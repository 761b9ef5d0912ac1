"""Policies: tensors that ask their handler for shape, strides, device or layout.

| policy                                    | asks                                    |
|-------------------------------------------|-----------------------------------------|
| `dispatch_sizes_strides_policy="strides"` | `is_contiguous`, `sym_stride`           |
| `dispatch_sizes_strides_policy="sizes"`   | these, and `dim`, `sym_size`,           |
|                                           | `sym_numel`, `sym_storage_offset`       |
| `dispatch_device`                         | `device`                                |
| `dispatch_layout`                         | `layout`                                |

How it works: the first tensor of a class that is made with a policy puts properties on
this class that ask; tensors of other classes never come here.  Asking is calling the
operator of that name, so that modes, rules and contexts have their say as for any other
call.  These operators are registered here, with `set_`, which replaces what they read;
and here one element of a handled tensor is read by an operator, as for `item()`.

Rules:
- the operators are of namespace `core`, also those that are upstream's `prim`, which is
  that of an interpreter that this runtime does not have; no result of theirs can have a
  gradient, so nothing is recorded, and `set_` has no formula;
- their kernels read slots, never the properties of a tensor: a property may ask;
- what a handler tells is of the operator's type, and no number is negative;
- a handler that answers None gets the default, the value that the tensor was made with;
  NotImplemented is the error that it is for every operator, and names the operator;
- where dispatch to Python is switched off the operator's kernel answers: the default;
- what a class defines itself is left alone: it asks by `super()` if it wants to.
"""

from collections.abc import Callable
from contextlib import ExitStack
from inspect import getattr_static
from math import prod
from typing import Any

from runtime.autograd.install import kernels_of
from runtime.autograd.methods import set_source
from runtime.dispatch.dispatcher import default_dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.kernel import direct, fallthrough
from runtime.dispatch.library import Library
from runtime.errors.python_dispatch import SubclassError
from runtime.hooks import APPLY_POLICY, ELEMENT
from runtime.operators.call import NAMESPACE, core
from runtime.operators.install import ORIGIN
from runtime.schema import parse_schema
from runtime.schema.calls import checked
from runtime.schema.codes import Device, Layout, MemoryFormat
from runtime.tensors.keys import PYTHON
from runtime.tensors.shape import contiguous_strides, lies
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

    Raises `NotReplaceable` for a view.
    """
    core.set__source_Tensor(self, source)
    return self


# What a tensor's `_policy` is made of; sizes come with strides.
STRIDES, SIZES, DEVICE, LAYOUT = 1, 2, 4, 8
# The answers to these are numbers, or whether something is so.
COUNTS = STRIDES | SIZES

WORDS: dict[str | None, int] = {None: 0, "strides": STRIDES, "sizes": COUNTS}

# What kernels read of a tensor with elements: told something else, they would read
# and write beside them.
_READ = ("shape", "dtype", "key_bits")


def check_slots(cls: type, call: str) -> None:
    """Whether a class leaves alone what kernels read.  Raises `SubclassError`."""
    for name in _READ:
        # What a policy has put there asks the handler, and else Tensor.
        own = getattr(cls, name)
        if own is not getattr(Tensor, name) and own is not ASKING.get(name):
            raise SubclassError(
                code="NotATensorClass",
                call=call,
                argument="cls",
                expected=f"a class that leaves `{name}` to Tensor, as kernels read it,",
                found=f"the class {cls.__name__}, which has its own",
            )


def set_policy(made: Tensor, sizes: str | None, device: bool, layout: bool) -> None:
    """Have the handler of a new tensor asked.  Raises `SubclassError`."""
    if not isinstance(sizes, str | None) or sizes not in WORDS:
        raise SubclassError(
            code="UnknownPolicy",
            cls=type(made).__name__,
            found=str(sizes),
            known=tuple(word for word in WORDS if word is not None),
        )
    policy = WORDS[sizes] | (DEVICE if device else 0) | (LAYOUT if layout else 0)
    if policy:
        apply_policy(made, policy)


def apply_policy(made: Tensor, policy: int) -> None:
    """Have the handler of a tensor asked, as `policy` says, a sum of the four above."""
    kind = type(made)
    for name, asking in ASKING.items():
        # Its own is put beside; that of a class between stays.
        if getattr_static(kind, name) is getattr_static(Tensor, name):
            setattr(kind, name, asking)
    made._policy = policy


def _answer(
    tensor: Tensor, bit: int, func: OperatorHandle, default: Callable[[Tensor], Any]
) -> Any:
    # Of its class there may be tensors without a policy, and without a handler.
    if tensor.key_bits & PYTHON and getattr(tensor, "_policy", 0) & bit:
        found = func(tensor)
        if found is not None:
            if bit & COUNTS:
                _check_counts(tensor, func, found)
            return found
    return default(tensor)


def _check_counts(tensor: Tensor, func: OperatorHandle, found: int | list[int]) -> None:
    """Whether no size, stride, ... is negative.  Raises `SubclassError`."""
    numbers = found if isinstance(found, list) else [found]
    if min(numbers, default=0) < 0:
        raise SubclassError(
            code="WrongMetadata",
            cls=type(tensor).__name__,
            operator=str(func),
            found=str(found),
        )


def _asking(
    bit: int, default: Callable[[Tensor], Any], convert: Callable[[Any], Any] | None
) -> Callable[[Tensor], Any]:
    func: OperatorHandle = getattr(core, default.__name__)

    if convert is None:

        def ask(self: Tensor) -> Any:
            return _answer(self, bit, func, default)

    else:

        def ask(self: Tensor) -> Any:
            return convert(_answer(self, bit, func, default))

    ask.__doc__ = default.__doc__
    return ask


def _property(
    name: str,
    bit: int,
    default: Callable[[Tensor], Any],
    convert: Callable[[Any], Any] | None = None,
) -> tuple[str, property]:
    # What is refused to be set on a tensor is refused on this one, too.
    setter = getattr_static(Tensor, name).fset
    asking = _asking(bit, default, convert)
    return name, property(asking, setter, doc=default.__doc__)


def _method(
    name: str, bit: int, default: Callable[[Tensor], Any]
) -> tuple[str, Callable[[Tensor], Any]]:
    method = _asking(bit, default, None)
    method.__name__ = method.__qualname__ = name
    return name, method


def _in_order(
    asking: Callable[[Tensor], Any],
) -> Callable[[Tensor, MemoryFormat | None], Any]:
    """`is_contiguous` of a format; of none, what a handler says."""

    def is_contiguous(self: Tensor, memory_format: MemoryFormat | None = None) -> Any:
        if memory_format is None:
            return asking(self)
        return lies(self.shape, self.strides, memory_format)

    is_contiguous.__doc__ = Tensor.is_contiguous.__doc__
    return is_contiguous


def _as_layout(found: Layout | int) -> Layout:
    # Operators return codes as ints.
    return found if isinstance(found, Layout) else Layout(found)


def read(tensor: Tensor) -> Any:
    """The one element, as the handler gives it."""
    return core._local_scalar(tensor)


# An import that is interrupted takes back what it has registered: it can be repeated.
with ExitStack() as undo:
    # It lives as long as the default dispatcher does.
    LIBRARY = undo.enter_context(
        Library(NAMESPACE, "FRAGMENT", dispatcher=default_dispatcher(), origin=ORIGIN)
    )
    install_metadata(LIBRARY)
    install("set_", checked(set_))
    install("layout", property(layout, doc=layout.__doc__))
    # What is put on a class; every other property of a tensor is computed from these.
    ASKING: dict[str, Any] = dict(
        (
            _property("shape", SIZES, sym_size, tuple),
            _property("ndim", SIZES, dim),
            _method("dim", SIZES, dim),
            _method("numel", SIZES, sym_numel),
            _property("offset", SIZES, sym_storage_offset),
            _method("storage_offset", SIZES, sym_storage_offset),
            _property("strides", STRIDES, sym_stride, tuple),
            ("is_contiguous", _in_order(_asking(STRIDES, is_contiguous, None))),
            _property("device", DEVICE, device),
            _property("layout", LAYOUT, layout, _as_layout),
        )
    )
    APPLY_POLICY.set(apply_policy)
    ELEMENT.set(read)
    undo.pop_all()
