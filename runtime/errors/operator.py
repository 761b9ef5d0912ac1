"""Errors of operators: values that a kernel or its preparation refuses."""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page
from runtime.errors.operands import OperandError


@dataclass(eq=False, kw_only=True)
class IndexOutOfRange(EveryorderError, IndexError, RuntimeError):
    """An element of an index tensor names a place that the indexed one lacks.

    Nothing was written.  `size` is that of dimension `dim` of the indexed tensor.
    `wraps` says whether the operator counts negative indices from the end.
    """

    operator: str
    index: int
    size: int
    dim: int
    wraps: bool = False

    def render(self) -> str:
        """The index, the dimension's size, and what would fit."""
        if not self.size:
            fits = "nothing: the dimension is empty"
        elif self.wraps:
            fits = f"{-self.size} to {self.size - 1}"
        else:
            fits = f"0 to {self.size - 1}"
        return page(
            f"`{self.operator}` was given index {self.index} for dimension {self.dim}, "
            f"which has size {self.size}.",
            ("fits", fits),
            ("state", "nothing was written"),
        )


def _listed(pairs: tuple[tuple[str, object], ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


@dataclass(eq=False, kw_only=True)
class ShapesDoNotFit(OperandError, ValueError):
    """Shapes of the arguments of an operator that do not go together.

    `shapes` are the arguments' names and shapes; `fits` says what would do.
    """

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    reason: str
    fits: str

    def render(self) -> str:
        """The operator, its shapes, and what would fit."""
        return page(
            f"`{self.operator}` cannot work on these shapes: {self.reason}.",
            ("given", _listed(self.shapes)),
            ("fits", self.fits),
        )


@dataclass(eq=False, kw_only=True)
class ViewImpossible(OperandError):
    """The elements lie so that no view has the wanted shape: use `reshape`."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    wanted: tuple[int, ...]

    def render(self) -> str:
        """Both shapes, the strides, and the operator that copies."""
        return page(
            f"`{self.operator}` cannot show shape {self.shape} as {self.wanted} "
            "without a copy.",
            ("strides", str(self.strides)),
            ("to do", "use reshape(...), which copies where it must"),
        )


@dataclass(eq=False, kw_only=True)
class IndexRefused(EveryorderError, IndexError):
    """What stands in the brackets of `tensor[...]` picks nothing.

    `index` is the part at fault as written, `position` its place in the brackets.
    """

    index: str
    position: int
    shape: tuple[int, ...]
    reason: str
    fits: str

    def render(self) -> str:
        """The part, its place, why not, and what would do."""
        return page(
            f"`tensor[{':, ' * self.position}{self.index}]`: {self.reason}.",
            ("shape", str(self.shape)),
            ("fits", self.fits),
        )
