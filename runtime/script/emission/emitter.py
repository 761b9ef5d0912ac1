"""The emitter: the state of a function's compilation, and the base class of sugar.

    Emitter    one function: its source, its graph, its variables, its exits so far
    Sugared    the meaning of an expression, and the operations on it; the base class
               refuses every operation with an error
    Branch     a block that has been emitted, with its variables at its end

Rules:
- a `Sugared` becomes a value of the graph only by `value`, and is immutable: an
  assignment binds another object; each method takes the emitter, which has the current
  place in the program;
- `names` maps variables to their current sugar; `declared` has the types of annotated
  variables;
- a graph has no jumps: statements that `return`, `break` and `continue` skip are put
  into the blocks of a branch on flags (`names["$RETURN"]`, ...); there is no flag while
  `exits`, the possible exits at the current end, has only one way;
- `runtime.script.emission.branches` joins the variables after a branch.

The modules `expressions`, `statements` and `loops` register the emission function of
each class of syntax trees (`emits`).
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.script import IllTyped, UnknownAttribute
from everyorder.runtime.schema.annotation import annotated_type
from everyorder.runtime.schema.declared import DeclaredType, InterfaceType
from everyorder.runtime.schema.subtyping import Mismatch, is_subtype, misfit, unify
from everyorder.runtime.schema.types import (
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    ListType,
    NumberType,
    OptionalType,
    TupleType,
    Type,
)
from everyorder.runtime.script.emission.compiler import (
    CallChain,
    Compiler,
    FunctionBody,
)
from everyorder.runtime.script.frontend import Exit, Scopes, place_of
from everyorder.runtime.script.ir import Block, Graph, Node, Place, Value, row_of
from everyorder.runtime.script.ir.type_rules import PLAIN_TYPES

N = TypeVar("N", bound=ast.AST)
R = TypeVar("R", bound="Sugared | None")
# Class of syntax tree -> the function that emits it.
EXPRESSIONS: dict[type[ast.AST], Callable[["Emitter", Any], "Sugared"]] = {}
STATEMENTS: dict[type[ast.AST], Callable[["Emitter", Any], None]] = {}


def emits(
    kind: type[N],
) -> Callable[[Callable[["Emitter", N], R]], Callable[["Emitter", N], R]]:
    """Register a function that emits the expressions, or statements, of a class."""
    table: dict[Any, Any] = STATEMENTS if issubclass(kind, ast.stmt) else EXPRESSIONS

    def register(function: Callable[["Emitter", N], R]) -> Callable[["Emitter", N], R]:
        table[kind] = function
        return function

    return register


# The exits after which the following code, or the next trip of a loop, runs.
ONWARD = Exit.NEXT | Exit.BREAK | Exit.CONTINUE
WAYS = ONWARD | Exit.RETURN
RESULT = "$result"
FLAGS: Mapping[Exit, str] = {
    each: f"${each.name}" for each in (Exit.RETURN, Exit.BREAK, Exit.CONTINUE)
}
# The number of trips of a loop without a count; it is never reached.
ENDLESS = 2**63 - 1


class Branch(NamedTuple):
    """A block that has been emitted."""

    block: Block
    names: dict[str, Any]
    exits: Exit

    @property
    def goes_on(self) -> bool:
        """Return True if its variables are used after the branch."""
        return bool(self.exits & ONWARD)


class Holder:
    """An object that may hold values of a graph in its fields, at any depth."""

    __slots__ = ()

    def with_values(self, change: Callable[[Value], Value]) -> Self:
        """Return a copy with changed values; the object itself if none changes."""
        fields = [name for each in type(self).__mro__ for name in _slots(each)]
        changed = {
            name: new
            for name in (*fields, *getattr(self, "__dict__", ()))
            if (new := _changed(old := getattr(self, name), change)) is not old
        }
        if not changed:
            return self
        changed_copy = copy(self)
        for name, new in changed.items():
            # Some classes are frozen; the copy is not shared yet.
            object.__setattr__(changed_copy, name, new)
        return changed_copy


def _slots(cls: type) -> tuple[str, ...]:
    return tuple(cls.__dict__.get("__slots__", ()))


def _changed(content: Any, change: Callable[[Value], Value]) -> Any:
    if isinstance(content, Value):
        return change(content)
    if isinstance(content, Holder):
        return content.with_values(change)
    if type(content) in (tuple, list):
        parts = [_changed(each, change) for each in content]
        if any(new is not old for new, old in zip(parts, content, strict=True)):
            return type(content)(parts)
    return content


# Primitives whose result type the program declares.
_UNTYPED = ("script::item.Tensor", "script::tolist.Tensor")
# The primitive that widens a number of any kind, as Python's numbers do.
_WIDER: Mapping[Type, str] = {
    FloatType: "script::float.Scalar",
    ComplexType: "script::complex.Scalar",
}


class Emitter:
    """The state of the compilation of one function."""

    def __init__(self, compiler: Compiler, graph: Graph, body: FunctionBody) -> None:
        definition, annotations, scope, signature, _ = body
        self.compiler = compiler
        self.definition = definition
        self.source = definition.source
        self.annotations = annotations
        # Returns the object of a name that is not a variable; raises LookupError.
        self.find = scope.find
        self.graph = graph
        self.returns = signature.returns
        self.scopes = Scopes(definition.tree)
        self.block = graph.block
        self.anchor: Node | None = None
        self.depth = 0
        self.place = Place(self.source, place_of(definition.tree, self.source))
        self.names: dict[str, Any] = {}
        self.declared: dict[str, Type] = {}
        # Parameters, which an assignment may bind to a value of another type.
        self.parameters: set[str] = set()
        self.exits = Exit.NEXT
        # The truth of conditions that types decide.
        self.known_conditions: dict[ast.expr, bool] = {}
        # Lists and dictionaries without elements, whose types are open.
        self.untyped: set[Value] = set()
        # Data that other modules store for the function, under their names.
        self.memo: dict[str, Any] = {}

    # Nodes

    def node(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Iterable[Type] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        """Append a new node at the insertion point, at the current place."""
        new_node = Node(kind, inputs, types, attributes, self.place)
        if self.anchor is not None:
            return new_node.insert_before(self.anchor)
        return self.block.append(new_node)

    def constant(self, value: Any, type: Type | None = None) -> Value:  # noqa: A002  # the field's own word
        """Emit a constant; its type is that of the value unless `type` is passed."""
        constant_type_ = constant_type(value) if type is None else type
        return self.node(
            "prim::Constant", (), (constant_type_,), {"value": value}
        ).output

    def boolean(self, truth: Value | bool) -> Value:
        """Return a condition as a value of the graph."""
        return self.constant(truth) if isinstance(truth, bool) else truth

    def uninitialized(self, type: Type) -> Value:  # noqa: A002  # the field's own word
        """Emit a value that is never read."""
        return self.node("prim::Uninitialized", (), (type,)).output

    def cast(self, value: Value, type: Type) -> Value:  # noqa: A002  # the field's own word
        """Return the value as one of another type; itself if it has the type."""
        if value.type is type:
            return value
        return self.node("prim::unchecked_cast", (value,), (type,)).output

    def operator(self, name: str, *inputs: Value) -> Value:
        """Emit a primitive with one result whose type follows from its schema."""
        row = row_of(name)
        assert row is not None, "a primitive has a row"
        assert row.schema is not None, "a primitive has a schema"
        types = [each.fake_type for each in row.schema.returns]
        return self.node(name, inputs, types).output

    def raises(self, name: str, message: Value | str) -> None:
        """Emit the raising of an exception of a class."""
        words = self.constant(message) if isinstance(message, str) else message
        self.node("prim::RaiseException", (words,), (), {"class": name})

    @contextmanager
    def insert_point(self, node: Node) -> Iterator[None]:
        """Insert nodes before a node within the context."""
        block, anchor = self.block, self.anchor
        assert node.block is not None, "the node is in a block"
        self.block, self.anchor = node.block, node
        yield
        self.block, self.anchor = block, anchor

    @contextmanager
    def in_block(self, block: Block) -> Iterator[None]:
        """Append nodes to a block within the context."""
        insertion_point = self.block, self.anchor
        self.block, self.anchor = block, None
        yield
        self.block, self.anchor = insertion_point

    # Syntax trees

    @contextmanager
    def place_at(self, node: ast.expr) -> Iterator[None]:
        """Give nodes and errors the place of an expression within the context."""
        before, self.place = self.place, Place(self.source, self.source.span(node))
        yield
        self.place = before

    def expression(self, node: ast.expr) -> "Sugared":
        """Emit an expression and return its sugar."""
        before, self.place = self.place, Place(self.source, self.source.span(node))
        result = EXPRESSIONS[type(node)](self, node)
        self.place = before
        return result

    def value(self, node: ast.expr) -> Value:
        """Emit an expression and return its value."""
        before, self.place = self.place, Place(self.source, self.source.span(node))
        result = EXPRESSIONS[type(node)](self, node).value(self)
        self.place = before
        return result

    def statement(self, node: ast.stmt) -> None:
        """Emit one statement."""
        before, self.place = self.place, Place(self.source, place_of(node, self.source))
        STATEMENTS[type(node)](self, node)
        self.place = before

    # Types

    def fitted(self, value: Value, type: Type) -> Value | None:  # noqa: A002  # the field's own word
        """Return the value if it fits, else None; a display may take the type."""
        if is_subtype(value.type, type):
            return value
        return value if becomes(value, type, self.untyped) else None

    def takes(self, value: Value, type: Type) -> bool:  # noqa: A002  # the field's own word
        """Return True if `fit` accepts the value; its type may be known at run time."""
        return self.fitted(value, type) is not None or value.node.kind in _UNTYPED

    def common(self, values: Sequence[Value]) -> Type | Mismatch:
        """Return the least common type; values with open types follow the others.

        The index in a `Mismatch` is that of the value.
        """
        open_ = [each in self.untyped and not each.uses for each in values]
        typed = [n for n, is_open in enumerate(open_) if not is_open]
        if not typed or len(typed) == len(values):
            return unify(*(each.type for each in values))
        common = unify(*(values[n].type for n in typed))
        if isinstance(common, Mismatch):
            return replace(common, index=typed[common.index])
        for each, is_open in zip(values, open_, strict=True):
            if is_open and not becomes(each, common, self.untyped):
                return unify(*(one.type for one in values))
        return common

    def fit(
        self,
        value: Value,
        type: Type,  # noqa: A002  # the field's own word
        message: str,
        hint: str = "",
    ) -> Value:
        """Return the value as one of the type.

        Raises:
            IllTyped: the value does not fit; `message` has `{}` for its type.
        """
        fitted = self.fitted(value, type)
        if fitted is None and value.node.kind in _UNTYPED:
            return self._asserted(value, type)
        if fitted is None:
            self.fail(message.format(value.type), why_not(value.type, type) or hint)
        return fitted

    def _asserted(self, value: Value, type: Type) -> Value:  # noqa: A002  # the field's own word
        """Return the result of `item` or `tolist` as a value of the declared type."""
        conversion = _WIDER.get(type) if value.type is NumberType else None
        if conversion is not None:
            return self.operator(conversion, value)
        attributes = {"types": (type,)}
        is_one = self.node("prim::isinstance", (value,), (BoolType,), attributes)
        node = self.node("prim::If", (is_one.output,))
        name = value.node.kind.removeprefix("script::").partition(".")[0]

        words = f"`{name}` gives something that is no {type}"
        self.branch(node, lambda: None)
        self.branch(node, lambda: self.raises("builtins.TypeError", words))
        return self.cast(value, type)

    def fail(
        self,
        message: str,
        hint: str = "",
        others: Iterable[tuple[str, Place | None]] = (),
    ) -> NoReturn:
        """Refuse the code at the current place.

        Raises:
            IllTyped: always.
        """
        raise IllTyped(
            source=self.place.source,
            span=self.place.span,
            message=message,
            hint=hint,
            others=tuple((words, *place) for words, place in others if place),
        )

    def since(self, name: str) -> CallChain:
        """Return the chain of calls for a callee at the current place."""
        return ((name, self.place.source, self.place.span), *self.compiler.since)

    # Branches

    def branch(self, node: Node, emit: Callable[[], None]) -> Branch:
        """Add a block to a node and fill it by `emit`."""
        return self.within(node.add_block(), emit)

    def within(self, block: Block, emit: Callable[[], None]) -> Branch:
        """Fill a block by `emit`, with a separate scope of variables."""
        names, exits = self.names, self.exits
        insertion_point = self.block, self.anchor
        self.block, self.anchor = block, None
        self.names = {k: v for k, v in names.items() if k[0] != "$"}
        self.exits = Exit.NEXT
        self.depth += 1
        emit()
        self.depth -= 1
        result = Branch(block, self.names, self.exits)
        self.block, self.anchor = insertion_point
        self.names, self.exits = names, exits
        return result

    def if_else(
        self,
        test: Value,
        first: Callable[[], Value | bool],
        second: Callable[[], Value | bool],
    ) -> Value:
        """Return one of two bools by a condition; only the selected one is computed."""
        node = self.node("prim::If", (test,))

        def emit(one: Callable[[], Value | bool]) -> None:
            self.block.add_result(self.boolean(one()))

        self.branch(node, partial(emit, first))
        self.branch(node, partial(emit, second))
        return node.add_output(BoolType)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call, positional and named."""

    positional: Sequence["Sugared"] = ()
    named: Mapping[str, "Sugared"] = field(default_factory=dict)

    def behind(self, first: "Sugared") -> "Arguments":
        """Return the arguments with a first one added: the object of a method."""
        return Arguments((first, *self.positional), self.named)

    def words(self) -> tuple[str, ...]:
        """Return descriptions of the arguments: their types."""
        return (
            *(each.words() for each in self.positional),
            *(f"{name}: {each.words()}" for name, each in self.named.items()),
        )


