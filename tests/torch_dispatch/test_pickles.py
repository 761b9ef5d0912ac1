"""Pickles that somebody else wrote, and classes that answer for what they wrap."""

import copy
import pickle
from typing import Any

import pytest

from everyorder.runtime import Tensor
from everyorder.runtime.errors.tensor import BadSize, UnfitValue
from everyorder.runtime.keys import KeySet
from everyorder.runtime.tensors.keys import HANDLED
from everyorder.runtime.tensors.storage import restored_wrapper as restored_storage
from everyorder.runtime.tensors.tensor import _set_state as given
from everyorder.runtime.tensors.tensor import restored
from tests.coded import code
from tests.torch_dispatch.kinds import Boxed, core, vector

FACTS: dict[str, Any] = {
    "kind": Tensor,
    "storage": vector(1.0, 2.0, 3.0).storage(),
    "shape": (2,),
    "strides": (1,),
    "offset": 0,
    "dtype": "float32",
    "keys": None,
    "requires_grad": False,
    "number": None,
}


def forged(**facts: Any) -> Any:
    """A tensor of a pickle in which these facts were changed."""
    return restored(**{**FACTS, **facts})


def bare(*facts: Any) -> Any:
    """The storage of a wrapper, of a pickle that says so."""
    return restored_storage(*facts)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"kind": int}, "a class of tensors, but was given <class 'int'>"),
        (
            {"kind": print},
            "a class of tensors, but was given <built-in function print>",
        ),
        ({"storage": object()}, "a storage, but was given an object"),
        ({"keys": 7}, "a set of keys, but was given an int"),
        (
            {"number": 5},
            "a number for a tensor without dimensions, but was given an int for one of "
            "shape (2,)",
        ),
        (
            {"number": "5", "shape": (), "strides": ()},
            "a number for a tensor without dimensions, but was given a str for one of "
            "shape ()",
        ),
    ],
)
def test_what_is_no_part_of_a_tensor(facts: dict[str, Any], message: str) -> None:
    """Bad input: said before anything is made."""
    with pytest.raises(UnfitValue) as caught:
        forged(**facts)
    text = " ".join(str(caught.value).split())
    assert text == f"`reading a pickled tensor` takes {message}."


def test_numbers_that_are_none() -> None:
    """Bad input: refused, never rounded and never read past the end."""
    with pytest.raises(TypeError):
        forged(offset=0.5)
    with pytest.raises(BadSize, check=code("OutOfStorage")):
        forged(shape=(2**62,))
    with pytest.raises(UnfitValue, check=code("UnsupportedData")):
        forged(dtype="float7")
    assert forged(requires_grad="yes").requires_grad is True


def test_storages_without_elements() -> None:
    """Bad input: of less than nothing, or of nobody knows what."""
    with pytest.raises(BadSize, check=code("BadSize")):
        bare("Boxed", "cpu", "float32", -5)
    with pytest.raises(TypeError):
        bare("Boxed", "cpu", "float32", "4")
    with pytest.raises(UnfitValue, check=code("UnsupportedData")):
        bare("Boxed", "cpu", "float7", 4)
    assert bare(3, "cpu", "float32", 4).owner == "3"


def test_keys_of_a_handler_do_not_come_by_a_pickle() -> None:
    """7.1: the class decides."""
    marked = KeySet.from_bits(vector(1.0).key_bits | HANDLED)
    x = forged(keys=marked)
    assert not x.key_bits & HANDLED
    assert core.neg(x).tolist() == [-1.0, -2.0]


def test_a_policy_of_who_has_no_handler_changes_no_class() -> None:
    """7.11: least of all that of all tensors."""
    before = dict(vars(Tensor))
    kind: Any = type("Plain", (Tensor,), {})
    assert forged(policy=3).shape == (2,)
    assert forged(kind=kind, policy=3).shape == (2,)
    assert dict(vars(Tensor)) == before
    assert "shape" not in vars(kind)


@pytest.mark.parametrize("name", ["_place", "key_bits", "_shape"])
def test_slots_of_every_tensor_do_not_come_with_the_state(name: str) -> None:
    """Bad input: they would let a tensor read what is not its own."""

    class Slotted(Tensor):
        __slots__ = ("mine",)

    x: Any = vector(1.0).as_subclass(Slotted)
    given(x, (None, {"mine": 1}))
    assert x.mine == 1
    before = getattr(x, name)
    with pytest.raises(UnfitValue) as caught:
        given(x, (None, {name: (2**40,)}))
    assert (caught.value.found, caught.value.fits) == (
        repr(name),
        "the slots of `Slotted`",
    )
    assert getattr(x, name) == before


class Forwards(Boxed):
    """Has whatever it wraps has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # Python asks for these before anything is there.
            raise AttributeError(name)
        return getattr(self.__dict__["inner"], name)


class Telling(Boxed):
    """Tells its sizes."""


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_class_that_answers_for_what_it_wraps(way: Any) -> None:
    """7.11: what is asked of it is its own: the policy of what it wraps is not."""
    inner: Any = Telling(vector(1.0), dispatch_sizes_strides_policy="sizes")
    x: Any = Forwards(inner)
    assert (inner._policy, x._policy) == (3, 0)
    made = way(x)
    assert (made.inner._policy, made._policy) == (3, 0)
    assert "shape" not in vars(Forwards)
    assert made.inner.inner.tolist() == [1.0]
