"""Comments that type functions and assignments, and those that say nothing."""

import ast
from textwrap import dedent

import pytest

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.source import Source
from everyorder.runtime.script.types.annotations import AnnotationReader
from tests.script.types.test_annotations import POINT, names


def signature(text: str) -> tuple[dict[str, str | None], str | None]:
    source = Source(dedent(text), "p.py", 5)
    tree = ast.increment_lineno(ast.parse(source.text), 4)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    found = AnnotationReader(names(), source).signature(function)
    arguments = {
        name: None if each is None else str(each)
        for name, each in found.arguments.items()
    }
    return arguments, None if found.returns is None else str(found.returns)


@pytest.mark.parametrize(
    ("text", "arguments", "returns"),
    [
        (
            "def f(x: int, y, *, k: 'str' = 'a') -> None: ...",
            {"x": "int", "y": None, "k": "str"},
            "NoneType",
        ),
        ("def f(): ...", {}, None),
        (
            """
            def f(x, y=3):
                # type: (Tensor, Optional[int]) -> list[int]
                return []
            """,
            {"x": "Tensor", "y": "int?"},
            "int[]",
        ),
        (
            """
            def f(x,
                  y):  # type: (Tensor, Point) -> Tensor  # and more
                '''Text.'''
                # type: (int, int) -> int
            """,
            {"x": "Tensor", "y": POINT},
            "Tensor",
        ),
        (
            """
            def f(x,  # type: Tensor
                  # type: ignore
                  y=(1,
                     2),  # type: ignore[arg-type]
                  *,
                  k='# type: int',  # type: Optional[str]
                  ):
                # type: (...) -> None
                pass
            """,
            {"x": "Tensor", "y": None, "k": "str?"},
            "NoneType",
        ),
        (
            """
            def f(self, x):
                # type: (int) -> int
                return x
            """,
            {"self": None, "x": "int"},
            "int",
        ),
        (
            """
            def f(self, x):
                # type: (Point, int) -> int
                return x
            """,
            {"self": POINT, "x": "int"},
            "int",
        ),
        (
            """
            def f():
                # type: () -> tuple[int, str]
                return 1, 'a'
            """,
            {},
            "(int, str)",
        ),
    ],
)
def test_functions_are_typed_by_annotations_or_comments(
    text: str, arguments: dict[str, str | None], returns: str | None
) -> None:
    assert signature(text) == (arguments, returns)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            """\
            def f(x, y):
                # type: (int, Tensr) -> int
                return x
            """,
            """\
`Tensr` is not defined here:
  p.py:6:19
def f(x, y):
    # type: (int, Tensr) -> int
                  ~~~~~ <--- HERE
    return x

Did you mean Tensor?""",
        ),
        (
            """\
            def f(x, y):
                # type: (int) -> int
                return x
            """,
            """\
the comment has 1 types for 2 arguments:
  p.py:6:13
def f(x, y):
    # type: (int) -> int
            ~~~~~~~~~~~~ <--- HERE
    return x

Give each one type, or write `(...)`.""",
        ),
        (
            """\
            def f(x, y):  # type: int
                return x
            """,
            """\
this comment is in a line with 2 arguments:
  p.py:5:23
def f(x, y):  # type: int
                      ~~~ <--- HERE
    return x

Write one argument in a line, or `# type: (A, B) -> C` below all.""",
        ),
        (
            """\
            def f(x: int):
                # type: (str) -> int
                return x
            """,
            """\
`x` is typed twice:
  p.py:6:13
def f(x: int):
    # type: (str) -> int
            ~~~~~~~~~~~~ <--- HERE
    return x

Use annotations or a comment.""",
        ),
        (
            """\
            def f(x) -> int:
                # type: (...) -> int
                return x
            """,
            """\
the result is typed twice:
  p.py:6:13
def f(x) -> int:
    # type: (...) -> int
            ~~~~~~~~~~~~ <--- HERE
    return x

Use annotations or a comment.""",
        ),
        (
            """\
            def f(x):
                # type: (int]) -> int
                return x
            """,
            """\
invalid annotation: closing parenthesis ']' does not match opening parenthesis '(':
  p.py:6:13
def f(x):
    # type: (int]) -> int
            ~~~~~~~~~~~~~ <--- HERE
    return x

Annotations are names, `A | B`, and subscripts such as list[int].""",
        ),
    ],
)
def test_comments_that_say_nothing_are_refused(text: str, error: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        signature(text)
    assert str(caught.value) == error


def test_assignments_are_typed_by_the_comment_behind_them() -> None:
    text = """\
a = []  # type: list[int]
b = {
    'x': 1,
}  # type: dict[str, int]
c = '# type: int'
d = [1]  # type: ignore
e = []  # type: list[Tensr]
"""
    reader = AnnotationReader(names(), Source(text, "p.py"))
    a, b, c, d, e = ast.parse(text).body
    found = [reader.assignment(each) for each in (a, b, c, d)]
    assert [str(each) for each in found] == ["int[]", "Dict(str, int)", "None", "None"]
    with pytest.raises(AnnotationError) as caught:
        reader.assignment(e)
    assert (
        str(caught.value)
        == """\
`Tensr` is not defined here:
  p.py:7:22
c = '# type: int'
d = [1]  # type: ignore
e = []  # type: list[Tensr]
                     ~~~~~ <--- HERE

Did you mean Tensor?"""
    )


def test_comments_of_a_part_of_a_file_are_read_up_to_its_end() -> None:
    text = "    a = []  # type: list[int]\n  b = (\n"
    reader = AnnotationReader(names(), Source(text, "p.py", 3))
    assert {line: text[slice(*span)] for line, span in reader.comments.items()} == {
        3: "list[int]"
    }