class Sugared(Holder):
    """A named object of a program; each method may refuse its operation.

    `hint` is the hint of errors about refused operations.
    """

    __slots__ = ()

    hint = ""

    def describe(self) -> str:
        """Return a description that can begin a sentence."""
        raise NotImplementedError(f"{type(self).__name__} has no description")

    def words(self) -> str:
        """Return a description among the arguments of a call."""
        return self.describe()

    def resolve(self, e: Emitter) -> "Sugared":
        """Return the sugar at the place where it is named; usually itself."""
        return self

    def value(self, e: Emitter) -> Value:
        """Return the value of the graph."""
        e.fail(
            f"{self.describe()} is not a value", "It can be called or looked into only."
        )

    def attribute(self, e: Emitter, name: str) -> "Sugared":
        """Emit `it.name`."""
        no_attribute(e, self.describe(), name, ())

    def set_attribute(self, e: Emitter, name: str, value: "Sugared") -> None:
        """Emit `it.name = value`."""
        e.fail(f"attributes of {self.describe()} cannot be set", self.hint)

    def declare_attribute(self, e: Emitter, name: str, type: Type) -> None:  # noqa: A002  # the field's own word
        """Handle `it.name: type = ...` before it is set; the value fits the type."""

    def call(self, e: Emitter, arguments: Arguments) -> "Sugared":
        """Emit `it(...)`."""
        e.fail(f"{self.describe()} cannot be called", self.hint)

    def own_method(self, name: str) -> "Sugared | None":
        """Return a special method that a class of modules defines itself, or None."""
        return None

    def subscript(self, e: Emitter, index: "Sugared") -> "Sugared":
        """Emit `it[index]`."""
        e.fail(f"{self.describe()} has no elements", self.hint)

    def select(self, e: Emitter, index: "Sugared", interface: Type) -> "Sugared":
        """Emit `it[index]` where an interface is annotated as the type."""
        return self.subscript(e, index)

    def set_subscript(self, e: Emitter, index: "Sugared", value: "Sugared") -> None:
        """Emit `it[index] = value`."""
        e.fail(f"elements of {self.describe()} cannot be set")

    def delete_subscript(self, e: Emitter, index: "Sugared") -> None:
        """Emit `del it[index]`."""
        e.fail(f"elements of {self.describe()} cannot be deleted")

    def elements(self, e: Emitter) -> "Sequence[Sugared] | None":
        """Return its elements if their number is known at compile time, else None."""
        return None

    def iterate(self, e: Emitter) -> Any:
        """Return the `Iteration` of a loop over it."""
        e.fail(f"{self.describe()} is not iterable", self.hint or ITERABLES)

    def binary(
        self, e: Emitter, symbol: str, other: "Sugared", reflected: bool
    ) -> "Sugared | None":
        """Emit `it symbol other`, or `other symbol it`; None if not supported."""
        return None

    def truth(self, e: Emitter) -> Value | bool:
        """Return its truth; a bool if it is known at compile time."""
        e.fail(f"{self.describe()} is neither true nor false", self.hint)

    def enter(self, e: Emitter) -> Value:
        """Return the manager of a `with`."""
        return self.value(e)


