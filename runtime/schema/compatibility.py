"""Differences of two schemas: for kernels, and for callers of a new version.

`difference` is the first difference between the signature of a kernel and that of its
definition: counts and types, nothing else; names, defaults, sizes and alias annotations
may differ.

The incompatibilities define which changes of a schema are allowed.  *Backward*: callers
of the old schema work with the new one.  *Forward*: callers of the new one that use
only features of the old one work with it.  An answer is a tuple of reasons, empty if
the change is compatible.  Out arguments (keyword-only, written to) come last and are
compared from the first of them, because new arguments are inserted before them.
"""

from dataclasses import dataclass
from typing import Literal

from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument, default_identity
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import IntType, SymIntType, Type, replace_type

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


_Arguments = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """One difference; `index` counts from 1 and is None if the counts differ."""

    noun: Literal["argument", "result"]
    index: int | None
    left: str
    right: str

    def __str__(self) -> str:
        """Return the difference as half a sentence, without a full stop."""
        what = f"{self.noun} {self.index} differs in type"
        if self.index is None:
            what = f"the numbers of {self.noun}s differ"
        return f"{what}: {self.left} and {self.right}"


def difference(
    left: Schema, right: Schema, *, real: bool = False
) -> SchemaDifference | None:
    """Return the first difference between two signatures, or None.

    Types are compared as on the boxed stack.  With `real`, as for the kernel of a
    definition, enum types are compared as written (`ScalarType` is not `int`) and only
    symbolic integers are plain ones.
    """
    pairs: tuple[tuple[Literal["argument", "result"], _Arguments, _Arguments], ...] = (
        ("argument", left.arguments, right.arguments),
        ("result", left.returns, right.returns),
    )
    for noun, ours, theirs in pairs:
        if len(ours) != len(theirs):
            return SchemaDifference(noun, None, str(len(ours)), str(len(theirs)))
    for noun, ours, theirs in pairs:
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
            if one.type is other.type:
                continue
            types = one.fake_type, other.fake_type
            if real:
                types = _plain(one), _plain(other)
            if types[0] is not types[1]:
                return SchemaDifference(noun, index, str(types[0]), str(types[1]))
    return None


def _plain(argument: Argument) -> Type:
    return replace_type(argument.type, SymIntType, IntType)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason: its subject, and its form in the old and in the new schema."""

    reason: Reason
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.old} became {self.new}"


def backward_incompatibilities(old: Schema, new: Schema) -> tuple[Incompatibility, ...]:
    """Return why callers of `old` would fail with `new`."""
    return _incompatibilities(old, new, forward=False)


def forward_incompatibilities(old: Schema, new: Schema) -> tuple[Incompatibility, ...]:
    """Return why callers of `new` would fail with `old`."""
    return _incompatibilities(old, new, forward=True)


def _incompatibilities(
    old: Schema, new: Schema, *, forward: bool
) -> tuple[Incompatibility, ...]:
    start, new_start = _out_start(old), _out_start(new)
    outs, new_outs = old.arguments[start:], new.arguments[new_start:]
    counts = _counted("out arguments", outs, new_outs)
    reasons = _shape(old, new)
    if forward and len(outs) != len(new_outs):
        reasons.append(counts)
    if not forward and len(new.arguments) < len(old.arguments):
        reasons.append(_counted("arguments", old.arguments, new.arguments))
    if reasons:
        return tuple(reasons)
    for before, after in zip(old.returns, new.returns, strict=True):
        reasons += _result(before, after, forward=forward)
    for removed in old.arguments[new_start:start] if forward else ():
        if not removed.has_default:
            reason: Reason = "removed without default"
            reasons.append(Incompatibility(reason, str(removed), "nothing"))
    others = new.arguments[:new_start] if forward else new.arguments
    for before, after in zip(old.arguments[:start], others, strict=False):
        reasons += _argument(before, after, forward=forward)
    for added in new.arguments[start:new_start]:
        if not added.has_default:
            reasons.append(
                Incompatibility("new without default", "nothing", str(added))
            )
        elif forward and isinstance(added.default, tuple):
            reason = "new with list default"
            reasons.append(Incompatibility(reason, "nothing", str(added)))
    for before, after in zip(outs, new_outs, strict=False):
        reasons += _argument(before, after, forward=forward)
    if len(outs) > len(new_outs):
        reasons.append(counts)
    return tuple(reasons)


def _shape(old: Schema, new: Schema) -> list[Incompatibility]:
    """Return differences after which the rest cannot be compared."""
    reasons: list[Incompatibility] = []
    if old.name != new.name:
        reasons.append(Incompatibility("name", str(old.name), str(new.name)))
    if (old.is_vararg, old.is_varret) != (new.is_vararg, new.is_varret):
        reasons.append(Incompatibility("varargs", str(old), str(new)))
    if len(old.returns) != len(new.returns):
        reasons.append(_counted("returns", old.returns, new.returns))
    return reasons


def _counted(reason: Reason, old: _Arguments, new: _Arguments) -> Incompatibility:
    return Incompatibility(reason, str(len(old)), str(len(new)))


def _out_start(schema: Schema) -> int:
    for index, argument in enumerate(schema.arguments):
        if argument.is_out:
            return index
    return len(schema.arguments)


def _argument(old: Argument, new: Argument, *, forward: bool) -> list[Incompatibility]:
    narrow, wide = (new, old) if forward else (old, new)
    same_default = default_identity(old.default) == default_identity(new.default)
    return _reasons(
        old,
        new,
        {
            "argument name": old.name != new.name,
            "argument size": old.size != new.size,
            "alias annotation": old.alias != new.alias,
            "keyword-only": new.kwarg_only and not old.kwarg_only,
            "argument type": not is_subtype(narrow.type, wide.type),
            "default changed": old.has_default and not same_default,
            "default added": forward and new.has_default and not old.has_default,
        },
    )


def _result(old: Argument, new: Argument, *, forward: bool) -> list[Incompatibility]:
    """Compare results: a new one must fit the old type, with the same alias sets."""
    narrow, wide = (old, new) if forward else (new, old)
    return _reasons(
        old,
        new,
        {
            "return type": not is_subtype(narrow.type, wide.type),
            "alias annotation": old.alias != new.alias,
        },
    )


def _reasons(
    old: Argument, new: Argument, reasons: dict[Reason, bool]
) -> list[Incompatibility]:
    texts = str(old), str(new)
    return [
        Incompatibility(reason, *texts) for reason, is_so in reasons.items() if is_so
    ]
