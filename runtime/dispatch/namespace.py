"""`ops`: operators by attribute, as `ops.<namespace>.<operator>[.<overload>]`.

Each access asks the published state; only the operators of the namespaces that the
runtime itself provides are remembered once they were found, as nobody takes them away.
A namespace may have another name, which counts as long as nobody defines it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.handle import PROVIDERS, OperatorPacket
from runtime.errors.base import nearest
from runtime.errors.registration import LookupFailed
from runtime.locks import load
from runtime.schema.signature import OperatorName

if TYPE_CHECKING:
    from runtime.declared import Core


def alike(operator: str, names: Iterable[str]) -> list[str]:
    """Of the full names those that begin with an underscore, if the operator does.

    If not, the others.  Whoever looks at objects asks for such names all the time, and
    comparing with all operators takes five milliseconds.
    """
    private = operator.startswith("_")
    return [n for n in names if n.partition("::")[2].startswith("_") is private]


class OperatorNamespace:
    """The operators of one namespace; a `lasting` one remembers what it found."""

    def __init__(
        self, dispatcher: Dispatcher, namespace: str, lasting: bool = False
    ) -> None:
        self._dispatcher = dispatcher
        self._namespace = namespace
        self._lasting = lasting

    def __getattr__(self, operator: str) -> OperatorPacket:
        # Asked for before there is a dispatcher, when a copy is made.
        if operator in ("_dispatcher", "_namespace", "_lasting", "__setstate__"):
            raise AttributeError(operator)
        name = OperatorName(f"{self._namespace}::{operator}")
        if not any(e.definitions for e in self._dispatcher.state.overloads(name)):
            known = alike(operator, self._names())
            raise LookupFailed(
                code="UnknownOperator",
                operator=str(name),
                near=nearest(str(name), known),
            )
        packet = OperatorPacket(self._dispatcher, name, self._lasting)
        if self._lasting:
            self.__dict__[operator] = packet
        return packet

    def _names(self) -> list[str]:
        operators = self._dispatcher.state.namespaces.get(self._namespace, {})
        return sorted({e.name.name for e in operators.values() if e.definitions})

    def __dir__(self) -> list[str]:
        names = [name.partition("::")[2] for name in self._names()]
        return [*super().__dir__(), *names]

    def __repr__(self) -> str:
        return f"<OperatorNamespace {self._namespace}>"


class Operators:
    """The operators of a dispatcher; `source` finds the dispatcher at each access.

    `provided` maps namespaces of the runtime to the module that registers them, which
    is imported when its namespace is first asked for; `also` maps other names of
    namespaces to them.
    """

    def __init__(
        self,
        source: Callable[[], Dispatcher],
        provided: Mapping[str, str] | None = None,
        also: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._provided = provided or {}
        if TYPE_CHECKING:
            self.core: Core
            self.aten: Core
        self._also = also or {}
        if source is default_dispatcher:
            PROVIDERS.update(self._provided)

    def __getattr__(self, namespace: str) -> OperatorNamespace:
        if namespace.startswith("_"):
            raise AttributeError(namespace)
        other = self._also.get(namespace)
        if other is not None and namespace not in self._source().state.namespaces:
            return getattr(self, other)  # type: ignore[no-any-return]  # one of these
        module = self._provided.get(namespace)
        if module is None:
            return OperatorNamespace(self._source(), namespace)
        load(module)
        found = OperatorNamespace(self._source(), namespace, lasting=True)
        self.__dict__[namespace] = found
        return found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *sorted(self._source().state.namespaces)]

    def __repr__(self) -> str:
        return "<Operators>"
