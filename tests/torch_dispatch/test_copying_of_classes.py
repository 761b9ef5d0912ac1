"""Pickling and copying tensors of classes: everything that the class put on them."""

from copy import copy, deepcopy
from pickle import HIGHEST_PROTOCOL, dumps, loads
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.tensor import NotShareable
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.torch_dispatch.wrappers import return_and_correct_aliasing
from tests.coded import code
from tests.torch_dispatch.kinds import (
    Boxed,
    Counted,
    asked,
    boxed,
    core,
    counted,
    vector,
)


class Slotted(Boxed):
    """Keeps some of its attributes in slots."""

    __slots__ = ("__hidden", "never", "scale")

    scale: float
    never: int

    def hide(self, value: Any) -> None:
        self.__hidden = value

    def hidden(self) -> Any:
        return self.__hidden


class Bare(Tensor):
    """No handler, no dict."""

    __slots__ = "word"


class Own(Boxed):
    """Says itself what survives."""

    def __getstate__(self) -> Any:
        return {"kept": self.inner}

    def __setstate__(self, state: Any) -> None:
        self.inner = state["kept"]
        self.told = True


class Told(Boxed):
    """Its handler tells its sizes."""

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if str(func) == "core.sym_size.default":
            return [7]
        return super().__torch_dispatch__(func, types, args, kwargs)


def pickled(value: Any) -> Any:
    found = [
        loads(dumps(value, protocol)) for protocol in range(2, HIGHEST_PROTOCOL + 1)
    ]
    return found[-1]


WAYS = [pickled, copy, deepcopy]


@pytest.mark.spec("dispatch 8.4", "test_wrapper_subclass_serializes")
@pytest.mark.spec("dispatch 8.4", "test_deepcopy_wrapper_subclass")
@pytest.mark.parametrize("way", WAYS)
def test_a_wrapper_survives(way: Any) -> None:
    """7.11: 8.4 wrapper_subclass_serializes, deepcopy; nobody is asked."""
    made: Any = Boxed(runtime.tensor([[1.0, 2.0]]).t(), requires_grad=True)
    made.note = {"a": [made.inner]}
    found: list[Any] = []
    assert asked(lambda: found.append(way(made))) == []
    (other,) = found
    assert (type(other), other.shape, other.strides) == (Boxed, (2, 1), (1, 2))
    assert (other.requires_grad, other._python_dispatch, other._version) == (
        *(True, True),
        0,
    )
    assert other.inner.tolist() == [[1.0], [2.0]]
    # What was one object is one again.
    assert other.note["a"][0] is other.inner
    assert (other.inner is made.inner) is (way is copy)
    assert asked(lambda: other + 1) == ["core.add.default"]


@pytest.mark.parametrize("way", WAYS)
def test_nested_wrappers_survive(way: Any) -> None:
    """7.11: wrappers of wrappers, and two of one tensor."""
    inner = boxed(1.0, 2.0)
    first, second = (
        way([Boxed(inner), inner])
        if way is not copy
        else (*map(copy, (Boxed(inner), inner)),)
    )
    assert first.inner.inner.tolist() == [1.0, 2.0]
    assert type(first.inner) is Boxed
    if way is not copy:
        assert first.inner is second


@pytest.mark.spec("dispatch 8.4", "test_deepcopy_non_wrapper_subclass")
@pytest.mark.parametrize("way", WAYS)
def test_elements_survive(way: Any) -> None:
    """7.11: of a class that is a tensor (8.4 deepcopy_non_wrapper_subclass)."""
    made = counted(1.0, 2.0)
    made.note = "kept"
    other = way(made)
    assert (type(other), other.note) == (Counted, "kept")
    assert other._python_dispatch is True
    assert (other.data_ptr() == made.data_ptr()) is (way is copy)
    assert (other + 0).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("way", WAYS)
def test_slots_survive(way: Any) -> None:
    made: Any = Slotted(runtime.tensor([1.0]))
    made.scale = 2.5
    made.note = "kept"
    made.hide(["secret"])
    other = way(made)
    assert (type(other), other.scale, other.note) == (Slotted, 2.5, "kept")
    assert other.hidden() == ["secret"]
    assert (other.hidden() is made.hidden()) is (way is copy)
    assert not hasattr(other, "never")
    bare: Any = runtime.tensor([1.0]).as_subclass(Bare)
    assert not hasattr(way(bare), "word")
    bare.word = "kept"
    other = way(bare)
    assert (type(other), other.word, other.tolist()) == (Bare, "kept", [1.0])


@pytest.mark.spec(
    "dispatch 8.4", "test_deepcopy_wrapper_subclass_with_clone_returning_different_type"
)
@pytest.mark.parametrize("way", WAYS)
def test_a_class_may_say_itself_what_survives(way: Any) -> None:
    """7.11: 8.4 deepcopy with a method of the class."""
    made: Any = Own(runtime.tensor([1.0]))
    made.note = "lost"
    other = way(made)
    assert (other.told, hasattr(other, "note")) == (True, False)
    assert other.inner.tolist() == [1.0]


@pytest.mark.parametrize("way", WAYS)
def test_a_policy_survives(way: Any) -> None:
    """7.11: metadata are still asked for."""
    made = Told(runtime.tensor([1.0]), dispatch_sizes_strides_policy="sizes")
    assert made.shape == (7,)
    other = way(made)
    assert (other.shape, other.inner.shape) == ((7,), (1,))


def test_who_has_a_handler_is_not_read() -> None:
    """7.1: decided by the class where the tensor is made, whatever was written down."""
    restore, (kind, *parts) = vector(1.0).__reduce__()
    keys = KeySet([DispatchKey.CPU, DispatchKey.Python, DispatchKey.PythonTLSSnapshot])
    parts[-3] = keys
    found = restore(kind, *parts)
    assert (found._python_dispatch, found.keyset) == (
        False,
        KeySet([DispatchKey.CPU]),
    )
    assert restore(Counted, *parts)._python_dispatch is True


def test_views_count_together_in_a_deep_copy() -> None:
    made = boxed(1.0, 2.0)
    whole, part = deepcopy([made, made[0:1]])
    part.add_(1)
    assert (whole._version, part._version, made._version) == (1, 1, 0)
    # As the tensors inside share a storage.
    assert whole.inner.tolist() == [2.0, 2.0]


def test_more_is_shown_than_is_there() -> None:
    """A wrapper's strides may reach anywhere: nothing is read."""
    base, large = boxed(1.0), Boxed(runtime.zeros(9))
    shown = return_and_correct_aliasing(core.alias.default, (base,), {}, large)
    assert shown.storage() is base.storage()
    for way in WAYS:
        assert way(shown).shape == (9,)


def test_gradients() -> None:
    """7.11: a deep copy has the gradient; one that was computed has none to give."""
    made = boxed(2.0, requires_grad=True)
    (made * made).backward(boxed(1.0))
    other = deepcopy(made)
    assert (type(other.grad), other.grad.inner.tolist()) == (Boxed, [4.0])
    assert other.grad is not made.grad
    with pytest.raises(NotShareable, check=code("NotALeaf")):
        deepcopy(made * 2)
