"""Rules of the peephole: what a few nodes amount to, as graphs before and after.

True only here: the table of rules on values, and how one is looked for in a graph.

    name, parameters, before, after

Rules:
- before and after are one expression each: a value, a constant, or an operator of such,
  as the text of a graph has them but without names for what is between;
- a parameter is a value of the type that the rule says, the same wherever it stands;
- what is before may not raise where it stands, if after does not: each rule is run on
  values of its types in the tests, and no example may differ;
- nothing reads memory, and no operator of the runtime is named: it may have another
  kernel by then.

How it works: a rule is found from its last operator backwards; what is between stays
where it is, for others may use it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from runtime.schema.types import BoolType, FloatType, IntType, StrType, Type
from runtime.script.ir import Node, Value
from runtime.script.passes.identity import identity
from runtime.script.passes.splicing import constant_before, is_constant


class Call(NamedTuple):
    """A primitive, and what it is given."""

    kind: str
    inputs: "tuple[Term, ...]"


class Known(NamedTuple):
    """A constant."""

    value: Any


# A parameter by its name, a constant, or a call.
Term = str | Known | Call


class Rule(NamedTuple):
    """What stands before, and what may stand in its place."""

    types: Mapping[str, Type]
    before: Call
    after: Term


_OF_VALUE: dict[type, Type] = {
    bool: BoolType,
    int: IntType,
    float: FloatType,
    str: StrType,
}


def _call(name: str, *inputs: "Term | bool | float") -> Call:
    terms = [
        each if isinstance(each, str | Known | Call) else Known(each) for each in inputs
    ]
    return Call(f"script::{name}", tuple(terms))


def _rules() -> Iterator[Rule]:
    a_bool, a_float = {"x": BoolType}, {"x": FloatType}
    an_int, a_str = {"x": IntType}, {"x": StrType}
    # What changes nothing; a float plus 0.0 does: of -0.0 it makes 0.0.
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
        yield Rule(types, _call(name, "x", unit), "x")
        yield Rule(types, _call(name, unit, "x"), "x")
    for types, name, unit in (
        (an_int, "sub.int", 0),
        (an_int, "floordiv.int", 1),
        (an_int, "pow.int", 1),
        (an_int, "lshift.int", 0),
        (an_int, "rshift.int", 0),
        (a_float, "sub.float", 0.0),
        (a_float, "truediv.float", 1.0),
    ):
        yield Rule(types, _call(name, "x", unit), "x")
    for types, name in (
        (an_int, "pos.int"),
        (a_float, "pos.float"),
        (an_int, "int.int"),
        (a_float, "float.float"),
        (a_bool, "bool.bool"),
        (a_str, "str.t"),
    ):
        yield Rule(types, _call(name, "x"), "x")
    # What undoes itself; the negative of the least int raises.
    for types, name in ((an_int, "invert.int"), (a_float, "neg.float")):
        yield Rule(types, _call(name, _call(name, "x")), "x")
    yield Rule(a_bool, _call("not_.bool", _call("not_.bool", "x")), "x")
    yield Rule(a_bool, _call("bool.int", _call("int.bool", "x")), "x")
    # What is known whatever the value; of a float it is not, for NaN.
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
        yield Rule(an_int, _call(name, "x", "x"), Known(value))
    for name in ("mul.int", "and_.int"):
        yield Rule(an_int, _call(name, "x", 0), Known(0))
        yield Rule(an_int, _call(name, 0, "x"), Known(0))
    yield Rule(an_int, _call("mod.int", "x", 1), Known(0))
    yield Rule(a_bool, _call("and_.bool", "x", False), Known(False))
    yield Rule(a_bool, _call("or_.bool", "x", True), Known(True))
    # Comparisons the other way round; those of floats are both false with NaN.
    two = {"x": IntType, "y": IntType}
    for name, other in (("lt", "ge"), ("gt", "le"), ("eq", "ne")):
        for one, turned in ((name, other), (other, name)):
            before = _call("not_.bool", _call(f"{one}.int", "x", "y"))
            yield Rule(two, before, _call(f"{turned}.int", "x", "y"))
    for unit in (True, False):
        name = "ne.bool" if unit else "eq.bool"
        yield Rule(a_bool, _call(name, "x", unit), _call("not_.bool", "x"))
    # Texts.
    empty = Known("")
    yield Rule(a_str, _call("add.str", "x", empty), "x")
    yield Rule(a_str, _call("add.str", empty, "x"), "x")
    yield Rule(a_str, _call("mul.str", "x", 1), "x")


RULES: tuple[Rule, ...] = tuple(_rules())
_BY_KIND: dict[str, list[Rule]] = {}
for _rule in RULES:
    _BY_KIND.setdefault(_rule.before.kind, []).append(_rule)


def by_rule(node: Node) -> Value | None:
    """What may stand in the place of a node by some rule, in front of it, or None."""
    for rule in _BY_KIND.get(node.kind, ()):
        bound: dict[str, Value] = {}
        if _matches(rule, rule.before, node, bound):
            return _built(rule.after, node, bound)
    return None


def _matches(rule: Rule, call: Call, node: Node, bound: dict[str, Value]) -> bool:
    if node.kind != call.kind or len(node.inputs) != len(call.inputs):
        return False
    for term, value in zip(call.inputs, node.inputs, strict=True):
        if isinstance(term, Known):
            if not is_constant(value):
                return False
            if identity(value.node.attributes["value"]) != identity(term.value):
                return False
        elif isinstance(term, Call):
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
    if isinstance(term, Known):
        type_ = _OF_VALUE[term.value.__class__]
        return constant_before(node, term.value, type_)
    inputs = [_built(each, node, bound) for each in term.inputs]
    types = [each.type for each in node.outputs]
    return Node(term.kind, inputs, types, None, node.place).put_before(node).output
