"""Expressions: one function for each class of them, and the assignment to targets.

Rules:
- operands are computed from left to right, each once, as in Python; the middle of a
  chain of comparisons, too;
- operands of `and`, `or`, the branches of a conditional expression and the rest of a
  chain are computed only where Python computes them; if a condition is known at compile
  time, the other branch is not compiled;
- targets are assigned from left to right, each computed when it is assigned; tuples can
  be unpacked, and lists without `*`, whose length is checked at run time; a starred
  target is a list.

Comprehensions are in `runtime.script.emission.loops`, as they are loops.
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.script import UnknownName
from everyorder.runtime.schema.subtyping import Mismatch, is_subtype
from everyorder.runtime.schema.types import (
    DICT_KEYS,
    AnyType,
    BoolType,
    DictType,
    ListType,
    StrType,
    TensorType,
    TupleType,
    Type,
    unwrap_optional,
)
from everyorder.runtime.script.emission.branches import (
    Condition,
    TypeConflict,
    condition,
    fail_conflict,
)
from everyorder.runtime.script.emission.call_matching import call_rows
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    Sugared,
    emits,
)
from everyorder.runtime.script.emission.operators import binary, compare, unary
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredEllipsis,
    SugaredSlice,
    SugaredTuple,
    sugar_of,
    sugar_of_value,
)
from everyorder.runtime.script.frontend import constant as literal
from everyorder.runtime.script.frontend import mangled, not_defined
from everyorder.runtime.script.frontend.scopes import NOT_YET, absences
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_function

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.MatMult: "@",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "~"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


# Names and constants


@emits(ast.Constant)
def constant(e: Emitter, node: ast.Constant) -> Sugared:
    """Emit a literal."""
    if node.value is Ellipsis:
        return SugaredEllipsis()
    return SimpleValue(e.constant(node.value))


@emits(ast.Name)
def name(e: Emitter, node: ast.Name) -> Sugared:
    """Emit a variable, or resolve a name in the scope of the function."""
    text = mangled(node.id, e.definition.owner)
    if node.id in e.scopes.variables or node.id in e.names:
        return variable(e, node)
    try:
        python = e.find(text)
    except LookupError:
        raise UnknownName(
            source=e.place.source,
            span=e.place.span,
            variable=node.id,
            near=nearest(node.id, tuple(e.scopes.variables)),
        ) from None
    return sugar_of(python, e)


def variable(e: Emitter, node: ast.Name) -> Sugared:
    """Return a variable of the function, which must be assigned at this place."""
    _check_defined(e, node)
    current = e.names.get(node.id)
    if current is None:
        raise not_defined(node, NOT_YET, e.source)
    if isinstance(current, TypeConflict):
        fail_conflict(e, node.id, current)
    result: Sugared = current
    return result


def _check_defined(e: Emitter, node: ast.Name) -> None:
    """Refuse a use that may precede the assignment.

    Raises:
        UnknownName: the variable may be unassigned.
    """
    unassigned_uses = e.memo.get("absences")
    if unassigned_uses is None:
        unassigned_uses = e.memo["absences"] = absences(e.definition.tree)
    if node not in unassigned_uses:
        return
    # Conditions that types decide may have excluded that way.
    unassigned_uses = absences(e.definition.tree, lambda test: decided(e, test))
    if node in unassigned_uses:
        raise not_defined(node, unassigned_uses[node], e.source)


def decided(e: Emitter, test: ast.expr) -> bool | None:
    """Return the truth of a condition that is known at compile time, or None."""
    truth = e.known_conditions.get(test)
    return literal(test) if truth is None else truth


@emits(ast.Attribute)
def attribute(e: Emitter, node: ast.Attribute) -> Sugared:
    """Emit `x.name`."""
    owner = e.expression(node.value)
    return owner.attribute(e, mangled(node.attr, e.definition.owner))


# Operators


@emits(ast.BinOp)
def bin_op(e: Emitter, node: ast.BinOp) -> Sugared:
    """Emit `x + y`."""
    left, right = e.expression(node.left), e.expression(node.right)
    return binary(e, BINARY[type(node.op)], left, right)


@emits(ast.UnaryOp)
def unary_op(e: Emitter, node: ast.UnaryOp) -> Sugared:
    """Emit `-x`, `~x`, `not x`."""
    if isinstance(node.op, ast.Not):
        return _condition(e, node)
    inner = node.operand
    if (
        isinstance(node.op, ast.USub)
        and isinstance(inner, ast.Constant)
        and type(inner.value) in (int, float, complex)
    ):
        number: Any = inner.value
        return SimpleValue(e.constant(-number))
    return unary(e, UNARY[type(node.op)], e.expression(inner))


def _condition(e: Emitter, node: ast.expr) -> Sugared:
    return SimpleValue(e.boolean(condition(e, node).truth))


@emits(ast.Compare)
def comparison(e: Emitter, node: ast.Compare) -> Sugared:
    """Emit `x < y`, or a chain of comparisons."""
    left = e.expression(node.left)
    right = e.expression(node.comparators[0])
    first = compare(e, COMPARISONS[type(node.ops[0])], left, right)
    if len(node.ops) == 1:
        return first
    return _chain(e, node, 1, first, right)


def _chain(
    e: Emitter, node: ast.Compare, place: int, first: Sugared, left: Sugared
) -> Sugared:
    """Emit `first and left < ...`."""
    if place == len(node.ops):
        return first

    def rest() -> Sugared:
        right = e.expression(node.comparators[place])
        compared = compare(e, COMPARISONS[type(node.ops[place])], left, right)
        return _chain(e, node, place + 1, compared, right)

    return choice(e, first.truth(e), rest, lambda: first)


@emits(ast.BoolOp)
def bool_op(e: Emitter, node: ast.BoolOp) -> Sugared:
    """Emit `x and y`, `x or y`: the result is one of the operands."""
    return _operands(e, node, node.values)


def _operands(e: Emitter, node: ast.BoolOp, rest: Sequence[ast.expr]) -> Sugared:
    first = e.expression(rest[0])
    if len(rest) == 1:
        return first
    if isinstance(first, SimpleValue) and first.type is BoolType:
        # The refinement of the condition is valid in the rest.
        test = condition(e, rest[0], first)
    else:
        test = Condition(first.truth(e))
    later = list(rest[1:])

    def others() -> Sugared:
        return _operands(e, node, later)

    if isinstance(node.op, ast.And):
        return choice(e, test.truth, test.holding(e, True, others), lambda: first)
    return choice(e, test.truth, lambda: first, test.holding(e, False, others))


@emits(ast.IfExp)
def if_exp(e: Emitter, node: ast.IfExp) -> Sugared:
    """Emit `x if test else y`."""
    test = condition(e, node.test)
    first = test.holding(e, True, lambda: e.expression(node.body))
    second = test.holding(e, False, lambda: e.expression(node.orelse))
    return choice(e, test.truth, first, second)


def choice(
    e: Emitter,
    test: Value | bool,
    first: Callable[[], Sugared],
    second: Callable[[], Sugared],
) -> Sugared:
    """Emit one of two expressions by a condition; only the selected one is computed."""
    if isinstance(test, bool):
        return first() if test else second()
    node = e.node("prim::If", (test,))
    results: list[Value] = []

    def run(one: Callable[[], Sugared]) -> Callable[[], None]:
        def emit() -> None:
            results.append(one().value(e))

        return emit

    branches = [e.branch(node, run(first)), e.branch(node, run(second))]
    common = e.common(results)
    if isinstance(common, Mismatch):
        e.fail(
            f"the two ways of this give different types: {common.reason}",
            others=[
                (f"It is of type {each.type} here", each.node.place) for each in results
            ],
        )
    for branch, result in zip(branches, results, strict=True):
        branch.block.add_result(result)
    return sugar_of_value(node.add_output(common))


# Displays and subscripts


@emits(ast.Tuple)
def tuple_display(e: Emitter, node: ast.Tuple) -> Sugared:
    """Emit `(x, *y)`."""
    return SugaredTuple(elements_of(e, node.elts))


def elements_of(e: Emitter, nodes: Sequence[ast.expr]) -> list[Sugared]:
    """Return the sugar of expressions, with starred ones unpacked."""
    result: list[Sugared] = []
    for each in nodes:
        if not isinstance(each, ast.Starred):
            result.append(e.expression(each))
            continue
        inner = e.expression(each.value)
        parts = inner.elements(e)
        if parts is None:
            e.fail(
                f"`*` is of {inner.describe()}, whose length is not known",
                "Tuples have a known length.",
            )
        result += parts
    return result


@emits(ast.List)
def list_(e: Emitter, node: ast.List) -> Sugared:
    """Emit `[x, y]`; an empty one is a list of tensors until its use."""
    values = [each.value(e) for each in elements_of(e, node.elts)]
    return list_display(e, values, wide=wanted_part(e, node, ListType, "element"))


def list_display(
    e: Emitter,
    values: Sequence[Value],
    what: str = "elements of this list",
    wide: Type | None = None,
) -> SimpleValue:
    """Emit a list of values."""
    kind = ListType(_common_type(e, values, what, wide))
    is_open = not values and wide is None
    return _display(e, "prim::ListConstruct", values, kind, is_open)


def for_type(e: Emitter, node: ast.expr, type: Type) -> Sugared:  # noqa: A002  # the field's own word
    """Emit an expression for a declared type: displays in it take the types of it.

    The result may still have another type.
    """
    _want(e.memo.setdefault("wanted", {}), node, type)
    return e.expression(node)


def _want(wanted: dict[ast.expr, Type], node: ast.expr, type: Type) -> None:  # noqa: A002  # the field's own word
    """Store the declared types of an expression and of the displays within it."""
    declared = wanted[node] = unwrap_optional(type)
    parts: list[tuple[ast.expr | None, Type]] = []
    if isinstance(node, ast.IfExp):
        parts = [(node.body, type), (node.orelse, type)]
    elif isinstance(node, ast.Tuple) and isinstance(declared, TupleType):
        if len(node.elts) == len(declared.elements):
            parts = [*zip(node.elts, declared.elements, strict=True)]
    elif isinstance(declared, ListType):
        if isinstance(node, ast.List):
            parts = [(each, declared.element) for each in node.elts]
        elif isinstance(node, ast.ListComp):
            parts = [(node.elt, declared.element)]
        elif isinstance(node, ast.BinOp):
            # `[None] * n` and `[None] + [1]`
            parts = [(node.left, type), (node.right, type)]
    elif isinstance(declared, DictType):
        if isinstance(node, ast.Dict):
            parts = [(each, declared.value) for each in node.values]
        elif isinstance(node, ast.DictComp):
            parts = [(node.value, declared.value)]
    for part, part_type in parts:
        if part is not None:
            _want(wanted, part, part_type)


def wanted_part(e: Emitter, node: ast.expr, kind: type[Type], part: str) -> Type | None:
    """Return the type of elements that the context declares for a display, or None."""
    declared = e.memo.get("wanted", {}).get(node)
    part_type: Type | None = (
        getattr(declared, part) if isinstance(declared, kind) else None
    )
    return part_type


def _display(
    e: Emitter,
    kind: str,
    values: Sequence[Value],
    of: ListType | DictType,
    is_open: bool,
) -> SimpleValue:
    display = e.node(kind, values, (of,)).output
    if is_open:
        e.untyped.add(display)
    return SimpleValue(display)


def _common_type(
    e: Emitter, values: Sequence[Value], what: str, wide: Type | None = None
) -> Type:
    """Return the declared type `wide` if all values fit it, else their common type.

    Raises:
        IllTyped: the types differ.
    """
    if wide is not None and all(is_subtype(each.type, wide) for each in values):
        return wide
    if not values:
        return TensorType
    common = e.common(values)
    if not isinstance(common, Mismatch):
        return common
    others = [
        (f"It is of type {each.type} here", each.node.place)
        for each in (values[0], values[common.index])
    ]
    return e.fail(f"the {what} are of different types: {common.reason}", _ANY, others)


_ANY = "Use a tuple, or make the values of one type."


@emits(ast.Dict)
def dict_(e: Emitter, node: ast.Dict) -> Sugared:
    """Emit `{x: y}`; keys and values are computed alternately."""
    values = []
    for key, value in zip(node.keys, node.values, strict=True):
        assert key is not None, "the restrictions refuse `**`"
        values += [e.value(key), e.value(value)]
    key_type = wanted_part(e, node, DictType, "key")
    wide = wanted_part(e, node, DictType, "value")
    return dict_display(e, values, key_type, wide)


def dict_display(
    e: Emitter,
    values: Sequence[Value],
    key: Type | None = None,
    wide: Type | None = None,
) -> SimpleValue:
    """Emit a dictionary of alternating keys and values, of the types if declared."""
    kind = DictType(key or StrType, wide or TensorType)
    if values:
        keys = _common_type(e, values[::2], "keys of this dictionary")
        # Where the keys do not fit, the error names what the values are.
        wide = wide if key is None or is_subtype(keys, key) else None
        value_type = _common_type(e, values[1::2], "values of this dictionary", wide)
        kind = DictType(check_key(e, keys), value_type)
    return _display(e, "prim::DictConstruct", values, kind, not values and key is None)


def check_key(e: Emitter, key: Type) -> Type:
    """Refuse types that cannot be keys of dictionaries."""
    if key not in DICT_KEYS or key is AnyType:
        kinds = "bool, complex, Device, float, int, str and Tensor"
        e.fail(f"a key of a dictionary is of type {key}", f"Keys are of types {kinds}.")
    return key


@emits(ast.Subscript)
def subscript(e: Emitter, node: ast.Subscript) -> Sugared:
    """Emit `x[y]`."""
    owner = e.expression(node.value)
    return owner.subscript(e, e.expression(node.slice))


@emits(ast.Slice)
def slice_(e: Emitter, node: ast.Slice) -> Sugared:
    """Emit `x:y:z`."""
    parts = [
        None if each is None else e.expression(each)
        for each in (node.lower, node.upper, node.step)
    ]
    return SugaredSlice(*parts)


# Calls and texts


@emits(ast.Call)
def call(e: Emitter, node: ast.Call) -> Sugared:
    """Emit `f(x, *y, z=w)`."""
    callee = e.expression(node.func)
    syntax = getattr(callee, "call_syntax", None)
    if syntax is not None:
        result: Sugared = syntax(e, node)
        return result
    positional = elements_of(e, node.args)
    named = {}
    for each in node.keywords:
        assert each.arg is not None, "the restrictions refuse `**`"
        named[each.arg] = e.expression(each.value)
    return callee.call(e, Arguments(positional, named))


@emits(ast.JoinedStr)
def joined(e: Emitter, node: ast.JoinedStr) -> Sugared:
    """Emit an f-string: its pieces, joined."""
    pieces = []
    for each in node.values:
        if isinstance(each, ast.FormattedValue):
            operand = e.expression(each.value)
            text = call_rows(e, "an f-string", by_function(format), operand)
            pieces.append(text.value(e))
        else:
            pieces.append(e.value(each))
    if not pieces:
        return SimpleValue(e.constant(""))
    texts = e.node("prim::ListConstruct", pieces, (ListType(StrType),)).output
    return SimpleValue(e.operator("script::join.str", e.constant(""), texts))


# Targets

CONVERT = "Nothing is converted here: write the conversion, or another type."


def assign(e: Emitter, target: ast.expr, value: Sugared) -> None:
    """Assign a value to a target."""
    with e.place_at(target):
        if isinstance(target, ast.Name):
            _assign_name(e, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            _unpack(e, target.elts, value)
        elif isinstance(target, ast.Attribute):
            name = mangled(target.attr, e.definition.owner)
            e.expression(target.value).set_attribute(e, name, value)
        elif isinstance(target, ast.Subscript):
            owner = e.expression(target.value)
            owner.set_subscript(e, e.expression(target.slice), value)
        else:
            raise AssertionError("a starred target is part of a tuple")


def _assign_name(e: Emitter, name: str, value: Sugared) -> None:
    declared = e.declared.get(name)
    if declared is not None and name in e.parameters:
        assigned = value.value(e)
        if not e.takes(assigned, declared):
            # As in Python: from here on the name has another type.
            e.parameters.discard(name)
            del e.declared[name]
            declared = None
    if declared is not None:
        assigned = value.value(e)
        message = (
            f"`{name}` is of type {declared}, and a value of type {{}} is assigned"
        )
        value = sugar_of_value(e.fit(assigned, declared, message, CONVERT))
    if isinstance(value, SimpleValue):
        assigned = value.node_value
        if not assigned.hint:
            assigned.hint = name
        if type(value) is not SimpleValue and hasattr(value, "original"):
            value = sugar_of_value(assigned)
    e.names[name] = value


def _unpack(e: Emitter, targets: Sequence[ast.expr], value: Sugared) -> None:
    """Emit `a, *b, c = value`."""
    starred = [n for n, each in enumerate(targets) if isinstance(each, ast.Starred)]
    items = value.elements(e)
    if items is None:
        items = _unpacked_list(e, targets, value, bool(starred))
    count = len(targets)
    if starred:
        if len(items) < count - 1:
            _wrong_count(e, f"at least {count - 1}", len(items))
        place = starred[0]
        stop = len(items) - (count - 1 - place)
        middle = [each.value(e) for each in items[place:stop]]
        starred_list = list_display(e, middle, "values of a starred target")
        parts = [*items[:place], starred_list, *items[stop:]]
    else:
        if len(items) != count:
            _wrong_count(e, str(count), len(items))
        parts = list(items)
    for target, each in zip(targets, parts, strict=True):
        assign(e, target.value if isinstance(target, ast.Starred) else target, each)


def _wrong_count(e: Emitter, expected: str, count: int) -> None:
    e.fail(f"a tuple of {count} is unpacked, and there are {expected} targets")


def _unpacked_list(
    e: Emitter, targets: Sequence[ast.expr], value: Sugared, starred: bool
) -> Sequence[Sugared]:
    """Return the elements of a list; their number is checked at run time."""
    kind = value.type if isinstance(value, SimpleValue) else None
    if not isinstance(kind, ListType) or starred:
        e.fail(
            f"{value.describe()} is unpacked, whose length is not known",
            "Tuples can be unpacked, and lists without `*`.",
        )
    node = e.node("prim::ListUnpack", (value.value(e),), [kind.element] * len(targets))
    return [sugar_of_value(each) for each in node.outputs]
