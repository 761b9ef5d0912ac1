"""Kinds of nodes for remote calls: inputs, outputs and effects; types of references.

    prim::rpc_async(to, name[, args[, kwargs[, timeout]]]) -> Future(T)
    prim::rpc_sync(...) -> T
    prim::rpc_remote(...) -> RRef(T)
    prim::rref_...(rref) -> the result of a method of a reference
    prim::worker_info[name=...](worker) -> its name, or its id

Rules:
- trailing arguments may be omitted: two to five inputs;
- `name` is the full name of a function, as the other worker knows it; the attribute
  `function` is the function of that name here, if the program has it: its schema gives
  T, and it lives as long as the node does.  Without it T is the type of the output, and
  the result is checked against it;
- a call has unknown effects: it is never removed, never merged with an equal one, and
  its results may alias anything.  On its owner a reference gives the value itself, so
  writes to it are seen;
- the owner of a reference is known when it is made; whether the owner knows of the
  reference is not.

Rules of types: a reference of Python with a known type is an `RRef[T]` of that type,
and of its supertypes; if the type is unknown, or known only at the owner, the value is
checked when it comes; a module has the interface that its reference was given.

In the text of programs, which the compiler reads back:

    rpc_async(to, __torch__.two, (x,), {'y': 1}, 5.)     the function is known
    rpc_async_by_name(to, name, (x,))                    it is not
    rref.to_here()

The section of the language reference about them is made here, too, with the names of
the tables.  The areas of the compiler that have texts are imported when they ask.
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


def _same(given: Type) -> Type:
    return given


# Kind -> the type of its output, from the type of the function's result.
GIVES: Mapping[str, Callable[[Type], Type]] = {
    ASYNC: FutureType,
    SYNC: _same,
    REMOTE: RRefType,
}
_WRAPPERS: Mapping[str, type[Type]] = {ASYNC: FutureType, REMOTE: RRefType}


def result_of(schema: Schema) -> Type:
    """The type of a function's result, as one type."""
    given = tuple([fake(each.type) for each in schema.returns])
    if not given:
        return NoneType_
    return given[0] if len(given) == 1 else TupleType(given)


def may_be_worker(type_: Type) -> bool:
    """Whether a value of the type may name a worker."""
    if isinstance(type_, OptionalType):
        return may_be_worker(type_.element)
    if isinstance(type_, UnionType):
        return any(map(may_be_worker, type_.members))
    return type_ in (StrType, WORKER, AnyType)


def is_named(type_: Type) -> bool:
    """Whether a value of the type is a dictionary of arguments by their names."""
    return isinstance(type_, DictType) and type_.key is StrType


def _call(node: Node) -> Outcome:
    """The types of a call's output, by the function if it is known."""
    given = types_of(node.inputs)
    if not may_be_worker(given[TO]):
        return f"the worker is of type {given[TO]}"
    if given[NAME] is not StrType:
        return f"the name of the function is of type {given[NAME]}"
    args = given[ARGS] if len(given) > ARGS else TupleType(())
    if not isinstance(args, TupleType):
        return f"the arguments are of type {args}"
    if len(given) > KWARGS and not is_named(given[KWARGS]):
        return f"the arguments by name are of type {given[KWARGS]}"
    if len(given) > TIMEOUT and given[TIMEOUT] is not FloatType:
        return f"the timeout is of type {given[TIMEOUT]}"
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
    found = match(tuple(formals[: len(actuals)]), actuals)
    if isinstance(found, Mismatch):
        assert found.index < places, "it is one of the arguments"
        return f"argument `{schema.arguments[found.index]}`: {found.reason}"
    return None


def _of_reference(gives: Type | None) -> Callable[[Node], Outcome]:
    def types(node: Node) -> Outcome:
        first, *rest = types_of(node.inputs)
        if not isinstance(first, RRefType):
            return f"{first} is no reference"
        if rest and rest[0] is not FloatType:
            return f"the timeout is of type {rest[0]}"
        return (first.element if gives is None else gives,)

    return types


# Attribute of a worker -> its type.
OF_WORKER: Mapping[str, Type] = {"name": StrType, "id": IntType}


def _of_worker(node: Node) -> Outcome:
    (given,), name = types_of(node.inputs), node.attributes["name"]
    if given is not WORKER:
        return f"{given} is no worker"
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


# Methods that call the owner, or wait; and the one whose result changes with time.
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
    """The type of the value of a reference, None if it is not known here."""
    text = surface.type_of(rref)
    try:
        found = parse_type(text, type_variables=False) if text else None
    except SchemaError:
        # Of a class that only its owner has.
        return None
    return None if str(found) == OBJECT else found


def tests(surface: Surface) -> Mapping[Any, Callable[[Any], Callable[[Any], bool]]]:
    """For a type, or a class of types, the maker of its test of a value."""

    def of_reference(wanted: RRefType) -> Callable[[Any], bool]:
        def is_one(value: Any) -> bool:
            if not isinstance(value, surface.rref):
                return False
            known = type_of(surface, value)
            return known is None or is_subtype(known, wanted.element)

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

_SAID = (
    "`rpc_async`, `rpc_sync` and `remote` of `runtime.rpc` are special forms: they\n"
    "are known by their objects, whatever they are called. Workers are named by\n"
    "`to`; `d` has arguments by their names, and `f` is a function that is compiled."
)
_EXAMPLES = (
    ("`rpc_async`", "`y = rpc.rpc_async(to, f, (x,), d, 5.0)`", "`Future[T]`"),
    ("`rpc_sync`", "`y = rpc.rpc_sync(to, f, (x,))`", "`T`, what `f` gives"),
    ("`remote`", "`y = rpc.remote(to, f, (x,))`", "`RRef[T]`"),
)
_REFUSED = (
    (
        "an argument by name",
        "`y = rpc.rpc_sync(to, func=f)`",
        "arguments are looked up by their places",
        "Write all of them in their order: worker, function, args, kwargs, timeout.",
    ),
    (
        "a function that is not compiled",
        "`y = rpc.rpc_sync(to, len, (xs,))`",
        "another worker looks for the full name of a compiled one",
        "Write a function that calls it.",
    ),
    (
        "a list as the arguments",
        "`y = rpc.rpc_sync(to, f, [x])`",
        "how many there are has to be known",
        "Write a tuple.",
    ),
    (
        "an argument without default by name",
        "`y = rpc.rpc_sync(to, f, (), d)`",
        "what a dictionary has is known when the program runs",
        "Write the dictionary in the call, or give the argument by its place.",
    ),
    (
        "an `RRef` that is made",
        "`y = rpc.RRef(x)`",
        "a program is given references, and gives them",
        "Take it as a parameter, or let `remote` give one.",
    ),
)


def _shown(given: Type | None) -> str:
    if given is None:
        return "`T`"
    return "`WorkerInfo`" if given is WORKER else f"`{given}`"


def install_in_reference() -> Iterable[RegistryHandle]:
    """Add the section to the language reference; yield their handles."""
    from everyorder.runtime.script.frontend import Section, register_section

    asked = [
        (f"`{name}` of an `RRef[T]`", f"`y = rref.{name}()`", _shown(gives))
        for name, gives in METHODS.items()
    ]
    asked += [
        (f"`{name}` of a `WorkerInfo`", f"`y = rref.owner().{name}`", _shown(gives))
        for name, gives in OF_WORKER.items()
    ]
    tables = (
        (("accepted", "for example", "gives"), [*_EXAMPLES, *asked]),
        (("refused", "for example", "because", "instead"), _REFUSED),
    )
    yield register_section(Section("Remote calls", _SAID, tables))
