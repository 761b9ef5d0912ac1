"""Expect files that no scenario of the catalogue stands behind.

True only here: what can be known without pytest.  A scenario that a test function
explores is not in the catalogue, and neither is a module elsewhere.  So a file is stale
only if its module is gone, or if it defines nothing of that name; a variable counts
where the module was not loaded, because it may be a scenario there.
"""

import ast
from collections.abc import Collection
from pathlib import Path

from harness.cli.task import Listing
from harness.expectations import Store


def stale_files(store: Store, listing: Listing) -> tuple[str, ...]:
    """The scenarios that have an expect file and are gone, sorted."""
    return tuple(
        name
        for name in store.stale(listing.paths)
        if not _may_be_alive(name, listing.root, listing.unknown, listing.loaded)
    )


def _may_be_alive(
    name: str, root: Path, unknown: Collection[str], loaded: Collection[str]
) -> bool:
    parts = name.split("/")
    for count in range(len(parts), 0, -1):
        for folder in ("tests/", ""):
            source = f"{folder}{'/'.join(parts[:count])}.py"
            file = root / source
            if file.is_file():
                rest = parts[count:]
                if source in unknown or not rest:
                    return True
                return _defines(file, rest[0], variables=source not in loaded)
    return False


def _defines(file: Path, name: str, *, variables: bool) -> bool:
    """Whether a file has a function or class of that name, its parameters left out.

    With `variables`, something that is assigned counts, too.
    """
    plain = name.partition("[")[0]
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return True
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {each.name for each in body if isinstance(each, kinds)}
    if variables:
        assigning = (ast.Assign, ast.AnnAssign)
        assigned = (each for each in body if isinstance(each, assigning))
        nodes = (node for each in assigned for node in ast.walk(each))
        stored = (node for node in nodes if isinstance(node, ast.Name))
        names |= {node.id for node in stored if isinstance(node.ctx, ast.Store)}
    return any(plain == each or plain.startswith(f"{each}-") for each in names)
