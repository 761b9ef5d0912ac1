"""Strings: operators, methods, formatting, and conversions from and to other values.

The methods are Python's own; a name that takes keywords in Python takes them here, and
others take them besides.

Rules:
- positions are numbers of characters, negative ones from the end, slices as in Python;
- an f-string is its pieces: `format` for a value with its specification, `str`, `repr`
  or `ascii` where a conversion is written, and `''.join` of all of them;
- a format does not look into values: `{0.real}` is refused, `{0[1]}` is not.
"""

import operator
import re
from collections.abc import Iterator
from string import Formatter
from typing import Any

from runtime.errors.script import RunningError
from runtime.schema.calls import shortened
from runtime.script.primitives.numbers import bounded
from runtime.script.primitives.row import (
    Row,
    binary,
    call,
    method,
    row,
    special,
)

_SUBSCRIPT = re.compile(r"\[[^\]]*\]")


def _check_fields(text: str, template: str, depth: int = 2) -> None:
    """Refuse a field of `text` that names an attribute, at any depth.

    Python itself refuses what is nested deeper than twice.
    """
    for _, field, spec, _ in Formatter().parse(text):
        if field is not None and "." in _SUBSCRIPT.sub("", field):
            raise RunningError(
                code="AttributeInFormat",
                operator="str.format",
                operands=(shortened(template),),
                field=shortened(field).strip("'\""),
            )
        if spec and depth > 1:
            _check_fields(spec, template, depth - 1)


def _format(self: str, *values: object) -> str:
    if "." in self:  # every field that names an attribute has one
        try:
            _check_fields(self, self)
        except RunningError:
            raise
        except ValueError:
            # The text ends in no field; Python may find something wrong before that.
            pass
    return self.format(*values)


def _percent(self: str, values: object) -> str:
    return self % values


def _integer(x: str, base: int) -> int:
    return int(x, base)


def _substring(self: str, start: int | None, stop: int | None, step: int | None) -> str:
    return self[start:stop:step]


def _repeated_left(n: int, self: str) -> str:
    return n * self


def _split_lines(self: str, keepends: bool) -> list[str]:
    return self.splitlines(keepends)


