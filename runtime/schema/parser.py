"""Schema text to a `Schema`: names, arguments, defaults, results.

The grammar of a whole schema, the conditions between its arguments, the defaults that a
type accepts, and their stored form.

Rules:
- total: every text gives a schema, a name, or one `SchemaSyntaxError`;
- the parsed value prints as text that parses to an equal value;
- results are cached by their text; they are values, so sharing them is safe;
- a scalar type accepts any one constant as its default and hardly checks it
  (`int x=1.5` is valid); so does an optional type; only a plain `float` converts
  `1` to a float;
- a list of int, float, complex or bool accepts `[..]`; a sized one also a single
  constant, stored as often as the size says;
- everything that `default_text` prints is parsed here: complex numbers as a sum,
  devices bare.

`tokenizer` produces the tokens, `type_parser` reads types; each method here is one line
of the grammar.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.schema.declared import Namespace
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import (
    NO_DEFAULT,
    Argument,
    OperatorName,
    type_text,
)
from everyorder.runtime.schema.tokenizer import KEYWORDS, NAME, Cursor, Token
from everyorder.runtime.schema.type_parser import TypeParser
from everyorder.runtime.schema.types import (
    BoolType,
    ComplexType,
    DeviceType,
    FloatType,
    GeneratorType,
    IntType,
    LayoutType,
    ListType,
    MemoryFormatType,
    NumberType,
    OptionalType,
    QuantizerType,
    ScalarTypeType,
    StrType,
    SymIntType,
    TensorType,
    Type,
    fake,
)
from everyorder.runtime.schema.values import INT_END, INT_FIRST

# Cached parses: three times the number of the library `core`, a schema and a name of
# each operator: definitions recur soon, and the limit keeps programs that invent names
# from filling the memory.
REMEMBERED = 2048
# The usual form of a name, as `_SchemaParser.name` reads it; only others need a parser.
_NAME = re.compile(rf"(?:({NAME})::)?({NAME})(?:\.({NAME}))?")
# Types whose values have no text: their default can only be None.
_ONLY_NONE = frozenset({TensorType, GeneratorType, QuantizerType})
# Types that take one constant.
_CONSTANT = frozenset(
    {
        *(IntType, SymIntType, FloatType, BoolType, ComplexType, StrType, NumberType),
        *(ScalarTypeType, LayoutType, MemoryFormatType),
    }
)
# Element type -> the Python types its listed constants may have.
_ELEMENT: dict[Type, tuple[type, ...]] = {
    IntType: (int,),
    FloatType: (float,),
    ComplexType: (complex,),
    BoolType: (bool,),
}
# Words for a number wherever a constant is allowed; source: upstream.
_WORDS = {
    "float": DType.named("float32").code,
    "complex": DType.named("complex64").code,
    "long": DType.named("int64").code,
    "strided": 0,
    "Mean": 1,
    "contiguous_format": 0,
}
# Keyword -> the constant it is.
_FIXED = {"True": True, "False": False, "None": None}
# The decimal digits of the greatest integer; longer text is out of range unread.
_DIGITS = 19
# What may follow a complete name.
_AFTER_NAME = "`(` and the arguments, or nothing more"


def parse_schema(
    text: str, *, type_variables: bool = True, namespace: Namespace | None = None
) -> Schema:
    """Parse a schema.

    With `type_variables=False`, as for definitions, an unknown lower-case type is an
    error instead of a variable.  With a namespace it may have the types of programs.

    Raises:
        SchemaSyntaxError: `text` is not a schema, or only a name.
    """
    parse: Callable[..., Schema | OperatorName] = parse_schema_or_name
    if namespace is not None:
        # Names in a namespace may change their meaning: not cached.
        parse = parse_schema_or_name.__wrapped__
    parsed = parse(text, type_variables=type_variables, namespace=namespace)
    if isinstance(parsed, OperatorName):
        raise SchemaSyntaxError(
            message="this is only the name of an operator",
            source=text,
            span=_extent(text),
            hint="A schema continues with its arguments and results: (...) -> ...",
        )
    return parsed


def parse_type(
    text: str, *, type_variables: bool = True, namespace: Namespace | None = None
) -> Type:
    """Parse a type without annotations; parameters as for `parse_schema`.

    Raises:
        SchemaSyntaxError: `text` is not a type.
    """
    try:
        return _SchemaParser(text, type_variables, namespace).only_type()
    except SchemaSyntaxError as error:
        # The frames of the parser do not help the author of the text.
        raise error.with_traceback(None) from None


@lru_cache(maxsize=REMEMBERED)
def parse_name(text: str) -> OperatorName:
    """Parse the name of an operator.

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
            hint=f"Only a name is expected here: write {parsed.name}.",
        )
    return parsed


