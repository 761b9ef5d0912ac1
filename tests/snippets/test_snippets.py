"""Programs for torch of nine kinds, run here after a change of their imports alone.

Each file of `programs/` is such a program, and leaves what it found in `answers`.
"""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.snippets.wanted import WANTED

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
# What changes: the module that is imported, and nothing else.
IMPORTS = (
    (re.compile(r"^import torch$", re.MULTILINE), "import everyorder.runtime as torch"),
    (
        re.compile(r"^from torch(\S*) import", re.MULTILINE),
        r"from everyorder.runtime\1 import",
    ),
)


def found_by(text: str, name: str) -> dict[str, Any]:
    """What a program leaves in its `answers`."""
    space: dict[str, Any] = {"__name__": name}
    with warnings.catch_warnings():
        # Overriding a kernel is warned of, and done.
        warnings.simplefilter("ignore", UserWarning)
        exec(compile(text, f"<{name}>", "exec"), space)
    found: dict[str, Any] = space["answers"]
    return found


def here(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    for pattern, replacement in IMPORTS:
        text = pattern.sub(replacement, text)
    assert not re.search(r"^\s*(import|from) torch", text, re.MULTILINE)
    return found_by(text, f"{path.stem}_here")


def test_there_are_nine_kinds() -> None:
    assert len(PROGRAMS) == 9


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_runs_after_a_change_of_its_imports(path: Path) -> None:
    answers = here(path)
    assert len(answers) > 4
    assert answers == WANTED[path.stem]


@pytest.mark.torch
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_wanted_is_what_torch_answers(path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    found = found_by(path.read_text(encoding="utf-8"), f"{path.stem}_of_torch")
    assert found == WANTED[path.stem]
