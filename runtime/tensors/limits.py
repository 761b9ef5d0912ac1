"""The limits of dtypes, by the names that NumPy and torch give them.

True only here: `finfo` and `iinfo`, views of what `runtime.tensors.elements` knows.
"""

from math import floor, log10

from runtime.errors.tensor import UnfitValue
from runtime.schema.codes import DType
from runtime.tensors.elements import ElementInfo, info, real_dtype, supported


def _facts(asked: str, given: object, kinds: str) -> tuple[DType, ElementInfo]:
    """The facts of a dtype of some kinds.  Raises `UnfitValue`."""
    dtype = supported(given)
    found = info(dtype)
    if found.kind not in kinds:
        fits = "an integer dtype" if "i" in kinds else "a floating or complex dtype"
        raise UnfitValue(asked=asked, found=str(dtype), fits=fits)
    return dtype, found


class finfo:  # noqa: N801  # the name that programs look for
    """The limits of a floating-point dtype; of a complex one, those of its parts.

    Raises `UnfitValue` for any other.
    """

    def __init__(self, dtype: object = "float32") -> None:
        kind, facts = _facts("finfo", dtype, "fc")
        self.dtype = real_dtype(kind).name
        parts = 2 if kind.is_complex else 1
        self.bits = 8 * facts.itemsize // parts
        self.eps = facts.eps
        self.max = float(facts.largest)
        self.min = -self.max
        self.tiny = self.smallest_normal = float(facts.smallest)
        # As many decimal digits as it keeps whatever the number.
        self.resolution = 10.0 ** -floor(-log10(facts.eps))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, "
            f"max={self.max:g}, eps={self.eps:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  # as above
    """The limits of an integer dtype.  Raises `UnfitValue` for any other."""

    def __init__(self, dtype: object) -> None:
        kind, facts = _facts("iinfo", dtype, "iu")
        self.dtype = kind.name
        self.bits = 8 * facts.itemsize
        self.max, self.min = int(facts.largest), int(facts.smallest)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
