"""Names, alias annotations, arguments, and signatures.

The written form of an operator or method, as values: `aten::add.out`, `(a|b! -> c)`,
`int[2] size=1`, and all of it together.  `runtime.schema.schema` adds the rules of
calls; modules below it (declarations, the order of types, binding) use a `Signature`.

Rules:
- `str` returns text that parses back to an equal value;
- `runtime.schema.parser` decides if a text *is* a name;
- alias sets are sorted and without repetition, the wildcard set `*` absorbs all others
  of its side, and a bare `!` is a separate set, called `FRESH`, that no other value is
  in afterwards; the annotation of a list's elements is `contained[0]` of the list's
  annotation;
- `type` is the type as written, `fake_type` is its type on the boxed stack.  Printing
  uses the first, equality the second: `SymInt x` equals `int x`;
- a default is stored in its boxed form: None, bool, int, float, complex, str, a device,
  or a *tuple* of such for a list.  Equality distinguishes 1, 1.0 and True;
- the alias-analysis kind is stored, but neither printed nor compared, and a copy under
  another name, or of other arguments or results, drops it: the code that registers the
  copy declares it again.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import total_ordering
from typing import Any, Final, Self

from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.schema.types import (
    DictType,
    IntType,
    ListType,
    OptionalType,
    Type,
    UnionType,
    fake,
    unwrap_optional,
)

# The scope operator between a namespace and a base name; source: the schema grammar.
SCOPE = "::"
# The alias set that may overlap with every other set.
WILDCARD = "*"
# The alias set of a bare `!`; no identifier can be spelled like it.
FRESH = "$"
# Escapes in quoted texts; every other control character is written in octal.
ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "'": "\\'",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


@total_ordering
@dataclass(frozen=True, slots=True)
class OperatorName:
    """A qualified `name` and an `overload`, which is empty for the usual operator."""

    name: str
    overload: str = ""

    @property
    def namespace(self) -> str | None:
        """Return the text before `::`, or None if the name is not qualified."""
        head, scope, _ = self.name.partition(SCOPE)
        return head if scope else None

    @property
    def base(self) -> str:
        """Return the name without its namespace and without its overload."""
        return self.name.rpartition(SCOPE)[2]

    def with_namespace(self, namespace: str) -> "OperatorName":
        """Return the same operator in `namespace`, which replaces its namespace."""
        return OperatorName(f"{namespace}{SCOPE}{self.base}", self.overload)

    def __lt__(self, other: "OperatorName") -> bool:
        return (self.name, self.overload) < (other.name, other.overload)

    def __call__(self) -> str:
        """Return the full name as text; programs for torch call the name."""
        return str(self)

    def __str__(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """Sets before and after the call; `is_write` if the call writes to the value."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_write: bool = False
    contained: tuple["AliasInfo", ...] = ()

    @property
    def is_wildcard_after(self) -> bool:
        """Return True if the value may share memory with anything after the call."""
        return WILDCARD in self.after

    @property
    def sets_before(self) -> frozenset[str]:
        """Return the sets before the call, including those of contained values."""
        inner = (each.sets_before for each in self.contained)
        return frozenset(self.before).union(*inner) - {FRESH}

    @property
    def sets_after(self) -> frozenset[str]:
        """Return the sets after the call, including those of contained values."""
        inner = (each.sets_after for each in self.contained)
        return frozenset(self.after).union(*inner) - {FRESH}

    def __str__(self) -> str:
        """Return the annotation itself, without that of contained values."""
        if not self.before:
            return ""
        if self.before == (FRESH,):
            return "!"
        write = "!" if self.is_write else ""
        after = "" if self.after == self.before else f" -> {'|'.join(self.after)}"
        return f"({'|'.join(self.before)}{write}{after})"


