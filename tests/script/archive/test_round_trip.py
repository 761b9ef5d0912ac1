"""What is saved comes back, and is saved again as the same bytes."""

import gc
import math
import zipfile
from io import BytesIO
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors import ArchiveError
from everyorder.runtime.futures import Future, awaitable
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.types import ListType, TensorType
from everyorder.runtime.script.archive import code_of, load, save
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import Graph, Node, check, graph_text
from everyorder.runtime.script.ir.program import Function, Program, declared_type
from everyorder.runtime.script.modules import ScriptModule
from tests.coded import code
from tests.script.archive.samples import (
    COLOUR,
    NAMES,
    NODE,
    POINT,
    Colour,
    Point,
    constant,
    function,
    later,
    loaded,
    loop,
    network,
    node,
    saved,
)


def again(value: Any) -> Any:
    """What comes back, which is saved as the same bytes."""
    data = saved(value)
    back = loaded(data)
    assert saved(back) == data
    return back


def texts(value: Any) -> dict[str, str]:
    """The members of an archive that are texts."""
    with zipfile.ZipFile(BytesIO(saved(value))) as file:
        names = [each for each in file.namelist() if "storages/" not in each]
        return {name: file.read(name).decode() for name in names}


# Functions


def test_a_function_with_a_loop() -> None:
    ours = loop()
    back = again(ours)
    assert isinstance(back, Function)
    assert back is not ours
    assert str(back.schema) == "loop(Tensor x, int n=3) -> Tensor"
    assert graph_text(back.graph) == graph_text(ours.graph)
    assert code_of(back) == code_of(ours)
    x = runtime.tensor([1.0, 1.0])
    assert call(back, (x,), {}).tolist() == call(ours, (x,), {}).tolist() == [4.0, 7.0]


def test_forks_and_awaits() -> None:
    ours = later()
    back = again(ours)
    assert code_of(back) == code_of(ours)
    x = runtime.tensor([1.0, 1.0])
    assert call(back, (x,), {}).tolist() == call(ours, (x,), {}).tolist() == [4.0, 6.0]


def test_an_await_as_an_argument_of_another_function() -> None:
    waiting = function(
        "waiting",
        "waiting(Await(Tensor) aw) -> Tensor",
        "graph(%aw.1 : Await(Tensor)):\n"
        "  %r : Tensor = prim::awaitable_wait(%aw.1)\n  return (%r)\n",
    )
    ours = function(
        "main",
        "main(Tensor x) -> Tensor",
        """graph(%x.1 : Tensor):
  %aw.1 : Await(Tensor) = prim::awaitable_0(%x.1)
  %f : Function = prim::Constant[function="__torch__.demo.waiting"]()
  %r : Tensor = prim::CallFunction(%f, %aw.1)
  return (%r)
with prim::awaitable_0 = graph(%x.1 : Tensor):
  %one : int = prim::Constant[value=1]()
  %r : Tensor = core::add(%x.1, %x.1, %one)
  return (%r)
""",
        waiting=waiting,
    )
    back = again(ours)
    assert call(back, (runtime.tensor([2.0]),), {}).tolist() == [4.0]


def test_what_an_archive_looks_like() -> None:
    assert texts(loop()) == {
        "version": "1\n",
        "data.json": """{
 "root": {
  "function": "__torch__.demo.loop"
 },
 "constants": [
  {"ref": 0}
 ],
 "objects": {
  "__torch__.demo.loop": [{"ref": 0}]
 },
 "shared": [
  {"tensor": 0, "dtype": "float32", "shape": [2], "strides": [1], "offset": 0, \
"requires_grad": false, "parameter": false}
 ],
 "storages": [
  {"dtype": "float32", "device": "cpu", "count": 2}
 ]
}
""",
        "types.json": """{
 "types": [],
 "functions": [
  {"name": "__torch__.demo.loop", "schema": {"name": "loop", "arguments": \
[{"name": "x", "type": "Tensor"}, {"name": "n", "type": "int", "default": 3}], \
"returns": [["", "Tensor"]]}}
 ]
}
""",
        "debug.json": """{
 "sources": [
  {"file": "demo.py", "line": 7, "text": "def f(x):\\n    y = x\\n    return y\\n"}
 ],
 "places": {
  "__torch__.demo.loop": [null, null, null, [0, 14, 14], [0, 18, 18]]
 }
}
""",
        "graphs/__torch__.demo.loop.txt": graph_text(loop().graph, places=False),
        "code/__torch__/demo.py": "# For people: what is loaded are the texts in "
        f"graphs/.\n\n\n{code_of(loop())}",
    }


@pytest.mark.spec("script 6.9", "of what was loaded")
def test_errors_of_what_was_loaded_show_the_source() -> None:
    ours = loop()
    back = loaded(saved(ours))
    places = [each.place for each in back.graph.nodes()]
    assert places == [each.place for each in ours.graph.nodes()]
    assert places[3] is not None
    assert places[3].source.excerpt(places[3].span).startswith("  demo.py:8:5\n")
    with pytest.raises(Exception) as raised:  # noqa: PT011  # whatever the kernel says
        call(back, (runtime.tensor([1.0, 2.0, 3.0]),), {})
    whole = "\n".join((str(raised.value), *getattr(raised.value, "__notes__", ())))
    assert "demo.py" in whole


