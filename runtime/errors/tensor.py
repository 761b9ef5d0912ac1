"""Errors of tensors and their memory: making, shapes, reading, sharing, devices.

Who must act: the caller.  Shapes and dimensions are kept as they were given.
"""

from typing import ClassVar

from runtime.errors.base import EveryorderError, Words, page


class UnfitValue(EveryorderError, TypeError):
    """A function outside of the schemas was given a value, or elements, of another
    kind.

    `asked` is what was called or written, `found` what it got, `fits` what it takes;
    `near` are names like the one found.
    """

    asked: str = ""
    found: str = ""
    fits: str = ""
    near: tuple[str, ...] = ()
    remedy: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()

    words: ClassVar[Words] = {
        "UnfitValue": (
            "`{asked}` takes {fits}, but was given {found}.",
            ("near", "{near:, }"),
            ("to do", "{remedy}"),
        ),
        "UnsupportedData": (
            "A tensor cannot hold elements of dtype `{dtype}`.",
            ("near", "{near:, }"),
        ),
        "NoGradient": (
            "`requires_grad=True` needs real or complex floating-point elements, "
            "but these are `{dtype}`.",
            ("to do", "pass dtype='float32', or leave requires_grad out"),
        ),
        "NotAnInteger": (
            "Only one integer can be an index; this tensor holds `{dtype}` in "
            "shape {shape}.",
        ),
        "NoLength": (
            "`{asked}` needs a tensor with a dimension; this one has none.",
            ("to do", "read its one element by `item()`"),
        ),
    }


class BadSize(EveryorderError, ValueError, RuntimeError):
    """Sizes, strides or elements that no tensor has, or this one has not.

    All numbers count elements; `needed` is one past the last element of a view.
    """

    asked: tuple[int, ...] | str = "item()"
    elements: int = 0
    ndim: int = 0
    most: int = 0
    shape: tuple[int, ...] = ()
    depth: int = 0
    lengths: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset: int = 0
    needed: int = 0
    held: int = 0

    def _bad_strides(self) -> str:
        """The shape, the strides and the offset."""
        if max(self.strides, default=0) >= 1 << 63:
            return page(
                f"A tensor of shape {self.shape} cannot lie row by row: its strides "
                f"{self.strides} do not fit 64 bits.",
                ("fits", "a shape whose sizes, 0 taken as 1, have a smaller product"),
            )
        return page(
            f"Strides {self.strides} and offset {self.offset} describe no view of "
            f"shape {self.shape}: there must be one stride a dimension, and none of "
            "the numbers may be negative."
        )

    words: ClassVar[Words] = {
        "BadSize": (
            "{asked} is no size for {elements} elements.",
            ("would fit", "sizes with that product; one of them may be -1"),
        ),
        "TooManyDimensions": (
            "`{asked}` makes an array of NumPy, which has at most {most} "
            "dimensions; the tensor has {ndim}.",
            ("to do", "take dimensions together first, by `.reshape(...)`"),
        ),
        "NotOneElement": (
            "`{asked}` reads a tensor of one element; this one has {elements}, "
            "in shape {shape}.",
        ),
        "UnevenData": (
            "A tensor is made of nested lists of one length at each depth; at "
            "depth {depth} their lengths differ.",
            ("lengths", "{lengths:, } (0 stands for a bare element)"),
        ),
        "NoElementsLeft": (
            "A tensor of shape {shape} holds elements, so it does not become one "
            "of shape {asked}; only a tensor without elements takes a new shape.",
        ),
        "BadStrides": _bad_strides,
        "OutOfStorage": (
            "A view of shape {shape} with strides {strides} from offset {offset} "
            "does not fit its storage.",
            ("needs", "{needed} elements"),
            ("there are", "{held}"),
        ),
    }


class NumberTooLarge(EveryorderError, OverflowError):
    """A Python integer does not fit the dtype that is to hold it."""

    value: str
    dtype: str
    smallest: int
    largest: int

    words: ClassVar[Words] = {
        "NumberTooLarge": (
            "{value} does not fit `{dtype}`.",
            ("it holds", "{smallest} to {largest}"),
            ("to do", "pass a wider dtype, such as dtype='float64'"),
        ),
    }


class FixedAttribute(EveryorderError, AttributeError):
    """An attribute of a tensor that cannot be set."""

    name: str
    instead: str

    words: ClassVar[Words] = {
        "FixedAttribute": (
            "The {name} of a tensor cannot be set.",
            ("to do", "call {instead}, which gives another tensor"),
        ),
    }


