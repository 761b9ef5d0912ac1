"""Samples: one call of an operator as `opcheck` plays it again and again, on copies.

True only here: how arguments are copied.  A copy has the shape, the strides, the offset
and the keys of the original, on a copy of its whole storage; tensors that share a
storage share its copy.  No copy requires grad.

Rules:
- the caller's own values are read and never handed to the operator;
- a call leaves the default generator where it found it, so that all calls draw alike;
- what cannot be changed (numbers, texts, dtypes, devices) is passed on as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.dispatch.handle import OperatorHandle
from runtime.keys import BACKEND_BITS, DispatchKey
from runtime.schema.argument import Argument
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.schema.schema import Schema
from runtime.tensors.arrays import claimed
from runtime.tensors.generator import default_generator
from runtime.tensors.keys_of import keys_of
from runtime.tensors.making import place_on
from runtime.tensors.storage import Storage
from runtime.tensors.tensor import Tensor

META = Device("meta")
_META_BIT = DispatchKey.Meta.bits & BACKEND_BITS
# Values that nobody can change.
_LASTING = (type(None), bool, int, float, complex, str, DType, Device)


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor among values: whose value it is (by number), and its name."""

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

    def about(self, test: str) -> dict[str, str]:
        """The fields of a finding that say what was checked."""
        operator = str(self.schema.name)
        schema = str(self.schema)
        return {"test": test, "operator": operator, "call": self.call, "schema": schema}

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Call the operator; raises whatever it raises."""
        state = default_generator.get_state()
        try:
            return self.handle.call_boxed(values)
        finally:
            default_generator.set_state(state)

    def arguments(self, values: Sequence[Any]) -> tuple[Part, ...]:
        """The tensors among the arguments."""
        return parts_of([argument.name for argument in self.schema.arguments], values)

    def results(self, values: Sequence[Any]) -> tuple[Part, ...]:
        """The tensors among the results."""
        return parts_of(result_labels(self.schema.returns), values)

    def is_written(self, part: Part) -> bool:
        """Whether the schema declares that the argument is written to."""
        arguments = self.schema.arguments
        return part.place < len(arguments) and arguments[part.place].is_write


def result_labels(returns: Sequence[Argument]) -> list[str]:
    """What findings call the results."""
    return [
        f"result `{each.name}`" if each.name else f"result {number}"
        for number, each in enumerate(returns)
    ]


def parts_of(labels: Sequence[str], values: Sequence[Any]) -> tuple[Part, ...]:
    """The tensors among values, inside of containers too."""
    surplus = [f"value {place}" for place in range(len(labels), len(values))]
    return tuple(
        part
        for place, (label, value) in enumerate(
            zip([*labels, *surplus], values, strict=False)
        )
        for part in _parts(place, label, value)
    )


def _parts(place: int, label: str, value: Any) -> Iterator[Part]:
    if isinstance(value, Tensor):
        yield Part(place, label, value)
    elif isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            yield from _parts(place, f"{label}[{number}]", each)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _parts(place, f"{label}[{key!r}]", each)


class Copier:
    """Copies values; what it copies together stays together.

    `apart` gives each tensor a storage of its own; `meta` copies no elements; `given`
    are tensors that stand for others, by the identity of these.
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
        """Copies of the values, in a new list."""
        return [self.value(each) for each in values]

    def value(self, value: Any) -> Any:
        """A copy of one value."""
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
        """A copy of a tensor."""
        made = self._tensors.get(id(tensor))
        if made is None:
            storage, offset, strides = claimed(tensor)
            layout = tensor.shape, strides, offset, tensor.dtype
            bits = tensor.key_bits
            if self._meta:
                bits = _on_meta(bits, tensor.device)
            made = place_on(self._storage(storage), *layout, bits)
            if not self._meta:
                made.number = tensor.number
            self._tensors[id(tensor)] = made
        return made

    def _storage(self, storage: Storage) -> Storage:
        made = self._storages.get(id(storage))
        if made is None or self._apart:
            if self._meta:
                made = Storage(None, META, storage.dtype, storage.count)
            else:
                made = storage.copy()
            self._storages[id(storage)] = made
        return made


def _on_meta(bits: int, device: Device) -> int:
    """The keys of a tensor, had it no elements."""
    if bits == keys_of(device.type).bits:
        return keys_of("meta").bits
    return bits & ~BACKEND_BITS | _META_BIT
