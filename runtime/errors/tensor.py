"""Errors of making a tensor, of its shape, and of reading its data.

Who must act: the caller.  Shapes and dimensions are kept as they were given.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class NoData(EveryorderError, RuntimeError):
    """The numbers of a tensor that holds none were asked for.

    Make the tensor on a device that holds data, or ask for shape and dtype only.
    """

    device: str
    dtype: str
    shape: tuple[int, ...]
    asked: str

    def render(self) -> str:
        """The sentence, and what such a tensor does have."""
        return page(
            f"`{self.asked}` needs the numbers, but a tensor on `{self.device}` "
            "holds none.",
            ("it has", f"shape {self.shape} and dtype {self.dtype}, nothing else"),
        )


@dataclass(eq=False, kw_only=True)
class TooManyDimensions(EveryorderError, ValueError, RuntimeError):
    """A tensor has more dimensions than an array of NumPy can have."""

    asked: str
    ndim: int
    most: int

    def render(self) -> str:
        """The number of dimensions, the most that there can be, and what to do."""
        return page(
            f"`{self.asked}` makes an array of NumPy, which has at most {self.most} "
            f"dimensions; the tensor has {self.ndim}.",
            ("to do", "take dimensions together first, by `.reshape(...)`"),
        )


@dataclass(eq=False, kw_only=True)
class UnsupportedData(EveryorderError, TypeError):
    """The data, or the asked dtype, has no NumPy form that a tensor can hold."""

    dtype: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The dtype, and the names that are like it."""
        near = ", ".join(self.near)
        return page(
            f"A tensor cannot hold elements of dtype `{self.dtype}`.",
            *((("near", near),) if near else ()),
        )


@dataclass(eq=False, kw_only=True)
class NoGradient(EveryorderError, TypeError):
    """`requires_grad=True` was asked for elements that have no derivative."""

    dtype: str

    def render(self) -> str:
        """The dtype, and which dtypes would do."""
        return page(
            f"`requires_grad=True` needs real or complex floating-point elements, "
            f"but these are `{self.dtype}`.",
            ("to do", "pass dtype='float32', or leave requires_grad out"),
        )


@dataclass(eq=False, kw_only=True)
class NotOneElement(EveryorderError, ValueError, RuntimeError):
    """`item()` was asked of a tensor with none, or with more than one element."""

    shape: tuple[int, ...]
    elements: int
    asked: str = "item()"

    def render(self) -> str:
        """The shape and the count."""
        return page(
            f"`{self.asked}` reads a tensor of one element; this one has "
            f"{self.elements}, in shape {self.shape}."
        )


@dataclass(eq=False, kw_only=True)
class NotAnInteger(EveryorderError, TypeError):
    """A tensor stands where an index does, but holds something else."""

    dtype: str
    shape: tuple[int, ...]

    def render(self) -> str:
        """The dtype and the shape."""
        return page(
            f"Only one integer can be an index; this tensor holds `{self.dtype}` in "
            f"shape {self.shape}."
        )


@dataclass(eq=False, kw_only=True)
class NumberTooLarge(EveryorderError, OverflowError):
    """A Python integer does not fit the dtype that is to hold it."""

    value: str
    dtype: str
    smallest: int
    largest: int

    def render(self) -> str:
        """The number and the range."""
        return page(
            f"{self.value} does not fit `{self.dtype}`.",
            ("it holds", f"{self.smallest} to {self.largest}"),
            ("to do", "pass a wider dtype, such as dtype='float64'"),
        )


@dataclass(eq=False, kw_only=True)
class UnevenData(EveryorderError, ValueError):
    """Nested lists do not form a box: lists of one depth differ in length."""

    depth: int
    lengths: tuple[int, ...]

    def render(self) -> str:
        """The depth and the lengths found there."""
        found = ", ".join(map(str, self.lengths))
        return page(
            "A tensor is made of nested lists of one length at each depth; at depth "
            f"{self.depth} their lengths differ.",
            ("lengths", f"{found} (0 stands for a bare element)"),
        )


@dataclass(eq=False, kw_only=True)
class NeedsDetach(EveryorderError, RuntimeError):
    """The elements of a tensor that requires grad were to leave autograd's sight."""

    asked: str

    def render(self) -> str:
        """What was asked, and what to do."""
        return page(
            f"`{self.asked}` would hand out elements whose changes autograd cannot "
            "see, and this tensor requires grad.",
            ("to do", "call `.detach()` on it first"),
        )


