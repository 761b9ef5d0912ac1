"""Errors of tensors: whole texts, bases and pickling."""

from pickle import dumps, loads

import pytest

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.tensor import BadSize, NoData, UnfitValue

TEXTS: list[tuple[EveryorderError, type[Exception], str]] = [
    (
        NoData(
            code="NoData", device="meta", dtype="float32", shape=(2, 3), asked="numpy()"
        ),
        RuntimeError,
        """\
`numpy()` needs the elements, but a tensor on `meta` holds none.
  it has: shape (2, 3) and dtype float32, nothing else""",
    ),
    (
        UnfitValue(
            code="UnsupportedData", dtype="flaot32", near=("float32", "float16")
        ),
        TypeError,
        """\
A tensor cannot hold elements of dtype `flaot32`.
  near: float32, float16""",
    ),
    (
        UnfitValue(code="UnsupportedData", dtype="object", near=()),
        TypeError,
        "A tensor cannot hold elements of dtype `object`.",
    ),
    (
        UnfitValue(code="NoGradient", dtype="int64"),
        TypeError,
        """\
`requires_grad=True` needs real or complex floating-point elements, but these
are `int64`.
  to do: pass dtype='float32', or leave requires_grad out""",
    ),
    (
        BadSize(code="NotOneElement", shape=(2,), elements=2),
        ValueError,
        "`item()` reads a tensor of one element; this one has 2, in shape (2,).",
    ),
]


@pytest.mark.parametrize(
    ("error", "base", "text"), TEXTS, ids=lambda v: type(v).__name__
)
def test_an_error_reads(
    error: EveryorderError, base: type[Exception], text: str
) -> None:
    assert str(error) == text
    assert isinstance(error, base)
    copy = loads(dumps(error))
    assert type(copy) is type(error)
    assert copy.fields() == error.fields()
