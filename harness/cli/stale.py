"""Expect files that no scenario of the catalogue stands behind.

True only here: what can be known without pytest.  A scenario that a test function
explores is not in the catalogue, so a file is stale only if its module is gone, or if
its module was loaded and defines nothing of that name.
"""

import ast
from collections.abc import Collection
from pathlib import Path

from harness.catalogue import Catalogue
from harness.expectations import Store


def stale_files(store: Store, catalogue: Catalogue) -> tuple[str, ...]:
    """The scenarios that have an expect file and are gone, sorted."""
    unknown = {each.source for each in catalogue.broken}
    unknown |= {each.source for each in catalogue.skipped}
    return tuple(
        name
        for name in store.stale(catalogue.paths)
        if not _may_be_alive(name, catalogue.root, unknown)
    )


def _may_be_alive(name: str, root: Path, unknown: Collection[str]) -> bool:
    parts = name.split("/")
    for count in range(len(parts), 0, -1):
        for folder in ("tests/", ""):
            source = f"{folder}{'/'.join(parts[:count])}.py"
            file = root / source
            if file.is_file():
                rest = parts[count:]
                return source in unknown or not rest or _defines(file, rest[0])
    return False


def _defines(file: Path, name: str) -> bool:
    """Whether a file has a function or class of that name, its parameters left out."""
    plain = name.partition("[")[0]
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return True
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {each.name for each in body if isinstance(each, kinds)}
    return any(plain == each or plain.startswith(f"{each}-") for each in names)
