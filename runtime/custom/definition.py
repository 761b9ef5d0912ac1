"""Custom operators: what `custom_op` returns, and what can be added to it.

All additions are registrations of one FRAGMENT library, and go with it:

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
- what a second addition replaces is ended; a fake is ended after the new one is there;
- whatever can be refused is refused before anything ends or is registered;
- kernels know nothing of the definition: closed, or lost, it leaves nothing behind;
- one on the default dispatcher stays until it is closed or made anew, whether or not
  somebody keeps what `custom_op` returned, and is pickled by name; one on another
  dispatcher lives as long as its owner keeps it, as a library does;
- what users of torch.library look for and is not here says why (`ABSENT`).
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

# What the function of an operator takes and gives.
P = ParamSpec("P")

R = TypeVar("R")

# One device type, several, or None for all at once.
Devices = str | Iterable[str] | None

EVERYWHERE = DispatchKey.CompositeExplicitAutograd


def keys_of(devices: Devices) -> tuple[DispatchKey, ...]:
    """The keys at which a kernel for these devices stands.  Raises `UnknownDevice`."""
    if devices is None:
        return (EVERYWHERE,)
    names = (devices,) if isinstance(devices, str) else devices
    return tuple(dict.fromkeys(key_of_device(name) for name in names))


class CustomOpDef(Closeable, Generic[P, R]):
    """An operator made of a Python function; calling it calls the operator.

    Made by `custom_op`.  `handle` is its `OperatorHandle`, `schema` its schema.  Raises
    as a handle when it is called, and besides:

    Raises:
        KernelError: a result shares memory with an argument or another result.
        KernelError: a result should be a written argument, and is not.
        MissingFake: it was called with meta tensors, and has no fake kernel.
    """

    # What `inspect.signature` shows: the parameters that the schema has.
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
        # By key: the kernels for devices, switched on or off; and all registrations.
        self._kernels: dict[DispatchKey, Kernel] = {}
        self._off: set[DispatchKey] = set()
        self._registered: dict[str, Registration] = {}
        # By class, which need not be hashable, and which its rule keeps: the rules.
        self._rules: dict[int, Registration] = {}
        self._closed = False
        try:
            # Found by its name before it is live: whoever is interrupted, the next one
            # of that name ends it.
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
        """Register what follows from the schema: versions, views, no gradients."""
        versions = version_kernel(self.schema)
        if versions is not None:
            self._library.impl(self.name, versions, "ADInplaceOrView")
        if "out" in tags:
            refuse = linked(refusing_out(self.schema), "out_autograd")
            self._library.impl(self.name, refuse, "Autograd")

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the operator.

        Raises `OperatorGone` once it was closed, also if there is another one of its
        name.
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
        """Use `fn` on these devices (None: on all that have none); also a decorator.

        Raises:
            UnknownDevice: there is no such type of device.
            DefinitionRefused: `fn` cannot be called as the schema says.
            DefinitionRefused: no tensor, and no `device` argument, would choose it.
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

        It gets meta tensors, and returns what has the right shape, dtype and device.

        Raises:
            DefinitionRefused: `fn` cannot be called as the schema says.
            LibraryMisuse: the operator was closed.
        """
        self._check_open("register_fake")
        kernel = kernel_of(fn, self.schema)
        # A kernel at Meta overrides without a warning: there always is one.
        made = self._library.impl(self.name, kernel, "Meta")
        before = self._registered.get("fake")
        self._registered["fake"] = made
        if before is not None:
            before.close()
        return fn

    def register_autograd(
        self, backward: Function, /, *, setup_context: Function | None = None
    ) -> None:
        """Use `backward(ctx, *gradients)` where the gradient is wanted.

        `setup_context(ctx, inputs, output)`, with `keyword_only_inputs` before `output`
        if the operator has such, saves what `backward` needs.

        Raises:
            DefinitionRefused: the operator writes to an argument.
            LibraryMisuse: one of the functions cannot be called.
            LibraryMisuse: the operator was closed.
        """
        self._check_open("register_autograd")
        kernel = gradient_kernel(self.schema, backward, setup_context)
        self._replace("Autograd", kernel)

    def register_autocast(self, device_type: str, cast_inputs: DType | str, /) -> None:
        """In `autocast` on that device, cast floating-point tensors to `cast_inputs`.

        Raises:
            AutogradMisuse: the device or the dtype is not served.
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
        """Use `fn` where a handler of the class `cls` meets the operator.

        Called as a rule of `runtime.python_dispatch` is; replaces the operator's own
        rule for that class; also a decorator.

        Raises:
            LibraryMisuse: `cls` is no class, or `fn` no function.
            Conflict: somebody else has a rule for both.
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
        """Context: the kernel of a device is used, or is as if it were not there.

        Without it, a function for all devices serves, if there is one.  A kernel that
        is registered while it is off stays off until the end.

        Raises:
            LookupFailed: there is none for that device.
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
        """Whether the operator was closed, or made anew under its name."""
        return self._closed

    def close(self) -> None:
        """End the operator with everything added to it; the second time nothing.

        Raises as `Library.close`.
        """
        self.dispatcher.check_writable(f"close() of {self.name}")
        # What is live goes first: interrupted, this is closed another time.
        self._library.close()
        self._closed = True
        for held in (self._kernels, self._off, self._registered, self._rules):
            held.clear()
        forget(self)

    def _check_open(self, asked: str) -> None:
        if self._closed:
            raise LibraryMisuse(
                code="LibraryClosed", call=f"{asked}(...)", library=repr(self._library)
            )

    def _switch(self, key: DispatchKey, on: bool) -> None:
        if on and key in self._off:
            self._replace(key.name, self._kernels[key])
            self._off.discard(key)
        elif not on and key not in self._off:
            self._registered.pop(key.name).close()
            self._off.add(key)

    def _replace(self, key: str, kernel: Kernel, once: bool = False) -> None:
        """Register a kernel in place of the one that this definition has at the key."""
        before = self._registered.get(key)
        if before is not None:
            if once:
                return
            before.close()
        self._registered[key] = self._library.impl(self.name, kernel, key)

    def schemas(self) -> tuple[Schema, ...]:
        """The one schema, as every operator has a tuple of those that are live."""
        return (self.schema,)

    if not TYPE_CHECKING:
        # A checker says by itself what there is not.
        def __getattr__(self, name: str) -> Any:
            # It may be a name of torch.library's.
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
    """The live operator that was pickled by name.

    Raises `LookupFailed`, and `OperatorGone` if another kind of operator has it.
    """
    found = live(dispatcher, name)
    if found is None:
        dispatcher.find_schema_or_raise(name)
        raise OperatorGone(operator=name)
    return found


