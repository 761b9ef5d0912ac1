"""Sources: what is found of functions, classes and texts, and how trees print."""

import ast
import functools
import importlib.util
import linecache
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.errors.script import (
    MalformedProgram,
    NotScriptable,
    NotSupported,
)
from everyorder.runtime.script.frontend import (
    read_class,
    read_function,
    read_text,
    source,
)
from tests.coded import code
from tests.script.frontend.flows import programs
from tests.script.frontend.trees import rows, tree_text


# fmt: off
def plain(x, y):  # type: ignore[no-untyped-def]  # as people write them
    """Words
of more lines,
        with blanks."""
    return """
x""" + x + y  # at the end


# No constant for a type checker.
COUNT = int("1")


class Owner:
    def method(self,
        x: int) -> int:
# further left than the function
        return x  # é
# fmt: on

    class Inner:
        def __secret(self) -> int:
            return 1

        @functools.cache  # noqa: B019  # never called
        def cached(self) -> int:
            return 2


def stand_in(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@stand_in
def decorated(x: int) -> int:
    return x


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Callable[[str], ModuleType]]:
    """Makes modules of texts, in files of their own."""
    names: list[str] = []

    def make(text: str) -> ModuleType:
        name = f"program_{len(names)}_{tmp_path.name}"
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[name] = made
        names.append(name)
        spec.loader.exec_module(made)
        return made

    yield make
    for name in names:
        del sys.modules[name]


def test_a_function_is_read_as_it_stands_in_the_file() -> None:
    one = read_function(plain)
    line = plain.__code__.co_firstlineno
    assert (one.source.file, one.source.line, one.owner) == (__file__, line, "")
    assert one.source.text.startswith("def plain(x, y):  # type")
    assert one.source.text.endswith('\nx""" + x + y  # at the end')
    returned = one.tree.body[1]
    assert one.source.text[slice(*one.source.span(returned))] == (
        'return """\nx""" + x + y'
    )


def test_a_method_is_read_with_its_class_and_its_margin() -> None:
    for function in (Owner.method, Owner().method):
        one = read_function(function)
        assert one.owner == "Owner"
        assert one.source.text.split("\n") == [
            "    def method(self,",
            "        x: int) -> int:",
            "# further left than the function",
            "        return x  # é",
        ]
        (body,) = one.tree.body
        assert one.source.place(one.source.span(body)[0])[1] == 9
    secret = vars(Owner.Inner)["_Inner__secret"]
    assert read_function(secret).owner == "Inner"
    cached = Owner.Inner.cached.__wrapped__
    one = read_function(cached)
    assert one.source.text.lstrip().startswith("@functools.cache")
    assert one.tree.name == "cached"


def test_what_is_compiled_is_the_object_itself() -> None:
    one = read_function(decorated)
    assert (one.tree.name, one.owner) == ("wrapper", "")
    assert read_function(decorated.__wrapped__).tree.name == "decorated"  # type: ignore[attr-defined]  # of wraps


def test_functions_of_functions_and_of_branches_are_read() -> None:
    if COUNT:
        # fmt: off
        def inner(x: int) -> int: return x
        # fmt: on
    else:

        def inner(x: int) -> int:
            return -x

    one = read_function(inner)
    assert one.source.text == "        def inner(x: int) -> int: return x"
    assert read_function(inner).tree is one.tree, "a file is parsed once"


def test_a_class_is_read_by_its_qualified_name() -> None:
    one = read_class(Owner)
    assert one.tree.name == "Owner"
    assert one.source.text.startswith("class Owner:\n    def method(self,\n")
    assert one.source.text.endswith("return 2")
    inner = read_class(Owner.Inner)
    assert inner.source.text.startswith("    class Inner:\n")

    @functools.total_ordering
    class Local:
        def __lt__(self, other: object) -> bool:
            return True

    assert read_class(Local).source.text.startswith("    @functools.total_ordering\n")


