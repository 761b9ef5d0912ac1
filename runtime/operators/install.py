"""Installing the operators on a dispatcher, through public libraries.

`FAMILIES` lists the declarations of all modules: a new module is named there.  There is
one DEF library of namespace `core`, and one IMPL library for each key that has kernels;
each registration is an ordinary one, so that the harness explores these operators as it
does any user's.

Rules: descriptions hold no line numbers; the default dispatcher is installed on once,
when this module is imported, and keeps its libraries here.
"""

from collections.abc import Iterator

from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.operators import (
    binary,
    convolution,
    copying,
    creation,
    gather_scatter,
    indexing,
    losses,
    matmul,
    nn_layers,
    pointwise,
    random,
    reductions,
    reshaping,
    sort,
    tensor_shape,
    unary,
    views,
)
from everyorder.runtime.operators.declare.handles import NAMESPACE
from everyorder.runtime.operators.declare.structured import (
    OperatorDefinition,
    Structured,
    Unstructured,
)
from everyorder.runtime.schema.schema import DEFINED_TENSORS, INTEGERS_ONLY

# One row an area: elementwise, making, layout, places, linear algebra and layers.
FAMILIES: tuple[tuple[Structured | Unstructured, ...], ...] = (
    *(unary.OPERATORS, binary.OPERATORS, binary.GRADIENTS, pointwise.OPERATORS),
    *(reductions.OPERATORS, sort.OPERATORS),
    *(creation.OPERATORS, random.OPERATORS, copying.OPERATORS),
    *(views.OPERATORS, reshaping.OPERATORS, tensor_shape.OPERATORS),
    *(gather_scatter.OPERATORS, indexing.OPERATORS),
    *(matmul.OPERATORS, convolution.OPERATORS, nn_layers.OPERATORS),
    losses.OPERATORS,
)


def definitions() -> Iterator[OperatorDefinition]:
    """Every operator of every family, in the order of the families."""
    for family in FAMILIES:
        for declaration in family:
            yield from declaration.definitions()


# Of every operator: None is no tensor, and a bool no integer.
TAGS = (DEFINED_TENSORS, INTEGERS_ONLY)

# What dumps show as the place of registration.
ORIGIN = "core operators"

_LOCK = waited_for()
_KEPT: dict[str, tuple[Library, ...]] = {}


def install(dispatcher: Dispatcher | None = None) -> tuple[Library, ...]:
    """Register every operator; the libraries own the registrations.

    On the default dispatcher this happens once; asked again, the same libraries are
    returned.  Raises `Conflict` where `core` is taken.
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
    for operator in definitions():
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
