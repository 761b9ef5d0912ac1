"""Text of schemas and graphs as tokens, each with its span, and a cursor.

The words, numbers, strings and signs of the language; graphs also have values (`%x.1`).
A `Cursor` is the interface of the parsers: they look ahead, take a token, or report
what was expected, and every syntax error is raised here.

Rules:
- the kind of a sign or keyword is the text itself; all other kinds are in `KINDS`;
- blanks, comments (`#` to the end of the line) and line breaks inside brackets are
  dropped; a line break outside of them is a token, because it ends a schema;
- every text becomes tokens or raises one `SchemaSyntaxError`.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn, TypeVar

from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.schema.signature import ESCAPES

# Kind -> its name in errors.
KINDS: Final = {
    "name": "name",
    "number": "number",
    "string": "quoted text",
    "value": "value of a graph",
    "newline": "end of the line",
    "end": "end of the text",
}

# Words that are never names; source: the Python keywords the language reserves.
KEYWORDS: Final = frozenset(
    {
        *("if", "elif", "else", "for", "while", "in", "is", "not", "and", "or"),
        *("def", "class", "return", "import", "with", "as", "del", "global"),
        *("raise", "assert", "break", "continue", "pass"),
        *("True", "False", "None", "NoneType", "Ellipsis"),
    }
)


class Token(NamedTuple):
    """A piece of the source from `start` to `end`."""

    kind: str
    text: str
    start: int
    end: int


# The pattern of a name.
NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"

# Alternatives are tried in order: a malformed number (`0x10`, `1_000`) is matched as a
# whole by `broken`, so that no part of it is read as a number.
# Runs of digits are possessive: backtracking into them takes quadratic time, in vain.
# Groups are not: in early CPython 3.11 a possessive group that fails halfway does not
# backtrack correctly.
_TOKEN: Final = re.compile(
    rf"""
    (?P<blank> [ \t\r\f\v]+ | \#[^\n]* )
  | (?P<name> {NAME} )
  | (?P<sign> -> | :: | \.\.\. (?![.0-9]) )
  | (?P<number> (?: [0-9]++ (?: \.[0-9]*+ )? | \.[0-9]++ ) (?: [eE][+-]?[0-9]++ )? j?+
      (?![A-Za-z0-9_.]) )
  | (?P<broken> \.?[0-9][A-Za-z0-9_.]* )
  | (?P<mark> [()\[\],:.=?!|*+-] )
  | (?P<newline> \n )
  | (?P<string> \"\"\"(?: [^\\] | \\[\s\S] )*?\"\"\" | '''(?: [^\\] | \\[\s\S] )*?'''
      | "(?: [^"\\\n] | \\[\s\S] )*" | '(?: [^'\\\n] | \\[\s\S] )*' )
  | (?P<value> %[A-Za-z0-9_]++ (?: \.[A-Za-z0-9_]++ )* )
  | (?P<unclosed> ["'][^\n]* )
  | (?P<foreign> [\s\S] )
    """,
    re.VERBOSE,
)

# Group of malformed text -> the message and the hint of the error.
_FAULTS: Final = {
    "broken": ("invalid number", "Write a decimal number, such as 16 or 1.5e-3."),
    "unclosed": ("this quoted text has no end", "Close it with the same quote."),
    "foreign": ("this character means nothing here", ""),
}
# The letter after a backslash -> what both mean; a broken line is joined.
_ESCAPED: Final = {text[1]: char for char, text in ESCAPES.items()} | {"\n": ""}
# How a bracket changes the depth; line breaks count only at depth 0.
_DEPTH: Final = {"(": 1, "[": 1, ")": -1, "]": -1}


def tokenize(source: str) -> list[Token]:
    """Return the tokens of `source`, closed by one of kind `end`.

    Raises:
        SchemaSyntaxError: a character, number or quoted text is malformed.
    """
    tokens: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(source):
        group = match.lastgroup
        if group == "blank":
            continue
        text = match.group()
        kind = text
        if group == "name":
            if text not in KEYWORDS:
                kind = group
        elif group == "mark":
            depth += _DEPTH.get(text, 0)
        elif group == "newline":
            if depth > 0 or not tokens:
                continue
            kind = group
        elif group == "number" or group == "string" or group == "value":
            kind = group
        elif group in _FAULTS:
            message, hint = _FAULTS[group]
            span = match.span()
            raise SchemaSyntaxError(
                message=message, source=source, span=span, hint=hint
            )
        tokens.append(Token(kind, text, match.start(), match.end()))
    tokens.append(Token("end", "", len(source), len(source)))
    return tokens


T = TypeVar("T")


class Cursor:
    """The tokens of one source and the index of the next one to read."""

    __slots__ = ("index", "kind", "source", "tokens")

    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.index = 0
        self.kind = self.tokens[0].kind

    @property
    def token(self) -> Token:
        """Return the next token."""
        return self.tokens[self.index]

    @property
    def following(self) -> str:
        """Return the kind of the token after the next one."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)].kind

    def take(self) -> Token:
        """Read and return the next token; the closing one is never passed."""
        token = self.tokens[self.index]
        if token.kind != "end":
            self.index += 1
            self.kind = self.tokens[self.index].kind
        return token

    def accept(self, kind: str) -> bool:
        """Read the next token if it is of this kind."""
        if self.kind != kind:
            return False
        self.take()
        return True

    def expect(self, kind: str, belongs: str) -> Token:
        """Read a token of this kind.

        Raises:
            SchemaSyntaxError: the next token is another; `belongs` is the expected one.
        """
        if self.kind != kind:
            self.misplaced(belongs)
        return self.take()

    def items(
        self, brackets: str, read: Callable[[], T], noun: str, belongs: str
    ) -> list[T]:
        """items := opening [item (',' item)*] closing; return the results of `read`.

        Raises as `expect`; `belongs` is the expected text if no bracket opens.
        """
        opening, closing = brackets[0], brackets[1]
        self.expect(opening, belongs)
        items: list[T] = []
        if self.accept(closing):
            return items
        items.append(read())
        while self.accept(","):
            items.append(read())
        self.expect(closing, f"`,` and another {noun}, or `{closing}`")
        return items

    def word(self, belongs: str) -> str:
        """Read a name, or a keyword where only a name is valid; raises as `expect`."""
        if self.kind in KEYWORDS:
            return self.take().text
        return self.expect("name", belongs).text

    def symbol(self, belongs: str) -> str:
        """symbol := ident '::' word, the kind of a node; raises as `expect`."""
        namespace = self.expect("name", belongs).text
        self.expect("::", "`::` and the name in the namespace")
        return f"{namespace}::{self.word('the name in the namespace')}"

    def string(self, token: Token) -> str:
        """Return the text between the quotes of a token, its escapes resolved."""
        text = token.text
        quote = text[:3] if text[:3] in ('"""', "'''") else text[0]
        body, offset = text[len(quote) : -len(quote)], token.start + len(quote)
        parts: list[str] = []
        index = 0
        while (at := body.find("\\", index)) >= 0:
            mark, octal = body[at + 1], body[at + 1 : at + 4]
            parts.append(body[index:at])
            if mark in _ESCAPED:
                parts.append(_ESCAPED[mark])
                index = at + 2
            elif len(octal) == 3 and set(octal) <= set("01234567"):
                parts.append(chr(int(octal, 8)))
                index = at + 4
            else:
                place = Token("string", "", offset + at, offset + at + 2)
                hint = "Escape with \\n, \\t, \\\\, a quote, or three octal digits."
                self.fail("this escape means nothing", place, hint)
        return "".join((*parts, body[index:]))

    def end_line(self) -> None:
        """Read the end of a line and empty lines after it, unless the text ends."""
        if self.kind != "end":
            self.expect("newline", "nothing more in this line")
        while self.accept("newline"):
            pass

    @property
    def remark(self) -> str:
        """Return the comment between the token read last and the next one."""
        between = self.source[self.last.end : self.token.start]
        return between.partition("#")[2].partition("\n")[0].strip()

    def misplaced(self, belongs: str) -> NoReturn:
        """Raise that the next token is invalid here; `belongs` was expected."""
        token = self.token
        subject = KINDS.get(token.kind, f"`{token.text}`")
        if token.kind in KEYWORDS:
            subject = f"keyword `{token.text}`"
        self.fail(f"unexpected {subject}", token, f"Expected {belongs}.")

    def fail(
        self, message: str, start: Token, hint: str = "", *, upto: Token | None = None
    ) -> NoReturn:
        """Raise `message` over the span from `start` through `upto`."""
        span = (start.start, (upto or start).end)
        raise SchemaSyntaxError(
            message=message, source=self.source, span=span, hint=hint
        )

    @property
    def last(self) -> Token:
        """Return the token read most recently."""
        return self.tokens[max(self.index - 1, 0)]
