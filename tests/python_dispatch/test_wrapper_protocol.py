"""Taking wrappers apart and putting them together."""

from typing import Any

import pytest

import runtime
from runtime import Tensor
from runtime.errors.subclass import (
    NotAWrapper,
    WrongParts,
    WrongTensorCount,
    WrongWhole,
)
from runtime.python_dispatch.wrappers import (
    flatten,
    is_traceable_wrapper_subclass,
    is_traceable_wrapper_subclass_type,
    unflatten,
)
from tests.python_dispatch.kinds import Boxed, Counted, asked, boxed, counted


class Pair(Boxed):
    """Has two tensors and a word."""

    other: Tensor
    word: str

    def __new__(cls, inner: Tensor, other: Tensor, word: str = "") -> Any:
        made = super().__new__(cls, inner)
        made.other = other
        made.word = word
        return made

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["inner", "other"], self.word

    @classmethod
    def __tensor_unflatten__(
        cls, tensors: dict[str, Tensor], context: Any, size: Any, strides: Any
    ) -> Any:
        made: Tensor = cls(tensors["inner"], tensors["other"], context)
        return made


def test_who_has_the_protocol() -> None:
    """7.12: "Tensor subclass with both"; 8.4 test_standard_is_not_subclass."""

    class Half(Tensor):
        def __tensor_flatten__(self) -> Any:
            return [], None

    plain = runtime.tensor([1.0])
    assert is_traceable_wrapper_subclass(boxed(1.0)) is True
    for other in (plain, counted(1.0), plain.as_subclass(Half), 3, Boxed, None):
        assert is_traceable_wrapper_subclass(other) is False
    assert is_traceable_wrapper_subclass_type(Boxed) is True
    for kind in (Tensor, Counted, Half, int):
        assert is_traceable_wrapper_subclass_type(kind) is False


def test_nested_wrappers_come_apart_and_together() -> None:
    """7.12: `__tensor_flatten__` and `__tensor_unflatten__`, all the way down."""
    leaves = [runtime.tensor([float(n)]) for n in range(4)]
    whole = Pair(Boxed(leaves[0]), Pair(leaves[1], Boxed(Boxed(leaves[2])), "b"), "a")
    tensors, plan = flatten(whole)
    assert [each is leaf for each, leaf in zip(tensors, leaves, strict=False)] == [
        *(True, True, True)
    ]
    assert (plan.cls, plan.names, plan.context, plan.count) == (
        Pair,
        ("inner", "other"),
        "a",
        3,
    )
    made: Any = unflatten([leaves[3], *leaves[:2]], plan)
    kind: type = type(made)
    assert kind is Pair
    assert (made.word, made.other.word) == ("a", "b")
    assert made.inner.inner is leaves[3]
    assert made.other.other.inner.inner is leaves[1]
    assert flatten(made).plan == plan
    assert flatten(Pair(leaves[0], leaves[1], "c")).plan != plan


def test_nobody_is_asked() -> None:
    whole = Boxed(boxed(1.0))
    assert asked(lambda: unflatten(*flatten(whole))) == []


def test_what_the_protocol_is_given() -> None:
    """7.12: `unflatten(dict, context, outer_size, outer_strides)`."""
    seen: list[Any] = []

    class Seeing(Boxed):
        @classmethod
        def __tensor_unflatten__(
            cls, tensors: dict[str, Tensor], context: Any, size: Any, strides: Any
        ) -> Any:
            seen.append((tensors, context, size, strides))
            return cls(tensors["inner"])

    turned = runtime.zeros(2, 3).t()
    tensors, plan = flatten(Seeing(turned))
    unflatten(tensors, plan)
    assert seen == [({"inner": turned}, None, (3, 2), (1, 3))]


def test_a_class_without_the_protocol() -> None:
    with pytest.raises(NotAWrapper) as caught:
        flatten(runtime.tensor([1.0]))
    assert str(caught.value) == (
        "A `Tensor` cannot be taken apart: it has no `__tensor_flatten__` and no\n"
        "`__tensor_unflatten__`.\n"
        "  to do: define `__tensor_flatten__(self)`, which returns the names of its\n"
        "         tensors and a context, and the static method\n"
        "         `__tensor_unflatten__(tensors, context, size, strides)`"
    )
    with pytest.raises(NotAWrapper):
        flatten("text")  # type: ignore[arg-type]  # that is the fault


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (None, "a NoneType"),
        (("inner", None, None), "a tuple of 3"),
        (("inner", None), "a str for the names"),
        (([3], None), "a int for the name of an attribute"),
        ((["outer"], None), "the name 'outer', which is no attribute with a tensor"),
        ((["word"], None), "the name 'word', which is no attribute with a tensor"),
        ((["me"], None), "the name 'me', which is itself"),
    ],
)
def test_wrong_parts(parts: Any, found: str) -> None:
    class Wrong(Boxed):
        word = "word"

        @property
        def me(self) -> Any:
            return self

        def __tensor_flatten__(self) -> Any:
            return parts

    with pytest.raises(WrongParts) as caught:
        flatten(Wrong(runtime.tensor([1.0])))
    assert (caught.value.cls, caught.value.found) == ("Wrong", found)


@pytest.mark.parametrize(
    ("whole", "expected", "found"),
    [
        (None, "a `Wrong`", "a `NoneType`"),
        (boxed(1.0), "a `Wrong`", "a `Boxed`"),
        ("longer", "one of shape (1,)", "one of shape (2,)"),
    ],
)
def test_a_wrong_whole(whole: Any, expected: str, found: str) -> None:
    class Wrong(Boxed):
        @classmethod
        def __tensor_unflatten__(
            cls, tensors: Any, context: Any, size: Any, strides: Any
        ) -> Any:
            return Wrong(runtime.ones(2)) if whole == "longer" else whole

    with pytest.raises(WrongWhole) as caught:
        unflatten(*flatten(Wrong(runtime.tensor([1.0]))))
    assert str(caught.value).replace("\n", " ") == (
        f"`Wrong.__tensor_unflatten__(...)` gave {found}; it is to return {expected}, "
        "as was taken apart."
    )


def test_another_number_of_tensors() -> None:
    tensors, plan = flatten(Pair(runtime.ones(1), boxed(1.0)))
    with pytest.raises(WrongTensorCount) as caught:
        unflatten(tensors[:1], plan)
    assert str(caught.value) == "A `Pair` is made of 2 tensors, and 1 were given."
