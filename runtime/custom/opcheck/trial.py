"""Trials: one call of a sample, with a picture of its arguments before and after.

True only here: what counts as a change.  Elements are compared by their bytes, so that
a NaN equals itself and no other; a storage is looked at as a whole, so that nothing
written beside a view is missed.

Rule: a byte that is shown by an argument which is declared as written is excused,
whatever other arguments show it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.custom.opcheck.memory import bytes_of, elements_of, shown_bytes
from runtime.custom.opcheck.sample import Part, Sample
from runtime.tensors.arrays import claimed
from runtime.tensors.storage import Storage
from runtime.tensors.tensor import Tensor

if TYPE_CHECKING:
    from runtime.custom.opcheck.memory import Bytes

# What a tensor says of itself, in the order in which a change is reported.
ASPECTS = ("dtype", "device", "shape", "strides", "offset", "requires_grad", "keys")


@dataclass(frozen=True, slots=True)
class Picture:
    """An argument before the call."""

    part: Part
    facts: tuple[Any, ...]
    storage: Storage
    version: int

    @property
    def layout(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Shape, strides and offset."""
        return self.facts[2], self.facts[3], self.facts[4]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an argument: what of it, and how."""

    part: Part
    aspect: str
    seen: str


def facts_of(tensor: Tensor) -> tuple[Any, ...]:
    """What a tensor says of itself, in the order of `ASPECTS`."""
    return (
        tensor.dtype,
        tensor.device,
        tensor.shape,
        tensor.strides,
        tensor.offset,
        tensor._requires_grad,
        tensor.keyset,
    )


class Trial:
    """A call that has been made; `values` are copies, and belong to it."""

    def __init__(self, sample: Sample, values: Sequence[Any]) -> None:
        self.sample = sample
        self.values = values
        self.parts = sample.arguments(values)
        self._before = tuple(_picture(part) for part in self.parts)
        self._held = {id(each.storage): bytes_of(each.storage) for each in self._before}
        self.returned = sample.run(values)
        self.results = sample.results(self.returned)

    def undeclared(self) -> Iterator[Change]:
        """Changes of arguments that the schema does not declare as written."""
        written = [p for p in self._before if self.sample.is_written(p.part)]
        excused = {id(each.storage) for each in written}
        seen: set[int] = set()
        for picture in self._before:
            if id(picture.storage) not in seen:
                seen.add(id(picture.storage))
                yield from self._written(picture.storage)
        for picture in self._before:
            if self.sample.is_written(picture.part):
                continue
            yield from _changed(picture)
            version = picture.storage.version
            if version != picture.version and id(picture.storage) not in excused:
                seen_text = f"version {picture.version} before, {version} after"
                yield Change(picture.part, "version", seen_text)

    def _written(self, storage: Storage) -> Iterator[Change]:
        """Undeclared changes of the bytes of one storage."""
        before, after = self._held[id(storage)], bytes_of(storage)
        if before is None or after is None:
            return
        # Nobody shrinks a storage; one without elements may have grown.
        changed = before != after[: before.size]
        if not changed.any():
            return
        on_it = [each for each in self._before if each.storage is storage]
        shown = [shown_bytes(p.part.tensor, p.layout, before.size) for p in on_it]
        for picture, mask in zip(on_it, shown, strict=True):
            if self.sample.is_written(picture.part):
                changed &= ~mask
        if not changed.any():
            return
        for picture, mask in zip(on_it, shown, strict=True):
            if (changed & mask).any():
                yield Change(
                    picture.part, "elements", _difference(picture, before, after)
                )
                changed &= ~mask
        if changed.any():
            count = int(changed.sum())
            yield Change(on_it[0].part, "beyond", f"{count} bytes changed")


def _picture(part: Part) -> Picture:
    storage = claimed(part.tensor)[0]
    return Picture(part, facts_of(part.tensor), storage, storage.version)


def _changed(picture: Picture) -> Iterator[Change]:
    """The first change of what a tensor says of itself."""
    tensor = picture.part.tensor
    now = facts_of(tensor)
    for aspect, before, after in zip(ASPECTS, picture.facts, now, strict=True):
        if before != after:
            yield Change(picture.part, aspect, f"{before} before, {after} after")
            return
    if claimed(tensor)[0] is not picture.storage:
        yield Change(picture.part, "storage", "it is on another storage")


def _difference(picture: Picture, before: "Bytes", after: "Bytes") -> str:
    """The first element that changed, and how many did."""
    import numpy as np

    tensor, layout = picture.part.tensor, picture.layout
    one = elements_of(tensor, layout, before)
    other = elements_of(tensor, layout, after[: before.size])
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
