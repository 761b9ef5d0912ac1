"""Every kind of node, run by both executors."""

import collections
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.futures import Future, awaitable_nowait
from everyorder.runtime.schema.declared import Namespace
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.types import IntType, StrType, TupleType
from everyorder.runtime.script.executor import call, node_kernels, run
from everyorder.runtime.script.ir import Graph
from everyorder.runtime.script.ir.node_kinds import kind_names
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.types.python_classes import PythonClasses
from tests.coded import code
from tests.schema.programs import PROGRAM, Colour
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")

COLLATZ = """\
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %most : int = prim::Constant[value=9223372036854775807]()
  %go : bool = script::ne.int(%n, %one)
  %c : int, %m : int = prim::Loop(%most, %go, %zero, %n)
    block0(%i : int, %count : int, %x : int):
      %r : int = script::mod.int(%x, %two)
      %even : bool = script::eq.int(%r, %zero)
      %y : int = prim::If(%even)
        block0():
          %h : int = script::floordiv.int(%x, %two)
          -> (%h)
        block1():
          %t : int = script::mul.int(%x, %three)
          %u : int = script::add.int(%t, %one)
          -> (%u)
      %k : int = script::add.int(%count, %one)
      %again : bool = script::ne.int(%y, %one)
      -> (%again, %k, %y)
  return (%c)
"""


@pytest.mark.spec("script 6.8", "control, numbers and containers")
def test_loops_and_branches() -> None:
    collatz = written("collatz(int n) -> int", COLLATZ)
    assert [call(collatz, (each,)) for each in (1, 2, 3, 7, 27)] == [0, 1, 7, 16, 111]
    assert run(collatz, [27]) == 111


def test_what_is_carried_is_moved_at_once() -> None:
    swap = written(
        "swap(int n, str a, str b) -> (str, str)",
        """\
  %yes : bool = prim::Constant[value=True]()
  %c : str, %d : str = prim::Loop(%n, %yes, %a, %b)
    block0(%i : int, %x : str, %y : str):
      -> (%yes, %y, %x)
  %both : (str, str) = prim::TupleConstruct(%c, %d)
  return (%both)
""",
    )
    assert call(swap, (2, "a", "b")) == ("a", "b")
    assert call(swap, (3, "a", "b")) == ("b", "a")


@pytest.mark.parametrize(
    ("trips", "going", "result"), [(0, True, 0), (3, False, 0), (-1, True, 0)]
)
def test_loops_without_trips(trips: int, going: bool, result: int) -> None:
    loop = written(
        "loop(int n, bool go) -> int",
        """\
  %zero : int = prim::Constant[value=0]()
  %c : int = prim::Loop(%n, %go, %zero)
    block0(%i : int, %x : int):
      -> (%go, %i)
  return (%c)
""",
    )
    assert call(loop, (trips, going)) == result
    assert call(loop, (3, True)) == 2


def test_a_condition_that_is_carried_itself() -> None:
    loop = written(
        "loop(bool go) -> (int, bool)",
        """\
  %five : int = prim::Constant[value=5]()
  %zero : int = prim::Constant[value=0]()
  %no : bool = prim::Constant[value=False]()
  %n : int, %b : bool = prim::Loop(%five, %go, %zero, %go)
    block0(%i : int, %x : int, %y : bool):
      -> (%y, %i, %no)
  %both : (int, bool) = prim::TupleConstruct(%n, %b)
  return (%both)
""",
    )
    assert call(loop, (True,)) == (1, False)


