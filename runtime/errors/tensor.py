"""Errors of operators that reject their operands, and of tensors and memory.

Who must act: the caller.

Rules: an operator that raises one of these has written nothing; `operator` is the
operator as called (`core::add_`, `core::add.out`); shapes and dimensions are recorded
as passed, dtypes and devices are texts; `fits` says what would be accepted.
"""

from everyorder.runtime.errors.base import EveryorderError, page

# Reason -> why an array and a tensor cannot share memory.
NOT_SHARED = {
    "read-only": "it is read-only, and tensors are writable",
    "negative stride": "it has a negative stride, which tensors cannot have",
    "uneven stride": "its strides are not multiples of the size of an element",
    "byte order": "its bytes are not in the order of this machine",
}


class OperandError(EveryorderError, RuntimeError):
    """Base: an operator rejects its operands; nothing was written."""

    operator: str = ""


class ShapesDoNotFit(OperandError, ValueError):
    """The shapes of the arguments of an operator do not fit together.

    `shapes` are the shapes, with the names of the arguments where these say more;
    `fits` says which shapes would fit.
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
    ViewImpossible: `{operator}` cannot view shape {shape} as {wanted} without a copy.
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
    """The operands of one call are on different devices."""

    devices: tuple[str, ...] = ()
    what: str = ""
    belongs: str = ""
    used_on: str = ""

    words = """
    DevicesDiffer: `{operator}` needs its tensors on one device, but they are on
        {devices: and }.
      fits: one device for all; a CPU tensor without dimensions fits any
      to do: move them with `.to(device)`
    WrongDevice: {what} belongs to `{belongs}` and cannot be used on `{used_on}`.
    """


class TargetRefused(OperandError, ValueError, TypeError):
    """The tensor that is written to cannot hold the result."""

    argument: str
    shape: tuple[int, ...] = ()
    result: tuple[int, ...] | str = ()
    dtype: str = ""
    strides: tuple[int, ...] = ()
    other: str = ""

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
    TargetsOverlap: `{operator}` cannot write to `{argument}` and to `{other}`: they
        share memory.
      fits: a tensor of its own for each result
    """

    @property
    def _resized(self) -> str:
        if self.argument == "self":
            return ""
        return ", or a tensor without elements, which is resized"


class IndexOutOfRange(OperandError, IndexError):
    """An index, a part or a dimension does not exist in the tensor, or selects nothing.

    `size` is that of dimension `dim` of the indexed tensor; `wraps` is true if the
    operator counts negative indices from the end; a part of `tensor[...]` is quoted as
    written, at its `position` in the brackets.  A dimension may also be `repeated`.
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
            # Some operators accept 0 and -1 for a tensor without dimensions; for the
            # others there is no range to show.
            if not self.ndim and -count <= self.dim < count:
                return ""
        return f"{-count} to {count - 1}"


class WrongOption(OperandError, ValueError):
    """A value is not one that the operator, or the executor of programs, accepts.

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
    ExecutorRefused: The option `{option}` of the executor
        [[was given {found}||does not exist]].
      it takes: {wanted}
    """


class ArithmeticRefused(EveryorderError, ArithmeticError):
    """The result is not an integer, or does not fit the type that must hold it."""

    operator: str = ""
    dtype: str = ""
    value: str = ""
    smallest: int = 0
    largest: int = 0
    operands: tuple[str, ...] = ()

    words = """
    DivisionByZero (ZeroDivisionError, RuntimeError): `{operator}` would divide {dtype}
        by zero: no integer is the result.
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
    """The elements of a tensor without data (meta) were requested.

    Create the tensor on a device that holds data, or request shape and dtype only.
    """

    device: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    asked: str

    words = """
    NoData: `{asked}` needs the elements, but a tensor on `{device}` holds none.
      it has: shape {shape} and dtype {dtype}, nothing else
    NoDataToRead: `{operator}` {asked}, but a tensor on {device} holds no elements.
      to do: call it with a tensor on a device that holds data
    """


