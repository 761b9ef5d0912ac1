"""Primitives of strings: operators, methods, formatting, and conversions.

The methods are Python's methods; all accept keyword arguments, even those that are
positional-only in Python.

Rules:
- positions are numbers of characters, negative ones from the end, slices as in Python;
- an f-string is compiled to its pieces: `format` for a value with its specification,
  `str`, `repr` or `ascii` for a conversion, and `''.join` of all of them;
- a format cannot access attributes of values: `{0.real}` is refused, `{0[1]}` is not.
"""

import builtins
import re
from string import Formatter

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.schema.call_errors import shortened
from everyorder.runtime.script.primitives.numbers import bounded
from everyorder.runtime.script.primitives.primitive_row import (
    functions,
    methods,
    operators,
)

_SUBSCRIPT = re.compile(r"\[[^\]]*\]")


def _check_fields(text: str, template: str, depth: int = 2) -> None:
    """Refuse a field of `text` that names an attribute, at any depth.

    Python itself refuses more than two levels of nesting.
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
            # Malformed at the end of the text; Python may raise for something earlier.
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


# Methods without arguments that return a bool, or a str -> samples.
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
_CASES = {
    "capitalize": "'aBC'; ''; 'ßa'",
    "casefold": "'Straße'; ''",
    "lower": "'AbÉ'; ''",
    "swapcase": "'aBß'; ''",
    "title": "\"they're bill's\"; ''",
    "upper": "'abß'; ''",
}
_COMPARED = "'a', 'b'; 'a', 'a'; 'a', ''; 'Z', 'a'; 'é', 'z'"
_VALUES = "1; -2.5; 'a\\'b'; True; None; [1, 'é']; {'a': 1.0}; (1, 2); 1+2j; nan"

ROWS = (
    *methods(
        str,
        "\n".join(
            f"{name}.str(str self) -> {result}\n    {samples}"
            for result, table in (("bool", _TESTS), ("str", _CASES))
            for name, samples in table.items()
        ),
    ),
    *methods(
        str,
        """
center.str(str self, int width, str fillchar=' ') -> str  raises
    'ab', 5; 'ab', 6, '*'; 'ab', -1; 'ab', 4, 'xy'
ljust.str(str self, int width, str fillchar=' ') -> str  raises
    'ab', 5; 'ab', 6, '*'; 'ab', 4, ''
rjust.str(str self, int width, str fillchar=' ') -> str  raises
    'ab', 5; 'ab', 6, '*'; 'ab', 4, 'xy'
zfill.str(str self, int width) -> str
    '-42', 6; '', 2; 'abc', 2
expandtabs.str(str self, int tabsize=8) -> str  raises
    'a\\tb'; 'a\\tb', 0; '\\t', -1; '\\t', MOST
strip.str(str self, str? chars=None) -> str
    '  a '; 'xxaxx', 'x'; 'ab', ''
lstrip.str(str self, str? chars=None) -> str
    '  a '; 'xxaxx', 'x'
rstrip.str(str self, str? chars=None) -> str
    '  a '; 'xxaxx', 'x'
count.str(str self, str sub, int? start=None, int? end=None) -> int
    'banana', 'an'; 'aaa', '', 1; 'aaa', 'a', -2, -1
find.str(str self, str sub, int? start=None, int? end=None) -> int
    'banana', 'an'; 'a', 'b'; 'banana', 'an', 2, -1
rfind.str(str self, str sub, int? start=None, int? end=None) -> int
    'banana', 'an'; 'a', 'b'; '', ''
index.str(str self, str sub, int? start=None, int? end=None) -> int  raises
    'banana', 'an'; 'a', 'b'; 'banana', 'an', 2
rindex.str(str self, str sub, int? start=None, int? end=None) -> int  raises
    'banana', 'an'; 'a', 'b'; 'banana', 'a', 0, 2
startswith.str(str self, str sub, int? start=None, int? end=None) -> bool
    'abc', 'ab'; 'abc', 'b', 1; '', ''
endswith.str(str self, str sub, int? start=None, int? end=None) -> bool
    'abc', 'bc'; 'abc', 'b', 0, 2; 'a', 'ab'
removeprefix.str(str self, str prefix) -> str
    'abc', 'ab'; 'abc', 'x'
removesuffix.str(str self, str suffix) -> str
    'abc', 'bc'; 'abc', ''
replace.str(str self, str old, str new, int count=-1) -> str
    'aaa', 'a', 'b'; 'aaa', 'a', 'b', 2; 'ab', '', '-'
partition.str(str self, str sep) -> (str, str, str)  raises
    'a=b=c', '='; 'a', '='; 'a', ''
rpartition.str(str self, str sep) -> (str, str, str)  raises
    'a=b=c', '='; 'a', '='; 'a', ''
