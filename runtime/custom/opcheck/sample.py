"""Samples: one call of an operator, as `opcheck` makes it again and again, on copies.

True only here: what a call and its tensors are called in findings.

Rules:
- the caller's own values are read and never handed to the operator: it gets copies
  (`runtime.custom.opcheck.copier`);
- a call leaves the default generator where it found it, so that all calls draw the
  same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.dispatch.handle import OperatorHandle
from runtime.random import default_generator
from runtime.schema.schema import Schema
from runtime.tensors.tensor import Tensor


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
        names = [argument.name for argument in self.schema.arguments]
        surplus = [f"value {place}" for place in range(len(names), len(values))]
        return parts_of([*names, *surplus], values)

    def results(self, values: Sequence[Any]) -> tuple[Part, ...]:
        """The tensors among the results."""
        return parts_of(self.result_labels(len(values)), values)

    def result_labels(self, count: int) -> list[str]:
        """What findings call so many results."""
        names = [each.name for each in self.schema.returns]
        names += [""] * (count - len(names))
        return [
            f"result `{name}`" if name else f"result {number}"
            for number, name in enumerate(names)
        ]

    def is_written(self, part: Part) -> bool:
        """Whether the schema declares that the argument is written to."""
        arguments = self.schema.arguments
        return part.place < len(arguments) and arguments[part.place].is_write


def parts_of(labels: Sequence[str], values: Sequence[Any]) -> tuple[Part, ...]:
    """The tensors among values, inside of containers too; `labels` may be more."""
    pairs = zip(labels, values, strict=False)
    return tuple(
        part
        for place, (label, value) in enumerate(pairs)
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
