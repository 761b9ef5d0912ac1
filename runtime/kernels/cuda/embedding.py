"""embedding_backward on CUDA: each row of the gradient goes to the row looked up.

True only here: rows of `padding_idx` get the target -1, which is left out.  Rows that
were looked up more than once are added in the order of the indices.
"""

from collections.abc import Callable

from runtime.kernels.cuda.adding import add_targets
from runtime.kernels.cuda.binary import KERNELS as BINARY
from runtime.kernels.cuda.copy import fill
from runtime.kernels.cuda.gather import checked
from runtime.kernels.cuda.operand import flat
from runtime.kernels.cuda.ternary import KERNELS as TERNARY
from runtime.schema.codes import DType
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor


def embedding_backward(
    dweight: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    """Write the gradient of the table: (rows, width) from (.., width) and (..).

    16-bit floats are summed in float32.  A negative `padding_idx` leaves nothing out.
    Raises `IndexOutOfRange`, before anything is written.
    """
    targets = checked(indices, dweight.shape, 0, "core::embedding_backward")
    if padding_idx >= 0:
        left_out = empty_tensor(indices.shape, DType.named("bool"), indices.device)
        BINARY["eq"](left_out, targets, padding_idx)
        kept = empty_tensor(indices.shape, targets.dtype, indices.device)
        TERNARY["where"](kept, left_out, -1, targets)
        targets = kept
    fill(dweight, 0)
    add_targets(dweight, flat(targets), grad, indices.numel(), inner=dweight.shape[1])


KERNELS: dict[str, Callable[..., None]] = {"embedding_backward": embedding_backward}
