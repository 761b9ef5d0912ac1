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

from tests.tools.prose import measure, python_files

ROOT = Path(__file__).parent.parent
AREAS = ("runtime", "invariants", "harness")
# Modules of the package itself, which the areas share.
SHARED = ("everyorder/coded_error.py",)
FILES = sorted(
    [
        *SHARED,
        *(
            path.relative_to(ROOT).as_posix()
            for area in AREAS
            for path in (ROOT / area).rglob("*.py")
        ),
    ]
)
# What came after the others, and has no ceiling of its own.
LATER = ("runtime/script/", "runtime/futures/", "runtime/rpc/")
# Calls after which an operator has its call stub, and some more.
WARMED = 32
DOCUMENTS = (
    *("ARCHITECTURE.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("SECURITY.md", "docs/**/*.md"),
)


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
    """Return the file of a module of this project, or None for any other module."""
    path = f"{module.replace('.', '/')}.py"
    if path in SHARED:
        return path
    top, _, rest = module.partition(".")
    if top != "everyorder" or rest.partition(".")[0] not in AREAS:
        return None
    path = rest.replace(".", "/")
    if (ROOT / f"{path}.py").exists():
        return f"{path}.py"
    package = f"{path}/__init__.py"
    return package if (ROOT / package).exists() else None


def as_package(file: str) -> str:
    """Return the dotted name of the package that a file is in."""
    parts = Path("everyorder", file.removeprefix("everyorder/")).parent.parts
    return ".".join(parts)


@cache
def imports(file: str, *, typed: bool = False, strings: bool = True) -> frozenset[str]:
    """Return the files that a file imports, at its top or inside of a function.

    Args:
        file: a path below the root.
        typed: include imports that only a type checker sees.
        strings: include imports by string (see `string_imports`).
    """
    nodes = [n for n in nodes_of(file) if isinstance(n, ast.Import | ast.ImportFrom)]
    skipped = set() if typed else type_only(file)
    files = set(string_imports(file)) if strings else set()
    for node in nodes:
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


# Files that import by string, with the reason: all of them load a heavy area, or an
# optional one, when it is first used.
BY_STRING = {
    "harness/__init__.py": "the public names load when they are first used",
    "harness/cli/replay.py": "operators, which only scenarios of the runtime need",
    "harness/cli/worker.py": "remote calls, an optional extra",
    "harness/scenario/__init__.py": "steps of the dispatcher, which load the runtime",
    "harness/scenario/extensions.py": "custom operators, which load NumPy",
    "harness/tools/imports/__init__.py": "a child imports one of its files only",
    "runtime/__init__.py": "the public names load without NumPy",
    "runtime/cuda.py": "CUDA kernels, an optional extra",
    "runtime/jit/scripting.py": "archives and tracing, which few programs use",
    "runtime/library.py": "opcheck, which loads autograd",
    "runtime/operators/creation.py": "pinned memory of CUDA, an optional extra",
    "runtime/operators/declare/allocate_outputs.py": "tables of kernels, by backend",
    "runtime/operators/declare/fast_paths.py": "bodies of kernels, which load Numba",
    "runtime/operators/declare/saved_plans.py": "kernels of the CPU, which load Numba",
    "runtime/rpc/__init__.py": "the public names load without ZeroMQ",
    "runtime/rpc/api/rref.py": "the compiler, for references to compiled modules",
    "runtime/rpc/codec/callables.py": "operators, for calls by their names",
    "runtime/rpc/codec/restricted.py": "modules, which load autograd",
    "runtime/script/executor/node_kernels.py": "fusion, which loads Numba",
    "runtime/script/executor/run_function.py": "fusion, which loads Numba",
}

# Tables at the top of a package that list its modules by names relative to it.
LAZY_TABLES = ("_LAZY", "_LATER", "_LIGHT_MODULES", "_MODULES", "_PLACES")
# Calls that take the name of a module and import nothing.
NAMING_CALLS = ("ContextVar", "get", "getLogger", "register_plug_in", "startswith")
# Files whose texts name modules as data, with the reason.
NAMES_AS_DATA = {
    "harness/state/noise.py": "modules that are not followed",
    "harness/systems/state_reader.py": "modules that are not followed",
    "harness/tools/imports/order_processes.py": "the code of these is read, not run",
}


@cache
def string_imports(file: str) -> frozenset[str]:
    """Return the files that a file imports by a string, `load("everyorder...")` say.

    Every text that is the name of a module of this project counts, except in
    comparisons, as a key of `sys.modules`, as an argument of `NAMING_CALLS` and in
    `NAMES_AS_DATA`; so do names in `LAZY_TABLES`, and imports in the stub of a package
    whose names `lazy_loader` loads.
    """
    tree, package = tree_of(file), as_package(file)
    naming = {id(each) for node in nodes_of(file) for each in _only_named(node)}
    names = {
        node.value
        for node in nodes_of(file)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and file not in NAMES_AS_DATA
        and id(node) not in naming
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in LAZY_TABLES:
            names |= {
                f"{package}.{each.value}"
                for each in ast.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
    stub = ROOT / f"{file}i"
    if stub.exists():
        names |= {
            f"{package}.{node.module}"
            for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.level == 1
        }
    return frozenset(path for path in map(as_file, names) if path is not None)


def _only_named(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the operands of a node that may name a module without importing it."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            yield from node.args if name in NAMING_CALLS else ()
        case ast.Compare() | ast.JoinedStr():
            yield from ast.iter_child_nodes(node)
        case ast.Subscript(value=ast.Attribute(attr="modules")):
            yield node.slice


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the sets of nodes of which each reaches every other (Tarjan 1972)."""
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


def folder_graph(*, typed: bool = False) -> dict[str, frozenset[str]]:
    """Return which folders import which; a folder is the one that a file is in."""
    graph: dict[str, set[str]] = {}
    for file in FILES:
        folder = Path(file).parent.as_posix()
        targets = {Path(path).parent.as_posix() for path in imports(file, typed=typed)}
        graph.setdefault(folder, set()).update(targets - {folder})
    return {folder: frozenset(targets) for folder, targets in graph.items()}


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


# The methods by which a list, a dict, a set or a deque changes.
CHANGING = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop"),
    *("popitem", "popleft", "remove", "setdefault", "update"),
}


def foreign_changes(file: str) -> list[str]:
    """Return `line: target` where a file changes a variable of another module.

    A variable is a container with the name of a constant, changed by a method, an item
    or an operator, or an attribute of a module, changed or assigned.
    """
    return [
        f"{node.lineno}: {ast.unparse(target)}"
        for node, target in _changed(nodes_of(file))
        if _is_foreign(file, target)
    ]


def _changed(nodes: tuple[ast.AST, ...]) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=target, attr=name)):
                if name in CHANGING:
                    yield node, target
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for each in targets:
                    yield each, each.value if isinstance(each, ast.Subscript) else each
            case ast.AugAssign(target=each) | ast.AnnAssign(target=each):
                yield each, each.value if isinstance(each, ast.Subscript) else each


def _is_foreign(file: str, target: ast.expr) -> bool:
    match target:
        case ast.Name(id=name):
            return name in _imported_names(file) and name.isupper()
        case ast.Attribute(value=ast.Name(id=name)):
            return as_file(_imported_names(file).get(name, "")) is not None
    return False


@cache
def _imported_names(file: str) -> dict[str, str]:
    """Return what the names that a file imports from this project stand for."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes_of(file)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("everyorder")
        for alias in node.names
    }


def error_classes() -> Counter[str]:
    """Classes of errors of the runtime, and how many places make one of each.

    What errors hold (a text, a fault) is no error.
    """
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for file in FILES
        if file.startswith(("runtime/errors/", *SHARED))
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
    inside = f"{ROOT.as_posix()}/everyorder/"

    def called(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(inside):
            file = path.removeprefix(inside)
            if file.startswith(AREAS) or f"everyorder/{file}" in SHARED:
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
    yield "folders", len(folder_graph()), ""
    for typed in (False, True):
        with_types = ", type checking included" if typed else ""
        yield (
            f"circles of files{with_types}",
            len(circles(import_graph(typed=typed))),
            "0",
        )
        yield (
            f"circles of folders{with_types}",
            len(circles(folder_graph(typed=typed))),
            "0",
        )
    foreign = sum(len(foreign_changes(file)) for file in FILES)
    yield "changes of another module's variable", foreign, "0"
    by_string = [file for file in FILES if string_imports(file)]
    yield "files that import by string", len(by_string), f"at most {len(BY_STRING)}"
    classes = Counter(
        node.name
        for file in FILES
        for node in nodes_of(file)
        if isinstance(node, ast.ClassDef)
    )
    yield "class names used twice", sum(many > 1 for many in classes.values()), "0"
    prose = measure(python_files(*AREAS))
    yield "mannered constructions per 100,000 words", round(100 * prose.rate), "300"
    yield "bindings with forbidden names, per 100,000", round(1000 * prose.share), "300"
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
