"""Samples and trials: repeated calls of an operator, on copies of one call's values.

A `Sample` is the call that `opcheck` checks; a `SampleCall` is one run of it, with a
picture of its arguments before and after.

Rules:
- the caller's own values are only read: the operator is called with copies. A copy of a
  tensor has the shape, the strides, the offset and the keys of the original, on a copy
  of its whole storage; tensors that share a storage share its copy, and copies do not
  require grad. Immutable values (numbers, texts, dtypes) are passed on;
- a call restores the state of the default generator, so that all calls draw the same
  numbers;
- elements are compared by their bytes, so that a NaN equals only itself; a storage is
  compared as a whole, so that writes outside of a view are detected;
- a byte in an argument that is declared as written may change, no matter which other
  arguments contain it;
- the test for shared memory is the same as for every call of a custom operator
  (`runtime.custom.kernel`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from everyorder.runtime.custom.kernel import named_tensors, shares
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.keys import BACKEND_BITS, DispatchKey
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.values import BY_VALUE, same
from everyorder.runtime.tensors.construction import place_on
from everyorder.runtime.tensors.dtype_info import itemsize
from everyorder.runtime.tensors.generator import default_generator
from everyorder.runtime.tensors.keys import keys_of
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place, strided

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


META = Device("meta")
_META_BIT = DispatchKey.Meta.bits & BACKEND_BITS
# Immutable values.
_LASTING = (type(None), bool, int, float, complex, str, DType, Device)


class Copier:
    """A copier of values that preserves sharing between them.

    `apart` gives each tensor a separate storage; `meta` does not copy elements; `given`
    are replacements for tensors, by the `id` of these.
    """

    def __init__(
        self,
        *,
        apart: bool = False,
        meta: bool = False,
        given: Mapping[int, Tensor] | None = None,
    ) -> None:
        self._apart = apart
        self._meta = meta
        self._tensors = dict(given or {})
        self._storages: dict[int, Storage] = {}

    def values(self, values: Sequence[Any]) -> list[Any]:
        """Return copies of the values, in a new list."""
        return [self.value(each) for each in values]

    def value(self, value: Any) -> Any:
        """Return a copy of one value."""
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, _LASTING):
            return value
        if type(value) in (list, tuple):
            return type(value)(map(self.value, value))
        if type(value) is dict:
            return {key: self.value(each) for key, each in value.items()}
        from copy import deepcopy

        return deepcopy(value)

    def tensor(self, tensor: Tensor) -> Tensor:
        """Return a copy of a tensor."""
        copy = self._tensors.get(id(tensor))
        if copy is None:
            storage, offset, strides = ensure_place(tensor)
            layout = tensor.shape, strides, offset, tensor.dtype
            bits = tensor.key_bits
            if self._meta:
                bits = _on_meta(bits, tensor.device)
            copy = place_on(self._storage(storage), *layout, bits)
            if not self._meta:
                copy.number = tensor.number
            self._tensors[id(tensor)] = copy
        return copy

    def _storage(self, storage: Storage) -> Storage:
        copy = self._storages.get(id(storage))
        if copy is None or self._apart:
            if self._meta:
                copy = Storage(None, META, storage.dtype, storage.count)
            else:
                copy = storage.copy()
            self._storages[id(storage)] = copy
        return copy


def _on_meta(bits: int, device: Device) -> int:
    """Return the keys of a tensor as if it were on meta."""
    if bits == keys_of(device.type).bits:
        return keys_of("meta").bits
    return bits & ~BACKEND_BITS | _META_BIT


def first_paragraph(error: Exception) -> str:
    """Return the text of an error up to the first empty line, on one line."""
    return " ".join(str(error).partition("\n\n")[0].split())


def equal(one: Any, other: Any) -> bool:
    """Return True if two results that are not tensors are equal; objects by their
    type.
    """
    if isinstance(one, float) and isinstance(other, float) and one != one:
        return other != other
    if type(one) in BY_VALUE or type(other) in BY_VALUE:
        return same(one, other)
    return type(one) is type(other)


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A tensor among values: its position, and its name."""

    place: int
    label: str
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Sample:
    """A call of `handle`, every argument bound, in schema order."""

    handle: OperatorHandle
    schema: Schema
    tags: tuple[str, ...]
    call: str
    values: tuple[Any, ...]
    rtol: float | None = None
    atol: float | None = None

    def about(self, test: str) -> dict[str, Any]:
        """Return the fields of a finding that describe the checked call."""
        operator = str(self.schema.name)
        schema = str(self.schema)
        return {"test": test, "operator": operator, "call": self.call, "schema": schema}

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Call the operator; its exceptions propagate."""
        state = default_generator.get_state()
        try:
            return self.handle.call_boxed(values)
        finally:
            default_generator.set_state(state)

    def arguments(self, values: Sequence[Any]) -> tuple[TensorPart, ...]:
        """Return the tensors among the arguments."""
        names = [argument.name for argument in self.schema.arguments]
        surplus = [f"value {place}" for place in range(len(names), len(values))]
        return parts_of([*names, *surplus], values)

    def results(self, values: Sequence[Any]) -> tuple[TensorPart, ...]:
        """Return the tensors among the results."""
        return parts_of(self.result_labels(len(values)), values)

    def result_labels(self, count: int) -> list[str]:
        """Return the names of `count` results in findings."""
        names = [each.name for each in self.schema.returns]
        names += [""] * (count - len(names))
        return [
            f"result `{name}`" if name else f"result {number}"
            for number, name in enumerate(names)
        ]

    def is_written(self, part: TensorPart) -> bool:
        """Return True if the schema declares that the argument is written to."""
        arguments = self.schema.arguments
        return part.place < len(arguments) and arguments[part.place].is_write


def parts_of(labels: Sequence[str], values: Sequence[Any]) -> tuple[TensorPart, ...]:
    """Return the tensors among values, also inside containers; `labels` may be
    longer.
    """
    pairs = zip(labels, values, strict=False)
    return tuple(
        TensorPart(place, name, tensor)
        for place, (label, value) in enumerate(pairs)
        for name, tensor in named_tensors([label], [value], dicts=True)
    )


Bounds = tuple[tuple[int, ...], tuple[int, ...], int]


def shared(one: Tensor, other: Tensor) -> str:
    """Return how two tensors share memory, in words; empty if they do not."""
    if not shares(one, other):
        return ""
    if one is other:
        return "they are one object"
    on_one = ensure_place(one)[0] is ensure_place(other)[0]
    return "they are on one storage" if on_one else "their memory overlaps"


def bytes_of(storage: Storage) -> Bytes | None:
    """Return a copy of the bytes of a storage; None on `meta`."""
    elements = storage.numpy()
    return None if elements is None else elements.view(np.uint8).copy()


def shown_bytes(tensor: Tensor, layout: Bounds, size: int) -> np.ndarray[Any, Any]:
    """Return a mask of the `size` bytes of its storage that the tensor occupies."""
    mask = np.zeros(size, np.bool_)
    shape, strides, offset = layout
    width = itemsize(tensor.dtype)
    steps = (*(stride * width for stride in strides), 1)
    if tensor.numel():
        np.ndarray((*shape, width), np.bool_, mask, offset * width, steps)[...] = True
    return mask


# The properties of a tensor, in the order in which a change is reported.
ASPECTS = ("dtype", "device", "shape", "strides", "offset", "requires_grad", "keys")
facts_of = attrgetter(*ASPECTS[:-1], "keyset")


@dataclass(frozen=True, slots=True)
class Picture:
    """An argument before the call."""

    part: TensorPart
    facts: tuple[Any, ...]
    storage: Storage
    version: int

    @property
    def layout(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Return shape, strides and offset."""
        return self.facts[2], self.facts[3], self.facts[4]


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """A change of an argument: the aspect, and a description."""

    part: TensorPart
    aspect: str
    seen: str


