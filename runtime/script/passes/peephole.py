"""The peephole optimizer: replace small groups of nodes by simpler ones.

Simplifications of a node and its neighbours:

    cast           a cast to the type that the value has already
    isinstance     a test that the type of the value decides
    is None        the same for `is`
    wait           of an await that was created with its value
    known branch   a condition within a branch on the same condition
    turned branch  a branch on a negated condition
    same result    an output that is the same value, or constant, in both blocks
    truth          an output that is the condition itself, or its negation
    same trip      a carried value that no trip changes

Simplifications of expressions are the table `RULES`: parameters, before, after.

Rules:
- no rule depends on memory; the replacement computes the same, and raises nothing new;
  types stay: a value of another type is cast;
- before and after are one expression each: a value, a constant, or an operator of such,
  as in the text of a graph but without names for intermediate values; a parameter is a
  value of the type that the rule declares, the same value at each occurrence;
- `before` and `after` must raise for the same values: the tests run each rule on values
  of its types, and no example may differ;
- rules do not name operators of the runtime: these may have other kernels at run time.

A rule is matched from its last operator backwards; intermediate nodes stay, because
others may use them.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    CapsuleType,
    ComplexType,
    DeviceType,
    FloatType,
    IntType,
    NoneType_,
    OptionalType,
    PyObjectType,
    StrType,
    TensorType,
    Type,
    TypeVariable,
    UnionType,
    fake,
)
from everyorder.runtime.script.ir import Graph, Node, Value
from everyorder.runtime.script.ir.type_rules import PLAIN_TYPES
from everyorder.runtime.script.passes.inline import (
    constant_before,
    identity,
    is_constant,
    replace_node,
    replace_output,
)


class PatternCall(NamedTuple):
    """A primitive and its operands."""

    kind: str
    inputs: "tuple[Term, ...]"


class PatternConstant(NamedTuple):
    """A constant."""

    value: Any


# A parameter by its name, a constant, or a call.
Term = str | PatternConstant | PatternCall


class PeepholeRule(NamedTuple):
    """An expression, and its replacement."""

    types: Mapping[str, Type]
    before: PatternCall
    after: Term


def _call(name: str, *inputs: "Term | bool | float") -> PatternCall:
    terms = [
        each
        if isinstance(each, str | PatternConstant | PatternCall)
        else PatternConstant(each)
        for each in inputs
    ]
    return PatternCall(f"script::{name}", tuple(terms))


def _rules() -> Iterator[PeepholeRule]:
    a_bool, a_float = {"x": BoolType}, {"x": FloatType}
    an_int, a_str = {"x": IntType}, {"x": StrType}
    # Neutral elements; `float + 0.0` is not one: it turns -0.0 into 0.0.
    for types, name, unit in (
        (an_int, "add.int", 0),
        (an_int, "mul.int", 1),
        (an_int, "or_.int", 0),
        (an_int, "xor.int", 0),
        (an_int, "and_.int", -1),
        (a_float, "mul.float", 1.0),
        (a_float, "add.float", -0.0),
        (a_bool, "or_.bool", False),
        (a_bool, "xor.bool", False),
        (a_bool, "and_.bool", True),
        (a_bool, "eq.bool", True),
        (a_bool, "ne.bool", False),
    ):
        yield PeepholeRule(types, _call(name, "x", unit), "x")
        yield PeepholeRule(types, _call(name, unit, "x"), "x")
    for types, name, unit in (
        (an_int, "sub.int", 0),
        (an_int, "floordiv.int", 1),
        (an_int, "pow.int", 1),
        (an_int, "lshift.int", 0),
        (an_int, "rshift.int", 0),
        (a_float, "sub.float", 0.0),
        (a_float, "truediv.float", 1.0),
    ):
        yield PeepholeRule(types, _call(name, "x", unit), "x")
    for types, name in (
        (an_int, "pos.int"),
        (a_float, "pos.float"),
        (an_int, "int.int"),
        (a_float, "float.float"),
        (a_bool, "bool.bool"),
        (a_str, "str.t"),
    ):
        yield PeepholeRule(types, _call(name, "x"), "x")
    # Self-inverse operators; not neg.int: the negative of the least int raises.
    for types, name in ((an_int, "invert.int"), (a_float, "neg.float")):
        yield PeepholeRule(types, _call(name, _call(name, "x")), "x")
    yield PeepholeRule(a_bool, _call("not_.bool", _call("not_.bool", "x")), "x")
    yield PeepholeRule(a_bool, _call("bool.int", _call("int.bool", "x")), "x")
    # Constant for any value; not for a float, because of NaN.
    for name, value in (
        ("sub.int", 0),
        ("xor.int", 0),
        ("eq.int", True),
        ("le.int", True),
        ("ge.int", True),
        ("ne.int", False),
        ("lt.int", False),
        ("gt.int", False),
    ):
        yield PeepholeRule(an_int, _call(name, "x", "x"), PatternConstant(value))
    for name in ("mul.int", "and_.int"):
        yield PeepholeRule(an_int, _call(name, "x", 0), PatternConstant(0))
        yield PeepholeRule(an_int, _call(name, 0, "x"), PatternConstant(0))
    yield PeepholeRule(an_int, _call("mod.int", "x", 1), PatternConstant(0))
    yield PeepholeRule(a_bool, _call("and_.bool", "x", False), PatternConstant(False))
    yield PeepholeRule(a_bool, _call("or_.bool", "x", True), PatternConstant(True))
    # Negated comparisons; not of floats: with NaN both are false.
    two = {"x": IntType, "y": IntType}
    for name, other in (("lt", "ge"), ("gt", "le"), ("eq", "ne")):
        for one, turned in ((name, other), (other, name)):
            before = _call("not_.bool", _call(f"{one}.int", "x", "y"))
            yield PeepholeRule(two, before, _call(f"{turned}.int", "x", "y"))
    for unit in (True, False):
        name = "ne.bool" if unit else "eq.bool"
        yield PeepholeRule(a_bool, _call(name, "x", unit), _call("not_.bool", "x"))
    # Texts.
    empty = PatternConstant("")
    yield PeepholeRule(a_str, _call("add.str", "x", empty), "x")
    yield PeepholeRule(a_str, _call("add.str", empty, "x"), "x")
    yield PeepholeRule(a_str, _call("mul.str", "x", 1), "x")


RULES: tuple[PeepholeRule, ...] = tuple(_rules())
_BY_KIND: dict[str, list[PeepholeRule]] = {}
for _rule in RULES:
    _BY_KIND.setdefault(_rule.before.kind, []).append(_rule)


def by_rule(node: Node) -> Value | None:
    """Return the replacement of a node, inserted before it, or None."""
    for rule in _BY_KIND.get(node.kind, ()):
        bound: dict[str, Value] = {}
        if _matches(rule, rule.before, node, bound):
            return _built(rule.after, node, bound)
    return None


def _matches(
    rule: PeepholeRule, call: PatternCall, node: Node, bound: dict[str, Value]
) -> bool:
    if node.kind != call.kind or len(node.inputs) != len(call.inputs):
        return False
    for term, value in zip(call.inputs, node.inputs, strict=True):
        if isinstance(term, PatternConstant):
            if not is_constant(value):
                return False
            if identity(value.node.attributes["value"]) != identity(term.value):
                return False
        elif isinstance(term, PatternCall):
            if not _matches(rule, term, value.node, bound):
                return False
        elif value.type is not rule.types[term] or (
            bound.setdefault(term, value) is not value
        ):
            return False
    return True


def _built(term: Term, node: Node, bound: Mapping[str, Value]) -> Value:
    if isinstance(term, str):
        return bound[term]
    if isinstance(term, PatternConstant):
        type_ = PLAIN_TYPES[term.value.__class__]
        return constant_before(node, term.value, type_)
    inputs = [_built(each, node, bound) for each in term.inputs]
    types = [each.type for each in node.outputs]
    return Node(term.kind, inputs, types, None, node.place).insert_before(node).output


NOT = "script::not_.bool"
# A condition with more uses is not searched for in the blocks of its branches: the
# search is quadratic, and a thousand branches on one condition must not take a second.
MOST_USES = 64


def simplify(graph: Graph) -> int:
    """Apply all rules once, in the order of the text; return the number of changes."""
    count = 0
    for node in graph.nodes():
        value = by_rule(node)
        if value is not None:
            replace_node(node, [value])
            count += 1
            continue
        for rule in _RULES.get(node.kind, ()):
            count += rule(node)
            if node.block is None:
                break
    return count


# Types


class _Fit(Enum):
    ALWAYS = auto()
    NEVER = auto()
    MAYBE = auto()


def _fit(actual: Type, target: Type) -> _Fit:
    """Return how values of one type relate to another type."""
    if is_subtype(actual, target):
        return _Fit.ALWAYS
    members = _members(actual)
    if len(members) > 1:
        fits = {_fit(each, target) for each in members}
        return fits.pop() if len(fits) == 1 else _Fit.MAYBE
    return _Fit.NEVER if actual in _APART and target in _APART else _Fit.MAYBE


# No value has two of these types. Bool is missing: in Python a bool is an int.
_APART = (IntType, FloatType, ComplexType, StrType, NoneType_, DeviceType, TensorType)


def _members(type_: Type) -> tuple[Type, ...]:
    if isinstance(type_, OptionalType):
        return (NoneType_, *_members(type_.element))
    return type_.members if isinstance(type_, UnionType) else (type_,)


_ANY = (AnyType, CapsuleType, PyObjectType)


def _is_none(type_: Type) -> bool | None:
    """Return True if all values of a type are None, False if none, None if unknown."""
    if type_ is NoneType_:
        return True
    if type_ in _ANY or isinstance(type_, OptionalType | TypeVariable):
        return None
    return False


def _cast(node: Node) -> int:
    (value,) = node.inputs
    if fake(value.type) is not fake(node.output.type):
        return 0
    replace_node(node, [value])
    return 1


def _isinstance(node: Node) -> int:
    fits = {_fit(node.inputs[0].type, each) for each in node.attributes["types"]}
    if _Fit.ALWAYS in fits:
        return _answer(node, True)
    return 0 if _Fit.MAYBE in fits else _answer(node, False)


def _is(node: Node) -> int:
    one, other = (_is_none(each.type) for each in node.inputs)
    if one is None or other is None or not (one or other):
        return 0
    return _answer(node, (one is other) is (node.kind == "script::is_.t"))


def _answer(node: Node, value: bool) -> int:
    replace_node(node, [constant_before(node, value, BoolType)])
    return 1


def _wait(node: Node) -> int:
    source = node.inputs[0].node
    if source.kind != "prim::awaitable_nowait":
        return 0
    replace_node(node, [source.inputs[0]])
    return 1


# Branches


def _known_branch(node: Node) -> int:
    (condition,) = node.inputs
    if is_constant(condition) or not 1 < len(condition.uses) <= MOST_USES:
        return 0
    count = 0
    for block, value in zip(node.blocks, (True, False), strict=True):
        uses = [each for each in condition.uses if each[0].is_within(block)]
        if not uses:
            continue
        first = block.entry.next
        assert first is not None, "a block has an end"
        constant = constant_before(first, value, BoolType, place=node.place)
        for user, place in uses:
            user.set_input(place, constant)
        count += len(uses)
    return count


def _turned_branch(node: Node) -> int:
    source = node.inputs[0].node
    if source.kind != NOT:
        return 0
    node.set_input(0, source.inputs[0])
    node.blocks.reverse()
    return 1


def _same_result(node: Node) -> int:
    count = 0
    for output in node.outputs:
        one, other = (block.results[output.index] for block in node.blocks)
        if not output.uses or not (one is other or _are_equal(one, other)):
            continue
        if one is not other:
            content = one.node.attributes["value"]
            one = constant_before(node, content, output.type, place=one.node.place)
        replace_output(output, one)
        count += 1
    return count


def _are_equal(one: Value, other: Value) -> bool:
    """Return True if two constants are equal and their types do not matter."""
    if not is_constant(one) or not is_constant(other):
        return False
    values = (one.node.attributes["value"], other.node.attributes["value"])
    return identity(values[0]) == identity(values[1])


def _truth(node: Node) -> int:
    (condition,) = node.inputs
    count = 0
    for output in node.outputs:
        results = [block.results[output.index] for block in node.blocks]
        if not output.uses or output.type is not BoolType:
            continue
        if not all(is_constant(each) for each in results):
            continue
        one, other = (each.node.attributes["value"] for each in results)
        if one is True and other is False:
            replace_output(output, condition)
            count += 1
        elif one is False and other is True:
            turned = Node(NOT, [condition], [BoolType], None, node.place)
            replace_output(output, turned.insert_before(node).output)
            count += 1
    return count


# Loops


def _same_trip(node: Node) -> int:
    (body,) = node.blocks
    first = body.entry.next
    assert first is not None, "a block ends with its results"
    count = 0
    for output in node.outputs:
        parameter = body.parameters[output.index + 1]
        if body.results[output.index + 1] is not parameter:
            continue
        carried = node.inputs[output.index + 2]
        # The result itself is one use; dead code elimination removes it with the slot.
        users = [each for each in parameter.uses if each[0] is not body.exit]
        more = [each for each in parameter.uses if each[0] is body.exit]
        if not users and len(more) == 1 and not output.uses:
            continue
        replace_output(output, carried)
        replace_output(parameter, carried, first)
        body.exit.set_input(output.index + 1, parameter)
        count += 1
    return count


_RULES: dict[str, tuple[Callable[[Node], int], ...]] = {
    "prim::unchecked_cast": (_cast,),
    "prim::isinstance": (_isinstance,),
    "script::is_.t": (_is,),
    "script::is_not.t": (_is,),
    "prim::awaitable_wait": (_wait,),
    "prim::If": (_turned_branch, _known_branch, _same_result, _truth),
    "prim::Loop": (_same_trip,),
}