def _shown(key: DispatchKey) -> str:
    return "all devices" if key is EVERYWHERE else key.name


# By dispatcher and name; and those that nobody else keeps, of the default dispatcher.
_LIVE: WeakKeyDictionary[
    Dispatcher, WeakValueDictionary[str, "CustomOpDef[..., Any]"]
] = WeakKeyDictionary()

_KEPT: dict[str, "CustomOpDef[..., Any]"] = {}


def keep(made: "CustomOpDef[..., Any]") -> None:
    """Remember a definition by its name, in place of another one."""
    _LIVE.setdefault(made.dispatcher, WeakValueDictionary())[made.name] = made
    if made.dispatcher is default_dispatcher():
        _KEPT[made.name] = made


def live(dispatcher: Dispatcher, name: str) -> "CustomOpDef[..., Any] | None":
    """The live definition of that name, None if there is none."""
    named = _LIVE.get(dispatcher)
    return None if named is None else named.get(name)


def forget(made: "CustomOpDef[..., Any]") -> None:
    """Let go of a definition that is closed; another one of its name stays."""
    if live(made.dispatcher, made.name) is made:
        del _LIVE[made.dispatcher][made.name]
    if _KEPT.get(made.name) is made:
        del _KEPT[made.name]


# Name -> why it is not there, and what is.
ABSENT = {
    "impl_abstract": "it is called register_fake",
    "register_effect": "operators run in the order of their calls, and none is left "
    "out",
    "register_vmap": "nothing in this runtime makes batched tensors; a kernel of one's "
    "own for them is Library.impl(op, kernel, 'FuncTorchBatched')",
    "triton_op": "there is no Triton; @register_kernel('cuda') takes any function",
    "wrap_triton": "there is no Triton; @register_kernel('cuda') takes any function",
}


def missing(owner: str, name: str, of: object = None) -> AttributeError:
    """The error that `owner`, a module or an object in words, has no such name."""
    reason = ABSENT.get(name)
    text = f"{owner} has no attribute {name!r}"
    return AttributeError(f"{text}: {reason}" if reason else text, name=name, obj=of)
