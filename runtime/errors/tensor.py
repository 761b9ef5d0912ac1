"""Errors of operators that refuse what they were given, and of tensors and memory.

Who must act: the caller.

Rules: an operator that refuses has written nothing; `operator` is the operator as
called (`core::add_`, `core::add.out`); shapes and dimensions are kept as they were
given, dtypes and devices are texts; `fits` says what would be taken.
"""

from everyorder.runtime.errors.base import EveryorderError, page

# Why memory is not shared.
NOT_SHARED = {
    "read-only": "it is read-only, and whoever has a tensor may write to it",
    "negative stride": "it runs backwards through memory, which tensors never do",
    "uneven stride": "its strides are no multiples of the size of an element",
    "byte order": "its bytes are not in the order of this machine",
}


class OperandError(EveryorderError, RuntimeError):
    """Base: an operator refuses what it was given; nothing was written."""

    operator: str = ""


class ShapesDoNotFit(OperandError, ValueError):
    """Shapes of the arguments of an operator that do not go together.

    `shapes` are the shapes, with the names of the arguments where these say more;
    `fits` says what would do.
    """

    shapes: tuple[tuple[str, tuple[int, ...]], ...] | tuple[tuple[int, ...], ...] = ()
    reason: str = ""
    fits: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()

    words = """
    ShapesDoNotFit: `{operator}` cannot work on these shapes: {reason}.
      given: {_given}
      fits: {fits}
    ShapesRefused: `{operator}` cannot combine shapes {shapes: and }.
      fits: {fits}
    ViewImpossible: `{operator}` cannot show shape {shape} as {wanted} without a copy.
      strides: {strides}
      to do: use reshape(...), which copies where it must
    ShapesDiffer: The shapes {shapes: and } do not broadcast.
      would fit: counted from the last, sizes that are equal or 1
    """

    @property
    def _given(self) -> str:
        return ", ".join(f"{name} {shape}" for name, shape in self.shapes)


class DTypeRefused(OperandError, TypeError):
    """The operator is not defined for elements of this dtype."""

    argument: str
    dtype: str
    fits: str

    words = """
    DTypeRefused: `{operator}` does not take `{argument}` of dtype {dtype}.
      fits: {fits}
    """


class DevicesDiffer(OperandError, ValueError):
    """What one call works on lies on different devices."""

    devices: tuple[str, ...] = ()
    what: str = ""
    belongs: str = ""
    used_on: str = ""

    words = """
    DevicesDiffer: `{operator}` needs its tensors on one device, but they lie on
        {devices: and }.
      fits: one device for all; a CPU tensor without dimensions goes along
      to do: move them with `.to(device)`
    WrongDevice: {what} belongs to `{belongs}` and cannot be used on `{used_on}`.
    """


class TargetRefused(OperandError, ValueError, TypeError):
    """The tensor that is written to cannot take the result."""

    argument: str
    shape: tuple[int, ...] = ()
    result: tuple[int, ...] | str = ()
    dtype: str = ""
    strides: tuple[int, ...] = ()

    words = """
    TargetShape: `{operator}` computes shape {result}, which cannot be written to
        `{argument}` of shape {shape}.
      fits: shape {result}{_resized}
    TargetDType: `{operator}` computes {result}, which does not convert to the {dtype}
        of `{argument}`.
      fits: {result}, or a dtype that it converts to
    TargetOverlaps: `{operator}` cannot write to `{argument}`: several of its elements
        share one place in memory.
      shape: {shape}, strides {strides}
      to do: write to its `.clone()`
    """

    @property
    def _resized(self) -> str:
        if self.argument == "self":
            return ""
        return ", or a tensor without elements, which is resized"


