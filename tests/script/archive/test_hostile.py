"""Damaged archives, and ones made to do harm: a clear error, and nothing runs."""

import builtins
import json
import random
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runtime
from runtime.errors import (
    ArchiveError,
    ArchiveTooLarge,
    DamagedArchive,
    NewerArchive,
    NotAnArchive,
    OperatorNotHere,
)
from runtime.script.archive import container, limits, loading
from tests.script.archive.samples import (
    Colour,
    Point,
    later,
    loaded,
    loop,
    node,
    saved,
)

SAMPLE = saved([later(), node(1, node(2)), Colour.RED, Point(1, 2.0), {"a": [1.5]}])


def members(data: bytes) -> dict[str, bytes]:
    """The members of an archive."""
    with zipfile.ZipFile(BytesIO(data)) as file:
        return {each: file.read(each) for each in file.namelist()}


def packed(contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of members, by nobody's rules."""
    buffer = BytesIO()
    with container.Writer(buffer) as writer:
        for name, content in contents.items():
            if name.startswith("storages/"):
                writer.raw(name, memoryview(content))
            else:
                writer._zip.writestr(name, content, method)
    return buffer.getvalue()


def plainly(contents: dict[str, bytes]) -> bytes:
    """An archive in which nothing is aligned."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return buffer.getvalue()


def changed(data: bytes, member: str, change: Callable[[Any], Any]) -> bytes:
    """The archive with another table of JSON in it."""
    contents = members(data)
    table = json.loads(contents[member])
    result = change(table)
    table = table if result is None else result
    return packed(contents | {member: json.dumps(table).encode()})


def refusal(data: bytes) -> str:
    """What is wrong with an archive, in the words after the sentence begins."""
    with pytest.raises(ArchiveError) as raised:
        loaded(data)
    error: Any = raised.value
    return f"{type(error).__name__}: {getattr(error, 'reason', error)}"


def refused_or_harmless(data: bytes) -> None:
    """Load what may be refused, by an error of archives."""
    with suppress(ArchiveError):
        loaded(data)


# Damage


def test_every_bit_counts_or_changes_nothing() -> None:
    chance = random.Random(1)
    kinds: dict[str, int] = {}
    plain = saved(loaded(SAMPLE))
    for _ in range(250):
        data = bytearray(SAMPLE)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            back = loaded(bytes(data))
        except ArchiveError as error:
            name = type(error).__name__
        else:
            name = "harmless"
            assert saved(back) == plain
        kinds[name] = kinds.get(name, 0) + 1
    assert kinds["DamagedArchive"] > 100
    # Dates, versions of programs, paddings.
    assert kinds["harmless"] < 100


def test_every_length_is_too_short() -> None:
    for length in range(0, len(SAMPLE), 37):
        with pytest.raises((NotAnArchive, DamagedArchive)):
            loaded(SAMPLE[:length])


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_bytes_are_no_archive(data: bytes) -> None:
    with pytest.raises(NotAnArchive):
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
    with pytest.raises(NewerArchive) as raised:
        loaded(packed(members(SAMPLE) | {"version": b"7\n"}))
    assert (
        str(raised.value)
        == "in the buffer: format 7, this reader knows up to 1: it may mean something "
        "else.\n  to do: Load it with a newer version, or save it again with this one."
    )


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (b"0", "DamagedArchive: there was no format 0"),
        (b"", "DamagedArchive: this is no number"),
        (b"9" * 5000, "DamagedArchive: this is no number"),
        ("٣".encode(), "DamagedArchive: this is no number"),
        (b"\xff", "DamagedArchive: the text is no UTF-8"),
    ],
)
def test_no_version(version: bytes, text: str) -> None:
    assert refusal(packed(members(SAMPLE) | {"version": version})) == text


def test_no_archive_at_all() -> None:
    assert refusal(b"") == "NotAnArchive: there is no directory at its end"
    assert refusal(packed({"a": b""})) == "NotAnArchive: it has no member `version`"


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
    assert refusal(buffer.getvalue()) == "DamagedArchive: the member is there twice"


def test_members_that_are_missing() -> None:
    for name in members(SAMPLE):
        if name == "version" or name.startswith("code/"):
            continue
        left = {k: v for k, v in members(SAMPLE).items() if k != name}
        assert refusal(packed(left)).startswith("DamagedArchive: ")


def test_bombs() -> None:
    zeros = bytes(limits.TEXT)
    data = packed(members(SAMPLE) | {"data.json": zeros}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveTooLarge) as raised:
            loaded(data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert str(raised.value).startswith(
        "The archive in the buffer is refused: the ratio of packing of data.json, 102"
    )
    data = packed(members(SAMPLE) | {"data.json": zeros + b" "}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ArchiveTooLarge, match=r"the size of data\.json"):
        loaded(data)


def test_many_texts_and_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TEXTS", 1000)
    assert "the size of all texts" in refusal(SAMPLE)
    monkeypatch.setattr(limits, "MEMBERS", 3)
    assert "the number of members" in refusal(SAMPLE)
    monkeypatch.setattr(limits, "DIRECTORY", 3)
    assert "the size of its directory" in refusal(SAMPLE)


def test_a_name_that_is_too_long() -> None:
    contents = members(SAMPLE) | {"a" * 600: b""}
    assert "the length of a name, 600, is above" in refusal(packed(contents))


def test_a_size_that_lies() -> None:
    data = bytearray(saved([1]))
    place = data.rfind(b"PK\x01\x02", 0, data.rfind(b"debug.json"))
    struct.pack_into("<I", data, place + 24, 2**31)
    assert refusal(bytes(data)).startswith("ArchiveTooLarge: ")


# Values


def shared(*entries: Any, root: Any = None, storages: Any = ()) -> str:
    """What is wrong with a table of shared values."""
    table = {
        "root": {"ref": 0} if root is None else root,
        "objects": {},
        "shared": [*entries],
        "storages": [*storages],
    }
    return refusal(changed(saved(None), "data.json", lambda _: table))


@pytest.mark.parametrize(
    ("root", "text"),
    [
        ({"ref": 1}, "there is no value 1 in the table"),
        ({"ref": -1}, "there is no value -1 in the table"),
        ({"ref": True}, "there is no value True in the table"),
        ({"tuple": 3}, "3 is not a tuple"),
        ({"call": "os.system"}, "'call' is no kind of value"),
        ({"__class__": 1}, "'__class__' is no kind of value"),
        ({"float": "1e999"}, "'1e999' is no float"),
        ({"complex": [1.0]}, "a complex number is two floats"),
        ({"tuple": [], "of": 1}, "'of' is no part of a tuple"),
        ({"enum": "__torch__.a.B", "member": "C"}, "no type __torch__.a.B is in the"),
        ({"function": "__torch__.f"}, "no function __torch__.f is in the archive"),
        ({"dtype": "float31"}, "'float31'"),
        ({"device": "mars"}, "'mars'"),
        (
            {"tuple": [1], "named": "os.x", "fields": ["a"]},
            "'os.x' is no full name",
        ),
        (
            {"tuple": [1], "named": "__torch__.X", "fields": ["__class__"]},
            "'__class__' is no name of a part",
        ),
        (
            {"tuple": [1], "named": "__torch__.X", "fields": ["a b"]},
            "'a b' is no name of a part",
        ),
        (2**63, "an int has more than 64 bits"),
        ([], "list is no value"),
    ],
)
def test_roots(root: Any, text: str) -> None:
    assert text in shared({"list": []}, root=root)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"object": "__torch__.a.B", "attributes": {}}, "no type __torch__.a.B is in"),
        ({"dict": [[{"ref": 0}, 1]]}, "a dict is no key"),
        ({"dict": [[1]]}, "list is not a pair"),
        ({"list": {}}, "dict is not a list"),
        ({"set": []}, "'set' is no kind of value of the table"),
        ({}, "dict is no value of the table"),
    ],
)
def test_entries(entry: Any, text: str) -> None:
    assert text in shared(entry)


def test_nesting() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"tuple": [deep]}
    assert "nested more than 64 deep" in shared({"list": [deep]})
    contents = members(saved(None))
    text = b'{"root": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    data = packed(contents | {"data.json": text})
    assert refusal(data) == "DamagedArchive: its parts are nested too deeply"


def test_names_that_are_there_twice_in_a_table() -> None:
    contents = members(saved(None))
    data = packed(contents | {"data.json": b'{"root": 1, "root": 2}'})
    assert refusal(data) == "DamagedArchive: a name is there twice"
    data = packed(contents | {"data.json": b'{"root": NaN}'})
    assert refusal(data) == "DamagedArchive: NaN is no number here"
    data = packed(contents | {"data.json": b'{"root": %s}' % (b"9" * 10_000)})
    assert refusal(data).startswith("DamagedArchive: ")


# Tensors

TENSOR: dict[str, Any] = {
    "tensor": 0,
    "dtype": "float32",
    "shape": [2],
    "strides": [1],
    "offset": 0,
    "requires_grad": False,
    "parameter": False,
}
STORAGE = {"dtype": "float32", "device": "meta", "count": 2}


@pytest.mark.parametrize(
    ("tensor", "storage", "text"),
    [
        ({"shape": [3]}, {}, "does not fit its storage"),
        ({"strides": [2**62]}, {}, "A view of shape (2,)"),
        ({"shape": [2**62] * 2, "strides": [0, 0]}, {"count": 0}, "A view of"),
        ({"strides": [-1]}, {}, "-1 is no size"),
        ({"offset": 1}, {}, "does not fit its storage"),
        ({"offset": 2**63}, {}, "is no size"),
        ({"shape": [1] * 65, "strides": [1] * 65}, {}, "65 dimensions"),
        ({"shape": [1, 1]}, {}, "Strides (1,)"),
        ({"dtype": "float64"}, {}, "does not fit its storage"),
        ({"dtype": "complex31"}, {}, "complex31"),
        ({"dtype": "int64", "shape": [1], "requires_grad": True}, {}, "no gradient"),
        ({"tensor": 1}, {}, "there is no storage 1"),
        ({"tensor": -1}, {}, "-1 is no size"),
        ({}, {"device": "cpu"}, "the member is missing"),
        ({}, {"count": -1}, "storage 0 has no size"),
        ({}, {"count": 2**62}, "storage 0 has no size"),
        ({}, {"dtype": "void"}, "void"),
        ({"of": 1}, {}, "'of' is no part of a tensor"),
    ],
)
def test_tensors(tensor: Any, storage: Any, text: str) -> None:
    assert text in shared(TENSOR | tensor, storages=[STORAGE | storage])


def test_bytes_of_storages() -> None:
    data = saved(runtime.tensor([True, False]))
    place = data.index(b"\x01\x00", data.index(b"storages/0"))
    broken = bytearray(data)
    broken[place] = 2
    assert refusal(bytes(broken)).startswith("DamagedArchive: the bytes are not those")
    sums = struct.pack("<I", zlib.crc32(b"\x02\x00"))
    whole = bytes(broken).replace(struct.pack("<I", zlib.crc32(b"\x01\x00")), sums)
    assert refusal(whole) == (
        "DamagedArchive: storage 0 has bools that are neither 0 nor 1"
    )
    moved = members(data)
    assert "do not begin at 64s" in refusal(plainly(moved))
    moved["storages/0"] = b"\x00"
    assert "storage 0 has 1 bytes for 2 elements" in refusal(packed(moved))


# Types and graphs


def test_operators_that_are_not_here() -> None:
    contents = members(saved(loop()))
    name = "graphs/__torch__.demo.loop.txt"
    text = contents[name].replace(b"core::add", b"mine::add")
    with pytest.raises(OperatorNotHere) as raised:
        loaded(packed(contents | {name: text}))
    assert (
        str(raised.value)
        == """in the buffer needs the operator mine::add, which is not here.
  called in: graphs/__torch__.demo.loop.txt
  to do:     Import what registers it, and load again."""
    )


GRAPH = "graphs/__torch__.demo.loop.txt"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"%y.1 : Tensor", b"%y.1 : int", "types_are_inferred, in line 5: "),
        (b"(%y.1)", b"(%i.1)", "%i.1 is not defined here"),
        (b"object(0)", b"object(1)", "there is no such object"),
        (b"object(0)", b'"text"', "types_are_inferred, in line 4: "),
        (b"core::add", b"prim::Loop", "counts_agree, in line 7: "),
        (b"%n.1 : int", b"%n.1 : float", "types_are_inferred, in line 5: "),
        (b"return (%y.1)", b"return (%n.1)", "the graph gives other values than"),
        (b"(%x.1 : Tensor, %n.1 : int)", b"(%n.1 : int)", "%x.1 is not defined here"),
        (b"graph(", b"graph(" * 3000, "a name cannot stand here"),
        (
            b"  return",
            b'  prim::PythonOp[name="x", object=object(0)]()\n  return',
            "a graph calls Python",
        ),
    ],
)
def test_graphs(old: bytes, new: bytes, text: str) -> None:
    contents = members(saved(loop()))
    assert old in contents[GRAPH]
    loaded(packed(contents))
    broken = contents | {GRAPH: contents[GRAPH].replace(old, new)}
    assert text in refusal(packed(broken))


def typed(change: Callable[[Any], Any]) -> str:
    """What is wrong with other types of the class Node."""
    return refusal(changed(saved(node(1)), "types.json", change))


@pytest.mark.parametrize(
    "name",
    ["__del__", "__getattribute__", "__class__", "__script_type__", "__reduce_ex__"],
)
def test_methods_that_python_would_call(name: str) -> None:
    def change(table: Any) -> None:
        (described,) = table["types"]
        described["methods"][0][0] = name
        table["functions"][0]["method"] = name

    assert typed(change) == f"DamagedArchive: a class cannot have the method {name}"


def test_types() -> None:
    def twice(table: Any) -> None:
        table["types"] *= 2

    assert typed(twice) == "DamagedArchive: the type __torch__.tree.Node is there twice"

    def other(table: Any) -> None:
        table["types"][0]["kind"] = "metaclass"

    assert typed(other) == "DamagedArchive: there is no kind of types 'metaclass'"

    def named(table: Any) -> None:
        table["types"][0]["name"] = "os.system"

    assert typed(named) == "DamagedArchive: 'os.system' is no full name"

    def attribute(table: Any) -> None:
        table["types"][0]["attributes"][0][0] = "__dict__"

    assert typed(attribute) == "DamagedArchive: '__dict__' is no name of a part"

    def schemas(table: Any) -> None:
        table["functions"][0]["schema"]["arguments"].pop()

    text = "DamagedArchive: __torch__.tree.Node.more has two schemas"
    assert typed(schemas) == text


def test_attributes_of_other_types() -> None:
    def change(table: Any) -> None:
        table["shared"][0]["attributes"]["value"] = "one"

    assert (
        refusal(changed(saved(node(1)), "data.json", change))
        == "DamagedArchive: __torch__.tree.Node.value is a str, not a int"
    )

    def more(table: Any) -> None:
        table["shared"][0]["attributes"]["more"] = 1

    assert (
        refusal(changed(saved(node(1)), "data.json", more))
        == "DamagedArchive: __torch__.tree.Node has no attribute 'more'"
    )


def test_places_outside_of_sources() -> None:
    def change(table: Any) -> None:
        table["places"]["__torch__.demo.loop"][3] = [0, 5, 10**9]

    text = "DamagedArchive: a place of __torch__.demo.loop is outside of its source"
    assert refusal(changed(saved(loop()), "debug.json", change)) == text


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
