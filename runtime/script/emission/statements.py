"""Statements: one function for each class of them, blocks of them, and whole bodies.

Loops are in `runtime.script.emission.loops`. A graph has no jumps: statements that
`return`, `break` and `continue` skip are put into a block of a branch. `emit_body`
builds the graph of a function; the compiler calls it through the hook `BODY`.

Rules:
- statements after a branch of which one way leaves (`if c: return`) are put into the
  other way, unless blocks are nested deeper than `DEEPEST`: so the refinement of the
  condition is valid there, and no flag is needed;
- otherwise statements after one that may have left test flags;
- a target is computed once, even if it is read before it is assigned, as in `x[f()] +=
  1`; the value is computed before the targets, and these from left to right;
- an annotated variable keeps its type: values assigned later must fit it;
- an exception is compiled to the name of its class, and its message.
"""

import ast
from collections.abc import Callable, Sequence
from functools import partial

from everyorder.runtime.autograd.grad_mode import Mode
from everyorder.runtime.base.hooks import BODY
from everyorder.runtime.schema.declared import DeclaredType, InterfaceType
from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import NoneType_, PyObjectType, Type
from everyorder.runtime.script.emission.branches import (
    Condition,
    TypeConflict,
    condition,
    exit_flag,
    join,
    refine,
)
from everyorder.runtime.script.emission.compiler import (
    Compiler,
    FunctionBody,
    OwnerSugar,
)
from everyorder.runtime.script.emission.emitter import (
    RESULT,
    WAYS,
    Arguments,
    Branch,
    Emitter,
    Sugared,
    emits,
)
from everyorder.runtime.script.emission.expressions import (
    BINARY,
    CONVERT,
    assign,
    for_type,
    variable,
)
from everyorder.runtime.script.emission.graph_values import text_of
from everyorder.runtime.script.emission.operators import in_place
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredTuple,
    sugar_of,
    sugar_of_value,
)
from everyorder.runtime.script.frontend import JUMPS, Exit, mangled, place_of
from everyorder.runtime.script.frontend.language import too_deep
from everyorder.runtime.script.ir import Graph, Place, Value

# Bodies, blocks and branches


def emit_body(
    compiler: Compiler,
    graph: Graph,
    body: FunctionBody,
    sugar: OwnerSugar | None = None,
) -> None:
    """Emit the whole body of a function; `sugar` creates that of its object, if any."""
    e = Emitter(compiler, graph, body)
    tree = e.definition.tree
    for argument in body.signature.arguments:
        value = e.block.add_parameter(argument.type, argument.name)
        e.declared[argument.name] = argument.type
        e.parameters.add(argument.name)
        e.names[argument.name] = (sugar or sugar_of_value)(value)
        sugar = None
    end = ast.copy_location(ast.Return(value=None), tree.body[-1])
    try:
        _in_modes(e, body.modes, lambda: block(e, [*tree.body, end]))
    except RecursionError:
        raise too_deep(e.source) from None
    e.place = Place(e.source, place_of(tree, e.source))
    if Exit.RETURN in e.exits & WAYS:
        returned = e.names[RESULT]
        if isinstance(returned, TypeConflict):
            e.fail(
                f"the function returns different types: {returned.mismatch.reason}",
                "Annotate what it returns with a type of all.",
                [
                    (f"It is of type {one} here", place)
                    for one, place in returned.places
                ],
            )
        result = returned.value(e)
    else:
        result = e.uninitialized(e.returns or NoneType_)
    e.block.add_result(result)


def _in_modes(e: Emitter, modes: Sequence[Mode], emit: Callable[[], None]) -> None:
    """Emit within the modes of autograd that decorate the function."""
    if not modes:
        emit()
        return
    options = [sugar_of(each, e) for each in modes[0].options]
    manager = sugar_of(type(modes[0]), e).call(e, Arguments(options))
    _managed(e, manager, lambda _: _in_modes(e, modes[1:], emit))