def test_of_classes_with_one_name_the_methods_tell(
    module: Callable[[str], ModuleType],
) -> None:
    made = module(
        "class C:\n    def f(self): return 1\nfirst = C\n"
        "class C:\n    def f(self): return 2\nsecond = C\n"
        "class D: pass\nclass D: pass\n"
    )
    assert read_class(made.first).source.line == 1
    assert read_class(made.second).source.line == 4
    with pytest.raises(NotScriptable, check=code("NoSource")) as caught:
        read_class(made.D)
    assert "begin in the lines 7 and 8 of" in " ".join(str(caught.value).split())


def test_lines_come_from_where_tools_put_them() -> None:
    text = "def cell(x):\n    return x\n"
    names: dict[str, Any] = {}
    exec(compile(text, "<cell 3>", "exec"), names)
    with pytest.raises(NotScriptable, check=code("NoSource")) as caught:
        read_function(names["cell"])
    assert (
        str(caught.value)
        == """\
the function `cell` cannot be compiled: there are no lines of <cell 3>.
  to do: Write it in a file or a notebook, or compile its text."""
    )
    linecache.cache["<cell 3>"] = len(text), None, text.splitlines(True), "<cell 3>"
    try:
        assert read_function(names["cell"]).source.text == text.strip()
    finally:
        del linecache.cache["<cell 3>"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (len, "an object of type builtin_function_or_method"),
        (int, "an object of type type"),
        (functools.partial(plain), "an object of type partial"),
        (3, "an object of type int"),
    ],
)
def test_what_is_no_function_of_python_is_named(found: Any, text: str) -> None:
    with pytest.raises(NotScriptable, check=code("NoSource")) as caught:
        read_function(found)
    assert caught.value.found == text
    assert "with `def`" in str(caught.value)


def test_a_class_that_is_in_no_file_is_named() -> None:
    made = type("Made", (), {"__module__": "nowhere"})
    with pytest.raises(NotScriptable, check=code("NoSource")) as caught:
        read_class(made)
    assert caught.value.reason == "it is in no file"
    with pytest.raises(NotScriptable, check=code("NoSource")) as caught:
        read_class(type("Made", (), {"__module__": __name__}))
    assert "does not have it" in caught.value.reason


def test_a_lambda_is_refused_by_its_name_and_place() -> None:
    function = lambda x: x + 1  # noqa: E731  # what is meant
    with pytest.raises(NotSupported) as caught:
        read_function(function)
    error = caught.value
    assert error.construct == "a lambda"
    assert error.source.text[slice(*error.span)] == "lambda x: x + 1"


def test_of_several_lambdas_in_a_line_the_one_that_is_meant_is_marked() -> None:
    first, second = lambda x: x, lambda é, y: é + (
        y
    )
    inner = (lambda x: lambda y: x - y)(1)
    for function, text in (
        (first, "lambda x: x"),
        (second, "lambda é, y: é + ("),
        (inner, "lambda y: x - y"),
    ):
        with pytest.raises(NotSupported) as caught:
            read_function(function)
        marked = caught.value.source.text[slice(*caught.value.span)]
        assert marked.splitlines()[0].partition("  #")[0] == text


def test_a_class_is_found_below_its_decorators(
    module: Callable[[str], ModuleType],
) -> None:
    made = module(
        """\
from dataclasses import dataclass
from contextlib import contextmanager

@dataclass
class Bare:
    x: int

class Managed:
    @contextmanager
    def entered(self):
        yield

for number in range(2):
    if number == 0:
        class Twice:
            @staticmethod
            def s(): pass
    else:
        class Twice:
            @property
            def p(self): pass
    if number == 0:
        First = Twice
"""
    )
    for found, line in (
        (made.Bare, 5),
        (made.Managed, 8),
        (made.First, 15),
        (made.Twice, 19),
    ):
        assert read_class(found).tree.lineno == line


