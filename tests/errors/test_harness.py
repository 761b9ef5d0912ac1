"""Errors of the harness: each sentence is said somewhere, and crosses a process."""

import ast
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import everyorder.harness.base.errors
from everyorder.coded_error import blocks, sentences
from everyorder.harness.base.errors import (
    BadScenario,
    CannotReplay,
    FileExists,
    HarnessError,
    NotFound,
    ProcessError,
    TrialEnded,
    WritesForbidden,
)
from everyorder.harness.systems.outcomes import ScenarioSkipped

ROOT = Path(everyorder.harness.base.errors.__file__).parents[1]
KINDS: dict[str, type[HarnessError]] = {
    kind.__name__: kind
    for kind in (*vars(everyorder.harness.base.errors).values(), ScenarioSkipped)
    if isinstance(kind, type) and issubclass(kind, HarnessError)
}


def rows() -> Iterator[tuple[type[HarnessError], str, str]]:
    """The sentences of all classes: the class, the code, the template."""
    for kind in KINDS.values():
        for code, sentence in sentences(kind.words).items():
            yield kind, code, sentence.head


def fields(kind: type[HarnessError]) -> set[str]:
    """The fields that a class declares."""
    return {*kind.__annotations__} - {"words"}


def named(words: str) -> set[str]:
    """The fields and properties that a template names."""
    return {name for _, name, _, _ in Formatter().parse(words) if name}


def calls() -> Iterator[tuple[str, type[HarnessError], str, set[str]]]:
    """Where an error is made: the place, the class, the code, the names of fields."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kind = KINDS.get(node.func.id)
                if kind is not None:
                    given = {each.arg or "": each.value for each in node.keywords}
                    code = given.pop("code", ast.Constant(kind.code))
                    assert isinstance(code, ast.Constant), f"{path}:{node.lineno}"
                    yield f"{path}:{node.lineno}", kind, str(code.value), {*given}


def test_a_code_is_of_one_sentence() -> None:
    codes = Counter(code for _, code, _ in rows())
    assert [code for code, count in codes.items() if count > 1] == []
    assert len(codes) > 40


def test_a_sentence_is_a_head_since_nothing_else_is_rendered() -> None:
    for kind in KINDS.values():
        assert not any(row.rows for row in sentences(kind.words).values()), kind
        assert not any(begin[2] for begin, _ in blocks(kind.words)), kind


def test_every_sentence_is_said_somewhere_and_has_its_fields() -> None:
    said = set()
    for place, kind, code, given in calls():
        words = sentences(kind.words)
        assert code in words, place
        assert given <= fields(kind), place
        required = {name for name in fields(kind) if not hasattr(kind, name)}
        assert required <= given, place
        always = re.sub(r"\[\[.*?\]\]", "", words[code].head, flags=re.DOTALL)
        assert named(always) & fields(kind) <= given, place
        said.add(code)
    assert said == {code for _, code, _ in rows()}


def test_a_sentence_names_fields_and_properties() -> None:
    for kind, code, words in rows():
        for name in named(words):
            assert name in fields(kind) or hasattr(kind, name), (code, name)


def test_every_sentence_crosses_a_process() -> None:
    for kind, code, words in rows():
        given: dict[str, Any] = {
            name: getattr(kind, name, "x") or ("x",)
            for name in fields(kind) & named(words) | ({*fields(kind)} - {*dir(kind)})
        }
        error = kind(code=code, **given)
        error.add_note("a note")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.code, copy.fields()) == (kind, code, given)
        assert str(copy) == str(error) != ""
        assert copy.__notes__ == ["a note"]


def test_the_builtin_classes_are_kept() -> None:
    error = CannotReplay(code="BadReplayId", text="x", reason="it is short")
    assert isinstance(error, ValueError)
    assert error.fields() == {"text": "x", "reason": "it is short"}
    assert str(error) == "replay id 'x': it is short"
    assert isinstance(NotFound(), LookupError)


def test_a_part_is_left_out_where_its_fields_are_empty() -> None:
    died = ProcessError(code="ChildDied", operation="do", exit_code=3)
    assert str(died) == "the process ended with exit code 3 during do"
    killed = ProcessError(code="ChildDied", operation="do", signal="SIGKILL")
    assert str(killed) == "the process ended by SIGKILL during do"
    failed = ProcessError(code="ChildFailed", operation="do", error="KeyError")
    assert str(failed) == "do failed: KeyError"
    error = NotFound(code="NoSuchModule", wanted="shp", where=".", near=("shop", "sh"))
    assert str(error) == (
        "there is no module 'shp' in . or on Python's path; did you mean shop or sh?"
    )


def test_a_code_without_words() -> None:
    with pytest.raises(NotImplementedError, match="no sentence for HarnessError"):
        str(HarnessError())
    with pytest.raises(NotImplementedError, match="no sentence for Else"):
        str(NotFound(code="Else"))


def test_errors_load_nothing_of_ours() -> None:
    # What watches the process, as coverage does, has loaded its own before.
    text = (
        "import sys; before = {*sys.modules}; import everyorder.harness.base.errors; "
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    ours = [each for each in loaded if each.startswith("everyorder.")]
    assert ours == [
        "everyorder.coded_error",
        "everyorder.harness",
        "everyorder.harness.base",
        "everyorder.harness.base.errors",
    ]
    assert not {"unittest", "dataclasses", "numpy", "difflib"} & {*loaded}


def test_an_error_is_made_with_the_fields_of_its_class() -> None:
    kind: Any = TrialEnded
    with pytest.raises(TypeError, match="TrialEnded has no target, reason"):
        kind()


def test_a_list_reads_as_a_tuple_does() -> None:
    near: Any = ["a", "b"]
    told = [
        str(BadScenario(code="UnknownProbe", kind="x", near=near, known=names))
        for names in (near, ("a", "b"))
    ]
    assert told[0] == told[1] != ""


def test_repr_names_code_and_fields() -> None:
    error = CannotReplay(code="BadReplayId", text="x", reason="short")
    assert repr(error) == ("CannotReplay(code='BadReplayId', text='x', reason='short')")


def test_what_builtin_classes_catch() -> None:
    refused = WritesForbidden(variable="CI", value="1")
    assert isinstance(refused, PermissionError)
    assert isinstance(FileExists(source="x"), FileExistsError)
    assert pickle.loads(pickle.dumps(refused)).fields() == refused.fields()
