"""What a type checker is told of the methods that are installed later.

True only here: where the declarations come in.  At run time the class says nothing but
that NumPy's ufuncs leave tensors alone; the methods are put on `Tensor` by
`runtime.tensors.methods.install`, and `runtime.operators.stub` writes down what they
take and give.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.tensors.declared import Declared
else:
    Declared = object


class Surface(Declared):
    """The base of `Tensor`, with nothing in it but declarations."""

    __slots__ = ()

    # NumPy leaves `array + tensor` to the tensor: its ufuncs take no tensors.
    __array_ufunc__ = None
