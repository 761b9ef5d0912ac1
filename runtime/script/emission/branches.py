"""Branches: types that conditions imply for variables, and joins of variables after
branches.

These conditions refine types; some are decided at compile time:

    x is None, x is not None, isinstance(x, T), x (of an optional), and
    `not`, `and`, `or` of these

Rules of conditions:
- only variables are refined: the value of an attribute or element may change;
- the truth of a condition decided at compile time is a bool, and the unreachable part
  is not compiled: conditions decided by types, constants, `hasattr`;
- a refinement is valid until the variable is assigned.

Rules of joins:
- a variable has the least common type after a branch; if there is none, it is a
  `TypeConflict`, and only its use is an error;
- sugar that is not a value (a range, a bound method) survives if only one branch
  continues: its values become outputs of the branch; if several branches continue it is
  `NoValue`, and only its use is an error;
- a variable that a branch does not assign is `prim::Uninitialized` there: uses that may
  precede the assignment are refused (`runtime.script.frontend.scopes`).
"""

import ast
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from everyorder.runtime.errors.script import IllTyped
from everyorder.runtime.schema.subtyping import Mismatch, is_subtype, union
from everyorder.runtime.schema.types import (
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
from everyorder.runtime.script.emission.emitter import (
    FLAGS,
    RESULT,
    WAYS,
    Branch,
    Emitter,
    Holder,
    Sugared,
)
from everyorder.runtime.script.emission.sugar import (
    Refined,
    SimpleValue,
    sugar_of_value,
    type_of,
    type_of_class,
)
from everyorder.runtime.script.frontend import Exit
from everyorder.runtime.script.ir import Node, Place, Value
from everyorder.runtime.script.ir.program import is_of_type


class TypeConflict:
    """A variable whose values have types without a common type."""

    __slots__ = ("mismatch", "places")

    def __init__(
        self, mismatch: Mismatch, places: Sequence[tuple[Type, Place | None]]
    ) -> None:
        self.mismatch = mismatch
        self.places = places

    def refusal(self, variable: str) -> tuple[str, str]:
        """Return the error about its use, and the hint."""
        return (
            f"`{variable}` is of several types here: {self.mismatch.reason}",
            "Use two names, or annotate the variable with a type of both.",
        )


class NoValue(TypeConflict):
    """A variable that is not a value, after the branch or loop that has assigned it."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what
        self.places = ()

    def refusal(self, variable: str) -> tuple[str, str]:
        """Return the error about its use, and the hint."""
        return (
            f"`{variable}` is not known behind the branch or loop that assigns it: "
            f"it is {self.what}, which is not a value",
            "Assign it where it is used, or make a value of it.",
        )


def join(e: Emitter, node: Node, branches: Sequence[Branch]) -> None:
    """Join the variables at the ends of branches after the node."""
    exits = Exit.NOWHERE
    for each in branches:
        exits |= each.exits
    living = [each for each in branches if each.goes_on]
    names = dict(e.names)
    keys = dict.fromkeys(
        key
        for each in living
        for key, one in each.names.items()
        if key[0] != "$" and one is not e.names.get(key)
    )
    keys |= dict.fromkeys(
        key for each in living for key in e.names if key not in each.names
    )
    for key in keys:
        if key[0] != "$":
            _meet(e, node, key, branches, living, names)
    if Exit.RETURN in exits:
        returning = [each for each in branches if Exit.RETURN in each.exits]
        _meet(e, node, RESULT, branches, returning, names)
    ways = exits & WAYS
    for way, flag in FLAGS.items():
        if way in ways and ways is not way:
            values = [_flag(e, each, way, flag) for each in branches]
            names[flag] = _output(e, node, branches, values, BoolType, flag[1:])
    e.names, e.exits = names, exits


def _flag(e: Emitter, branch: Branch, way: Exit, flag: str) -> Value:
    ways = branch.exits & WAYS
    if flag in branch.names and way in ways and ways is not way:
        flag_value: Value = branch.names[flag]
        return flag_value
    with e.in_block(branch.block):
        return e.constant(ways is way)


def _meet(
    e: Emitter,
    node: Node,
    key: str,
    branches: Sequence[Branch],
    living: Sequence[Branch],
    names: dict[str, Any],
) -> None:
    """Compute the variable `key` after the node, and store it in `names`."""
    ones = [each.names.get(key) for each in living]
    present = [each for each in ones if each is not None]
    before = e.names.get(key)
    if not present:
        names.pop(key, None)
        return
    if len(ones) > 1 and all(
        getattr(each, "original", each) is before for each in ones
    ):
        # The refinement of a condition is valid only in its branch.
        return
    first = present[0]
    if all(each is first for each in ones):
        if first is before:
            names[key] = first
            return
        if not hasattr(first, "node_value") and isinstance(first, Holder):
            names[key] = _brought_out(e, node, branches, living, first)
            return
    for each in present:
        if isinstance(each, TypeConflict):
            names[key] = each
            return
    values: list[Value | None] = []
    for branch in branches:
        one = branch.names.get(key) if branch in living else None
        branch_value = None if one is None else _value_in(e, branch, one)
        if isinstance(branch_value, NoValue):
            names[key] = branch_value
            return
        values.append(branch_value)
    present_values = [each for each in values if each is not None]
    common = e.common(present_values)
    types = [each.type for each in present_values]
    if isinstance(common, Mismatch):
        declared = e.declared.get(key)
        if declared is None or not all(is_subtype(one, declared) for one in types):
            places = [(each.type, each.node.place) for each in present_values]
            names[key] = TypeConflict(common, places)
            return
        common = declared
    names[key] = sugar_of_value(_output(e, node, branches, values, common, key))


def _value_in(e: Emitter, branch: Branch, one: Any) -> Value | NoValue:
    with e.in_block(branch.block):
        return value_or_none(e, one)


def value_or_none(e: Emitter, one: Any) -> Value | NoValue:
    """Return the value of a variable after a branch or a loop, or `NoValue`."""
    try:
        value: Value = one.value(e)
    except IllTyped as error:
        if error.code != "IllTyped":
            raise
        return NoValue(one.describe())
    return value


def _brought_out(
    e: Emitter,
    node: Node,
    branches: Sequence[Branch],
    living: Sequence[Branch],
    one: Holder,
) -> Holder:
    """Return sugar that is not a value, with its values as outputs of the branch."""
    outputs: dict[Value, Value] = {}
    block = living[0].block

    def outside(value: Value) -> Value:
        if not value.node.is_within(block):
            return value
        if value not in outputs:
            values = [value if each is living[0] else None for each in branches]
            outputs[value] = _output(e, node, branches, values, value.type, value.hint)
        return outputs[value]

    return one.with_values(outside)


def _output(
    e: Emitter,
    node: Node,
    branches: Sequence[Branch],
    values: Sequence[Value | None],
    type_: Type,
    hint: str,
) -> Value:
    for branch, value in zip(branches, values, strict=True):
        with e.in_block(branch.block):
            result = e.uninitialized(type_) if value is None else value
        branch.block.add_result(result)
    return node.add_output(type_, hint.strip("$"))


def exit_flag(e: Emitter) -> Value:
    """Return True in the graph if control has left by an exit, as a value."""
    flags = [
        e.names[flag]
        for way, flag in FLAGS.items()
        if way in e.exits and flag in e.names
    ]
    return any_of(e, flags)


def any_of(e: Emitter, flags: Sequence[Value]) -> Value:
    """Return a value that is True if one of the flags, at least one, is set."""
    result = flags[0]
    for each in flags[1:]:
        result = e.operator("script::or_.bool", result, each)
    return result


def fail_conflict(e: Emitter, variable: str, one: TypeConflict) -> NoReturn:
    """Refuse the use of a variable that has values of types without a common type.

    Raises:
        IllTyped: always.
    """
    others = [(f"It is of type {kind} here", place) for kind, place in one.places]
    e.fail(*one.refusal(variable), others)


# Conditions

T = TypeVar("T")
# The classes whose values have many types.
_MANY: Mapping[Any, type[Type]] = {list: ListType, dict: DictType, tuple: TupleType}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: its truth, and the types of variables if it is true, or false."""

    truth: Value | bool
    positive: Mapping[str, Type] = field(default_factory=dict)
    negative: Mapping[str, Type] = field(default_factory=dict)

    def holding(
        self, e: Emitter, truth: bool, emit: Callable[[], T]
    ) -> Callable[[], T]:
        """Return `emit`, run under the types that the condition implies."""

        def run() -> T:
            before = dict(e.names)
            refine(e, self.positive if truth else self.negative)
            result = emit()
            for name, one in before.items():
                if getattr(e.names.get(name), "original", None) is one:
                    e.names[name] = one
            return result

        return run


def refine(e: Emitter, types: Mapping[str, Type]) -> None:
    """Refine variables to the types that a condition implies."""
    for name, one in types.items():
        current = e.names.get(name)
        if isinstance(current, SimpleValue) and current.type is not one:
            refined = e.cast(current.node_value, one)
            # Types with special sugar need it for the refined value, too.
            plain = sugar_of_value(refined)
            if type(plain) is SimpleValue:
                e.names[name] = Refined(refined, current)
            else:
                e.names[name] = plain


def condition(e: Emitter, node: ast.expr, sugar: Sugared | None = None) -> Condition:
    """Return a condition; `sugar` is that of the expression if already emitted."""
    before = e.place
    if sugar is None:
        e.place = e.place._replace(source=e.source, span=e.source.span(node))
    result = _condition(e, node, sugar)
    e.place = before
    if isinstance(result.truth, bool):
        e.known_conditions[node] = result.truth
    return result


def _condition(e: Emitter, node: ast.expr, sugar: Sugared | None) -> Condition:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        if sugar is not None:
            return Condition(sugar.truth(e))
        inner = condition(e, node.operand)
        truth = inner.truth
        if isinstance(truth, bool):
            return Condition(not truth, inner.negative, inner.positive)
        negated = e.operator("script::not_.bool", truth)
        return Condition(negated, inner.negative, inner.positive)
    if isinstance(node, ast.BoolOp) and sugar is None:
        return _several(e, node, list(node.values))
    none_test = _optional(e, node)
    test = _isinstance(e, node) if none_test is None else None
    if test is not None:
        return test
    operand = e.expression(node) if sugar is None else sugar
    truth = operand.truth(e)
    if none_test is not None:
        variable, is_none, other_type = none_test
        there: dict[str, Type] = {variable: other_type}
        none: dict[str, Type] = {variable: NoneType_}
        return Condition(truth, none if is_none else there, there if is_none else none)
    kind = type_of(operand)
    if isinstance(node, ast.Name) and isinstance(kind, OptionalType):
        return Condition(truth, {node.id: kind.element})
    return Condition(truth)


def _several(e: Emitter, node: ast.BoolOp, rest: list[ast.expr]) -> Condition:
    """Emit `x and y`, `x or y` as conditions."""
    first = condition(e, rest[0])
    if len(rest) == 1:
        return first
    is_and = isinstance(node.op, ast.And)
    if isinstance(first.truth, bool) and first.truth is not is_and:
        return first
    second_conditions: list[Condition] = []

    def later() -> Value | bool:
        second = _several(e, node, rest[1:])
        second_conditions.append(second)
        return second.truth

    run = first.holding(e, is_and, later)
    if isinstance(first.truth, bool):
        second = run()
        return Condition(
            second, second_conditions[0].positive, second_conditions[0].negative
        )
    ways = (run, lambda: False) if is_and else (lambda: True, run)
    truth = e.if_else(first.truth, *ways)
    if is_and:
        return Condition(truth, {**first.positive, **second_conditions[0].positive})
    return Condition(truth, {}, {**first.negative, **second_conditions[0].negative})


def _optional(e: Emitter, node: ast.expr) -> tuple[str, bool, Type] | None:
    """Return the variable that `x is None` tests, True for `is`, and the other type."""
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
    kind = type_of(e.names.get(names[0].id))
    if not isinstance(kind, OptionalType):
        return None
    return names[0].id, isinstance(op, ast.Is), kind.element


def _isinstance(e: Emitter, node: ast.expr) -> Condition | None:
    """Return the condition of `isinstance(x, T)`, or None for any other node."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return None
    if not is_isinstance(_object(e, node.func)):
        return None
    value = e.expression(node.args[0])
    return instance_test(e, value, node.args[0], node.args[1])


def _object(e: Emitter, node: ast.expr) -> Any:
    """Return the Python object of a name, or of `module.name`; None for other nodes."""
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


def is_isinstance(python: Any) -> bool:
    """Whether an object is `isinstance`, or what does the same in programs."""
    # By identity: objects of programs may define `==`.
    return python is isinstance or python is is_of_type


def instance_test(
    e: Emitter, value: Sugared, variable: ast.expr, kinds: ast.expr
) -> Condition:
    """Return the condition that a value has one of some types."""
    kind = type_of(value)
    if kind is None:
        if not value.elements(e):
            e.fail(f"`isinstance` is asked of {value.describe()}", "Ask it of a value.")
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
    assert isinstance(value, SimpleValue), "only values have types"
    attributes = {"types": tuple(asks)}
    truth = e.node(
        "prim::isinstance", (value.node_value,), (BoolType,), attributes
    ).output
    if not isinstance(variable, ast.Name) or variable.id not in e.names:
        return Condition(truth)
    rest = {variable.id: union(no)} if AnyType not in no else {}
    return Condition(truth, {variable.id: union(yes)}, rest)


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
    """Return the tested types, or classes of types."""
    if isinstance(node, ast.Tuple):
        return [each for one in node.elts for each in _tests(e, one)]
    if isinstance(node, ast.Name):
        try:
            python = e.find(node.id)
        except LookupError:
            python = None
        if isinstance(python, tuple):
            tests = []
            for each in python:
                many = _MANY.get(each)
                tests.append(many or type_of_class(e, each))
            return tests
        if isinstance(python, type) and python in _MANY:
            return [_MANY[python]]
    return _members(e.annotations.type(node))
