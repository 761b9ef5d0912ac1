"""Functions whose annotations Python evaluates, with classes that nobody else has."""

from collections.abc import Callable
from typing import Any, Dict, List, NamedTuple, Optional  # noqa: UP035  # as programs do


def functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    class Point(NamedTuple):
        x: int
        y: float

    def known(
        a: Point,
        b: List[Point],  # noqa: UP006  # as above
        c: Dict[str, Point],  # noqa: UP006  # as above
        d: Optional[Point],  # noqa: UP045  # as above
        e: Point | None,
    ) -> tuple[Point, int]:
        return a, 1

    class Other:
        class Inner(NamedTuple):
            x: int

        def method(self, b: "Inner") -> int:
            return 1

    return known, Other.method
