"""Installation of the operators on a dispatcher, through public libraries.

`FAMILIES` lists the declarations of all modules, including new ones.  There is one DEF
library of namespace `core`, and one IMPL library for each key that has kernels; each
registration is an ordinary one, so that the harness explores these operators like those
of users.

Rules: descriptions do not contain line numbers; this module installs on the default
dispatcher once, when it is imported, and stores its libraries.
"""

from collections.abc import Callable, Iterator
from typing import Any

from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.kernel import Kernel, linked
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.operators import (
    binary,
    cat_and_flip,
    convolution,
    copying,
    creation,
    decompositions,
    gather_scatter,
    index_writes,
    indexing,
    linalg,
    losses,
    matmul,
    nn_layers,
    overload_names,  # noqa: F401  # it registers the names
    padding,
    pointwise,
    random,
    reductions,
    reshaping,
    sort,
    unary,
    views,
)
from everyorder.runtime.operators.declare.handles import NAMESPACE
from everyorder.runtime.operators.declare.structured import (
    IMPLICIT,
    OperatorDefinition,
    Structured,
    Unstructured,
)
from everyorder.runtime.operators.decompositions import DECOMPOSITIONS, decomposing
from everyorder.runtime.schema.schema import DEFINED_TENSORS, INTEGERS_ONLY

# One row per area: elementwise, creation, layout, indexing, linear algebra and layers.
FAMILIES: tuple[tuple[Structured | Unstructured, ...], ...] = (
    *(unary.OPERATORS, binary.OPERATORS, binary.GRADIENTS, pointwise.OPERATORS),
    *(reductions.OPERATORS, sort.OPERATORS),
    *(creation.OPERATORS, random.OPERATORS, copying.OPERATORS),
    *(views.OPERATORS, reshaping.OPERATORS, cat_and_flip.OPERATORS, padding.OPERATORS),
    *(gather_scatter.OPERATORS, indexing.OPERATORS, index_writes.OPERATORS),
    *(matmul.OPERATORS, linalg.OPERATORS, convolution.OPERATORS, nn_layers.OPERATORS),
    *(losses.OPERATORS, decompositions.OPERATORS),
)


def definitions() -> Iterator[OperatorDefinition]:
    """Yield every operator of every family, in the order of the families."""
    for family in FAMILIES:
        for declaration in family:
            yield from declaration.definitions()


# Of every operator: None is not a tensor, and a bool not an integer.
TAGS = (DEFINED_TENSORS, INTEGERS_ONLY)

# The place of registration in dumps.
ORIGIN = "core operators"

_LOCK = waited_for()
_LIBRARIES: dict[str, tuple[Library, ...]] = {}


def install(dispatcher: Dispatcher | None = None) -> tuple[Library, ...]:
    """Register every operator; the libraries own the registrations.

    On the default dispatcher this happens once; later calls return the same libraries.

    Raises:
        Conflict: namespace `core` is defined already.
    """
    if dispatcher is not None and dispatcher is not default_dispatcher():
        return _installed(dispatcher)
    with _LOCK:
        if NAMESPACE not in _LIBRARIES:
            _LIBRARIES[NAMESPACE] = _installed(default_dispatcher())
        return _LIBRARIES[NAMESPACE]


def _installed(dispatcher: Dispatcher) -> tuple[Library, ...]:
    libraries = {
        "": Library(NAMESPACE, "DEF", dispatcher=dispatcher, origin=ORIGIN),
    }
    for operator in definitions():
        libraries[""].define(operator.schema, tags=(*operator.tags, *TAGS))
        name = operator.schema.partition("(")[0]
        for key, kernel in operator.kernels:
            if key == IMPLICIT and name in DECOMPOSITIONS:
                kernel = _decomposed(kernel, DECOMPOSITIONS[name])
            if key not in libraries:
                libraries[key] = Library(
                    NAMESPACE, "IMPL", key, dispatcher=dispatcher, origin=ORIGIN
                )
            libraries[key].impl(name, kernel, debug=kernel.facts.name)
    return tuple(libraries.values())


def _decomposed(kernel: Kernel, parts: Callable[..., Any]) -> Kernel:
    """Return the kernel of a composite that has another form for handlers."""
    function = kernel.function
    assert function is not None, "it does not fall through"
    return linked(decomposing(lambda *_: function, parts), kernel.facts.name)


install()
