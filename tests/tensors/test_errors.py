"""The errors of tensors and storages: whole texts, bases, pickling."""

from pickle import dumps, loads

import pytest

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.tensor import (
    NOT_SHARED,
    ArithmeticRefused,
    BadSize,
    DeviceUnavailable,
    IndexOutOfRange,
    NotReplaceable,
    NotShareable,
    ShapesDoNotFit,
    UnfitValue,
)

TEXTS: list[tuple[EveryorderError, type[Exception], str]] = [
    (
        DeviceUnavailable(device="cuda", reason="there is no driver", remedy="buy one"),
        RuntimeError,
        """\
The device `cuda` is not available: there is no driver.
  to do: buy one""",
    ),
    (
        DeviceUnavailable(device="cuda", reason="there is no driver", remedy=""),
        RuntimeError,
        "The device `cuda` is not available: there is no driver.",
    ),
    (
        BadSize(
            code="OutOfStorage",
            shape=(2, 3),
            strides=(3, 1),
            offset=1,
            needed=7,
            held=6,
        ),
        ValueError,
        """\
A view of shape (2, 3) with strides (3, 1) from offset 1 does not fit its
storage.
  needs:     7 elements
  there are: 6""",
    ),
    (
        BadSize(code="BadStrides", shape=(2,), strides=(-1,), offset=0),
        ValueError,
        """\
Strides (-1,) and offset 0 do not describe a view of shape (2,): there must be
one stride a dimension, and none of the numbers may be negative.""",
    ),
    (
        NotShareable(
            code="NotShareable", reason="negative stride", shape=(3,), dtype="float64"
        ),
        ValueError,
        """\
An array of shape (3,) and dtype float64 cannot be shared with a tensor: it has
a negative stride, which tensors cannot have.
  to do: copy it: `runtime.tensor(array)`""",
    ),
    (
        NotShareable(
            code="NotExportable",
            protocol="DLPack",
            reason="it requires grad",
            remedy="detach it",
        ),
        BufferError,
        """\
This tensor cannot be exported by DLPack: it requires grad.
  to do: detach it""",
    ),
    (
        NotShareable(
            code="NotExportable", protocol="DLPack", reason="it is far away", remedy=""
        ),
        BufferError,
        "This tensor cannot be exported by DLPack: it is far away.",
    ),
    (
        BadSize(code="NoElementsLeft", shape=(2,), asked=(3,)),
        ValueError,
        """\
A tensor of shape (2,) holds elements, so it cannot become one of shape (3,);
only a tensor without elements can change its shape.""",
    ),
    (
        BadSize(code="NotOneElement", shape=(2,), elements=2, asked="bool()"),
        ValueError,
        "`bool()` reads a tensor of one element; this one has 2, in shape (2,).",
    ),
    (
        UnfitValue(code="NotAnInteger", dtype="float32", shape=()),
        TypeError,
        """\
Only one integer can be an index; this tensor holds `float32` in shape ().""",
    ),
    (
        ArithmeticRefused(
            code="NumberTooLarge", value="300", dtype="uint8", smallest=0, largest=255
        ),
        OverflowError,
        """\
300 does not fit `uint8`.
  it holds: 0 to 255
  to do:    pass a wider dtype, such as dtype='float64'""",
    ),
    (
        BadSize(code="UnevenData", depth=1, lengths=(2, 0)),
        ValueError,
        """\
A tensor needs nested lists of one length at each depth; at depth 1 their
lengths differ.
  lengths: 2, 0 (0 means a bare element)""",
    ),
    (
        NotShareable(code="NeedsDetach", asked="numpy()"),
        RuntimeError,
        """\
`numpy()` would export elements whose changes autograd cannot see, and this
tensor requires grad.
  to do: call `.detach()` on it first""",
    ),
    (
        NotShareable(code="NotOnHost", asked="numpy()", device="cuda:0"),
        TypeError,
        """\
`numpy()` needs the elements in host memory; these are on `cuda:0`.
  to do: copy them: `.to('cpu')`""",
    ),
    (
        NotShareable(code="NotALeaf", asked="deepcopy()", operator="AddBackward"),
        RuntimeError,
        """\
`deepcopy()` is for leaves of the graph; this tensor was computed by
`AddBackward`.
  to do: call `.detach()` on it first""",
    ),
    (
        UnfitValue(code="NoLength", asked="len()"),
        TypeError,
        """\
`len()` needs a tensor with a dimension; this one has none.
  to do: read its one element by `item()`""",
    ),
    (
        ShapesDoNotFit(code="ShapesDiffer", shapes=((2,), (3, 1), (4,))),
        ValueError,
        """\
The shapes (2,) and (3, 1) and (4,) do not broadcast.
  would fit: counted from the last, sizes that are equal or 1""",
    ),
    (
        BadSize(code="BadSize", asked=(2, -1), elements=5),
        ValueError,
        """\
(2, -1) is not a size for 5 elements.
  would fit: sizes with that product; one of them may be -1""",
    ),
    (
        IndexOutOfRange(code="BadDimension", dim=3, ndim=2),
        IndexError,
        """\
There is no dimension 3 in a tensor of 2 dimensions.
  there are: -2 to 1""",
    ),
    (
        IndexOutOfRange(code="BadDimension", dim=1, ndim=0),
        IndexError,
        """\
There is no dimension 1 in a tensor of 0 dimensions.
  there are: -1 to 0""",
    ),
    (
        IndexOutOfRange(code="RepeatedDimension", dims=(0, -2), ndim=2),
        ValueError,
        "A dimension is named twice in (0, -2), for a tensor of 2 dimensions.",
    ),
    (
        NotReplaceable(code="BadState", found="(1,)"),
        ValueError,
        """\
(1,) is not a state of a generator.
  to do: pass what `get_state()` returned: a seed and a count""",
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


@pytest.mark.parametrize("reason", NOT_SHARED)
def test_every_reason_reads(reason: str) -> None:
    text = str(NotShareable(code="NotShareable", reason=reason, shape=(), dtype="int8"))
    assert NOT_SHARED[reason].split()[0] in text
