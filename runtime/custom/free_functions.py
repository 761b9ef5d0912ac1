"""Free functions: definitions and kernels for operators of any origin, by name.

An operator argument is a name, of the default dispatcher; a handle; a packet of one
overload; or the result of `custom_op`. For a live custom operator these functions are
its methods. For any other operator, the registrations belong to `lib`, or to a library
of this module that is never closed, one for each namespace of the default dispatcher;
closing a returned `Registration` still ends that registration.

A kernel that overrides another one and calls it looks that one up first:

    before = get_kernel("mylib::scale", "CPU")
    library.impl("scale", mine, "CPU")      # mine calls before.call_boxed(keyset, x)

Rules:
- kernels are passed as to `Library.impl`: an annotated function gets every argument,
  any other the arguments that differ from their defaults;
- registrations of this module's libraries show their own origin in dumps and warnings,
  as each library is used from everywhere;
- a saved kernel keeps all kernels that the operator had then, as those below it are
  among them, and works as long as the operator is defined, by any library.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, cast, overload

from everyorder.runtime.custom.decorator import parse_signature, qualified, tag_names
from everyorder.runtime.custom.definition import CustomOpDef, Devices, keys_of, live
from everyorder.runtime.custom.gradient import gradient_kernel
from everyorder.runtime.custom.kernel import casting_to
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle, OperatorPacket
from everyorder.runtime.dispatch.kernel import Kernel, describe, description_of
from everyorder.runtime.dispatch.kernel_lookup import EntryInvoker, OperatorRef
from everyorder.runtime.dispatch.library import Library, origin_of_caller
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.errors.call import OperatorGone
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.registration import LookupFailed, UnknownDevice
from everyorder.runtime.keys import (
    BACKEND_BITS,
    DispatchKey,
    KeySet,
    full_after,
    key_of_device,
)
from everyorder.runtime.schema.call_errors import describe_value
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName

# The values that identify an operator.
Operator = str | OperatorHandle | OperatorPacket | CustomOpDef[..., Any]


def handle_of(call: str, op: Operator) -> OperatorHandle:
    """Return the handle of an operator, which need not have registrations.

    Raises:
        DefinitionRefused, SchemaSyntaxError: the text is not a name with a namespace.
        DefinitionRefused: a packet of several overloads.
        DefinitionRefused: another type.
    """
    if isinstance(op, CustomOpDef):
        return op.handle
    if isinstance(op, OperatorHandle):
        return op
    if isinstance(op, str):
        return OperatorHandle(default_dispatcher(), qualified(op))
    if isinstance(op, OperatorPacket):
        return _only(call, op)
    raise DefinitionRefused(
        code="NotAnOperator",
        call=call,
        found=describe_value(op),
        library=isinstance(op, Library),
    )


def dispatcher_of(handle: OperatorHandle) -> Dispatcher:
    """Return the dispatcher of a handle."""
    return cast(Dispatcher, handle.dispatcher)


def schema_of(handle: OperatorHandle) -> Schema:
    """Return the schema of an operator.

    Raises:
        LookupFailed: there is no such operator; it lists similar names.
    """
    return dispatcher_of(handle).find_schema_or_raise(str(handle.name))


def custom_of(handle: OperatorHandle) -> CustomOpDef[..., Any] | None:
    """Return the live custom operator behind a handle, None if it is of another
    kind.
    """
    return live(dispatcher_of(handle), str(handle.name))


def _only(call: str, packet: OperatorPacket) -> OperatorHandle:
    overloads = packet.overloads()
    if len(overloads) != 1:
        raise DefinitionRefused(
            code="OverloadNeeded",
            call=call,
            operator=packet._name.name,
            overloads=overloads,
        )
    overload = "" if overloads[0] == "default" else overloads[0]
    return OperatorHandle(packet._dispatcher, OperatorName(packet._name.name, overload))


Given = TypeVar("Given", bound=Callable[..., Any])
# `impl` accepts finished kernels as well: fallthrough, boxed(...), ...
AnyKernel = TypeVar("AnyKernel", bound=Callable[..., Any] | Kernel)

# The place of registration in dumps.
ORIGIN = "registered by name"
# The name for all devices.
DEFAULT = "default"

# Namespace -> the library of registrations without another owner.
_KEPT: dict[str, Library] = {}


@overload
def define(
    qualname: Library, schema: str, alias_analysis: str = ""
) -> Callable[[Given], Given]: ...


@overload
def define(
    qualname: str,
    schema: str,
    *,
    lib: Library | None = None,
    tags: str | Iterable[str] = (),
) -> Registration: ...


def define(
    qualname: Library | str,
    schema: str,
    alias_analysis: str = "",
    *,
    lib: Library | None = None,
    tags: str | Iterable[str] = (),
) -> Any:
    """Define an operator, as `define("mylib::f", "(Tensor x) -> Tensor")`.

    `define(library, "f(Tensor x) -> Tensor")` is a decorator: it registers the function
    under the schema, at the library's key or for all backends.

    Raises:
        DefinitionRefused: the name does not have a namespace.
        DefinitionRefused: the schema does not have the form above.
        SchemaSyntaxError, SchemaError, Conflict: as `Library.define`.
    """
    if isinstance(qualname, Library):
        return partial(_defined, qualname, schema, alias_analysis)
    name = qualified(qualname)
    full = parse_signature(name, schema)
    owner = lib or _shared_library(name.namespace or "")
    debug = None if lib else origin_of_caller()
    return owner.define(full, "FROM_SCHEMA", tags=tag_names(tags), debug=debug)


def _defined(
    library: Library, schema: str, alias_analysis: str, function: Given
) -> Given:
    """Define an operator, and register the function for it: both, or neither."""
    definition = library.define(schema, alias_analysis)
    try:
        library.impl(schema.partition("(")[0].strip(), function)
    except BaseException:
        definition.close()
        raise
    return function


@overload
def impl(
    qualname: Library, types: Operator, fn: str | None = None
) -> Callable[[AnyKernel], AnyKernel]: ...


@overload
def impl(
    qualname: Operator,
    types: str | Iterable[str],
    fn: AnyKernel,
    *,
    lib: Library | None = None,
) -> AnyKernel: ...


@overload
def impl(
    qualname: Operator,
    types: str | Iterable[str],
    fn: None = None,
    *,
    lib: Library | None = None,
) -> Callable[[AnyKernel], AnyKernel]: ...


def impl(
    qualname: Library | Operator,
    types: Any,
    fn: Any = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a kernel; without `fn`, return a decorator that does.

    `impl(library, "f", "CPU")` is a decorator too: of a kernel for an operator of the
    library, at that key, or at the library's. Otherwise `types` are device types,
    dispatch keys, or `"default"` for all devices.

    Raises:
        UnknownDevice: `types` contains another word.
        LibraryMisuse, Conflict: as `Library.impl`.
    """
    if isinstance(qualname, Library):
        return partial(_implemented, qualname, types, fn or None)
    if fn is None:
        return partial(impl, qualname, types, lib=lib)
    handle = handle_of("impl(...)", qualname)
    words = (types,) if isinstance(types, str) else types
    keys = tuple(dict.fromkeys(map(_key_of, words)))
    owner = _owner("impl", handle, lib)
    owner.impl(handle.name, fn, keys, debug=_debug(lib, fn))
    return fn


