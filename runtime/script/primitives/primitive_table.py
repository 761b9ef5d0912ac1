"""The table of primitives: all rows, their look-up, selection and installation.

    by_name, by_operator, ...    look up rows
    INLINE, overflow_tests, keeps_near   primitives as expressions of generated text
    widened     the conversion of a number to a wider one
    install     the rows as operators of the namespace `script`

Rules of look-ups:
- the rows of one look-up are in the order in which they are tried: numbers before
  containers, and rows that accept any type last;
- a function of Python is looked up as an object, so an alias of it is the same, and
  another object of the same name is not;
- `pow(a, b)` is `a ** b`; an augmented assignment without rows for its operands (`+=`
  of numbers) is compiled as the operator and an assignment;
- a look-up returns an empty tuple for anything that is not a primitive.

Rules of numbers:
- a call tries the rows in order, first with the types as they are, then with narrower
  numbers in place of wider ones: bool, int, float, complex, and a Scalar only where
  there is no row of the kind itself: the narrowest row that all operands fit is
  selected, as in Python;
- a number is widened by a separate primitive (`float.int`), so that the row's function
  receives exactly the types of its schema.

Rules of generated text:
- a primitive whose function is a Python operator is generated as that operator; one
  that refuses results beyond 64 bits is, too, followed by tests: if they hold, the
  primitive itself is called, which raises;
- another kernel may be registered under the name of a primitive: the generated code
  checks this when it runs.

Rules of operators:
- every row is defined by its schema, so that names resolve and schemas can be queried,
  and its function is the kernel of all backends; rows that never raise have a tag;
- a call through the dispatcher converts its arguments, but passes a list or a
  dictionary that is written to uncopied;
- the primitives are installed on the default dispatcher once, when this module is
  imported; this module owns the handles.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.kernel import direct
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.schema.schema import TOTAL
from everyorder.runtime.schema.subtyping import Mismatch, match
from everyorder.runtime.schema.types import (
    BoolType,
    ComplexType,
    FloatType,
    IntType,
    NumberType,
    ScalarTypeType,
    Type,
    TypeVariable,
)
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.primitives import (
    containers,
    dtypes,
    mathematics,
    numbers,
    strings,
    tensor_values,
)
from everyorder.runtime.script.primitives.primitive_row import (
    NAMESPACE,
    Kind,
    PrimitiveRow,
)

# Narrowest first.
KINDS = (BoolType, IntType, FloatType, ComplexType)


def widened(actual: Type, formal: Type) -> str | None:
    """Return the name of the primitive that widens `actual` to `formal`, or None."""
    if actual not in KINDS or formal not in KINDS:
        return None
    if KINDS.index(actual) >= KINDS.index(formal):
        return None
    return f"{NAMESPACE}::{formal}.{actual}"


Rows = tuple[PrimitiveRow, ...]

_CHAPTERS = (
    numbers.ROWS,
    strings.ROWS,
    tensor_values.ROWS,
    dtypes.ROWS,
    containers.ROWS,
    mathematics.ROWS,
    tensor_values.OBJECT_ROWS,
)


def _width(row: PrimitiveRow) -> int:
    """Return the sort key of a row: one kind of number, then Scalar, then `t`."""
    types = {argument.type for argument in row.schema.arguments}
    if any(isinstance(each, TypeVariable) for each in types):
        return 2
    return 1 if NumberType in types else 0


ROWS: Rows = tuple(sorted((r for rows in _CHAPTERS for r in rows), key=_width))

BY_NAME: dict[str, PrimitiveRow] = {row.name: row for row in ROWS}
# Each name with overload is unique: a second row would hide the first.
assert len(BY_NAME) == len(ROWS)


def _grouped(kind: Kind) -> dict[Any, Rows]:
    groups: dict[Any, list[PrimitiveRow]] = {}
    for row in ROWS:
        if row.way.kind == kind:
            groups.setdefault(row.way.key, []).append(row)
    return {key: tuple(rows) for key, rows in groups.items()}


# Symbol (`+`, `-x`, `in`, `[]`, `[:]=`, `+=`, ...) -> rows.
OPERATORS = _grouped("operator")
# Function object -> rows.
FUNCTIONS: dict[Any, Rows] = _grouped("function") | {pow: OPERATORS["**"]}
METHODS = _grouped("method")
ATTRIBUTES = _grouped("attribute")
# Pattern (`len(range({0}, {1}, {2}))`, ...) -> rows.
FORMS = _grouped("form")


# Functions that refuse a result beyond 64 bits and are Python operators otherwise.
_BOUNDED = (numbers.add, numbers.sub, numbers.mul, numbers.floordiv)
_SHIFTS = (numbers.add, numbers.sub)
# Functions of primitives -> the Python expression that computes the same.
INLINE: dict[Any, str] = {
    row.function: row.way.pattern
    for rows in OPERATORS.values()
    for row in rows
    if not row.writes
    and (row.function.__module__ == "_operator" or row.function in _BOUNDED)
}
INLINE[list.append] = "{0}.append({1})"

# Numbers that CPython compares at almost no cost: those of one digit.
_SMALL = 2**30 - 1
_NOT_SMALL = f"{{0}} > {_SMALL} or {{0}} < {-_SMALL}"
_BEYOND = f"not {INT_FIRST} <= {{0}} < {INT_END}"


def overflow_tests(function: Any, constants: Sequence[Any]) -> tuple[str, ...]:
    """Return the nested tests that a result exceeds 64 bits.

    `constants` has the operands that are constants, and None for other operands.
    """
    if function is numbers.floordiv and constants[1] not in (None, -1):
        # Only the least number by -1 is too large.
        return ()
    return (_NOT_SMALL, _BEYOND) if function in _BOUNDED else ()


def keeps_near(function: Any, constants: Sequence[Any]) -> bool:
    """Return True if an operand is near a result: they differ by a small constant.

    A result of one digit then says that the operand is within 64 bits.  `constants` as
    for `overflow_tests`.
    """
    shifts = (each for each in constants if each.__class__ is int)
    return function in _SHIFTS and any(-_SMALL <= each <= _SMALL for each in shifts)


def by_name(name: str) -> PrimitiveRow | None:
    """Return the row with a name such as `script::append.t`, or None."""
    return BY_NAME.get(name)


def by_operator(symbol: str) -> Rows:
    """Return the rows of an operator, spelled as in `primitive_row`."""
    return OPERATORS.get(symbol, ())


def by_function(function: Callable[..., Any]) -> Rows:
    """Return the rows of a function or class of Python, by its identity."""
    try:
        return FUNCTIONS.get(function, ())
    except TypeError:  # unhashable objects are not built-in functions
        return ()


def by_form(pattern: str) -> Rows:
    """Return the rows of an expression that is one step."""
    return FORMS.get(pattern, ())


def by_method(name: str, self: Type) -> Rows:
    """Return the rows of a method of an object of the type `self`."""
    return _of(METHODS.get(name, ()), self)


def by_attribute(name: str, self: Type) -> Rows:
    """Return the rows of an attribute of an object of the type `self`."""
    return _of(ATTRIBUTES.get(name, ()), self)


def methods_of(self: Type) -> tuple[str, ...]:
    """Return the names of all methods of objects of the type `self`, sorted."""
    return tuple(sorted(name for name in METHODS if by_method(name, self)))


def _of(rows: Iterable[PrimitiveRow], self: Type) -> Rows:
    """Return the rows whose first argument accepts the type, as it is or widened."""
    exact = tuple(row for row in rows if _first_takes(row, self))
    return exact or tuple(
        row for row in rows if widened(self, row.schema.arguments[0].type)
    )


def _first_takes(row: PrimitiveRow, self: Type) -> bool:
    if row.schema.arguments[0].type is ScalarTypeType:
        # An int may be passed for a dtype, but has none of its attributes.
        return self is ScalarTypeType
    return not isinstance(match((row.schema.arguments[0].type,), (self,)), Mismatch)


# The place of registration in dumps.
ORIGIN = "script primitives"

_LOCK = waited_for()
_KEPT: dict[str, Library] = {}


def install(dispatcher: Dispatcher | None = None) -> Library:
    """Register every primitive; the library owns the registrations.

    On the default dispatcher this happens once; further calls return the same library.
    Raises `Conflict` if another library owns the namespace `script`.
    """
    if dispatcher is not None and dispatcher is not default_dispatcher():
        return _installed(dispatcher)
    with _LOCK:
        if NAMESPACE not in _KEPT:
            _KEPT[NAMESPACE] = _installed(default_dispatcher())
        return _KEPT[NAMESPACE]


def _installed(dispatcher: Dispatcher) -> Library:
    library = Library(NAMESPACE, "DEF", dispatcher=dispatcher, origin=ORIGIN)
    for row in ROWS:
        name = f"script_{str(row.schema.name).partition('::')[2]}".replace(".", "_")
        tags = row.tags if row.raises else (*row.tags, TOTAL)
        library.define(row.schema, kernel=direct(row.function, name), tags=tags)
    return library


install()