def normal_sets(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the normal form of a group of sets: sorted, or only the wildcard."""
    return (WILDCARD,) if WILDCARD in names else tuple(sorted(set(names)))


class AliasKind(Enum):
    """The source of an operator's alias relations between results and arguments."""

    INTERNAL_SPECIAL_CASE = "INTERNAL_SPECIAL_CASE"
    CONSERVATIVE = "CONSERVATIVE"
    FROM_SCHEMA = "FROM_SCHEMA"
    PURE_FUNCTION = "PURE_FUNCTION"

    def __str__(self) -> str:
        return self.value


# The texts that a registration may use; the empty one means FROM_SCHEMA.
_ALIAS_KINDS = {
    "": AliasKind.FROM_SCHEMA,
    "CONSERVATIVE": AliasKind.CONSERVATIVE,
    "FROM_SCHEMA": AliasKind.FROM_SCHEMA,
    "PURE_FUNCTION": AliasKind.PURE_FUNCTION,
}


def parse_alias_kind(text: str) -> AliasKind:
    """Return the kind that `text` names; `""` is FROM_SCHEMA.

    Raises:
        SchemaError: `text` is not a kind that a registration may choose.
    """
    try:
        return _ALIAS_KINDS[text]
    except KeyError:
        kinds = tuple(filter(None, _ALIAS_KINDS))
        raise SchemaError(code="UnknownAliasKind", found=text, known=kinds) from None


def default_identity(value: Any) -> Hashable:
    """Return a key that is equal for two defaults exactly if they are the same default.

    The kind of a value counts: 1, 1.0 and True are three defaults.  A tensor, which a
    program may have, is the same only as itself.
    """
    if isinstance(value, tuple):
        return tuple(map(default_identity, value))
    name = value.__class__.__name__
    return (name, id(value)) if hasattr(value, "key_bits") else (name, value)


def default_text(value: Any) -> str:
    """Return the default as the schema language writes it: quoted text, bare device."""
    if value is None or value is True or value is False:
        return str(value)
    if isinstance(value, str):
        return f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, float):
        return _real_text(value)
    if isinstance(value, complex):
        imaginary = _real_text(value.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{_real_text(value.real)}{sign}{imaginary}j"
    if isinstance(value, tuple):
        return f"[{', '.join(map(default_text, value))}]"
    return f"<{type(value).__name__}>" if hasattr(value, "key_bits") else str(value)


def _real_text(value: float) -> str:
    """Return seventeen significant digits, which are enough for every double.

    A whole number within 64 bits is written in full, closed by a point.
    """
    if value.is_integer() and abs(value) < 2.0**63 and (value or value.hex()[0] != "-"):
        return f"{int(value)}."
    text = f"{value:.17g}"
    return text if set(text) & set(".en") else f"{text}."


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    return char if char >= " " and char != "\x7f" else f"\\{ord(char):03o}"


class NoDefault:
    """The type of `NO_DEFAULT`; unpickling returns the one value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_DEFAULT"

    def __reduce__(self) -> str:
        return "NO_DEFAULT"


# Marks a required argument; None is a default like any other.
NO_DEFAULT: Final = NoDefault()
_INTEGERS = ListType(IntType)


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """An argument or a result; a result has neither default nor `kwarg_only`.

    `size` is the 2 of `int[2]`.
    """

    name: str
    type: Type
    size: int | None = None
    default: Any = NO_DEFAULT
    kwarg_only: bool = False
    alias: AliasInfo | None = None
    fake_type: Type = field(init=False, repr=False)
    _key: tuple[Hashable, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        boxed = fake(self.type)
        object.__setattr__(self, "fake_type", boxed)
        default = default_identity(self.default)
        key = (self.name, boxed, self.size, default, self.kwarg_only, self.alias)
        object.__setattr__(self, "_key", key)

    @property
    def has_default(self) -> bool:
        """Return True if a call may omit the argument."""
        return self.default is not NO_DEFAULT

    def has_default_value(self) -> bool:
        """Return `has_default`; this is torch's name for it."""
        return self.has_default

    @property
    def default_value(self) -> Any:
        """Return `default`, None if there is none; this is torch's name for it."""
        return self.default if self.has_default else None

    @property
    def alias_info(self) -> AliasInfo | None:
        """Return `alias`; this is torch's name for it."""
        return self.alias

    @property
    def is_write(self) -> bool:
        """Return True if a call writes to the value."""
        return self.alias is not None and self.alias.is_write

    @property
    def is_written_container(self) -> bool:
        """Return True if a call writes to a list or dictionary, the value or one in it.

        So for `t[](a!)`, `t[](a!)?` and `t[](a!)[]`, and not for `Tensor(a!)[]`.
        """
        return _writes_to_container(self.type, self.alias)

    @property
    def sets_before(self) -> frozenset[str]:
        """Return the alias sets of the value and its elements before a call."""
        return frozenset() if self.alias is None else self.alias.sets_before

    @property
    def sets_after(self) -> frozenset[str]:
        """Return the alias sets of the value and its elements after a call."""
        return frozenset() if self.alias is None else self.alias.sets_after

    @property
    def is_out(self) -> bool:
        """Return True if the caller passes it only to receive a result in it."""
        return self.kwarg_only and self.is_write

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Argument):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        """Return the argument as a schema writes it: type, name and default."""
        text = type_text(self.type, self.alias, self.size)
        if self.name:
            text = f"{text} {self.name}"
        return f"{text}={self._default_text()}" if self.has_default else text

    def _default_text(self) -> str:
        value = self.default
        if (
            self.type is _INTEGERS
            and isinstance(value, tuple)
            and len(value) == self.size
            and len(value) > 1
            and len(set(value)) == 1
        ):
            return default_text(value[0])
        return default_text(value)


