"""Errors of programs: what they carry, how they print, and that they can be sent."""

import pickle

import pytest

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import (
    ArchiveError,
    MalformedProgram,
    NotScriptable,
    NotSupported,
    ProgramError,
    ScriptError,
    UnknownName,
)
from everyorder.runtime.errors.source import Source

SOURCE = Source("def f(c):\n    if c:\n        y = 1\n    return y", "p.py", 7)
ERRORS: list[ScriptError] = [
    NotScriptable(
        code="NoSource",
        found="the function `f`",
        reason="it is in no file",
        hint="Write it.",
    ),
    NotScriptable(code="NoSource", found="the function `f`", reason="it is in no file"),
    NotSupported(
        source=SOURCE, span=(14, 19), construct="`if`", reason="of it", hint="Do."
    ),
    MalformedProgram(
        code="MalformedProgram", source=SOURCE, span=(0, 3), message="invalid syntax"
    ),
    UnknownName(
        code="NotDefined",
        source=SOURCE,
        span=(45, 46),
        variable="y",
        way="in it",
        cause=(14, 19),
    ),
    UnknownName(
        code="NotDefined",
        source=SOURCE,
        span=(45, 46),
        variable="y",
        way="at all",
        cause=None,
    ),
    MalformedProgram(
        code="UnfitParameter",
        source=SOURCE,
        span=(6, 7),
        parameter="c",
        message="is wrong",
        hint="Mend it.",
    ),
]
TEXTS = [
    "the function `f` cannot be compiled: it is in no file.\n  to do: Write it.",
    "the function `f` cannot be compiled: it is in no file.",
    """\
`if` is not supported, because of it:
  p.py:8:5
def f(c):
    if c:
    ~~~~~ <--- HERE
        y = 1
    return y
Do.""",
    """\
this is not a Python program: invalid syntax:
  p.py:7:1
def f(c):
~~~ <--- HERE
    if c:
        y = 1""",
    """\
`y` is not defined in it:
  p.py:8:5
def f(c):
    if c:
    ~~~~~ <--- HERE
        y = 1
    return y
and is used here:
  p.py:10:12
    if c:
        y = 1
    return y
           ~ <--- HERE""",
    """\
`y` is not defined at all:
  p.py:10:12
    if c:
        y = 1
    return y
           ~ <--- HERE""",
    """\
the parameter `c` is wrong:
  p.py:7:7
def f(c):
      ~ <--- HERE
    if c:
        y = 1
Mend it.""",
]
BUILTIN = [TypeError, TypeError, NotImplementedError, ValueError]
BUILTIN += [NameError, NameError, ValueError]


@pytest.mark.parametrize(
    ("error", "text", "builtin"), [*zip(ERRORS, TEXTS, BUILTIN, strict=True)]
)
def test_an_error_prints_and_crosses_a_process(
    error: ScriptError, text: str, builtin: type[Exception]
) -> None:
    assert str(error) == text
    assert isinstance(error, builtin)
    assert isinstance(error, EveryorderError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.fields(), str(copy)) == (type(error), error.fields(), text)


def test_who_defines_no_words_is_told() -> None:
    with pytest.raises(NotImplementedError, match="no sentence for ProgramError"):
        ProgramError(source=SOURCE, span=(0, 1)).render()


def test_a_program_that_is_refused_raises_what_torch_raises() -> None:
    todo: list[type[BaseException]] = [ScriptError, ArchiveError, AnnotationError]
    for kind in todo:
        assert issubclass(kind, RuntimeError)
        todo += kind.__subclasses__()
    assert {NotScriptable, NotSupported, MalformedProgram, UnknownName} <= {*todo}
