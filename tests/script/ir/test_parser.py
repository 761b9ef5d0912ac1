"""What a text of a graph may be, and what is said of one that is none."""

import pytest

from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.declared import EnumType, Namespace
from everyorder.runtime.script.ir import graph_text, parse_graph
from everyorder.runtime.script.ir.node_kinds import DEEPEST
from everyorder.runtime.script.ir.type_rules import DEEPEST_CONSTANT
from tests.schema.programs import PROGRAM
from tests.script.ir.graphs import FUNCTIONS, TENSORS


def fault(text: str) -> tuple[str, str, str]:
    """The complaint, what it is about, and the hint."""
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_graph(text, namespace=PROGRAM, objects=TENSORS, functions=FUNCTIONS)
    error = caught.value
    assert error.__traceback__ is not None
    return error.message, text[slice(*error.span)], error.hint


def constant(value: str) -> str:
    return f"graph():\n  %0 : Any = prim::Constant[value={value}]()\n  return ()\n"


def node(line: str) -> str:
    return f"graph(%x : int):\n  {line}\n  return ()\n"


WRONG: list[tuple[str, str, str, str]] = [
    ("", "unexpected end of the text", "", "Expected the word `graph`."),
    (
        "grph():",
        "unexpected name",
        "grph",
        "Expected the word `graph`.",
    ),
    (
        "graph a.():\n",
        "unexpected `(`",
        "(",
        "Expected the next part of the name.",
    ),
    (
        "graph(%x int):\n",
        "unexpected name",
        "int",
        "Expected `:` and the type of the value.",
    ),
    (
        "graph(%x : int",
        "unexpected end of the text",
        "",
        "Expected `,` and another parameter, or `)`.",
    ),
    ("graph(%x : int, %x : int):\n", "%x has a meaning already", "%x", ""),
    (
        "graph(%x : int(a)):\n",
        "a value of a graph has no alias annotation",
        "int(a)",
        "",
    ),
    (
        "graph(%x : t):\n",
        "`t` is not a type",
        "t",
        "Common types are Tensor, int, SymInt, float, bool, Scalar and str.",
    ),
    (
        "graph()\n  return ()\n",
        "unexpected end of the line",
        "\n",
        "Expected `:` and the lines of the block.",
    ),
    (
        "graph(): return ()\n",
        "unexpected keyword `return`",
        "return",
        "Expected nothing more in this line.",
    ),
    (
        "graph():\n  -> ()\n",
        "unexpected `->`",
        "->",
        "Expected a node, or `return` and what the graph gives.",
    ),
    (
        "graph():\n  return ()\ngraph():\n",
        "unexpected name",
        "graph",
        "Expected `with` and another graph, or nothing more.",
    ),
    (
        "graph():\n  return (1)\n",
        "unexpected number",
        "1",
        "Expected a value, such as %x.1.",
    ),
    (
        "graph(%abc.1 : int):\n  return (%abc.2)\n",
        "%abc.2 is not defined here",
        "%abc.2",
        "Did you mean %abc.1?",
    ),
    ("graph():\n  return (%x)\n", "%x is not defined here", "%x", ""),
    (
        node("%y : int = demo::neg(%y)"),
        "%y is not defined here",
        "%y",
        "",
    ),
    (node("%x : int = demo::neg(%x)"), "%x has a meaning already", "%x", ""),
    (
        node("%y : int, %y : int = demo::neg(%x)"),
        "%y has a meaning already",
        "%y",
        "",
    ),
    (
        node("%y : int demo::neg(%x)"),
        "unexpected name",
        "demo",
        "Expected `=` and what is computed.",
    ),
    (
        node("demo.neg(%x)"),
        "unexpected `.`",
        ".",
        "Expected `::` and the name in the namespace.",
    ),
    (
        node("neg(%x)"),
        "unexpected `neg`",
        "neg",
        "A node has a kind: namespace::name.",
    ),
    (
        node("prim::Prynt(%x)"),
        "there is no kind prim::Prynt",
        "prim::Prynt",
        "Did you mean prim::Print?",
    ),
    (
        node("prim::Print_0(%x)"),
        "there is no kind prim::Print_0",
        "prim::Print_0",
        "Did you mean prim::Print?",
    ),
    (node("prim::Zzz(%x)"), "there is no kind prim::Zzz", "prim::Zzz", ""),
    (
        node("prim::Param(%x)"),
        "there is no kind prim::Param",
        "prim::Param",
        "",
    ),
    (
        node("prim::fork(%x)"),
        "prim::fork has a graph",
        "prim::fork",
        "Write prim::fork_0, and the graph behind all of this one.",
    ),
    (
        node("%y : Future(int) = prim::fork_0(%x)"),
        "the graph prim::fork_0 is not written",
        "prim",
        "",
    ),
    (
        node("prim::fork_0(%x)\n  prim::fork_0(%x)"),
        "prim::fork_0 is named twice",
        "prim::fork_0",
        "A graph belongs to one node.",
    ),
    (
        node("prim::fork_0(%x)") + "with prim::fork_1 = graph():\n  return ()\n",
        "no node waits for prim::fork_1",
        "prim::fork_1",
        "A graph is written once, behind the node that names it.",
    ),
    (
        node("prim::fork_0()")
        + "with prim::fork_0 = graph():\n  prim::fork_0()\n  return ()\n",
        "prim::fork_0 is named twice",
        "prim::fork_0",
        "A graph belongs to one node.",
    ),
    (
        node("prim::fork_0()") + "with prim::fork_0 : graph():\n  return ()\n",
        "unexpected `:`",
        ":",
        "Expected `=` and the graph.",
    ),
    (
        node('demo::neg[name="x"](%x)'),
        "demo::neg has no attribute `name`",
        "name",
        "It has none.",
    ),
    (
        node('prim::GetAttr[nme="x"](%x)'),
        "prim::GetAttr has no attribute `nme`",
        "nme",
        "It has name.",
    ),
    (
        node('prim::GetAttr[name="x", name="y"](%x)'),
        "`name` is given twice",
        "name",
        "",
    ),
    (
        node('prim::fork_0[graph="x"](%x)'),
        "prim::fork has no attribute `graph`",
        "graph",
        "It has graph.",
    ),
    (
        node("prim::GetAttr[name=x](%x)"),
        "unexpected name",
        "x",
        "Expected a quoted text.",
    ),
    (
        node("prim::GetAttr[name](%x)"),
        "unexpected `]`",
        "]",
        "Expected `=` and the attribute.",
    ),
    (
        node("prim::TupleIndex[index=-1](%x)"),
        "unexpected `-`",
        "-",
        "Expected a number.",
    ),
    (node("prim::TupleIndex[index=1.5](%x)"), "this is not a whole number", "1.5", ""),
    (
        node("prim::isinstance[types=int](%x)"),
        "unexpected name",
        "int",
        "Expected `[` and types.",
    ),
    (
        node("prim::isinstance[types=[int(a!)]](%x)"),
        "a value of a graph has no alias annotation",
        "int(a!)",
        "",
    ),
    (
        node("prim::isinstance[types=[int(]](%x)"),
        "unexpected `]`",
        "]",
        "Expected the name of an alias set, or `*`.",
    ),
    (
        node('prim::Constant[function="__torch__.twise"]()'),
        "no function of this name is given",
        '"__torch__.twise"',
        "There is __torch__.twice.",
    ),
    (
        node('prim::Constant[function="zzz"]()'),
        "no function of this name is given",
        '"zzz"',
        "",
    ),
    (
        node("prim::Constant[function=twice]()"),
        "`twice` is not an object",
        "twice",
        "Write object(0).",
    ),
    (
        node("prim::Constant[function=object(2)]()"),
        "there is no such object",
        "2",
        "There are 2 in the table.",
    ),
    (
        constant("9223372036854775808"),
        "this integer is too large",
        "9223372036854775808",
        "An int has 64 bits; write it with a point to make it a float.",
    ),
    (
        constant("-" + "9" * 5000),
        "this integer is too large",
        "9" * 5000,
        "An int has 64 bits; write it with a point to make it a float.",
    ),
    (
        constant("1e999"),
        "this number is too large",
        "1e999",
        "A float reaches to about 1.8e308; write inf for what is above.",
    ),
    (
        constant("2j"),
        "this is not a real number",
        "2j",
        "Write complex(real, imaginary).",
    ),
    (
        constant("complex(1, 2.0)"),
        "this part is not a float",
        "1",
        "Write 1.0, not 1.",
    ),
    (constant("-nan"), "unexpected name", "nan", "Expected a number."),
    (
        constant("(1)"),
        "unexpected `)`",
        ")",
        "Expected `,`, also behind a single element.",
    ),
    (
        constant("(" * (DEEPEST_CONSTANT + 1)),
        "this constant is nested too deeply",
        "(",
        "Tuples may be nested 64 deep.",
    ),
    (constant("abc"), "`abc` is not a constant", "abc", ""),
    (
        constant("__torch__.a.B"),
        "`__torch__.a.B` is not a constant",
        "__torch__.a.B",
        "",
    ),
    (
        constant("__torch__.paint.Colour.PINK"),
        "__torch__.paint.Colour has no member PINK",
        "__torch__.paint.Colour.PINK",
        "It has RED, BLUE.",
    ),
    (
        constant("*"),
        "unexpected `*`",
        "*",
        "Expected a constant.",
    ),
    (
        node("block0():"),
        "unexpected `block0`",
        "block0",
        "Blocks follow the node that they belong to.",
    ),
    (
        node("prim::If(%x)\n    block1():"),
        "the blocks of a node are numbered in order",
        "block1",
        "Expected block0.",
    ),
    (
        node("prim::If(%x)\n    block0():\n      return ()"),
        "unexpected keyword `return`",
        "return",
        "Expected a node, or `->` and what the block gives.",
    ),
    (
        node("%y : int = prim::If(%x)\n    block0():\n      -> (%y)"),
        "%y is not defined here",
        "%y",
        "",
    ),
    (
        node(
            "prim::If(%x)\n    block0():\n      %y : int = demo::neg(%x)\n      -> ()\n"
            "    block1():\n      -> (%y)"
        ),
        "%y is not defined here",
        "%y",
        "",
    ),
    (
        node("prim::If(%x)\n" + "block0():\n  prim::If(%x)\n" * DEEPEST),
        "this block is nested too deeply",
        "block0",
        "Blocks may be nested 200 deep.",
    ),
]