class PythonObject(Sugared):
    """The sugar of a Python object."""

    __slots__ = ("python",)

    def __init__(self, python: Any) -> None:
        self.python = python


ITERABLES = (
    "Loops go through ranges, lists, dictionaries, tuples, texts and tensors, and "
    "through zip, enumerate and reversed of such."
)


def no_attribute(
    e: Emitter, owner: str, name: str, candidates: Sequence[str], hint: str = ""
) -> NoReturn:
    """Refuse an attribute with similar names from the candidates.

    Raises:
        UnknownAttribute: always.
    """
    raise UnknownAttribute(
        source=e.place.source,
        span=e.place.span,
        owner=owner,
        attribute=name,
        near=nearest(name, tuple(dict.fromkeys(candidates))),
        hint=hint,
    )


def becomes(value: Value, type: Type, untyped: set[Value]) -> bool:  # noqa: A002  # the field's own word
    """Give an unused display a type if its elements fit; return True on success."""
    node = value.node
    display = node.kind in ("prim::ListConstruct", "prim::DictConstruct")
    if value.uses or not display or (not node.inputs and value not in untyped):
        return False
    if isinstance(type, OptionalType):
        return becomes(value, type.element, untyped)
    if isinstance(value.type, ListType) and isinstance(type, ListType):
        element_types = [type.element] * len(node.inputs)
    elif isinstance(value.type, DictType) and isinstance(type, DictType):
        element_types = [type.key, type.value] * (len(node.inputs) // 2)
    else:
        return False
    for each, one in zip(node.inputs, element_types, strict=True):
        if not is_subtype(each.type, one):
            return False
    value.type = type
    untyped.discard(value)
    return True


def why_not(actual: Type, expected: Type) -> str:
    """Return the reason why a type does not fit an interface; empty for other types."""
    if isinstance(expected, OptionalType):
        expected = expected.element
    if not isinstance(expected, InterfaceType) or not isinstance(actual, DeclaredType):
        return ""
    fault = misfit(actual.declaration, expected.declaration)
    return "" if fault is None else f"{actual} is no {expected}: {fault}"


def constant_type(value: Any) -> Type:
    """Return the type of a Python constant."""
    if type(value) is tuple:
        return TupleType(tuple(map(constant_type, value)))
    type_ = PLAIN_TYPES.get(type(value)) or annotated_type(type(value))
    assert type_ is not None, "every constant has a type"
    return type_