def test_a_warning_that_is_an_error_is_none_of_a_file_that_ran(
    module: Callable[[str], ModuleType],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = module("def f(x):\n    return '\\d'\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_function(made.f).tree.name == "f"


def test_a_file_that_has_changed_is_told_from_the_function(
    module: Callable[[str], ModuleType],
) -> None:
    made = module("def f(x):\n    return x\ng = lambda: 1\n")
    path = Path(str(made.__file__))
    assert read_function(made.f).source.line == 1
    for text in (
        "\n\ndef f(x):\n    return x\n",
        "def f(x, y):\n    return x\n",
        "def g(x):\n    return x\n",
        "def f(x): return x\n",
        "def f(x, *, y):\n    return x\n",
        "def f(x:\n",
    ):
        path.write_text(text, encoding="utf-8")
        for function in (made.f, made.g):
            with pytest.raises(NotScriptable, check=code("NoSource")) as caught:
                read_function(function)
            assert caught.value.reason.endswith("it may have changed since it was run")
            assert caught.value.hint == "Run the file again."
    path.write_text(f"{'-' * 5000}1\ndef f(x):\n    return x\n", encoding="utf-8")
    with pytest.raises(NotSupported, match="such deep nesting"):
        read_function(made.f)
    path.write_text("def f(x):\n    x\n    return x\n", encoding="utf-8")
    assert len(read_function(made.f).tree.body) == 2


def test_files_are_kept_for_a_while(module: Callable[[str], ModuleType]) -> None:
    made = [module(f"def f():\n    return {at}\n") for at in range(source.KEPT + 3)]
    trees = [read_function(each.f).tree for each in made]
    assert len(source._FILES) <= source.KEPT
    assert read_function(made[-1].f).tree is trees[-1]
    assert read_function(made[0].f).tree is not trees[0]


def test_a_text_has_the_places_of_its_file() -> None:
    one = read_text("def f():\r\n  return 1\r", "a.py", 11)
    assert one.source.text == "def f():\n  return 1\n"
    (function,) = one.tree.body
    assert one.source.place(one.source.span(function)[0]) == (11, 1)
    for text, place in (("x = (\n", (11, 5)), ("x\nbreak\n", (12, 1))):
        with pytest.raises(MalformedProgram) as caught:
            read_text(text, "a.py", 11)
        error = caught.value
        assert error.source.place(error.span[0]) == place


def test_no_recursion_error_comes_out() -> None:
    for text in (f"{'-' * 5000}x", f"x{' + x' * 3000}", f"x{'.y' * 4000}"):
        with pytest.raises(NotSupported):
            read_text(text)
    for text in ("\ud800", "x = '\0'", "(" * 300, f"x = {'1' * 5000}"):
        with pytest.raises(MalformedProgram, check=code("MalformedProgram")):
            read_text(text)


# Lines of a body; what begins in one may end in another, or not.
LINES = st.sampled_from(
    [
        'x = """a\n"""',
        "y = '''\n  b\n\t'''",
        "x = (1,\n2)",
        "if 1: pass",
        "if 1:\n{margin}\tx = 3",
        "return [\n]",
        "'''",
        "# comment",
        "\n# comment",
        "é = 'ä世'",
        "",
        "x = 1 + \\\n2",
        "x = 'a\\\nb'",
        "def g(): return 1",
        "class C: y = 1",
        "@print\n{margin}def h(): return 1",
        "\f",
    ]
)
MARGINS = st.sampled_from(["", " ", "    ", "\t", "\t  "])


def test_wherever_a_function_stands_it_is_read_as_python_reads_it() -> None:
    read: list[str] = []

    @settings(max_examples=200)
    @given(
        margin=MARGINS,
        before=st.lists(st.sampled_from(["", "# é", "y = '''\n\n'''"]), max_size=3),
        lines=st.lists(LINES, max_size=6),
    )
    def run(margin: str, before: list[str], lines: list[str]) -> None:
        inner = f"{margin}  "
        body = [f"{inner}{line.format(margin=inner)}" for line in lines]
        head = [*before, "if True:" if margin else ""]
        text = "\n".join([*head, f"{margin}def f(x):", f"{inner}x = 0", *body, ""])
        if agrees(text):
            read.append(text)

    run()
    # It was seen to hold, for functions with each kind of line.
    assert len(read) > 30
    for part in ('"""', "    def", "\tdef", "\n# comment", "é", "@print", "\\\n"):
        assert any(part in each for each in read), part


def agrees(text: str) -> bool:
    """Whether Python takes a text, whose function is then read as Python reads it."""
    names: dict[str, Any] = {}
    try:
        exec(compile(text, "<drawn>", "exec"), names)
    except SyntaxError:
        return False
    lines = [f"{line}\n" for line in text.split("\n")]
    linecache.cache["<drawn>"] = len(text), None, lines, "<drawn>"
    try:
        one = read_function(names["f"])
    finally:
        del linecache.cache["<drawn>"]
    # Nothing of it was moved: the same code comes of it.
    again: dict[str, Any] = {}
    module = ast.Module([one.tree], [])
    exec(compile(module, "<drawn>", "exec"), again)
    first, second = names["f"].__code__, again["f"].__code__
    assert first.co_code == second.co_code
    assert [*first.co_lines()] == [*second.co_lines()]
    assert constants(first) == constants(second)
    # Its text is that of the file, and so are the spans in it.
    assert one.source.text in text
    for node in ast.walk(one.tree):
        if isinstance(node, ast.stmt | ast.expr):
            segment = ast.get_source_segment(text, node)
            assert one.source.text[slice(*one.source.span(node))] == segment
    return True


def constants(code: Any) -> list[Any]:
    return [each for each in code.co_consts if not hasattr(each, "co_code")]


def shown(x: int, *, é: "str" = "ä") -> None:
    del x
    print(é, None, end="")


def test_a_tree_prints_with_places() -> None:
    text = "def f(x: int, *, é='ä'):\n    global a, b\n    return é[x:], -1\n"
    one = read_text(text, "p.py")
    assert tree_text(one.tree, one.source) == (
        """\
1:1-4:1    Module
1:1-3:21     body[0]: FunctionDef name='f'
1:7-1:23       args: arguments
1:7-1:13         args[0]: arg arg='x'
1:10-1:13          annotation: Name id='int'
1:18-1:19        kwonlyargs[0]: arg arg='é'
1:20-1:23        kw_defaults[0]: Constant value='ä'
2:5-2:16       body[0]: Global names=['a', 'b']
3:5-3:21       body[1]: Return
3:12-3:21        value: Tuple
3:12-3:17          elts[0]: Subscript
3:12-3:13            value: Name id='é'
3:14-3:16            slice: Slice
3:14-3:15              lower: Name id='x'
3:19-3:21          elts[1]: UnaryOp
-                    op: USub
3:20-3:21            operand: Constant value=1
"""
    )


def test_a_tree_of_a_function_has_the_places_of_its_file() -> None:
    one = read_function(shown)
    first, *_ = rows(one.tree, one.source)
    assert first.kind == "FunctionDef"
    assert str(first) == "FunctionDef name='shown'"
    assert first.span == (0, len(one.source.text))
    line = shown.__code__.co_firstlineno
    assert tree_text(one.tree, one.source).startswith(f"{line}:1-{line + 2}:27")
    constants = [each for each in rows(one.tree, one.source) if each.kind == "Constant"]
    assert ("value", None) in [each.values[0] for each in constants]


@given(text=programs())
def test_each_node_is_a_row_inside_of_its_parents(text: str) -> None:
    one = read_text(text)
    every = [*rows(one.tree, one.source)]
    nodes = [
        each for each in ast.walk(one.tree) if not isinstance(each, ast.expr_context)
    ]
    # Python has one object for all nodes of an operator.
    located = [each for each in nodes if hasattr(each, "lineno")]
    assert {*located} == {each.node for each in every if hasattr(each.node, "lineno")}
    assert len(every) == len(nodes)
    around: list[tuple[int, int]] = []
    for each in every:
        del around[each.depth :]
        if each.span is not None:
            if around:
                start, end = around[-1]
                assert start <= each.span[0] <= each.span[1] <= end
            around.append(each.span)
        else:
            around.append(around[-1])