@pytest.mark.parametrize(("text", "message", "marked", "hint"), WRONG)
def test_what_is_no_graph(text: str, message: str, marked: str, hint: str) -> None:
    assert fault(text) == (message, marked, hint)


def test_an_unknown_device_names_those_that_exist() -> None:
    message, marked, hint = fault(constant('device("cdua")'))
    assert (message, marked) == ("'cdua' is not a device", '"cdua"')
    assert "cuda" in hint


def test_an_enum_without_its_class_has_no_members() -> None:
    namespace = Namespace()
    namespace.declare(EnumType, "__torch__.Gone")
    text = constant("__torch__.Gone.A")
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_graph(text, namespace=namespace)
    assert caught.value.message == "the Python class of __torch__.Gone is gone"


def test_an_error_shows_the_line() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_graph("graph(%x.1 : int):\n  return (%x.2)\n")
    assert str(caught.value) == (
        "%x.2 is not defined here\n"
        "      return (%x.2)\n"
        "              ~~~^\n"
        "Did you mean %x.1?"
    )


def test_blanks_comments_and_empty_lines_mean_nothing() -> None:
    plain = "graph(%x.1 : int):\n  prim::Print(%x.1)\n  return (%x.1)\n"
    odd = (
        "\n # begin\n\ngraph ( %x : int ) : # here\n\n# there\nprim :: Print(\n%x\n)"
        "\n\n\n   return(%x)\n\n"
    )
    assert graph_text(parse_graph(odd)) == plain
    assert graph_text(parse_graph(plain.rstrip())) == plain


