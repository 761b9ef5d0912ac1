"""The language: one row for each class of Python's syntax trees, accepted or refused.

    CONSTRUCTS, INNER     the rows; forms that are refused: `restrictions`
    check, check_depth    refuse a program with constructs that are not supported
    reference, sections   the reference manual (`docs/language.md`), printed from
                          the same tables; plug-ins add theirs by `register_section`

Rules:
- a class that occurs only inside of a refused construct is in `INNER`;
- a class that no table lists is refused: Python's next version may add it;
- the first refused construct, in the order of the text, is reported;
- annotations, decorators and defaults are not checked: Python evaluated them when the
  function was defined, and they are not compiled;
- programs are nested no deeper than `DEEPEST`, so that walks of them may recurse, and
  loops no deeper than Python allows;
- the check does not recurse: a tree of any depth is refused with a proper error.

To accept a construct: change its row here, implement it in the emission, and run
`python -m everyorder.runtime.script.frontend MODULE ... > docs/language.md`.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.errors.script import NotSupported
from everyorder.runtime.errors.source import Source, Span
from everyorder.runtime.script.frontend.restrictions import (
    RESTRICTIONS,
    Construct,
    Restriction,
)

# Reasons that several rows share.
_HIDDEN = "it hides control flow that a graph does not have"
_LATE = "its elements would be computed later, when what they use may have changed"
_IMPORT = "names are looked up once, when the program is compiled"
_OUTSIDE = "a program has no variables outside of its functions"
_ASYNC = "a program runs on one thread from its beginning to its end"
_ASYNC_HINT = "Use `fork` and `wait`."
_SET = "there is no type of sets"
_SET_HINT = "Use a dictionary whose values are True, or a list."

CONSTRUCTS: dict[str, tuple[Construct, ...]] = {
    "Definitions": (
        Construct(
            "FunctionDef", "a function", "def f(x, /, n: int = 1, *, y):\n    return x"
        ),
        Construct("ClassDef", "a class", "class C:\n    n: int\n    k = 1"),
        Construct("arguments", "parameters", "def f(x, n: int = 3):\n    return x"),
        Construct("arg", "a parameter", "def f(x: 'list[int]'):\n    return x"),
        Construct(
            "Module", "a text of functions and classes", "def f():\n    return 1"
        ),
        Construct(
            "AsyncFunctionDef",
            "an `async` function",
            "async def f(x):\n    return x",
            _ASYNC,
            _ASYNC_HINT,
        ),
        Construct(
            "Lambda",
            "a lambda",
            "g = lambda a: a + 1",
            "its parameters have no types",
            "Write a function with `def`.",
        ),
        Construct(
            "Import",
            "an import",
            "import math",
            _IMPORT,
            "Import at the top of the file.",
        ),
        Construct(
            "ImportFrom",
            "an import",
            "from math import pi",
            _IMPORT,
            "Import at the top of the file.",
        ),
        Construct(
            "Global",
            "`global`",
            "global n\nn = 1",
            _OUTSIDE,
            "Return the value, or keep it in an attribute.",
        ),
    ),
    "Statements": (
        Construct(
            "Expr", "an expression as a statement", '"""Words."""\nprint(x)\n...'
        ),
        Construct(
            "Assign", "an assignment", "y = z = x\n(a, b), *c = xs\nx.y = d[0] = y"
        ),
        Construct("AnnAssign", "an annotated assignment", "n: int = 3\nx.y: int = 4"),
        Construct(
            "AugAssign", "an assignment in place", "x += 1\nxs[0] *= 2\nd.n -= 3"
        ),
        Construct("Return", "`return`", "return x, d"),
        Construct(
            "If", "`if`", "if x:\n    x = d\nelif d:\n    pass\nelse:\n    d = x"
        ),
        Construct("While", "`while`", "while x:\n    x = d"),
        Construct("For", "`for`", "for i, (a, b) in xs:\n    print(i)"),
        Construct("Break", "`break`", "for i in xs:\n    break"),
        Construct("Continue", "`continue`", "for i in xs:\n    continue"),
        Construct("Pass", "`pass`", "pass"),
        Construct("Assert", "`assert`", 'assert x, "words"'),
        Construct("Raise", "`raise`", 'raise ValueError("words")'),
        Construct("Delete", "`del`", "del d[0], x"),
        Construct("With", "`with`", "with x as y, d:\n    print(y)"),
        Construct("withitem", "what `with` enters", "with x as y:\n    print(y)"),
        Construct(
            "Try",
            "`try`",
            "try:\n    x = d\nexcept ValueError as e:\n    pass",
            _HIDDEN,
            "Ask beforehand whether it would fail, with `if`.",
        ),
        Construct(
            "TryStar",
            "`try` with `except*`",
            "try:\n    x = d\nexcept* ValueError:\n    pass",
            _HIDDEN,
            "Ask beforehand whether it would fail, with `if`.",
        ),
        Construct(
            "Match",
            "`match`",
            "match x:\n    case 1:\n        pass",
            "patterns look at values, and types are decided before",
            "Compare with `if` and `elif`.",
        ),
        Construct(
            "Nonlocal",
            "`nonlocal`",
            "def g():\n    y = 1\n    def f():\n        nonlocal y\n    f()",
            _OUTSIDE,
            "Return the value, or keep it in an attribute.",
        ),
    ),
    "Expressions": (
        Construct(
            "Constant",
            "a constant",
            "a = 1, -9223372036854775808, 2.5, 3j\nb = True, None\nc = 'a' 'b'",
        ),
        Construct("JoinedStr", "an f-string", "y = f'{x} and {d[0]}'"),
        Construct("FormattedValue", "a value in an f-string", "y = f'{x}{{'"),
        Construct("Name", "a name", "y = x"),
        Construct("Attribute", "an attribute", "y = x.shape"),
        Construct("Subscript", "an element", "y = xs[0], x[..., None]"),
        Construct("Slice", "a slice", "y = xs[1:], x[:, ::2, 1:2:3]"),
        Construct("Call", "a call", "y = print(x, *xs, sep=d)"),
        Construct("keyword", "an argument by name", "y = print(x, sep=d)"),
        Construct("Starred", "elements in place", "y = (*xs, x), [*xs]\na, *b = y"),
        Construct("Tuple", "a tuple", "y = x, (d,), ()"),
        Construct("List", "a list", "y = [x, d]"),
        Construct("Dict", "a dictionary", "y = {1: x, 2: d}"),
        Construct("ListComp", "a list comprehension", "y = [a + b for a, b in xs]"),
        Construct("DictComp", "a dict comprehension", "y = {a: b for a, b in xs}"),
        Construct(
            "comprehension", "`for` in a comprehension", "y = [a for a in xs if a]"
        ),
        Construct("IfExp", "a choice", "y = x if d else xs"),
        Construct("BoolOp", "`and`, `or`", "y = x and d or xs"),
        Construct("BinOp", "an operation on two", "y = x + d * xs"),
        Construct("UnaryOp", "an operation on one", "y = -x"),
        Construct("Compare", "a comparison", "y = 0 < x <= d != xs"),
        Construct(
            "NamedExpr",
            "an assignment in an expression",
            "y = (z := x) + z",
            "what an expression assigns may be left out by the rest of it",
            "Assign in a statement before.",
        ),
        Construct("Set", "a set", "y = {x, d}", _SET, _SET_HINT),
        Construct(
            "SetComp", "a set comprehension", "y = {a for a in xs}", _SET, _SET_HINT
        ),
        Construct(
            "GeneratorExp",
            "a generator expression",
            "y = any(a for a in xs)",
            _LATE,
            "Write a list comprehension: put it into brackets.",
        ),
        Construct(
            "Yield",
            "`yield`",
            "yield x",
            "a function runs from its beginning to its end",
            "Put the values into a list, and return that.",
        ),
        Construct(
            "YieldFrom",
            "`yield from`",
            "yield from xs",
            "a function runs from its beginning to its end",
            "Put the values into a list, and return that.",
        ),
    ),
    "Operators": (
        Construct("Add", "`+`", "y = x + d"),
        Construct("Sub", "`-`", "y = x - d"),
        Construct("Mult", "`*`", "y = x * d"),
        Construct("MatMult", "`@`", "y = x @ d"),
        Construct("Div", "`/`", "y = x / d"),
        Construct("FloorDiv", "`//`", "y = x // d"),
        Construct("Mod", "`%`", "y = x % d"),
        Construct("Pow", "`**`", "y = x ** d"),
        Construct("LShift", "`<<`", "y = x << d"),
        Construct("RShift", "`>>`", "y = x >> d"),
        Construct("BitAnd", "`&`", "y = x & d"),
        Construct("BitOr", "`|`", "y = x | d"),
        Construct("BitXor", "`^`", "y = x ^ d"),
        Construct("USub", "`-` of one", "y = -x"),
        Construct("Invert", "`~`", "y = ~x"),
        Construct("Not", "`not`", "y = not x"),
        Construct("And", "`and`", "y = x and d"),
        Construct("Or", "`or`", "y = x or d"),
        Construct(
            "UAdd",
            "`+` of one",
            "y = +x",
            "it changes nothing but the type of a bool",
            "Leave it out; of a bool, write `int(x)`.",
        ),
    ),
    "Comparisons": (
        Construct("Eq", "`==`", "y = x == d"),
        Construct("NotEq", "`!=`", "y = x != d"),
        Construct("Lt", "`<`", "y = x < d"),
        Construct("LtE", "`<=`", "y = x <= d"),
        Construct("Gt", "`>`", "y = x > d"),
        Construct("GtE", "`>=`", "y = x >= d"),
        Construct("Is", "`is`", "y = x is None"),
        Construct("IsNot", "`is not`", "y = x is not None"),
        Construct("In", "`in`", "y = x in xs"),
        Construct("NotIn", "`not in`", "y = x not in xs"),
    ),
}

# Classes of syntax trees that occur only inside of a refused construct.
INNER: dict[str, str] = {
    "ExceptHandler": "Try",
    "alias": "Import",
    "match_case": "Match",
    "MatchValue": "Match",
    "MatchSingleton": "Match",
    "MatchSequence": "Match",
    "MatchMapping": "Match",
    "MatchClass": "Match",
    "MatchStar": "Match",
    "MatchAs": "Match",
    "MatchOr": "Match",
    "AsyncFor": "AsyncFunctionDef",
    "AsyncWith": "AsyncFunctionDef",
    "Await": "AsyncFunctionDef",
}

# Nesting of statements and expressions: at four frames a level, walks stay within the
# thousand frames of Python's default, with some left for the callers.
DEEPEST = 150
# Nesting of loops and `with` blocks; source: CPython's CO_MAXBLOCKS.
DEEPEST_BLOCKS = 20
_BLOCKS = (ast.For, ast.While, ast.With)
# Parts of nodes that are not compiled, and classes that only mark the use of a name.
_ASIDE = frozenset({"annotation", "returns", "decorator_list", "defaults"})
_ASIDE_NODES = (ast.expr_context, ast.type_ignore)

_ROWS: dict[str, Construct] = {
    row.node: row for group in CONSTRUCTS.values() for row in group
}
_FORMS: dict[str, tuple[Restriction, ...]] = {
    name: tuple(each for each in RESTRICTIONS if each.construct.node == name)
    for name in dict.fromkeys(each.construct.node for each in RESTRICTIONS)
}


def construct_of(node: ast.AST) -> Construct:
    """Return the row for a node; a class without a row is refused by its name."""
    name = type(node).__name__
    row = _ROWS.get(INNER.get(name, name))
    if row is not None:
        return row
    reason = "this language does not know it"
    return Construct(name, f"`{name}`", "", reason, "Write it in other words.")


def check(tree: ast.AST, source: Source, *, is_saved: bool = False) -> None:
    """Refuse a function, a class or a text that has an unsupported construct.

    The depth was checked when the source was read. `is_saved` is True if the compiler
    has written the text (see `restrictions`).

    Raises:
        NotSupported: the program has an unsupported construct; the error shows the
        first in the text.
    """
    for node, around in _walk(tree):
        row = construct_of(node)
        if not row.is_accepted:
            raise refusal(row, source, place_of(node, source, around))
        for each in _FORMS.get(row.node, ()):
            marked = None if is_saved and each.is_saved else each.find(node, around)
            if marked is not None:
                span = place_of(marked, source, (*around, node))
                raise refusal(each.construct, source, span)


def refusal(row: Construct, source: Source, span: Span) -> NotSupported:
    """Return the error for a refused construct at a place."""
    return NotSupported(
        source=source,
        span=span,
        construct=row.name,
        reason=row.reason,
        hint=row.hint,
    )


def check_depth(tree: ast.AST, source: Source) -> None:
    """Refuse a program that is nested too deeply for recursive walks.

    Raises:
        NotSupported: it is nested too deeply.
    """
    stack: list[tuple[ast.AST, int, int]] = [(tree, 0, 0)]
    while stack:
        node, depth, blocks = stack.pop()
        depth += isinstance(node, ast.stmt | ast.expr)
        blocks += isinstance(node, _BLOCKS)
        if depth > DEEPEST or blocks > DEEPEST_BLOCKS:
            raise refusal(_TOO_DEEP, source, place_of(node, source))
        inner = [(each, depth, blocks) for each in ast.iter_child_nodes(node)]
        stack += reversed(inner)


def too_deep(source: Source) -> NotSupported:
    """Return the error for a text that is nested too deeply for Python's parser."""
    return refusal(_TOO_DEEP, source, (0, 0))