class IndexOutOfRange(OperandError, IndexError):
    """An index, a part or a dimension that the tensor lacks, or that picks nothing.

    `size` is that of dimension `dim` of the indexed tensor; `wraps` says whether the
    operator counts negative indices from the end; a part of `tensor[...]` is at fault
    as written, at its `position` in the brackets.  A dimension may also be `repeated`.
    """

    index: int | str = ""
    size: int = 0
    dim: int = 0
    wraps: bool = False
    position: int = 0
    shape: tuple[int, ...] = ()
    reason: str = ""
    fits: str = ""
    repeated: bool = False
    dims: tuple[int, ...] = ()
    ndim: int = 0
    argument: str = ""
    found: str = ""

    words = """
    IndexOutOfRange: `{operator}` was given index {index} for dimension {dim}, which has
        size {size}.
      fits: {_room}
      state: nothing was written
    IndexRefused: `tensor[{_written}]`: {reason}.
      shape: {shape}
      fits: {fits}
    DimensionOutOfRange (ValueError): `{operator}` was given dimension {dim} {_fault}.
      fits: {_room}, each once
    NothingToReduce (ValueError): `{operator}` has no result for no elements: shape
        {shape} over dimensions {dims}.
      fits: dimensions whose sizes are not 0
    BadDimension (ValueError): There is no dimension {dim} in a tensor of {ndim}
        dimensions.
      there are: {_room}
    RepeatedDimension (ValueError): A dimension is named twice in {dims}, for a tensor
        of {ndim} dimensions.
    PartOutOfRange (ValueError): `{operator}` does not take {found} for `{argument}`.
      fits: {fits}
    """

    @property
    def _written(self) -> str:
        return f"{':, ' * self.position}{self.index}"

    @property
    def _fault(self) -> str:
        if self.repeated:
            return f"of shape {self.shape} twice"
        return f"for shape {self.shape}, which has no such dimension"

    @property
    def _room(self) -> str:
        if self.code == "IndexOutOfRange":
            if not self.size:
                return "nothing: the dimension is empty"
            return f"{-self.size if self.wraps else 0} to {self.size - 1}"
        if self.code == "DimensionOutOfRange":
            count = max(len(self.shape), 1)
        else:
            count = self.ndim or 1
            # Some take 0 and -1 where there is no dimension; others say nothing.
            if not self.ndim and -count <= self.dim < count:
                return ""
        return f"{-count} to {count - 1}"


class WrongOption(OperandError, ValueError):
    """A value is not one that the operator, or the executor of programs, knows.

    `found` is empty for an `option` of the executor that does not exist.
    """

    argument: str = ""
    found: str = ""
    fits: str = ""
    operator: str = ""
    dtype: str = ""
    option: str = ""
    wanted: str = ""

    words = """
    WrongOption: `{operator}` does not take {found} for `{argument}`.
      fits: {fits}
    NegativeExponent: `{operator}` was given a negative exponent, and {dtype} has no
        fractions.
      fits: exponents from 0 on, or floating-point elements
      state: nothing was written
    ExecutorRefused: The option `{option}` of the executor {_given}.
      it takes: {wanted}
    """

    @property
    def _given(self) -> str:
        if self.found:
            return f"was given {self.found}"
        return "is given, and there is none"


class ArithmeticRefused(EveryorderError, ArithmeticError):
    """There is no such integer, or it does not fit what is to hold it."""

    operator: str = ""
    dtype: str = ""
    value: str = ""
    smallest: int = 0
    largest: int = 0
    operands: tuple[str, ...] = ()

    words = """
    DivisionByZero (ZeroDivisionError, RuntimeError): `{operator}` would divide {dtype}
        by zero: no integer is that.
      fits: divisors without zeros, or floating-point elements
      state: nothing was written
    NumberTooLarge (OverflowError): {value} does not fit `{dtype}`.
      it holds: {smallest} to {largest}
      to do: pass a wider dtype, such as dtype='float64'
    IntegerOverflow (OverflowError): `{operator}` gives an integer that does not fit 64
        bits.
      operands: {operands:, }
      fits: integers from -2**63 to 2**63 - 1
      to do: use smaller operands, or floats
    """


class NoData(OperandError):
    """The numbers of a tensor that holds none (meta) were asked for.

    Make the tensor on a device that holds data, or ask for shape and dtype only.
    """

    device: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    asked: str

    words = """
    NoData: `{asked}` needs the numbers, but a tensor on `{device}` holds none.
      it has: shape {shape} and dtype {dtype}, nothing else
    NoDataToRead: `{operator}` {asked}, but a tensor on {device} holds no elements.
      to do: call it with a tensor on a device that holds data
    """


