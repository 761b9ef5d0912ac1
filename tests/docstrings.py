"""What tests say that they are for: their docstrings, which lists of rows name."""

import ast
from functools import cache
from pathlib import Path


@cache
def docstrings(path: Path) -> dict[str, str]:
    """The tests of a file, and their docstrings on one line.

    Raises FileNotFoundError.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: " ".join((ast.get_docstring(node) or "").split())
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
