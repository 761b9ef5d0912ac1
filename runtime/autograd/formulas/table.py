"""The table of formulas: operator -> arguments -> formula.

True only here: which operators have gradients, which are constant, and which results
are.  In-place forms use the formulas of the operator that they are named after.

Rules: an operator of floating-point results is in exactly one of `FORMULAS` and
`CONSTANT_OPERATORS`; one in neither is recorded, and refuses to be run backwards.
"""

from runtime.autograd.formulas import (
    binary,
    gradients,
    movement,
    networks,
    products,
    reductions,
    unary,
    views,
)
from runtime.autograd.plan import Formulas

FORMULAS: dict[str, Formulas] = {
    **unary.FORMULAS,
    **binary.FORMULAS,
    **gradients.FORMULAS,
    **reductions.FORMULAS,
    **products.FORMULAS,
    **networks.FORMULAS,
    **movement.FORMULAS,
    **views.FORMULAS,
}

CONSTANT_RESULTS: dict[str, frozenset[int]] = networks.CONSTANT

# Operators whose results have no gradient, whatever their dtype.  What these do to a
# tensor in place makes it constant.
CONSTANT_OPERATORS = frozenset(
    {
        *("eq", "ne", "lt", "le", "gt", "ge"),
        *("logical_not", "logical_and", "logical_or", "logical_xor"),
        *("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("isnan", "isinf", "isfinite", "any", "all", "argmax", "argmin", "argsort"),
        *("nonzero", "equal", "_local_scalar", "detach"),
        *("empty_like", "zeros_like", "ones_like", "full_like"),
        *("rand_like", "randn_like"),
        *("new_empty", "new_zeros", "new_ones", "new_full"),
    }
)
