"""Installing the operators on a dispatcher, through public libraries.

True only here: which libraries there are: one DEF of namespace `core`, and one IMPL for
each key that has kernels.  Each registration is an ordinary one, so that the harness
explores these operators as it does any user's.

Rules: descriptions hold no line numbers; the default dispatcher is installed on once,
when this module is imported, and keeps its libraries here.
"""

from runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from runtime.dispatch.library import Library
from runtime.locks import waited_for
from runtime.operators.call import NAMESPACE
from runtime.operators.registry import declared
from runtime.schema.tags import DEFINED_TENSORS, INTEGERS_ONLY

# Of every operator: None is no tensor, and a bool no integer.
TAGS = (DEFINED_TENSORS, INTEGERS_ONLY)

# What dumps show as the place of registration.
ORIGIN = "core operators"

_LOCK = waited_for()
_KEPT: dict[str, tuple[Library, ...]] = {}


def install(dispatcher: Dispatcher | None = None) -> tuple[Library, ...]:
    """Register every operator; the libraries own the registrations.

    On the default dispatcher this happens once; asked again, the same libraries are
    returned.  Raises `NamespaceTaken` where `core` is taken.
    """
    if dispatcher is not None and dispatcher is not default_dispatcher():
        return _installed(dispatcher)
    with _LOCK:
        if NAMESPACE not in _KEPT:
            _KEPT[NAMESPACE] = _installed(default_dispatcher())
        return _KEPT[NAMESPACE]


def _installed(dispatcher: Dispatcher) -> tuple[Library, ...]:
    libraries = {
        "": Library(NAMESPACE, "DEF", dispatcher=dispatcher, origin=ORIGIN),
    }
    for operator in declared():
        libraries[""].define(operator.schema, tags=(*operator.tags, *TAGS))
        name = operator.schema.partition("(")[0]
        for key, kernel in operator.kernels:
            if key not in libraries:
                libraries[key] = Library(
                    NAMESPACE, "IMPL", key, dispatcher=dispatcher, origin=ORIGIN
                )
            libraries[key].impl(name, kernel, debug=kernel.facts.name)
    return tuple(libraries.values())


install()
