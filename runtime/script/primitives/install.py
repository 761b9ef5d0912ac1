"""Installing the primitives on a dispatcher, through public libraries.

True only here: namespace `script` and what is registered there.

Rules:
- every row is defined by its schema, so that names resolve and schemas are told;
- a row's function is the kernel of all backends; a call through the dispatcher converts
  its arguments, but a list or a dictionary that is written to is the caller's own;
- what may not raise is tagged so;
- the default dispatcher is installed on once, when this module is imported, and the
  handles are kept here.
"""

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.kernel import direct
from runtime.dispatch.library import Library
from runtime.locks import waited_for
from runtime.schema.tags import TOTAL
from runtime.script.primitives.row import NAMESPACE
from runtime.script.primitives.table import ROWS

# What dumps show as the place of registration.
ORIGIN = "script primitives"

_LOCK = waited_for()
_KEPT: dict[str, Library] = {}


def install(dispatcher: Dispatcher | None = None) -> Library:
    """Register every primitive; the library owns the registrations.

    On the default dispatcher this happens once; asked again, the same library is
    returned.  Raises `NamespaceTaken` where `script` is taken.
    """
    if dispatcher is not None and dispatcher is not default_dispatcher():
        return _installed(dispatcher)
    with _LOCK:
        if NAMESPACE not in _KEPT:
            _KEPT[NAMESPACE] = _installed(default_dispatcher())
        return _KEPT[NAMESPACE]


def _installed(dispatcher: Dispatcher) -> Library:
    library = Library(NAMESPACE, "DEF", dispatcher=dispatcher, origin=ORIGIN)
    for row in ROWS:
        name = f"script_{str(row.schema.name).partition('::')[2]}".replace(".", "_")
        tags = row.tags if row.raises else (*row.tags, TOTAL)
        library.define(row.schema, kernel=direct(row.function, name), tags=tags)
    return library


install()