def _is_reserved(overload: str) -> bool:
    """Return True if an overload cannot have that name."""
    return overload == "default" or overload.startswith("__")


def _extent(text: str) -> tuple[int, int]:
    """Return the span of `text` without the blanks around it."""
    return len(text) - len(text.lstrip()), len(text.rstrip())


@lru_cache(maxsize=REMEMBERED)
def parse_schema_or_name(
    text: str, *, type_variables: bool = True, namespace: Namespace | None = None
) -> Schema | OperatorName:
    """Parse a schema or a bare name.

    Raises:
        SchemaSyntaxError: `text` is neither.
    """
    try:
        return _SchemaParser(text, type_variables, namespace).declaration()
    except SchemaSyntaxError as error:
        raise error.with_traceback(None) from None  # as above


class _SchemaParser:
    """The parser of one text."""

    __slots__ = ("cursor", "types")

    def __init__(
        self, text: str, type_variables: bool, namespace: Namespace | None = None
    ) -> None:
        self.cursor = Cursor(text)
        self.types = TypeParser(self.cursor, type_variables, namespace)

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
        self._end("nothing more" if result is not name else _AFTER_NAME)
        return result

    def only_type(self) -> Type:
        """whole := type [newline] eof, without annotations."""
        plain = self.types.plain_type("an alias annotation is not part of a type")
        self._end("nothing more")
        return plain

    def _end(self, belongs: str) -> None:
        while self.cursor.accept("newline"):
            pass
        self.cursor.expect("end", belongs)

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
        """args := '(' [item (',' item)*] ')'      item := '*' | '...' | argument."""
        cursor = self.cursor
        arguments: dict[str, Argument] = {}
        kwarg_only = is_vararg = False
        defaulted: Token | None = None

        def item() -> None:
            nonlocal kwarg_only, is_vararg, defaulted
            start = cursor.token
            if cursor.accept("*"):
                kwarg_only = True
                return
            if cursor.accept("..."):
                is_vararg = True
                self._last_item("argument")
                if defaulted is not None:
                    hint = "Drop the default, or the `...`."
                    cursor.fail("`...` excludes defaults", defaulted, hint)
                return
            argument, name = self.argument(kwarg_only)
            if argument.name in arguments:
                hint = "Each argument needs a different name."
                cursor.fail(f"`{argument.name}` is given twice", name, hint)
            if argument.has_default:
                defaulted = defaulted or start
            elif defaulted is not None and not kwarg_only:
                hint = "Give it one, or put it before them."
                message = f"`{argument.name}` has no default, but follows some"
                cursor.fail(message, start, hint, upto=name)
            arguments[argument.name] = argument

        cursor.items("()", item, "argument", "`(` and the arguments")
        return tuple(arguments.values()), is_vararg

    def argument(self, kwarg_only: bool) -> tuple[Argument, Token]:
        """argument := sized ident ['=' default]."""
        cursor = self.cursor
        type, alias, size = self.types.sized_type()  # noqa: A001  # the grammar's word
        name = cursor.expect("name", "the name of the argument")
        default: Any = NO_DEFAULT
        if cursor.accept("="):
            default = self.default(type, size)
        return Argument(name.text, type, size, default, kwarg_only, alias), name

    def returns(self) -> tuple[tuple[Argument, ...], bool]:
        """Parse returns := '...' | '(' [item (',' item)*] ')' | result.

        item := '...' | result
        """
        cursor = self.cursor
        returns: list[Argument] = []
        is_varret = False

        def item() -> None:
            nonlocal is_varret
            if cursor.accept("..."):
                is_varret = True
                self._last_item("result")
            else:
                returns.append(self.result())

        if cursor.kind == "(":
            cursor.items("()", item, "result", "")
        elif cursor.accept("..."):
            is_varret = True
        else:
            returns.append(self.result())
        return tuple(returns), is_varret

    def result(self) -> Argument:
        """Parse result := sized [ident]."""
        type, alias, size = self.types.sized_type()  # noqa: A001  # the grammar's word
        name = self.cursor.take().text if self.cursor.kind == "name" else ""
        return Argument(name, type, size, alias=alias)

    def _last_item(self, noun: str) -> None:
        if self.cursor.kind == ",":
            hint = "Move it to the end."
            message = f"`...` is always the last {noun}"
            self.cursor.fail(message, self.cursor.last, hint)

    def default(self, type: Type, size: int | None) -> Any:  # noqa: A002  # the grammar's own word
        """default := 'None' | device | constant | list, by the type of the argument."""
        if type in _CONSTANT:
            return self._constant(type)
        if type in _ONLY_NONE:
            self.cursor.expect("None", f"`None`, the one default of a {type}")
            return None
        if type == DeviceType:
            return self._device()
        if isinstance(type, OptionalType):
            if type.element == DeviceType and self.cursor.kind != "None":
                return self._device()
            of_code = type.element == ScalarTypeType
            return self._constant(ScalarTypeType if of_code else NumberType)
        if isinstance(type, ListType) and fake(type.element) in _ELEMENT:
            return self._list(type.element, size)
        text = type_text(type, None, size)
        message = f"an argument of type {text} cannot have a default"
        hint = f"Make it optional (`{text}?`) with the default None, or give none."
        return self.cursor.fail(message, self.cursor.token, hint)

    def _constant(self, type: Type) -> Any:  # noqa: A002  # the grammar's own word
        """constant := 'True' | 'False' | 'None' | string | word | number."""
        cursor = self.cursor
        kind = cursor.kind
        value: Any
        if kind == "number" or kind == "-":
            value = self._number(type)
        elif kind == "name":
            value = self._word(cursor.take(), type)
        elif kind == "string":
            return cursor.string(cursor.take())
        elif kind in _FIXED:
            cursor.take()
            return _FIXED[kind]
        else:
            cursor.misplaced("a default: a number, a text, True, False or None")
        if type == FloatType and value.__class__ is int:
            return float(value)
        return complex(value) if type == ComplexType else value

    def _number(self, type: Type) -> int | float | complex:  # noqa: A002  # the grammar's own word
        """Parse number := ['-'] digits [('+' | '-') digits 'j']."""
        cursor = self.cursor
        start = cursor.token
        negative = cursor.accept("-")
        token = cursor.expect("number", "a number")
        if token.text.endswith("j"):
            return complex(0.0, self._real(token, negative))
        if cursor.kind in ("+", "-"):
            real = self._real(token, negative)
            negative = cursor.take().kind == "-"
            token = cursor.expect("number", "an imaginary number, such as 1.j")
            if not token.text.endswith("j"):
                hint = "Only a complex number is a sum: close it with `j`."
                cursor.fail("defaults are not computed", start, hint, upto=token)
            return complex(real, self._real(token, negative))
        if type == FloatType or not token.text.isdecimal():
            return self._real(token, negative)
        digits = token.text.lstrip("0") or "0"
        if len(digits) <= _DIGITS:
            value = -int(digits) if negative else int(digits)
            if INT_FIRST <= value < INT_END:
                return value
        hint = "An int has 64 bits; write it with a point to make it a float."
        return cursor.fail("this integer is too large", start, hint, upto=token)

    def _real(self, token: Token, negative: bool) -> float:
        value = float(token.text.removesuffix("j"))
        if value == float("inf"):
            hint = "A float reaches to about 1.8e308."
            self.cursor.fail("this number is too large", token, hint)
        # Adding zero turns a negative zero, which no schema keeps, into zero.
        return (-value if negative else value) + 0.0

    def _word(self, token: Token, type: Type) -> int:  # noqa: A002  # the grammar's own word
        """word := a name of the table above, or of a scalar type for a ScalarType."""
        word = token.text
        if word in _WORDS:
            return _WORDS[word]
        if type == ScalarTypeType:
            try:
                return DType.named(word).code
            except KeyError:
                pass
        words = ", ".join(_WORDS)
        return self.cursor.fail(
            f"`{word}` is not a default", token, f"Expected one of {words}."
        )

    def _list(self, element: Type, size: int | None) -> tuple[Any, ...]:
        """list := '[' [constant (',' constant)*] ']' | constant, for a sized list."""
        cursor = self.cursor
        if size is not None and cursor.kind != "[":
            return (self._element(element),) * size
        read = partial(self._element, element)
        return tuple(cursor.items("[]", read, "element", "`[`, the begin of a list"))

    def _element(self, element: Type) -> Any:
        start = self.cursor.token
        value = self._constant(element)
        if value.__class__ not in _ELEMENT[fake(element)]:
            message = f"this is not an element of a list of {element}"
            self.cursor.fail(message, start, upto=self.cursor.last)
        return value

    def _device(self) -> Device:
        """device := string | ident [':' number]."""
        cursor = self.cursor
        start = cursor.token
        if cursor.kind == "string":
            text = cursor.string(cursor.take())
        else:
            text = cursor.expect("name", 'a device, such as "cuda:1"').text
            if cursor.accept(":"):
                text += ":" + cursor.expect("number", "the index of a device").text
        try:
            return Device.parse(text)
        except EveryorderError as error:
            message = f"{text!r} is not a device"
            return cursor.fail(message, start, str(error), upto=cursor.last)
