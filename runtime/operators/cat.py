"""Joining: tensors laid end to end along a dimension, or side by side along a new one.

True only here: which shapes and dtypes join.  Dtypes promote; a tensor of shape (0,)
joins with anything and adds nothing, as it does in torch.
"""

from collections.abc import Sequence

from runtime.errors.operands import WrongOption
from runtime.errors.operator import ShapesDoNotFit
from runtime.operators.call import core
from runtime.operators.expanding import check_count
from runtime.operators.plan import KernelTable, Plan, one_dim, same_device
from runtime.operators.rows import as_dtype
from runtime.operators.structured import Structured, Written, composed
from runtime.operators.targets import hand_over
from runtime.schema.codes import DType
from runtime.tensors.data import result_type
from runtime.tensors.tensor import Tensor


def plan_cat(call: str, tensors: Sequence[Tensor], dim: int) -> Plan:
    """Sizes add up along `dim` and are equal elsewhere."""
    _require_some(call, tensors)
    device = same_device(call, *tensors)
    dtype = tensors[0].dtype
    if any(each.dtype is not dtype for each in tensors):
        dtype = result_type(*tensors)
    kept = [each for each in tensors if each.shape != (0,)] or [tensors[0]]
    first = kept[0].shape
    if not first:
        raise ShapesDoNotFit(
            operator=call,
            shapes=_shapes(kept),
            reason="a tensor without dimensions has no end to join at",
            fits="at least one dimension; stack(...) joins along a new one",
        )
    place = one_dim(call, dim, first)
    total = 0
    for each in kept:
        shape = each.shape
        if shape == first:
            total += shape[place]
            continue
        if len(shape) != len(first) or (
            shape[:place] != first[:place] or shape[place + 1 :] != first[place + 1 :]
        ):
            raise ShapesDoNotFit(
                operator=call,
                shapes=_shapes(tensors),
                reason=f"shapes {first} and {shape} differ outside of dimension "
                f"{place}",
                fits=f"tensors like the first in all but dimension {place}",
            )
        total += shape[place]
    shape = (*first[:place], total, *first[place + 1 :])
    check_count(call, (total,))
    if all(each.dtype is dtype for each in kept):
        return Plan(((shape, dtype),), device, (kept, place))
    return Plan(((shape, dtype),), device, (kept, place, dtype), kernel=_run)


def _run(
    table: KernelTable, out: Tensor, tensors: list[Tensor], dim: int, dtype: DType
) -> None:
    # The kernel only moves elements: what has another dtype is converted before.
    table["cat"](out, [as_dtype(table, each, dtype) for each in tensors], dim)


def cat_anywhere(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """`cat` by copies into the parts of a new tensor, on whatever backend."""
    planned = plan_cat("core::cat", tensors, dim)
    (output,), (kept, place, *_) = planned.outputs, planned.arguments
    assert output is not None, "there is one result"
    shape, dtype = output
    made: Tensor = core.empty(shape, dtype=dtype, device=planned.device)
    start = 0
    for each in kept:
        end = start + each.shape[place]
        core.copy_(core.slice(made, place, start, end), each)
        start = end
    return made


def _require_some(call: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise WrongOption(
            operator=call, argument="tensors", found="an empty list", fits="one or more"
        )


def _shapes(
    tensors: Sequence[Tensor],
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((f"tensors[{at}]", each.shape) for at, each in enumerate(tensors))


def stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Tensors of one shape, side by side along a new dimension."""
    return _stacked("core::stack", tensors, dim)


def stack_out(tensors: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
    """`stack`, written to `out`."""
    call = "core::stack.out"
    return hand_over(_stacked(call, tensors, dim), out, call)


def _stacked(call: str, tensors: Sequence[Tensor], dim: int) -> Tensor:
    _require_some(call, tensors)
    first = tensors[0].shape
    if any(each.shape != first for each in tensors):
        raise ShapesDoNotFit(
            operator=call,
            shapes=_shapes(tensors),
            reason="they do not have one shape",
            fits=f"every tensor of shape {first}",
        )
    place = one_dim(call, dim, (*first, 1))
    joined: Tensor = core.cat([core.unsqueeze(each, place) for each in tensors], place)
    return joined


OPERATORS = (
    Structured(
        "cat",
        "Tensor[] tensors, int dim=0",
        plan_cat,
        remembers=True,
        anywhere=cat_anywhere,
        says="The tensors one after another along a dimension.",
        autocast="widest",
    ),
    Written(
        "stack(Tensor[] tensors, int dim=0) -> Tensor",
        {"CompositeImplicitAutograd": composed("core::stack", stack)},
        says="The tensors one after another along a new dimension.",
        autocast="widest",
    ),
    Written(
        "stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)",
        {"CompositeExplicitAutograd": composed("core::stack.out", stack_out)},
    ),
)