# Values


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, -(2**63), 2**63 - 1, 1.5, -0.0, 5e-324, 1e308),
        *("", "plain", "é漢🂡", "\ud800", "a\x00b\n\r\t\x7f\\\"'", "</script>"),
        *((), (1,), (1, (2.0, "x")), [], [[], [1]], {}, {"a": [1]}, {1: 2, 2.5: None}),
        *(Device.parse("cpu"), Device.parse("cuda:3"), runtime.float64, 1 + 2j),
    ],
    ids=ascii,
)
def test_values(value: Any) -> None:
    back = again(value)
    assert type(back) is type(value)
    assert back == value
    assert repr(back) == repr(value)


def test_numbers_that_are_no_numbers() -> None:
    back = again((math.nan, math.inf, -math.inf, complex(math.nan, -math.inf)))
    assert repr(back) == "(nan, inf, -inf, complex(nan, -inf))" or math.isnan(back[0])
    assert math.isnan(back[0])
    assert back[1:3] == (math.inf, -math.inf)
    assert back[3].imag == -math.inf


def test_constants_of_functions() -> None:
    nothing = float("nan")
    back = again(constant((1, nothing), "(int, float)"))
    assert math.isnan(call(back, (), {})[1])
    tensors = (runtime.tensor([math.nan, 1.0]), "\ud800")
    back = again(constant(tensors, "(Tensor, str)"))
    assert repr(call(back, (), {})) == "(tensor([nan,  1.]), '\\ud800')"


def test_rings() -> None:
    words: list[Any] = [1]
    words.append({"again": words})
    back = again(words)
    assert back[1]["again"] is back
    one = node(1)
    one.parent = node(2, one)
    back = again(one)
    assert back.parent.parent is back


def test_what_is_shared_stays_shared() -> None:
    inner = [1]
    back = again([inner, inner, [1]])
    assert back[0] is back[1]
    assert back[0] is not back[2]


# Classes


def test_objects_have_a_class_of_their_own() -> None:
    back = again([node(3), node(4)])
    assert type(back[0]) is type(back[1])
    assert type(back[0]) is not type(node(0))
    assert (type(back[0]).__module__, type(back[0]).__name__) == ("tree", "Node")
    assert back[0].more(5) == 8
    declared = declared_type(back[0])
    assert declared is not NODE
    assert str(declared) == str(NODE)


def test_a_class_lives_as_long_as_a_function_that_makes_objects() -> None:
    text = """graph():
  %o.1 : __torch__.tree.Node = prim::CreateObject()
  %v : int = prim::Constant[value=7]()
  prim::SetAttr[name="value"](%o.1, %v)
  return (%o.1)
"""
    back = again(function("make", "make() -> __torch__.tree.Node", text))
    gc.collect()
    assert call(back, (), {}).more() == 8


def test_enums_and_named_tuples() -> None:
    back = again((Colour.RED, [Point(1, 2.0)]))
    assert back[0].name == "RED"
    assert type(back[0]).__members__.keys() == Colour.__members__.keys()
    assert type(back[0]) is not Colour
    assert back[1] == [Point(1, 2.0)]
    assert type(back[1][0])._fields == ("x", "y")


def test_types_of_functions() -> None:
    ours = function(
        "f",
        f"f(__torch__.tree.Shown s, {POINT} p, {COLOUR} c) -> {POINT}",
        f"graph(%s : __torch__.tree.Shown, %p : {POINT}, %c : {COLOUR}):\n"
        "  return (%p)\n",
    )
    back = again(ours)
    assert str(back.schema) == str(ours.schema)
    check(back.graph)


# Tensors


def test_tensors_of_every_dtype() -> None:
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float64"):
        ours = runtime.tensor([0, 1], dtype=getattr(runtime, name))
        back = again(ours)
        assert back.dtype is ours.dtype
        assert back.tolist() == ours.tolist()
    ours = runtime.tensor([1 + 2j, -3j])
    assert again(ours).tolist() == ours.tolist()
    assert again(runtime.tensor([])).shape == (0,)
    assert again(runtime.tensor(3)).item() == 3


def test_views_share_their_elements() -> None:
    whole = runtime.tensor([[1.0, 2.0], [3.0, 4.0]])
    back = again({"whole": whole, "column": whole[:, 1], "turned": whole.t()})
    assert back["column"].tolist() == [2.0, 4.0]
    assert back["turned"].strides == (1, 2)
    back["whole"].fill_(9.0)
    assert back["column"].tolist() == [9.0, 9.0]
    assert back["column"].storage() is back["turned"].storage()
    assert sum("storages" in each for each in names_of(saved([whole, whole.t()]))) == 1


