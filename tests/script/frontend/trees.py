"""Syntax trees as text: a row for each node, with its place."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from everyorder.runtime.errors.source import Source, Span


@dataclass(frozen=True, slots=True)
class Row:
    """A node of a syntax tree, as it is printed."""

    node: ast.AST
    depth: int
    field: str
    values: tuple[tuple[str, object], ...]
    span: Span | None

    @property
    def kind(self) -> str:
        """The class of the node."""
        return type(self.node).__name__

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        values = "".join(f" {name}={value!r}" for name, value in self.values)
        return f"{field}{self.kind}{values}"


def rows(tree: ast.AST, source: Source) -> Iterator[Row]:
    """The nodes of a tree, each before those in it, in the order of the fields."""
    stack: list[tuple[ast.AST, int, str]] = [(tree, 0, "")]
    while stack:
        node, depth, name = stack.pop()
        values = tuple(_values(node))
        yield Row(node, depth, name, values, _span(node, source))
        inner = [(each, depth + 1, field) for field, each in _inner(node)]
        stack += reversed(inner)


def tree_text(tree: ast.AST, source: Source) -> str:
    """The tree as text, one row for each node."""
    every = [*rows(tree, source)]
    places = [_place(each.span, source) for each in every]
    width = max(map(len, places)) + 2
    lines = [
        f"{place.ljust(width)}{'  ' * each.depth}{each}"
        for place, each in zip(places, every, strict=True)
    ]
    return "\n".join(lines) + "\n"


def _inner(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The nodes in a node, each with its field."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            if not isinstance(value, ast.expr_context):
                yield name, value
        elif isinstance(value, list):
            for index, each in enumerate(value):
                if isinstance(each, ast.AST):
                    yield f"{name}[{index}]", each


def _values(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What of a node is neither a node nor empty; of a constant None is something."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            plain = [each for each in value if not isinstance(each, ast.AST)]
            if plain:
                yield name, plain
        elif not isinstance(value, ast.AST) and (
            value is not None or (isinstance(node, ast.Constant) and name == "value")
        ):
            yield name, value


def _span(node: ast.AST, source: Source) -> Span | None:
    """The place of a node, or of what is in it."""
    if isinstance(node, ast.Module):
        return 0, len(source.text)
    if hasattr(node, "end_lineno"):
        return source.span(node)  # type: ignore[arg-type]  # it says where it is
    inner = [
        source.span(each)  # type: ignore[arg-type]  # as above
        for each in ast.walk(node)
        if hasattr(each, "end_lineno")
    ]
    if not inner:
        return None
    return min(start for start, _ in inner), max(end for _, end in inner)


def _place(span: Span | None, source: Source) -> str:
    if span is None:
        return "-"
    (line, column), (last, end) = source.place(span[0]), source.place(span[1])
    return f"{line}:{column}-{last}:{end}"
