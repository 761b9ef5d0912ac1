"""Text of schemas and graphs as tokens, each with its span.

What the words, numbers, strings and signs of the language look like; graphs have values
(`%x.1`) besides.

Rules:
- the kind of a sign or keyword is the text itself; all other kinds are in `KINDS`;
- blanks, comments (`#` to the end of the line) and line breaks inside brackets vanish;
  a line break outside of them is a token, because it ends a schema;
- every text becomes tokens or raises one `SchemaSyntaxError`.
"""

import re
from typing import Final, NamedTuple

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
