"""The first difference that makes two signatures unlike.

What a kernel's signature is compared by (counts and types, nothing else: names,
defaults, sizes and alias annotations may differ), and in which order.
"""

from dataclasses import dataclass
from typing import Literal

from runtime.schema.argument import Argument
from runtime.schema.schema import Schema
from runtime.schema.types import IntType, ListType, OptionalType, SymIntType, Type


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs; `index` counts from 1 and is None where the counts differ."""

    kind: Literal["arguments", "returns", "argument", "return"]
    index: int | None
    left: str
    right: str

    def __str__(self) -> str:
        """The difference as half a sentence, without a full stop."""
        if self.index is None:
            noun = {"arguments": "arguments", "returns": "results"}[self.kind]
            return f"the numbers of {noun} differ: {self.left} and {self.right}"
        noun = {"argument": "argument", "return": "result"}[self.kind]
        return f"{noun} {self.index} differs in type: {self.left} and {self.right}"


def difference(left: Schema, right: Schema, *, real: bool = False) -> Difference | None:
    """The first difference between two signatures, or None.

    Types are compared as they look on the boxed stack.  With `real`, as for the
    kernel of a definition, codes are compared as written (`ScalarType` is not `int`)
    and only symbolic integers are plain ones.
    """
    counts = _in_count("arguments", left.arguments, right.arguments)
    counts = counts or _in_count("returns", left.returns, right.returns)
    if counts:
        return counts
    return _in_types("argument", left.arguments, right.arguments, real) or _in_types(
        "return", left.returns, right.returns, real
    )


def _in_count(
    kind: Literal["arguments", "returns"],
    left: tuple[Argument, ...],
    right: tuple[Argument, ...],
) -> Difference | None:
    if len(left) == len(right):
        return None
    return Difference(kind, None, str(len(left)), str(len(right)))


def _in_types(
    kind: Literal["argument", "return"],
    left: tuple[Argument, ...],
    right: tuple[Argument, ...],
    real: bool,
) -> Difference | None:
    for index, (ours, theirs) in enumerate(zip(left, right, strict=True), 1):
        if ours.type is theirs.type:
            continue
        one, other = _compared(ours, real), _compared(theirs, real)
        if one != other:
            return Difference(kind, index, str(one), str(other))
    return None


def _compared(argument: Argument, real: bool) -> Type:
    return _plain(argument.type) if real else argument.fake_type


def _plain(type: Type) -> Type:  # noqa: A002  # the field's own word
    """`type` with symbolic integers made plain."""
    if type == SymIntType:
        return IntType
    if isinstance(type, ListType | OptionalType):
        return type.__class__(_plain(type.element))
    return type
