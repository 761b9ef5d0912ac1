"""`assert_close`: what passes, and what the errors say."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.tensors import tensor, view_of
from everyorder.runtime.testing import TOLERANCES, NotAlike, NotClose, assert_close
from tests.coded import code

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (tensor([1.0, 2.0]), tensor([1.0, 2.0 + 2e-6]), {}),
        (tensor([1.0]), tensor([1.01]), {"rtol": 0.1, "atol": 0}),
        (tensor([INF, -INF]), tensor([INF, -INF]), {}),
        (tensor([NAN]), tensor([NAN]), {"equal_nan": True}),
        (tensor([1], dtype="bfloat16"), tensor([1.01], dtype="bfloat16"), {}),
        (tensor([1.0]), tensor([1.0], dtype="float64"), {"check_dtype": False}),
        (tensor([1.0]), tensor([1.0], device="hip"), {"check_device": False}),
        (tensor([1.0], requires_grad=True), tensor([1.0]), {}),
        (tensor([]), tensor([]), {}),
        (tensor([1j]), tensor([1j + 1e-7]), {}),
        (tensor([True]), tensor([True]), {}),
        (tensor([1.0], device="meta"), tensor([2.0], device="meta"), {}),
        (np.ones(2), tensor([1.0, 1.0], dtype="float64"), {}),
        ([1.0, 2.0], tensor([1.0, 2.0], dtype="float64"), {}),
        (tensor([[1], [2]]), ((1,), (2,)), {}),
        (1.0, 1.0 + 1e-8, {}),
        (1, 1.0, {}),
        ((1, [2.0, tensor(3)]), [1, (2.0, tensor(3))], {}),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, {}),
        ([], (), {}),
    ],
)
def test_what_is_close(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        (
            tensor([[1.0, 2.0], [3.0, 4.5]]),
            tensor([[1.0, 2.5], [3.0, 4.0]]),
            """\
The values are not close.
  mismatched: 2 of 4 (50.0 %)
  shape:      (2, 2)
  absolute:   0.5 at (0, 1) (atol 1e-05)
  relative:   0.2 at (0, 1) (rtol 1.3e-06)
  first:      2.0 at (0, 1), expected 2.5""",
        ),
        (
            [1, {"w": tensor([NAN, 1.0])}],
            [1, {"w": tensor([0.0, 1.0])}],
            """\
The values are not close at [1]['w'].
  mismatched: 1 of 2 (50.0 %)
  shape:      (2,)
  first:      nan at (0,), expected 0.0""",
        ),
        (
            tensor([2**62, 0]),
            tensor([2**62 + 1, 0]),
            """\
The values are not close.
  mismatched: 1 of 2 (50.0 %)
  shape:      (2,)
  absolute:   1 at (0,) (atol 0)
  relative:   2.1684e-19 at (0,) (rtol 0)
  first:      4611686018427387904 at (0,), expected 4611686018427387905""",
        ),
        (
            True,
            False,
            """\
The values are not close.
  mismatched: 1 of 1 (100.0 %)
  shape:      ()
  absolute:   1 at () (atol 0)
  relative:   inf at () (rtol 0)
  first:      True at (), expected False""",
        ),
    ],
)
def test_what_is_not_close(actual: Any, expected: Any, text: str) -> None:
    with pytest.raises(NotClose) as caught:
        assert_close(actual, expected)
    assert str(caught.value) == text
    assert isinstance(caught.value, AssertionError)


def test_infinities_are_close_to_themselves_only() -> None:
    for actual, expected in ((INF, -INF), (INF, 1.0), (1.0, INF), (NAN, NAN)):
        with pytest.raises(NotClose):
            assert_close(actual, expected)
        with pytest.raises(NotClose):
            assert_close(tensor([actual]), tensor([expected]), rtol=1.0, atol=1.0)


def test_integers_far_apart_do_not_wrap() -> None:
    with pytest.raises(NotClose) as caught:
        assert_close(tensor([-(2**63)]), tensor([2**63 - 1]))
    assert caught.value.absolute == (float(2**64), (0,))


def test_a_message_is_passed_on() -> None:
    for error, other in ((NotClose, 2.0), (NotAlike, "a")):
        with pytest.raises(error, match=r"note: *of step 3"):
            assert_close(1.0, other, msg="of step 3")


@pytest.mark.parametrize(
    ("actual", "expected", "options", "fields"),
    [
        (tensor([1]), tensor([[1]]), {}, ("", "shape", "(1,)", "(1, 1)")),
        (tensor([1]), tensor([1.0]), {}, ("", "dtype", "int64", "float32")),
        (tensor([1]), np.ones(1), {}, ("", "dtype", "int64", "float64")),
        (
            tensor([1]),
            tensor([1], device="hip"),
            {},
            ("", "device", "cpu", "hip"),
        ),
        (
            tensor([[1, 2], [3, 4]]),
            view_of(tensor([[1, 3], [2, 4]]), (2, 2), (1, 2), 0),
            {"check_stride": True},
            ("", "strides", "(2, 1)", "(1, 2)"),
        ),
        ([1, 2], [1], {}, ("", "length", "2", "1")),
        ([[1], [2]], [[1], [2, 3]], {}, ("[1]", "length", "1", "2")),
        ({"a": 1}, {"b": 1}, {}, ("", "keys", "'a'", "'b'")),
        ([1], {"a": 1}, {}, ("", "structure", "list", "dict")),
        (1, [1], {}, ("", "structure", "int", "list")),
        (1, "a", {}, ("", "structure", "int", "str")),
    ],
)
def test_what_is_not_alike(
    actual: Any, expected: Any, options: dict[str, Any], fields: tuple[str, ...]
) -> None:
    with pytest.raises(NotAlike) as caught:
        assert_close(actual, expected, **options)
    assert tuple(caught.value.fields().values()) == (*fields, "")


def test_the_text_of_what_is_not_alike() -> None:
    with pytest.raises(NotAlike) as caught:
        assert_close([tensor([1])], [tensor([1.0])], msg="first step")
    assert str(caught.value) == (
        "The values differ in dtype at [0].\n"
        "  actual:   int64\n"
        "  expected: float32\n"
        "  note:     first step"
    )


def test_both_tolerances_or_neither() -> None:
    for rtol, atol in ((1.0, None), (None, 1.0)):
        with pytest.raises(ValueError, match="both rtol and atol"):
            assert_close(1, 1, rtol=rtol, atol=atol)


def test_what_is_no_number() -> None:
    with pytest.raises(UnfitValue, check=code("UnsupportedData")):
        assert_close(np.array(["a"]), np.array(["a"]))


def test_devices_are_compared_as_values() -> None:
    assert_close(tensor(1, device=Device("hip", 1)), tensor(1, device="hip:1"))


@pytest.mark.torch
def test_the_tolerances_are_torch_s() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for name, (rtol, atol) in TOLERANCES.items():
        dtype = getattr(torch, name)
        one = torch.tensor([1.0], dtype=torch.float64)
        # Just inside and just outside of what ours allows.
        for factor, close in ((0.9, True), (1.1, False)):
            other = one + factor * (atol + rtol)
            judged = torch.isclose(other, one, rtol=rtol, atol=atol).item()
            assert judged is close
        found = torch.testing._comparison.default_tolerances(dtype)
        assert found == (rtol, atol)
