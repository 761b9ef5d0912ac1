"""The emitter: one function that is being compiled, and where its graph has grown to.

It puts nodes into the graph, keeps what the variables of the function are at the place
that is compiled, and lets them meet behind branches.

    Emitter    one function: its source, its graph, its variables, its exits so far
    Branch     a block that has been emitted, with what its variables are at its end

Rules:
- a graph has no jumps: what `return`, `break` and `continue` leave out is put into the
  blocks of a branch that asks flags (`names["$RETURN"]`, ...); while `exits` has one
  way only, no flag is needed, and there is none;
- `exits` are the ways that control has gone by the end of what is emitted;
- a variable is what `names` says, a `Sugared`; `declared` are the types of those that
  were written with one;
- what meets behind a branch has the least common type; where there is none, the
  variable is `Torn`, and using it is the error;
- what is no value (a range, a bound method) and comes out of the only branch that goes
  on gets its values out of it; of several it is `Lost`, and using it is the error;
- a variable that one branch does not have is `prim::Uninitialized` there: uses that may
  come before a value are refused (`runtime.script.frontend.absence`).

`EXPRESSIONS` and `STATEMENTS` are filled by the chapters of these names and `loops`.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

from runtime.errors.script import IllTyped
from runtime.schema.annotation import annotated_type
from runtime.schema.declaration import DeclaredType, InterfaceType
from runtime.schema.subtype import is_subtype, misfit
from runtime.schema.types import (
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    TupleType,
    Type,
)
from runtime.schema.unify import Mismatch, unify
from runtime.script.frontend import Annotations, Definition, Exit, Scopes, place_of
from runtime.script.ir import Block, Graph, Node, Place, Value, row_of

if TYPE_CHECKING:
    from runtime.script.emission.compile import Compiler
    from runtime.script.emission.sugar import Sugared

# Class of syntax tree -> what emits it.
EXPRESSIONS: dict[type[ast.AST], Callable[["Emitter", Any], "Sugared"]] = {}
STATEMENTS: dict[type[ast.AST], Callable[["Emitter", Any], None]] = {}
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


class Torn:
    """A variable that has values of types without a common one."""

    __slots__ = ("mismatch", "places")

    def __init__(
        self, mismatch: Mismatch, places: Sequence[tuple[Type, Place | None]]
    ) -> None:
        self.mismatch = mismatch
        self.places = places

    def refusal(self, variable: str) -> tuple[str, str]:
        """What is said of its use, and what to do."""
        return (
            f"`{variable}` is of several types here: {self.mismatch.reason}",
            "Use two names, or annotate the variable with a type of both.",
        )


class Lost(Torn):
    """A variable that is no value, behind the branch or loop that has assigned it."""

    __slots__ = ("says",)

    def __init__(self, says: str) -> None:
        self.says = says
        self.places = ()

    def refusal(self, variable: str) -> tuple[str, str]:
        """What is said of its use, and what to do."""
        return (
            f"`{variable}` is not known behind the branch or loop that assigns it: "
            f"it is {self.says}, which is no value",
            "Assign it where it is used, or make a value of it.",
        )


class Holder:
    """What may hold values of a graph in its fields, at any depth."""

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


# What gives a value of which only the program knows the type.
_UNTOLD = ("script::item.Tensor", "script::tolist.Tensor")
# What makes a number of any kind one of a wider one, as Python's numbers become it.
_WIDER: Mapping[Type, str] = {
    FloatType: "script::float.Scalar",
    ComplexType: "script::complex.Scalar",
}


class Emitter:
    """One function that is being compiled."""

    def __init__(
        self,
        compiler: "Compiler",
        definition: Definition[Any],
        annotations: Annotations,
        find: Callable[[str], Any],
        graph: Graph,
        returns: Type | None,
    ) -> None:
        self.compiler = compiler
        self.definition = definition
        self.source = definition.source
        self.annotations = annotations
        # What a name means that is no variable; raises LookupError.
        self.find = find
        self.graph = graph
        self.returns = returns
        self.scopes = Scopes(definition.tree)
        self.block = graph.block
        self.anchor: Node | None = None
        self.depth = 0
        self.at = Place(self.source, place_of(definition.tree, self.source))
        self.names: dict[str, Any] = {}
        self.declared: dict[str, Type] = {}
        self.exits = Exit.NEXT
        # What conditions were found to be that only types decide.
        self.decided: dict[ast.expr, bool] = {}
        # Lists and dictionaries without elements, whose types nothing has said.
        self.open: set[Value] = set()
        # The plain names of the loops that are not left yet: for `break`.
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
        made = Node(kind, inputs, types, attributes, self.at)
        if self.anchor is not None:
            return made.put_before(self.anchor)
        return self.block.append(made)

    def constant(self, value: Any, type: Type | None = None) -> Value:  # noqa: A002  # the field's own word
        """A constant; of the type of the value if none is given."""
        wanted = constant_type(value) if type is None else type
        return self.node("prim::Constant", (), (wanted,), {"value": value}).output

    def uninitialized(self, type: Type) -> Value:  # noqa: A002  # the field's own word
        """What nobody looks at."""
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

    @contextmanager
    def before(self, node: Node) -> Iterator[None]:
        """What is emitted inside is put in front of a node."""
        block, anchor = self.block, self.anchor
        assert node.block is not None, "the node is somewhere"
        self.block, self.anchor = node.block, node
        yield
        self.block, self.anchor = block, anchor

    @contextmanager
    def into(self, block: Block) -> Iterator[None]:
        """What is emitted inside is put at the end of a block."""
        kept = self.block, self.anchor
        self.block, self.anchor = block, None
        yield
        self.block, self.anchor = kept

    # Syntax trees

    @contextmanager
    def placed(self, node: ast.expr) -> Iterator[None]:
        """What is emitted, or refused, inside is so at the place of an expression."""
        before, self.at = self.at, Place(self.source, self.source.span(node))
        yield
        self.at = before

    def expression(self, node: ast.expr) -> "Sugared":
        """What an expression means."""
        before, self.at = self.at, Place(self.source, self.source.span(node))
        result = EXPRESSIONS[type(node)](self, node)
        self.at = before
        return result

    def value(self, node: ast.expr) -> Value:
        """What an expression computes."""
        before, self.at = self.at, Place(self.source, self.source.span(node))
        result = EXPRESSIONS[type(node)](self, node).value(self)
        self.at = before
        return result

    def statement(self, node: ast.stmt) -> None:
        """Emit one statement."""
        before, self.at = self.at, Place(self.source, place_of(node, self.source))
        STATEMENTS[type(node)](self, node)
        self.at = before

    # Types

    def fitted(self, value: Value, type: Type) -> Value | None:  # noqa: A002  # the field's own word
        """The value, if it is one of the type; a display may become one."""
        if is_subtype(value.type, type):
            return value
        return value if becomes(value, type, self.open) else None

    def common(self, values: Sequence[Value]) -> Type | Mismatch:
        """The least common type; what nothing has said the type of follows the others.

        The place in a `Mismatch` is that of the value.
        """
        open_ = [each in self.open and not each.uses for each in values]
        said = [n for n, is_open in enumerate(open_) if not is_open]
        if not said or len(said) == len(values):
            return unify(*(each.type for each in values))
        found = unify(*(values[n].type for n in said))
        if isinstance(found, Mismatch):
            return replace(found, index=said[found.index])
        for each, is_open in zip(values, open_, strict=True):
            if is_open and not becomes(each, found, self.open):
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
        if found is None and value.node.kind in _UNTOLD:
            return self._told(value, type)
        if found is None:
            self.fail(message.format(value.type), why_not(value.type, type) or hint)
        return found

    def _told(self, value: Value, type: Type) -> Value:  # noqa: A002  # the field's own word
        """What a tensor gives as one of the type that the program says it is."""
        conversion = _WIDER.get(type) if value.type is NumberType else None
        if conversion is not None:
            return self.operator(conversion, value)
        attributes = {"types": (type,)}
        is_one = self.node("prim::isinstance", (value,), (BoolType,), attributes)
        node = self.node("prim::If", (is_one.output,))
        name = value.node.kind.removeprefix("script::").partition(".")[0]

        def refuse() -> None:
            words = self.constant(f"`{name}` gives something that is no {type}")
            self.node(
                "prim::RaiseException", (words,), (), {"class": "builtins.TypeError"}
            )

        self.branch(node, lambda: None)
        self.branch(node, refuse)
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
            source=self.at.source,
            span=self.at.span,
            message=message,
            hint=hint,
            others=tuple((words, *place) for words, place in others if place),
        )

    # Branches

    def branch(self, node: Node, emit: Callable[[], None]) -> Branch:
        """A new block of a node, with what `emit` puts into it."""
        return self.within(node.add_block(), emit)

    def within(self, block: Block, emit: Callable[[], None]) -> Branch:
        """What `emit` puts into a block, with variables of its own."""
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

    def join(self, node: Node, branches: Sequence[Branch]) -> None:
        """Let what the variables are at the ends of branches meet behind the node."""
        exits = Exit.NOWHERE
        for each in branches:
            exits |= each.exits
        living = [each for each in branches if each.goes_on]
        names = dict(self.names)
        keys = dict.fromkeys(
            key
            for each in living
            for key, one in each.names.items()
            if key[0] != "$" and one is not self.names.get(key)
        )
        keys |= dict.fromkeys(
            key for each in living for key in self.names if key not in each.names
        )
        for key in keys:
            if key[0] != "$":
                self._meet(node, key, branches, living, names)
        if Exit.RETURN in exits:
            returning = [each for each in branches if Exit.RETURN in each.exits]
            self._meet(node, RESULT, branches, returning, names)
        ways = exits & WAYS
        for way, flag in FLAGS.items():
            if way in ways and ways is not way:
                values = [self._flag(each, way, flag) for each in branches]
                names[flag] = self._output(node, branches, values, BoolType, flag[1:])
        self.names, self.exits = names, exits

    def _flag(self, branch: Branch, way: Exit, flag: str) -> Value:
        ways = branch.exits & WAYS
        if flag in branch.names and way in ways and ways is not way:
            known: Value = branch.names[flag]
            return known
        with self.into(branch.block):
            return self.constant(ways is way)

    def _meet(
        self,
        node: Node,
        key: str,
        branches: Sequence[Branch],
        living: Sequence[Branch],
        names: dict[str, Any],
    ) -> None:
        """Find what the variable `key` is behind the node, for `names`."""
        ones = [each.names.get(key) for each in living]
        present = [each for each in ones if each is not None]
        before = self.names.get(key)
        if not present:
            names.pop(key, None)
            return
        if len(ones) > 1 and all(
            getattr(each, "original", each) is before for each in ones
        ):
            # What a condition has said of it holds in its branch only.
            return
        first = present[0]
        if all(each is first for each in ones):
            if first is before:
                names[key] = first
                return
            if not hasattr(first, "node_value") and isinstance(first, Holder):
                names[key] = self._brought_out(node, branches, living, first)
                return
        for each in present:
            if isinstance(each, Torn):
                names[key] = each
                return
        values: list[Value | None] = []
        for branch in branches:
            one = branch.names.get(key) if branch in living else None
            made = None if one is None else self._value_in(branch, one)
            if isinstance(made, Lost):
                names[key] = made
                return
            values.append(made)
        some = [each for each in values if each is not None]
        wanted = self.common(some)
        types = [each.type for each in some]
        if isinstance(wanted, Mismatch):
            declared = self.declared.get(key)
            if declared is None or not all(is_subtype(one, declared) for one in types):
                kept = [each for each in values if each is not None]
                places = [(each.type, each.node.place) for each in kept]
                names[key] = Torn(wanted, places)
                return
            wanted = declared
        names[key] = self.compiler.sugar(
            self._output(node, branches, values, wanted, key)
        )

    def _value_in(self, branch: Branch, one: Any) -> Value | Lost:
        with self.into(branch.block):
            return self.value_or_lost(one)

    def value_or_lost(self, one: Any) -> Value | Lost:
        """The value of a variable, to be handed on behind a branch or a loop."""
        try:
            found: Value = one.value(self)
        except IllTyped:
            return Lost(one.says())
        return found

    def _brought_out(
        self,
        node: Node,
        branches: Sequence[Branch],
        living: Sequence[Branch],
        one: Holder,
    ) -> Holder:
        """What is no value, of the values that a branch gives."""
        given: dict[Value, Value] = {}
        block = living[0].block

        def outside(value: Value) -> Value:
            if not _is_inside(value, block):
                return value
            if value not in given:
                values = [value if each is living[0] else None for each in branches]
                given[value] = self._output(
                    node, branches, values, value.type, value.hint
                )
            return given[value]

        return one.with_values(outside)

    def _output(
        self,
        node: Node,
        branches: Sequence[Branch],
        values: Sequence[Value | None],
        wanted: Type,
        hint: str,
    ) -> Value:
        for branch, value in zip(branches, values, strict=True):
            with self.into(branch.block):
                result = self.uninitialized(wanted) if value is None else value
            branch.block.add_result(result)
        return node.add_output(wanted, hint.strip("$"))

    @property
    def gone(self) -> Value:
        """Whether control has left what is emitted; there are several ways."""
        flags = [
            self.names[flag]
            for way, flag in FLAGS.items()
            if way in self.exits and flag in self.names
        ]
        return self.any_of(flags)

    def any_of(self, flags: Sequence[Value]) -> Value:
        """Whether one of the flags, at least one, is set."""
        result = flags[0]
        for each in flags[1:]:
            result = self.operator("script::or_.bool", result, each)
        return result


def _is_inside(value: Value, block: Block) -> bool:
    at = value.node.block
    while at is not None and at is not block:
        at = None if at.owner is None else at.owner.block
    return at is block


def becomes(value: Value, type: Type, untyped: set[Value]) -> bool:  # noqa: A002  # the field's own word
    """Let a display that nobody has seen yet be of a type, if its elements fit."""
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
    if value is None:
        return NoneType_
    if isinstance(value, tuple) and type(value) is tuple:
        return TupleType(tuple(map(constant_type, value)))
    found = annotated_type(type(value))
    assert found is not None, "constants are of types that the language has"
    return found