def test_a_name_may_be_given_again_behind_its_block() -> None:
    text = node(
        "prim::If(%x)\n    block0():\n      %y : int = demo::neg(%x)\n      -> ()\n"
        "    block1():\n      %y : str = demo::neg(%x)\n      -> (%y)\n"
        "  %y : float = demo::neg(%x)"
    )
    (branch, last) = parse_graph(text).block
    types = [str(node.output.type) for block in branch.blocks for node in block]
    assert [*types, str(last.output.type)] == ["int", "str", "float"]


@pytest.mark.parametrize(
    ("remark", "place"),
    [
        ("f.py:2:3", ("f.py", 2, 3)),
        ("a b: c.py:12:1", ("a b: c.py", 12, 1)),
        ("<text>:1:1", ("", 1, 1)),
        ("f.py:2:0", None),
        ("f.py:2", None),
        (":1:1", None),
        ("f.py:1:999999", None),
        ("why it is so", None),
        ("", None),
    ],
)
def test_places_are_comments(remark: str, place: tuple[str, int, int] | None) -> None:
    (line,) = parse_graph(node(f"prim::Print(%x) # {remark}")).block
    found = None
    if line.place is not None:
        source, span = line.place
        found = source.file, *source.place(span[0])
    assert found == place


def test_places_are_looked_up_in_the_sources_that_are_given() -> None:
    source = Source("one\ntwo\nthree\n", "f.py", 5)
    text = node("prim::Print(%x) # f.py:7:3\n  prim::Print(%x) # f.py:99:99")
    found = [each.place for each in parse_graph(text, sources={"f.py": source}).block]
    assert [place and (place.source is source, place.span) for place in found] == [
        (True, (10, 10)),
        (True, (14, 14)),
    ]


def test_places_in_files_that_are_not_there_share_few_texts() -> None:
    columns = range(1, 99_999, 100)
    lines = [f"  prim::Print() # f.py:{at}:{at}\n" for at in columns]
    graph = parse_graph(f"graph():\n{''.join(lines)}  return ()\n")
    places = [each.place for each in graph.block if each.place is not None]
    found = [place.source.place(place.span[0]) for place in places]
    assert found == [(at, at) for at in columns]
    texts = {id(place.source.text): len(place.source.text) for place in places}
    assert sum(texts.values()) < 4 * columns[-1]


def test_long_lines_take_time_by_their_length() -> None:
    count = 20_000
    outputs = ", ".join(f"%{at} : int" for at in range(1, count + 1))
    text = node(f"{outputs} = prim::ListUnpack(%x)")
    # Comparing each with each took a minute.
    (made,) = parse_graph(text).block
    assert len(made.outputs) == count
