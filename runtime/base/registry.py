"""The one class for extension points: rows that are registered, read, and closed.

    Registry          rows by key; `rows` is what readers see
    RegistryHandle    ends a registration: `close()`, or the end of a `with` block
    keys_of           the keys of rows, without an order
    sequence          an order of rows that is written down once, by their keys
    Closeable         the base of what owns something until it is closed

Rules:
- `rows` is never changed, only replaced, by one assignment.  A reader takes no lock; it
  reads the attribute at each use and does not keep the mapping.
- What readers see depends on which rows are registered, never on when.  Rows with an
  `order` are iterated in it.  Without one, iterating raises `AssertionError`.
- A key has one row.  A second registration raises `AlreadyRegistered`, unless the
  registry is `shared` and the values are equal; the row then stays until both are
  closed.
- `register_all` registers all rows or none.
- A row of an import that failed later may be replaced, so that importing again works.
  In a registry for users' rows (`permanent`), whose modules may leave `sys.modules`
  while their rows are in use, only the same module may replace it: the same name and
  file, run again.
- The order of rows and `describe` are functions of the row alone: they run without the
  lock, possibly several times.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType, ModuleType, TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar, cast
from weakref import ref

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.registration import AlreadyRegistered

K = TypeVar("K")
V = TypeVar("V")

# Of all registries: it is held for one comparison and one store.  A forked child gets
# it free.
_LOCK = reentered()


@dataclass(frozen=True, slots=True, eq=False)
class _Registered(Generic[V]):
    """One registration: the value, `file:line` of the call, the importing module.

    `name` and `file` are those of the module whose import runs the call.
    """

    value: V
    site: str
    name: str
    file: str
    module: "ref[ModuleType] | None"

    def is_stale(self) -> bool:
        """Return True if the import that registered has failed since then."""
        imported = sys.modules.get(self.name)
        return self.module is not None and self.module() is not imported

    def has_module_of(self, other: "_Registered[V]") -> bool:
        """Return True if the modules have one name and one file."""
        return (self.name, self.file) == (other.name, other.file)


class _Rows(dict[K, V]):
    """The published rows, with the live registrations of each, oldest first."""

    __slots__ = ("__weakref__", "registered")
    registered: Mapping[K, tuple[_Registered[V], ...]]


class _UnorderedRows(_Rows[K, V]):
    """Rows to look up only: an order of iteration would be that of registration."""

    __slots__ = ()

    def _refuse(self) -> NoReturn:
        raise AssertionError("these rows have no order: pass `order=` to the registry")

    __iter__ = __reversed__ = keys = values = items = _refuse


class Closeable:
    """The base of everything that owns something until it is closed."""

    __slots__ = ()

    def close(self) -> None:
        """End it; the second time nothing happens."""
        raise NotImplementedError(f"{type(self).__name__} does not implement close()")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class RegistryHandle(Closeable):
    """The registration of one or more rows, until it is closed."""

    __slots__ = ("_close",)

    def __init__(self, close: Callable[[], object]) -> None:
        self._close: Callable[[], object] | None = close

    def close(self) -> None:
        """Remove the rows; closing again has no effect."""
        if (close := self._close) is not None:
            close()
            # Last: an interrupt before this leaves a handle that can be closed again.
            self._close = None


class Registry(Generic[K, V]):
    """Rows by key, which several modules add to.

    A reader uses `rows`, a read-only mapping: `CLASSES.rows.get(key)`.

    Args:
        name: what the rows are, in the plural, for errors: "steps of programs".
        rows: rows that are always there.
        order: the sort key of a row by its key (`str`, `sequence(...)`), different for
            each key.  None if readers only look rows up.
        shared: True if equal values may be registered several times under a key.
        permanent: True if a row of an import that failed, or of a module that was
            removed from `sys.modules`, ends only by its handle or if the module is
            imported again and registers the key again.
        describe: names a row in errors, by key and value, where `repr(key)` does not.
    """

    __slots__ = ("_describe", "_order", "_permanent", "_shared", "name", "rows")

    def __init__(
        self,
        name: str,
        rows: Mapping[K, V] | None = None,
        *,
        order: Callable[[K], Any] | None = None,
        shared: bool = False,
        permanent: bool = False,
        describe: Callable[[K, V], str] = lambda key, _: repr(key),
    ) -> None:
        self.name = name
        self._order, self._describe = order, describe
        self._shared, self._permanent = shared, permanent
        self.rows: Mapping[K, V] = self._published({}, {}, ())
        if rows:
            self.register_all(rows, stacklevel=2)

    def register(self, key: K, value: V, *, stacklevel: int = 1) -> RegistryHandle:
        """Register a row.

        `stacklevel` is 1 if the caller is the registrant that errors name, 2 if its
        caller is, as in `warnings.warn`.

        Raises:
            AlreadyRegistered: the key has a row.
            ValueError: the order has no place for the key, or not one of its own.
        """
        return self.register_all({key: value}, stacklevel=stacklevel + 1)

    def register_all(
        self, rows: Mapping[K, V], *, stacklevel: int = 1
    ) -> RegistryHandle:
        """Register several rows, all or none, with one handle; see `register`."""
        origin = _origin(sys._getframe(stacklevel))
        added = {key: _Registered(value, *origin) for key, value in rows.items()}

        def add(key: K, live: tuple[_Registered[V], ...]) -> Any:
            row = added[key]
            live = tuple(
                each
                for each in live
                if not each.is_stale()
                or (self._permanent and not each.has_module_of(row))
            )
            if live and not (self._shared and live[0].value == row.value):
                raise AlreadyRegistered(
                    registry=self.name,
                    key=self._describe(key, row.value),
                    first=live[0].site,
                    again=row.site,
                )
            return (*live, row)

        def remove(key: K, live: tuple[_Registered[V], ...]) -> Any:
            return tuple(each for each in live if each is not added[key])

        self._change([*added], add)
        return RegistryHandle(lambda: self._change([*added], remove))

    def site(self, key: K) -> str:
        """Return `file:line` of the registration of a row; raises `KeyError`."""
        return cast(_Rows[K, V], self.rows).registered[key][0].site

    def _change(self, keys: list[K], change: Callable[[K, Any], Any]) -> None:
        while True:
            before = cast(_Rows[K, V], self.rows)
            registered = dict(before.registered)
            for key in keys:
                live = change(key, registered.pop(key, ()))
                if live:
                    registered[key] = live
            after = self._published(before, registered, keys)
            # Built first, compared, then stored: a finalizer or a signal handler that
            # changes the registry meanwhile makes this try again.  Python runs either
            # at calls only, and there is none between the comparison and the store.
            with _LOCK:
                if self.rows is before:
                    self.rows = after
                    return

    def _published(
        self,
        before: Mapping[K, V],
        registered: Mapping[K, tuple[_Registered[V], ...]],
        changed: Iterable[K],
    ) -> _Rows[K, V]:
        rows: _Rows[K, V]
        if self._order is None:
            # Copied by C: a registry may have thousands of rows of users.
            rows = _UnorderedRows(dict.items(cast(dict[K, V], before)))
            for key in changed:
                if key in registered:
                    rows[key] = registered[key][0].value
                else:
                    rows.pop(key, None)
        else:
            keys = sorted(registered, key=self._order)
            for key, other in pairwise(keys):
                if self._order(key) == self._order(other):
                    raise ValueError(
                        f"{self.name}: {key!r} and {other!r} have one place"
                    )
            rows = _Rows((key, registered[key][0].value) for key in keys)
        rows.registered = registered
        return rows


def keys_of(rows: Mapping[K, V]) -> frozenset[K]:
    """Return the keys of the rows of a registry, also of one without an order."""
    return frozenset(cast(_Rows[K, V], rows).registered)


def sequence(*keys: K) -> Callable[[K], int]:
    """Return the order in which rows of these keys stand; any other key is refused."""
    places = {key: place for place, key in enumerate(keys)}

    def place(key: K) -> int:
        if key not in places:
            expected = ", ".join(map(repr, keys))
            raise ValueError(f"invalid key {key!r}: expected one of {expected}")
        return places[key]

    return place


def _origin(caller: FrameType) -> tuple[str, str, str, "ref[ModuleType] | None"]:
    """Return `file:line` of a call, and the module whose import runs it, if any.

    The module has a name, a file and a reference.
    """
    site = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    frame: FrameType | None = caller
    # Not the module of the caller: a package may call an `install` function of a module
    # whose own import has ended.
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    name = "" if frame is None else frame.f_globals.get("__name__", "")
    module = sys.modules.get(name)
    # The main program is not imported a second time.
    if frame is None or module is None or name == "__main__":
        return site, "", "", None
    if vars(module) is not frame.f_globals:
        return site, "", "", None
    # Not `__file__`, which the module may change.
    return site, name, frame.f_code.co_filename, ref(module)