def test_tuples_lists_and_dictionaries() -> None:
    built = written(
        "built(int a, str b) -> (int, str, int[], Dict(str, int), int, int)",
        """\
  %t : (int, str) = prim::TupleConstruct(%a, %b)
  %x : int, %y : str = prim::TupleUnpack(%t)
  %s : str = prim::TupleIndex[index=1](%t)
  %l : int[] = prim::ListConstruct(%x, %a)
  %p : int, %q : int = prim::ListUnpack(%l)
  %d : Dict(str, int) = prim::DictConstruct(%y, %p, %s, %q)
  %one : int[] = prim::ListConstruct(%a)
  %o : int = prim::ListUnpack(%one)
  %w : (int) = prim::TupleConstruct(%o)
  %u : int = prim::TupleUnpack(%w)
  %r : (int, str, int[], Dict(str, int), int, int) = prim::TupleConstruct(%x, %s, %l, %d, %o, %u)
  return (%r)
""",  # noqa: E501  # one line of a graph
    )
    assert call(built, (1, "b")) == (1, "b", [1, 1], {"b": 1}, 1, 1)


def test_a_list_of_another_length_is_not_unpacked() -> None:
    unpack = written(
        "unpack(int[] l) -> int",
        "  %a : int, %b : int = prim::ListUnpack(%l)\n  return (%a)\n",
    )
    assert call(unpack, ([1, 2],)) == 1
    for given in ([1, 2, 3], [1]):
        with pytest.raises(ValueError, match="values to unpack") as python:
            _, _ = given
        with pytest.raises(ValueError, match="values to unpack") as caught:
            call(unpack, (given,))
        assert str(caught.value) == str(python.value)


Point = collections.namedtuple("Point", ("x", "y"))


def test_named_tuples_are_of_their_class() -> None:
    namespace = Namespace()
    classes = PythonClasses(namespace)
    point = TupleType((IntType, StrType), ("x", "y"), "__torch__.geo.P")
    classes.put(Point, point)
    make = written(
        "make(int x, str y) -> NamedTuple(__torch__.geo.P, x: int, y: str)",
        "  %p : NamedTuple(__torch__.geo.P, x: int, y: str) = "
        "prim::TupleConstruct(%x, %y)\n  return (%p)\n",
    )
    made = call(make, (1, "a"))
    assert made.__class__ is Point
    assert made == (1, "a")


def test_a_named_tuple_whose_class_is_gone_has_one_like_it() -> None:
    make = written(
        "make(int x) -> NamedTuple(__torch__.geo.Gone, x: int)",
        "  %p : NamedTuple(__torch__.geo.Gone, x: int) = "
        "prim::TupleConstruct(%x)\n  return (%p)\n",
    )
    made = call(make, (1,))
    assert (made.x, type(made).__name__) == (1, "Gone")


@pytest.mark.spec("script 6.8", "calls")
def test_functions_call_each_other_and_themselves() -> None:
    functions: dict[str, Any] = {}
    lines = """\
  %f : Function = prim::Constant[function="fact"]()
  %one : int = prim::Constant[value=1]()
  %last : bool = script::le.int(%n, %one)
  %r : int = prim::If(%last)
    block0():
      -> (%one)
    block1():
      %m : int = script::sub.int(%n, %one)
      %rest : int = prim::CallFunction(%f, %m)
      %whole : int = script::mul.int(%n, %rest)
      -> (%whole)
  return (%r)
"""
    schema = parse_schema("fact(int n) -> int")
    known = Function("fact", schema, Graph())
    fact = written("fact(int n) -> int", lines, functions={"fact": known})
    for node in fact.graph.nodes():
        if "function" in node.attributes:
            node.attributes["function"] = fact
    functions["fact"] = fact
    assert call(fact, (20,)) == 2432902008176640000
    with pytest.raises(OverflowError):
        call(fact, (21,))


def test_python_operators() -> None:
    seen: list[Any] = []

    def note(*values: Any) -> Any:
        seen.append(values)
        return values

    lines = """\
  prim::PythonOp[name="note", object=object(0)](%a)
  %l : int = prim::PythonOp[name="len", object=object(1)](%b)
  %x : int, %y : str = prim::PythonOp[name="note", object=object(0)](%a, %b)
  %r : (int, int, str) = prim::TupleConstruct(%l, %x, %y)
  return (%r)
"""
    python = written("py(int a, str b) -> (int, int, str)", lines, objects=[note, len])
    assert call(python, (1, "abc")) == (3, 1, "abc")
    assert seen == [(1,), (1, "abc")]


