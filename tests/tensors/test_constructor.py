"""`Tensor(...)` called by programs, and what they note on tensors."""

import copy
import pickle
from typing import Any

import pytest

import runtime
from runtime import Tensor
from runtime.errors.tensor import UnfitValue


class Kept(Tensor):
    """A class without a handler, and without a word on how it is made."""


class Slotted(Tensor):
    __slots__ = ("mark",)


class Mixed:
    __slots__ = ()

    def shouted(self) -> str:
        return "mixed"


class Both(Mixed, Slotted):
    __slots__ = ("__other",)


@pytest.mark.parametrize("kind", [Tensor, Kept, Slotted, Both])
def test_of_data(kind: type[Tensor]) -> None:
    made = kind([[1, 2.5], [3, 4]])
    assert (type(made), str(made.dtype)) == (kind, "float32")
    assert made.tolist() == [[1, 2.5], [3, 4]]
    assert kind(made).tolist() == made.tolist()
    assert kind(runtime.ones(2, dtype="int64")).tolist() == [1, 1]
    assert (made + 1).sum().item() == 14.5


@pytest.mark.parametrize("sizes", [(), (0,), (2, 3), (1, 2, 3, 1, 2), (1,) * 8])
def test_of_sizes(sizes: tuple[int, ...]) -> None:
    for kind in (Tensor, Kept):
        made = kind(*sizes)
        assert (made.shape, str(made.dtype)) == (sizes or (0,), "float32")
    assert Tensor(2, 3, device="meta").is_meta


@pytest.mark.parametrize("given", [(3.0,), (True,), ([1], [2]), (2, [3]), ("cpu", 1)])
def test_of_what_is_neither(given: tuple[Any, ...]) -> None:
    with pytest.raises(UnfitValue) as caught:
        Tensor(*given)
    assert "tensor" in str(caught.value)


def noted() -> Any:
    x: Any = runtime.ones(2)
    x.tag = ["a"]
    return x


def test_whoever_wants_to_notes_something() -> None:
    x = noted()
    assert copy.copy(x).tag is x.tag
    deep = copy.deepcopy(x)
    assert (deep.tag, deep.tag is x.tag) == (["a"], False)
    assert pickle.loads(pickle.dumps(x)).tag == ["a"]
    for other in (x + 1, x.detach(), x.view(2), x.clone()):
        assert not hasattr(other, "tag")
    del x.tag
    assert not hasattr(x, "tag")


@pytest.mark.torch
def test_notes_are_kept_where_torch_keeps_them() -> None:
    torch = pytest.importorskip("torch")
    x, ours = torch.ones(2), noted()
    x.tag = ["a"]
    acts: tuple[Any, ...] = (
        copy.copy,
        copy.deepcopy,
        lambda t: pickle.loads(pickle.dumps(t)),
        lambda t: t + 1,
        lambda t: t.detach(),
    )
    for act in acts:
        assert hasattr(act(ours), "tag") == hasattr(act(x), "tag")


def test_slots_of_subclasses() -> None:
    made: Any = Both([1.0])
    made.mark, made._Both__other, made.extra = 1, 2, 3
    again = pickle.loads(pickle.dumps(made))
    for each in (made, copy.copy(made), copy.deepcopy(made), again):
        assert (each.mark, each._Both__other, each.extra) == (1, 2, 3)
        assert each.shouted() == "mixed"