split.str(str self, str? sep=None, int maxsplit=-1) -> str[]  raises
    ' a  b '; 'a,b,c', ','; 'a,b,c', ',', 1; 'a', ''; '', ','
rsplit.str(str self, str? sep=None, int maxsplit=-1) -> str[]  raises
    ' a  b '; 'a,b,c', ','; 'a,b,c', ',', 1; 'a', ''; 'a b', None
join.str(str self, str[] iterable) -> str
    ',', ['a', 'b']; '', []; '-', ['a']
splitlines.str(str self, bool keepends=False) -> str[]
    'a\\nb\\r\\n'; 'a\\nb\\n', True; ''; 'a\\n', keepends=True
format.str(str self, ...) -> str  raises
    '{} {}', 1, 'a'; '.{}{'; '{1}{0}', 1, 2; '{:>{}}', 'a', 5; '{0[1]}', [1, 2];
    '{}'; '{!r:5}|', 'a'; '{', 1; '{x}', 1; '{:d}', 'a'; '{:.3f}', 2.0; '{{.}}';
    '{0[a.b]}', {'a.b': 1}; '{:' * 3000 + '.' + '}' * 3000, 1; '{:{:{:.1}}}', 1
""",
        {"splitlines": _split_lines, "format": _format},
    ),
    # A result that is too long raises `OverflowError` for several characters and
    # `MemoryError` for one.
    *operators(
        f"""
add.str(str a, str b) -> str
    'a', 'b'; '', ''
mul.str(str self, int n) -> str  raises
    'ab', 3; 'ab', 0; 'ab', -1; 'ab', MOST; '', MOST
mul.left_str(int n, str self) -> str  raises
    3, 'ab'; -1, 'ab'; MOST, 'ab'
eq.str(str a, str b) -> bool
    {_COMPARED}
ne.str(str a, str b) -> bool
    {_COMPARED}
lt.str(str a, str b) -> bool
    {_COMPARED}
le.str(str a, str b) -> bool
    {_COMPARED}
gt.str(str a, str b) -> bool
    {_COMPARED}
ge.str(str a, str b) -> bool
    {_COMPARED}
contains.str(str self, str item) -> bool
    'abc', 'bc'; 'a', ''; '', 'a'
getitem.str(str self, int index) -> str  raises
    'abc', 0; 'abc', -1; 'abc', 3; '', -1; 'aé', MOST
slice.str(str self, int? start, int? stop, int? step) -> str  raises
    'abcde', 1, 3, None; 'abcde', None, None, -1; 'abcde', -2, MOST, 1;
    'abcde', 4, 0, -2; 'abc', 0, 1, 0; 'abc', LEAST, None, None
mod.str(str self, t values) -> str  raises
    '%d and %s', (3, 'x'); '%s', 'x'; '%5.2f%%', 1.25; '%d', 'x'; '%s %s', (1,);
    '%s', [1, 2]; '%(a)s', {{'a': 1}}; '%', 1; 'x', (1,); '%r', None; '%x', 255
""",
        {"mul.left_str": _repeated_left, "slice": _substring, "mod": _percent},
    ),
    *functions(
        builtins,
        f"""
min.str(str a, str b) -> str
    'a', 'b'; 'b', 'a'; '', ''
max.str(str a, str b) -> str
    'a', 'b'; 'b', 'a'; '', ''
format.value(t value, str format_spec='') -> str  raises
    1.5, '.3f'; 'a', '>4'; 255, '#x'; [1], ''; 1, 'q'; None; True; 2, ''
str.t(t object) -> str
    {_VALUES}
repr.t(t object) -> str
    {_VALUES}
ascii.t(t object) -> str
    {_VALUES}
int.str(str x) -> int  raises
    '42'; ' -7 '; '1_000'; '4.2'; ''; '9223372036854775808'; '٣'
int.str_base(str x, int base) -> int  raises
    'ff', 16; '0x1f', 0; 'z', 36; '12', 2; '1', 1; '1', base=8
float.str(str x) -> float  raises
    '1.5'; 'nan'; '-inf'; '1e400'; 'x'; ' 2 '
complex.str(str real) -> complex  raises
    '1+2j'; 'j'; 'x'; '1 + 2j'
bool.str(str x) -> bool
    ''; 'False'
len.str(str obj) -> int
    ''; 'abc'; 'é😀'
list.str(str iterable) -> str[]
    'abc'; ''
sorted.str(str iterable) -> str[]
    'bca'; ''
ord.str(str c) -> int  raises
    'a'; '😀'; ''; 'ab'
chr.int(int i) -> str  raises
    97; 1114111; 1114112; -1; MOST
""",
        {"int.str": bounded("int", int), "int.str_base": bounded("int", _integer)},
    ),
)
