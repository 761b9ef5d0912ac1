"""Programs for the tests of the frontend, and wrong ones with their errors: `refused/`.

`python -m tests.script.frontend.programs --write` writes the errors again; review the
changes before you commit them. The programs of `constructs.test` are those of the
tables, those of `programs.test` have other errors.
"""

import ast
import re
import sys
import typing
from pathlib import Path
from typing import NamedTuple

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.script.frontend import (
    CONSTRUCTS,
    RESTRICTIONS,
    Annotations,
    Construct,
    Exits,
    FunctionSignature,
    Scopes,
    SourceDefinition,
    absences,
    check,
    not_defined,
    read_signature,
    read_text,
)
from everyorder.runtime.script.types.annotations import TypeScope
from tests.tools.golden import Case, Golden

FOLDER, MODULE = Path(__file__).parent / "refused", "tests.script.frontend.programs"
GOLDEN = Golden(FOLDER, MODULE)
CONSTRUCTS_GOLDEN = Golden(FOLDER / "constructs.test", MODULE)
# What begins a program that is read as a saved one.
SAVED = "# saved\n"

ROWS = [row for group in CONSTRUCTS.values() for row in group]
SCOPE = TypeScope(vars(typing), {"typing": typing})


def frontend(text: str) -> list[FunctionSignature]:
    """All that the frontend does with a text, and the signatures in it."""
    text_of = read_text(text, "program.py")
    check(text_of.tree, text_of.source, is_saved=text.startswith(SAVED))
    found = []
    for node in text_of.tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        definition: SourceDefinition[ast.FunctionDef] = SourceDefinition(
            text_of.source, node
        )
        Exits(node.body)
        Scopes(node)
        annotations = Annotations(definition, SCOPE)
        found.append(read_signature(annotations))
        for each in ast.walk(node):
            if isinstance(each, ast.Assign | ast.AnnAssign):
                annotations.assignment(each)
        for use, absence in absences(node).items():
            raise not_defined(use, absence, text_of.source)
    return found


def complaint(text: str) -> EveryorderError | None:
    """Return the error of the frontend for a text; None if it accepts the text."""
    try:
        frontend(text)
    except EveryorderError as error:
        return error
    return None


class Refused(NamedTuple):
    """A refused construct, and the program that has it."""

    row: Construct
    program: str


def refused() -> dict[str, Refused]:
    """Return the refused constructs of the tables by the names of their cases."""
    found = {
        row.node.lower(): Refused(row, row.program)
        for row in ROWS
        if not row.is_accepted
    }
    for each in RESTRICTIONS:
        row = each.construct
        words = re.sub(r"\W+", "-", row.name).strip("-").lower()
        found[f"{row.node.lower()}-{words}".rstrip("-")] = Refused(row, row.program)
    # What stands in a function in a function, which only saved texts may have.
    for name in (
        "nonlocal",
        "functiondef-a-parameter-of-a-function-in-a-saved-function",
    ):
        row, program = found[name]
        found[name] = Refused(row, f"{SAVED}{program}")
    return found


def words(case: Case) -> str:
    """Return the output of a case: what the frontend says of its program."""
    return f"{complaint(case.input)}\n"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    GOLDEN.write(words)
    CONSTRUCTS_GOLDEN.write(
        words, {name: each.program for name, each in refused().items()}
    )
