"""The measures of the house: what a newcomer has to find the way through.

    python -m tests.house       each measure, and what it is to be

True only here: how files, statements, circles, names and crossings are counted.
`tests/test_architecture.py` asserts of the same graph of imports that it points one
way.

How it works: files are read, not imported, except for the crossings, where a profile of
the running process tells which files a registration, a call and an exploration go
through when all of it is loaded and warm.
"""

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parent.parent
AREAS = ("runtime", "invariants", "harness")
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for area in AREAS
    for path in (ROOT / area).rglob("*.py")
)
# What came after the others, and has no ceiling of its own.
LATER = ("runtime/script/", "runtime/futures/", "runtime/rpc/")
# Calls after which an operator has its call stub, and some more.
WARMED = 32
DOCUMENTS = ("ARCHITECTURE.md", "README.md", "CHANGELOG.md", "docs/*.md")


@cache
def tree_of(file: str) -> ast.Module:
    """What is written in a file."""
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


@cache
def nodes_of(file: str) -> tuple[ast.AST, ...]:
    """All that is written in a file, node by node."""
    return tuple(ast.walk(tree_of(file)))


def type_only(file: str) -> set[ast.AST]:
    """The nodes that only a type checker sees."""
    return {
        inner
        for node in nodes_of(file)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }


@cache
def as_file(module: str) -> str | None:
    """The file of a module of ours, None for anybody else's."""
    top, _, rest = module.partition(".")
    if top != "everyorder" or rest.partition(".")[0] not in AREAS:
        return None
    path = rest.replace(".", "/")
    if (ROOT / f"{path}.py").exists():
        return f"{path}.py"
    package = f"{path}/__init__.py"
    return package if (ROOT / package).exists() else None


