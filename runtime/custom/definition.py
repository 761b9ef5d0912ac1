"""Custom operators: the definition that `custom_op` returns, and its additions.

All additions are registrations of one FRAGMENT library, and end with it:

| addition              | key                                   | kind             |
|-----------------------|---------------------------------------|------------------|
| the function itself   | CompositeExplicitAutograd, or devices | direct           |
| `register_kernel`     | the key of each device                | direct           |
| (no tensor arguments) | BackendSelect, with device kernels    | linked           |
| `register_fake`       | Meta, before the one that refuses     | direct           |
| `register_autograd`   | Autograd                              | linked           |
| (writes, or views)    | ADInplaceOrView                       | linked           |
| (tag `out`)           | Autograd: refuses gradients           | linked           |
| `register_autocast`   | AutocastCPU or AutocastCUDA           | linked           |
| `register_torch_...`  | none: a rule of a class               |                  |

Rules:
- a second addition ends the first; a fake kernel ends only after its successor is
  registered;
- all checks run before anything ends or is registered;
- kernels do not refer to the definition: when it is closed, or freed, its kernels are
  removed;
- a definition on the default dispatcher lives until it is closed or defined again,
  without a reference from its author, and is pickled by name; a definition on another
  dispatcher lives as long as its owner refers to it, like a library;
- for names of torch.library that do not exist here, `ABSENT` gives the reason.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)
from weakref import WeakKeyDictionary, WeakValueDictionary

from everyorder.runtime.autograd.recording import refusing_out
from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.custom.gradient import gradient_kernel
from everyorder.runtime.custom.kernel import (
    casting_to,
    first_fake,
    kernel_of,
    selecting,
    takes_tensors,
    version_kernel,
)
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle, SignatureOf
from everyorder.runtime.dispatch.kernel import Kernel, linked
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.dispatch.registration_record import check_rule
from everyorder.runtime.errors.call import OperatorGone
from everyorder.runtime.errors.registration import LibraryMisuse, LookupFailed
from everyorder.runtime.keys import DispatchKey, key_of_device
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.schema import Schema

Function = Callable[..., Any]

Given = TypeVar("Given", bound=Function)

# Parameters and result of an operator's function.
P = ParamSpec("P")

R = TypeVar("R")

# One type of device, several, or None for all at once.
Devices = str | Iterable[str] | None

EVERYWHERE = DispatchKey.CompositeExplicitAutograd


def keys_of(devices: Devices) -> tuple[DispatchKey, ...]:
    """Return the keys of a kernel for these devices.

    Raises:
        UnknownDevice: there is no such type of device.
    """
    if devices is None:
        return (EVERYWHERE,)
    names = (devices,) if isinstance(devices, str) else devices
    return tuple(dict.fromkeys(key_of_device(name) for name in names))


class CustomOpDef(Closeable, Generic[P, R]):
    """An operator defined by a Python function; calling it calls the operator.

    Created by `custom_op`. `handle` is its `OperatorHandle`, `schema` its schema. A
    call raises the errors of a handle, and in addition:

    Raises:
        KernelError: a result shares memory with an argument or another result.
        KernelError: a result that should be a written argument is another tensor.
        MissingFake: it was called with meta tensors, and does not have a fake kernel.
    """

    # For `inspect.signature`: the parameters of the schema.
    __signature__ = SignatureOf()

    def __init__(
        self,
        schema: Schema,
        function: Callable[P, R],
        devices: Devices,
        tags: tuple[str, ...],
        dispatcher: Dispatcher,
        origin: str,
    ) -> None:
        self.name = str(schema.name)
        self.schema = schema
        self.dispatcher = dispatcher
        self.__name__ = str(getattr(function, "__name__", self.name))
        self.__qualname__ = str(getattr(function, "__qualname__", self.__name__))
        self.__module__ = str(getattr(function, "__module__", __name__))
        self.__doc__ = getattr(function, "__doc__", None)
        namespace = self.name.partition("::")[0]
        self._library = Library(
            namespace, "FRAGMENT", dispatcher=dispatcher, origin=origin
        )
        # By key: the kernels for devices, enabled or not; and all registrations.
        self._kernels: dict[DispatchKey, Kernel] = {}
        self._off: set[DispatchKey] = set()
        self._registered: dict[str, Registration] = {}
        # Rules by the id of the class, which need not be hashable; its rule keeps it
        # alive.
        self._rules: dict[int, Registration] = {}
        self._closed = False
        try:
            # Registered by name before it is live: if the constructor is interrupted,
            # the next definition of that name closes this one.
            keep(self)
            self._library.define(schema, "FROM_SCHEMA", tags=tags)
            self._library.impl(self.name, first_fake(schema), "Meta")
            self._watch(tags)
            self.register_kernel(devices, function)
            self.handle = OperatorHandle(dispatcher, schema.name)
            self._opoverload = self.handle
        except BaseException:
            self._library.close()
            forget(self)
            raise

    def _watch(self, tags: tuple[str, ...]) -> None:
        """Register the kernels that follow from the schema: versions, views, no
        gradients.
        """
        versions = version_kernel(self.schema)
        if versions is not None:
            self._library.impl(self.name, versions, "ADInplaceOrView")
        if "out" in tags:
            refuse = linked(refusing_out(self.schema), "out_autograd")
            self._library.impl(self.name, refuse, "Autograd")

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the operator.

        Raises:
            OperatorGone: it was closed, also if another operator has its name now.
        """
        if self._closed:
            raise OperatorGone(operator=self.name)
        return self.handle(*args, **kwargs)  # type: ignore[no-any-return]  # what its function gives

    @overload
    def register_kernel(self, device_types: Devices, fn: Given, /) -> Given: ...

    @overload
    def register_kernel(
        self, device_types: Devices, fn: None = None, /
    ) -> Callable[[Given], Given]: ...

    def register_kernel(
        self, device_types: Devices, fn: Function | None = None, /
    ) -> Any:
        """Use `fn` on these devices (None: all without a kernel); also a decorator.

        Raises:
            UnknownDevice: there is no such type of device.
            DefinitionRefused: `fn` cannot be called according to the schema.
            DefinitionRefused: neither a tensor nor a `device` argument selects it.
            LibraryMisuse: the operator was closed.
        """
        if fn is None:
            return partial(self.register_kernel, device_types)
        self._check_open("register_kernel")
        keys, kernel = keys_of(device_types), kernel_of(fn, self.schema)
        if device_types is not None and not takes_tensors(self.schema):
            self._replace("BackendSelect", selecting(self.schema), once=True)
        for key in keys:
            if key not in self._off:
                self._replace(key.name, kernel)
            self._kernels[key] = kernel
        return fn

    def register_fake(self, fn: Given, /) -> Given:
        """Use `fn` for tensors without data; also a decorator.

        It is called with meta tensors, and returns meta tensors of the right shape,
        dtype and device.

        Raises:
            DefinitionRefused: `fn` cannot be called according to the schema.
            LibraryMisuse: the operator was closed.
        """
        self._check_open("register_fake")
        kernel = kernel_of(fn, self.schema)
        # Register first: overriding a kernel at Meta does not warn, as there always is
        # one.
        registration = self._library.impl(self.name, kernel, "Meta")
        before = self._registered.get("fake")
        self._registered["fake"] = registration
        if before is not None:
            before.close()
        return fn

    def register_autograd(
        self, backward: Function, /, *, setup_context: Function | None = None
    ) -> None:
        """Use `backward(ctx, *gradients)` to compute the gradient.

        `setup_context(ctx, inputs, output)` saves the values that `backward` needs. If
        the operator has keyword-only arguments, `keyword_only_inputs` precedes
        `output`.

        Raises:
            DefinitionRefused: the operator writes to an argument.
            LibraryMisuse: one of the functions cannot be called.
            LibraryMisuse: the operator was closed.
        """
        self._check_open("register_autograd")
        kernel = gradient_kernel(self.schema, backward, setup_context)
        self._replace("Autograd", kernel)

    def register_autocast(self, device_type: str, cast_inputs: DType | str, /) -> None:
        """Cast floating-point tensors to `cast_inputs` in `autocast` on that device.

        Raises:
            AutogradMisuse: the device or the dtype is not supported.
            LibraryMisuse: the operator was closed.
        """
        self._check_open("register_autocast")
        key, kernel = casting_to(device_type, cast_inputs)
        self._replace(key.name, kernel)

    @overload
    def register_torch_dispatch(self, cls: type, fn: Given, /) -> Given: ...

    @overload
    def register_torch_dispatch(
        self, cls: type, fn: None = None, /
    ) -> Callable[[Given], Given]: ...

    def register_torch_dispatch(self, cls: type, fn: Function | None = None, /) -> Any:
        """Use `fn` where a handler of the class `cls` would handle the operator.

        `fn` is called like a rule of `runtime.torch_dispatch`; it replaces the
        operator's own rule for that class. Also a decorator.

        Raises:
            LibraryMisuse: `cls` is not a class, or `fn` not a function.
            Conflict: another library has a rule for both.
            LibraryMisuse: the operator was closed.
        """
        if fn is None:
            return partial(self.register_torch_dispatch, cls)
        self._check_open("register_torch_dispatch")
        check_rule(cls, fn)
        before = self._rules.get(id(cls))
        if before is not None:
            before.close()
            del self._rules[id(cls)]
        self._rules[id(cls)] = self._library.rule(self.name, cls, fn)
        return fn

    @contextmanager
    def set_kernel_enabled(
        self, device_type: str, enabled: bool = True
    ) -> Iterator[None]:
        """Enable or disable the kernel of a device inside a `with` block.

        Without it, the function for all devices runs, if there is one. A kernel that is
        registered while it is disabled stays disabled until the end of the block.

        Raises:
            LookupFailed: there is no kernel for that device.
            UnknownDevice: there is no such type of device.
        """
        (key,) = keys_of(device_type)
        if key not in self._kernels:
            raise LookupFailed(
                code="NoSuchKernel",
                operator=self.name,
                device=device_type,
                known=tuple(sorted(map(_shown, self._kernels))),
            )
        before = key not in self._off
        self._switch(key, enabled)
        try:
            yield
        finally:
            if not self.closed:
                self._switch(key, before)

    @property
    def closed(self) -> bool:
        """Return True if the operator was closed, or defined again under its name."""
        return self._closed

    def close(self) -> None:
        """End the operator with all its additions; a second call has no effect.

        Raises the errors of `Library.close`.
        """
        self.dispatcher.check_writable(f"close() of {self.name}")
        # Close the live part first: if this is interrupted, it can be closed again.
        self._library.close()
        self._closed = True
        for collection in (self._kernels, self._off, self._registered, self._rules):
            collection.clear()
        forget(self)

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise LibraryMisuse(
                code="LibraryClosed", call=f"{call}(...)", library=repr(self._library)
            )

    def _switch(self, key: DispatchKey, on: bool) -> None:
        if on and key in self._off:
            self._replace(key.name, self._kernels[key])
            self._off.discard(key)
        elif not on and key not in self._off:
            self._registered.pop(key.name).close()
            self._off.add(key)

    def _replace(self, key: str, kernel: Kernel, once: bool = False) -> None:
        """Register a kernel in place of this definition's kernel at the key."""
        before = self._registered.get(key)
        if before is not None:
            if once:
                return
            before.close()
        self._registered[key] = self._library.impl(self.name, kernel, key)

    def schemas(self) -> tuple[Schema, ...]:
        """Return the one schema, as a tuple like the live schemas of any operator."""
        return (self.schema,)

    if not TYPE_CHECKING:
        # Only at run time: a type checker must report missing names itself.
        def __getattr__(self, name: str) -> Any:
            # It may be a name of torch.library.
            raise missing(f"{type(self).__name__!r} object", name, self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_operator, (self.dispatcher, self.name)

    def __repr__(self) -> str:
        return f"<CustomOpDef {self.name}>"


def restored_operator(dispatcher: Dispatcher, name: str) -> Any:
    """Return the live operator that was pickled by name.

    Raises:
        LookupFailed: there is no operator of that name.
        OperatorGone: another kind of operator has the name.
    """
    definition = live(dispatcher, name)
    if definition is None:
        dispatcher.find_schema_or_raise(name)
        raise OperatorGone(operator=name)
    return definition


def _shown(key: DispatchKey) -> str:
    return "all devices" if key is EVERYWHERE else key.name


# By dispatcher and name; below, the definitions of the default dispatcher, kept alive.
_LIVE: WeakKeyDictionary[
    Dispatcher, WeakValueDictionary[str, "CustomOpDef[..., Any]"]
] = WeakKeyDictionary()

_KEPT: dict[str, "CustomOpDef[..., Any]"] = {}


def keep(definition: "CustomOpDef[..., Any]") -> None:
    """Register a definition by its name, in place of another one."""
    _LIVE.setdefault(definition.dispatcher, WeakValueDictionary())[definition.name] = (
        definition
    )
    if definition.dispatcher is default_dispatcher():
        _KEPT[definition.name] = definition


def live(dispatcher: Dispatcher, name: str) -> "CustomOpDef[..., Any] | None":
    """Return the live definition of that name, None if there is none."""
    named = _LIVE.get(dispatcher)
    return None if named is None else named.get(name)


def forget(definition: "CustomOpDef[..., Any]") -> None:
    """Release a closed definition; another one of its name stays."""
    if live(definition.dispatcher, definition.name) is definition:
        del _LIVE[definition.dispatcher][definition.name]
    if _KEPT.get(definition.name) is definition:
        del _KEPT[definition.name]


# Name -> the reason why it is absent, and the replacement.
ABSENT = {
    "impl_abstract": "it is called register_fake",
    "register_effect": "operators run in the order of their calls, and none is skipped",
    "register_vmap": "this runtime does not create batched tensors; register a kernel "
    "for them with Library.impl(op, kernel, 'FuncTorchBatched')",
    "triton_op": "there is no Triton; @register_kernel('cuda') takes any function",
    "wrap_triton": "there is no Triton; @register_kernel('cuda') takes any function",
}


def missing(owner: str, name: str, of: object = None) -> AttributeError:
    """Return the error for a name that `owner`, a module or an object, does not
    have.
    """
    reason = ABSENT.get(name)
    text = f"{owner} has no attribute {name!r}"
    return AttributeError(f"{text}: {reason}" if reason else text, name=name, obj=of)
