"""Kinds of nodes for remote calls: inputs, outputs and effects; types of references.

    prim::rpc_async(to, name[, args[, kwargs[, timeout]]]) -> Future(T)
    prim::rpc_sync(...) -> T
    prim::rpc_remote(...) -> RRef(T)
    prim::rref_...(rref) -> the result of a method of a reference
    prim::worker_info[name=...](worker) -> its name, or its id

Rules:
- trailing arguments may be omitted: two to five inputs;
- `name` is the full name of a function on the other worker; the attribute `function` is
  the local function of that name, if the program has it: its schema defines T, and it
  lives as long as the node.  Without it T is the type of the output, and the result is
  checked against it;
- a call has unknown effects: it is never removed, never merged with an equal one, and
  its results may alias any value.  On its owner a reference returns the value itself,
  so writes to it are visible;
- the owner of a reference is known on creation; the owner's confirmation is not.

Rules of types: a Python reference with a known type is an `RRef[T]` of that type, and
of its supertypes; if the type is unknown, or known only at the owner, the value is
checked on arrival; a module has the interface that was declared for its reference.

In the text of programs, which the compiler reads back:

    rpc_async(to, __torch__.two, (x,), {'y': 1}, 5.)     the function is known
    rpc_async_by_name(to, name, (x,))                    the function is unknown
    rref.to_here()

This module also generates the section of the language reference about remote calls,
from the names in the tables.  Areas of the compiler that handle texts are imported on
demand.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from everyorder.runtime.base.registry import RegistryHandle
from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.rpc.protocol.identities import OBJECT, WorkerInfo
from everyorder.runtime.rpc.script.surface import Surface
from everyorder.runtime.schema.parser import parse_type
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.subtyping import Mismatch, is_subtype, match
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    ClassType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    NoneType_,
    OptionalType,
    RRefType,
    StrType,
    TupleType,
    Type,
    UnionType,
    fake,
)
from everyorder.runtime.script.ir import (
    AttributeForm,
    Count,
    Node,
    NodeAttribute,
    NodeEffect,
    NodeKind,
    Sharing,
)
from everyorder.runtime.script.ir.type_rules import Outcome, types_of

# A worker, as programs see it.
WORKER = ClassType("dist_rpc.WorkerInfo")

# The inputs of a call, by their index.
TO, NAME, ARGS, KWARGS, TIMEOUT = range(5)
ASYNC, SYNC, REMOTE = "prim::rpc_async", "prim::rpc_sync", "prim::rpc_remote"


def _same(type_: Type) -> Type:
    return type_


# Kind -> the type of its output, from the type of the function's result.
GIVES: Mapping[str, Callable[[Type], Type]] = {
    ASYNC: FutureType,
    SYNC: _same,
    REMOTE: RRefType,
}
_WRAPPERS: Mapping[str, type[Type]] = {ASYNC: FutureType, REMOTE: RRefType}


def result_of(schema: Schema) -> Type:
    """Return the type of a function's result, as one type."""
    types = tuple([fake(each.type) for each in schema.returns])
    if not types:
        return NoneType_
    return types[0] if len(types) == 1 else TupleType(types)


def may_be_worker(type_: Type) -> bool:
    """Return True if a value of the type may name a worker."""
    if isinstance(type_, OptionalType):
        return may_be_worker(type_.element)
    if isinstance(type_, UnionType):
        return any(map(may_be_worker, type_.members))
    return type_ in (StrType, WORKER, AnyType)


def is_named(type_: Type) -> bool:
    """Return True if a value of the type is a dictionary of keyword arguments."""
    return isinstance(type_, DictType) and type_.key is StrType


def _call(node: Node) -> Outcome:
    """Return the types of a call's output, by the function if it is known."""
    types = types_of(node.inputs)
    if not may_be_worker(types[TO]):
        return f"the worker is of type {types[TO]}"
    if types[NAME] is not StrType:
        return f"the name of the function is of type {types[NAME]}"
    args = types[ARGS] if len(types) > ARGS else TupleType(())
    if not isinstance(args, TupleType):
        return f"the arguments are of type {args}"
    if len(types) > KWARGS and not is_named(types[KWARGS]):
        return f"the arguments by name are of type {types[KWARGS]}"
    if len(types) > TIMEOUT and types[TIMEOUT] is not FloatType:
        return f"the timeout is of type {types[TIMEOUT]}"
    if "function" not in node.attributes:
        return _own(node)
    schema: Schema = node.attributes["function"].schema
    fault = _unfit(schema, args.elements)
    return fault or (GIVES[node.kind](result_of(schema)),)


