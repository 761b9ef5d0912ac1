"""Tokens: the things that can be live in a dispatcher, one class each.

True only here: a token is what a handle owns.  Its *identity* says which registration
it is (two equal registrations are two tokens); its *fields* say everything else.  A
state is a value over tokens: registering the same thing again gives another token with
equal fields, and therefore a state that reads the same (see `fingerprint`).

Rule: a token holds no counter, no time and no address.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from runtime.dispatch.kernel import Kernel
from runtime.dispatch.reading import DefinitionReading, KernelReading, namespace_of
from runtime.keys import DispatchKey
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema


class Listener(Protocol):
    """Hears of definitions; called while the writer's lock is held."""

    def on_operator_registered(self, name: OperatorName, schema: Schema) -> None:
        """A schema is about to be published."""

    def on_operator_deregistered(self, name: OperatorName, schema: Schema) -> None:
        """A schema is about to disappear."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Definition:
    """A schema for an operator."""

    reading: DefinitionReading

    @property
    def operator(self) -> OperatorName:
        """The name of the operator."""
        return self.reading.operator

    @property
    def schema(self) -> Schema:
        """The schema, under the operator's full name."""
        return self.reading.schema

    @property
    def debug(self) -> str:
        """Where it was defined, as dumps print it."""
        return self.reading.debug

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags, sorted."""
        return self.reading.tags


# Not frozen: a registration makes one, and a frozen one takes three times as long.
# Nothing assigns to a token, frozen or not.
@dataclass(slots=True, eq=False, weakref_slot=True)
class Implementation:
    """A kernel for one key (runtime or alias) of an operator."""

    reading: KernelReading
    kernel: Kernel
    # How the kernel is run under a definition, by its reading; it is no state.
    memo: dict[DefinitionReading, Any] = field(default_factory=dict, init=False)

    @property
    def operator(self) -> OperatorName:
        """The name of the operator."""
        return self.reading.operator

    @property
    def key(self) -> DispatchKey:
        """The key that the kernel is registered at."""
        return self.reading.key

    @property
    def debug(self) -> str:
        """The description of the kernel, as dumps print it."""
        return self.reading.debug


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Reservation:
    """A name that is kept alive without schema and kernel."""

    operator: OperatorName
    debug: str

    @property
    def namespace(self) -> str:
        """The namespace under which a state holds the operator."""
        return namespace_of(self.operator)

    @property
    def text(self) -> str:
        """The printed name, under which a state holds the operator."""
        return str(self.operator)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ClassRule:
    """What one class of tensors or modes does for one operator.

    `function` is called as `runtime.python_dispatch.rules` says.  Two classes of one
    name read alike, as two kernels of one description do.
    """

    operator: OperatorName
    cls: type
    function: Callable[..., Any]
    debug: str

    @property
    def namespace(self) -> str:
        """The namespace under which a state holds the operator."""
        return namespace_of(self.operator)

    @property
    def text(self) -> str:
        """The printed name, under which a state holds the operator."""
        return str(self.operator)

    @property
    def texts(self) -> tuple[str, ...]:
        """The rule as text: whose it is, and its description."""
        return ("rule", f"{self.cls.__module__}.{self.cls.__qualname__}", self.debug)


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
    """A listener that is told of definitions; `debug` names it in dumps."""

    listener: Listener
    debug: str


Token = (
    Definition
    | Implementation
    | Reservation
    | ClassRule
    | Fallback
    | Claim
    | Subscription
)


def describe_token(token: Token) -> tuple[Any, ...]:
    """A token as text and numbers: equal for registrations that read the same."""
    match token:
        case Definition() | Implementation():
            return token.reading.texts
        case ClassRule():
            return token.texts
        case Fallback():
            keys = tuple(key.name for key in token.keys)
            return ("fallback", keys, token.debug, token.kernel.facts.suffix)
        case Claim():
            return ("claim", token.namespace, token.debug)
        case Reservation():
            return ("reservation", token.debug)
        case Subscription():
            return ("subscription", token.debug)