# The nesting of blocks from which on flags are tested instead of nesting deeper.
DEEPEST = 30


def block(e: Emitter, body: Sequence[ast.stmt]) -> None:
    """Emit statements one after another, as far as control reaches."""
    for place, each in enumerate(body):
        rest = body[place + 1 :]
        if isinstance(each, ast.If):
            if branch(e, each, rest):
                return
        else:
            e.statement(each)
        if Exit.NEXT not in e.exits:
            return
        if e.exits & JUMPS:
            guarded(e, rest)
            return


def guarded(e: Emitter, rest: Sequence[ast.stmt]) -> None:
    """Emit statements that run only if control has not left."""
    statements = list(rest)
    while statements:
        # A statement that may leave ends a group: the following group tests again.
        count = 1
        for each in statements:
            if isinstance(each, ast.Return) or e.scopes.exits.ways(each) & JUMPS:
                break
            count += 1
        group, statements = statements[:count], statements[count:]
        ask(e, partial(block, e, group))
        if Exit.NEXT not in e.exits:
            return
        if not e.exits & JUMPS:
            block(e, statements)
            return


def ask(e: Emitter, emit: Callable[[], None]) -> None:
    """Emit code that runs only if control has not left."""
    node = e.node("prim::If", (exit_flag(e),))
    left = Branch(node.add_block(), dict(e.names), e.exits & ~Exit.NEXT)
    join(e, node, [left, e.branch(node, emit)])


def branch(e: Emitter, node: ast.If, rest: Sequence[ast.stmt]) -> bool:
    """Emit a branch; return True if the statements after it have been emitted, too."""
    before = e.place
    e.place = e.place._replace(source=e.source, span=e.source.span(node.test))
    test = condition(e, node.test)
    if isinstance(test.truth, bool):
        refine(e, test.positive if test.truth else test.negative)
        e.place = before
        block(e, [*(node.body if test.truth else node.orelse), *rest])
        return True
    if_ = e.node("prim::If", (test.truth,))

    def run(body: Sequence[ast.stmt], types: dict[str, Type]) -> Callable[[], None]:
        def emit() -> None:
            refine(e, types)
            block(e, body)

        return emit

    first = e.branch(if_, run(node.body, dict(test.positive)))
    second = e.branch(if_, run(node.orelse, dict(test.negative)))
    e.place = before
    ways = [each for each in (first, second) if Exit.NEXT in each.exits]
    done = False
    if rest and len(ways) == 1 and e.depth < DEEPEST:
        if ways[0] is first:
            first = _behind(e, first, rest)
        else:
            second = _behind(e, second, rest)
        done = True
    join(e, if_, [first, second])
    if not done and len(ways) == 1:
        _keep_refined(e, test, ways[0] is first)
    return done


def _behind(e: Emitter, way: Branch, rest: Sequence[ast.stmt]) -> Branch:
    """Return the branch, extended by the statements after it."""

    def emit() -> None:
        e.names, e.exits = way.names, way.exits
        if e.exits & JUMPS:
            guarded(e, rest)
        else:
            block(e, rest)

    return e.within(way.block, emit)


def _keep_refined(e: Emitter, test: Condition, truth: bool) -> None:
    """Keep the types that a condition implies after a branch with one way out."""
    if e.exits & WAYS is Exit.NEXT:
        types = test.positive if truth else test.negative
        refine(e, {k: v for k, v in types.items() if k in e.names})


# Statements


@emits(ast.Expr)
def expression(e: Emitter, node: ast.Expr) -> None:
    """Emit an expression whose value is not used."""
    if not isinstance(node.value, ast.Constant):
        e.expression(node.value)


@emits(ast.Pass)
def nothing(e: Emitter, node: ast.Pass) -> None:
    """Emit `pass`."""


# Assignments


