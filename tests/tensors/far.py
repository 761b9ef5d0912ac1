"""A memory that is not the host's, for tests: arrays behind a wall.

It keeps bfloat16 as uint16, as a device does whose compiler lacks the type.
"""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.base.registry import Registry
from everyorder.runtime.tensors import storage


class FarArray:
    """A NumPy array that no NumPy function takes."""

    def __init__(self, held: "np.ndarray[Any, Any]") -> None:
        self.held = held

    def __getitem__(self, where: slice) -> "FarArray":
        return FarArray(self.held[where])

    def view(self, form: Any) -> "FarArray":
        return FarArray(self.held.view(form))

    def __len__(self) -> int:
        return len(self.held)


class Far:
    """A memory of such arrays; device 0 is the current one."""

    def __init__(self) -> None:
        self.made_on: list[int | None] = []

    def current_index(self) -> int:
        return 0

    def empty(self, count: int, np_dtype: Any, index: int | None) -> FarArray:
        self.made_on.append(index)
        return FarArray(np.zeros(count, _kept(np.dtype(np_dtype))))

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> FarArray:
        self.made_on.append(index)
        return FarArray(array.copy().view(_kept(array.dtype)))

    def to_numpy(self, array: FarArray) -> "np.ndarray[Any, Any]":
        return array.held.copy()

    def pointer(self, array: FarArray) -> int:
        return int(array.held.__array_interface__["data"][0])


def _kept(form: "np.dtype[Any]") -> "np.dtype[Any]":
    return np.dtype("uint16") if form.name == "bfloat16" else form


def use_memory(monkeypatch: pytest.MonkeyPatch, kind: str, memory: Any) -> None:
    """Use `memory` for device type `kind` until the test ends, whatever it had."""
    rows = {"cpu": storage.HOST, kind: memory}
    monkeypatch.setattr(storage, "MEMORIES", Registry("memories", rows))