class BadState(EveryorderError, ValueError):
    """A generator was given a state that no generator has."""

    found: str

    words: ClassVar[Words] = {
        "BadState": (
            "{found} is no state of a generator.",
            ("to do", "pass what `get_state()` returned: a seed and a count"),
        ),
    }


class NeedsDetach(EveryorderError, RuntimeError):
    """A tensor is a part of the graph, and what was asked is for others: detach it
    first.
    """

    asked: str
    operator: str = ""

    words: ClassVar[Words] = {
        "NeedsDetach": (
            "`{asked}` would hand out elements whose changes autograd cannot "
            "see, and this tensor requires grad.",
            ("to do", "call `.detach()` on it first"),
        ),
        "NotALeaf": (
            "`{asked}` is for leaves of the graph; this tensor was computed by "
            "`{operator}`.",
            ("to do", "call `.detach()` on it first"),
        ),
    }


class NotOnHost(EveryorderError, TypeError):
    """Elements in the memory of a device were asked for as if they were the host's."""

    asked: str
    device: str

    words: ClassVar[Words] = {
        "NotOnHost": (
            "`{asked}` needs the elements in host memory; these are on `{device}`.",
            ("to do", "copy them: `.to('cpu')`"),
        ),
    }


class NotShareable(EveryorderError, ValueError):
    """Memory of somebody else cannot be shared as it is; a copy can be made.

    `reason` is one of the keys of `NOT_SHARED`.
    """

    reason: str = ""
    shape: tuple[int, ...]
    dtype: str = ""

    words: ClassVar[Words] = {
        "NotShareable": (
            "An array of shape {shape} and dtype {dtype} cannot be shared with a "
            "tensor: {_why}.",
            ("to do", "copy it: `runtime.tensor(array)`"),
        ),
        "MaskedArray": (
            "A CUDA array of shape {shape} brings a mask, and tensors have none.",
            ("to do", "fill in what the mask hides, then hand over the elements"),
        ),
    }

    @property
    def _why(self) -> str:
        return NOT_SHARED[self.reason]


# Why memory is not shared.
NOT_SHARED = {
    "read-only": "it is read-only, and whoever has a tensor may write to it",
    "negative stride": "it runs backwards through memory, which tensors never do",
    "uneven stride": "its strides are no multiples of the size of an element",
    "byte order": "its bytes are not in the order of this machine",
}


class NotExportable(EveryorderError, BufferError):
    """A tensor cannot be handed to another library through the protocol asked for."""

    protocol: str
    reason: str
    remedy: str

    words: ClassVar[Words] = {
        "NotExportable": (
            "This tensor cannot be handed over by {protocol}: {reason}.",
            ("to do", "{remedy}"),
        ),
    }


class NotReplaceable(EveryorderError, ValueError, RuntimeError):
    """The elements of a tensor cannot be replaced, or not by those of that one."""

    asked: str
    reason: str = ""
    remedy: str = ""
    what: str = ""
    expected: str = ""
    found: str = ""

    words: ClassVar[Words] = {
        "NotReplaceable": (
            "`{asked}` is refused: {reason}.",
            ("to do", "{remedy}"),
        ),
        "DoesNotFit": (
            "`{asked}` was given a tensor that does not fit.",
            ("{what}", "{expected} here, {found} there"),
        ),
    }


class OutOfMemory(EveryorderError, MemoryError):
    """A device has no room for a request, not even after its cache was given back.

    All numbers are bytes. `allocated` is held by live tensors, `reserved` is what the
    arena holds of the device in all, `free` what the device says is left.
    """

    device: str
    asked: int = 0
    allocated: int = 0
    reserved: int = 0
    free: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    needed: int = 0

    words: ClassVar[Words] = {
        "OutOfMemory": (
            "`{device}` has no room for {asked:bytes}.",
            ("tensors hold", "{allocated:bytes}"),
            ("arena holds", "{reserved:bytes}"),
            ("device has left", "{free:bytes}"),
            (
                "to do",
                "drop tensors that are not needed, or work on smaller pieces; "
                "what the arena had cached is given back already",
            ),
        ),
        "NotEnoughMemory": (
            "There is no memory for a tensor of shape {shape} and dtype {dtype} "
            "on `{device}`.",
            ("needs", "{needed} bytes"),
            ("to do", "make it smaller, or on `meta`, which needs shapes only"),
        ),
    }


class DeviceUnavailable(EveryorderError, RuntimeError):
    """A device was asked for that this machine or installation cannot give.

    `remedy` says what would make it available.
    """

    device: str
    reason: str
    remedy: str

    words: ClassVar[Words] = {
        "DeviceUnavailable": (
            "There is no device `{device}` to be had: {reason}.",
            ("to do", "{remedy}"),
        ),
    }
