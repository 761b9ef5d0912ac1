"""Records (tokens): the things that can be live in a dispatcher, and their texts.

A registration owns tokens.  The *identity* of a token is its registration (two equal
registrations are two tokens); its *fields* are everything else.  Definitions and
kernels store their description separately in a *reading*: text, numbers and types,
never a function, so texts and laws can be cached by readings without keeping a kernel
alive.  There is one reading for each way of registering (cached within bounds), so
registering the same thing again creates an equal token at low cost, and the state that
holds it has the same texts (see `fingerprint`).

Rules:
- a token holds no counter, no time and no address;
- two tokens with one reading differ at most in their kernel, and kernels with equal
  descriptions are assumed to behave alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from everyorder.runtime.dispatch.call_stub import Maker, maker_of
from everyorder.runtime.dispatch.kernel import (
    Kernel,
    KernelTraits,
    describe,
    text_of,
    wrong_argument,
)
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema.binding import (
    binder,
    converters_of,
    presenters_of,
    returner,
)
from everyorder.runtime.schema.defaults import stripper
from everyorder.runtime.schema.schema import (
    DEFINED_TENSORS,
    INTEGERS_ONLY,
    NUMBERS_AS_TENSORS,
    Schema,
)
from everyorder.runtime.schema.signature import AliasKind, OperatorName
from everyorder.runtime.schema.types import is_dispatch_type
from everyorder.runtime.schema.values import Converter


@dataclass(frozen=True, slots=True, eq=False)
class DispatchArgPositions:
    """The positions of arguments that contribute dispatch keys: tensors and lists."""

    tensors: tuple[int, ...]
    lists: tuple[int, ...]


# Without a schema no argument contributes keys.
NO_EXTRACTOR = DispatchArgPositions((), ())


def extractor_of(schema: Schema) -> DispatchArgPositions:
    """Return the positions of `Tensor`, `Tensor?` and of `Tensor[]`, `Tensor?[]`."""
    tensors, lists = [], []
    for position, argument in enumerate(schema.arguments):
        kind = is_dispatch_type(argument.type)
        if kind == "tensor":
            tensors.append(position)
        elif kind == "list":
            lists.append(position)
    return DispatchArgPositions(tuple(tensors), tuple(lists))


@dataclass(frozen=True, slots=True, eq=False)
class OperatorSpec:
    """A schema for an operator, as registered.

    `namespace` and `text` are the keys of the operator in a state, `dump` the lines of
    `dump_state`, `texts` everything as text, `memo` holds pure functions of the schema.
    """

    operator: OperatorName
    schema: Schema
    debug: str
    tags: tuple[str, ...]
    namespace: str
    text: str
    dump: str
    extractor: DispatchArgPositions
    texts: tuple[Any, ...]
    memo: dict[str, Any] = field(default_factory=dict)

    @property
    def converters(self) -> tuple[Converter, ...]:
        """Return the converter of each argument, by its type and by the tags."""
        return converters_of(
            self.schema,
            numbers=NUMBERS_AS_TENSORS in self.tags,
            defined_only=DEFINED_TENSORS in self.tags,
            integers_only=INTEGERS_ONLY in self.tags,
        )

    @property
    def convention(self) -> "Convention":
        """Return the functions that bind calls and convert results; build them once."""
        convention: Convention | None = self.memo.get("convention")
        if convention is None:
            schema = self.schema
            presenters = presenters_of(schema)
            bind = binder(schema, self.converters)
            convention = Convention(
                bind, stripper(schema), returner(schema), presenters
            )
            self.memo["convention"] = convention
        return convention

    @property
    def maker(self) -> Maker | None:
        """Return the function that creates call stubs; see `dispatch.call_stub`."""
        if "maker" not in self.memo:
            self.memo["maker"] = maker_of(self.schema, self.converters)
        maker: Maker | None = self.memo["maker"]
        return maker


class Convention(NamedTuple):
    """The calling convention of a schema, as functions (see `runtime.schema`).

    `presenters` convert each argument for kernels; None: no conversion.
    """

    bind: Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]]
    strip: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    returns: Callable[[Any], Any]
    presenters: tuple[Converter | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KernelSpec:
    """A kernel for one key (runtime or alias) of an operator, as registered.

    `through` is true if it is never called; `dump` is printed by `dump_state` after the
    key.
    """

    operator: OperatorName
    key: DispatchKey
    facts: KernelTraits
    debug: str
    through: bool
    namespace: str
    text: str
    dump: str
    texts: tuple[Any, ...]


# Cached kernel readings: more than `core` registers, so that a second dispatcher finds
# them; 800 bytes each.
REMEMBERED = 2048
# Cached definition readings: as many as cached schemas, to which they refer.
DEFINITIONS = 1024


@lru_cache(maxsize=REMEMBERED)
def read_kernel(
    operator: OperatorName,
    key: DispatchKey,
    facts: KernelTraits,
    debug: str,
    keyset: bool,
) -> KernelSpec:
    """Return the reading of a kernel; `keyset` is true if it takes the keyset first."""
    return KernelSpec(
        operator,
        key,
        facts,
        debug,
        facts.kind == "through",
        namespace_of(operator),
        str(operator),
        f"{debug}{facts.suffix}",
        ("implementation", key.name, debug, facts.suffix, keyset),
    )


def read_definition(
    schema: Schema, debug: str, tags: tuple[str, ...] = ()
) -> OperatorSpec:
    """Return the reading of a definition."""
    # Equal schemas may print differently, and their alias kinds are not compared.
    return _read_definition(schema, str(schema), schema.alias_kind, debug, tags)


@lru_cache(maxsize=DEFINITIONS)
def _read_definition(
    schema: Schema,
    printed: str,
    kind: AliasKind | None,
    debug: str,
    tags: tuple[str, ...],
) -> OperatorSpec:
    alias = "CONSERVATIVE (default)" if kind is None else kind.name
    return OperatorSpec(
        schema.name,
        schema,
        debug,
        tags,
        namespace_of(schema.name),
        str(schema.name),
        f"schema: {printed}\ndebug: {debug}\nalias analysis kind: {alias}\n",
        extractor_of(schema),
        ("definition", printed, alias, debug, tags),
    )


def namespace_of(operator: OperatorName) -> str:
    """Return the namespace of an operator, its first key in a state."""
    return operator.name.partition("::")[0]


class Listener(Protocol):
    """Is notified of definitions, while the writer's lock is held."""

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        """Handle a schema that is about to be published."""

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        """Handle a schema that is about to be removed."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Definition:
    """A schema for an operator."""

    reading: OperatorSpec

    @property
    def operator(self) -> OperatorName:
        """Return the name of the operator."""
        return self.reading.operator

    @property
    def schema(self) -> Schema:
        """Return the schema, under the operator's full name."""
        return self.reading.schema

    @property
    def debug(self) -> str:
        """Return where it was defined, as dumps print it."""
        return self.reading.debug

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags, sorted."""
        return self.reading.tags


# Not frozen: a registration creates one, and a frozen one takes three times as long.
# Nothing assigns to a token, frozen or not.
@dataclass(slots=True, eq=False, weakref_slot=True)
class Implementation:
    """A kernel for one key (runtime or alias) of an operator."""

    reading: KernelSpec
    kernel: Kernel
    # The runner of the kernel under a definition, by its reading; it is not state.
    memo: dict[OperatorSpec, Any] = field(default_factory=dict, init=False)

    @property
    def operator(self) -> OperatorName:
        """Return the name of the operator."""
        return self.reading.operator

    @property
    def key(self) -> DispatchKey:
        """Return the key that the kernel is registered at."""
        return self.reading.key

    @property
    def debug(self) -> str:
        """Return the description of the kernel, as dumps print it."""
        return self.reading.debug


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reservation:
    """A name that is kept alive without schema and kernel."""

    operator: OperatorName
    debug: str

    @property
    def namespace(self) -> str:
        """Return the namespace, the operator's first key in a state."""
        return namespace_of(self.operator)

    @property
    def text(self) -> str:
        """Return the printed name, the operator's second key in a state."""
        return str(self.operator)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ClassRule:
    """The handler of one operator for one class of tensors or modes.

    `function` is called as described in `runtime.torch_dispatch.fallback`.  Two classes
    with the same name have the same texts, as two kernels with one description do.
    """

    operator: OperatorName
    cls: type
    function: Callable[..., Any]
    debug: str

    @property
    def namespace(self) -> str:
        """Return the namespace, the operator's first key in a state."""
        return namespace_of(self.operator)

    @property
    def text(self) -> str:
        """Return the printed name, the operator's second key in a state."""
        return str(self.operator)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the rule as text: the name of its class, and its description."""
        return ("rule", f"{self.cls.__module__}.{self.cls.__qualname__}", self.debug)


def check_rule(cls: object, function: object) -> None:
    """Check that the class and the function can form a rule.

    Raises `LibraryMisuse`.
    """
    if not isinstance(cls, type):
        raise wrong_argument("cls", "a class", cls)
    if not callable(function):
        raise wrong_argument("fn", "a function", function)


def rule_for(
    operator: OperatorName,
    cls: type,
    function: Callable[..., Any],
    debug: str | None,
    origin: str,
) -> ClassRule:
    """Return the rule of a class for an operator.  Raises `LibraryMisuse`."""
    check_rule(cls, function)
    if debug is None:
        debug = f"{describe(function)} ({origin})"
    return ClassRule(operator, cls, function, text_of("debug", debug))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Fallback:
    """A kernel for a key of every operator; `keys` are runtime keys, in slot order."""

    keys: tuple[DispatchKey, ...]
    kernel: Kernel
    debug: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Claim:
    """The claim of a DEF library on its namespace."""

    namespace: str
    debug: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Subscription:
    """A listener that is notified of definitions; `debug` names it in dumps."""

    listener: Listener
    debug: str


RegistrationRecord = (
    Definition
    | Implementation
    | Reservation
    | ClassRule
    | Fallback
    | Claim
    | Subscription
)