@dataclass(eq=False, kw_only=True)
class NotOnHost(EveryorderError, TypeError):
    """Elements in the memory of a device were asked for as if they were the host's."""

    asked: str
    device: str

    def render(self) -> str:
        """What was asked, where the elements are, and what to do."""
        return page(
            f"`{self.asked}` needs the elements in host memory; these are on "
            f"`{self.device}`.",
            ("to do", "copy them: `.to('cpu')`"),
        )


@dataclass(eq=False, kw_only=True)
class NotALeaf(EveryorderError, RuntimeError):
    """Something was asked of a computed tensor that only leaves of the graph can do."""

    asked: str
    operator: str

    def render(self) -> str:
        """What was asked, which operator made the tensor, and what to do."""
        return page(
            f"`{self.asked}` is for leaves of the graph; this tensor was computed by "
            f"`{self.operator}`.",
            ("to do", "call `.detach()` on it first"),
        )


@dataclass(eq=False, kw_only=True)
class NoLength(EveryorderError, TypeError):
    """A tensor without dimensions was asked for its length or iterated over."""

    asked: str

    def render(self) -> str:
        """What was asked, and what to do."""
        return page(
            f"`{self.asked}` needs a tensor with a dimension; this one has none.",
            ("to do", "read its one element by `item()`"),
        )


@dataclass(eq=False, kw_only=True)
class ShapesDiffer(EveryorderError, ValueError, RuntimeError):
    """Shapes do not broadcast together."""

    shapes: tuple[tuple[int, ...], ...]

    def render(self) -> str:
        """The shapes, and when they would fit."""
        return page(
            f"The shapes {' and '.join(map(str, self.shapes))} do not broadcast.",
            ("would fit", "counted from the last, sizes that are equal or 1"),
        )


@dataclass(eq=False, kw_only=True)
class BadSize(EveryorderError, ValueError, RuntimeError):
    """A size does not fit the number of elements, or is no size."""

    asked: tuple[int, ...]
    elements: int

    def render(self) -> str:
        """The size and the number of elements."""
        return page(
            f"{self.asked} is no size for {self.elements} elements.",
            ("would fit", "sizes with that product; one of them may be -1"),
        )


@dataclass(eq=False, kw_only=True)
class BadDimension(EveryorderError, IndexError, RuntimeError):
    """A tensor has no such dimension."""

    dim: int
    ndim: int

    def render(self) -> str:
        """The dimension, and those that there are."""
        room = self.ndim or 1
        there = ("there are", f"{-room} to {room - 1}")
        # Some take 0 and -1 where there is no dimension; what does not, says nothing.
        taken = not self.ndim and -room <= self.dim < room
        return page(
            f"There is no dimension {self.dim} in a tensor of {self.ndim} dimensions.",
            *(() if taken else (there,)),
        )


@dataclass(eq=False, kw_only=True)
class RepeatedDimension(EveryorderError, ValueError, RuntimeError):
    """A dimension is named more than once."""

    dims: tuple[int, ...]
    ndim: int

    def render(self) -> str:
        """The dimensions as given."""
        return page(
            f"A dimension is named twice in {self.dims}, for a tensor of "
            f"{self.ndim} dimensions."
        )


@dataclass(eq=False, kw_only=True)
class BadState(EveryorderError, ValueError):
    """A generator was given a state that no generator has."""

    found: str

    def render(self) -> str:
        """What was given, and what a state is."""
        return page(
            f"{self.found} is no state of a generator.",
            ("to do", "pass what `get_state()` returned: a seed and a count"),
        )


@dataclass(eq=False, kw_only=True)
class FixedAttribute(EveryorderError, AttributeError):
    """An attribute of a tensor that cannot be set."""

    name: str
    instead: str

    def render(self) -> str:
        """The attribute, and what to call."""
        return page(
            f"The {self.name} of a tensor cannot be set.",
            ("to do", f"call {self.instead}, which gives another tensor"),
        )


@dataclass(eq=False, kw_only=True)
class UnfitValue(EveryorderError, TypeError):
    """A function outside of the schemas was given a value of another kind.

    `asked` is what was called or written, `found` what it got, `fits` what it takes;
    `near` are names like the one found.
    """

    asked: str
    found: str
    fits: str
    near: tuple[str, ...] = ()
    remedy: str = ""

    def render(self) -> str:
        """What was asked, what it got, what it takes, and what to do."""
        return page(
            f"`{self.asked}` takes {self.fits}, but was given {self.found}.",
            *((("near", ", ".join(self.near)),) if self.near else ()),
            *((("to do", self.remedy),) if self.remedy else ()),
        )
