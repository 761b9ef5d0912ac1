"""Random schemas and calls that fit them, for the laws of binding and stripping.

True only here: which values and defaults a type is tried with.
"""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from everyorder.runtime.schema.enums import Device, DType, Layout
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema


class Duck:
    """What counts as a tensor."""

    key_bits = 0


X = Duck()

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.sampled_from([-1, 0, 1, 2, True, False]),
    "float": st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan"), 1, True]),
    "bool": st.sampled_from([True, False, 0, 1]),
    "complex": st.sampled_from([0j, 1j, 1, 0.0, complex("nan")]),
    "Scalar": st.sampled_from([0, 1, True, 1.0, -0.0, 1j, 1 + 0j, float("nan")]),
    "str": st.sampled_from(["", "a", "None"]),
    "str?": st.sampled_from(["", "a", None]),
    "int?": st.none() | st.integers(0, 1),
    "int[]": st.lists(st.integers(0, 1), max_size=2),
    "int[2]": st.sampled_from([0, 1, [0, 1], (1, 1), [1], [True, 1]]),
    "float[]": st.lists(st.sampled_from([0, 1.0, -0.0]), max_size=2),
    "bool[]": st.lists(st.booleans(), max_size=2),
    "int[]?": st.none() | st.lists(st.integers(0, 1), max_size=2),
    "ScalarType": st.sampled_from([4, 6, DType.named("float32")]),
    "ScalarType[]": st.lists(st.sampled_from([6, DType.named("int64")]), max_size=2),
    "Layout?": st.sampled_from([None, 0, Layout(1), Layout(0)]),
    "Device": st.sampled_from(["cpu", "cuda:1", Device("cpu"), Device("cuda", 0)]),
    "Tensor": st.sampled_from([X, None]),
    "Tensor?": st.sampled_from([X, None]),
    "Tensor[]": st.lists(st.just(X), max_size=2),
    "Generator?": st.sampled_from([None, object()]),
    "Dict(str, int)": st.sampled_from([{}, {"a": 1}, {"a": True}]),
    "(int, str)": st.sampled_from([(1, "a"), [0, ""]]),
}
# The types that are not here take no default.
DEFAULTS = {
    "int": ["0", "1"],
    "float": ["1", "0.", "2.5"],
    "bool": ["True", "False"],
    "complex": ["1j", "0"],
    "Scalar": ["1", "1.", "True", "0"],
    "str": ['"a"', '""', "None"],
    "str?": ["None", '"a"', '"None"'],
    "int?": ["None", "1"],
    "int[]": ["[0, 1]", "[]"],
    "int[2]": ["1", "[0, 1]"],
    "float[]": ["[0.]", "[]"],
    "bool[]": ["[True]", "[]"],
    "int[]?": ["None"],
    "ScalarType": ["float", "4"],
    "ScalarType[]": ["[float]", "[]"],
    "Layout?": ["None", "strided"],
    "Device": ["'cpu'", "'cuda:1'"],
    "Tensor": ["None"],
    "Tensor?": ["None"],
    "Generator?": ["None"],
}


class Call(NamedTuple):
    """A schema, and the arguments of a call that fits it."""

    schema: Schema
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@st.composite
def calls(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(VALUES)) -> Call:
    """A schema of up to six arguments of these types, and a call."""
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=6))
    positional = draw(st.integers(0, len(chosen)))
    optional: list[bool] = []
    for index, kind in enumerate(chosen):
        # Behind an argument with a default every positional one has a default.
        follows = 0 < index < positional and optional[-1]
        optional.append(kind in DEFAULTS and (follows or draw(st.booleans())))
        if follows and not optional[-1]:
            chosen[index], optional[-1] = "int", True
    texts, args, kwargs = [], [], {}
    by_place = True
    for index, kind in enumerate(chosen):
        star = "*, " if index == positional else ""
        default = f"={draw(st.sampled_from(DEFAULTS[kind]))}" if optional[index] else ""
        texts.append(f"{star}{kind} a{index}{default}")
        by_place = by_place and index < positional and draw(st.integers(0, 3)) > 0
        if by_place:
            args.append(draw(VALUES[kind]))
        elif not optional[index] or draw(st.booleans()):
            kwargs[f"a{index}"] = draw(VALUES[kind])
    if draw(st.booleans()):
        kwargs = dict(reversed(kwargs.items()))
    return Call(parse_schema(f"t::f({', '.join(texts)}) -> ()"), tuple(args), kwargs)