def test_a_python_operator_that_gives_another_type() -> None:
    python = written(
        "py(str b) -> int",
        '  %l : int = prim::PythonOp[name="up", object=object(0)](%b)\n  return (%l)\n',
        objects=[str.upper],
    )
    with pytest.raises(RunningError, check=code("NotOfType")) as caught:
        call(python, ("a",))
    assert str(caught.value) == ("`up` returned a str, expected `int`.\n  value: 'A'")


def test_prints_as_python_does(capsys: pytest.CaptureFixture[str]) -> None:
    show = written(
        "show(int a, str b, float? c) -> None",
        """\
  prim::Print(%a, %b, %c)
  prim::Print()
  %none : None = prim::Constant[value=None]()
  return (%none)
""",
    )
    assert call(show, (1, "x", None)) is None
    assert capsys.readouterr().out == "1 x None\n\n"


def test_casts_and_values_that_are_not_initialized() -> None:
    cast = written(
        "cast(int? a, bool b) -> int",
        """\
  %r : int = prim::If(%b)
    block0():
      %c : int = prim::unchecked_cast(%a)
      -> (%c)
    block1():
      %text : str = prim::Constant[value="none"]()
      prim::RaiseException[class="builtins.ValueError"](%text)
      %u : int = prim::Uninitialized()
      -> (%u)
  return (%r)
""",
    )
    assert call(cast, (3, True)) == 3
    with pytest.raises(ValueError, match="none"):
        call(cast, (3, False))


@pytest.mark.parametrize(
    ("value", "types", "result"),
    [
        (1, "int", True),
        (True, "int", True),
        (1.0, "int", False),
        (1.0, "int, float", True),
        ([1, 2], "int[]", True),
        ([1, "a"], "int[]", False),
        ([], "str[]", True),
        ({"a": 1}, "Dict(str, int)", True),
        ({"a": "b"}, "Dict(str, int)", False),
        ((1, "a"), "(int, str)", True),
        ((1,), "(int, str)", False),
        (None, "int?", True),
        ("a", "int?", False),
        (1j, "complex", True),
        (None, "None", True),
        (awaitable_nowait(1), "Await(int)", True),
        (Future(), "Future(int)", True),
        (1, "Future(int)", False),
        (runtime.ones(1), "Tensor", True),
        (1, "Tensor", False),
        (runtime.device("cpu"), "Device", True),
        ("a", "Union(int, str)", True),
        (Colour.RED, "__torch__.paint.Colour", True),
        (1, "__torch__.paint.Colour", False),
        (len, "Function", True),
        (1, "Any", True),
    ],
)
def test_isinstance(value: Any, types: str, result: bool) -> None:
    ask = written(
        "ask(Any x) -> bool",
        f"  %r : bool = prim::isinstance[types=[{types}]](%x)\n  return (%r)\n",
        namespace=PROGRAM,
    )
    assert call(ask, (value,)) is result


def test_groups_of_operators() -> None:
    fused = written(
        "fused(Tensor x) -> Tensor",
        """\
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%a : Tensor):
  %b : Tensor = core::neg(%a)
  %c : Tensor = core::neg(%b)
  return (%c)
""",
    )
    assert call(fused, (runtime.ones(2),)).tolist() == [1.0, 1.0]


def test_every_kind_has_a_step() -> None:
    control = {"prim::If", "prim::Loop", "prim::With", "prim::Constant"}
    ends = {"prim::Param", "prim::Return", "prim::Uninitialized"}
    known = {*node_kernels._MAKERS.rows, *node_kernels._NESTED}
    # Of plug-ins, too, where there are any in this process.
    assert known | control | ends == {*kind_names()}
