"""Loops: `for`, `while`, and comprehensions.

The iterable of a loop is an `Iteration` (`runtime.script.emission.iteration`): the
number of trips, and the item of each.

Rules:
- a loop over a known number of elements (a tuple, modules) is unrolled; any other is
  one `prim::Loop`;
- a loop carries the variables that it assigns and that exist before it, each with one
  type: the type before the loop, or, if a trip assigns a wider one, the declared type;
- `break` and `return` become flags that end the loop (see
  `runtime.script.emission.statements`); results and flags of a loop are uninitialized,
  or False, before it;
- a loop over a list that the body may write to reads the length in each trip;
- a comprehension has a separate scope: outer variables of the same name are unchanged
  after it; its iterable is computed in the outer scope.
"""

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    BoolType,
    DictType,
    IntType,
    ListType,
    StrType,
    TensorType,
    Type,
)
from everyorder.runtime.script.emission.branches import (
    NoValue,
    TypeConflict,
    any_of,
    condition,
    fail_conflict,
    refine,
    value_or_none,
)
from everyorder.runtime.script.emission.call_matching import call_rows
from everyorder.runtime.script.emission.emitter import (
    ENDLESS,
    FLAGS,
    RESULT,
    WAYS,
    Arguments,
    Branch,
    Emitter,
    Sugared,
    emits,
)
from everyorder.runtime.script.emission.expressions import (
    assign,
    check_key,
    list_display,
    wanted_part,
)
from everyorder.runtime.script.emission.iteration import Iteration, list_of, repeat
from everyorder.runtime.script.emission.statements import ask, block
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    sugar_of_value,
    type_of,
)
from everyorder.runtime.script.frontend import JUMPS, Exit, constant
from everyorder.runtime.script.frontend.scopes import comprehension_targets
from everyorder.runtime.script.ir import Block, NodeEffect, Value, effects_of, writes_of
from everyorder.runtime.script.primitives import by_operator

T = TypeVar("T")


@emits(ast.While)
def while_(e: Emitter, node: ast.While) -> None:
    """Emit `while test: body`."""
    if constant(node.test) is False:
        return
    _narrowly(e, carried_names(e, node), partial(_while, e, node))


def _while(
    e: Emitter, node: ast.While, names: Sequence[str], narrow: frozenset[str]
) -> None:
    names = _widen(e, names, narrow)
    first = condition(e, node.test)
    if first.truth is False:
        return
    start = e.constant(True) if first.truth is True else first.truth
    loop = _EmittedLoop(e, node, names, e.constant(ENDLESS), start, narrow)

    def body(_: Value) -> None:
        refine(e, {k: v for k, v in first.positive.items() if k in e.names})
        block(e, node.body)

    def proceeds(_: Value) -> Value | None:
        return e.boolean(condition(e, node.test).truth)

    endless = constant(node.test) is True
    loop.run(body, None if endless else proceeds, endless)


@emits(ast.For)
def for_(e: Emitter, node: ast.For) -> None:
    """Emit `for target in ...: body`."""
    iteration = iteration_of(e, node.iter)
    static = iteration.static()
    if static is not None:
        _unrolled(e, node, list(static))
        return
    trips = iteration.trips(e)
    _narrowly(e, carried_names(e, node), partial(_for, e, node, iteration, trips))


def _for(
    e: Emitter,
    node: ast.For,
    iteration: Iteration,
    trips: Value,
    names: Sequence[str],
    narrow: frozenset[str],
) -> None:
    names = _widen(e, names, narrow)
    loop = _EmittedLoop(e, node, names, trips, e.constant(True), narrow)

    def body(index: Value) -> None:
        assign(e, node.target, iteration.item(e, index))
        block(e, node.body)

    loop.run(body, None, False, iteration)


def _unrolled(e: Emitter, node: ast.For, items: list[Sugared]) -> None:
    """Emit an unrolled loop over a known number of elements."""
    _rounds(e, node, items)
    if Exit.BREAK in e.exits:
        e.exits = (e.exits & ~Exit.BREAK) | Exit.NEXT
        e.names.pop(FLAGS[Exit.BREAK], None)
    _settle(e)


def _rounds(e: Emitter, node: ast.For, items: list[Sugared]) -> None:
    """Emit the trips; those after a trip that may break test its flag."""
    for place, item in enumerate(items):
        assign(e, node.target, item)
        block(e, node.body)
        if Exit.CONTINUE in e.exits:
            e.exits = (e.exits & ~Exit.CONTINUE) | Exit.NEXT
            e.names.pop(FLAGS[Exit.CONTINUE], None)
        if Exit.NEXT not in e.exits:
            return
        if e.exits & JUMPS:
            rest = items[place + 1 :]
            if rest:
                ask(e, partial(_rounds, e, node, rest))
            return


