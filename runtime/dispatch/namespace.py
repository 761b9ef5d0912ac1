"""`ops`: operators by attribute, as `ops.<namespace>.<operator>[.<overload>]`.

True only here: how attribute access becomes a handle, and how a call without an
overload chooses one.  Each access asks the published state; only the operators of the
namespaces that the runtime itself provides are remembered once they were found, as
nobody takes them away.

Rules:
- the overload of a call is the first that its arguments fit, in the order of the
  overload names (the unnamed one first), whatever the order of registration;
- upstream has an overload for tensors and one for numbers where the unnamed one here
  takes numbers as tensors: their names, `Tensor` and `Scalar`, find that one;
- a namespace may have another name, which counts as long as nobody defines it.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.handle import (
    DEFAULT,
    PACKETS,
    PROVIDERS,
    OperatorHandle,
    provide,
)
from runtime.dispatch.introspection import DocumentationOf, SignatureOf
from runtime.dispatch.place import Place, Published
from runtime.errors.base import nearest
from runtime.errors.call import (
    CallError,
    NoMatchingOverload,
    NoSuchOverload,
    OverloadGone,
)
from runtime.errors.registration import UnknownOperator
from runtime.locks import load
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema
from runtime.schema.tags import NUMBERS_AS_TENSORS

if TYPE_CHECKING:
    from runtime.declared import Core

# What upstream calls the overloads of operators that take a tensor or a number.
OF_NUMBERS = frozenset({"Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar"})


class PacketPlace(Place):
    """All overloads of one operator; its front is that of the unnamed one."""

    __slots__ = ()

    def start(self, /, *args: Any, **kwargs: Any) -> Any:
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
            return super().start(*args, **kwargs)
        return self.handle(self.dispatcher, name)(*args, **kwargs)


class OperatorPacket(partial[Any]):
    """All overloads of one operator; calling it calls the first that fits.

    Raises:
        CallError: there is one overload, and the arguments do not fit it.
        NoMatchingOverload: there are several, and they fit none.
    """

    # Not all are slots: overloads that were found lie among the attributes.
    __slots__ = ("_dispatcher", "_lasting", "_name")
    __doc__ = DocumentationOf(__doc__)
    __signature__ = SignatureOf()

    _dispatcher: Published
    _name: OperatorName
    _lasting: bool

    def __new__(
        cls, dispatcher: Published, name: OperatorName, lasting: bool = False
    ) -> Self:
        """The overloads of `name`, which names none itself."""
        packets = dispatcher.keyring.packets
        made: Self | None = packets.get(name.name)
        if made is None:
            place = PacketPlace(dispatcher, name, OperatorHandle)
            made = super().__new__(cls, place.start)
            made._dispatcher = dispatcher
            made._name = name
            made._lasting = False
            place.show(made)
            made = packets.settle(name.name, made)
        if lasting:
            made._lasting = True
        return made

    @property
    def __name__(self) -> str:
        """The name without its namespace: `mul`."""
        return self._name.name.partition("::")[2]

    def overloads(self) -> tuple[str, ...]:
        """The names of the defined overloads; the unnamed one is `default`."""
        found = self._dispatcher.state.overloads(self._name)
        return tuple(e.name.overload or DEFAULT for e in found if e.definitions)

    def schemas(self) -> tuple[Schema, ...]:
        """The schemas of the defined overloads, in the order of their names."""
        found = self._dispatcher.state.overloads(self._name)
        return tuple(e.schema for e in found if e.schema is not None)

    def __getattr__(self, overload: str) -> OperatorHandle:
        if overload.startswith("__"):
            raise AttributeError(overload)
        names = self.overloads()
        if not names:
            raise OverloadGone(operator=self._name.name)
        if overload not in names and overload in OF_NUMBERS:
            unnamed = OperatorHandle(self._dispatcher, self._name)
            if NUMBERS_AS_TENSORS in unnamed.tags:
                return unnamed
        if overload not in names:
            raise NoSuchOverload(
                operator=self._name.name,
                overload=overload,
                near=nearest(overload, names) or names,
            )
        wanted = "" if overload == DEFAULT else overload
        name = OperatorName(self._name.name, wanted)
        handle = OperatorHandle(self._dispatcher, name)
        if self._lasting:
            self.__dict__[overload] = handle
        return handle

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return packet_again, (self._dispatcher, self._name)

    def __str__(self) -> str:
        return self._name.name.replace("::", ".", 1)

    def __repr__(self) -> str:
        return f"<OperatorPacket {self._name}: {', '.join(self.overloads())}>"


def packet_of(dispatcher: Published, name: str) -> OperatorPacket:
    """The packet of an operator, given its name without overload."""
    return OperatorPacket(dispatcher, OperatorName(name))


def packet_again(dispatcher: Published, name: OperatorName) -> OperatorPacket:
    """The packet that was pickled."""
    provide(name)
    return OperatorPacket(dispatcher, name)


PACKETS.append(packet_of)


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
            raise UnknownOperator(operator=str(name), near=nearest(str(name), known))
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
