"""Operator handles and packets: how operators are called and asked.

A handle is one overload: a name and a dispatcher, nothing else, so it cannot go stale.
Every call looks the entry up in the published state (`runtime.dispatch.call`), and all
that makes calls fast is kept on that entry.  A handle of an operator that is gone says
so, and works again when the operator is back.  A packet is all overloads of one name;
a call of it goes to the first overload that the arguments fit, in the order of the
overload names (the unnamed one first), whatever the order of registration.

Rules:
- there is one handle of a name, and one packet, as long as somebody keeps it
  (`runtime.dispatch.keyring`): `is` compares operators, a copy is the operator itself;
- pickling goes by the name, and only for the default dispatcher;
- torch's names are there, too: `_schema`, `overloadpacket`, `__name__`, ...;
- upstream has an overload for tensors and one for numbers where the unnamed one here
  takes numbers as tensors: their names, `Tensor` and `Scalar`, find that one;
- `inspect.signature` and `help` take what they tell from the live schemas.  One schema
  shows its parameters; several, or none any more, take anything.  Parameters have no
  annotations: an operator that is registered as a kernel is one that says nothing about
  its types, whatever its schema is.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Protocol, Self

from runtime.dispatch.call import Callee, Caller
from runtime.dispatch.dump import dump_state, dump_table
from runtime.dispatch.keyring import Published
from runtime.dispatch.state import OperatorEntry
from runtime.dispatch.token import DefinitionReading, namespace_of
from runtime.errors.base import nearest
from runtime.errors.call import CallError, NoMatchingOverload, OperatorGone
from runtime.errors.registration import LookupFailed
from runtime.keys import DispatchKey, KeySet
from runtime.locks import load
from runtime.schema.defaults import spread
from runtime.schema.schema import NUMBERS_AS_TENSORS, Schema
from runtime.schema.signature import OperatorName
from runtime.schema.values import present

if TYPE_CHECKING:
    from inspect import Signature


class Shown(Protocol):
    """An operator, or all overloads of one."""

    def __str__(self) -> str: ...

    def schemas(self) -> tuple[Schema, ...]:
        """The schemas that are live."""


class SignatureOf:
    """`__signature__` of an operator."""

    def __get__(self, shown: Shown | None, owner: type) -> "Signature":
        if shown is None:
            # Whoever asks a class for it takes the constructor's then.
            raise AttributeError("__signature__")
        return signature_of(shown.schemas())


class DocumentationOf:
    """`__doc__` of an operator, and the `text` of its class."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, shown: Shown | None, owner: type) -> str | None:
        if shown is None:
            return self.text
        schemas = shown.schemas()
        if not schemas:
            return f"{shown}: not registered."
        return "\n".join((f"{shown}{signature_of(schemas)}", "", *map(str, schemas)))


def signature_of(schemas: Sequence[Schema]) -> "Signature":
    """The signature that calls may have, as Python says it."""
    from inspect import Parameter, Signature

    if len(schemas) != 1:
        anything = {"args": Parameter.VAR_POSITIONAL, "kwargs": Parameter.VAR_KEYWORD}
        return Signature([Parameter(name, kind) for name, kind in anything.items()])
    (schema,) = schemas
    parameters = []
    # What stands before a required argument has no default for Python.
    optional = True
    for argument in reversed(schema.arguments):
        named = argument.kwarg_only
        optional = optional and (named or argument.has_default)
        default: Any = Parameter.empty
        if argument.has_default and (named or optional):
            default = present(argument.type, argument.default)
        kind = Parameter.KEYWORD_ONLY if named else Parameter.POSITIONAL_OR_KEYWORD
        name = f"{argument.name}_" if iskeyword(argument.name) else argument.name
        parameters.append(Parameter(name, kind, default=default))
    parameters.reverse()
    if schema.is_vararg:
        rest = Parameter("args", Parameter.VAR_POSITIONAL)
        parameters.insert(schema.kwarg_only_start, rest)
    return Signature(parameters)


# What the unnamed overload is called where a name is needed.
DEFAULT = "default"
# Where `ops` is: handles say that they come from there.
OPERATORS = "runtime.ops"
# Namespace -> the module that registers its operators, for handles that were pickled.
PROVIDERS: dict[str, str] = {}


