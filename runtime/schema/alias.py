"""What an argument shares with other arguments and results, and who promises it.

True only here: the alias annotation `(a|b! -> c)` as a value, its text, and the kinds
of alias analysis an operator can be registered with.

Rules:
- sets are kept sorted and without repetition, so equal annotations are equal values;
- the wildcard set `*` swallows all others of its side;
- a bare `!` is a set of its own, called `FRESH`, that no other value is in afterwards;
- the annotation of a list element is `contained[0]` of the list's annotation.
"""

from dataclasses import dataclass
from enum import Enum

from runtime.errors.schema import SchemaError

# The set that may overlap with every other set.
WILDCARD = "*"
# The set of a bare `!`; no identifier can be spelled like it.
FRESH = "$"


@dataclass(frozen=True, slots=True)
class AliasInfo:
    """Sets before and after the call, and whether the call writes to the value."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    is_write: bool = False
    contained: tuple["AliasInfo", ...] = ()

    @property
    def is_wildcard_after(self) -> bool:
        """Whether the value may share memory with anything after the call."""
        return WILDCARD in self.after

    @property
    def sets_before(self) -> frozenset[str]:
        """The sets before the call, those of contained values too."""
        inner = frozenset[str]().union(*(each.sets_before for each in self.contained))
        return inner.union(self.before) - {FRESH}

    @property
    def sets_after(self) -> frozenset[str]:
        """The sets after the call, those of contained values too."""
        inner = frozenset[str]().union(*(each.sets_after for each in self.contained))
        return inner.union(self.after) - {FRESH}

    def __str__(self) -> str:
        """The annotation itself, without that of contained values."""
        if not self.before:
            return ""
        if self.before == (FRESH,):
            return "!"
        write = "!" if self.is_write else ""
        after = "" if self.after == self.before else f" -> {'|'.join(self.after)}"
        return f"({'|'.join(self.before)}{write}{after})"


def normal_sets(names: tuple[str, ...]) -> tuple[str, ...]:
    """The one normal form of a group of sets: sorted, or only the wildcard."""
    return (WILDCARD,) if WILDCARD in names else tuple(sorted(set(names)))


class AliasKind(Enum):
    """Who knows what an operator's results share with its arguments."""

    INTERNAL_SPECIAL_CASE = "INTERNAL_SPECIAL_CASE"
    CONSERVATIVE = "CONSERVATIVE"
    FROM_SCHEMA = "FROM_SCHEMA"
    PURE_FUNCTION = "PURE_FUNCTION"

    def __str__(self) -> str:
        return self.value


# The words a registration may use; the empty word is what a schema string means.
_WORDS = {
    "": AliasKind.FROM_SCHEMA,
    "CONSERVATIVE": AliasKind.CONSERVATIVE,
    "FROM_SCHEMA": AliasKind.FROM_SCHEMA,
    "PURE_FUNCTION": AliasKind.PURE_FUNCTION,
}


def parse_alias_kind(text: str) -> AliasKind:
    """The kind that `text` names; `""` is FROM_SCHEMA.

    Raises:
        SchemaError: `text` names no kind that a registration may choose.
    """
    try:
        return _WORDS[text]
    except KeyError:
        known = tuple(word for word in _WORDS if word)
        raise SchemaError(code="UnknownAliasKind", found=text, known=known) from None