class UnfitValue(EveryorderError, TypeError):
    """A value, or elements, of a type that the function does not accept.

    `asked` is the function called or the expression written, `found` the value, `fits`
    what is accepted; `near` are names similar to the value.
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
    """Invalid sizes, strides or a wrong number of elements.

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
    BadSize: {asked} is not a size for {elements} elements.
      would fit: sizes with that product; one of them may be -1
    TooManyDimensions: `{asked}` creates an array of NumPy, which has at most {most}
        dimensions; the tensor has {ndim}.
      to do: merge dimensions first, by `.reshape(...)`
    NotOneElement: `{asked}` reads a tensor of one element; this one has {elements}, in
        shape {shape}.
    UnevenData: A tensor needs nested lists of one length at each depth; at depth
        {depth} their lengths differ.
      lengths: {lengths:, } (0 means a bare element)
    NoElementsLeft: A tensor of shape {shape} holds elements, so it cannot become one
        of shape {asked}; only a tensor without elements can change its shape.
    BadStrides | {_bad_strides}
    OutOfStorage: A view of shape {shape} with strides {strides} from offset {offset}
        does not fit its storage.
      needs: {needed} elements
      there are: {held}
    """

    @property
    def _bad_strides(self) -> str:
        """Return the sentence with the shape, the strides and the offset."""
        if max(self.strides, default=0) >= 1 << 63:
            return page(
                f"A tensor of shape {self.shape} cannot be contiguous: its strides "
                f"{self.strides} do not fit 64 bits.",
                ("fits", "a shape whose sizes, 0 taken as 1, have a smaller product"),
            )
        return page(
            f"Strides {self.strides} and offset {self.offset} do not describe a view "
            f"of shape {self.shape}: there must be one stride a dimension, and none "
            "of the numbers may be negative."
        )


class NotShareable(EveryorderError):
    """Memory cannot be exported or imported without a copy: copy or detach the tensor.

    `reason` is a key of `NOT_SHARED` for an array, a text for a `protocol`.
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
    CopyNeeded (ValueError): `{asked}` cannot share memory with the data: {reason}.
      to do: leave `copy` out, or pass copy=True
    MaskedArray (ValueError): A CUDA array of shape {shape} has a mask, which tensors
        do not support.
      to do: fill the masked elements, then pass the array without the mask
    NotExportable (BufferError): This tensor cannot be exported by {protocol}:
        {reason}.
      to do: {remedy}
    NotOnHost (TypeError): `{asked}` needs the elements in host memory; these are on
        `{device}`.
      to do: copy them: `.to('cpu')`
    NeedsDetach (RuntimeError): `{asked}` would export elements whose changes autograd
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
    """An attribute of a tensor, a generator or a module cannot get that value.

    `missing` are names that a state lacks, `unexpected` are names that its `module`
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
      to do: call {instead}, which returns another tensor
    BadState (ValueError): {found} is not a state of a generator.
      to do: pass what `get_state()` returned: a seed and a count
    StateMismatch (RuntimeError): The state does not fit `{module}`.
      missing: {missing:, }
      unexpected: {unexpected:, }
      unfit: {unfit:each}
    """


class OutOfMemory(EveryorderError, MemoryError):
    """A device cannot satisfy an allocation, not even after its cache was released.

    All numbers are bytes. `allocated` is used by live tensors, `reserved` is what the
    arena holds of the device in all, `free` what the device reports as left.
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
      to do: release tensors that are not needed, or work on smaller pieces; the cache
        of the arena is empty already
    NotEnoughMemory: There is no memory for a tensor of shape {shape} and dtype {dtype}
        on `{device}`.
      needs: {needed} bytes
      to do: make it smaller, or on `meta`, which needs shapes only
    """


class DeviceUnavailable(EveryorderError, RuntimeError):
    """The requested device is not available on this machine or installation.

    `remedy` says what would make it available.
    """

    device: str
    reason: str
    remedy: str

    words = """
    DeviceUnavailable: The device `{device}` is not available: {reason}.
      to do: {remedy}
    """
