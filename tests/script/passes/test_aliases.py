"""Alias analysis: who may be, hold, write to and know the memory of whom."""

from itertools import combinations
from random import Random

import pytest

from everyorder.runtime.script.ir import Graph, Value, printed
from everyorder.runtime.script.passes import Aliases
from tests.script.ir.graphs import random_graph, rows
from tests.script.passes.texts import read


def names(graph: Graph) -> dict[str, Value]:
    """The values by their names, without their numbers."""
    return {
        name[1:].removesuffix(".1"): value
        for value, name in printed(graph).names.items()
    }


def alike(aliases: Aliases, graph: Graph) -> set[str]:
    """Pairs of values that may be the same memory: `x=y`; or only hold it: `x~y`."""
    found = set()
    for (one, left), (other, right) in combinations(sorted(names(graph).items()), 2):
        if aliases.may_alias(left, right):
            found.add(f"{one}={other}")
        elif aliases.may_contain_alias(left, right):
            found.add(f"{one}~{other}")
    return found


# Lines -> parameters, pairs, values that may be known outside.
CASES: dict[str, tuple[str, str, str, str]] = {
    "parameters of one sort, whatever their elements": (
        "%l : int[], %m : str[], %t : Tensor, %d : Dict(str, int), %x : int",
        "",
        "l=m",
        "d l m t",
    ),
    "new memory, views, and what is written in place": (
        "%t : Tensor",
        """\
  %n : Tensor = core::neg(%t)
  %v : Tensor = core::t(%n)
  %w : Tensor = core::zero_(%v)
""",
        "n=v n=w v=w",
        "t",
    ),
    "what a list holds, and what is taken out of it": (
        "%t : Tensor, %i : int",
        """\
  %a : Tensor = core::neg(%t)
  %b : Tensor = core::neg(%t)
  %l : Tensor[] = prim::ListConstruct(%a)
  script::append.t(%l, %b)
  %g : Tensor = script::getitem.t(%l, %i)
  %c : Tensor[] = script::copy.t(%l)
  %p : Tensor = script::pop.t(%c, %i)
""",
        "a=g a=p b=g b=p g=p a~l a~c b~l b~c c~l c~g c~p g~l l~p",
        "t",
    ),
    "tuples hold": (
        "%x : int[], %n : int",
        """\
  %l : int[] = prim::ListConstruct(%n)
  %t : (int[], int) = prim::TupleConstruct(%l, %n)
  %u : int[], %m : int = prim::TupleUnpack(%t)
  %v : int[] = prim::TupleIndex[index=0](%t)
""",
        "l=u l=v u=v l~t t~u t~v",
        "x",
    ),
    "what comes out of dictionaries, some way down": (
        "%k : str, %n : int",
        """\
  %l : int[] = prim::ListConstruct(%n)
  %d : Dict(str, int[]) = prim::DictConstruct(%k, %l)
  %i : (str, int[])[] = script::items.str(%d)
  %p : (str, int[]) = script::getitem.t(%i, %n)
  %q : str, %v : int[] = prim::TupleUnpack(%p)
""",
        "i~l d~i d~l d~v i=v l=v d~p i~p l~p p~v",
        "",
    ),
    "branches and loops": (
        "%c : bool, %n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %b : int[] = prim::ListConstruct(%n)
  %d : int[] = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %e : int[] = prim::ListConstruct(%n)
  %f : int[] = prim::Loop(%n, %c, %e)
    block0(%i : int, %p : int[]):
      %q : int[] = prim::ListConstruct(%i)
      -> (%c, %q)
""",
        "a=d b=d e=p e=f f=p f=q p=q",
        "",
    ),
    "what an object holds": (
        "%n : int",
        """\
  %c : __torch__.passes.Cell = prim::CreateObject()
  %l : int[] = prim::ListConstruct(%n)
  prim::SetAttr[name="items"](%c, %l)
  %m : int[] = prim::GetAttr[name="items"](%c)
  %k : int[] = prim::ListConstruct(%n)
""",
        "l=m c~l c~m",
        "",
    ),
    "what is stored in what is known outside": (
        "%c : __torch__.passes.Cell, %n : int",
        """\
  %l : int[] = prim::ListConstruct(%n)
  prim::SetAttr[name="items"](%c, %l)
  %k : int[] = prim::ListConstruct(%n)
""",
        "c~l",
        "c l",
    ),
    "what a call is given, what it gives, and what is of another sort": (
        "%n : int",
        """\
  %f : Function = prim::Constant[function="__torch__.passes.same"]()
  %l : int[] = prim::ListConstruct(%n)
  %m : int[] = prim::CallFunction(%f, %l, %n)
  %k : int[] = prim::ListConstruct(%n)
""",
        "l=m f~l f~m",
        "f l m",
    ),
    "awaits and futures hold what they are given": (
        "%n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %b : int[] = prim::ListConstruct(%n)
  %c : int[] = prim::ListConstruct(%n)
  %p : Await(int[]) = prim::awaitable_nowait(%a)
  %q : Await(int[]) = prim::awaitable_0(%b)
""",
        "a~p b~q",
        "b q",
    ),
    "what is forked": (
        "%n : int",
        """\
  %b : int[] = prim::ListConstruct(%n)
  %q : Future(int[]) = prim::fork_0(%b)
""",
        "b~q",
        "b q",
    ),
    "what is given for an await": (
        "%n : int",
        """\
  %b : int[] = prim::ListConstruct(%n)
  %p : Await(int[]) = prim::awaitable_nowait(%b)
  %c : int[] = prim::awaitable_wait(%p)
""",
        "b=c b~p c~p",
        "b c p",
    ),
    "a function, and a cast": (
        "%n : int",
        """\
  %f : Function = prim::Constant[function="__torch__.passes.same"]()
  %a : int[] = prim::ListConstruct(%n)
  %b : int[]? = prim::unchecked_cast(%a)
""",
        "a=b",
        "f",
    ),
    "elements of a list that is taken apart": (
        "%n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %l : int[][] = prim::ListConstruct(%a)
  %b : int[] = prim::ListUnpack(%l)
""",
        "a=b a~l b~l",
        "",
    ),
    "a block with a manager": (
        "%m : PyObject, %n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %d : int[] = prim::With(%m)
    block0(%e : Any):
      -> (%a)
""",
        "a=d e=m",
        "e m",
    ),
    "code of which nothing is known": (
        "%c : __torch__.passes.Cell, %g : __torch__.passes.Giver, %n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %x : int[] = prim::CallMethod[name="give"](%c, %a)
  %b : int[] = prim::ListConstruct(%n)
  %y : int[] = prim::CallInterface[name="give"](%g, %b)
  %d : int[] = prim::ListConstruct(%n)
  %z : int[] = prim::PythonOp[name="f", object=object(0)](%d)
""",
        "a=x a=y a=z b=x b=y b=z d=x d=y d=z x=y x=z y=z c=g "
        "a~c b~c c~d c~x c~y c~z a~g b~g d~g g~x g~y g~z",
        "a b c d g x y z",
    ),
    "closures that are run later": (
        "%n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %f : Function = prim::Closure()
    block0():
      -> (%a)
  %g : Future(int[]) = prim::forkClosure(%f)
  %h : Await(int[]) = prim::awaitableClosure(%f)
""",
        "a~f a~g a~h f~g f~h g=h",
        "a f g h",
    ),
    "a wait may be for anything known outside": (
        "%f : Future(int[]), %n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %b : int[] = prim::wait(%f)
""",
        "b~f",
        "b f",
    ),
    "an operator of which nothing is known but its schema": (
        "%t : Tensor, %i : int, %e : int",
        """\
  %a : Tensor = core::neg(%t)
  %l : Tensor[] = core::split(%a, %i, %e)
  %b : Tensor = core::neg(%t)
""",
        "a~l l~t",
        "a l t",
    ),
    "a closure takes along what it uses": (
        "%n : int",
        """\
  %a : int[] = prim::ListConstruct(%n)
  %b : int[] = prim::ListConstruct(%n)
  %f : Function = prim::Closure()
    block0():
      -> (%a)
""",
        "a~f",
        "a f",
    ),
}
WITHIN_OF = """\
with KIND = graph(%x : int[]):
  return (%x)
"""


def graph_of(parameters: str, lines: str) -> Graph:
    text = f"graph({parameters}):\n{lines}  return ()\n"
    for kind in ("prim::awaitable_0", "prim::fork_0"):
        if kind in lines:
            text += WITHIN_OF.replace("KIND", kind)
    return read(text)


@pytest.mark.spec("script 6.7", "aliases and effects")
@pytest.mark.parametrize("case", CASES)
def test_aliases(case: str) -> None:
    parameters, lines, pairs, outside = CASES[case]
    graph = graph_of(parameters, lines)
    aliases = Aliases(graph)
    assert alike(aliases, graph) == set(pairs.split())
    known = {name for name, each in names(graph).items() if aliases.is_outside(each)}
    assert known == set(outside.split())


# Lines -> the values that they may write to, or of which they may write to a part.
WRITES: dict[str, str] = {
    "  script::append.t(%l, %n)\n": "f l m o r",
    "  script::append.t(%a, %n)\n": "a b",
    "  %0 : Tensor = core::zero_(%v)\n": "f t v o",
    '  prim::SetAttr[name="count"](%o, %n)\n': "f o",
    "  %0 : int = prim::wait(%f)\n": "f l m o r t v",
    "  %0 : int = script::len.t(%a)\n": "",
    "  prim::Print(%l)\n": "",
    "  %0 : Await(int[]) = prim::awaitable_0(%a)\n": "",
    "  %0 : Future(int) = prim::fork_0(%a)\n": "a b f l m o r t v",
    "  %0 : Future(int) = prim::fork_1(%a)\n": "",
}
AROUND = """\
graph(%l : int[], %m : int[], %t : Tensor, %o : C, %f : F, %n : int):
  %v : Tensor = core::t(%t)
  %a : int[] = prim::ListConstruct(%n)
  %b : int[][] = prim::ListConstruct(%a)
  %r : int[][] = prim::ListConstruct(%m)
  %s : Tensor = core::neg(%t)
LINE  return ()
"""
WITHIN = {
    "prim::awaitable_0": "graph(%x : int[]):\n  script::clear.t(%x)\n  return (%x)\n",
    "prim::fork_0": (
        "graph(%x : int[]):\n  script::clear.t(%x)\n"
        "  %n : int = script::len.t(%x)\n  return (%n)\n"
    ),
    "prim::fork_1": (
        "graph(%x : int[]):\n  %n : int = script::len.t(%x)\n  return (%n)\n"
    ),
}


@pytest.mark.parametrize("line", WRITES)
def test_writes(line: str) -> None:
    text = AROUND.replace("LINE", line).replace(" F,", " Future(int),")
    text = text.replace(" C,", " __torch__.passes.Cell,")
    for kind, within in WITHIN.items():
        text += f"with {kind} = {within}" if kind in line else ""
    graph = read(text)
    aliases = Aliases(graph)
    written = {
        name
        for name, each in names(graph).items()
        if aliases.is_written(each) and not name.isdigit()
    }
    assert written == set(WRITES[line].split())


# Type -> whether a value of it, handed in, may be or hold a list that is handed in.
HOLDERS: dict[str, bool] = {
    "int": False,
    "str?": False,
    "Tensor": False,
    "(int, str)": False,
    "Dict(str, Tensor)": False,
    "Tensor[]": True,
    "int[]": True,
    "int[]?": True,
    "Union(int[], Tensor)": True,
    "(int, int[])": True,
    "Dict(str, int[])": True,
    "Dict(str, Tensor?)": False,
    "Future(int)": True,
    "Await(int)": True,
    "Await(int[])": True,
    "RRef(Tensor)": True,
    "__torch__.passes.Cell": True,
    "Function": True,
    "PyObject": True,
    "Any": True,
    "Any[]": True,
    "(int, Any)": True,
}


@pytest.mark.parametrize("type_", HOLDERS)
def test_what_may_be_or_hold_a_list(type_: str) -> None:
    graph = read(
        f"graph(%h : {type_}, %l : int[], %n : int):\n"
        "  script::append.t(%l, %n)\n  return ()\n"
    )
    holder, list_, _ = graph.block.parameters
    aliases = Aliases(graph)
    assert aliases.is_written(holder) is HOLDERS[type_]
    assert aliases.may_contain_alias(holder, list_) is HOLDERS[type_]


def test_every_value_with_memory_lies_somewhere() -> None:
    for seed in range(100):
        graph = random_graph(Random(seed))
        aliases = Aliases(graph, rows)
        for node in graph.nodes():
            for value in node.outputs:
                if aliases.region(value):
                    assert aliases.may_alias(value, value)
                    assert aliases.reachable(aliases.memory(value)) & aliases.region(
                        value
                    ) == aliases.region(value)