def _own(node: Node) -> Outcome:
    own, wrapper = node.output.type, _WRAPPERS.get(node.kind)
    if wrapper is None or isinstance(own, wrapper):
        return (own,)
    return f"the output is of type {own}"


def _unfit(schema: Schema, actuals: tuple[Type, ...]) -> str | None:
    places = len(schema.arguments)
    formals = [e.fake_type for e in schema.arguments[: schema.kwarg_only_start]]
    if len(actuals) > len(formals):
        return f"{len(actuals)} arguments are given by place to {schema}"
    result = match(tuple(formals[: len(actuals)]), actuals)
    if isinstance(result, Mismatch):
        assert result.index < places, "an index of the checked arguments"
        return f"argument `{schema.arguments[result.index]}`: {result.reason}"
    return None


def _of_reference(gives: Type | None) -> Callable[[Node], Outcome]:
    def types(node: Node) -> Outcome:
        first, *rest = types_of(node.inputs)
        if not isinstance(first, RRefType):
            return f"{first} is not a reference"
        if rest and rest[0] is not FloatType:
            return f"the timeout is of type {rest[0]}"
        return (first.element if gives is None else gives,)

    return types


# Attribute of a worker -> its type.
OF_WORKER: Mapping[str, Type] = {"name": StrType, "id": IntType}


def _of_worker(node: Node) -> Outcome:
    (type_,), name = types_of(node.inputs), node.attributes["name"]
    if type_ is not WORKER:
        return f"{type_} is not a worker"
    if name not in OF_WORKER:
        return f"a worker has no `{name}`"
    return (OF_WORKER[name],)


# Method of a reference -> the type of its result; None: the type of the value.
METHODS: Mapping[str, Type | None] = {
    "to_here": None,
    "local_value": None,
    "is_owner": BoolType,
    "owner": WORKER,
    "owner_name": StrType,
    "confirmed_by_owner": BoolType,
}
_ONE, _CALLED = Count(1, 1), Count(2, 5)


# Methods that call the owner, or wait; and the method whose result changes with time.
_BLOCKING = ("to_here", "local_value")
_CHANGING = "confirmed_by_owner"


def _row(name: str, gives: Type | None) -> NodeKind:
    is_call = name in _BLOCKING
    effects = NodeEffect.NONDETERMINISTIC if name == _CHANGING else NodeEffect.NONE
    return NodeKind(
        name=f"prim::rref_{name}",
        inputs=Count(1, 2) if name == "to_here" else _ONE,
        outputs=_ONE,
        infer=_of_reference(gives),
        effects=NodeEffect.UNKNOWN if is_call else effects,
        sharing=Sharing.ANYTHING if is_call else Sharing.NOTHING,
    )


# fmt: off
ROWS: tuple[NodeKind, ...] = (
    *(NodeKind(name=name, inputs=_CALLED, outputs=_ONE, infer=_call,
           attributes=(NodeAttribute("function", AttributeForm.FUNCTION, False),),
           effects=NodeEffect.UNKNOWN, sharing=Sharing.ANYTHING)
      for name in GIVES),
    *(_row(name, gives) for name, gives in METHODS.items()),
    NodeKind(name="prim::worker_info", inputs=_ONE, outputs=_ONE, infer=_of_worker,
         attributes=(NodeAttribute("name", AttributeForm.TEXT),)),
)
# fmt: on


def type_of(surface: Surface, rref: Any) -> Type | None:
    """Return the type of the value of a reference; None if it is unknown here."""
    text = surface.type_of(rref)
    try:
        value_type = parse_type(text, type_variables=False) if text else None
    except SchemaError:
        # A class that only the owner has.
        return None
    return None if str(value_type) == OBJECT else value_type


def tests(surface: Surface) -> Mapping[Any, Callable[[Any], Callable[[Any], bool]]]:
    """Return, for a type or a class of types, the factory of its test of a value."""

    def of_reference(expected: RRefType) -> Callable[[Any], bool]:
        def is_one(value: Any) -> bool:
            if not isinstance(value, surface.rref):
                return False
            value_type = type_of(surface, value)
            return value_type is None or is_subtype(value_type, expected.element)

        return is_one

    return {
        RRefType: of_reference,
        WORKER: lambda _: lambda value: isinstance(value, WorkerInfo),
    }


# In the text of programs ------------------------------------------------------------

_WORDS = {ASYNC: "rpc_async", SYNC: "rpc_sync", REMOTE: "rpc_remote"}


