"""Installing methods on tensors."""

from collections.abc import Iterator
from typing import Any

import pytest

from runtime.tensors import Tensor, install, tensor
from runtime.tensors.tensor import METHODS


@pytest.fixture(autouse=True)
def _taken_off() -> Iterator[None]:
    yield
    for name in ("doubled", "halved", "__lshift__"):
        if METHODS.pop(name, None) is not None:
            delattr(Tensor, name)


def test_methods_properties_and_operators() -> None:
    install("doubled", lambda self: 2 * self.item())
    install("halved", property(lambda self: self.item() / 2))
    install("__lshift__", lambda self, other: self.item() << other)
    made: Any = tensor(3)
    assert (made.doubled(), made.halved, made << 2) == (6, 1.5, 12)
    assert {"doubled", "halved", "__lshift__"} <= set(METHODS)
    install("doubled", lambda self: "again")
    assert made.doubled() == "again"


def test_iterating_goes_through_indexing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Tensor, "__getitem__", lambda self, index: ("row", index), raising=False
    )
    assert list(tensor([1, 2])) == [("row", 0), ("row", 1)]
