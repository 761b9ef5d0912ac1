"""Text of schemas and graphs as tokens, each with its span.

What the words, numbers, strings and signs of the language look like; graphs have values
(`%x.1`) besides.

Rules:
- the kind of a sign or keyword is the text itself; all other kinds are in `KINDS`;
- blanks, comments (`#` to the end of the line) and line breaks inside brackets vanish;
  a line break outside of them is a token, because it ends a schema;
- every text becomes tokens or raises one `SchemaSyntaxError`.

A place in the tokens of a text: look, take, or say what belongs there.

True only here: how the parsers move, and how every syntax error comes about.
"""

import re
from typing import Final, NamedTuple, NoReturn

from runtime.errors.schema import SchemaSyntaxError

# Kind -> how an error calls it.
KINDS: Final = {
    "name": "a name",
    "number": "a number",
    "string": "a quoted text",
    "value": "a value of a graph",
    "newline": "the end of the line",
    "end": "the end of the text",
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


# What a name looks like.
NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"

# Alternatives are tried in order: a run that begins like a number and is none (`0x10`,
# `1_000`) is caught whole by `broken`, so that no part of it is taken for a number.
# Runs of digits are possessive: trying shorter ones takes time squared, in vain.
_TOKEN: Final = re.compile(
    rf"""
    (?P<blank> [ \t\r\f\v]+ | \#[^\n]* )
  | (?P<name> {NAME} )
  | (?P<sign> -> | :: | \.\.\. (?![.0-9]) )
  | (?P<number> (?: [0-9]++ (?: \.[0-9]*+ )? | \.[0-9]++ ) (?: [eE][+-]?[0-9]++ )?+ j?+
      (?![A-Za-z0-9_.]) )
  | (?P<broken> \.?[0-9][A-Za-z0-9_.]* )
  | (?P<mark> [()\[\],:.=?!|*+-] )
  | (?P<newline> \n )
  | (?P<string> \"\"\"(?: [^\\] | \\[\s\S] )*?\"\"\" | '''(?: [^\\] | \\[\s\S] )*?'''
      | "(?: [^"\\\n] | \\[\s\S] )*" | '(?: [^'\\\n] | \\[\s\S] )*' )
  | (?P<value> %[A-Za-z0-9_]++ (?: \.[A-Za-z0-9_]++ )*+ )
  | (?P<unclosed> ["'][^\n]* )
  | (?P<foreign> [\s\S] )
    """,
    re.VERBOSE,
)

# What is wrong with text that no token can be, and what to do about it.
_FAULTS: Final = {
    "broken": ("this is no number", "Write a decimal number, such as 16 or 1.5e-3."),
    "unclosed": ("this quoted text has no end", "Close it with the same quote."),
    "foreign": ("this character means nothing here", ""),
}
# How a bracket changes the depth; line breaks count only at depth 0.
_DEPTH: Final = {"(": 1, "[": 1, ")": -1, "]": -1}


def tokenize(source: str) -> list[Token]:
    """The tokens of `source`, closed by one of kind `end`.

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
        """The next token."""
        return self.tokens[self.index]

    @property
    def following(self) -> str:
        """The kind of the token after the next one."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)].kind

    def take(self) -> Token:
        """The next token, which is then read; the closing one is never passed."""
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
            SchemaSyntaxError: another kind stands there; `belongs` says what should.
        """
        if self.kind != kind:
            self.misplaced(belongs)
        return self.take()

    def word(self, belongs: str) -> str:
        """Read a name, or a keyword where only a name can stand; raises as `expect`."""
        if self.kind in KEYWORDS:
            return self.take().text
        return self.expect("name", belongs).text

    def symbol(self, belongs: str) -> str:
        """symbol := ident '::' word, the kind of a node; raises as `expect`."""
        namespace = self.expect("name", belongs).text
        self.expect("::", "`::` and the name in the namespace")
        return f"{namespace}::{self.word('the name in the namespace')}"

    def end_line(self) -> None:
        """Read the end of a line and empty lines after it, unless the text ends."""
        if self.kind != "end":
            self.expect("newline", "nothing more in this line")
        while self.accept("newline"):
            pass

    @property
    def remark(self) -> str:
        """The comment between the token read most recently and the next one."""
        between = self.source[self.last.end : self.token.start]
        return between.partition("#")[2].partition("\n")[0].strip()

    def misplaced(self, belongs: str) -> NoReturn:
        """Raise that the next token cannot stand here, and what belongs there."""
        token = self.token
        found = KINDS.get(token.kind, f"`{token.text}`")
        if token.kind in KEYWORDS:
            found = f"the keyword `{token.text}`"
        self.fail(f"{found} cannot stand here", token, f"Here belongs {belongs}.")

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
        """The token read most recently."""
        return self.tokens[max(self.index - 1, 0)]
