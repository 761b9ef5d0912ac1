"""`ops`: operators by attribute, as `ops.<namespace>.<operator>[.<overload>]`.

True only here: how attribute access becomes a handle, and how a call without an
overload chooses one.  Nothing is remembered: each access asks the published state.

Rule: the overload of a call is the first that its arguments fit, in the order of the
overload names (the unnamed one first), whatever the order of registration.
"""

from collections.abc import Callable
from typing import Any

from runtime.dispatch.dispatcher import Dispatcher
from runtime.dispatch.handle import OperatorHandle
from runtime.errors.base import nearest
from runtime.errors.call import CallError, NoMatchingOverload, NoSuchOverload
from runtime.errors.registration import UnknownOperator
from runtime.schema.names import OperatorName


class OperatorPacket:
    """All overloads of one operator."""

    __slots__ = ("_dispatcher", "_name")

    def __init__(self, dispatcher: Dispatcher, name: OperatorName) -> None:
        self._dispatcher = dispatcher
        self._name = name

    def overloads(self) -> tuple[str, ...]:
        """The names of the defined overloads; the unnamed one is `default`."""
        found = self._dispatcher.state.overloads(self._name)
        return tuple(e.name.overload or "default" for e in found if e.definitions)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the first overload that the arguments fit.

        Raises:
            CallError: there is one overload, and they do not fit it.
            NoMatchingOverload: there are several, and they fit none.
        """
        entries = self._dispatcher.state.overloads(self._name)
        names = [e.name for e in entries if e.definitions] or [self._name]
        if len(names) == 1:
            return OperatorHandle(self._dispatcher, names[0]).call(*args, **kwargs)
        attempts = []
        for name in names:
            handle = OperatorHandle(self._dispatcher, name)
            try:
                handle.bind(args, kwargs)
            except CallError as error:
                attempts.append((str(name), str(error)))
            else:
                return handle.call(*args, **kwargs)
        raise NoMatchingOverload(operator=self._name.name, attempts=tuple(attempts))

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
        return OperatorHandle(self._dispatcher, OperatorName(self._name.name, wanted))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __repr__(self) -> str:
        return f"<OperatorPacket {self._name}: {', '.join(self.overloads())}>"


class OperatorNamespace:
    """The operators of one namespace."""

    __slots__ = ("_dispatcher", "_namespace")

    def __init__(self, dispatcher: Dispatcher, namespace: str) -> None:
        self._dispatcher = dispatcher
        self._namespace = namespace

    def __getattr__(self, operator: str) -> OperatorPacket:
        # Asked for before there is a dispatcher, when a copy is made.
        if operator in self.__slots__ or operator == "__setstate__":
            raise AttributeError(operator)
        name = OperatorName(f"{self._namespace}::{operator}")
        if not any(e.definitions for e in self._dispatcher.state.overloads(name)):
            raise UnknownOperator(
                operator=str(name), near=nearest(str(name), self._names())
            )
        return OperatorPacket(self._dispatcher, name)

    def _names(self) -> list[str]:
        operators = self._dispatcher.state.namespaces.get(self._namespace, {})
        return sorted({e.name.name for e in operators.values() if e.definitions})

    def __dir__(self) -> list[str]:
        names = [name.partition("::")[2] for name in self._names()]
        return [*super().__dir__(), *names]

    def __repr__(self) -> str:
        return f"<OperatorNamespace {self._namespace}>"


class Operators:
    """The operators of a dispatcher; `source` finds the dispatcher at each access."""

    __slots__ = ("_source",)

    def __init__(self, source: Callable[[], Dispatcher]) -> None:
        self._source = source

    def __getattr__(self, namespace: str) -> OperatorNamespace:
        if namespace.startswith("__"):
            raise AttributeError(namespace)
        return OperatorNamespace(self._source(), namespace)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *sorted(self._source().state.namespaces)]

    def __repr__(self) -> str:
        return "<Operators>"
