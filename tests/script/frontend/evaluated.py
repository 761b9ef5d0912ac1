"""Functions whose annotations Python evaluates, with classes that nobody else has."""

from collections.abc import Callable
from typing import (  # noqa: UP035  # as programs do
    Any,
    Dict,
    List,
    NamedTuple,
    Optional,
    TypeVar,
    Union,
)


def functions() -> tuple[Callable[..., Any], ...]:
    class Point(NamedTuple):
        x: int
        y: float

    def plain(a: Point) -> int:
        return 1

    def of_list(a: List[Point]) -> int:  # noqa: UP006  # as above
        return 1

    def of_dict(a: Dict[str, List[Point]]) -> int:  # noqa: UP006  # as above
        return 1

    def of_optional(a: Optional[Point]) -> int:  # noqa: UP045  # as above
        return 1

    def of_union(a: int | Point | None) -> int:
        return 1

    def of_result(a: "Point") -> tuple[int, Point]:
        return 1, Point(1, 2.0)

    return plain, of_list, of_dict, of_optional, of_union, of_result


Text = Optional[str]  # noqa: UP045  # as above
Numbers = List[int]  # noqa: UP006  # as above
Element = TypeVar("Element")
Matrix = List[List[Element]]  # noqa: UP006  # as above


# fmt: off
def of_alias(
    a: int | Text,
    b: "Text",
    c: Union[int, Optional[Numbers]],  # noqa: UP007, UP045  # as above
    d: "Numbers",
    e: Optional[Text],  # noqa: UP045  # as above
    f: Union[Numbers, int, Numbers],  # noqa: UP007  # as above
    g: Matrix[Numbers],
) -> "Text":
    raise NotImplementedError
# fmt: on


def hidden() -> Callable[..., Any]:
    class Text(NamedTuple):
        x: int

    def of_hidden(a: Optional[Text], b: int | Text) -> int:  # noqa: UP045  # as above
        return 1

    return of_hidden


class Outer:
    class Inner(NamedTuple):
        x: int

    def evaluated(self, a: Inner) -> int:
        return 1

    def quoted(self, a: "Inner") -> int:
        return 1
