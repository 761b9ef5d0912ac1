"""The restricted codec: what it writes, and what its reader makes of anything."""

import math
import tracemalloc
from collections import namedtuple
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime.errors import Undecodable, Unsendable
from everyorder.runtime.rpc.codec import restricted, unpack
from everyorder.runtime.rpc.codec.restricted import DEEPEST, ROWS
from everyorder.runtime.rpc.protocol.identities import (
    LARGEST_ID,
    WORKER_NAME,
    WorkerInfo,
)
from everyorder.runtime.schema.enums import Device, DType, Layout, MemoryFormat
from everyorder.runtime.tensors.construction import wrap_number
from everyorder.runtime.tensors.storage import WrapperStorage
from everyorder.runtime.tensors.tensor_impl import instance_of
from tests.coded import code
from tests.rpc.codec.things import LOCK, Known, Point, Reference, as_received

# The sizes and the kind, behind what was written.
TAIL = bytes(8) + b"\x03"


def there(value: Any) -> Any:
    return unpack(as_received(restricted.pack(value)), trusted=False)


def read(body: bytes, *frames: bytes) -> Any:
    """What the reader makes of a body."""
    return unpack([body + TAIL, *frames], trusted=False)


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
    st.binary().map(bytearray),
    st.sampled_from([DType(code) for code in range(12)]),
    st.sampled_from([Device("cpu"), Device("meta"), Device("cuda", 3)]),
    st.builds(
        WorkerInfo,
        st.from_regex(WORKER_NAME, fullmatch=True),
        st.integers(0, LARGEST_ID),
    ),
)
KEYS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Equal, of the same classes all the way down, and one NaN as good as another."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same([*one.items()], [*other.items()])
    if isinstance(one, float):
        return math.copysign(1, one) == math.copysign(1, other) and (
            one == other or (math.isnan(one) and math.isnan(other))
        )
    if isinstance(one, complex):
        return same((one.real, one.imag), (other.real, other.imag))
    return bool(one == other)


@settings(max_examples=60)
@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    """Of the same classes, in the same order, and written in one way only."""
    packed = restricted.pack(value)
    found = unpack(as_received(packed), trusted=False)
    assert same(found, value)
    assert restricted.pack(found) == packed
    assert restricted.fits(value)
    assert restricted.try_pack(value) == packed


def test_every_row_has_an_example() -> None:
    """A row that nobody tries may be wrong."""
    examples: list[Any] = [
        *(None, True, 3, 1.5, 2j, "te\ud800xt", b"bytes", bytearray(b"x")),
        *([1], (1,), {1: 2}, runtime.ones(2), runtime.Parameter(runtime.ones(1))),
        *(Device("cpu"), runtime.float32, Layout(0), MemoryFormat(0)),
        WorkerInfo("w", 1),
    ]
    tags = [restricted.pack(each).payload[0][0] for each in examples]
    assert tags == [row.tag for row in ROWS[:-1]]
    assert [row.tag for row in ROWS] == [*range(len(ROWS))]
    for each in examples:
        found = there([each])[0]
        assert type(found) is type(each)
        if isinstance(each, runtime.Tensor):
            assert found.tolist() == each.tolist()
        else:
            assert found == each


def test_the_bytes_of_a_value() -> None:
    """They do not change: another version may be at the other end."""
    value = ("a", [1, -1, 300], {None: True}, 0.5)
    (frame,) = restricted.pack(value).payload
    assert bytes(frame).hex(" ") == (
        "09 04 05 01 61 08 03 02 01 01 02 01 ff 02 02 2c 01 "
        "0a 01 00 01 01 03 00 00 00 00 00 00 e0 3f "
        "00 00 00 00 00 00 00 00 03"
    )


class Number(IntEnum):
    ONE = 1


Pair = namedtuple("Pair", "a b")


class Text(str):
    """Not quite a text."""


class Handled(runtime.Tensor):
    """A class of tensors."""


