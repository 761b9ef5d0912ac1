"""Damaged archives, and ones made to do harm: a clear error, and nothing runs."""

import builtins
import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.errors import ArchiveError
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.script.archive import container, loading
from tests.coded import code, coded
from tests.script.archive.forged import (
    SAMPLE,
    members,
    packed,
    refusal,
    refused_or_harmless,
)
from tests.script.archive.samples import (
    loaded,
    saved,
)

NotAnArchive = coded(ArchiveError, "NotAnArchive")

# Damage


def test_every_bit_counts_or_changes_nothing() -> None:
    chance = random.Random(1)
    kinds: dict[str, int] = {}
    plain = saved(loaded(SAMPLE))
    for _ in range(150):
        data = bytearray(SAMPLE)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            back = loaded(bytes(data))
        except ArchiveError as error:
            name = code_of(error)
        else:
            name = "harmless"
            assert saved(back) == plain
        kinds[name] = kinds.get(name, 0) + 1
    assert kinds["DamagedArchive"] > 60
    # Dates, versions of programs, paddings.
    assert kinds["harmless"] < 60


def test_every_length_is_too_short() -> None:
    for length in range(0, len(SAMPLE), 37):
        with pytest.raises((NotAnArchive, ArchiveError)):
            loaded(SAMPLE[:length])


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_bytes_are_no_archive(data: bytes) -> None:
    with pytest.raises(ArchiveError, check=code("NotAnArchive")):
        loaded(data)


@settings(max_examples=50)
@given(st.data())
def test_pieces_of_texts_are_refused_or_harmless(data: st.DataObject) -> None:
    contents = members(SAMPLE)
    name = data.draw(st.sampled_from([n for n in contents if "storages" not in n]))
    text = bytearray(contents[name])
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 40, len(text))))
    text[start:stop] = data.draw(st.binary(max_size=12))
    refused_or_harmless(packed(contents | {name: bytes(text)}))


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2**65)
    | st.floats()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ref", "tuple", "object", "list", "tensor", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.data())
def test_other_tables_are_refused_or_harmless(data: st.DataObject) -> None:
    member = data.draw(st.sampled_from(["data.json", "types.json", "debug.json"]))
    contents = members(SAMPLE)
    table = json.loads(contents[member])
    at: Any = table
    for _ in range(data.draw(st.integers(0, 5))):
        keys = [*at] if isinstance(at, dict) else [*range(len(at))]
        inner = [
            each for each in keys if isinstance(at[each], dict | list) and at[each]
        ]
        if not inner:
            break
        at = at[data.draw(st.sampled_from(inner))]
    keys = [*at] if isinstance(at, dict) else [*range(len(at))]
    at[data.draw(st.sampled_from(keys))] = data.draw(_JSON)
    text = json.dumps(table).encode()
    refused_or_harmless(packed(contents | {member: text}))


# Versions


def test_a_newer_format() -> None:
    with pytest.raises(ArchiveError, check=code("NewerArchive")) as raised:
        loaded(packed(members(SAMPLE) | {"version": b"7\n"}))
    assert (
        str(raised.value)
        == "in the buffer has format 7; this reader supports up to 1.\n"
        "  to do: Load it with a newer version, or save it again with this one."
    )


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (b"0", "DamagedArchive: there was no format 0"),
        (b"", "DamagedArchive: this is not a number"),
        (b"9" * 5000, "DamagedArchive: this is not a number"),
        ("٣".encode(), "DamagedArchive: this is not a number"),
        (b"\xff", "DamagedArchive: the text is not UTF-8"),
    ],
)
def test_no_version(version: bytes, text: str) -> None:
    assert refusal(packed(members(SAMPLE) | {"version": version})) == text


def test_no_archive_at_all() -> None:
    assert refusal(b"") == "NotAnArchive: there is no directory at its end"
    assert (
        refusal(packed({"a": b""})) == "NotAnArchive: the member `version` is missing"
    )


# Members


@pytest.mark.parametrize(
    "name",
    ["../a", "a/../../b", "/etc/passwd", "a//b", "C:\\x", "a\\b", "./a", "a/"],
)
def test_names_that_lead_elsewhere(name: str) -> None:
    text = "DamagedArchive: the name of the member leads elsewhere"
    assert refusal(packed(members(SAMPLE) | {name: b""})) == text


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_are_there_twice() -> None:
    buffer = BytesIO(SAMPLE)
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr("data.json", b"{}")
    assert refusal(buffer.getvalue()) == "DamagedArchive: duplicate member"


def test_members_that_are_missing() -> None:
    for name in members(SAMPLE):
        if name == "version" or name.startswith("code/"):
            continue
        left = {k: v for k, v in members(SAMPLE).items() if k != name}
        assert refusal(packed(left)).startswith("DamagedArchive: ")


def test_bombs() -> None:
    zeros = bytes(container.TEXT_BYTES)
    data = packed(members(SAMPLE) | {"data.json": zeros}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, check=code("ArchiveTooLarge")) as raised:
            loaded(data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert str(raised.value).startswith(
        "The archive in the buffer is refused: the ratio of packing of data.json, 102"
    )
    data = packed(members(SAMPLE) | {"data.json": zeros + b" "}, zipfile.ZIP_DEFLATED)
    with pytest.raises(
        ArchiveError, check=code("ArchiveTooLarge"), match=r"the size of data\.json"
    ):
        loaded(data)


def test_many_texts_and_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "TEXTS_BYTES", 1000)
    assert "the size of all texts" in refusal(SAMPLE)
    monkeypatch.setattr(container, "MOST_MEMBERS", 3)
    assert "the number of members" in refusal(SAMPLE)
    monkeypatch.setattr(container, "DIRECTORY_BYTES", 3)
    assert "the size of its directory" in refusal(SAMPLE)


def test_a_name_that_is_too_long() -> None:
    contents = members(SAMPLE) | {"a" * 600: b""}
    assert "the length of a name, 600, is above" in refusal(packed(contents))


def test_a_size_that_lies() -> None:
    data = bytearray(saved([1]))
    place = data.rfind(b"PK\x01\x02", 0, data.rfind(b"debug.json"))
    struct.pack_into("<I", data, place + 24, 2**31)
    assert refusal(bytes(data)).startswith("ArchiveTooLarge: ")


# Nothing runs


def test_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def note(name: str) -> Callable[..., Any]:
        def called(*_: Any, **__: Any) -> Any:
            ran.append(name)
            raise AssertionError(name)

        return called

    monkeypatch.setattr(loading, "call", note("call"))
    monkeypatch.setattr(builtins, "eval", note("eval"))
    monkeypatch.setattr(builtins, "__import__", _only_known(ran))
    loaded(SAMPLE)
    assert ran == []


def _only_known(ran: list[str]) -> Callable[..., Any]:
    plain = builtins.__import__

    def imported(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] in ("os", "tree", "demo", "paint", "subprocess"):
            ran.append(name)
        return plain(name, *args, **kwargs)

    return imported