def _settle(e: Emitter) -> None:
    """Drop flags if only one way is left."""
    ways = e.exits & WAYS
    for way, flag in FLAGS.items():
        if way not in ways or ways is way:
            e.names.pop(flag, None)


def carried_names(e: Emitter, node: ast.For | ast.While) -> list[str]:
    """Return the variables that a loop carries: those that exist and that it writes."""
    loop_names = e.scopes.names(node)
    return [
        name
        for name in dict.fromkeys([*loop_names.writes, *loop_names.deletes])
        if name in e.names and not isinstance(e.names[name], TypeConflict)
    ]


class _TooNarrow(Exception):
    """A variable has a type at the end of a trip that is too wide for the loop."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _narrowly(
    e: Emitter,
    names: Sequence[str],
    emit: Callable[[Sequence[str], frozenset[str]], None],
) -> None:
    """Emit a loop with variables as narrow as they are before it.

    A variable that a trip leaves wider takes its declared type from the start: the
    emitted nodes are removed, and the loop is emitted again.
    """
    narrow = frozenset(
        name
        for name in names
        if name in e.declared and type_of(e.names[name]) is not e.declared[name]
    )
    while narrow:
        forget = _checkpoint(e)
        try:
            emit(names, narrow)
        except _TooNarrow as found:
            forget()
            narrow -= {found.name}
        else:
            return
    emit(names, narrow)


def _checkpoint(e: Emitter) -> Callable[[], None]:
    """Return a function that removes all nodes emitted from now on."""
    block, anchor, depth, at, exits = e.block, e.anchor, e.depth, e.place, e.exits
    names, declared, memo = dict(e.names), dict(e.declared), dict(e.memo)
    decided = dict(e.known_conditions)
    types = {value: value.type for value in e.untyped}
    before = set(block)

    def forget() -> None:
        e.block, e.anchor, e.depth, e.place, e.exits = block, anchor, depth, at, exits
        e.names, e.declared, e.memo, e.known_conditions = names, declared, memo, decided
        e.untyped = set(types)
        for value, type_ in types.items():
            value.type = type_
        for node in reversed(list(block)):
            if node not in before:
                node.destroy()

    return forget


def _widen(e: Emitter, names: Sequence[str], narrow: frozenset[str]) -> list[str]:
    """Give variables their declared types; return the names of those with values."""
    carried = []
    for name in names:
        value = value_or_none(e, e.names[name])
        if isinstance(value, NoValue):
            e.names[name] = value
            continue
        carried.append(name)
        declared = None if name in narrow else e.declared.get(name)
        if declared is not None and value.type is not declared:
            fitted = e.fitted(value, declared)
            if fitted is not None:
                value = e.cast(fitted, declared)
        e.names[name] = sugar_of_value(value)
        e.untyped.discard(value)
    return carried


class _EmittedLoop:
    """One loop that is being emitted."""

    def __init__(
        self,
        e: Emitter,
        node: ast.For | ast.While,
        names: Sequence[str],
        trips: Value,
        start: Value,
        narrow: frozenset[str],
    ) -> None:
        self.e = e
        self.narrow = narrow
        self.syntax = node
        self.names = names
        initial = [e.names[name].value(e) for name in names]
        self.node = e.node("prim::Loop", (trips, start, *initial))
        self.block = self.node.add_block()
        self.index = self.block.add_parameter(IntType, "index")
        self.parameters = [
            self.block.add_parameter(value.type, name)
            for name, value in zip(names, initial, strict=True)
        ]

    def run(
        self,
        body: Callable[[Value], None],
        proceeds: Callable[[Value], Value | None] | None,
        endless: bool,
        iteration: Iteration | None = None,
    ) -> None:
        """Emit the body, and the code after the loop.

        `proceeds` emits the test for another trip, from the index.
        """
        e = self.e
        before = dict(e.names)

        def emit() -> None:
            for name, value in zip(self.names, self.parameters, strict=True):
                e.names[name] = sugar_of_value(value)
            body(self.index)

        branch = e.within(self.block, emit)
        written = _written(self.block, iteration)
        leaves = branch.exits & (Exit.RETURN | Exit.BREAK)
        with e.in_block(self.block):
            names, exits = e.names, e.exits
            e.names, e.exits = dict(branch.names), branch.exits
            if iteration is not None and written:
                proceeds = self._watched(iteration)
            going = self._condition(branch, leaves, proceeds)
            e.names, e.exits = names, exits
        self.block.add_result(going)
        if iteration is not None and written:
            self._ask_first(iteration)
        self._results(branch, before)
        self._fresh(branch, before, endless)
        self._exits(branch, endless)

    def _watched(self, iteration: Iteration) -> Callable[[Value], Value | None]:
        e = self.e

        def proceeds(index: Value) -> Value | None:
            iteration.check(e)
            following = e.operator("script::add.int", index, e.constant(1))
            return iteration.has(e, following)

        return proceeds

    def _ask_first(self, iteration: Iteration) -> None:
        e = self.e
        with e.insert_point(self.node):
            first = iteration.has(e, e.constant(0))
            if first is not None:
                self.node.set_input(0, e.constant(ENDLESS))
                self.node.set_input(1, first)

    def _condition(
        self,
        branch: Branch,
        leaves: Exit,
        proceeds: Callable[[Value], Value | None] | None,
    ) -> Value:
        e = self.e
        ways = branch.exits & WAYS
        if not ways & (Exit.NEXT | Exit.CONTINUE):
            return e.constant(False)
        if not leaves:
            another = None if proceeds is None else proceeds(self.index)
            return e.constant(True) if another is None else another
        flags = [
            e.names[FLAGS[way]] for way in (Exit.RETURN, Exit.BREAK) if way in ways
        ]
        left = any_of(e, flags)
        if proceeds is None:
            return e.operator("script::not_.bool", left)

        def ask_next() -> Value | bool:
            another = proceeds(self.index)
            return True if another is None else another

        return e.if_else(left, lambda: False, ask_next)

    def _results(self, branch: Branch, before: dict[str, object]) -> None:
        e = self.e
        for name, parameter in zip(self.names, self.parameters, strict=True):
            one = branch.names.get(name) if branch.goes_on else None
            with e.in_block(self.block):
                if one is None:
                    result = parameter
                    if branch.goes_on:
                        result = e.uninitialized(parameter.type)
                else:
                    result = self._carried(name, one, parameter)
            self.block.add_result(result)
            output = self.node.add_output(parameter.type, name)
            e.names[name] = sugar_of_value(output)

    def _carried(self, name: str, one: object, parameter: Value) -> Value:
        e = self.e
        if isinstance(one, TypeConflict):
            if name in self.narrow:
                raise _TooNarrow(name)
            fail_conflict(e, name, one)
        assert isinstance(one, Sugared), "a variable holds sugar"
        value = one.value(e)
        fitted = e.fitted(value, parameter.type)
        if fitted is None:
            if name in self.narrow:
                raise _TooNarrow(name)
            start = self.node.inputs[2 + self.names.index(name)]
            e.fail(
                f"`{name}` is of type {parameter.type} before the loop, and of type "
                f"{value.type} at the end of a round",
                "Annotate it before the loop with a type of both, or use two names.",
                [
                    (f"It is of type {start.type} here", start.node.place),
                    (f"It is of type {value.type} here", value.node.place),
                ],
            )
        return fitted

    def _extra(self, name: str, type_: Type, value: Value | None, hint: str) -> None:
        """Add an output to the loop that its body does not read."""
        e = self.e
        with e.insert_point(self.node):
            start = (
                e.constant(False) if type_ is BoolType and name[0] == "$" else None
            ) or e.uninitialized(type_)
        self.node.add_input(start)
        parameter = self.block.add_parameter(type_, hint)
        self.block.add_result(parameter if value is None else value)
        e.names[name] = sugar_of_value(self.node.add_output(type_, hint))
        if name in FLAGS.values():
            e.names[name] = e.names[name].value(e)

    def _fresh(self, branch: Branch, before: dict[str, object], endless: bool) -> None:
        """Add outputs for the variables that an endless loop assigns before `break`."""
        if not endless or not branch.goes_on:
            return
        e = self.e
        for name, one in branch.names.items():
            if name[0] == "$" or name in before or name in self.names:
                continue
            if isinstance(one, TypeConflict):
                e.names[name] = one
                continue
            with e.in_block(self.block):
                value = value_or_none(e, one)
            if isinstance(value, NoValue):
                e.names[name] = value
                continue
            self._extra(name, value.type, value, name)

    def _exits(self, branch: Branch, endless: bool) -> None:
        e = self.e
        ways = branch.exits & WAYS
        passes = not endless or Exit.BREAK in ways
        e.exits = branch.exits & Exit.RAISE
        if passes:
            e.exits |= Exit.NEXT
        if Exit.RETURN not in ways:
            return
        e.exits |= Exit.RETURN
        result = branch.names[RESULT]
        if isinstance(result, TypeConflict):
            e.names[RESULT] = result
        else:
            with e.in_block(self.block):
                value = result.value(e)
            self._extra(RESULT, value.type, value, "result")
        if passes:
            with e.in_block(self.block):
                flag = (
                    e.constant(True)
                    if ways is Exit.RETURN
                    else branch.names[FLAGS[Exit.RETURN]]
                )
            self._extra(FLAGS[Exit.RETURN], BoolType, flag, "RETURN")


def _written(block_: Block, iteration: Iteration | None) -> bool:
    """Return True if a body may write to the iterable of the loop."""
    if iteration is None:
        return False
    kinds = {each.type for each in iteration.watched()}
    if not kinds:
        return False
    for node in block_:
        if NodeEffect.UNKNOWN in effects_of(node):
            return True
        for writer, place in writes_of(node):
            if writer.inputs[place].type in kinds:
                return True
    return False


# Comprehensions


def iteration_of(e: Emitter, node: ast.expr) -> Iteration:
    """Return the iteration over the value of an expression."""
    with e.place_at(node):
        iteration: Iteration = e.expression(node).iterate(e)
        return iteration


@emits(ast.ListComp)
def list_comprehension(e: Emitter, node: ast.ListComp) -> Sugared:
    """Emit `[element for target in ...]`."""
    iteration = iteration_of(e, node.generators[0].iter)
    static, wide = iteration.static(), wanted_part(e, node, ListType, "element")
    if node.generators[0].ifs:
        return _selected(e, node, iteration, wide)
    if static is not None:
        values: list[Value] = []
        _own(e, node, lambda: values.extend(_each(e, node, each) for each in static))
        return list_display(e, values, wide=wide)
    return SimpleValue(
        _own(e, node, lambda: list_of(e, iteration, partial(_each, e, node), wide))
    )


def _selected(
    e: Emitter, node: ast.ListComp, iteration: Iteration, wide: Type | None
) -> Sugared:
    """Emit a list of the elements for which the conditions hold."""
    result = e.node("prim::ListConstruct", (), (ListType(TensorType),)).output
    e.untyped.add(result)

    def add() -> None:
        value = e.value(node.elt)
        if result in e.untyped:
            is_wide = wide is not None and is_subtype(value.type, wide)
            result.type = ListType(wide if wide and is_wide else value.type)
            e.untyped.discard(result)
        append = SimpleValue(result).attribute(e, "append")
        append.call(e, Arguments((sugar_of_value(value),)))

    def fill(item: Sugared) -> None:
        assign(e, node.generators[0].target, item)
        _where(e, node.generators[0].ifs, add)

    static = iteration.static()
    if static is not None:
        _own(e, node, lambda: [*map(fill, static)])
    else:
        _own(e, node, lambda: repeat(e, iteration, fill))
    return SimpleValue(result)


def _where(e: Emitter, tests: Sequence[ast.expr], emit: Callable[[], None]) -> None:
    """Emit what is done where all conditions hold."""
    if not tests:
        emit()
        return
    test = condition(e, tests[0])
    rest = test.holding(e, True, lambda: _where(e, tests[1:], emit))
    if isinstance(test.truth, bool):
        if test.truth:
            rest()
        return
    node = e.node("prim::If", (test.truth,))
    e.branch(node, rest)
    e.branch(node, lambda: None)


def _each(e: Emitter, node: ast.ListComp, item: Sugared) -> Value:
    assign(e, node.generators[0].target, item)
    return e.value(node.elt)


@emits(ast.DictComp)
def dict_comprehension(e: Emitter, node: ast.DictComp) -> Sugared:
    """Emit `{key: value for target in ...}`."""
    iteration = iteration_of(e, node.generators[0].iter)
    result = e.node("prim::DictConstruct", (), (DictType(StrType, TensorType),)).output
    kinds: list[Type] = []
    wide = wanted_part(e, node, DictType, "value")

    def fill(item: Sugared) -> None:
        assign(e, node.generators[0].target, item)
        _where(e, node.generators[0].ifs, put)

    def put() -> None:
        key, value = e.expression(node.key), e.expression(node.value)
        pair = key.value(e), value.value(e)
        if not kinds:
            is_wide = wide is not None and is_subtype(pair[1].type, wide)
            value_type = wide if wide and is_wide else pair[1].type
            result.type = DictType(check_key(e, pair[0].type), value_type)
            e.untyped.discard(result)
            kinds.append(result.type)
        operands = (SimpleValue(each) for each in (result, *pair))
        call_rows(e, "a dict comprehension", by_operator("[]="), *operands)

    static = iteration.static()
    if static is not None:
        e.untyped.add(result)
        _own(e, node, lambda: [*map(fill, static)])
    else:
        _own(e, node, lambda: repeat(e, iteration, fill))
    return SimpleValue(result)


def _own(e: Emitter, node: ast.ListComp | ast.DictComp, emit: Callable[[], T]) -> T:
    """Emit within the scope of a comprehension."""
    names, declared = dict(e.names), dict(e.declared)
    for name in comprehension_targets(node):
        e.names.pop(name, None)
        e.declared.pop(name, None)
    result = emit()
    e.names, e.declared = names, declared
    return result