# Method -> samples; all of them give a bool.
_TESTS = {
    "isalnum": "'a1'; ''; 'a b'",
    "isalpha": "'ab'; 'a1'; ''",
    "isascii": "'ab'; 'é'; ''",
    "isdecimal": "'12'; '²'; ''",
    "isdigit": "'12'; '²'; 'a'",
    "isidentifier": "'a1'; '1a'; 'class'",
    "islower": "'ab'; 'aB'; '1'",
    "isnumeric": "'½'; '1a'; ''",
    "isprintable": "'ab'; 'a\\n'; ''",
    "isspace": "' \\t'; 'a '; ''",
    "istitle": "'Ab Cd'; 'AB'; ''",
    "isupper": "'AB'; 'Ab'; '1'",
}
# Method -> samples; all of them give a str.
_CASES = {
    "capitalize": "'aBC'; ''; 'ßa'",
    "casefold": "'Straße'; ''",
    "lower": "'AbÉ'; ''",
    "swapcase": "'aBß'; ''",
    "title": "\"they're bill's\"; ''",
    "upper": "'abß'; ''",
}
# The rest: arguments behind self, result, samples, whether a value may be refused.
_METHODS: tuple[tuple[str, str, str, str, bool], ...] = (
    *(
        (name, "int width, str fillchar=' '", "str", samples, True)
        for name, samples in (
            ("center", "'ab', 5; 'ab', 6, '*'; 'ab', -1; 'ab', 4, 'xy'"),
            ("ljust", "'ab', 5; 'ab', 6, '*'; 'ab', 4, ''"),
            ("rjust", "'ab', 5; 'ab', 6, '*'; 'ab', 4, 'xy'"),
        )
    ),
    ("zfill", "int width", "str", "'-42', 6; '', 2; 'abc', 2", False),
    (
        "expandtabs",
        "int tabsize=8",
        "str",
        "'a\\tb'; 'a\\tb', 0; '\\t', -1; '\\t', MOST",
        True,
    ),
    *(
        (name, "str? chars=None", "str", samples, False)
        for name, samples in (
            ("strip", "'  a '; 'xxaxx', 'x'; 'ab', ''"),
            ("lstrip", "'  a '; 'xxaxx', 'x'"),
            ("rstrip", "'  a '; 'xxaxx', 'x'"),
        )
    ),
    *(
        (name, "str sub, int? start=None, int? end=None", result, samples, raises)
        for name, result, samples, raises in (
            ("count", "int", "'banana', 'an'; 'aaa', '', 1; 'aaa', 'a', -2, -1", False),
            ("find", "int", "'banana', 'an'; 'a', 'b'; 'banana', 'an', 2, -1", False),
            ("rfind", "int", "'banana', 'an'; 'a', 'b'; '', ''", False),
            ("index", "int", "'banana', 'an'; 'a', 'b'; 'banana', 'an', 2", True),
            ("rindex", "int", "'banana', 'an'; 'a', 'b'; 'banana', 'a', 0, 2", True),
            ("startswith", "bool", "'abc', 'ab'; 'abc', 'b', 1; '', ''", False),
            ("endswith", "bool", "'abc', 'bc'; 'abc', 'b', 0, 2; 'a', 'ab'", False),
        )
    ),
    ("removeprefix", "str prefix", "str", "'abc', 'ab'; 'abc', 'x'", False),
    ("removesuffix", "str suffix", "str", "'abc', 'bc'; 'abc', ''", False),
    (
        *("replace", "str old, str new, int count=-1", "str"),
        *("'aaa', 'a', 'b'; 'aaa', 'a', 'b', 2; 'ab', '', '-'", False),
    ),
    (
        "partition",
        "str sep",
        "(str, str, str)",
        "'a=b=c', '='; 'a', '='; 'a', ''",
        True,
    ),
    (
        *("rpartition", "str sep", "(str, str, str)"),
        *("'a=b=c', '='; 'a', '='; 'a', ''", True),
    ),
    *(
        (name, "str? sep=None, int maxsplit=-1", "str[]", samples, True)
        for name, samples in (
            ("split", "' a  b '; 'a,b,c', ','; 'a,b,c', ',', 1; 'a', ''; '', ','"),
            ("rsplit", "' a  b '; 'a,b,c', ','; 'a,b,c', ',', 1; 'a', ''; 'a b', None"),
        )
    ),
    ("join", "str[] iterable", "str", "',', ['a', 'b']; '', []; '-', ['a']", False),
)


def _methods() -> Iterator[Row]:
    for result, table in (("bool", _TESTS), ("str", _CASES)):
        for name, samples in table.items():
            schema = f"{name}.str(str self) -> {result}"
            yield row(schema, method(name), getattr(str, name), samples)
    for name, arguments, result, samples, raises in _METHODS:
        schema = f"{name}.str(str self, {arguments}) -> {result}"
        yield row(schema, method(name), getattr(str, name), samples, raises=raises)
    schema = "splitlines.str(str self, bool keepends=False) -> str[]"
    samples = "'a\\nb\\r\\n'; 'a\\nb\\n', True; ''; 'a\\n', keepends=True"
    yield row(schema, method("splitlines"), _split_lines, samples)


def _operators() -> Iterator[Row]:
    schema = "add.str(str a, str b) -> str"
    yield row(schema, binary("+"), operator.add, "'a', 'b'; '', ''")
    schema = "mul.str(str self, int n) -> str"
    # Of several characters too many are an `OverflowError`, of one a `MemoryError`.
    samples = "'ab', 3; 'ab', 0; 'ab', -1; 'ab', MOST; '', MOST"
    yield row(schema, binary("*"), operator.mul, samples, raises=True)
    schema = "mul.left_str(int n, str self) -> str"
    samples = "3, 'ab'; -1, 'ab'; MOST, 'ab'"
    yield row(schema, binary("*"), _repeated_left, samples, raises=True)
    for symbol, name, function in (
        ("==", "eq", operator.eq),
        ("!=", "ne", operator.ne),
        ("<", "lt", operator.lt),
        ("<=", "le", operator.le),
        (">", "gt", operator.gt),
        (">=", "ge", operator.ge),
    ):
        schema = f"{name}.str(str a, str b) -> bool"
        samples = "'a', 'b'; 'a', 'a'; 'a', ''; 'Z', 'a'; 'é', 'z'"
        yield row(schema, binary(symbol), function, samples)
    for name, function in (("min", min), ("max", max)):
        schema = f"{name}.str(str a, str b) -> str"
        yield row(schema, call(function), function, "'a', 'b'; 'b', 'a'; '', ''")
    schema = "contains.str(str self, str item) -> bool"
    within = special("in", "{1} in {0}")
    yield row(schema, within, operator.contains, "'abc', 'bc'; 'a', ''; '', 'a'")
    schema = "getitem.str(str self, int index) -> str"
    item = special("[]", "{0}[{1}]")
    samples = "'abc', 0; 'abc', -1; 'abc', 3; '', -1; 'aé', MOST"
    yield row(schema, item, operator.getitem, samples, raises=True)
    schema = "slice.str(str self, int? start, int? stop, int? step) -> str"
    part = special("[:]", "{0}[{1}:{2}:{3}]")
    samples = (
        "'abcde', 1, 3, None; 'abcde', None, None, -1; 'abcde', -2, MOST, 1; "
        "'abcde', 4, 0, -2; 'abc', 0, 1, 0; 'abc', LEAST, None, None"
    )
    yield row(schema, part, _substring, samples, raises=True)


