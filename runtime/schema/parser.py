"""Schema text to a `Schema`.

What a whole schema is, and what must hold between its arguments.

Rules:
- total: every text gives a schema, a name, or one `SchemaSyntaxError`;
- what is parsed prints as text that parses to an equal value;
- results are kept by their text; they are values, so sharing them is safe.

The words are made by `tokenizer`, types are read by `type_parser`, defaults by
`default_parser`; each function here is one line of the grammar.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.argument import NO_DEFAULT, Argument
from runtime.schema.cursor import Cursor
from runtime.schema.declaration import Namespace
from runtime.schema.default_parser import DefaultParser
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema
from runtime.schema.tokenizer import KEYWORDS, NAME, Token
from runtime.schema.type_parser import TypeParser
from runtime.schema.types import Type

# Three times what the library `core` asks for, a schema and a name of each operator:
# what is defined again is met soon, and programs that make names up fill no memory.
REMEMBERED = 2048
# The usual form of a name, as `_Parser.name` reads it; only others need a parser.
_NAME = re.compile(rf"(?:({NAME})::)?({NAME})(?:\.({NAME}))?")


def parse_schema(
    text: str, *, type_variables: bool = True, namespace: Namespace | None = None
) -> Schema:
    """The schema that `text` writes.

    With `type_variables=False`, as for definitions, an unknown lower-case type is an
    error instead of a variable.  With a namespace it may have the types of programs.

    Raises:
        SchemaSyntaxError: `text` is not a schema, or only a name.
    """
    parse: Callable[..., Schema | OperatorName] = parse_schema_or_name
    if namespace is not None:
        # What a name means in it changes: this is not remembered.
        parse = parse_schema_or_name.__wrapped__
    parsed = parse(text, type_variables=type_variables, namespace=namespace)
    if isinstance(parsed, OperatorName):
        raise SchemaSyntaxError(
            message="this is only the name of an operator",
            source=text,
            span=_extent(text),
            hint="A schema goes on with its arguments and results: (...) -> ...",
        )
    return parsed


def parse_type(
    text: str, *, type_variables: bool = True, namespace: Namespace | None = None
) -> Type:
    """The type that `text` writes, without annotations; else as `parse_schema`.

    Raises:
        SchemaSyntaxError: `text` is not a type.
    """
    try:
        return _Parser(text, type_variables, namespace).only_type()
    except SchemaSyntaxError as error:
        raise error.with_traceback(None) from None


@lru_cache(maxsize=REMEMBERED)
def parse_name(text: str) -> OperatorName:
    """The operator name that `text` writes.

    Raises:
        SchemaSyntaxError: `text` is not a name, or a whole schema.
    """
    usual = _NAME.fullmatch(text)
    if usual is not None and KEYWORDS.isdisjoint(usual.groups()):
        overload = usual[3] or ""
        if not _is_reserved(overload):
            return OperatorName(text[: usual.end(2)], overload)
    parsed = parse_schema_or_name(text)
    if isinstance(parsed, Schema):
        raise SchemaSyntaxError(
            message="this is a whole schema",
            source=text,
            span=_extent(text),
            hint=f"Where a name is asked for, write {parsed.name}.",
        )
    return parsed


def _is_reserved(overload: str) -> bool:
    """Whether no overload can have that name."""
    return overload == "default" or overload.startswith("__")


def _extent(text: str) -> tuple[int, int]:
    """The span of `text` without the blanks around it."""
    return len(text) - len(text.lstrip()), len(text.rstrip())


@lru_cache(maxsize=REMEMBERED)
def parse_schema_or_name(
    text: str, *, type_variables: bool = True, namespace: Namespace | None = None
) -> Schema | OperatorName:
    """The schema or the bare name that `text` writes.

    Raises:
        SchemaSyntaxError: `text` is neither.
    """
    try:
        return _Parser(text, type_variables, namespace).declaration()
    except SchemaSyntaxError as error:
        # The frames of the parser say nothing to whoever wrote the text.
        raise error.with_traceback(None) from None


class _Parser:
    """One run over one text."""

    __slots__ = ("cursor", "defaults", "types")

    def __init__(
        self, text: str, type_variables: bool, namespace: Namespace | None = None
    ) -> None:
        self.cursor = Cursor(text)
        self.types = TypeParser(self.cursor, type_variables, namespace)
        self.defaults = DefaultParser(self.cursor)

    def declaration(self) -> Schema | OperatorName:
        """decl := name ['(' args ')' '->' returns] [newline] eof."""
        cursor = self.cursor
        name = self.name()
        result: Schema | OperatorName = name
        if cursor.kind == "(":
            arguments, is_vararg = self.arguments()
            cursor.expect("->", "`->` and the results")
            returns, is_varret = self.returns()
            result = Schema(name, arguments, returns, is_vararg, is_varret)
        while cursor.accept("newline"):
            pass
        cursor.expect("end", "nothing more" if result is not name else _AFTER_NAME)
        return result

    def only_type(self) -> Type:
        """whole := type [newline] eof, without annotations."""
        cursor = self.cursor
        start = cursor.token
        read, alias = self.types.type()
        if alias is not None:
            cursor.fail(
                "an alias annotation is no part of a type", start, upto=cursor.last
            )
        while cursor.accept("newline"):
            pass
        cursor.expect("end", "nothing more")
        return read

    def name(self) -> OperatorName:
        """name := ident ['::' ident] ['.' ident]."""
        cursor = self.cursor
        name = cursor.expect("name", "the name of an operator").text
        if cursor.accept("::"):
            name += f"::{cursor.expect('name', 'the name inside the namespace').text}"
        if not cursor.accept("."):
            return OperatorName(name)
        overload = cursor.expect("name", "the name of the overload")
        if _is_reserved(overload.text):
            hint = "`default` means the operator without overload; `__` is reserved."
            cursor.fail(f"`{overload.text}` cannot name an overload", overload, hint)
        return OperatorName(name, overload.text)

    def arguments(self) -> tuple[tuple[Argument, ...], bool]:
        """args := [item (',' item)*]      item := '*' | '...' | argument."""
        cursor = self.cursor
        cursor.expect("(", "`(` and the arguments")
        arguments: list[Argument] = []
        names: set[str] = set()
        kwarg_only = is_vararg = False
        defaulted: Token | None = None
        if cursor.accept(")"):
            return (), False
        while True:
            start = cursor.token
            if cursor.accept("*"):
                kwarg_only = True
            elif cursor.accept("..."):
                is_vararg = True
                self._last_item("argument")
                if defaulted is not None:
                    hint = "Drop the default, or the `...`."
                    cursor.fail("`...` goes with no default", defaulted, hint)
            else:
                argument, name = self.argument(kwarg_only)
                if argument.name in names:
                    hint = "Each argument needs a name of its own."
                    cursor.fail(f"`{argument.name}` is given twice", name, hint)
                names.add(argument.name)
                if argument.has_default:
                    defaulted = defaulted or start
                elif defaulted is not None and not kwarg_only:
                    hint = "Give it one, or put it before them."
                    message = f"`{argument.name}` has no default, but follows some"
                    cursor.fail(message, start, hint, upto=name)
                arguments.append(argument)
            if not cursor.accept(","):
                break
        cursor.expect(")", "`,` and another argument, or `)`")
        return tuple(arguments), is_vararg

    def argument(self, kwarg_only: bool) -> tuple[Argument, Token]:
        """argument := sized ident ['=' default]."""
        cursor = self.cursor
        type, alias, size = self.types.sized_type()  # noqa: A001  # the grammar's word
        name = cursor.expect("name", "the name of the argument")
        default: Any = NO_DEFAULT
        if cursor.accept("="):
            default = self.defaults.default(type, size)
        return Argument(name.text, type, size, default, kwarg_only, alias), name

    def returns(self) -> tuple[tuple[Argument, ...], bool]:
        """returns := '...' | '(' [result (',' result)*] ')' | result."""
        cursor = self.cursor
        if cursor.accept("..."):
            return (), True
        if cursor.kind != "(":
            return (self.result(),), False
        cursor.take()
        if cursor.accept(")"):
            return (), False
        returns: list[Argument] = []
        is_varret = False
        while True:
            if cursor.accept("..."):
                is_varret = True
                self._last_item("result")
            else:
                returns.append(self.result())
            if not cursor.accept(","):
                break
        cursor.expect(")", "`,` and another result, or `)`")
        return tuple(returns), is_varret

    def result(self) -> Argument:
        """result := sized [ident]."""
        type, alias, size = self.types.sized_type()  # noqa: A001  # the grammar's word
        name = self.cursor.take().text if self.cursor.kind == "name" else ""
        return Argument(name, type, size, alias=alias)

    def _last_item(self, noun: str) -> None:
        if self.cursor.kind == ",":
            hint = "Move it to the end."
            message = f"`...` is always the last {noun}"
            self.cursor.fail(message, self.cursor.last, hint)


# What may follow a complete name.
_AFTER_NAME = "`(` and the arguments, or nothing more"
