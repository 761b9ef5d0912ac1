"""Comprehensions, and what loops and comprehensions go through.

True only here: `[f(x) for x in xs]` and `{k: v for x in xs}` as loops that fill a list
or a dictionary; and the look of `range(...)` and its like.

Rules:
- the variables of a comprehension are its own: those of the same name around it are
  what they were behind it;
- what it goes through is computed before it has variables;
- over a known number of elements it is written out, as a list of so many.
"""

import ast
from collections.abc import Callable

from runtime.schema.types import DictType, ListType, StrType, TensorType, Type
from runtime.script.emission.assignment import assign
from runtime.script.emission.calls import call_forms, forms_of_rows
from runtime.script.emission.emitter import EXPRESSIONS, Emitter
from runtime.script.emission.iteration import Iteration
from runtime.script.emission.sugar import Arguments, SimpleValue, Sugared
from runtime.script.ir import Value
from runtime.script.primitives import by_method, by_operator


def gone_through(e: Emitter, node: ast.expr) -> Iteration:
    """How what an expression gives is gone through."""
    before = e.at
    e.at = e.at._replace(source=e.source, span=e.source.span(node))
    found: Iteration = e.expression(node).iterate(e)
    e.at = before
    return found


def list_comprehension(e: Emitter, node: ast.ListComp) -> Sugared:
    """`[element for target in ...]`."""
    from runtime.script.emission.expressions import _of, display

    iteration = gone_through(e, node.generators[0].iter)
    static = iteration.static()
    if static is not None:
        values: list[Value] = []
        _own(e, node, lambda: values.extend(_each(e, node, each) for each in static))
        kind = ListType(_of(e, values))
        return SimpleValue(display(e, "prim::ListConstruct", values, kind))
    made = e.node("prim::ListConstruct", (), (ListType(TensorType),)).output

    def fill(item: Sugared) -> None:
        value = _each(e, node, item)
        made.type = ListType(value.type)
        row = by_method("append", made.type)[0]
        e.node(row.name, (made, value))

    _loop(e, node, iteration, fill)
    return SimpleValue(made)


def _each(e: Emitter, node: ast.ListComp, item: Sugared) -> Value:
    assign(e, node.generators[0].target, item)
    return e.value(node.elt)


def dict_comprehension(e: Emitter, node: ast.DictComp) -> Sugared:
    """`{key: value for target in ...}`."""
    from runtime.script.emission.expressions import check_key

    iteration = gone_through(e, node.generators[0].iter)
    made = e.node("prim::DictConstruct", (), (DictType(StrType, TensorType),)).output
    kinds: list[Type] = []

    def fill(item: Sugared) -> None:
        assign(e, node.generators[0].target, item)
        key, value = e.expression(node.key), e.expression(node.value)
        pair = key.value(e), value.value(e)
        if not kinds:
            made.type = DictType(check_key(e, pair[0].type), pair[1].type)
            kinds.append(made.type)
        forms = forms_of_rows(by_operator("[]="))
        given = Arguments(
            (SimpleValue(made), SimpleValue(pair[0]), SimpleValue(pair[1]))
        )
        call_forms(e, "a dict comprehension", forms, given)

    static = iteration.static()
    if static is None:
        _loop(e, node, iteration, fill)
    else:
        e.open.add(made)

        def all_of_them() -> None:
            for each in static:
                fill(each)

        _own(e, node, all_of_them)
    return SimpleValue(made)


def _own(
    e: Emitter, node: ast.ListComp | ast.DictComp, emit: Callable[[], None]
) -> None:
    """Emit with variables of the comprehension's own."""
    names, declared = dict(e.names), dict(e.declared)
    for name in _targets(node):
        e.names.pop(name, None)
        e.declared.pop(name, None)
    emit()
    e.names, e.declared = names, declared


def _targets(node: ast.ListComp | ast.DictComp) -> list[str]:
    from runtime.script.frontend.scopes import comprehension_targets

    return [*comprehension_targets(node)]


def _loop(
    e: Emitter,
    node: ast.ListComp | ast.DictComp,
    iteration: Iteration,
    fill: Callable[[Sugared], None],
) -> None:
    from runtime.schema.types import IntType

    trips = iteration.trips(e)
    loop = e.node("prim::Loop", (trips, e.constant(True)))
    body = loop.add_block()
    index = body.add_parameter(IntType, "index")

    def emit() -> None:
        fill(iteration.item(e, index))
        body.add_result(e.constant(True))

    _own(e, node, lambda: _done(e.within(body, emit)))


def _done(_: object) -> None:
    """What was emitted is where it belongs."""


EXPRESSIONS[ast.ListComp] = list_comprehension
EXPRESSIONS[ast.DictComp] = dict_comprehension