@emits(ast.Assign)
def assignment(e: Emitter, node: ast.Assign) -> None:
    """Emit `x = y = value`."""
    declared = e.annotations.assignment(node)
    if declared is None:
        target = node.targets[0]
        before = e.declared.get(target.id) if isinstance(target, ast.Name) else None
        value = for_type(e, node.value, before) if before else e.expression(node.value)
    else:
        value = for_type(e, node.value, declared)
        value = _typed(e, node.value, value, declared)
    if not isinstance(value, SimpleValue) and len(node.targets) > 1:
        # Several targets share one value.
        value = _shared(e, value)
    for target in node.targets:
        if declared is not None and isinstance(target, ast.Name):
            _declare(e, target.id, declared)
        assign(e, target, value)


def _shared(e: Emitter, value: Sugared) -> Sugared:
    if isinstance(value, SugaredTuple) and all(
        isinstance(each, SimpleValue) for each in value.items
    ):
        return SimpleValue(value.value(e))
    return value


@emits(ast.AnnAssign)
def annotated(e: Emitter, node: ast.AnnAssign) -> None:
    """Emit `x: T = value`."""
    assert node.value is not None, "the restrictions refuse a declaration without value"
    declared = e.annotations.assignment(node)
    assert declared is not None, "an annotated assignment has a type"
    value = _typed(e, node.value, _assigned(e, node.value, declared), declared)
    if isinstance(node.target, ast.Name):
        _declare(e, node.target.id, declared)
    if isinstance(node.target, ast.Attribute):
        name = mangled(node.target.attr, e.definition.owner)
        e.expression(node.target.value).declare_attribute(e, name, declared)
    assign(e, node.target, value)


def _assigned(e: Emitter, node: ast.expr, type_: Type) -> Sugared:
    """Emit the value of an assignment; for an interface, one of several modules."""
    if not isinstance(node, ast.Subscript) or not isinstance(type_, InterfaceType):
        return for_type(e, node, type_)
    with e.place_at(node):
        owner = e.expression(node.value)
        return owner.select(e, e.expression(node.slice), type_)


def _declare(e: Emitter, name: str, type_: Type) -> None:
    declared = e.declared.get(name)
    if declared is not None and declared is not type_:
        e.fail(
            f"`{name}` is annotated as {declared} before, and as {type_} here",
            "A variable has one type: use another name.",
        )
    e.declared[name] = type_


def _typed(e: Emitter, node: ast.expr, value: Sugared, type_: Type) -> Sugared:
    """Return the value, which must fit the declared type."""
    message = f"a value of type {{}} is assigned to a variable of type {type_}"
    fitted = e.fit(value.value(e), type_, message, CONVERT)
    if fitted.type is NoneType_ or is_subtype(type_, fitted.type):
        return sugar_of_value(fitted)
    e.untyped.discard(fitted)
    return sugar_of_value(fitted)


@emits(ast.AugAssign)
def augmented(e: Emitter, node: ast.AugAssign) -> None:
    """Emit `x += value`; the target is computed once."""
    symbol = BINARY[type(node.op)]
    target = node.target
    if isinstance(target, ast.Name):
        read = variable(e, target)
        result = in_place(e, symbol, read, e.expression(node.value))
        assign(e, target, result)
        return
    owner = e.expression(target.value)
    if isinstance(target, ast.Attribute):
        name = mangled(target.attr, e.definition.owner)
        read = owner.attribute(e, name)
        result = in_place(e, symbol, read, e.expression(node.value))
        owner.set_attribute(e, name, result)
        return
    index = e.expression(target.slice)
    read = owner.subscript(e, index)
    result = in_place(e, symbol, read, e.expression(node.value))
    owner.set_subscript(e, index, result)


@emits(ast.Delete)
def delete(e: Emitter, node: ast.Delete) -> None:
    """Emit `del x, xs[0]`."""
    for target in node.targets:
        with e.place_at(target):
            if isinstance(target, ast.Name):
                variable(e, target)
                del e.names[target.id]
            elif isinstance(target, ast.Subscript):
                owner = e.expression(target.value)
                owner.delete_subscript(e, e.expression(target.slice))


