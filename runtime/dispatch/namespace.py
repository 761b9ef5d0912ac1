"""`ops`: operators by attribute, as `ops.<namespace>.<operator>[.<overload>]`.

True only here: how attribute access becomes a handle, and how a call without an
overload chooses one.  Each access asks the published state; only the operators of the
namespaces that the runtime itself provides are remembered once they were found, as
nobody takes them away.

Rule: the overload of a call is the first that its arguments fit, in the order of the
overload names (the unnamed one first), whatever the order of registration.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.dispatch.place import Place
from runtime.errors.base import nearest
from runtime.errors.call import CallError, NoMatchingOverload, NoSuchOverload
from runtime.errors.registration import UnknownOperator
from runtime.locks import load
from runtime.schema.names import OperatorName


class PacketPlace(Place):
    """All overloads of one operator; its front is that of the unnamed one."""

    __slots__ = ()

    def slow(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the first overload that the arguments fit."""
        found = self.dispatcher.state.overloads(self.name)
        names = [each.name for each in found if each.definitions] or [self.name]
        if len(names) == 1:
            return self._called(names[0], args, kwargs)
        attempts = []
        for name in names:
            handle = self.handle(self.dispatcher, name)
            try:
                handle.bind(args, kwargs)
            except CallError as error:
                attempts.append((str(name), str(error)))
            else:
                return self._called(name, args, kwargs)
        raise NoMatchingOverload(operator=self.name.name, attempts=tuple(attempts))

    def operator(self) -> Any:
        """A handle of the unnamed overload."""
        return self.handle(self.dispatcher, self.name)

    def _called(
        self, name: OperatorName, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if name == self.name:
            return super().slow(args, kwargs)
        return self.handle(self.dispatcher, name)(*args, **kwargs)


class OperatorPacket(partial[Any]):
    """All overloads of one operator; calling it calls the first that fits.

    Raises:
        CallError: there is one overload, and the arguments do not fit it.
        NoMatchingOverload: there are several, and they fit none.
    """

    _dispatcher: Dispatcher
    _name: OperatorName
    _lasting: bool

    def __new__(
        cls, dispatcher: Dispatcher, name: OperatorName, lasting: bool = False
    ) -> Self:
        """The overloads of `name`, which names none itself."""
        place = PacketPlace(dispatcher, name, OperatorHandle)
        made = super().__new__(cls, place.start)
        made._dispatcher = dispatcher
        made._name = name
        made._lasting = lasting
        place.show(made)
        return made

    def overloads(self) -> tuple[str, ...]:
        """The names of the defined overloads; the unnamed one is `default`."""
        found = self._dispatcher.state.overloads(self._name)
        return tuple(e.name.overload or "default" for e in found if e.definitions)

    def __getattr__(self, overload: str) -> OperatorHandle:
        if overload.startswith("__"):
            raise AttributeError(overload)
        names = self.overloads()
        if overload not in names:
            raise NoSuchOverload(
                operator=self._name.name,
                overload=overload,
                near=nearest(overload, names) or names,
            )
        wanted = "" if overload == "default" else overload
        name = OperatorName(self._name.name, wanted)
        handle = OperatorHandle(self._dispatcher, name)
        if self._lasting:
            self.__dict__[overload] = handle
        return handle

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __repr__(self) -> str:
        return f"<OperatorPacket {self._name}: {', '.join(self.overloads())}>"


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
            raise UnknownOperator(
                operator=str(name), near=nearest(str(name), self._names())
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
    is imported when its namespace is first asked for.
    """

    def __init__(
        self,
        source: Callable[[], Dispatcher],
        provided: Mapping[str, str] | None = None,
    ) -> None:
        self._source = source
        self._provided = provided or {}

    def __getattr__(self, namespace: str) -> OperatorNamespace:
        if namespace.startswith("_"):
            raise AttributeError(namespace)
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
