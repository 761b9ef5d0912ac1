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

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, overload
from weakref import ref

from everyorder.runtime.base.registry import (
    Closeable,
    Registry,
    keys_of,
)
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.future import callable_name, describe_type
from everyorder.runtime.errors.registration import AlreadyRegistered
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

    __slots__ = ("_close", "function", "name")

    def __init__(
        self, name: str, function: Any, close: Callable[[], object] | None = None
    ) -> None:
        self.name = name
        self.function = function
        self._close = close

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on this worker."""
        return self.function(*args, **kwargs)

    def close(self) -> None:
        """Undo the registration; idempotent."""
        if self._close is not None:
            self._close()
            self._close = None

    def __repr__(self) -> str:
        return f"Registered({self.name!r})"


class _NamedFunction:
    """A registered function, compared by identity: it may override equality."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NamedFunction) and other.function is self.function

    __hash__ = None  # type: ignore[assignment]  # rows are compared only


class FunctionRegistry:
    """Registry of functions by the names that other workers use."""

    def __init__(self) -> None:
        self._registry: Registry[str, _NamedFunction] = Registry(
            "functions", shared=True, permanent=True
        )
        # A reference to rows, and the first name of each function in them, by its id.
        # The index holds no function: the owner may close the handle at any time.
        self._index: tuple[Callable[[], object], Mapping[int, str]] = (lambda: None, {})

    def add(
        self, function: F, name: str | None = None, *, stacklevel: int = 1
    ) -> Registered:
        """Register a function under a name, by default `module.qualname`.

        `stacklevel` is 1 if the caller is the registrant that errors name, 2 if its
        caller is, as in `warnings.warn`.

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
        try:
            handle = self._registry.register(
                name, _NamedFunction(function), stacklevel=stacklevel + 1
            )
        except AlreadyRegistered as error:
            raise RpcMisuse(
                call="register",
                found=(
                    f"the name `{name}`, which is registered for another function at "
                    f"{error.first}"
                ),
                wanted="another name, or the function that has this name",
            ) from None
        return Registered(name, function, handle.close)

    def find(self, name: str) -> Callable[..., Any]:
        """Return the function of a name.

        Raises:
            UnknownCallable: the name is not registered.
        """
        rows = self._registry.rows
        row = rows.get(name)
        if row is None:
            near = nearest(name, sorted(keys_of(rows)))
            raise UnknownCallable(kind="registered function", name=name, near=near)
        function: Callable[..., Any] = row.function
        return function

    def has(self, name: str) -> bool:
        """Return True if a name is registered."""
        return name in self._registry.rows

    def name_of(self, function: Any) -> str | None:
        """Return the first name of a function in sorted order; None without a name."""
        rows, (indexed_rows, names) = self._registry.rows, self._index
        if indexed_rows() is not rows:
            first: dict[int, str] = {}
            for name in sorted(keys_of(rows)):
                first.setdefault(id(rows[name].function), name)
            # One assignment: another thread sees rows and names of one time.
            self._index = ref(rows), first
            names = first
        return names.get(id(function))

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        return tuple(sorted(keys_of(self._registry.rows)))


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
        REGISTRY.add(function, name, stacklevel=2)
        return function

    if callable(name):
        REGISTRY.add(name, stacklevel=2)
        return name
    return add


def registered(name: str) -> Registered:
    """Return a stand-in for a function that another worker registered under a name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return REGISTRY.find(name)(*args, **kwargs)

    return Registered(name, call)
