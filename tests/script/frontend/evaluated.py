"""Functions whose annotations Python evaluates, with classes that nobody else has."""

from collections.abc import Callable
from typing import Any, Dict, List, NamedTuple, Optional  # noqa: UP035  # as programs do


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


class Outer:
    class Inner(NamedTuple):
        x: int

    def evaluated(self, a: Inner) -> int:
        return 1

    def quoted(self, a: "Inner") -> int:
        return 1
