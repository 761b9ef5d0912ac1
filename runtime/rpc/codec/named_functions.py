"""Functions for other workers: registered names, and functions that return futures.

`register` assigns a name to a function, by which other workers call it.
`async_execution` marks a function that returns a future: the answer of a remote call is
sent when that future completes, from the thread that completes it, and no thread waits
for it.  The future itself is never sent.

Rules of marked functions:
- under `staticmethod` and `classmethod` the mark is the inner decorator, over
  `jit.script` the outer one;
- called locally, a marked function behaves as the function itself: the caller receives
  its future;
- an exception before there is a future, and the error of the future, are the error of
  the remote call; a result that is not a future is refused at the callee.

Rules of names:
- a name refers to one function; it may be registered several times, and is free when
  all of its handles are closed;
- the set of names depends on the open handles only, not on their order.
"""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar, overload

from everyorder.runtime.base.locks import renewed
from everyorder.runtime.base.registry import Closeable
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.future import callable_name, describe_type
from everyorder.runtime.errors.rpc import RpcMisuse, UnknownCallable
from everyorder.runtime.futures import Future

# The attribute of a function marked by `async_execution`.
MARK = "_wrapped_async_rpc_function"

P = ParamSpec("P")
T = TypeVar("T")


def async_execution(fn: Callable[P, Future[T]]) -> Callable[P, Future[T]]:
    """Mark a function that returns a future: remote callers receive its value.

    Raises:
        RpcMisuse: `fn` is not callable.
    """
    if not callable(fn):
        raise RpcMisuse(
            call="async_execution",
            found=describe_type(fn),
            wanted=(
                "a function that returns a future; under staticmethod and classmethod"
            ),
        )

    @wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return fn(*args, **kwargs)

    setattr(wrapper, MARK, fn)
    return wrapper


def is_async(function: Any) -> bool:
    """Return True if a function, or the function of a bound method, is marked."""
    return getattr(function, MARK, None) is not None


F = TypeVar("F", bound=Callable[..., Any])


class Registered(Closeable):
    """The handle of a registration, closed by `close`.

    The handle is callable, on this worker or by `rpc_sync(to, handle, args=...)`.
    """

    __slots__ = ("_registry", "function", "name")

    def __init__(
        self, registry: "FunctionRegistry | None", name: str, function: Any
    ) -> None:
        self._registry = registry
        self.name = name
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on this worker."""
        return self.function(*args, **kwargs)

    def close(self) -> None:
        """Undo the registration; idempotent."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.remove(self)

    def __repr__(self) -> str:
        return f"Registered({self.name!r})"


class FunctionRegistry:
    """Registry of functions by the names that other workers use."""

    def __init__(self) -> None:
        self._lock: Lock = renewed()
        self._handles: dict[str, list[Registered]] = {}
        # By identity: a function may override equality.
        self._names: dict[int, list[str]] = {}

    def add(self, function: F, name: str | None = None) -> Registered:
        """Register a function under a name, by default `module.qualname`.

        Raises:
            RpcMisuse: the function is not callable, or the name belongs to another
                function.
        """
        if not callable(function):
            raise RpcMisuse(
                call="register", found=describe_type(function), wanted="a callable"
            )
        if name is None:
            name = f"{getattr(function, '__module__', '')}.{callable_name(function)}"
        if not isinstance(name, str) or not name:
            raise RpcMisuse(
                call="register",
                found=describe_type(name),
                wanted="a non-empty string",
            )
        registration = Registered(self, name, function)
        with self._lock:
            handles = self._handles.setdefault(name, [])
            occupied = bool(handles) and handles[0].function is not function
            if not occupied:
                handles.append(registration)
                self._names.setdefault(id(function), []).append(name)
        if occupied:
            raise RpcMisuse(
                call="register",
                found=f"the name `{name}`, which is registered for another function",
                wanted="another name; or close the handle of that function first",
            )
        return registration

    def remove(self, handle: Registered) -> None:
        """Undo a registration."""
        with self._lock:
            handles = self._handles[handle.name]
            handles.remove(handle)
            if not handles:
                del self._handles[handle.name]
            names = self._names[id(handle.function)]
            names.remove(handle.name)
            if not names:
                del self._names[id(handle.function)]

    def find(self, name: str) -> Callable[..., Any]:
        """Return the function of a name.

        Raises:
            UnknownCallable: the name is not registered.
        """
        with self._lock:
            handles = self._handles.get(name)
            names = [] if handles else [*self._handles]
        if not handles:
            near = nearest(name, names)
            raise UnknownCallable(kind="registered function", name=name, near=near)
        function: Callable[..., Any] = handles[0].function
        return function

    def has(self, name: str) -> bool:
        """Return True if a name is registered."""
        return name in self._handles

    def name_of(self, function: Any) -> str | None:
        """Return the first name of a function in sorted order; None without a name."""
        names = self._names.get(id(function))
        return min(names) if names else None

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        with self._lock:
            return tuple(sorted(self._handles))


REGISTRY = FunctionRegistry()


@overload
def register(name: F) -> F: ...


@overload
def register(name: str | None = None) -> Callable[[F], F]: ...


def register(name: Any = None) -> Any:
    """Register a function for other workers, as long as the process lives.

    `@register` and `@register()` use `module.qualname`, `@register("name")` that name;
    the function itself does not change.  `REGISTRY.add` returns a handle that can undo
    the registration.

    Raises:
        RpcMisuse: as `FunctionRegistry.add`.
    """

    def add(function: F) -> F:
        REGISTRY.add(function, name)
        return function

    if callable(name):
        REGISTRY.add(name)
        return name
    return add


def registered(name: str) -> Registered:
    """Return a stand-in for a function that another worker registered under a name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return REGISTRY.find(name)(*args, **kwargs)

    return Registered(None, name, call)
