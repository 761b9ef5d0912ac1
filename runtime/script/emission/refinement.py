"""Refinement: what a condition says of the variables in it, where it holds or does not.

These conditions say something; some are known before the program runs:

    x is None, x is not None, isinstance(x, T), x (of an optional), and
    `not`, `and`, `or` of these

Rules:
- only names of variables are looked at: what an attribute or element holds may change;
- what is known before the program runs is a bool, and the part that then never runs is
  not compiled: what types decide, constants, `hasattr`;
- what a condition says holds until the variable is assigned.
"""

import ast
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runtime.schema.subtype import is_subtype
from runtime.schema.types import (
    AnyType,
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    TupleType,
    Type,
    UnionType,
)
from runtime.schema.unions import union
from runtime.script.emission.emitter import Emitter
from runtime.script.emission.sugar import (
    Refined,
    SimpleValue,
    Sugared,
    sugar_of_value,
    type_of,
)
from runtime.script.ir import Value

T = TypeVar("T")
# The classes whose values are of many types.
_MANY: Mapping[Any, type[Type]] = {list: ListType, dict: DictType, tuple: TupleType}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: whether it holds, and the types of variables if it does, or not."""

    truth: Value | bool
    positive: Mapping[str, Type] = field(default_factory=dict)
    negative: Mapping[str, Type] = field(default_factory=dict)

    def holding(
        self, e: Emitter, truth: bool, emit: Callable[[], T]
    ) -> Callable[[], T]:
        """`emit`, where the condition is as said; the variables are as before then."""

        def run() -> T:
            before = dict(e.names)
            refine(e, self.positive if truth else self.negative)
            result = emit()
            for name, one in before.items():
                if getattr(e.names.get(name), "original", None) is one:
                    e.names[name] = one
            return result

        return run

    def swapped(self) -> "Condition":
        """Its opposite; the truth is the business of whoever asks."""
        return Condition(self.truth, self.negative, self.positive)


def refine(e: Emitter, types: Mapping[str, Type]) -> None:
    """Let variables be of the types that a condition has said."""
    for name, one in types.items():
        known = e.names.get(name)
        if isinstance(known, SimpleValue) and known.type is not one:
            made = e.cast(known.node_value, one)
            # What types have methods of their own say so of the refined value, too.
            plain = sugar_of_value(made)
            if type(plain) is SimpleValue:
                e.names[name] = Refined(made, known)
            else:
                e.names[name] = plain


def condition(e: Emitter, node: ast.expr, known: Sugared | None = None) -> Condition:
    """What a condition says; `known` is what it was found to mean, if it was."""
    before = e.at
    if known is None:
        e.at = e.at._replace(source=e.source, span=e.source.span(node))
    found = _condition(e, node, known)
    e.at = before
    if isinstance(found.truth, bool):
        e.decided[node] = found.truth
    return found


def _condition(e: Emitter, node: ast.expr, known: Sugared | None) -> Condition:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(e, node.operand).swapped() if known is None else None
        if inner is None:
            return Condition(_truth(e, known))
        truth = inner.truth
        if isinstance(truth, bool):
            return Condition(not truth, inner.positive, inner.negative)
        made = e.operator("script::not_.bool", truth)
        return Condition(made, inner.positive, inner.negative)
    if isinstance(node, ast.BoolOp) and known is None:
        return _several(e, node, list(node.values))
    name = _optional(e, node)
    if name is not None:
        variable, is_none, some = name
        truth = _truth(e, e.expression(node) if known is None else known)
        there: dict[str, Type] = {variable: some}
        none: dict[str, Type] = {variable: NoneType_}
        return Condition(truth, none if is_none else there, there if is_none else none)
    test = _isinstance(e, node)
    if test is not None:
        return test
    found = e.expression(node) if known is None else known
    truth = _truth(e, found)
    if isinstance(node, ast.Name):
        kind = type_of(found)
        if isinstance(kind, OptionalType):
            return Condition(truth, {node.id: kind.element})
    return Condition(truth)


def _truth(e: Emitter, found: Sugared | None) -> Value | bool:
    assert found is not None, "something is asked"
    return found.truth(e)


def _several(e: Emitter, node: ast.BoolOp, rest: list[ast.expr]) -> Condition:
    """`x and y`, `x or y` as conditions."""
    first = condition(e, rest[0])
    if len(rest) == 1:
        return first
    is_and = isinstance(node.op, ast.And)
    if isinstance(first.truth, bool) and first.truth is not is_and:
        return first
    made: list[Condition] = []

    def later() -> Value | bool:
        found = _several(e, node, rest[1:])
        made.append(found)
        return found.truth

    if isinstance(first.truth, bool):
        second = first.holding(e, is_and, later)()
        return Condition(second, made[0].positive, made[0].negative)
    if_ = e.node("prim::If", (first.truth,))

    def run() -> None:
        second = first.holding(e, is_and, later)()
        e.block.add_result(e.constant(second) if isinstance(second, bool) else second)

    def short() -> None:
        e.block.add_result(e.constant(not is_and))

    e.branch(if_, run if is_and else short)
    e.branch(if_, short if is_and else run)
    truth = if_.add_output(BoolType)
    if is_and:
        return Condition(truth, {**first.positive, **made[0].positive})
    return Condition(truth, {}, {**first.negative, **made[0].negative})


def _optional(e: Emitter, node: ast.expr) -> tuple[str, bool, Type] | None:
    """The variable that `x is None` asks, whether it is that, and its other type."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    (op,) = node.ops
    if not isinstance(op, ast.Is | ast.IsNot):
        return None
    sides = [node.left, node.comparators[0]]
    names = [each for each in sides if isinstance(each, ast.Name)]
    nones = [
        each for each in sides if isinstance(each, ast.Constant) and each.value is None
    ]
    if len(names) != 1 or len(nones) != 1:
        return None
    kind = type_of(e.names.get(names[0].id) or SugarlessName())
    if not isinstance(kind, OptionalType):
        return None
    return names[0].id, isinstance(op, ast.Is), kind.element