def install_in_text(surface: Surface) -> Iterable[RegistryHandle]:
    """Register how `.code` writes and reads remote calls; yield their handles."""
    from everyorder.runtime.script.archive import (
        Constants,
        register_form,
        register_word,
    )
    from everyorder.runtime.script.archive.spelling import (
        comma_list,
        function_name,
        parenthesized,
        type_text,
        without_parentheses,
    )

    def call(node: Node, operands: Sequence[str], constants: Constants) -> str:
        word, texts = _WORDS[node.kind], [*operands]
        function = node.attributes.get("function")
        if function is not None:
            texts[NAME] = function_name(function, constants)
            return f"{word}({comma_list(texts)})"
        text = f"{word}_by_name({comma_list(texts)})"
        own = node.output.type
        if own is AnyType or getattr(own, "element", None) is AnyType:
            return text
        return f"unchecked_cast({type_text(own)}, {text})"

    def worker(node: Node, operands: Sequence[str], constants: Constants) -> str:
        owner = parenthesized(without_parentheses(operands[0]))
        return f"{owner}.{node.attributes['name']}"

    def method(node: Node, operands: Sequence[str], constants: Constants) -> str:
        rref, *rest = operands
        return (
            f"{parenthesized(rref)}.{node.kind.partition('_')[2]}({comma_list(rest)})"
        )

    for kind in _WORDS:
        yield register_form(kind, call)
    yield register_form("prim::worker_info", worker)
    for name in METHODS:
        yield register_form(f"prim::rref_{name}", method)
    words: Mapping[str, Any] = {
        "rpc_async": surface.rpc_async,
        "rpc_sync": surface.rpc_sync,
        "rpc_remote": surface.remote,
        "rpc_async_by_name": surface.async_by_name,
        "rpc_sync_by_name": surface.sync_by_name,
        "rpc_remote_by_name": surface.remote_by_name,
        "RRef": surface.rref,
    }
    for word, python in words.items():
        yield register_word(word, python)


# In the reference of the language ---------------------------------------------------

_INTRODUCTION = (
    "`rpc_async`, `rpc_sync` and `remote` of `runtime.rpc` are special forms: they\n"
    "are known by their objects, whatever they are called. Workers are named by\n"
    "`to`; `d` has arguments by their names, and `f` is a function that is compiled."
)
_EXAMPLES = (
    ("`rpc_async`", "`y = rpc.rpc_async(to, f, (x,), d, 5.0)`", "`Future[T]`"),
    ("`rpc_sync`", "`y = rpc.rpc_sync(to, f, (x,))`", "`T`, the result of `f`"),
    ("`remote`", "`y = rpc.remote(to, f, (x,))`", "`RRef[T]`"),
)
_REFUSED = (
    (
        "an argument by name",
        "`y = rpc.rpc_sync(to, func=f)`",
        "arguments are positional",
        "Write all of them in their order: worker, function, args, kwargs, timeout.",
    ),
    (
        "a function that is not compiled",
        "`y = rpc.rpc_sync(to, len, (xs,))`",
        "another worker looks up the full name of a compiled function",
        "Write a function that calls it.",
    ),
    (
        "a list as the arguments",
        "`y = rpc.rpc_sync(to, f, [x])`",
        "their number must be known",
        "Write a tuple.",
    ),
    (
        "an argument without default by name",
        "`y = rpc.rpc_sync(to, f, (), d)`",
        "the keys of a dictionary are known only at run time",
        "Write the dictionary in the call, or pass the argument by position.",
    ),
    (
        "an `RRef` that is created",
        "`y = rpc.RRef(x)`",
        "a program only receives and returns references",
        "Take it as a parameter, or create it by `remote`.",
    ),
)


def _type_text(type_: Type | None) -> str:
    if type_ is None:
        return "`T`"
    return "`WorkerInfo`" if type_ is WORKER else f"`{type_}`"


def install_in_reference() -> Iterable[RegistryHandle]:
    """Add the section to the language reference; yield their handles."""
    from everyorder.runtime.script.frontend import Section, register_section

    rows = [
        (f"`{name}` of an `RRef[T]`", f"`y = rref.{name}()`", _type_text(gives))
        for name, gives in METHODS.items()
    ]
    rows += [
        (f"`{name}` of a `WorkerInfo`", f"`y = rref.owner().{name}`", _type_text(gives))
        for name, gives in OF_WORKER.items()
    ]
    tables = (
        (("accepted", "for example", "gives"), [*_EXAMPLES, *rows]),
        (("refused", "for example", "because", "instead"), _REFUSED),
    )
    yield register_section(Section("Remote calls", _INTRODUCTION, tables))