class OperatorHandle(partial[Any]):
    """One operator (one overload) of a dispatcher.

    Calling it calls the operator with Python arguments, and `call` is the same without
    the look at the handle.

    Raises:
        CallError: the arguments do not fit the schema.
        MissingKernel: no kernel is registered for the highest key of the call.
        OperatorGone, CannotRun: there is nothing to call.
        KernelError: the kernel returned something else.
    """

    __slots__ = ("_callee", "name")
    __doc__ = DocumentationOf(__doc__)
    __signature__ = SignatureOf()

    _callee: Callee
    name: OperatorName

    def __new__(cls, dispatcher: Published, name: OperatorName) -> Self:
        """The operator called `name`, whether it is registered or not."""
        handles, text = dispatcher.keyring.handles, str(name)
        found: Self | None = handles.get(text)
        if found is not None:
            return found
        callee = Callee(dispatcher, name, OperatorHandle)
        made = super().__new__(cls, callee.start)
        made._callee = callee
        made.name = name
        # The class has a `__module__` of its own, which a property would take away.
        vars(made)["__module__"] = f"{OPERATORS}.{callee.namespace}"
        callee.show(made)
        settled: Self = handles.settle(text, made)
        return settled

    # What a partial object calls: the plain way at first, the call stub later.
    call = partial.func

    def call_boxed(self, args: Sequence[Any]) -> list[Any]:
        """Call with every argument in schema order; returns the list of results.

        The given sequence is left as it is.  Raises as `call`.
        """
        caller = self._caller()
        values = caller.bind(*_split(caller.schema, args))
        return _results(caller, caller.call_boxed(self._callee, values))

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Every argument of such a call in schema order, defaults filled in.

        Raises:
            CallError: the arguments do not fit the schema.
        """
        caller = self._caller()
        return caller.bind(args, kwargs)

    def normalize(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Such a call with every argument as kernels see it, keyword-only ones named.

        `Schema.fill_defaults` on the live schema; where the definition says that
        numbers are taken for tensors, they are tensors here.

        Raises:
            CallError: the arguments do not fit the schema.
        """
        caller = self._caller()
        return spread(caller.schema, caller.bind(args, kwargs))

    def redispatch(self, keyset: KeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel of the highest key of `keyset`, which is taken as it is.

        The thread's included and excluded keys and the fallthroughs do not matter.
        Raises as `call`, and KernelError where the slot falls through.
        """
        caller, callee = self._caller(), self._callee
        return caller.redispatch(
            "redispatch", callee, keyset, caller.bind(args, kwargs)
        )

    def redispatch_boxed(self, keyset: KeySet, args: Sequence[Any]) -> list[Any]:
        """`redispatch` with every argument in schema order; a list of results."""
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
        held = entry.implementations.get(key)
        if held:
            result = caller.run_kernel(callee, held[0].kernel, False, key, values)
        else:
            slots = entry.table.fallbacks.slots
            found = slots[key.slot] if key.slot is not None else None
            if found is None:
                raise LookupFailed(
                    code="NoKernelForKey",
                    operator=str(self.name),
                    key=key.name,
                    available=tuple(sorted(k.name for k in entry.implementations)),
                )
            result = caller.run_kernel(callee, found.kernel, True, key, values)
        return _results(caller, result)

    @property
    def schema(self) -> Schema:
        """The operator's schema.

        Raises:
            OperatorGone: nothing is registered under the name.
            CannotRun: only kernels are.
        """
        return self._caller().schema

    def schemas(self) -> tuple[Schema, ...]:
        """The schema, or nothing if there is none."""
        entry = self._published()
        return () if entry is None or entry.schema is None else (entry.schema,)

    @property
    def reading(self) -> DefinitionReading:
        """What the definition says; its `memo` is for functions of the schema.

        Raises as `schema`.
        """
        return self._caller().reading

    @property
    def entry(self) -> OperatorEntry:
        """Everything that is registered for the operator now, as a value.

        Raises:
            OperatorGone: nothing is registered under the name.
        """
        entry = self._published()
        # Rules alone make no operator.
        if entry is None or not entry.total:
            raise OperatorGone(code="OperatorGone", operator=str(self.name))
        return entry

    @property
    def dispatcher(self) -> Published:
        """The dispatcher that the operator is one of."""
        return self._callee.dispatcher

    @property
    def _schema(self) -> Schema:
        """`schema`, by the name that torch has for it."""
        return self.schema

    @property
    def namespace(self) -> str:
        """The namespace of the name: `core`."""
        return self._callee.namespace

    @property
    def overload(self) -> str:
        """The overload of the name; `default` for the unnamed one."""
        return self.name.overload or DEFAULT

    @property
    def __name__(self) -> str:
        """The name without its namespace: `mul.default`."""
        return f"{self.name.base}.{self.overload}"

    @property
    def overloadpacket(self) -> "OperatorPacket":
        """All overloads of the operator."""
        return OperatorPacket(self.dispatcher, OperatorName(self.name.name))

    @property
    def has_schema(self) -> bool:
        """Whether the operator is defined."""
        entry = self._published()
        return entry is not None and bool(entry.definitions)

    @property
    def is_view(self) -> bool:
        """Whether a result shares an argument's memory and nothing is written.

        Raises as `schema`.
        """
        return self.schema.is_view

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the definition, sorted; none without a definition."""
        definition = self.entry.definition
        return () if definition is None else definition.tags

    def has_kernel(self, key: DispatchKey | str) -> bool:
        """Whether a kernel is registered at exactly `key`."""
        wanted = DispatchKey.parse(key) if isinstance(key, str) else key
        return wanted in self.entry.implementations

    def has_computed_kernel(self, key: DispatchKey | str) -> bool:
        """Whether a call whose highest key is the runtime key `key` finds a kernel.

        Raises:
            LookupFailed: `key` is an alias or a building block: it has no slot.
        """
        wanted = DispatchKey.parse(key) if isinstance(key, str) else key
        entry = self.entry
        if wanted.slot is None:
            raise LookupFailed(
                code="NoKernelForKey",
                operator=str(self.name),
                key=wanted.name,
                available=tuple(sorted(k.name for k in entry.implementations)),
            )
        return entry.table.slot(wanted.slot).kernel is not None

    def dump_state(self) -> str:
        """See `Dispatcher.dump_state`."""
        entry = self._published()
        return "" if entry is None else dump_state(entry)

    def dump_table(self) -> str:
        """See `Dispatcher.dump_table`."""
        entry = self._published()
        return "" if entry is None else dump_table(entry)

    def _published(self) -> OperatorEntry | None:
        return self._callee.published()

    def _caller(self) -> Caller:
        return self._callee.caller(self._published())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return again, (self.dispatcher, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OperatorHandle {self.name}>"


def _split(
    schema: Schema, args: Sequence[Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Arguments in schema order, as a Python call would pass them."""
    start = schema.kwarg_only_start
    names = [argument.name for argument in schema.arguments[start:]]
    extra = args[start + len(names) :]
    named = dict(zip(names, args[start:], strict=False))
    return (*args[:start], *extra), named


def _results(caller: Caller, result: Any) -> list[Any]:
    if len(caller.schema.returns) == 1 and not caller.schema.is_varret:
        return [result]
    if isinstance(result, (tuple, list)):
        return list(result)
    return [] if result is None else [result]


# What upstream calls the overloads of operators that take a tensor or a number.
OF_NUMBERS = frozenset({"Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar"})


class PacketCallee(Callee):
    """All overloads of one operator; its call stub is that of the unnamed one."""

    __slots__ = ()

    def start(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the first overload that the arguments fit."""
        found = self.dispatcher.state.overloads(self.name)
        names = [each.name for each in found if each.definitions] or [self.name]
        if len(names) == 1:
            return self._called(names[0], args, kwargs)
        attempts = []
        for name in names:
            handle = OperatorHandle(self.dispatcher, name)
            try:
                handle.bind(args, kwargs)
            except CallError as error:
                attempts.append((str(name), str(error)))
            else:
                return self._called(name, args, kwargs)
        raise NoMatchingOverload(operator=self.name.name, attempts=tuple(attempts))

    def operator(self) -> Any:
        """A handle of the unnamed overload."""
        return OperatorHandle(self.dispatcher, self.name)

    def _called(
        self, name: OperatorName, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if name == self.name:
            return super().start(*args, **kwargs)
        return OperatorHandle(self.dispatcher, name)(*args, **kwargs)


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
            callee = PacketCallee(dispatcher, name, OperatorHandle)
            made = super().__new__(cls, callee.start)
            made._dispatcher = dispatcher
            made._name = name
            made._lasting = False
            callee.show(made)
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
            raise OperatorGone(code="OverloadGone", operator=self._name.name)
        if overload not in names and overload in OF_NUMBERS:
            unnamed = OperatorHandle(self._dispatcher, self._name)
            if NUMBERS_AS_TENSORS in unnamed.tags:
                return unnamed
        if overload not in names:
            raise LookupFailed(
                code="NoSuchOverload",
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


def again(dispatcher: Published, name: OperatorName) -> OperatorHandle:
    """The handle that was pickled; what provides its operator is loaded."""
    provide(name)
    return OperatorHandle(dispatcher, name)


def provide(name: OperatorName) -> None:
    """Load the module that registers the operator, if it is one of the runtime's."""
    module = PROVIDERS.get(namespace_of(name))
    if module is not None:
        load(module)


def packet_again(dispatcher: Published, name: OperatorName) -> OperatorPacket:
    """The packet that was pickled."""
    provide(name)
    return OperatorPacket(dispatcher, name)