def _implemented(
    library: Library, name: Any, key: str | None, kernel: AnyKernel
) -> AnyKernel:
    library.impl(name, kernel, key)
    return kernel


@overload
def register_kernel(
    op: Operator,
    device_types: Devices,
    fn: Given,
    /,
    *,
    lib: Library | None = None,
) -> Given: ...


@overload
def register_kernel(
    op: Operator,
    device_types: Devices,
    fn: None = None,
    /,
    *,
    lib: Library | None = None,
) -> Callable[[Given], Given]: ...


def register_kernel(
    op: Operator,
    device_types: Devices,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Use `fn` on these devices (None: all without a kernel); also a decorator.

    Raises the errors of `CustomOpDef.register_kernel`, or of `Library.impl`.
    """
    if fn is None:
        return partial(register_kernel, op, device_types, lib=lib)
    handle = handle_of("register_kernel(...)", op)
    custom = custom_of(handle)
    if custom is not None:
        return custom.register_kernel(device_types, fn)
    owner = _owner("register_kernel", handle, lib)
    owner.impl(handle.name, fn, keys_of(device_types), debug=_debug(lib, fn))
    return fn


@overload
def register_fake(
    op: Operator,
    fn: Given,
    /,
    *,
    lib: Library | None = None,
) -> Given: ...


@overload
def register_fake(
    op: Operator,
    fn: None = None,
    /,
    *,
    lib: Library | None = None,
) -> Callable[[Given], Given]: ...


def register_fake(
    op: Operator,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Use `fn` for tensors without data, in place of older ones; also a decorator.

    Raises:
        LookupFailed: there is no such operator.
        DefinitionRefused: it consists of other operators.
        LibraryMisuse, Conflict: as `Library.impl`, or `CustomOpDef.register_fake`.
    """
    if fn is None:
        return partial(register_fake, op, lib=lib)
    handle = handle_of("register_fake(...)", op)
    custom = custom_of(handle)
    if custom is not None:
        return custom.register_fake(fn)
    schema_of(handle)
    if handle.has_kernel(DispatchKey.CompositeImplicitAutograd):
        raise DefinitionRefused(code="FakeNotNeeded", operator=str(handle.name))
    owner = _owner("register_fake", handle, lib)
    owner.impl(handle.name, fn, DispatchKey.Meta, debug=_debug(lib, fn))
    return fn


def register_autograd(
    op: Operator,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Use `backward` to compute the gradient of `op`.

    Raises:
        LookupFailed: there is no such operator.
        DefinitionRefused, LibraryMisuse: as `CustomOpDef.register_autograd`.
    """
    handle = handle_of("register_autograd(...)", op)
    custom = custom_of(handle)
    if custom is not None:
        custom.register_autograd(backward, setup_context=setup_context)
        return
    kernel = gradient_kernel(schema_of(handle), backward, setup_context)
    owner = _owner("register_autograd", handle, lib)
    owner.impl(handle.name, kernel, "Autograd", debug=_debug(lib, backward))


def register_autocast(
    op: Operator,
    device_type: str,
    cast_inputs: DType | str,
    /,
    *,
    lib: Library | None = None,
) -> None:
    """Cast floating-point tensors to `cast_inputs` in `autocast` on that device.

    Raises:
        AutogradMisuse: the device or the dtype is not supported.
    """
    handle = handle_of("register_autocast(...)", op)
    custom = custom_of(handle)
    if custom is not None:
        custom.register_autocast(device_type, cast_inputs)
        return
    key, kernel = casting_to(device_type, cast_inputs)
    owner = _owner("register_autocast", handle, lib)
    owner.impl(handle.name, kernel, key, debug=_debug(lib, kernel))


@overload
def register_torch_dispatch(
    op: Operator, cls: type, fn: Given, /, *, lib: Library | None = None
) -> Given: ...


@overload
def register_torch_dispatch(
    op: Operator, cls: type, fn: None = None, /, *, lib: Library | None = None
) -> Callable[[Given], Given]: ...


def register_torch_dispatch(
    op: Operator,
    cls: type,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Use `fn` where a handler of the class `cls` would handle `op`; also a decorator.

    The rule of a custom operator ends with it, any other one with its library. Raises
    the errors of `Library.rule`, or of `CustomOpDef.register_torch_dispatch`.
    """
    if fn is None:
        return partial(register_torch_dispatch, op, cls, lib=lib)
    handle = handle_of("register_torch_dispatch(...)", op)
    custom = custom_of(handle)
    if custom is not None:
        return custom.register_torch_dispatch(cls, fn)
    owner = _owner("register_torch_dispatch", handle, lib)
    owner.rule(handle.name, cls, fn, debug=_debug(lib, fn))
    return fn


def _key_of(word: str) -> DispatchKey:
    """Return the key of a device type, or the key of that name.

    Raises:
        UnknownDevice: the word is neither.
    """
    if word == DEFAULT:
        return DispatchKey.CompositeExplicitAutograd
    if word in DispatchKey:
        return DispatchKey.parse(word)
    try:
        return key_of_device(word)
    except UnknownDevice as error:
        error.add_note(
            "`default` means all devices; dispatch keys are accepted as well"
        )
        raise


def _owner(call: str, handle: OperatorHandle, lib: Library | None) -> Library:
    if lib is not None:
        return lib
    if dispatcher_of(handle) is not default_dispatcher():
        raise DefinitionRefused(
            code="LibraryNeeded", call=f"{call}(...)", operator=str(handle.name)
        )
    return _shared_library(handle.name.namespace or "")


def _debug(lib: Library | None, fn: Any) -> str | None:
    """Return the origin of a kernel in dumps; None for a library of the caller."""
    if lib is not None:
        return None
    origin = origin_of_caller(3)
    if isinstance(fn, Kernel):
        return description_of(fn, None, origin)
    return f"{describe(fn)} ({origin})"


def _shared_library(namespace: str) -> Library:
    library = _KEPT.get(namespace)
    return library or _KEPT.setdefault(
        namespace, Library(namespace, "FRAGMENT", origin=ORIGIN)
    )


class SavedKernel:
    """A kernel of an operator, as it was when `get_kernel` returned it."""

    __slots__ = ("_callee", "_caller", "key")

    def __init__(
        self, callee: OperatorRef, caller: EntryInvoker, key: DispatchKey
    ) -> None:
        self._callee = callee
        self._caller = caller
        self.key = key

    def call_boxed(self, keyset: KeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel with its own key and the lower keys of a keyset.

        Raises:
            OperatorGone: the operator is not defined any more.
            CallError: the arguments do not fit the schema that it had.
        """
        entry = self._callee.current_entry()
        if entry is None or not entry.definitions:
            raise OperatorGone(operator=self._callee.text)
        own = self.key.bits
        bits = keyset.bits & full_after(self.key).bits
        if own & BACKEND_BITS:
            # The highest backend of a keyset would win over the kernel's own.
            bits &= ~BACKEND_BITS
        else:
            bits |= keyset.bits & BACKEND_BITS
        caller = self._caller
        values, below = caller.bind(args, kwargs), KeySet.from_bits(bits | own)
        return caller.redispatch("redispatch", self._callee, below, values)

    def __repr__(self) -> str:
        return f"<SavedKernel {self._callee.text} at {self.key.name}>"


def get_kernel(op: Operator, key: DispatchKey | str, /) -> SavedKernel:
    """Return the kernel that a call of `op` with the highest key `key` runs now.

    Raises:
        LookupFailed: there is no such key.
        LookupFailed: there is no such operator.
        LookupFailed: it has no kernel for the key, or the key is an alias.
    """
    handle = handle_of("get_kernel(...)", op)
    schema_of(handle)
    dispatch_key = DispatchKey.parse(key) if isinstance(key, str) else key
    callee = OperatorRef(dispatcher_of(handle), handle.name, OperatorHandle)
    entry = callee.current_entry()
    caller = callee.caller(entry)
    assert entry is not None, "`caller` raises for an operator without an entry"
    if dispatch_key.slot is None or entry.table.slot(dispatch_key.slot).kernel is None:
        raise LookupFailed(
            code="NoKernelForKey",
            operator=str(handle.name),
            key=dispatch_key.name,
            available=tuple(sorted(each.name for each in entry.implementations)),
        )
    return SavedKernel(callee, caller, dispatch_key)
