"""Comparison of tensors in tests.

`assert_close` compares an actual with an expected value, element by element, by
`|actual - expected| <= atol + rtol * |expected|`; the default tolerances depend on the
dtypes, and equal infinities are equal.

Rules:
- values are tensors, arrays, numbers, and sequences and mappings of them; both sides
  have the same structure, but a list equals a tuple, and an array or lists equal a
  tensor;
- the error is data: the number of mismatches, the greatest differences and their
  indices, and the path to them inside of containers;
- integers and bools are compared exactly in their own type, never as floats.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everyorder.runtime.errors.base import EveryorderError, page
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import info
from everyorder.runtime.tensors.from_data import as_operand
from everyorder.runtime.tensors.promotion import promote_types
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import host_copy

if TYPE_CHECKING:
    import numpy as np

    Elements = np.ndarray[Any, Any]

# dtype -> (rtol, atol), as torch.testing documents them; exact types are not listed.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


@dataclass(eq=False, kw_only=True)
class NotClose(EveryorderError, AssertionError):
    """Two compared values are not close.

    `where` is the path inside of containers, such as `[1]['weight']`.  `absolute` and
    `relative` are the greatest differences, each with its index; they are None if no
    two numbers differ (NaN on one side only).
    """

    where: str
    mismatched: int
    elements: int
    shape: tuple[int, ...]
    absolute: tuple[float, tuple[int, ...]] | None
    relative: tuple[float, tuple[int, ...]] | None
    rtol: float
    atol: float
    actual: str
    expected: str
    message: str = ""

    def render(self) -> str:
        """Return the counts, the differences, and the values of the first mismatch."""
        place = f" at {self.where}" if self.where else ""
        share = 100 * self.mismatched / self.elements
        rows = [
            ("mismatched", f"{self.mismatched} of {self.elements} ({share:.1f} %)"),
            ("shape", str(self.shape)),
            *_worst("absolute", self.absolute, self.atol, "atol"),
            *_worst("relative", self.relative, self.rtol, "rtol"),
            ("first", f"{self.actual}, expected {self.expected}"),
        ]
        if self.message:
            rows.append(("note", self.message))
        return page(f"The values are not close{place}.", *rows)


@dataclass(eq=False, kw_only=True)
class NotAlike(EveryorderError, AssertionError):
    """Two compared values differ in more than their numbers.

    `aspect` names the difference: structure, length, keys, shape, dtype, device or
    strides.
    """

    where: str
    aspect: str
    actual: str
    expected: str
    message: str = ""

    def render(self) -> str:
        """Return the differing aspect and both of its sides."""
        place = f" at {self.where}" if self.where else ""
        rows = [("actual", self.actual), ("expected", self.expected)]
        if self.message:
            rows.append(("note", self.message))
        return page(f"The values differ in {self.aspect}{place}.", *rows)


@dataclass(frozen=True, slots=True)
class _PairComparison:
    """The options of a comparison, applied to every pair of values."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_dtype: bool
    check_device: bool
    check_stride: bool
    message: str

    def compare(self, actual: Any, expected: Any, where: str) -> None:
        """Compare a pair of mappings, sequences or leaves; raise if they differ."""
        if isinstance(expected, Mapping) and isinstance(actual, Mapping):
            self._mappings(actual, expected, where)
        elif _is_sequence(expected) and _is_sequence(actual):
            self._sequences(actual, expected, where)
        elif _is_leaf(actual, expected) and _is_leaf(expected, actual):
            self._leaves(actual, expected, where)
        else:
            kinds = (type(actual).__name__, type(expected).__name__)
            self._require_equal("structure", *kinds, where)

    def _mappings(
        self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], where: str
    ) -> None:
        self._require_equal("keys", _key_list(actual), _key_list(expected), where)
        for key, value in expected.items():
            self.compare(actual[key], value, f"{where}[{key!r}]")

    def _sequences(
        self, actual: Sequence[Any], expected: Sequence[Any], where: str
    ) -> None:
        self._require_equal("length", str(len(actual)), str(len(expected)), where)
        for index, pair in enumerate(zip(actual, expected, strict=True)):
            self.compare(*pair, f"{where}[{index}]")

    def _leaves(self, actual: Any, expected: Any, where: str) -> None:
        one, other = as_operand(actual), as_operand(expected)
        self._require_equal("shape", str(one.shape), str(other.shape), where)
        typed = _has_dtype(actual) and _has_dtype(expected)
        if self.check_dtype and typed:
            self._require_equal("dtype", str(one.dtype), str(other.dtype), where)
        if isinstance(actual, Tensor) and isinstance(expected, Tensor):
            if self.check_device:
                self._require_equal("device", str(one.device), str(other.device), where)
            if self.check_stride:
                self._require_equal(
                    "strides", str(one.strides), str(other.strides), where
                )
        if one.is_meta and other.is_meta:
            return
        self._elements(one, other, where)

    def _require_equal(
        self, aspect: str, actual: str, expected: str, where: str
    ) -> None:
        if actual != expected or aspect == "structure":
            raise NotAlike(
                where=where,
                aspect=aspect,
                actual=actual,
                expected=expected,
                message=self.message,
            )

    def _elements(self, actual: Tensor, expected: Tensor, where: str) -> None:
        import numpy as np

        common = promote_types(actual.dtype, expected.dtype)
        wide = _comparison_dtype(common)
        one, other = (
            np.asarray(host_copy(each, "assert_close()")).astype(wide)
            for each in (actual, expected)
        )
        rtol, atol = self._tolerances(actual.dtype, expected.dtype)
        with np.errstate(all="ignore"):
            difference = _difference(one, other)
            close = one == other
            if rtol or atol:
                finite = np.isfinite(one) & np.isfinite(other)
                close |= finite & (difference <= atol + rtol * np.abs(other))
            if self.equal_nan:
                close |= np.isnan(one) & np.isnan(other)
            if close.all():
                return
            ratio = difference / np.abs(other)
        first = tuple(map(int, np.argwhere(~close)[0]))
        raise NotClose(
            where=where,
            mismatched=int(np.count_nonzero(~close)),
            elements=close.size,
            shape=close.shape,
            absolute=_greatest(difference, close),
            relative=_greatest(ratio, close),
            rtol=rtol,
            atol=atol,
            actual=f"{one[first].item()} at {first}",
            expected=str(other[first].item()),
            message=self.message,
        )

    def _tolerances(self, *dtypes: DType) -> tuple[float, float]:
        """Return the tolerances of the call, or the wider ones of the dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        return (
            max(TOLERANCES.get(dtype.name, (0.0, 0.0))[0] for dtype in dtypes),
            max(TOLERANCES.get(dtype.name, (0.0, 0.0))[1] for dtype in dtypes),
        )


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_dtype: bool = True,
    check_device: bool = True,
    check_stride: bool = False,
    msg: str | None = None,
) -> None:
    """Check that `actual` is close to `expected`: tensors, arrays, numbers, containers.

    Pass both tolerances or neither.  Python numbers have no dtype to check, and only
    tensors have a device and strides.  On `meta`, only shape, dtype, device and strides
    are compared.

    Raises:
        NotClose: elements differ by more than the tolerances.
        NotAlike: structure, length, keys, shape, dtype, device or strides differ.
        ValueError: one tolerance is passed without the other.
        UnfitValue: a leaf is neither a number nor an array of numbers.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("pass both rtol and atol, or neither")
    checks = (equal_nan, check_dtype, check_device, check_stride)
    _PairComparison(rtol, atol, *checks, msg or "").compare(actual, expected, "")


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_leaf(value: Any, other: Any) -> bool:
    """Return True for numbers; a list is a leaf if `other` is a tensor or an array."""
    if _is_sequence(value):
        return _has_dtype(other)
    return isinstance(value, int | float | complex) or _has_dtype(value)


