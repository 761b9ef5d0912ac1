"""The emitter: one function that is being compiled, and what its expressions mean.

    Emitter    one function: its source, its graph, its variables, its exits so far
    Sugared    what an expression means, and what may be done with it; the base refuses
               everything, in words
    Branch     a block that has been emitted, with what its variables are at its end

Rules:
- nothing `Sugared` is a value of a graph until `value` is asked for, and it never
  changes: what is assigned is another one; an emitter is given to each method, and says
  at which place of the program it is;
- a variable is what `names` says; `declared` are the types of those that were written
  with one;
- a graph has no jumps: what `return`, `break` and `continue` leave out is put into the
  blocks of a branch that asks flags (`names["$RETURN"]`, ...); while `exits`, the ways
  that control has gone by the end of what is emitted, has one way only, there is none;
- what the variables are behind a branch is said by `runtime.script.emission.branches`.

The chapters `expressions`, `statements` and `loops` register what emits each class of
syntax trees (`emits`).
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
    """Let a function emit the expressions, or statements, of a class."""
    table: dict[Any, Any] = STATEMENTS if issubclass(kind, ast.stmt) else EXPRESSIONS

    def register(function: Callable[["Emitter", N], R]) -> Callable[["Emitter", N], R]:
        table[kind] = function
        return function

    return register


# The ways that pass on to what is behind, at once or in the next round of a loop.
ONWARD = Exit.NEXT | Exit.BREAK | Exit.CONTINUE
WAYS = ONWARD | Exit.RETURN
RESULT = "$result"
FLAGS: Mapping[Exit, str] = {
    each: f"${each.name}" for each in (Exit.RETURN, Exit.BREAK, Exit.CONTINUE)
}
# So many trips that a loop never makes them.
ENDLESS = 2**63 - 1


class Branch(NamedTuple):
    """A block that has been emitted."""

    block: Block
    names: dict[str, Any]
    exits: Exit

    @property
    def goes_on(self) -> bool:
        """Whether what its variables are is seen by anybody."""
        return bool(self.exits & ONWARD)


class Holder:
    """An object that may hold values of a graph in its fields, at any depth."""

    __slots__ = ()

    def with_values(self, change: Callable[[Value], Value]) -> Self:
        """The same of other values; itself if none is another."""
        fields = [name for each in type(self).__mro__ for name in _slots(each)]
        changed = {
            name: new
            for name in (*fields, *getattr(self, "__dict__", ()))
            if (new := _changed(old := getattr(self, name), change)) is not old
        }
        if not changed:
            return self
        made = copy(self)
        for name, new in changed.items():
            # Some are frozen; this one is new.
            object.__setattr__(made, name, new)
        return made


def _slots(cls: type) -> tuple[str, ...]:
    return tuple(cls.__dict__.get("__slots__", ()))


def _changed(held: Any, change: Callable[[Value], Value]) -> Any:
    if isinstance(held, Value):
        return change(held)
    if isinstance(held, Holder):
        return held.with_values(change)
    if type(held) in (tuple, list):
        parts = [_changed(each, change) for each in held]
        if any(new is not old for new, old in zip(parts, held, strict=True)):
            return type(held)(parts)
    return held


# Primitives whose result has the type that the program says.
_UNTYPED = ("script::item.Tensor", "script::tolist.Tensor")
# What makes a number of any kind one of a wider one, as Python's numbers become it.
_WIDER: Mapping[Type, str] = {
    FloatType: "script::float.Scalar",
    ComplexType: "script::complex.Scalar",
}


class Emitter:
    """One function that is being compiled."""

    def __init__(self, compiler: Compiler, graph: Graph, body: FunctionBody) -> None:
        definition, annotations, scope, signature = body
        self.compiler = compiler
        self.definition = definition
        self.source = definition.source
        self.annotations = annotations
        # The object of a name that is no variable; raises LookupError.
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
        self.exits = Exit.NEXT
        # The truth of conditions that types decide.
        self.known_conditions: dict[ast.expr, bool] = {}
        # Lists and dictionaries without elements, whose types are open.
        self.untyped: set[Value] = set()
        # Facts of the function that chapters remember, by their own names.
        self.memo: dict[str, Any] = {}

    # Nodes

    def node(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Iterable[Type] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> Node:
        """A new node at the end of what is emitted, for what is compiled now."""
        made = Node(kind, inputs, types, attributes, self.place)
        if self.anchor is not None:
            return made.insert_before(self.anchor)
        return self.block.append(made)

    def constant(self, value: Any, type: Type | None = None) -> Value:  # noqa: A002  # the field's own word
        """A constant; of the type of the value if none is given."""
        wanted = constant_type(value) if type is None else type
        return self.node("prim::Constant", (), (wanted,), {"value": value}).output

    def boolean(self, truth: Value | bool) -> Value:
        """A condition as a value of the graph."""
        return self.constant(truth) if isinstance(truth, bool) else truth

    def uninitialized(self, type: Type) -> Value:  # noqa: A002  # the field's own word
        """A value that is never read."""
        return self.node("prim::Uninitialized", (), (type,)).output

    def cast(self, value: Value, type: Type) -> Value:  # noqa: A002  # the field's own word
        """The same value as one of another type; itself if it is of the type."""
        if value.type is type:
            return value
        return self.node("prim::unchecked_cast", (value,), (type,)).output

    def operator(self, name: str, *inputs: Value) -> Value:
        """The one result of a primitive whose schema names its type."""
        row = row_of(name)
        assert row is not None, "a primitive is known"
        assert row.schema is not None, "it has a schema"
        types = [each.fake_type for each in row.schema.returns]
        return self.node(name, inputs, types).output

    def raises(self, name: str, message: Value | str) -> None:
        """Raise an exception of a class, when the program comes here."""
        words = self.constant(message) if isinstance(message, str) else message
        self.node("prim::RaiseException", (words,), (), {"class": name})

    @contextmanager
    def insert_point(self, node: Node) -> Iterator[None]:
        """Context: nodes are put in front of a node."""
        block, anchor = self.block, self.anchor
        assert node.block is not None, "the node is somewhere"
        self.block, self.anchor = node.block, node
        yield
        self.block, self.anchor = block, anchor

    @contextmanager
    def in_block(self, block: Block) -> Iterator[None]:
        """Context: nodes are put at the end of a block."""
        kept = self.block, self.anchor
        self.block, self.anchor = block, None
        yield
        self.block, self.anchor = kept

    # Syntax trees

    @contextmanager
    def place_at(self, node: ast.expr) -> Iterator[None]:
        """Context: nodes, and errors, have the place of an expression."""
        before, self.place = self.place, Place(self.source, self.source.span(node))
        yield
        self.place = before

    def expression(self, node: ast.expr) -> "Sugared":
        """The sugar of an expression."""
        before, self.place = self.place, Place(self.source, self.source.span(node))
        result = EXPRESSIONS[type(node)](self, node)
        self.place = before
        return result

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
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
        """The value, if it is one of the type; a display may become one."""
        if is_subtype(value.type, type):
            return value
        return value if becomes(value, type, self.untyped) else None

    def common(self, values: Sequence[Value]) -> Type | Mismatch:
        """The least common type; what nothing has said the type of follows the others.

        The place in a `Mismatch` is that of the value.
        """
        open_ = [each in self.untyped and not each.uses for each in values]
        said = [n for n, is_open in enumerate(open_) if not is_open]
        if not said or len(said) == len(values):
            return unify(*(each.type for each in values))
        found = unify(*(values[n].type for n in said))
        if isinstance(found, Mismatch):
            return replace(found, index=said[found.index])
        for each, is_open in zip(values, open_, strict=True):
            if is_open and not becomes(each, found, self.untyped):
                return unify(*(one.type for one in values))
        return found

    def fit(
        self,
        value: Value,
        type: Type,  # noqa: A002  # the field's own word
        message: str,
        hint: str = "",
    ) -> Value:
        """The value as one of the type.

        Raises:
            IllTyped: it is none; the message has `{}` for the type that it is of.
        """
        found = self.fitted(value, type)
        if found is None and value.node.kind in _UNTYPED:
            return self._asserted(value, type)
        if found is None:
            self.fail(message.format(value.type), why_not(value.type, type) or hint)
        return found

    def _asserted(self, value: Value, type: Type) -> Value:  # noqa: A002  # the field's own word
        """The result of `item` or `tolist` as a value of the type that is written."""
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
        """Refuse what is compiled now.

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
        """Why something is compiled that is called here, by its name."""
        return ((name, self.place.source, self.place.span), *self.compiler.since)

    # Branches

    def branch(self, node: Node, emit: Callable[[], None]) -> Branch:
        """A new block of a node, filled by `emit`."""
        return self.within(node.add_block(), emit)

    def within(self, block: Block, emit: Callable[[], None]) -> Branch:
        """Let `emit` fill a block, which has variables of its own."""
        names, exits = self.names, self.exits
        kept = self.block, self.anchor
        self.block, self.anchor = block, None
        self.names = {k: v for k, v in names.items() if k[0] != "$"}
        self.exits = Exit.NEXT
        self.depth += 1
        emit()
        self.depth -= 1
        made = Branch(block, self.names, self.exits)
        self.block, self.anchor = kept
        self.names, self.exits = names, exits
        return made

    def if_else(
        self,
        test: Value,
        first: Callable[[], Value | bool],
        second: Callable[[], Value | bool],
    ) -> Value:
        """A bool that is one of two, by a condition; only that one is computed."""
        node = self.node("prim::If", (test,))

        def emit(one: Callable[[], Value | bool]) -> None:
            self.block.add_result(self.boolean(one()))

        self.branch(node, partial(emit, first))
        self.branch(node, partial(emit, second))
        return node.add_output(BoolType)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call, by place and by name."""

    positional: Sequence["Sugared"] = ()
    named: Mapping[str, "Sugared"] = field(default_factory=dict)

    def behind(self, first: "Sugared") -> "Arguments":
        """The same behind one more: the object of a method."""
        return Arguments((first, *self.positional), self.named)

    def words(self) -> tuple[str, ...]:
        """The arguments in words: their types."""
        return (
            *(each.words() for each in self.positional),
            *(f"{name}: {each.words()}" for name, each in self.named.items()),
        )


class Sugared(Holder):
    """Something that a program names; each method may be refused.

    `hint` says what to do where an operation is refused.
    """

    __slots__ = ()

    hint = ""

    def describe(self) -> str:
        """Its description, as the beginning of a sentence."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it is")

    def words(self) -> str:
        """Its words among the arguments of a call."""
        return self.describe()

    def resolve(self, e: Emitter) -> "Sugared":
        """The sugar at the place where it is named; mostly itself."""
        return self

    def value(self, e: Emitter) -> Value:
        """The value of the graph."""
        e.fail(
            f"{self.describe()} is no value", "It can be called or looked into only."
        )

    def attribute(self, e: Emitter, name: str) -> "Sugared":
        """`it.name`."""
        no_attribute(e, self.describe(), name, ())

    def set_attribute(self, e: Emitter, name: str, value: "Sugared") -> None:
        """`it.name = value`."""
        e.fail(f"attributes of {self.describe()} cannot be set", self.hint)

    def declare_attribute(self, e: Emitter, name: str, type: Type) -> None:  # noqa: A002  # the field's own word
        """`it.name: type = ...`, before it is set; the value fits the type."""

    def call(self, e: Emitter, arguments: Arguments) -> "Sugared":
        """`it(...)`."""
        e.fail(f"{self.describe()} cannot be called", self.hint)

    def subscript(self, e: Emitter, index: "Sugared") -> "Sugared":
        """`it[index]`."""
        e.fail(f"{self.describe()} has no elements", self.hint)

    def select(self, e: Emitter, index: "Sugared", wanted: Type) -> "Sugared":
        """`it[index]`, where an interface is written that it is of."""
        return self.subscript(e, index)

    def set_subscript(self, e: Emitter, index: "Sugared", value: "Sugared") -> None:
        """`it[index] = value`."""
        e.fail(f"elements of {self.describe()} cannot be set")

    def delete_subscript(self, e: Emitter, index: "Sugared") -> None:
        """`del it[index]`."""
        e.fail(f"elements of {self.describe()} cannot be deleted")

    def elements(self, e: Emitter) -> "Sequence[Sugared] | None":
        """Its elements, if their number is known before the program runs; else None."""
        return None

    def iterate(self, e: Emitter) -> Any:
        """The `Iteration` of a loop over it."""
        e.fail(f"{self.describe()} cannot be gone through", self.hint or ITERABLES)

    def binary(
        self, e: Emitter, symbol: str, other: "Sugared", reflected: bool
    ) -> "Sugared | None":
        """`it symbol other`, or `other symbol it`; None: it has no say in that."""
        return None

    def truth(self, e: Emitter) -> Value | bool:
        """Whether it counts as true; a bool if that is known beforehand."""
        e.fail(f"{self.describe()} is neither true nor false", self.hint)

    def enter(self, e: Emitter) -> Value:
        """The manager of a `with`."""
        return self.value(e)


