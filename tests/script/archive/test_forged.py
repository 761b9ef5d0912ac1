"""Archives whose contents break the rules: values, tensors, types, graphs, modules."""

import struct
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import pytest

from everyorder import runtime
from everyorder.runtime.errors import ArchiveError
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.script.archive import container, loading
from everyorder.runtime.script.executor import executor
from tests.coded import code
from tests.script.archive.forged import changed, members, packed, plainly, refusal
from tests.script.archive.samples import loaded, loop, network, node, saved

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
        ({"call": "os.system"}, "'call' is not a kind of value"),
        ({"__class__": 1}, "'__class__' is not a kind of value"),
        ({"float": "1e999"}, "'1e999' is not a float"),
        ({"complex": [1.0]}, "a complex number is two floats"),
        ({"tuple": [], "of": 1}, "'of' is not a part of a tuple"),
        (
            {"enum": "__torch__.a.B", "member": "C"},
            "the archive has no type __torch__.a.B",
        ),
        ({"function": "__torch__.f"}, "the archive has no function __torch__.f"),
        ({"dtype": "float31"}, "'float31'"),
        ({"device": "mars"}, "'mars'"),
        (
            {"tuple": [1], "named": "os.x", "fields": ["a"]},
            "'os.x' is not a full name",
        ),
        (
            {"tuple": [1], "named": "__torch__.X", "fields": ["__class__"]},
            "'__class__' is not a name of a part",
        ),
        (
            {"tuple": [1], "named": "__torch__.X", "fields": ["a b"]},
            "'a b' is not a name of a part",
        ),
        (2**63, "an int has more than 64 bits"),
        ([], "list is not a value"),
    ],
)
def test_roots(root: Any, text: str) -> None:
    assert text in shared({"list": []}, root=root)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            {"object": "__torch__.a.B", "attributes": {}},
            "the archive has no type __torch__.a.B",
        ),
        ({"dict": [[{"ref": 0}, 1]]}, "a dict is not a key"),
        ({"dict": [[1]]}, "list is not a pair"),
        ({"list": {}}, "dict is not a list"),
        ({"set": []}, "'set' is not a kind of value of the table"),
        ({}, "dict is not a value of the table"),
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
    assert refusal(data) == "DamagedArchive: duplicate name"
    data = packed(contents | {"data.json": b'{"root": NaN}'})
    assert refusal(data) == "DamagedArchive: NaN is not a number here"
    data = packed(contents | {"data.json": b'{"root": %s}' % (b"9" * 10_000)})
    assert refusal(data).startswith("DamagedArchive: ")


def test_tables_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_VALUES", "MOST_STORAGES", "MOST_TYPES", "MOST_FUNCTIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(container, name, 0)
            assert "there are more" in refusal(saved([loop(), node(1)]))


class Eager(NamedTuple):
    """A tuple of the process, of which a class derives that does something."""

    x: int


class Doing(Eager):
    """Notes what is made."""

    made: ClassVar[list[Any]] = []

    @classmethod
    def _make(cls, parts: Any) -> Any:  # type: ignore[override]  # of any kind
        cls.made.append(parts)
        return super()._make(parts)