_TOO_DEEP = Construct(
    "",
    "such deep nesting",
    "",
    f"parts are nested up to {DEEPEST} deep, loops up to {DEEPEST_BLOCKS}",
    "Give a part a name of its own, or move it to a function.",
)


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Yield the nodes in the order of the text, each with its enclosing nodes.

    The list of enclosing nodes is one object that changes during the iteration.
    """
    around: list[ast.AST] = []
    stack = [_parts(tree)]
    yield tree, around
    around.append(tree)
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            around.pop()
            continue
        yield node, around
        around.append(node)
        stack.append(_parts(node))


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the compiled child nodes of a node."""
    for field, value in ast.iter_fields(node):
        if field in _ASIDE:
            continue
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.AST) and not isinstance(each, _ASIDE_NODES):
                yield each


def place_of(node: ast.AST, source: Source, around: Sequence[ast.AST] = ()) -> Span:
    """Return the place of a node, or of the innermost enclosing node that has one.

    For a statement with nested statements, that is the first line.
    """
    for each in (node, *reversed(around)):
        if isinstance(each, ast.stmt | ast.expr | ast.arg | ast.keyword):
            start, end = source.span(each)
            if isinstance(each, ast.stmt) and {"body", "cases"} & {*each._fields}:
                line = source.text.find("\n", start)
                end = end if line < 0 else min(end, line)
            return start, end
    return 0, 0


