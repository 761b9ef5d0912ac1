"""The language: what a program may have is checked, and told, by the same tables.

A program is held against `runtime.script.frontend.constructs` and
`runtime.script.frontend.restrictions`, and may be nested so deeply only; the reference
that people read is printed from the same tables (`docs/language.md`), with what
plug-ins say of theirs (`register_section`) behind.

Rules:
- the first thing that is refused, in the order of the text, is told;
- annotations, decorators and defaults are no part of what is compiled: what they are
  has been decided when the function was defined;
- programs are nested no deeper than `DEEPEST`, so that whoever walks them may recurse,
  and loops no deeper than Python's own;
- nothing here recurses: a tree of any depth is refused by name.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from runtime.errors.script import NotSupported
from runtime.errors.source import Source, Span
from runtime.script.frontend.constructs import CONSTRUCTS, INNER, Construct
from runtime.script.frontend.restrictions import RESTRICTIONS, Restriction

# Statements and expressions inside of each other: at four frames a level, walks stay
# within the thousand frames that Python gives, with some for who calls.
DEEPEST = 150
# Loops and `with` blocks inside of each other; source: CPython's CO_MAXBLOCKS.
DEEPEST_BLOCKS = 20
_BLOCKS = (ast.For, ast.While, ast.With)
# Parts of nodes that are not compiled; and classes that are how, not what.
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
    """The row for a node; a class that has none is refused by its own name."""
    name = type(node).__name__
    row = _ROWS.get(INNER.get(name, name))
    if row is not None:
        return row
    reason = "this language does not know it"
    return Construct(name, f"`{name}`", "", reason, "Write it in other words.")


def check(tree: ast.AST, source: Source, *, is_saved: bool = False) -> None:
    """Look whether a function, a class or a text has nothing that is refused.

    How deep it is has been looked at when it was read.  `is_saved`: the compiler has
    written the text (see `restrictions`).

    Raises:
        NotSupported: it has; the first in the text is told.
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
    """The error that tells of a refused construct at a place."""
    return NotSupported(
        source=source,
        span=span,
        construct=row.name,
        reason=row.reason,
        hint=row.hint,
    )


def check_depth(tree: ast.AST, source: Source) -> None:
    """Look whether a program is nested so that it can be walked.

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
    """The error about a text that Python's parser cannot read, so deep is it."""
    return refusal(_TOO_DEEP, source, (0, 0))


_TOO_DEEP = Construct(
    "",
    "such deep nesting",
    "",
    f"parts are nested up to {DEEPEST} deep, loops up to {DEEPEST_BLOCKS}",
    "Give a part a name of its own, or move it to a function.",
)


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """The nodes in the order of the text, each with those around it.

    The list is the same one for all.
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
    """The nodes in a node that are compiled."""
    for field, value in ast.iter_fields(node):
        if field in _ASIDE:
            continue
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, ast.AST) and not isinstance(each, _ASIDE_NODES):
                yield each


def place_of(node: ast.AST, source: Source, around: Sequence[ast.AST] = ()) -> Span:
    """The place of a node, or of the innermost around it that has one.

    Of a statement with others inside it, that is the first line.
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
    """The reference of the language, as markdown."""
    lines = [
        "# The language of programs",
        "",
        "Programs are functions, classes and modules of Python. This page is printed",
        "from the tables by which they are checked:",
        "`python -m runtime.script.frontend [MODULE ...] > docs/language.md`; what the",
        "modules add to programs when they are imported stands at the end.",
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
    """What a plug-in says of what it adds: tables, each a head and rows."""

    title: str
    words: str
    tables: Sequence[tuple[tuple[str, ...], Sequence[tuple[str, ...]]]]


# Of plug-ins, in the order in which they came.
_SECTIONS: list[Section] = []


def register_section(section: Section) -> Callable[[], None]:
    """Let the reference have a section; what comes back takes it out again."""
    _SECTIONS.append(section)

    def remove() -> None:
        if section in _SECTIONS:
            _SECTIONS.remove(section)

    return remove


def sections() -> str:
    """What plug-ins have added to the reference, as markdown; it stands behind it."""
    lines: list[str] = []
    for title, words, tables in sorted(_SECTIONS):
        lines += ["", f"## {title}", "", words]
        for head, rows in tables:
            lines += ["", *_table(head, [*rows])]
    return "".join(f"{each}\n" for each in lines)


def _code(row: Construct) -> str:
    """The example; blanks at the beginning of a line stay."""
    lines = []
    for line in row.example.split("\n"):
        margin = len(line) - len(line.lstrip())
        lines.append(f"`{_BLANK * margin}{line[margin:]}`")
    return "<br>".join(lines)


# A blank that a page does not leave out.
_BLANK = "\u00a0"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    cells = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return [f"| {' | '.join(line)} |" for line in cells]