def _has_dtype(value: Any) -> bool:
    return hasattr(value, "dtype")


def _key_list(keys: Mapping[Any, Any]) -> str:
    return ", ".join(sorted(map(repr, keys)))


def _comparison_dtype(dtype: DType) -> str:
    """Return the NumPy type of comparison, which holds all elements exactly."""
    kind = info(dtype).kind
    return {"b": "bool", "u": "int64", "i": "int64", "f": "float64"}.get(
        kind, "complex128"
    )


def _difference(one: "Elements", other: "Elements") -> "Elements":
    """Return `|one - other|` as floats; integers subtract exactly, without wrapping."""
    import numpy as np

    if one.dtype.kind == "b":
        return (one ^ other).astype(np.float64)
    if one.dtype.kind == "i":
        high, low = np.maximum(one, other), np.minimum(one, other)
        return (high.view(np.uint64) - low.view(np.uint64)).astype(np.float64)
    difference: Elements = np.abs(one - other)
    return difference


def _greatest(
    difference: "Elements", close: "Elements"
) -> tuple[float, tuple[int, ...]] | None:
    """Return the greatest difference of the mismatches and its index, or None."""
    import numpy as np

    counted = np.where(close | np.isnan(difference), -1.0, difference)
    at = np.unravel_index(int(counted.argmax()), counted.shape)
    greatest = float(counted[at])
    return None if greatest < 0 else (greatest, tuple(map(int, at)))


def _worst(
    name: str,
    worst: tuple[float, tuple[int, ...]] | None,
    allowed: float,
    tolerance: str,
) -> tuple[tuple[str, str], ...]:
    if worst is None:
        return ()
    difference, index = worst
    text = f"{difference:.6g} at {index} ({tolerance} {allowed:.6g})"
    return ((name, text),)
