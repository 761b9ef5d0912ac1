"""The table of formulas: operator -> arguments -> formula.

In-place forms use the formulas of the operator that they are named after.

Rules: an operator of floating-point results is in exactly one of `FORMULAS` and
`CONSTANT_OPERATORS`; one in neither is recorded, and refuses to be run backwards.
"""

from runtime.autograd.formulas.elementwise import BINARY, OF_GRADIENTS, UNARY
from runtime.autograd.formulas.movement import MOVEMENT, VIEWS
from runtime.autograd.formulas.reductions import CONSTANT_RESULTS as CONSTANT_RESULTS
from runtime.autograd.formulas.reductions import NETWORKS, PRODUCTS, REDUCTIONS
from runtime.autograd.plan import Formulas

FORMULAS: dict[str, Formulas] = {
    **UNARY,
    **BINARY,
    **OF_GRADIENTS,
    **REDUCTIONS,
    **PRODUCTS,
    **NETWORKS,
    **MOVEMENT,
    **VIEWS,
}

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