@cache
def imports(file: str, *, typed: bool = False) -> frozenset[str]:
    """The files of ours that a file imports, at its top or inside a function.

    With `typed` also those that only a type checker sees.
    """
    found = [n for n in nodes_of(file) if isinstance(n, ast.Import | ast.ImportFrom)]
    skipped = set() if typed else type_only(file)
    files: set[str] = set()
    for node in found:
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            deeper = [name for name in submodules if as_file(name)]
            names = deeper if len(deeper) == len(submodules) else [node.module, *deeper]
        else:
            continue
        files |= {path for path in map(as_file, names) if path is not None}
    return frozenset(files - {file})


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """The sets of files of which each reaches every other (Tarjan 1972), sorted."""
    names = sorted(graph)
    place = {name: index for index, name in enumerate(names)}
    edges = [
        (place[a], place[b]) for a in names for b in sorted(graph[a]) if b in place
    ]
    rows, columns = zip(*edges, strict=True) if edges else ((), ())
    matrix = csr_array(
        ([1] * len(edges), (rows, columns)), shape=(len(names), len(names))
    )
    _, labels = connected_components(matrix, directed=True, connection="strong")
    groups: dict[int, list[str]] = {}
    for name, label in zip(names, labels, strict=True):
        groups.setdefault(int(label), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def import_graph(*, typed: bool = False) -> dict[str, frozenset[str]]:
    """The imports of each file."""
    return {file: imports(file, typed=typed) for file in FILES}


def lines(files: list[str]) -> int:
    """Lines of text, empty ones and comments among them."""
    return sum(
        len((ROOT / each).read_text(encoding="utf-8").splitlines()) for each in files
    )


def statements(files: list[str]) -> int:
    """Statements, however they are broken into lines; docstrings are none."""
    return sum(
        isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for each in files
        for node in nodes_of(each)
    )


def naming(word: str) -> list[str]:
    """The files that name something, in code or in a text that is no docstring."""

    def names(file: str) -> bool:
        told = {
            id(node.value)
            for node in nodes_of(file)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        return any(_says(node, word) for node in nodes_of(file) if id(node) not in told)

    return [file for file in FILES if names(file)]


def _says(node: ast.AST, word: str) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return word in text.replace(".", " ").replace("(", " ").split()
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name == word
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name == word
        case ast.keyword(arg=name):
            return name == word
    return False


def error_classes() -> Counter[str]:
    """Classes of errors of the runtime, and how many places make one of each.

    What errors hold (a text, a fault) is no error.
    """
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for file in FILES
        if file.startswith("runtime/errors/")
        for node in tree_of(file).body
        if isinstance(node, ast.ClassDef)
    }

    def is_error(name: str) -> bool:
        known = getattr(builtins, name, None)
        if isinstance(known, type):
            return issubclass(known, Exception)
        return any(map(is_error, bases.get(name, ())))

    defined = [name for name in bases if name[0] != "_" and is_error(name)]
    made = Counter(
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for file in FILES
        for node in nodes_of(file)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
    )
    return Counter({name: made[name] for name in defined})


def documents() -> dict[str, int]:
    """The sizes of the documents, in bytes."""
    paths = [path for pattern in DOCUMENTS for path in sorted(ROOT.glob(pattern))]
    return {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in paths}


@dataclass(frozen=True, slots=True)
class Crossing:
    """The files that something goes through, and how many calls of Python it makes."""

    files: tuple[str, ...]
    calls: int


def crossing(action: Callable[[], object]) -> Crossing:
    """What an action goes through."""
    files: Counter[str] = Counter()
    inside = f"{ROOT.as_posix()}/"

    def called(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(inside):
            file = path.removeprefix(inside)
            if file.startswith(AREAS):
                files[file] += 1

    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(None)
    return Crossing(tuple(sorted(files)), files.total())


def crossings() -> Iterator[tuple[str, Crossing]]:
    """A first registration, a call that is warm, a small exploration."""
    from everyorder.harness import Scenario, explore, step
    from everyorder.runtime import Dispatcher, Library

    dispatcher = Dispatcher()
    library = Library("house", dispatcher=dispatcher)
    library.define("plus(int a, int b) -> int")
    library.define("minus(int a, int b) -> int")

    def kernel(a: int, b: int) -> int:
        return a + b

    library.impl("minus", kernel, "CompositeExplicitAutograd")
    plus = "plus", kernel, "CompositeExplicitAutograd"
    yield "a first impl", crossing(lambda: library.impl(*plus))
    handle = dispatcher.find_op("house::plus")
    assert handle is not None, "it was defined"
    for _ in range(WARMED):
        handle.call(1, 2)
    call = handle.call
    yield "a warm call", crossing(lambda: call(1, 2))

    def adds(registry: dict[str, int], name: str) -> Callable[[], object]:
        registry[name] = 1
        return lambda: registry.pop(name)

    scenario = Scenario(
        step("a", lambda registry: adds(registry, "a")),
        step("b", lambda registry: adds(registry, "b")),
        create=dict,
        observe=lambda registry: ", ".join(sorted(registry)),
    )
    explore(scenario)
    yield "an exploration", crossing(lambda: explore(scenario))


def measures() -> Iterator[tuple[str, object, str]]:
    """Each measure, its figure, and what it is to be."""
    runtime = [file for file in FILES if file.startswith("runtime/")]
    core = [file for file in runtime if not file.startswith(LATER)]
    yield "files of the product", len(FILES), "at most 330"
    yield "lines of the runtime, without script, futures and rpc", lines(core), "50,000"
    yield "statements of these", statements(core), ""
    yield "lines of the product", lines(FILES), ""
    yield "statements of the product", statements(FILES), ""
    long = [file for file in FILES if lines([file]) > 600]
    yield "files over 600 lines", len(long), "0"
    short = [file for file in FILES if lines([file]) < 60]
    yield "files below 60 lines", len(short), ""
    yield "circles", len(circles(import_graph())), "0"
    yield "circles, type checking included", len(circles(import_graph(typed=True))), "0"
    yield "files that name `sigmoid`", len(naming("sigmoid")), "at most 4"
    errors = error_classes()
    yield "classes of errors", len(errors), "about 80"
    yield "of these made nowhere", sum(not made for made in errors.values()), ""
    yield "of these made at one place", sum(made == 1 for made in errors.values()), ""
    for name, size in documents().items():
        target = "at most 15,000" if name == "ARCHITECTURE.md" else ""
        yield f"bytes of {name}", size, target
    for name, crossed in crossings():
        yield f"files crossed by {name}", len(crossed.files), ""
        yield f"calls of {name}", crossed.calls, ""


def main() -> None:
    """Print the measures."""
    for name, figure, target in measures():
        print(f"{name:54} {figure:>9,}  {target}")


if __name__ == "__main__":
    main()
