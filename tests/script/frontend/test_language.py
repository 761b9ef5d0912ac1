"""What a program may have: the tables, the check, the reference, and what is said."""

import ast
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from everyorder.runtime.errors.script import NotSupported, ProgramError
from everyorder.runtime.errors.source import Source
from everyorder.runtime.script.frontend import (
    DEEPEST,
    DEEPEST_BLOCKS,
    INNER,
    RESTRICTIONS,
    Construct,
    Section,
    check,
    construct_of,
    place_of,
    read_text,
    reference,
    register_section,
    sections,
)
from tests.script.frontend.programs import (
    CONSTRUCTS_GOLDEN,
    GOLDEN,
    ROWS,
    SAVED,
    complaint,
    frontend,
    refused,
    words,
)

ROOT = Path(__file__).parents[3]
ACCEPTED = [row for row in ROWS if row.is_accepted]
# Roots of classes of nodes, those that only say how, and those that Python keeps for
# programs of its past.
ABSTRACT = {"expr", "stmt", "mod", "boolop", "operator", "unaryop", "cmpop", "pattern"}
ABSTRACT |= {"expr_context", "type_ignore", "excepthandler", "slice", "AST"}
ASIDE = {"Load", "Store", "Del", "TypeIgnore", "Interactive", "Expression"}
ASIDE |= {"FunctionType", "AugLoad", "AugStore", "Param", "Suite", "Index", "ExtSlice"}
ASIDE |= {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}


def says(text: str, *, is_saved: bool = False) -> str:
    """The construct that is refused, or nothing."""
    definition = read_text(text)
    try:
        check(definition.tree, definition.source, is_saved=is_saved)
    except NotSupported as error:
        return error.construct
    return ""


def test_every_class_of_syntax_trees_is_in_the_table_once() -> None:
    classes = {
        name
        for name, kind in vars(ast).items()
        if isinstance(kind, type) and issubclass(kind, ast.AST)
    }
    rows = [row.node for row in ROWS]
    assert sorted([*rows, *INNER]) == sorted(classes - ABSTRACT - ASIDE)


def test_what_is_refused_has_a_reason_and_a_hint() -> None:
    every = [*ROWS, *(each.construct for each in RESTRICTIONS)]
    assert all(bool(row.reason) == bool(row.hint) for row in every)
    assert all(each.construct.reason for each in RESTRICTIONS)
    accepted = {row.node for row in ACCEPTED}
    assert {each.construct.node for each in RESTRICTIONS} <= accepted
    assert {*INNER.values()} <= {row.node for row in ROWS} - accepted


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row.node)
def test_what_is_accepted_passes_all_of_the_frontend(row: Construct) -> None:
    frontend(row.program)
    kinds = {type(node).__name__ for node in ast.walk(ast.parse(row.program))}
    assert row.node in kinds


@pytest.mark.spec("script 6.2", "what is refused")
@pytest.mark.parametrize("name", refused())
def test_a_refused_construct_is_told_by_its_own_row(name: str) -> None:
    row, program = refused()[name]
    error = complaint(program)
    assert isinstance(error, NotSupported)
    told = error.construct, error.reason, error.hint
    assert told == (row.name, row.reason, row.hint)
    kinds = {type(node).__name__ for node in ast.walk(ast.parse(program))}
    assert row.node in kinds


@pytest.mark.spec("script 0.2", "keyword arguments are not expanded")
@pytest.mark.spec("script 6.2", "what is refused")
@pytest.mark.parametrize("name", GOLDEN.cases)
def test_what_is_said_is_what_the_file_has(name: str) -> None:
    GOLDEN.check(name, words(GOLDEN.cases[name]))


def test_the_cases_of_constructs_are_those_of_the_tables() -> None:
    programs = {name: each.program for name, each in refused().items()}
    CONSTRUCTS_GOLDEN.check_inputs(programs)
    assert len(GOLDEN.cases) >= len(programs) + 40


@pytest.mark.parametrize("name", GOLDEN.cases)
def test_what_is_said_points_into_the_program(name: str) -> None:
    error = complaint(GOLDEN.cases[name].input)
    assert error is not None
    (start, end), source = error.span, error.source  # type: ignore[attr-defined]  # all have a place
    assert 0 <= start <= end <= len(source.text)
    assert isinstance(error, ProgramError) == (type(error).__name__[:3] != "Ann")


