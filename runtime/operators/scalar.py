"""Scalars: which Python numbers elements of a dtype can take.

True only here: the check of a number that is written to elements as it is, by `fill_`
and the like: promotion takes no part.  A fraction is cut off for integers; what cannot
be converted at all is refused.
"""

from math import isfinite

from runtime.errors.operands import WrongOption
from runtime.operators.plan import BOOL, FLOAT32, INT64, INTEGERS
from runtime.schema.codes import DType
from runtime.tensors.elements import info


def check_fill(
    call: str, value: bool | int | float | complex, dtype: DType, name: str = "value"
) -> None:
    """Make sure that elements of `dtype` can take `value`.

    Raises:
        WrongOption: complex for reals, infinite or out of range for integers.
    """
    if dtype is BOOL and not isinstance(value, complex):
        return
    if isinstance(value, complex) and not dtype.is_complex:
        fits = f"a real number, as the elements are {dtype}"
    elif dtype in INTEGERS and not isinstance(value, complex):
        facts = info(dtype)
        if isfinite(value) and facts.smallest <= int(value) <= facts.largest:
            return
        fits = f"{facts.smallest} to {facts.largest}, as the elements are {dtype}"
    else:
        return
    raise WrongOption(operator=call, argument=name, found=repr(value), fits=fits)


def default_dtype(value: bool | int | float | complex) -> DType:
    """The dtype of a tensor that is made of a number."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    return COMPLEX64 if isinstance(value, complex) else FLOAT32


COMPLEX64 = DType.named("complex64")
