"""Scenarios of a module that are not collected, and the lines of its names.

The pytest plugin and the commands collect public variables of modules.  Scenarios
elsewhere (in classes, lists, dicts, private names) are reported, because otherwise they
would seem to be explored.

Rules:
- the search covers the module's variables, the namespaces of classes that it defines,
  and lists, tuples and dicts of exactly these types: no code of the module is run;
- a scenario that is imported, or collected from another place, is not reported;
- names with two leading underscores are skipped: they mean that a scenario is not to be
  explored by itself;
- a name that is assigned twice has the line of the last assignment; a name that no
  statement at the top level assigns has no line.
"""

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from everyorder.harness.base.columns import wrap_lines


def statements_of(file: Path) -> list[ast.stmt] | None:
    """Return the top-level statements of a module; None if it cannot be parsed."""
    try:
        return ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None


def assigned_lines(file: Path) -> dict[str, int]:
    """Return the line of each name that a module assigns, counted from 1.

    Empty for a file that cannot be read or parsed.
    """
    lines: dict[str, int] = {}
    for statement in statements_of(file) or ():
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for node in (node for each in targets for node in ast.walk(each)):
            if isinstance(node, ast.Name):
                lines[node.id] = statement.lineno
    return lines


# The depth of the search below a variable: `TABLE["a"][0]` is two below `TABLE`.
DEPTH = 4

# The limit of visited values: a module of tests may hold tables of any size.
MOST_VALUES = 100_000

# Places that are listed for one module; of further ones only the number.
MOST_PLACES = 12

# A longer key does not help to find the place.
KEY_WIDTH = 40

# The namespace of a class, even if its metaclass overrides `__dict__`.
_namespace = type.__dict__["__dict__"].__get__


@dataclass(frozen=True, slots=True)
class UncollectedScenarios:
    """The scenarios of one module that are not collected, by their places in it."""

    source: str
    places: tuple[str, ...]

    def render(self, head: str = "") -> str:
        """Return the places, and how to have the scenarios explored, wrapped."""
        module = self.source.removesuffix(".py").replace("/", ".")
        rest = len(self.places) - MOST_PLACES
        listed = self.places if rest <= 1 else self.places[:MOST_PLACES]
        places = ", ".join(f"{module}.{place}" for place in listed)
        if rest > 1:
            places += f" and {rest} more"
        each = "it" if len(self.places) == 1 else "each"
        text = f"not collected: {places}; give {each} a public name at module level"
        return wrap_lines(head + text, indent="  ")


@dataclass(frozen=True, slots=True)
class _PlacedValue:
    """A value, its place as text, and its position, by which places are sorted."""

    value: Any
    place: str
    position: tuple[int, ...]


def uncollected_scenarios(
    module: ModuleType, file: Path, source: str
) -> UncollectedScenarios | None:
    """Return the scenarios that a module defines but that are not collected, if any."""
    from everyorder.harness.scenario import Scenario

    variables = dict(vars(module))
    values = {
        id(value)
        for name, value in variables.items()
        if not name.startswith("_") and issubclass(type(value), Scenario)
    }
    waiting = deque(
        _PlacedValue(value, name, (index,))
        for index, (name, value) in enumerate(variables.items())
        if not name.startswith("__")
    )
    placed: list[_PlacedValue] = []
    looked = 0
    while waiting and looked < MOST_VALUES:
        each = waiting.popleft()
        looked += 1
        if issubclass(type(each.value), Scenario):
            # A scenario with a source was collected elsewhere, and is here only as a
            # value.
            if id(each.value) not in values and not each.value.source:
                placed.append(each)
            values.add(id(each.value))
        elif len(each.position) <= DEPTH and id(each.value) not in values:
            room = max(MOST_VALUES - looked - len(waiting), 0)
            inner = list(islice(_children(each, variables.get("__name__")), room))
            if inner:
                values.add(id(each.value))
                waiting.extend(inner)
    if placed:
        imported = _imported(file, set(variables))
        names = list(variables)
        placed = [each for each in placed if names[each.position[0]] not in imported]
    if not placed:
        return None
    placed.sort(key=lambda each: each.position)
    return UncollectedScenarios(source, tuple(each.place for each in placed))


def _children(parent: _PlacedValue, module: object) -> Iterator[_PlacedValue]:
    """Yield the values directly inside of a list, tuple, dict or own class."""
    value, kind = parent.value, type(parent.value)
    inner: Iterator[tuple[str, Any]] = iter(())
    if kind is list or kind is tuple:
        inner = ((f"[{index}]", each) for index, each in enumerate(value))
    elif kind is dict:
        inner = ((f"[{_key(key)}]", each) for key, each in value.items())
    elif issubclass(kind, type):
        namespace = _namespace(value)
        if namespace.get("__module__") == module:
            mangled = f"_{type.__dict__['__name__'].__get__(value).lstrip('_')}__"
            inner = (
                (f".{name}", each)
                for name, each in namespace.items()
                if not name.startswith(("__", mangled))
            )
    for index, (place, each) in enumerate(inner):
        yield _PlacedValue(each, parent.place + place, (*parent.position, index))


def _key(key: object) -> str:
    """Return a key as it is written, unless that would run code or be too long."""
    if type(key) in (str, bytes, int, float, bool, type(None)):
        text = repr(key)
        if len(text) <= KEY_WIDTH:
            return text
    return "..."


def _imported(file: Path, names: set[str]) -> set[str]:
    """Return the names that a module imports, by its source text.

    If it imports all names of another module, these are the names that it never stores.
    """
    aliases: set[str] = set()
    stored: set[str] = set()
    waiting: list[ast.AST] = [*(statements_of(file) or ())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases.update(a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        else:
            waiting.extend(ast.iter_child_nodes(node))
    return (names if "*" in aliases else aliases) - stored