# Exits


@emits(ast.Return)
def return_(e: Emitter, node: ast.Return) -> None:
    """Emit `return value`."""
    if node.value is None:
        value = e.constant(None)
    elif e.returns is None:
        value = e.expression(node.value).value(e)
    else:
        value = for_type(e, node.value, e.returns).value(e)
    if e.returns is not None:
        message = (
            f"a value of type {{}} is returned from a function that gives {e.returns}"
        )
        value = e.fit(value, e.returns, message, CONVERT)
        value = e.cast(value, e.returns)
    e.names[RESULT] = SimpleValue(value)
    e.exits = (e.exits & ~Exit.NEXT) | Exit.RETURN


@emits(ast.Break)
def break_(e: Emitter, node: ast.Break) -> None:
    """Emit `break`."""
    e.exits = (e.exits & ~Exit.NEXT) | Exit.BREAK


@emits(ast.Continue)
def continue_(e: Emitter, node: ast.Continue) -> None:
    """Emit `continue`."""
    e.exits = (e.exits & ~Exit.NEXT) | Exit.CONTINUE


@emits(ast.Raise)
def raise_(e: Emitter, node: ast.Raise) -> None:
    """Emit `raise Class("words")`."""
    assert node.exc is not None, "the restrictions refuse a `raise` without exception"
    operand = e.expression(node.exc)
    raised = getattr(operand, "raised", None)
    if raised is None:
        e.fail(
            f"{operand.describe()} is raised",
            "Raise an exception: a class of Python's.",
        )
    name, message = raised(e)
    e.raises(name, message)
    e.exits = (e.exits & ~Exit.NEXT) | Exit.RAISE


@emits(ast.Assert)
def assert_(e: Emitter, node: ast.Assert) -> None:
    """Emit `assert test, words`: the words are computed only if needed."""
    test = condition(e, node.test)
    if test.truth is True:
        refine(e, test.positive)
        return

    def fail() -> None:
        message = e.constant("")
        if node.msg is not None:
            message = text_of(e, e.expression(node.msg))
        e.raises("builtins.AssertionError", message)
        e.exits = Exit.RAISE

    if test.truth is False:
        fail()
        return
    if_ = e.node("prim::If", (test.truth,))
    first = e.branch(if_, lambda: None)
    join(e, if_, [first, e.branch(if_, fail)])
    refine(e, test.positive)


@emits(ast.With)
def with_(e: Emitter, node: ast.With) -> None:
    """Emit `with manager as name: ...`; several managers are nested."""
    _enter(e, node, 0)


def _enter(e: Emitter, node: ast.With, place: int) -> None:
    if place == len(node.items):
        block(e, node.body)
        return
    item = node.items[place]

    def emit(entered: Value) -> None:
        if item.optional_vars is not None:
            assign(e, item.optional_vars, sugar_of_value(entered))
        _enter(e, node, place + 1)

    _managed(e, e.expression(item.context_expr), emit)


def _managed(e: Emitter, manager: Sugared, emit: Callable[[Value], None]) -> None:
    """Emit within a context manager; `emit` takes what its `__enter__` returns."""
    value = manager.enter(e)
    with_node = e.node("prim::With", (value,))
    body = with_node.add_block()
    entered = body.add_parameter(_entered(e, value), "entered")
    join(e, with_node, [e.within(body, lambda: emit(entered))])


def _entered(e: Emitter, manager: Value) -> Type:
    """Return the type of the result of `__enter__`."""
    kind = manager.type
    if isinstance(kind, DeclaredType):
        return kind.declaration.methods["__enter__"].returns[0].fake_type
    if kind is not PyObjectType:
        e.fail(f"a value of type {kind} is not a context manager")
    return PyObjectType


BODY.set(emit_body)
