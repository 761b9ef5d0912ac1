"""Which modules declare operators: all that have any, each operator once."""

import re
from importlib import import_module
from pathlib import Path

from runtime import operators
from runtime.operators.install import FAMILIES, declared

# What is called so there is a list of names.
NAMES = {"functions"}


def test_every_module_with_operators_is_a_family() -> None:
    assert operators.__file__ is not None
    folder = Path(operators.__file__).parent
    found = {
        path.stem: import_module(f"runtime.operators.{path.stem}").OPERATORS
        for path in folder.glob("*.py")
        if re.search(r"^OPERATORS(: .*)? = \(", path.read_text(), re.MULTILINE)
        and path.stem not in NAMES
    }
    assert len(found) > 10
    families = [id(family) for family in FAMILIES]
    assert {name for name in found if id(found[name]) not in families} == set()


def test_no_operator_is_declared_twice() -> None:
    names = [each.schema.partition("(")[0] for each in declared()]
    assert len(names) == len(set(names)) > 300