class UnfitValue(EveryorderError, TypeError):
    """A value, or elements, of another kind than what takes them.

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
    expected: str = ""
    value: str = ""

    words = """
    UnfitValue: `{asked}` takes {fits}, but was given {found}.
      near: {near:, }
      to do: {remedy}
    UnsupportedData: A tensor cannot hold elements of dtype `{dtype}`.
      near: {near:, }
    NoGradient: `requires_grad=True` needs real or complex floating-point elements, but
        these are `{dtype}`.
      to do: pass dtype='float32', or leave requires_grad out
    NotAnInteger: Only one integer can be an index; this tensor holds `{dtype}` in shape
        {shape}.
    NoLength: `{asked}` needs a tensor with a dimension; this one has none.
      to do: read its one element by `item()`
    WrongValue: Expected a value for `{expected}`, found {found}.
      value: {value}
    """


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

    words = """
    BadSize: {asked} is no size for {elements} elements.
      would fit: sizes with that product; one of them may be -1
    TooManyDimensions: `{asked}` makes an array of NumPy, which has at most {most}
        dimensions; the tensor has {ndim}.
      to do: take dimensions together first, by `.reshape(...)`
    NotOneElement: `{asked}` reads a tensor of one element; this one has {elements}, in
        shape {shape}.
    UnevenData: A tensor is made of nested lists of one length at each depth; at depth
        {depth} their lengths differ.
      lengths: {lengths:, } (0 stands for a bare element)
    NoElementsLeft: A tensor of shape {shape} holds elements, so it does not become one
        of shape {asked}; only a tensor without elements takes a new shape.
    BadStrides | {_bad_strides}
    OutOfStorage: A view of shape {shape} with strides {strides} from offset {offset}
        does not fit its storage.
      needs: {needed} elements
      there are: {held}
    """

    @property
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


class NotShareable(EveryorderError):
    """Memory cannot be handed over, or taken from others, as it is: copy or detach it.

    `reason` is one of the keys of `NOT_SHARED` for an array, a text for a `protocol`.
    """

    reason: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    protocol: str = ""
    remedy: str = ""
    asked: str = ""
    device: str = ""
    operator: str = ""

    words = """
    NotShareable (ValueError): An array of shape {shape} and dtype {dtype} cannot be
        shared with a tensor: {_why}.
      to do: copy it: `runtime.tensor(array)`
    MaskedArray (ValueError): A CUDA array of shape {shape} brings a mask, and tensors
        have none.
      to do: fill in what the mask hides, then hand over the elements
    NotExportable (BufferError): This tensor cannot be handed over by {protocol}:
        {reason}.
      to do: {remedy}
    NotOnHost (TypeError): `{asked}` needs the elements in host memory; these are on
        `{device}`.
      to do: copy them: `.to('cpu')`
    NeedsDetach (RuntimeError): `{asked}` would hand out elements whose changes autograd
        cannot see, and this tensor requires grad.
      to do: call `.detach()` on it first
    NotALeaf (RuntimeError): `{asked}` is for leaves of the graph; this tensor was
        computed by `{operator}`.
      to do: call `.detach()` on it first
    """

    @property
    def _why(self) -> str:
        return NOT_SHARED[self.reason]


class NotReplaceable(EveryorderError):
    """What a tensor, a generator or a module holds stays: that cannot be put there.

    `missing` are names that a state lacks, `unexpected` are those that its `module`
    lacks, `unfit` are sentences about others.
    """

    asked: str = ""
    reason: str = ""
    remedy: str = ""
    what: str = ""
    expected: str = ""
    found: str = ""
    name: str = ""
    instead: str = ""
    module: str = ""
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()

    words = """
    NotReplaceable (ValueError, RuntimeError): `{asked}` is refused: {reason}.
      to do: {remedy}
    DoesNotFit (ValueError, RuntimeError): `{asked}` was given a tensor that does not
        fit.
      {what}: {expected} here, {found} there
    FixedAttribute (AttributeError): The {name} of a tensor cannot be set.
      to do: call {instead}, which gives another tensor
    BadState (ValueError): {found} is no state of a generator.
      to do: pass what `get_state()` returned: a seed and a count
    StateMismatch (RuntimeError): The state does not fit `{module}`.
      missing: {missing:, }
      unexpected: {unexpected:, }
      unfit: {unfit:each}
    """


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

    words = """
    OutOfMemory: `{device}` has no room for {asked:bytes}.
      tensors hold: {allocated:bytes}
      arena holds: {reserved:bytes}
      device has left: {free:bytes}
      to do: drop tensors that are not needed, or work on smaller pieces; what the arena
        had cached is given back already
    NotEnoughMemory: There is no memory for a tensor of shape {shape} and dtype {dtype}
        on `{device}`.
      needs: {needed} bytes
      to do: make it smaller, or on `meta`, which needs shapes only
    """


class DeviceUnavailable(EveryorderError, RuntimeError):
    """A device was asked for that this machine or installation cannot give.

    `remedy` says what would make it available.
    """

    device: str
    reason: str
    remedy: str

    words = """
    DeviceUnavailable: There is no device `{device}` to be had: {reason}.
      to do: {remedy}
    """
