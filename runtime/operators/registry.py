"""Which modules declare operators.

True only here: the list of families.  A family is a module of this folder with a tuple
`OPERATORS` of `Structured` and `Written`; a new one is named here and installed.
"""

from collections.abc import Iterator

from runtime.operators import (
    arranging,
    binary,
    cat,
    conv,
    copying,
    dropout,
    embedding,
    factories,
    finding,
    gradients,
    indexing,
    layer_norm,
    layers,
    like,
    linear,
    losses,
    matmul,
    movement,
    ordering,
    pool,
    products,
    random,
    reductions,
    resizing,
    softmax,
    ternary,
    unary,
    view_gradients,
    views,
)
from runtime.operators.structured import Defined, Structured, Written

# One row an area: elementwise, making, layout, linear algebra and layers.
FAMILIES: tuple[tuple[Structured | Written, ...], ...] = (
    *(unary.OPERATORS, binary.OPERATORS, ternary.OPERATORS, gradients.OPERATORS),
    *(reductions.OPERATORS, ordering.OPERATORS, softmax.OPERATORS),
    *(factories.OPERATORS, like.OPERATORS, random.OPERATORS, copying.OPERATORS),
    *(views.OPERATORS, view_gradients.OPERATORS, resizing.OPERATORS, cat.OPERATORS),
    *(movement.OPERATORS, indexing.OPERATORS, embedding.OPERATORS),
    *(matmul.OPERATORS, linear.OPERATORS, conv.OPERATORS, pool.OPERATORS),
    *(layer_norm.OPERATORS, losses.OPERATORS, dropout.OPERATORS),
    *(arranging.OPERATORS, products.OPERATORS, layers.OPERATORS, finding.OPERATORS),
)


def declared() -> Iterator[Defined]:
    """Every operator of every family, in the order of the families."""
    for family in FAMILIES:
        for declaration in family:
            yield from declaration.defined()