class SugarlessName(Sugared):
    """A name that is no variable."""

    __slots__ = ()


def _isinstance(e: Emitter, node: ast.expr) -> Condition | None:
    """`isinstance(x, T)`, if that is what the node is."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return None
    if not is_isinstance(_object(e, node.func)):
        return None
    value = e.expression(node.args[0])
    return instance_test(e, value, node.args[0], node.args[1])


def _object(e: Emitter, node: ast.expr) -> Any:
    """The object of Python that a name, or `module.name`, is; None of all else."""
    if isinstance(node, ast.Attribute):
        owner = _object(e, node.value)
        is_module = isinstance(owner, types.ModuleType)
        return getattr(owner, node.attr, None) if is_module else None
    if not isinstance(node, ast.Name) or node.id in e.names:
        return None
    try:
        return e.find(node.id)
    except LookupError:
        return None


# The functions that are `isinstance`, by identity; the runtime has one, too.
INSTANCE_TESTS: list[Any] = [isinstance]


def is_isinstance(python: Any) -> bool:
    """Whether an object is `isinstance`, or what does the same in programs."""
    return any(python is each for each in INSTANCE_TESTS)


def instance_test(
    e: Emitter, value: Sugared, asked: ast.expr, kinds: ast.expr
) -> Condition:
    """Whether a value is of some types."""
    kind = type_of(value)
    if kind is None:
        if not value.elements(e):
            e.fail(f"`isinstance` is asked of {value.says()}", "Ask it of a value.")
        value = SimpleValue(value.value(e))
        kind = type_of(value)
        assert kind is not None, "values have types"
    tests = _tests(e, kinds)
    yes: list[Type] = []
    no: list[Type] = []
    asks: list[Type] = []
    for member in _members(kind):
        if any(_surely(member, each) for each in tests):
            yes.append(member)
            asks.append(member)
            continue
        narrower = [
            each
            for each in tests
            if isinstance(each, Type) and is_subtype(each, member)
        ]
        if member is AnyType and any(not isinstance(each, Type) for each in tests):
            e.fail(
                "`isinstance` asks a value of type Any for a class of many types",
                "Name the type: `list[int]` for `list`.",
            )
        yes += narrower
        asks += narrower
        no.append(member)
    if not yes or not no:
        return Condition(not no)
    assert isinstance(value, SimpleValue), "what has a type is a value"
    attributes = {"types": tuple(asks)}
    truth = e.node(
        "prim::isinstance", (value.node_value,), (BoolType,), attributes
    ).output
    if not isinstance(asked, ast.Name) or asked.id not in e.names:
        return Condition(truth)
    rest = {asked.id: union(no)} if AnyType not in no else {}
    return Condition(truth, {asked.id: union(yes)}, rest)


def _members(kind: Type) -> list[Type]:
    if isinstance(kind, OptionalType):
        return [*_members(kind.element), NoneType_]
    if isinstance(kind, UnionType):
        return [each for one in kind.members for each in _members(one)]
    if kind is NumberType:
        return [IntType, FloatType, ComplexType]
    return [kind]


def _surely(member: Type, test: Any) -> bool:
    if not isinstance(test, Type):
        return isinstance(member, test)
    # In Python a bool is an int.
    return is_subtype(member, test) or (member is BoolType and test is IntType)


def _tests(e: Emitter, node: ast.expr) -> list[Any]:
    """The types, or classes of types, that are asked for."""
    if isinstance(node, ast.Tuple):
        return [each for one in node.elts for each in _tests(e, one)]
    if isinstance(node, ast.Name):
        try:
            python = e.find(node.id)
        except LookupError:
            python = None
        if isinstance(python, tuple):
            found = []
            for each in python:
                many = _MANY.get(each)
                found.append(many or e.compiler.type_of_class(e, each))
            return found
        if isinstance(python, type) and python in _MANY:
            return [_MANY[python]]
    return _members(e.annotations.type(node))


def branches(e: Emitter, found: Condition) -> bool | None:
    """Which branch is the only one, or None."""
    return found.truth if isinstance(found.truth, bool) else None
