"""`ops`: operators by attribute, `ops.<namespace>.<operator>[.<overload>]`.

What an access found is stored in the instance: a namespace in `ops`, a packet in its
namespace, a handle in its packet.  So the second access is an attribute access in C,
and a call of `ops.demo.add(a, b)` costs little more than one of a held operator.

Rules:
- a stored packet or handle is always what a new access would find: the dispatcher
  removes it after it removed the definition (`HandleCache.forget`);
- a namespace is only a name and a dispatcher, so a stored one is never stale.  It is
  stored once it has operators, unless its name is an alias, or begins with an
  underscore: those names are there only as long as they have operators;
- there is one namespace of a name as long as it is referenced, and a copy is the same.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.dispatch.handle import OperatorPacket, provide_namespace
from everyorder.runtime.dispatch.registration import DispatcherProtocol
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.schema.signature import OperatorName

if TYPE_CHECKING:
    from everyorder.runtime.declared import Core


def candidates(operator: str, names: Iterable[str]) -> list[str]:
    """Return the full names that are private (leading underscore) if `operator` is.

    For a public `operator` return the public names.  Debuggers look up private names
    all the time, and a comparison with all operators costs five milliseconds.
    """
    private = operator.startswith("_")
    return [n for n in names if n.partition("::")[2].startswith("_") is private]


class OperatorNamespace:
    """The operators of one namespace of a dispatcher, by attribute."""

    # Packets that were accessed are stored in the `__dict__`.
    __slots__ = ("__dict__", "__weakref__", "_dispatcher", "_namespace")

    _dispatcher: DispatcherProtocol
    _namespace: str

    def __new__(cls, dispatcher: DispatcherProtocol, namespace: str) -> Self:
        """Return the namespace, which may have no operators."""
        spaces = dispatcher.keyring.namespaces
        living: Self | None = spaces.get(namespace)
        if living is not None:
            return living
        space = super().__new__(cls)
        space._dispatcher = dispatcher
        space._namespace = namespace
        interned: Self = spaces.setdefault(namespace, space)
        return interned

    def __getattr__(self, operator: str) -> OperatorPacket:
        name = OperatorName(f"{self._namespace}::{operator}")
        if not self._defines(name):
            names = candidates(operator, self._names())
            raise LookupFailed(
                code="UnknownOperator",
                operator=str(name),
                near=nearest(str(name), names),
            )
        packet = OperatorPacket(self._dispatcher, name)
        self.__dict__[operator] = packet
        # Another thread may have removed the definitions, and found nothing to remove.
        if not self._defines(name):
            self.__dict__.pop(operator, None)
        return packet

    def _defines(self, name: OperatorName) -> bool:
        return any(e.definitions for e in self._dispatcher.state.overloads(name))

    def _names(self) -> list[str]:
        operators = self._dispatcher.state.namespaces.get(self._namespace, {})
        return sorted({e.name.name for e in operators.values() if e.definitions})

    def __dir__(self) -> list[str]:
        names = [name.partition("::")[2] for name in self._names()]
        return [*super().__dir__(), *names]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return load_namespace, (self._dispatcher, self._namespace)

    def __repr__(self) -> str:
        return f"<OperatorNamespace {self._namespace}>"


def load_namespace(dispatcher: DispatcherProtocol, name: str) -> OperatorNamespace:
    """Return the unpickled namespace, after its operators are registered."""
    provide_namespace(name)
    return OperatorNamespace(dispatcher, name)


class Operators:
    """The operators of the dispatcher that `source` returns, always the same one.

    `providers` maps namespaces of the runtime to the function that registers them,
    which is called when its namespace is first used.  `aliases` maps other names of
    namespaces to them; an alias is in effect as long as its own name is not a defined
    namespace.
    """

    def __init__(
        self,
        source: Callable[[], DispatcherProtocol],
        providers: Registry[str, Callable[[], object]] | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._providers = providers or Registry("providers")
        if TYPE_CHECKING:
            self.core: Core
            self.aten: Core
        self._aliases = aliases or {}

    def __getattr__(self, namespace: str) -> OperatorNamespace:
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        dispatcher = self._source()
        is_live = namespace in dispatcher.state.namespaces
        alias = self._aliases.get(namespace)
        if alias is not None and not is_live:
            return getattr(self, alias)  # type: ignore[no-any-return]  # one of these
        register = self._providers.rows.get(namespace)
        if register is not None:
            with LOADING:
                register()
        elif namespace.startswith("_") and not is_live:
            raise AttributeError(namespace)
        space = OperatorNamespace(dispatcher, namespace)
        # A namespace with an alias, or a private one, loses its name with its last
        # operator.
        lasts = alias is None and not namespace.startswith("_")
        if register is not None or (is_live and lasts):
            self.__dict__[namespace] = space
        return space

    def __dir__(self) -> list[str]:
        # A stored namespace may have lost its last operator.
        stored = {
            name
            for name, value in vars(self).items()
            if isinstance(value, OperatorNamespace)
        }
        own = set(super().__dir__()) - stored
        return sorted(own.union(self._source().state.namespaces))

    def __repr__(self) -> str:
        return "<Operators>"
