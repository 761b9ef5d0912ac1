"""Functions that are typed as people do it: in words of later, and in comments."""

# Some of it is for the compiler alone.
# mypy: ignore-errors
from __future__ import annotations

import typing
from typing import Generic, NamedTuple, TypeVar

from everyorder.runtime.schema.annotation import register_wrapper
from everyorder.runtime.schema.types import AnyType, AwaitType

T = TypeVar("T")


class Lazily(Generic[T]):
    """Stands for the awaits of a higher area."""


register_wrapper(Lazily, AwaitType, AnyType)


class Point(NamedTuple):
    x: int
    y: float


Alias = typing.List[int]  # noqa: UP006  # the old spelling is read too


def postponed(
    a: int,
    b: Alias,
    c: "typing.Dict[str, 'Point']",  # noqa: UP006, UP037  # as above
    d: Lazily[Tensor],  # noqa: F821  # always there
    *,
    e: int | None,
    f,
) -> tuple[int, Point]:
    raise NotImplementedError


# fmt: off
def commented(a, b,
              c):
    # type: (int, List[str], Tensor) -> Point
    x = [
        a,
    ]  # type: List[int]
    y = b  # type: ignore
    z = c
    return x, y, z


def commented_one_by_one(
    a,  # type: int
    b,
    c,  # type: Optional[Tensor]
):
    return a, b, c
# fmt: on