@pytest.mark.parametrize(
    "value",
    [
        *(
            {1},
            Point(1, 2),
            Number.ONE,
            Pair(1, 2),
            Text("x"),
            len,
            Point,
            LOCK,
            object(),
        ),
        {(1,): 2},
        {2**63: 1},
        {1j: 1},
        runtime.Tensor._make_subclass(Handled, runtime.ones(2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_row_is_refused_where_it_is(value: Any) -> None:
    assert not restricted.fits([value])
    assert restricted.try_pack([value]) is None
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        restricted.pack(("f", (1, {"x": value}), {}), root=("function", "args", "kw"))
    assert caught.value.path.startswith("args[1]['x']")


def test_the_text_of_a_refusal() -> None:
    with pytest.raises(Unsendable, check=code("Unsendable")) as caught:
        restricted.pack(({1},), root=("result",))
    assert str(caught.value) == (
        "`result`, a set, cannot be sent: it cannot be pickled.\n"
        "  reason: TypeError: the restricted codec does not support its class\n"
        "  to do:  send its parts, or a reference to it"
    )


def test_tensors_with_keys_of_their_own() -> None:
    """Pickle knows them; those of inference mode arrive as plain ones."""
    plain = runtime.ones(2)
    for value in (
        wrap_number(3),
        plain.with_keyset(plain.keyset.remove("AutogradCPU")),
    ):
        assert not restricted.fits(value)
    place = WrapperStorage("Wrapper", plain.device, plain.dtype, 2), 0, (1,)
    bare = instance_of(
        runtime.Tensor, (2,), plain.dtype, plain.device, plain.key_bits, place
    )
    assert not restricted.fits(bare)
    with runtime.inference_mode():
        sent = runtime.ones(2)
    found = there(sent)
    assert found.keyset == plain.keyset
    assert found.tolist() == [1.0, 1.0]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_containers_are_nested_so_deep_at_most() -> None:
    assert there(nested(DEEPEST)) == nested(DEEPEST)
    loop: list[Any] = []
    loop.append(loop)
    for value in (nested(DEEPEST + 1), {1: nested(DEEPEST)}, loop, nested(5000)):
        with pytest.raises(
            Unsendable, check=code("Unsendable"), match="nested more than 100 deep"
        ):
            restricted.pack(value)
    for opening in (b"\x08\x01", b"\x09\x01", b"\x0a\x01\x00"):
        with pytest.raises(Undecodable, match="nested more than 100 deep"):
            read(opening * (DEEPEST + 1) + b"\x00")
        with pytest.raises(Undecodable, match="nested more than 100 deep"):
            read(opening * 1_000_000)


def test_references_are_carried() -> None:
    one = Reference("one")
    packed = restricted.pack({"a": [one, one]}, Known())
    assert packed.carries == ["fork of one"]
    found = unpack(packed.payload, Known(), packed.carries, trusted=False)
    assert found["a"][0].to == "one"
    assert found["a"][0] is found["a"][1]
    with pytest.raises(Undecodable, match="does not carry it"):
        unpack(packed.payload, Known(), (), trusted=False)


# Anything.


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    """A value that is written just so, or our error: nothing else comes out."""
    try:
        value = read(body)
    except Undecodable:
        return
    assert bytes(restricted.pack(value).payload[0]) == body + TAIL


@settings(max_examples=60)
@given(VALUES, st.data())
def test_any_change(value: Any, data: st.DataObject) -> None:
    body = bytearray(restricted.pack(value).payload[0])
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] = data.draw(st.integers(0, 255))
    try:
        found = unpack([bytes(body)], trusted=False)
    except (Undecodable, runtime.errors.UnknownCallable):
        return
    assert restricted.pack(found).payload[0] == body


@settings(max_examples=60)
@given(VALUES)
def test_any_cut(value: Any) -> None:
    body = bytes(restricted.pack(value).payload[0])[: -len(TAIL)]
    for end in range(len(body)):
        with pytest.raises(Undecodable):
            read(body[:end])
    with pytest.raises(Undecodable, match="trailing bytes"):
        read(body + b"\x00")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff", "unknown tag 255"),
        (bytes([len(ROWS)]), "unknown tag"),
        (b"\x01\x02", "invalid bool 2"),
        (b"\x02\x02\x01\x00", "an integer is not in its shortest form"),
        (b"\x02\x00", "an integer is not in its shortest form"),
        (b"\x05\x81\x00a", "a number is not in its shortest form"),
        (b"\x05" + b"\x80" * 20, "a number is too long"),
        (b"\x05\x01\xff", "invalid UTF-8 string"),
        (b"\x08\xff\xff\xff\xff\x7f", "counts exceed its size"),
        (b"\x06\xff\xff\xff\xff\x7f", "it is truncated"),
        (b"\x0a\x02\x00\x00\x00\x00", "duplicate key"),
        (b"\x0a\x01\x08\x00\x00", "invalid key a list"),
        (b"\x0a\x01\x02\x09" + b"\xff" * 8 + b"\x7f\x00", "invalid key an int"),
        (b"\x0b\x00\x00", "table of tensors"),
        (b"\x0d\x03abc", "unknown device"),
        (b"\x0e\xff", "invalid DType code 255"),
        (b"\x12\x00", "does not carry it"),
    ],
)
def test_what_is_wrong(body: bytes, reason: str) -> None:
    with pytest.raises(Undecodable) as caught:
        read(body)
    assert reason in " ".join(str(caught.value).split())


def test_memory_is_bounded_by_what_arrived() -> None:
    """The worst that a byte becomes is known: an empty container in a list."""
    many = 20_000
    count = bytes([many & 0x7F | 0x80, many >> 7 & 0x7F | 0x80, many >> 14])
    for body in (
        b"\x08" + count + b"\x08\x00" * many,
        b"\x08" + count + b"\x0a\x00" * many,
        b"\x08\xff\xff\xff\xff\xff\x7f" + b"\x00" * many,
        b"\x06\xff\xff\xff\xff\xff\x7f",
        b"\x0a\xff\xff\xff\x7f" + b"\x00" * many,
    ):
        tracemalloc.start()
        try:
            read(body)
        except Undecodable:
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 100 * len(body) + 10_000


def test_nothing_is_imported_and_nothing_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither an import nor a pickle is tried, whatever arrives."""

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("code of the writer's choice")

    monkeypatch.setattr("pickle.loads", never)
    monkeypatch.setattr("importlib.import_module", never)
    assert there(["os.system", b"\x80\x05cos\nsystem\n.", ("a", {"b": 1})])[0] == (
        "os.system"
    )


@pytest.mark.parametrize("name", ["a*", "", "a b"])
def test_what_is_no_worker_is_refused(name: str) -> None:
    info = WorkerInfo("abc", 1)
    object.__setattr__(info, "name", name)
    packed = restricted.pack(info)
    with pytest.raises(Undecodable, match="it is not a worker"):
        unpack(packed.payload, trusted=False)