def reference() -> str:
    """Return the reference of the language, as markdown."""
    lines = [
        "# The language of programs",
        "",
        "Programs are functions, classes and modules of Python. This page is printed",
        "from the tables by which they are checked:",
        "`python -m tests.tools.language [MODULE ...]`; what the modules add to",
        "programs when they are imported stands at the end.",
        "What an accepted construct means is what it means in Python; where the types",
        "of values do not allow that, the program is refused with the place.",
        "",
        "In the examples `x`, `xs` and `d` are parameters.",
        f"Parts of a program are nested up to {DEEPEST} deep, loops and `with` up to "
        f"{DEEPEST_BLOCKS}.",
    ]
    for title, rows in CONSTRUCTS.items():
        lines += ["", f"## {title}", ""]
        lines += _table(
            ("accepted", "for example"),
            [(row.name, _code(row)) for row in rows if row.is_accepted],
        )
        refused = [row for row in rows if not row.is_accepted]
        kinds = {row.node for row in rows}
        refused += [
            each.construct for each in RESTRICTIONS if each.construct.node in kinds
        ]
        if refused:
            lines.append("")
            lines += _table(
                ("refused", "for example", "because", "instead"),
                [(row.name, _code(row), row.reason, row.hint) for row in refused],
            )
    return "\n".join(lines) + "\n"


class Section(NamedTuple):
    """A section of a plug-in: tables, each with a head and rows."""

    title: str
    words: str
    tables: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, ...]]]]


# Sections of plug-ins by their titles.
_SECTIONS: Registry[str, Section] = Registry("sections", order=str)


def register_section(section: Section) -> RegistryHandle:
    """Let the reference have a section of a plug-in."""
    return _SECTIONS.register(section.title, section, stacklevel=2)


def sections() -> str:
    """Return the sections of plug-ins, as markdown; they follow the reference."""
    lines: list[str] = []
    for title, words, tables in _SECTIONS.rows.values():
        lines += ["", f"## {title}", "", words]
        for head, rows in tables:
            lines += ["", *_table(head, [*rows])]
    return "".join(f"{each}\n" for each in lines)


def _code(row: Construct) -> str:
    """Return the example as markdown that keeps the indentation of lines."""
    lines = []
    for line in row.example.split("\n"):
        margin = len(line) - len(line.lstrip())
        lines.append(f"`{_BLANK * margin}{line[margin:]}`")
    return "<br>".join(lines)


# A blank that markdown does not drop.
_BLANK = "\u00a0"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    cells = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return [f"| {' | '.join(line)} |" for line in cells]
