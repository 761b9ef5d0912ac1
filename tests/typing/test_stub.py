"""The stubs: what the declarations say, complete, and true to a type checker."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import runtime
import runtime.whole
from runtime.operators import stub
from runtime.tensors.methods import METHODS

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "program.py"
AGAIN = "write them anew: python -m runtime.operators.stub --write"


def test_the_files_are_what_the_declarations_say() -> None:
    for path, text in stub.texts().items():
        assert path.read_text(encoding="utf-8") == text, AGAIN


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stub.main([]) == 0
    monkeypatch.setattr(stub, "METHODS_FILE", tmp_path / "declared.pyi")
    assert stub.main([]) == 1
    assert "declared.pyi is not what the declarations say" in capsys.readouterr().out
    assert stub.main(["--write"]) == 0
    assert stub.main([]) == 0


def names_in(path: Path, owner: str = "") -> set[str]:
    """The names that a stub declares, of a class or of the module."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if owner:
        (kind,) = (n for n in body if isinstance(n, ast.ClassDef) and n.name == owner)
        body = kind.body
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_every_method_is_declared_and_nothing_else() -> None:
    declared = names_in(stub.METHODS_FILE, "Declared")
    assert declared <= {*METHODS}
    missing = {*METHODS} - declared
    # The class says these itself.
    assert missing <= {*vars(runtime.Tensor)}
    assert missing == {"__array_priority__", "grad", "grad_fn", "is_leaf"} | {
        *("requires_grad", "requires_grad_", "_version")
    } & {*METHODS}


def test_every_function_is_declared_and_nothing_else() -> None:
    declared = names_in(stub.NAMES_FILE)
    assert {*runtime.whole.functions.FUNCTIONS} <= declared
    assert [name for name in declared if not hasattr(runtime, name)] == []


def test_every_operator_is_declared_and_nothing_else() -> None:
    declared = names_in(stub.NAMES_FILE, "Core")
    assert [name for name in declared if not hasattr(runtime.ops.core, name)] == []
    assert len(declared) > 300


def test_a_type_checker_knows_them() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(PROGRAM)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert found.returncode == 0, found.stdout