def _formatting() -> Iterator[Row]:
    schema = "mod.str(str self, t values) -> str"
    samples = (
        "'%d and %s', (3, 'x'); '%s', 'x'; '%5.2f%%', 1.25; '%d', 'x'; '%s %s', (1,); "
        "'%s', [1, 2]; '%(a)s', {'a': 1}; '%', 1; 'x', (1,); '%r', None; '%x', 255"
    )
    yield row(schema, binary("%"), _percent, samples, raises=True)
    schema = "format.str(str self, ...) -> str"
    samples = (
        "'{} {}', 1, 'a'; '.{}{'; '{1}{0}', 1, 2; '{:>{}}', 'a', 5; '{0[1]}', [1, 2]; "
        "'{}'; '{!r:5}|', 'a'; '{', 1; '{x}', 1; '{:d}', 'a'; '{:.3f}', 2.0; '{{.}}'; "
        "'{0[a.b]}', {'a.b': 1}; '{:' * 3000 + '.' + '}' * 3000, 1; '{:{:{:.1}}}', 1"
    )
    yield row(schema, method("format"), _format, samples, raises=True)
    schema = "format.value(t value, str format_spec='') -> str"
    samples = "1.5, '.3f'; 'a', '>4'; 255, '#x'; [1], ''; 1, 'q'; None; True; 2, ''"
    yield row(schema, call(format), format, samples, raises=True)
    values = "1; -2.5; 'a\\'b'; True; None; [1, 'é']; {'a': 1.0}; (1, 2); 1+2j; nan"
    for function in (str, repr, ascii):
        schema = f"{function.__name__}.t(t object) -> str"
        yield row(schema, call(function), function, values)


def _conversions() -> Iterator[Row]:
    to_int: Any = bounded("int", int)
    samples = "'42'; ' -7 '; '1_000'; '4.2'; ''; '9223372036854775808'; '٣'"
    yield row("int.str(str x) -> int", call(int), to_int, samples, raises=True)
    schema = "int.str_base(str x, int base) -> int"
    samples = "'ff', 16; '0x1f', 0; 'z', 36; '12', 2; '1', 1; '1', base=8"
    based: Any = bounded("int", _integer)
    yield row(schema, call(int), based, samples, raises=True)
    samples = "'1.5'; 'nan'; '-inf'; '1e400'; 'x'; ' 2 '"
    yield row("float.str(str x) -> float", call(float), float, samples, raises=True)
    schema = "complex.str(str real) -> complex"
    yield row(schema, call(complex), complex, "'1+2j'; 'j'; 'x'; '1 + 2j'", raises=True)
    yield row("bool.str(str x) -> bool", call(bool), bool, "''; 'False'")
    yield row("len.str(str obj) -> int", call(len), len, "''; 'abc'; 'é😀'")
    yield row("list.str(str iterable) -> str[]", call(list), list, "'abc'; ''")
    yield row("sorted.str(str iterable) -> str[]", call(sorted), sorted, "'bca'; ''")
    yield row(
        "ord.str(str c) -> int", call(ord), ord, "'a'; '😀'; ''; 'ab'", raises=True
    )
    schema = "chr.int(int i) -> str"
    yield row(schema, call(chr), chr, "97; 1114111; 1114112; -1; MOST", raises=True)


ROWS = (*_methods(), *_operators(), *_formatting(), *_conversions())
