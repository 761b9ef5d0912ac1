"""Which classes there can be tensors of."""

from typing import Any

import pytest

from runtime import Tensor
from runtime.errors.python_dispatch import NotATensorClass, PlainHandler
from runtime.python_dispatch.wrappers import check_class


class Bare(Tensor):
    """Without a handler."""


class Static(Tensor):
    """With a handler that needs no class."""

    @staticmethod
    def __torch_dispatch__(*args: Any) -> Any:
        raise NotImplementedError


class Plain(Tensor):
    """With a handler that would be given a class for itself."""

    def __torch_dispatch__(self, *args: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("cls", [Bare, Static])
def test_subclasses_will_do(cls: type) -> None:
    check_class(cls, "making")


@pytest.mark.parametrize(
    ("given", "found"),
    [(Tensor, "the class Tensor"), (int, "the class int"), (3, "an int")],
)
def test_nothing_else_will(given: Any, found: str) -> None:
    with pytest.raises(NotATensorClass) as refused:
        check_class(given, "making")
    assert str(refused.value) == (
        f"`making` takes a subclass of Tensor as `cls`, and was given {found}."
    )


def test_a_handler_is_no_plain_method() -> None:
    with pytest.raises(PlainHandler) as refused:
        check_class(Plain, "making")
    assert refused.value.fields() == {"handler": "Plain.__torch_dispatch__"}