class SampleCall:
    """A finished call; `values` are copies, and belong to it."""

    def __init__(self, sample: Sample, values: Sequence[Any]) -> None:
        self.sample = sample
        self.values = values
        self.parts = sample.arguments(values)
        self._before = tuple(_picture(part) for part in self.parts)
        self._held = {id(each.storage): bytes_of(each.storage) for each in self._before}
        self.returned = sample.run(values)
        self.results = sample.results(self.returned)

    def undeclared(self) -> Iterator[ArgumentChange]:
        """Yield changes of arguments that the schema does not declare as written."""
        written = [p for p in self._before if self.sample.is_written(p.part)]
        excused = {id(each.storage) for each in written}
        storage_ids: set[int] = set()
        for picture in self._before:
            if id(picture.storage) not in storage_ids:
                storage_ids.add(id(picture.storage))
                yield from self._written(picture.storage)
        for picture in self._before:
            if self.sample.is_written(picture.part):
                continue
            yield from _changed(picture)
            version = picture.storage.version
            if version != picture.version and id(picture.storage) not in excused:
                seen_text = f"version {picture.version} before, {version} after"
                yield ArgumentChange(picture.part, "version", seen_text)

    def _written(self, storage: Storage) -> Iterator[ArgumentChange]:
        """Yield undeclared changes of the bytes of one storage."""
        before, after = self._held[id(storage)], bytes_of(storage)
        if before is None or after is None:
            return
        # Storages never shrink; one without elements may have grown.
        changed = before != after[: before.size]
        if not changed.any():
            return
        on_it = [each for each in self._before if each.storage is storage]
        masks = [shown_bytes(p.part.tensor, p.layout, before.size) for p in on_it]
        for picture, mask in zip(on_it, masks, strict=True):
            if self.sample.is_written(picture.part):
                changed &= ~mask
        if not changed.any():
            return
        for picture, mask in zip(on_it, masks, strict=True):
            if (changed & mask).any():
                yield ArgumentChange(
                    picture.part, "elements", _difference(picture, before, after)
                )
                changed &= ~mask
        if changed.any():
            count = int(changed.sum())
            yield ArgumentChange(on_it[0].part, "beyond", f"{count} bytes changed")


