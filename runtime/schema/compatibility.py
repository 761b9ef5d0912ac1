"""Whether callers survive the change of a schema.

True only here: what may change.  *Backward*: callers of the old schema work with the
new one.  *Forward*: callers of the new one, using what the old one knew, work with it.
An answer is a tuple of reasons, empty when the change is harmless.

Rule: out arguments (keyword-only, written to) stand last and are compared from their
own beginning, because new arguments are inserted before them.

The first difference that makes two signatures unlike.

What a kernel's signature is compared by (counts and types, nothing else: names,
defaults, sizes and alias annotations may differ), and in which order.
"""

from dataclasses import dataclass
from typing import Literal

from runtime.schema.schema import Schema
from runtime.schema.signature import Argument, default_identity
from runtime.schema.subtyping import is_subtype
from runtime.schema.types import IntType, ListType, OptionalType, SymIntType, Type

Reason = Literal[
    "name",
    "varargs",
    "returns",
    "arguments",
    "out arguments",
    "return type",
    "argument name",
    "argument size",
    "alias annotation",
    "keyword-only",
    "argument type",
    "default changed",
    "default added",
    "new without default",
    "removed without default",
    "new with list default",
]


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason: what it is about, and how it stands in the old and the new schema."""

    reason: Reason
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.old} became {self.new}"


def backward_incompatibilities(old: Schema, new: Schema) -> tuple[Incompatibility, ...]:
    """Why callers of `old` would fail with `new`."""
    found = _shape(old, new)
    if len(new.arguments) < len(old.arguments):
        found.append(Incompatibility("arguments", *_counts(old, new)))
    if found:
        return tuple(found)
    for before, after in zip(old.returns, new.returns, strict=True):
        found += _result(before, after, forward=False)
    start, new_start = _out_start(old), _out_start(new)
    for before, after in zip(old.arguments[:start], new.arguments, strict=False):
        found += _argument(before, after, forward=False)
    for added in new.arguments[start:new_start]:
        if not added.has_default:
            found.append(Incompatibility("new without default", "nothing", str(added)))
    outs = zip(old.arguments[start:], new.arguments[new_start:], strict=False)
    for before, after in outs:
        found += _argument(before, after, forward=False)
    missing = len(old.arguments) - start - (len(new.arguments) - new_start)
    if missing > 0:
        found.append(Incompatibility("out arguments", *_out_counts(old, new)))
    return tuple(found)


def forward_incompatibilities(old: Schema, new: Schema) -> tuple[Incompatibility, ...]:
    """Why callers of `new` would fail with `old`."""
    found = _shape(old, new)
    start, new_start = _out_start(old), _out_start(new)
    if _out_counts(old, new)[0] != _out_counts(old, new)[1]:
        found.append(Incompatibility("out arguments", *_out_counts(old, new)))
    if found:
        return tuple(found)
    for before, after in zip(old.returns, new.returns, strict=True):
        found += _result(before, after, forward=True)
    for removed in old.arguments[new_start:start]:
        if not removed.has_default:
            reason: Reason = "removed without default"
            found.append(Incompatibility(reason, str(removed), "nothing"))
    for before, after in zip(
        old.arguments[:start], new.arguments[:new_start], strict=False
    ):
        found += _argument(before, after, forward=True)
    for added in new.arguments[start:new_start]:
        if not added.has_default:
            found.append(Incompatibility("new without default", "nothing", str(added)))
        elif isinstance(added.default, tuple):
            reason = "new with list default"
            found.append(Incompatibility(reason, "nothing", str(added)))
    outs = zip(old.arguments[start:], new.arguments[new_start:], strict=True)
    for before, after in outs:
        found += _argument(before, after, forward=True)
    return tuple(found)


def _shape(old: Schema, new: Schema) -> list[Incompatibility]:
    """Differences that leave nothing to compare."""
    found: list[Incompatibility] = []
    if old.name != new.name:
        found.append(Incompatibility("name", str(old.name), str(new.name)))
    if (old.is_vararg, old.is_varret) != (new.is_vararg, new.is_varret):
        found.append(Incompatibility("varargs", str(old), str(new)))
    if len(old.returns) != len(new.returns):
        counts = str(len(old.returns)), str(len(new.returns))
        found.append(Incompatibility("returns", *counts))
    return found


def _argument(old: Argument, new: Argument, *, forward: bool) -> list[Incompatibility]:
    texts = str(old), str(new)
    narrow, wide = (new, old) if forward else (old, new)
    reasons: dict[Reason, bool] = {
        "argument name": old.name != new.name,
        "argument size": old.size != new.size,
        "alias annotation": old.alias != new.alias,
        "keyword-only": new.kwarg_only and not old.kwarg_only,
        "argument type": not is_subtype(narrow.type, wide.type),
        "default changed": old.has_default and not _same_default(old, new),
        "default added": forward and new.has_default and not old.has_default,
    }
    return [
        Incompatibility(reason, *texts) for reason, holds in reasons.items() if holds
    ]


def _result(old: Argument, new: Argument, *, forward: bool) -> list[Incompatibility]:
    """A result stays what its readers expect, and shares what it shared."""
    found: list[Incompatibility] = []
    texts = str(old), str(new)
    given, wanted = (old, new) if forward else (new, old)
    if not is_subtype(given.type, wanted.type):
        found.append(Incompatibility("return type", *texts))
    if old.alias != new.alias:
        found.append(Incompatibility("alias annotation", *texts))
    return found


def _same_default(old: Argument, new: Argument) -> bool:
    return default_identity(old.default) == default_identity(new.default)


def _out_start(schema: Schema) -> int:
    for index, argument in enumerate(schema.arguments):
        if argument.is_out:
            return index
    return len(schema.arguments)


def _counts(old: Schema, new: Schema) -> tuple[str, str]:
    return str(len(old.arguments)), str(len(new.arguments))


def _out_counts(old: Schema, new: Schema) -> tuple[str, str]:
    first = len(old.arguments) - _out_start(old)
    return str(first), str(len(new.arguments) - _out_start(new))


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
