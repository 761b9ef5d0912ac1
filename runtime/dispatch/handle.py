"""Operators by name: handles, and packets of overloads.

A *handle* is one overload: only a name and a dispatcher, so it is never stale.  Every
call looks up the entry in the published state (`runtime.dispatch.kernel_lookup`), and
everything that makes calls fast is stored on that entry.  A handle of a deregistered
operator raises `OperatorGone`, and works again once it is registered again.  A *packet*
is all overloads of one name; a call of it runs the first overload that the arguments
fit, in the order of overload names (the unnamed one first), not of registration.
`ops.<namespace>.<operator>[.<overload>]` finds both by attribute (`namespace.py`).

Rules:
- there is one handle and one packet of a name as long as it is referenced
  (`registration.HandleCache`): `is` compares operators, and a copy is the same object;
- an operator is pickled by name, and only for the default dispatcher;
- a handle that was accessed is stored in its packet, as `namespace.py` says of packets;
- torch's names are available, too: `_schema`, `overloadpacket`, `__name__`, ...;
- where upstream has an overload for tensors and one for numbers, the unnamed overload
  here accepts numbers as tensors: upstream's names, `Tensor` and `Scalar`, find it;
- `inspect.signature` and `help` read the live schemas.  One schema shows its
  parameters; several, or none, show arbitrary parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.dispatch.kernel_lookup import EntryInvoker, OperatorRef
from everyorder.runtime.dispatch.registration import DEFAULT, DispatcherProtocol
from everyorder.runtime.dispatch.registration_record import (
    OperatorSpec,
    namespace_of,
)
from everyorder.runtime.dispatch.state import OperatorEntry, dump_state, dump_table
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.call import CallError, NoMatchingOverload, OperatorGone
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.schema.binding import python_signature
from everyorder.runtime.schema.defaults import spread
from everyorder.runtime.schema.schema import NUMBERS_AS_TENSORS, Schema
from everyorder.runtime.schema.signature import OperatorName

if TYPE_CHECKING:
    from inspect import Signature


# Upstream's overload names of operators that take a tensor or a number.
OF_NUMBERS = frozenset({"Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar"})
# An operator -> upstream's names of its overloads -> their names here.
OVERLOAD_NAMES: Registry[str, Mapping[str, str]] = Registry("names of overloads")
# The module of `ops`, for the `__module__` of handles.
OPERATORS = "everyorder.runtime.ops"
# Namespaces of the runtime -> a function that registers their operators.  The package
# `everyorder.runtime`, which sees all areas, adds the rows when it is imported.
PROVIDERS: Registry[str, Callable[[], object]] = Registry("providers of operators")


class SignatureOf:
    """The descriptor `__signature__` of an operator, or of all its overloads."""

    def __get__(self, operator: Any, owner: type) -> "Signature":
        if operator is None:
            # For the class, `inspect` falls back to the constructor's signature.
            raise AttributeError("__signature__")
        return python_signature(operator.schemas())


class DocumentationOf:
    """The descriptor `__doc__` of an operator or packet; `text` is the class's."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, operator: Any, owner: type) -> str | None:
        if operator is None:
            return self.text
        schemas = operator.schemas()
        if not schemas:
            return f"{operator}: not registered."
        head = f"{operator}{python_signature(schemas)}"
        return "\n".join((head, "", *map(str, schemas)))