def _writes_to_container(type_: Type, alias: AliasInfo | None) -> bool:
    """Return True if the annotated, written value may be a list or dictionary."""
    if alias is None:
        return False
    if isinstance(type_, OptionalType | UnionType):
        return any(_writes_to_container(each, alias) for each in type_.parts)
    if not isinstance(type_, ListType | DictType):
        return False
    inner = type_.parts[-1]
    return (alias.is_write and bool(alias.before)) or any(
        _writes_to_container(inner, each) for each in alias.contained
    )


def placed_alias(type: Type, alias: AliasInfo) -> AliasInfo:  # noqa: A002  # the field's own word
    """Return the annotation of a type at the place of its values: a list's elements."""
    inner = unwrap_optional(type)
    if not isinstance(inner, ListType):
        return alias
    element = placed_alias(inner.element, alias)
    return AliasInfo(is_write=alias.is_write, contained=(element,))


def type_text(type: Type, alias: AliasInfo | None, size: int | None = None) -> str:  # noqa: A002  # the field's own word
    """Return a type with its annotations where the parser expects them.

    An optional has the annotation of its element before the `?`; a list has its
    element's annotation before the brackets and its own after them.
    """
    if alias is None and size is None:
        return str(type)
    if isinstance(type, OptionalType):
        return f"{type_text(type.element, alias, size)}?"
    own = "" if alias is None else str(alias)
    if isinstance(type, ListType):
        inner = alias.contained[0] if alias and alias.contained else None
        number = "" if size is None else str(size)
        return f"{type_text(type.element, inner)}[{number}]{own}"
    return f"{type}{own}"


@dataclass(frozen=True, slots=True)
class Signature:
    """A name, arguments and results, as they are written."""

    name: OperatorName
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    is_vararg: bool = False
    is_varret: bool = False
    alias_kind: AliasKind | None = field(default=None, compare=False)

    @property
    def overload(self) -> str:
        """Return the overload of the name, empty for the usual one."""
        return self.name.overload

    @property
    def overload_name(self) -> str:
        """Return `overload`; this is torch's name for it."""
        return self.overload

    @property
    def kwarg_only_start(self) -> int:
        """Return the index of the first keyword-only argument, else their number."""
        for index, argument in enumerate(self.arguments):
            if argument.kwarg_only:
                return index
        return len(self.arguments)

    @property
    def is_mutable(self) -> bool:
        """Return True if a call writes to any of its arguments."""
        return any(argument.is_write for argument in self.arguments)

    @property
    def is_view(self) -> bool:
        """Return True if a result shares an argument's memory, without any write."""
        return not self.is_mutable and any(a.alias for a in self.arguments)

    def clone_with_name(self, name: OperatorName) -> Self:
        """Return the signature under `name`, without alias-analysis kind."""
        return replace(self, name=name, alias_kind=None)

    def clone_with_arguments(self, arguments: tuple[Argument, ...]) -> Self:
        """Return the signature with `arguments`, without alias-analysis kind."""
        return replace(self, arguments=arguments, alias_kind=None)

    def clone_with_returns(self, returns: tuple[Argument, ...]) -> Self:
        """Return the signature with `returns`, without alias-analysis kind."""
        return replace(self, returns=returns, alias_kind=None)

    def with_alias_kind(self, kind: AliasKind | None) -> Self:
        """Return the signature with this alias-analysis kind."""
        return self if kind is self.alias_kind else replace(self, alias_kind=kind)

    def __str__(self) -> str:
        start = self.kwarg_only_start
        items = [str(argument) for argument in self.arguments]
        if start < len(items):
            items.insert(start, "*")
        if self.is_vararg:
            items.append("...")
        results = [str(result) for result in self.returns]
        if self.is_varret:
            results.append("...")
        whole = len(results) == 1 and not results[0].startswith("(")
        text = results[0] if whole else f"({', '.join(results)})"
        return f"{self.name}({', '.join(items)}) -> {text}"
