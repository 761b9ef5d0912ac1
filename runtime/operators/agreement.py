"""Agreement: that operands have the dtypes and the dimensions an operator asks for.

True only here: the checks that operators of matrices, networks and indices share.
All raise before anything is made, and name the operator as it was called.
"""

from runtime.errors.operands import DTypeRefused
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.plan import INT64, dtypes, require_dtype
from runtime.schema.codes import DType
from runtime.tensors.elements import compute_dtype
from runtime.tensors.tensor import Tensor

Named = tuple[str, Tensor | None]

# What an index tensor may consist of; kernels get int64.
INDICES = dtypes("int64", "int32", "int16", "int8", "uint8")


def one_dtype(call: str, accepted: frozenset[DType], fits: str, *named: Named) -> DType:
    """The one dtype of all the tensors.

    Raises:
        DTypeRefused: the first has one that is not accepted, or another differs.
    """
    (name, first), *others = named
    assert first is not None, "only what comes later may be left out"
    require_dtype(call, name, first.dtype, accepted, fits)
    for argument, tensor in others:
        if tensor is not None and tensor.dtype is not first.dtype:
            raise DTypeRefused(
                operator=call,
                argument=argument,
                dtype=str(tensor.dtype),
                fits=f"{first.dtype}, the dtype of {name}",
            )
    return first.dtype


_PLACES = frozenset({INT64, DType.named("int32")})


def index_dtype(call: str, argument: str, index: Tensor) -> None:
    """Make sure that a tensor holds int64, as indices do.  Raises `DTypeRefused`."""
    require_dtype(call, argument, index.dtype, frozenset({INT64}), "int64")


def place_dtype(call: str, argument: str, index: Tensor) -> None:
    """Make sure of int64 or int32, as indices along a dimension are.

    Raises `DTypeRefused`.
    """
    require_dtype(call, argument, index.dtype, _PLACES, "int32, int64")


def computing(dtype: DType) -> DType | None:
    """The dtype to convert to before computing; None where the dtype does itself."""
    wider = compute_dtype(dtype)
    return None if wider is dtype else wider


def misfit(call: str, reason: str, fits: str, *named: Named) -> ShapesDoNotFit:
    """The error that says why the shapes of these tensors do not go together."""
    shapes = tuple((name, each.shape) for name, each in named if each is not None)
    return ShapesDoNotFit(operator=call, shapes=shapes, reason=reason, fits=fits)


def require_ndim(call: str, named: Named, *counts: int) -> None:
    """Make sure of the number of dimensions.  Raises `ShapesDoNotFit`."""
    tensor = named[1]
    if tensor is not None and len(tensor.shape) not in counts:
        wanted = " or ".join(map(str, counts))
        raise misfit(
            call,
            f"{named[0]} has {len(tensor.shape)} dimensions",
            f"{wanted} dimensions",
            named,
        )


def require_shape(call: str, named: Named, shape: tuple[int, ...]) -> None:
    """Make sure of the shape of a tensor, if it is given.  Raises `ShapesDoNotFit`."""
    tensor = named[1]
    if tensor is not None and tensor.shape != shape:
        raise misfit(
            call, f"{named[0]} has another shape than asked", f"shape {shape}", named
        )
