"""torch's names of overloads, and the overloads of `core` that take their calls.

torch has an overload for a tensor and one for a number, one with `dim` and one without.
One operator of `core` often takes the calls of several.  So `ops.aten.sum.dim_IntList`
is the operator `core::sum`, and `ops.aten.add.Scalar_out` is `core::add.out`.

The tensors of a call have the same places.  Names and places of other arguments are
those of the operator here: `alpha` of `add.Scalar` is given by name, `exponent` of
`pow` is `other`, and `layout` does not exist.
"""

from collections.abc import Mapping

from everyorder.runtime.dispatch.handle import OVERLOAD_NAMES
from everyorder.runtime.operators.declare.handles import NAMESPACE

_COMPARED = "eq ne lt le gt ge"
_WRITTEN = "eq_ ne_ lt_ le_ gt_ ge_ add_ sub_ mul_ pow_ fmod_ remainder_"
_BITS = "bitwise_and bitwise_or bitwise_xor"

# An overload here -> torch's names for it -> the operators that have both.
_ROWS: Mapping[str, Mapping[str, str]] = {
    "": {
        "Tensor Scalar": f"{_COMPARED} {_WRITTEN} add sub mul fmod floor_divide_"
        " bitwise_and_ bitwise_or_ bitwise_xor_",
        "Tensor Scalar Scalar_Tensor": f"{_BITS} remainder",
        "Tensor Scalar Tensor_mode Scalar_mode": "div div_",
        "Tensor_Tensor Tensor_Scalar Scalar": "pow",
        "Tensor Scalar_Other Scalar_Self": "xlogy",
        "Tensor Scalar_Other": "xlogy_",
        "Scalar": "fill_ floor_divide masked_fill masked_fill_",
        "Scalar_Tensor": "bitwise_left_shift bitwise_right_shift isin",
        "self Scalar ScalarSelf ScalarOther": "where",
        "Tensor": "index searchsorted slice split",
        "Scalar ScalarOpt_dim ScalarOpt_dtype ScalarOpt_dim_dtype": "norm",
        "dim": "mean",
        "dim dims": "all any squeeze squeeze_",
        "dim_IntList": "sum count_nonzero",
        "dim_int": "prod",
        "correction dim": "std std_mean var var_mean",
        "int": "softmax log_softmax select transpose unbind unflatten",
        "int intlist": "movedim",
        "dtype_layout": "to",
        "low low_generator": "randint",
        "generator": "rand randn randperm",
        "indexing": "meshgrid",
        "m": "eye",
        "memory_format": "empty",
        "p": "bernoulli",
        "src": "scatter scatter_",
        "two": "scatter_reduce scatter_reduce_",
        "int_Scalar": "index_fill index_fill_",
        "stable": "argsort sort",
        "using_ints": "flatten",
    },
    "out": {
        "Tensor_out Scalar_out": f"{_COMPARED} fmod searchsorted",
        "Tensor_out Scalar_out Scalar_Tensor_out": f"{_BITS} remainder",
        "Scalar_out": "add sub mul floor_divide",
        "out_mode Scalar_out Scalar_mode_out": "div",
        "Tensor_Tensor_out Tensor_Scalar_out Scalar_out": "pow",
        "OutTensor OutScalar_Self OutScalar_Other": "xlogy",
        "Scalar_out dtype_out ScalarOpt_dtype_out": "norm",
        "self_out": "where",
        "Tensor_out": "index",
        "m_out": "eye",
        "generator_out": "rand randn randperm",
        "Tensor_out Tensor_Scalar_out Scalar_Tensor_out": "bitwise_left_shift"
        " bitwise_right_shift",
        "Tensor_Tensor_out Tensor_Scalar_out Scalar_Tensor_out": "isin",
        "low_out low_generator_out": "randint",
        "dtype_out": "mean",
        "all_out dims_out": "all any",
        "IntList_out": "sum",
        "dim_IntList_out": "count_nonzero",
        "stable_out": "argsort",
        "int_out": "prod softmax log_softmax",
        "correction_out": "std var",
        "float_out": "bernoulli",
        "src_out": "scatter",
        "two_out": "scatter_reduce",
        "int_Scalar_out": "index_fill",
        "unary_out": "max min",
        "values": "topk",
        "values values_stable": "sort",
        "output": "nll_loss_forward",
        "eigvals": "linalg_eigh",
        "U": "linalg_svd",
    },
    "dim_out": {"dim_max": "max", "dim_min": "min", "dim_values": "median"},
    "start": {"start_step": "arange"},
}


def _names() -> dict[str, dict[str, str]]:
    """Return, for each operator, torch's names with the overloads here."""
    found: dict[str, dict[str, str]] = {}
    for overload, rows in _ROWS.items():
        for names, operators in rows.items():
            for operator in operators.split():
                own = found.setdefault(f"{NAMESPACE}::{operator}", {})
                own.update(dict.fromkeys(names.split(), overload))
    return found


OVERLOAD_NAMES.register_all(_names())