def names_of(data: bytes) -> list[str]:
    """The members of an archive."""
    with zipfile.ZipFile(BytesIO(data)) as file:
        return file.namelist()


def test_gradients_are_asked_for_again_and_history_is_refused() -> None:
    leaf = runtime.tensor([1.0], requires_grad=True)
    assert again(leaf).requires_grad
    with pytest.raises(ArchiveError, check=code("NotSaveable")) as raised:
        saved([leaf * 2])
    assert (
        str(raised.value)
        == "A tensor cannot be saved: it was computed under autograd, and its history "
        "is not\nkept.\n  at:    the saved object[0]\n  to do: Detach it."
    )


def test_tensors_go_where_the_caller_says() -> None:
    back = load(BytesIO(saved(runtime.tensor([1.0, 2.0]))), map_location="meta")
    assert (str(back.device), back.shape) == ("meta", (2,))
    again(back)


# Modules


def test_modules() -> None:
    back = again(network())
    assert isinstance(back, ScriptModule)
    assert back(runtime.tensor([1.0, 1.0])).tolist() == [2.0, 3.0]
    inner = getattr(back, "0")
    assert [*inner._parameters] == ["weight"]
    assert [*inner._buffers] == ["count"]
    assert (inner.names, inner.training, back.training) == (["a", "b"], False, True)
    assert inner.scale == 3
    assert back.original_name == "Outer"
    assert [name for name, _ in back.named_parameters()] == ["0.weight"]
    assert back.code == network().code


# Refused


class Stranger:
    """No class of a program."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            Future(),
            "A future cannot be saved: what settles it is in this process alone.\n"
            "  at:    the saved object[0]\n"
            "  to do: Wait for it, and save what it gives.",
        ),
        (
            awaitable(len, []),
            "An await cannot be saved: what it will do exists in this process alone.\n"
            "  at:    the saved object[0]\n"
            "  to do: Wait for it, and save what it gives.",
        ),
        (
            type("RRef", (), {})(),
            "An RRef cannot be saved: what it refers to lives as long as its owner's "
            "process.\n  at: the saved object[0]",
        ),
        (
            Stranger(),
            "An object of type Stranger cannot be saved: it is of no type that "
            "programs have.\n  at: the saved object[0]",
        ),
        (
            2**63,
            "An object of type int cannot be saved: it is of no type that programs "
            "have.\n  at: the saved object[0]",
        ),
    ],
    ids=["future", "await", "rref", "stranger", "large"],
)
def test_what_has_no_form_is_refused_by_name_and_place(value: Any, text: str) -> None:
    with pytest.raises(ArchiveError, check=code("NotSaveable")) as raised:
        saved([value])
    assert str(raised.value) == text


@pytest.mark.spec("futures 1.8", "awaits in containers and modules")
def test_an_await_in_a_module_is_refused_by_the_name_of_its_attribute() -> None:
    module = network()
    inner = getattr(module, "0")
    inner.__dict__["names"] = [Future()]
    with pytest.raises(ArchiveError, check=code("NotSaveable")) as raised:
        saved(module)
    assert raised.value.place == "the saved object.0.names[0]"


def test_calls_of_python_are_refused() -> None:
    graph = Graph("f")
    graph.block.append(
        Node("prim::PythonOp", (), (), {"name": "print", "object": print})
    )
    graph.block.add_result(graph.block.add_parameter(TensorType, "x"))
    ours = Function("__torch__.demo.f", loop().schema, graph)
    with pytest.raises(ArchiveError, check=code("NotSaveable")) as raised:
        saved(ours)
    assert raised.value.found == "A call of Python's `print`"


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(
        ArchiveError, check=code("NotSaveable"), match="there is another of this name"
    ):
        saved([loop(), loop()])


def test_deep_tuples_are_refused() -> None:
    deep: Any = ()
    for _ in range(70):
        deep = (deep,)
    with pytest.raises(
        ArchiveError, check=code("NotSaveable"), match="nested more than 64 deep"
    ):
        saved(deep)


def test_lists_are_as_deep_as_they_like() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    data = saved(deep)
    assert saved(loaded(data)) == data


def test_programs_do_not_meet() -> None:
    one, other = loaded(saved(node(1))), loaded(saved(node(2)))
    assert type(one) is not type(other)
    assert str(declared_type(one)) == str(declared_type(other))
    assert Program().functions == {}
    assert NAMES.find("__torch__.tree.Node") is NODE
    assert ListType(TensorType) is not None


def test_extra_files(tmp_path: Any) -> None:
    path = tmp_path / "f.zip"
    save(loop(), path, _extra_files={"notes.txt": "é", "a/b": b"\x00\xff"})
    wanted: dict[str, Any] = {"notes.txt": "", "a/b": "", "other": "kept"}
    load(path, _extra_files=wanted)
    assert wanted == {"notes.txt": "é".encode(), "a/b": b"\x00\xff", "other": "kept"}