@pytest.mark.spec("script 6.2", "the reference is the table")
def test_the_reference_is_the_one_of_the_tables() -> None:
    kept = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    # What stands behind it is of plug-ins, which have tests of their own.
    assert kept.startswith(reference())
    assert kept[len(reference()) :].startswith("\n## ")
    for row in [*ROWS, *(each.construct for each in RESTRICTIONS)]:
        assert f"| {row.name} | ".replace("`|`", "`\\|`") in kept


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("def f(x: {1, 2}, y: lambda: 3) -> b'':\n    z: {1} = x\n", ""),
        ("def f(x={1}):\n    return x\n", ""),
        ("def f(x):\n    return {x}, lambda: 1\n", "a set"),
        ("def f(x):\n    return (lambda: 1), {x}\n", "a lambda"),
        ("def f(x):\n    {x}\nimport math\n", "a statement outside of functions"),
        ("def f(x):\n    return -9223372036854775808\n", ""),
        ("def f(x):\n    return -9223372036854775809\n", "an integer of more than"),
        ("def f(x):\n    return +9223372036854775808\n", "`+` of one"),
        ("def f(x):\n    return x[..., 1], x[...]\n", ""),
        ("def f(x):\n    return x[(..., [...])]\n", "`...` as a value"),
        ("def f(x):\n    return x[[*x]], (*x, x)[0]\n", ""),
        ("def f(x):\n    return (..., 1)[0]\n", "`...` as a value"),
        ("def f(x):\n    x @= x\n", "`//=` or `@=`"),
        ("def f(x):\n    del (x, x)\n", "`del` of an attribute"),
        ("def f(x):\n    del x[0], x.a\n", "`del` of an attribute"),
        ("def f(x):\n    return f'{x=}'\n", "`!r`, `!s`, `!a`"),
        ("def f(x):\n    with x, x as x.y:\n        pass\n", "`as` with more than"),
        ("def f(x):\n    with x as y, x, x as z:\n        pass\n", ""),
        ("def f(**x):\n    pass\n", "a variable number"),
        ("def f(x, *, y):\n    pass\n", ""),
        ("class C:\n    '''Words.'''\n    n: int\n    def f(self): pass\n", ""),
        ("class C:\n    def f(self):\n        n: int\n", "an annotation without"),
        ("class C:\n    @staticmethod\n    def f(x): pass\n", ""),
        ("def f(x):\n    class C: pass\n", "a class inside"),
        (
            "def f(x):\n    return [[y for y in x for z in y] for x in x]\n",
            "a second `for`",
        ),
        ("'''Words.'''\n", ""),
    ],
)
def test_the_first_thing_in_the_text_that_is_refused_is_told(
    text: str, construct: str
) -> None:
    found = says(text)
    assert found.startswith(construct)
    assert bool(found) == bool(construct)


def test_a_saved_text_has_functions_without_parameters_in_functions() -> None:
    text = f"{SAVED}def f(x):\n    def g():\n        return x\n    return fork(g)\n"
    assert says(text, is_saved=True) == ""
    assert says(text) == "a function in a function"
    assert says(text.replace("g():", "g(*, y):"), is_saved=True) == (
        "a parameter of a function in a saved function"
    )


def test_a_class_of_a_later_python_is_refused_by_its_name() -> None:
    class Later(ast.expr):
        pass

    node = Later(lineno=1, col_offset=0, end_lineno=1, end_col_offset=2)
    tree = ast.Expr(node, lineno=1, col_offset=0, end_lineno=1, end_col_offset=3)
    with pytest.raises(NotSupported) as caught:
        check(tree, Source("x y", "p.py"))
    assert (
        str(caught.value)
        == """\
`Later` is not supported, because this language does not know it:
  p.py:1:1
x y
~~ <--- HERE
Write it in other words."""
    )
    assert construct_of(node).hint == "Write it in other words."


def test_what_has_no_place_is_at_the_beginning() -> None:
    source = Source("x + y")
    assert place_of(ast.Add(), source) == (0, 0)
    whole = ast.parse(source.text).body[0]
    assert place_of(ast.Add(), source, (whole,)) == (0, 5)


@pytest.mark.spec("script 6.2", "the reference is the table")
def test_the_module_prints_the_reference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["language", "everyorder.runtime.script.frontend"])
    with added_section():
        runpy.run_module("tests.tools.language", run_name="__main__")
        assert capsys.readouterr().out == reference() + sections()
        assert "\n## A plug-in\n\nWords.\n\n| a |\n| --- |\n| b\\|c |\n" in sections()
    assert "A plug-in" not in sections()


@contextmanager
def added_section() -> Iterator[None]:
    """The reference has a section of a plug-in."""
    handle = register_section(Section("A plug-in", "Words.", [(("a",), [("b|c",)])]))
    yield
    handle.close()
    handle.close()


def test_parts_of_refused_constructs_are_refused_as_those() -> None:
    (match,) = ast.parse("match x:\n    case [1, *_] | {}: pass").body
    assert isinstance(match, ast.Match)
    for node in ast.walk(match.cases[0].pattern):
        if isinstance(node, ast.pattern):
            assert construct_of(node).name == "`match`"


@pytest.mark.parametrize(
    ("levels", "is_refused"), [(DEEPEST_BLOCKS, False), (DEEPEST_BLOCKS + 1, True)]
)
def test_loops_are_nested_as_deeply_as_python_allows(
    levels: int, is_refused: bool
) -> None:
    lines = [f"{'  ' * (at + 1)}while x:\n" for at in range(levels)]
    text = f"def f(x):\n{''.join(lines)}{'  ' * (levels + 1)}pass\n"
    found = complaint(text)
    assert (found is not None) == is_refused
    if is_refused:
        with pytest.raises(SyntaxError, match="too many statically nested blocks"):
            compile(text, "", "exec")


def test_expressions_are_nested_so_deeply_that_they_can_be_walked() -> None:
    # The text, the function, `return`, and then one operation inside of the other.
    deepest = DEEPEST - 3
    assert frontend(f"def f(x):\n    return {'-' * deepest}x\n")
    error = complaint(f"def f(x):\n    return {'-' * deepest}(-x)\n")
    assert isinstance(error, NotSupported)
    assert error.construct == "such deep nesting"
    # An `elif` is one in the other, too.
    chain = "".join(f"    elif x == {at}:\n        pass\n" for at in range(DEEPEST))
    error = complaint(f"def f(x):\n    if x:\n        pass\n{chain}")
    assert isinstance(error, NotSupported)
