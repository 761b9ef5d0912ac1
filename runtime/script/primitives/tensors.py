"""Tensors as numbers: conversions, `item`, `tolist` and `len`.

True only here: how a script gets Python's values out of a tensor, and nothing else of
tensors: what computes with them are operators of `core`.

Rules:
- a tensor of one element is its number; any other number of elements is refused by the
  tensor itself, as is a tensor without elements in memory;
- an int beyond 64 bits (of an unsigned tensor, or of a large float) is refused;
- what `item` and `tolist` give has a type that only the program knows: it says so by an
  annotation, which is checked where it stands.
"""

from collections.abc import Iterator
from typing import Any

from runtime.script.primitives.integers import bounded
from runtime.script.primitives.row import Row, call, method, row

_ONE = "tensor(2); tensor([2.5]); tensor(True); tensor([1, 2]); tensor([])"


def _item(self: Any) -> Any:
    return self.item()


def _to_list(self: Any) -> Any:
    return self.tolist()


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


ROWS = tuple(_rows())