def _picture(part: TensorPart) -> Picture:
    storage = ensure_place(part.tensor)[0]
    return Picture(part, facts_of(part.tensor), storage, storage.version)


def _changed(picture: Picture) -> Iterator[ArgumentChange]:
    """Yield the first change of a tensor's properties."""
    tensor = picture.part.tensor
    now = facts_of(tensor)
    for aspect, before, after in zip(ASPECTS, picture.facts, now, strict=True):
        if before != after:
            yield ArgumentChange(
                picture.part, aspect, f"{before} before, {after} after"
            )
            return
    if ensure_place(tensor)[0] is not picture.storage:
        yield ArgumentChange(picture.part, "storage", "it is on another storage")


def _difference(picture: Picture, before: Bytes, after: Bytes) -> str:
    """Return the first element that changed, and the number of changed elements."""
    dtype, layout = picture.part.tensor.dtype, picture.layout
    one, other = strided(before, dtype, *layout), strided(after, dtype, *layout)
    width = one.dtype.itemsize
    raw = (
        np.ascontiguousarray(a).view(np.uint8).reshape(-1, width) for a in (one, other)
    )
    apart = np.not_equal(*raw).any(axis=1)
    place = np.unravel_index(int(apart.argmax()), one.shape)
    where = tuple(map(int, place))
    count = int(apart.sum())
    was, now = str(one[place]), str(other[place])
    bits = ", of other bits" if was == now else ""
    more = f" ({count} of {apart.size} elements changed)"
    return f"element {where} was {was} and is {now}{bits}{more}"