def test_tuples_of_the_process_are_made_without_their_methods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = saved(Doing(3))
    monkeypatch.setattr(loading, "named_tuple_class", lambda _: Doing)
    Doing.made.clear()
    assert loaded(data) == (3,)
    assert Doing.made == []


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
        ({"strides": [-1]}, {}, "-1 is not a size"),
        ({"offset": 1}, {}, "does not fit its storage"),
        ({"offset": 2**63}, {}, "is not a size"),
        ({"shape": [1] * 65, "strides": [1] * 65}, {}, "65 dimensions"),
        ({"shape": [1, 1]}, {}, "Strides (1,)"),
        ({"dtype": "float64"}, {}, "does not fit its storage"),
        ({"dtype": "complex31"}, {}, "complex31"),
        ({"dtype": "int64", "shape": [1], "requires_grad": True}, {}, "no gradient"),
        ({"tensor": 1}, {}, "there is no storage 1"),
        ({"tensor": -1}, {}, "-1 is not a size"),
        ({}, {"device": "cpu"}, "the member is missing"),
        ({}, {"count": -1}, "storage 0 has no size"),
        ({}, {"count": 2**62}, "storage 0 has no size"),
        ({}, {"dtype": "void"}, "void"),
        ({"of": 1}, {}, "'of' is not a part of a tensor"),
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
    with pytest.raises(ArchiveError, check=code("OperatorNotHere")) as raised:
        loaded(packed(contents | {name: text}))
    assert (
        str(raised.value)
        == """\
in the buffer needs the operator mine::add, which is not registered.
  called in: graphs/__torch__.demo.loop.txt
  to do:     Import the module that registers it, and load again."""
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
        (b"graph(", b"graph(" * 3000, "unexpected name"),
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

    assert typed(twice) == "DamagedArchive: duplicate type __torch__.tree.Node"

    def other(table: Any) -> None:
        table["types"][0]["kind"] = "metaclass"

    assert typed(other) == "DamagedArchive: there is no kind of types 'metaclass'"

    def named(table: Any) -> None:
        table["types"][0]["name"] = "os.system"

    assert typed(named) == "DamagedArchive: 'os.system' is not a full name"

    def attribute(table: Any) -> None:
        table["types"][0]["attributes"][0][0] = "__dict__"

    assert typed(attribute) == "DamagedArchive: '__dict__' is not a name of a part"

    def schemas(table: Any) -> None:
        table["functions"][0]["schema"]["arguments"].pop()

    text = "DamagedArchive: __torch__.tree.Node.more has two schemas"
    assert typed(schemas) == text


def test_a_setter_under_an_attribute_would_run() -> None:
    def change(table: Any) -> None:
        (described,) = table["types"]
        (function,) = table["functions"]
        described["methods"][0][0] = function["method"] = "value__get"
        described["methods"][0][1]["name"] = "value__get"
        function["schema"]["name"] = "value__get"

    assert typed(change) == "DamagedArchive: __torch__.tree.Node has value twice"


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


def module(change: Callable[[Any], Any], member: str = "data.json") -> str:
    """What is wrong with another module."""
    return refusal(changed(saved(network()), member, change))


def test_modules_within_themselves() -> None:
    def types(table: Any) -> None:
        outer = table["types"][0]
        outer["attributes"][0] = ["0", f"{outer['name']}?"]
        outer["methods"] = []
        table["functions"] = []
        table["types"] = [outer]

    def ring(table: Any) -> None:
        outer = table["shared"][0]
        outer["attributes"]["0"] = {"ref": 0}
        table["shared"] = [outer]

    data = changed(changed(saved(network()), "types.json", types), "data.json", ring)
    contents = members(data) | {"debug.json": b'{"sources": [], "places": {}}'}
    assert refusal(packed(contents)) == "DamagedArchive: a module is within itself"


def test_modules() -> None:
    def left(table: Any) -> None:
        del table["shared"][1]["attributes"]["names"]

    assert module(left) == "DamagedArchive: a module __torch__.net.Layer has no names"

    def role(table: Any) -> None:
        table["shared"][1]["buffers"] = ["names"]

    assert module(role) == "DamagedArchive: 'names' is not a buffer"

    def own(table: Any) -> None:
        table["types"][0]["attributes"][0][0] = "_parameters"

    text = "DamagedArchive: '_parameters' is not a name of an attribute"
    assert module(own, "types.json") == text

    def hook(table: Any) -> None:
        table["shared"][0]["before"] = ["eval"]

    text = "DamagedArchive: __torch__.net.Outer has no method 'eval'"
    assert module(hook) == text


# Few bytes that stand for many


def test_members_over_each_other() -> None:
    """Else a small file has many members, each as large as the file."""
    data = bytearray(saved([runtime.tensor([1.0]), runtime.tensor([2.0])]))
    directory = data.index(b"PK\x01\x02")
    one, other = (data.index(b"storages/%d" % at, directory) - 46 for at in (0, 1))
    place = data[one + 42 : one + 46]
    data[other + 42 : other + 46] = place
    assert refusal(bytes(data)) == "DamagedArchive: another member lies over it"


def nested(depth: int, last: Any) -> bytes:
    """An object whose attribute is a list that holds one list twice, and so on."""

    def types(table: Any) -> None:
        (described,) = table["types"]
        described["attributes"][0][1] = "int" + "[]" * depth
        described["methods"], table["functions"] = [], []

    def values(table: Any) -> None:
        name = "__torch__.tree.Node"
        shared: list[Any] = [{"object": name, "attributes": {"value": {"ref": 1}}}]
        shared += [{"list": [{"ref": at + 2}] * 2} for at in range(depth - 1)]
        table["shared"] = [*shared, {"list": [1, last]}]

    data = changed(changed(saved(node(1)), "types.json", types), "data.json", values)
    contents = members(data) | {"debug.json": b'{"sources": [], "places": {}}'}
    return packed(contents)


def test_lists_within_lists_are_looked_through_once() -> None:
    """Else forty lists take a million million steps."""
    value = loaded(nested(40, 1)).value
    assert value[0] is value[1]
    assert refusal(nested(40, "a")) == (
        f"DamagedArchive: __torch__.tree.Node.value is a list, not a int{'[]' * 40}"
    )


# Objects that are said to be what they are not

ESCAPE = "graphs/__torch__.tree.Node.more.txt"


def lying(name: str, lines: str) -> Any:
    """A method that takes anything, and says that it is of the class."""

    def change(table: Any) -> None:
        (described,) = table["types"]
        described["attributes"][0] = [name, "Any"]
        for schema in (described["methods"][0][1], table["functions"][0]["schema"]):
            schema["arguments"][1] = {"name": "by", "type": "Any"}
            schema["returns"] = [["", "Any"]]

    def values(table: Any) -> None:
        (described,) = table["shared"]
        described["attributes"] = {name: 1}

    data = changed(changed(saved(node(1)), "types.json", change), "data.json", values)
    text = f"""graph(%self : __torch__.tree.Node, %by : Any):
  %o : __torch__.tree.Node = prim::unchecked_cast(%by)
{lines}  return (%by)
"""
    debug = b'{"sources": [], "places": {}}'
    contents = members(data) | {ESCAPE: text.encode(), "debug.json": debug}
    return loaded(packed(contents))


@pytest.mark.parametrize(
    "lines",
    [
        '  %v : Any = prim::GetAttr[name="function"](%o)\n  prim::Print(%v)\n',
        '  prim::SetAttr[name="function"](%o, %by)\n',
    ],
)
@pytest.mark.parametrize("way", [{"text_after": None}, {"text_after": 0}])
def test_no_object_of_python_is_looked_into(lines: str, way: Any) -> None:
    """Else attributes lead from any object to those that run what they are given."""
    liar = lying("function", lines)
    assert liar.more(liar) is liar
    victim = SimpleNamespace(function=print)
    with (
        executor(**way),
        pytest.raises(RunningError, check=code("NotOfType")) as raised,
    ):
        liar.more(victim)
    assert str(raised.value).startswith(
        "A program of an archive returned a SimpleNamespace, expected\n"
        "`__torch__.tree.Node`."
    )
    assert victim == SimpleNamespace(function=print)


@pytest.mark.parametrize(
    ("kind", "wait"), [("Future", "wait"), ("Await", "awaitable_wait")]
)
def test_only_futures_are_waited_for(kind: str, wait: str) -> None:
    lines = f"""  %f : {kind}(Any) = prim::unchecked_cast(%by)
  %v : Any = prim::{wait}(%f)
"""
    waited: list[int] = []
    victim = SimpleNamespace(wait=lambda: waited.append(1))
    with pytest.raises(RunningError, check=code("NotOfType")):
        lying("value", lines).more(victim)
    assert waited == []


def test_attributes_of_modules_are_one_name() -> None:
    def dotted(table: Any) -> None:
        table["types"][0]["attributes"][0][0] = "forward.function"

    text = "DamagedArchive: 'forward.function' is not a name of an attribute"
    assert module(dotted, "types.json") == text
