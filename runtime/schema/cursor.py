"""A place in the tokens of a text: look, take, or say what belongs there.

True only here: how the parsers move, and how every syntax error comes about.
"""

from typing import NoReturn

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.tokenizer import KEYWORDS, KINDS, Token, tokenize


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
