r"""Expectations in the source: `expect="..."` of a scenario, rewritten in place.

    pair = Scenario(*steps("a", "b"), create=dict, observe=shown, expect=\"\"\"
        == {} ==
        state: nothing

        == {1} ==
        ...
    \"\"\")

The text has the sections of an expect file (`file_format`), without a header: the steps
are next to it. Its margin and empty lines around it do not count.

Rules:
- the call is found by its position, not by its text, and its literal is replaced as a
  whole; everything else in the file stays byte for byte;
- the margin, the kind of quotes, a raw prefix and a line break that is escaped after
  the opening quotes are kept; quotes of one line become triple quotes;
- a literal is rewritten only if it still has the text that was loaded;
- an argument that is not a literal, and one that two scenarios share with different
  texts, are refused.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from textwrap import dedent

from everyorder.harness.base.errors import FileError
from everyorder.harness.base.place import Place
from everyorder.harness.expectations.compare import Comparison
from everyorder.harness.expectations.document import Document
from everyorder.harness.expectations.file_format import parse_sections, sections

ARGUMENT = "expect"


@dataclass(frozen=True, slots=True)
class InlineEdit:
    """The new content of the literal of one scenario; `before` is the old text.

    `sharing` are other scenarios with the same literal, which are not accepted.
    """

    scenario: str
    place: Place
    before: str
    document: Document
    sharing: tuple[str, ...] = ()


def edit_of(comparison: Comparison, document: Document) -> InlineEdit | None:
    """Return the edit that accepts a document; None if it belongs into a file."""
    place, before = comparison.place, comparison.inline
    if place is None or before is None:
        return None
    return InlineEdit(document.scenario, place, before, document)


def with_sharing(
    edits: Iterable[InlineEdit], places: Mapping[str, Place]
) -> list[InlineEdit]:
    """Return the edits with the scenarios that share their literals.

    `places` has the place of each scenario that was compared with a literal.
    """
    edits = list(edits)
    accepted = {edit.scenario for edit in edits}
    return [
        replace(
            edit,
            sharing=tuple(
                scenario
                for scenario, place in sorted(places.items())
                if place == edit.place and scenario not in accepted
            ),
        )
        for edit in edits
    ]


def inline_text(document: Document) -> str:
    """Return the text of a document as an argument, without margin."""
    # The first line is empty, as before each section.
    return "\n".join(list(sections(document))[1:]) + "\n"


def plain(text: str) -> str:
    """Return an argument without its margin and without empty lines around it."""
    return dedent(text).strip("\n").rstrip() + "\n"


def expected_inline(text: str, found: Document) -> Document | None:
    """Return the expected document, with the header of the current one.

    None if the text is empty: nothing is expected yet.

    Raises:
        DamagedExpectFile: the text does not consist of sections.
    """
    if not text.strip():
        return None
    source = f"the text of {ARGUMENT}= in {found.scenario}"
    entries = parse_sections(
        plain(text), source, ordered=found.ordered, steps=len(found.steps)
    )
    return replace(found, entries=entries)


def rewritten(name: str, data: bytes, edits: Iterable[InlineEdit]) -> bytes:
    """Return the content of a file after these edits.

    Raises:
        FileError: an argument cannot be rewritten; `name` is that of the file.
    """
    try:
        tree = ast.parse(data)
        data.decode()
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except (SyntaxError, ValueError) as error:
        reason = f"the file cannot be parsed: {error}"
        raise _refusal(name, "a scenario", reason) from None
    if encoding != "utf-8":
        # The parser counts columns in another text than that of the file.
        reason = f"the file is in {encoding}, not in UTF-8 without a byte order mark"
        raise _refusal(name, "a scenario", reason)
    lines = data.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    spans: dict[tuple[int, int], tuple[InlineEdit, bytes]] = {}
    for edit in edits:
        if edit.sharing:
            reason = f"{edit.sharing[0]} has the same argument, and is not accepted"
            raise _refusal(name, edit.scenario, reason)
        node = _literal(tree, edit, name)
        assert node.end_lineno is not None, "the parser sets it"
        assert node.end_col_offset is not None, "the parser sets it"
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        margin = re.match(rb"[ \t]*", lines[node.lineno - 1])
        assert margin is not None, "it matches the empty text"
        literal = _written(data[start:end].decode(), edit.document, margin[0].decode())
        replaced = literal.replace("\n", _line_end(data)).encode()
        other = spans.setdefault((start, end), (edit, replaced))
        if other[1] != replaced:
            reason = f"{other[0].scenario} has the same argument, and another text"
            raise _refusal(name, edit.scenario, reason)
    for (start, end), (_, literal_bytes) in sorted(spans.items(), reverse=True):
        data = data[:start] + literal_bytes + data[end:]
    return data


def _literal(tree: ast.Module, edit: InlineEdit, name: str) -> ast.Constant:
    """Return the literal of an edit.

    Raises:
        FileError: it is not a literal, or not the one that was loaded.
    """
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_at(node, edit.place)
    ]
    values = [
        keyword.value
        for call in calls
        for keyword in call.keywords
        if keyword.arg == ARGUMENT
    ]
    if len(values) != 1:
        reason = f"line {edit.place.line} does not have one call with {ARGUMENT}="
        raise _refusal(name, edit.scenario, reason)
    [value] = values
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        kind = "an f-string" if isinstance(value, ast.JoinedStr) else "an expression"
        reason = f"line {value.lineno} has {kind}, not a text literal"
        raise _refusal(name, edit.scenario, reason)
    if value.value != edit.before:
        reason = f"line {value.lineno} has been changed since it was loaded"
        raise _refusal(name, edit.scenario, reason)
    return value


def _is_at(call: ast.Call, place: Place) -> bool:
    if place.column is None:
        return call.lineno == place.line
    found = call.lineno, call.end_lineno, call.col_offset, call.end_col_offset
    return found == (place.line, place.end_line, place.column, place.end_column)


def _refusal(name: str, scenario: str, reason: str) -> FileError:
    return FileError(
        code="CannotRewriteArgument", source=name, scenario=scenario, reason=reason
    )


# A prefix, the quotes, and a line break that is escaped.
_OPENING = re.compile(r"""([rRuU]?)("{3}|'{3}|"|')(\\(?=\r?\n))?""")


def _written(old: str, document: Document, line_margin: str) -> str:
    """Return the literal that replaces an old one."""
    opening = _OPENING.match(old)
    assert opening is not None, "a text literal begins with quotes"
    prefix, quotes, escaped = opening[1], opening[2], opening[3] or ""
    margin, last = line_margin, line_margin
    if len(quotes) == 3 and "\n" in old:
        margin, last = _margins(old.replace("\r\n", "\n"), line_margin)
    quotes = quotes[0] * 3
    text = inline_text(document)
    if prefix.lower() == "r" and quotes in text:
        prefix = ""
    if prefix.lower() != "r":
        text = text.replace("\\", "\\\\").replace(quotes, f"\\{quotes[0]}" * 3)
    lines = [f"{margin}{line}" if line else "" for line in text.split("\n")[:-1]]
    literal = "\n".join([f"{prefix}{quotes}{escaped}", *lines, f"{last}{quotes}"])
    assert plain(ast.literal_eval(literal)) == inline_text(document), "it is read back"
    return literal


def _margins(old: str, otherwise: str) -> tuple[str, str]:
    """Return the margins of the text and of the closing quotes of a block."""
    _, *lines = old.split("\n")
    filled = [line for line in lines[:-1] if line.strip()]
    closing = lines[-1][:-3]
    last = closing if not closing.strip() else otherwise
    if not filled:
        return last, last
    return filled[0][: len(filled[0]) - len(filled[0].lstrip())], last


def _line_end(data: bytes) -> str:
    return "\r\n" if b"\r\n" in data else "\n"
