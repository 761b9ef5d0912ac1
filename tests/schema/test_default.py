"""Defaults: text and identity."""

import pytest

from runtime.schema.codes import Device
from runtime.schema.signature import default_identity, default_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (-7, "-7"),
        (1.0, "1."),
        (0.1, "0.10000000000000001"),
        (1e-5, "1.0000000000000001e-05"),
        (1e18, "1000000000000000000."),
        (123456789012345678.0, "123456789012345680."),
        (1e19, "1e+19"),
        (-1e20, "-1e+20"),
        (12345678901234.5, "12345678901234.5"),
        (0.00012345, "0.00012344999999999999"),
        (-0.0, "-0."),
        (float("nan"), "nan"),
        (1j, "0.+1.j"),
        (complex(1.5, -2), "1.5-2.j"),
        ("a\"b'\\\n\x01é", '"a\\"b\\\'\\\\\\n\\001é"'),
        ((1, 2.0), "[1, 2.]"),
        ((), "[]"),
        (Device("cuda", 1), "cuda:1"),
    ],
)
def test_text(value: object, text: str) -> None:
    assert default_text(value) == text


def test_identity_tells_kinds_apart_also_in_lists() -> None:
    ones = [1, 1.0, True, 1 + 0j, "1", (1,), (1.0,), None]
    assert len({default_identity(one) for one in ones}) == len(ones)
    assert default_identity((1, 2)) == default_identity((1, 2))
    assert default_identity(0.0) == default_identity(-0.0)