class OperatorHandle(partial[Any]):
    """One operator (one overload) of a dispatcher.

    Calling it calls the operator with Python arguments; `call` is the same function
    without the handle.

    Raises:
        CallError: the arguments do not fit the schema.
        MissingKernel: no kernel is registered for the highest key of the call.
        OperatorGone, CannotRun: the operator is not registered, or has no schema.
        KernelError: the kernel returned a value that does not fit the schema.
    """

    __slots__ = ("_callee", "name")
    __doc__ = DocumentationOf(__doc__)
    __signature__ = SignatureOf()

    _callee: OperatorRef
    name: OperatorName

    def __new__(cls, dispatcher: DispatcherProtocol, name: OperatorName) -> Self:
        """Return the handle of the operator `name`, which may not be registered."""
        handles, text = dispatcher.keyring.handles, str(name)
        living: Self | None = handles.get(text)
        if living is not None:
            return living
        callee = OperatorRef(dispatcher, name, OperatorHandle)
        handle = super().__new__(cls, callee.call)
        handle._callee = callee
        handle.name = name
        # In the instance: a property would hide the `__module__` of the class.
        vars(handle)["__module__"] = f"{OPERATORS}.{callee.namespace}"
        callee.set_owner(handle)
        interned: Self = handles.setdefault(text, handle)
        return interned

    # The function of the partial object: the slow path at first, the call stub later.
    call = partial.func

    def call_boxed(self, args: Sequence[Any]) -> list[Any]:
        """Call with every argument in schema order; return the list of results.

        The sequence `args` is not modified.  Raises as `call`.
        """
        caller = self._caller()
        values = caller.bind(*_split(caller.schema, args))
        return _results(caller, caller.call_boxed(self._callee, values))

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return every argument of the call in schema order, defaults filled in.

        Raises:
            CallError: the arguments do not fit the schema.
        """
        caller = self._caller()
        return caller.bind(args, kwargs)

    def normalize(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the call with all arguments as kernels get them, positional and named.

        `Schema.fill_defaults` on the live schema; keyword-only arguments are named.
        Where the definition accepts numbers for tensors, they are converted to tensors.

        Raises:
            CallError: the arguments do not fit the schema.
        """
        caller = self._caller()
        return spread(caller.schema, caller.bind(args, kwargs))

    def redispatch(self, keyset: KeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel of the highest key of `keyset`.

        The thread's included and excluded keys and the fallthroughs are ignored.
        Raises as `call`, and KernelError if the slot is a fallthrough.
        """
        caller, callee = self._caller(), self._callee
        return caller.redispatch(
            "redispatch", callee, keyset, caller.bind(args, kwargs)
        )

    def redispatch_boxed(self, keyset: KeySet, args: Sequence[Any]) -> list[Any]:
        """Redispatch with every argument in schema order; return a list of results."""
        caller, callee = self._caller(), self._callee
        values = caller.bind(*_split(caller.schema, args))
        return _results(
            caller, caller.redispatch("redispatchBoxed", callee, keyset, values)
        )

    def call_for_key(self, key: DispatchKey | str, args: Sequence[Any]) -> list[Any]:
        """Run the direct kernel at `key` (aliases too), else the fallback of `key`.

        The kernel gets the keyset that an ordinary call would have.

        Raises:
            LookupFailed: there is neither.
        """
        entry, callee = self.entry, self._callee
        caller = callee.caller(entry)
        values = caller.bind(*_split(caller.schema, args))
        key = DispatchKey.parse(key) if isinstance(key, str) else key
        kernels = entry.implementations.get(key)
        if kernels:
            result = caller.run_kernel(callee, kernels[0].kernel, False, key, values)
        else:
            slots = entry.table.fallbacks.slots
            fallback = slots[key.slot] if key.slot is not None else None
            if fallback is None:
                raise _no_kernel(entry, key)
            result = caller.run_kernel(callee, fallback.kernel, True, key, values)
        return _results(caller, result)

    @property
    def schema(self) -> Schema:
        """Return the operator's schema.

        Raises:
            OperatorGone: nothing is registered under the name.
            CannotRun: only kernels are registered.
        """
        return self._caller().schema

    def schemas(self) -> tuple[Schema, ...]:
        """Return the live schema as a tuple; empty if there is none."""
        entry = self._callee.current_entry()
        return () if entry is None or entry.schema is None else (entry.schema,)

    @property
    def reading(self) -> OperatorSpec:
        """Return the spec of the definition; its `memo` is for functions of the schema.

        Raises as `schema`.
        """
        return self._caller().reading

    @property
    def entry(self) -> OperatorEntry:
        """Return everything that is registered for the operator now, as a value.

        Raises:
            OperatorGone: nothing is registered under the name.
        """
        entry = self._callee.current_entry()
        # An entry with only class rules is not an operator.
        if entry is None or not entry.total:
            raise OperatorGone(operator=str(self.name))
        return entry

    @property
    def dispatcher(self) -> DispatcherProtocol:
        """Return the dispatcher of the operator."""
        return self._callee.dispatcher

    @property
    def _schema(self) -> Schema:
        """Return `schema`; this is torch's name for it."""
        return self.schema

    @property
    def namespace(self) -> str:
        """Return the namespace of the name: `core`."""
        return self._callee.namespace

    @property
    def overload(self) -> str:
        """Return the overload of the name; `default` for the unnamed one."""
        return self.name.overload or DEFAULT

    @property
    def __name__(self) -> str:
        """Return the name without its namespace: `mul.default`."""
        return f"{self.name.base}.{self.overload}"

    @property
    def overloadpacket(self) -> "OperatorPacket":
        """Return the packet of all overloads of the operator."""
        return OperatorPacket(self.dispatcher, OperatorName(self.name.name))

    @property
    def _overloadpacket(self) -> "OperatorPacket":
        return self.overloadpacket

    @property
    def _opname(self) -> str:
        return self.overloadpacket.__name__

    @property
    def _overloadname(self) -> str:
        return self.name.overload or DEFAULT

    @property
    def has_schema(self) -> bool:
        """Return True if the operator is defined."""
        entry = self._callee.current_entry()
        return entry is not None and bool(entry.definitions)

    @property
    def is_view(self) -> bool:
        """Return True if a result shares an argument's memory and nothing is written.

        Raises as `schema`.
        """
        return self.schema.is_view

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags of the definition, sorted; empty without a definition."""
        definition = self.entry.definition
        return () if definition is None else definition.tags

    def has_kernel(self, key: DispatchKey | str) -> bool:
        """Return True if a kernel is registered at exactly `key`."""
        parsed = DispatchKey.parse(key) if isinstance(key, str) else key
        return parsed in self.entry.implementations

    def has_computed_kernel(self, key: DispatchKey | str) -> bool:
        """Return True if a call whose highest key is `key` finds a kernel.

        Raises:
            LookupFailed: `key` is an alias or a building block, which has no slot.
        """
        parsed = DispatchKey.parse(key) if isinstance(key, str) else key
        entry = self.entry
        if parsed.slot is None:
            raise _no_kernel(entry, parsed)
        return entry.table.slot(parsed.slot).kernel is not None

    def dump_state(self) -> str:
        """See `Dispatcher.dump_state`."""
        entry = self._callee.current_entry()
        return "" if entry is None else dump_state(entry)

    def dump_table(self) -> str:
        """See `Dispatcher.dump_table`."""
        entry = self._callee.current_entry()
        return "" if entry is None else dump_table(entry)

    def _caller(self) -> EntryInvoker:
        return self._callee.caller(self._callee.current_entry())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return load_operator, (OperatorHandle, self.dispatcher, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OperatorHandle {self.name}>"


def _split(
    schema: Schema, args: Sequence[Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return arguments in schema order as a Python call would pass them."""
    start = schema.kwarg_only_start
    names = [argument.name for argument in schema.arguments[start:]]
    extra = args[start + len(names) :]
    named = dict(zip(names, args[start:], strict=False))
    return (*args[:start], *extra), named


def _no_kernel(entry: OperatorEntry, key: DispatchKey) -> LookupFailed:
    return LookupFailed(
        code="NoKernelForKey",
        operator=str(entry.name),
        key=key.name,
        available=tuple(sorted(each.name for each in entry.implementations)),
    )


def _results(caller: EntryInvoker, result: Any) -> list[Any]:
    if len(caller.schema.returns) == 1 and not caller.schema.is_varret:
        return [result]
    if isinstance(result, (tuple, list)):
        return list(result)
    return [] if result is None else [result]


class PacketRef(OperatorRef):
    """All overloads of one operator; its call stub is that of the unnamed one."""

    __slots__ = ()

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the first overload that the arguments fit."""
        entries = self.dispatcher.state.overloads(self.name)
        names = [each.name for each in entries if each.definitions] or [self.name]
        if len(names) == 1:
            return self._call(names[0], args, kwargs)
        attempts = []
        for name in names:
            handle = OperatorHandle(self.dispatcher, name)
            try:
                handle.bind(args, kwargs)
            except CallError as error:
                attempts.append((str(name), str(error)))
            else:
                return self._call(name, args, kwargs)
        raise NoMatchingOverload(operator=self.name.name, attempts=tuple(attempts))

    def operator(self) -> Any:
        """Return a handle of the unnamed overload."""
        return OperatorHandle(self.dispatcher, self.name)

    def _call(
        self, name: OperatorName, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if name == self.name:
            return super().call(*args, **kwargs)
        return OperatorHandle(self.dispatcher, name)(*args, **kwargs)


class OperatorPacket(partial[Any]):
    """All overloads of one operator; calling it calls the first that fits.

    Raises:
        CallError: there is one overload, and the arguments do not fit it.
        NoMatchingOverload: there are several, and the arguments fit none.
    """

    # The class has a `__dict__`, too: overloads that were accessed are stored there.
    __slots__ = ("_dispatcher", "_name")
    __doc__ = DocumentationOf(__doc__)
    __signature__ = SignatureOf()

    _dispatcher: DispatcherProtocol
    _name: OperatorName

    def __new__(cls, dispatcher: DispatcherProtocol, name: OperatorName) -> Self:
        """Return the packet of `name`, which may have no overloads."""
        packets = dispatcher.keyring.packets
        living: Self | None = packets.get(name.name)
        if living is not None:
            return living
        callee = PacketRef(dispatcher, name, OperatorHandle)
        packet = super().__new__(cls, callee.call)
        packet._dispatcher = dispatcher
        packet._name = name
        callee.set_owner(packet)
        interned: Self = packets.setdefault(name.name, packet)
        return interned

    @property
    def __name__(self) -> str:
        """Return the name without its namespace: `mul`."""
        return self._name.name.partition("::")[2]

    @property
    def _qualified_op_name(self) -> str:
        return self._name.name

    def overloads(self) -> tuple[str, ...]:
        """Return the names of the defined overloads; the unnamed one is `default`."""
        entries = self._dispatcher.state.overloads(self._name)
        return tuple(e.name.overload or DEFAULT for e in entries if e.definitions)

    def schemas(self) -> tuple[Schema, ...]:
        """Return the schemas of the defined overloads, in the order of their names."""
        entries = self._dispatcher.state.overloads(self._name)
        return tuple(e.schema for e in entries if e.schema is not None)

    def __getattr__(self, overload: str) -> OperatorHandle:
        if overload.startswith("__"):
            raise AttributeError(overload)
        names = self.overloads()
        if not names:
            raise OperatorGone(code="OverloadGone", operator=self._name.name)
        if overload not in names:
            named = self._by_upstream(overload, names)
            if named is not None:
                return named
            raise LookupFailed(
                code="NoSuchOverload",
                operator=self._name.name,
                overload=overload,
                near=nearest(overload, names) or names,
            )
        overload_name = "" if overload == DEFAULT else overload
        name = OperatorName(self._name.name, overload_name)
        handle = OperatorHandle(self._dispatcher, name)
        self.__dict__[overload] = handle
        # Another thread may have removed the definition, and found nothing to remove.
        if overload not in self.overloads():
            self.__dict__.pop(overload, None)
        return handle

    def _by_upstream(
        self, overload: str, names: Sequence[str]
    ) -> OperatorHandle | None:
        """Return the overload that takes the calls of one of upstream's, or None."""
        named = OVERLOAD_NAMES.rows.get(self._name.name, {}).get(overload)
        if named is not None and (named or DEFAULT) in names:
            return OperatorHandle(
                self._dispatcher, OperatorName(self._name.name, named)
            )
        if overload not in OF_NUMBERS or DEFAULT not in names:
            return None
        unnamed = OperatorHandle(self._dispatcher, self._name)
        return unnamed if NUMBERS_AS_TENSORS in unnamed.tags else None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return load_operator, (OperatorPacket, self._dispatcher, self._name)

    def __str__(self) -> str:
        return self._name.name.replace("::", ".", 1)

    def __repr__(self) -> str:
        return f"<OperatorPacket {self._name}: {', '.join(self.overloads())}>"


def load_operator(
    kind: type[OperatorHandle] | type[OperatorPacket],
    dispatcher: DispatcherProtocol,
    name: OperatorName,
) -> OperatorHandle | OperatorPacket:
    """Return the unpickled handle or packet, after its operators are registered."""
    provide(name)
    return kind(dispatcher, name)


def provide(name: OperatorName) -> None:
    """Register the operators of the namespace of `name`, if the runtime has them."""
    provide_namespace(namespace_of(name))


def provide_namespace(namespace: str) -> None:
    """Register the operators of a namespace, if the runtime has them."""
    if (register := PROVIDERS.rows.get(namespace)) is not None:
        with LOADING:
            register()