class PythonObject(Sugared):
    """The sugar of an object of Python."""

    __slots__ = ("python",)

    def __init__(self, python: Any) -> None:
        self.python = python


ITERABLES = (
    "Loops go through ranges, lists, dictionaries, tuples, texts and tensors, and "
    "through zip, enumerate and reversed of such."
)


def no_attribute(
    e: Emitter, owner: str, name: str, known: Sequence[str], hint: str = ""
) -> NoReturn:
    """Refuse an attribute.

    Raises:
        UnknownAttribute: always.
    """
    raise UnknownAttribute(
        source=e.place.source,
        span=e.place.span,
        owner=owner,
        attribute=name,
        near=nearest(name, tuple(dict.fromkeys(known))),
        hint=hint,
    )


def becomes(value: Value, type: Type, untyped: set[Value]) -> bool:  # noqa: A002  # the field's own word
    """Give a display that is not used yet a type, if its elements fit."""
    node = value.node
    display = node.kind in ("prim::ListConstruct", "prim::DictConstruct")
    if value.uses or not display or (not node.inputs and value not in untyped):
        return False
    if isinstance(type, OptionalType):
        return becomes(value, type.element, untyped)
    if isinstance(value.type, ListType) and isinstance(type, ListType):
        wanted = [type.element] * len(node.inputs)
    elif isinstance(value.type, DictType) and isinstance(type, DictType):
        wanted = [type.key, type.value] * (len(node.inputs) // 2)
    else:
        return False
    for each, one in zip(node.inputs, wanted, strict=True):
        if not is_subtype(each.type, one):
            return False
    value.type = type
    untyped.discard(value)
    return True


def why_not(found: Type, wanted: Type) -> str:
    """The method because of which something is not of an interface; empty: no such."""
    if isinstance(wanted, OptionalType):
        wanted = wanted.element
    if not isinstance(wanted, InterfaceType) or not isinstance(found, DeclaredType):
        return ""
    fault = misfit(found.declaration, wanted.declaration)
    return "" if fault is None else f"{found} is no {wanted}: {fault}"


def constant_type(value: Any) -> Type:
    """The type of a constant of Python."""
    if type(value) is tuple:
        return TupleType(tuple(map(constant_type, value)))
    found = PLAIN_TYPES.get(type(value)) or annotated_type(type(value))
    assert found is not None, "constants are of types that the language has"
    return found
