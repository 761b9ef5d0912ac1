"""Dropout: elements dropped at random, the others scaled up to keep the mean.

True only here: what is drawn and what is scaled.  One mask element is drawn for each
element of the input, true where it is kept; with `train` false, or with nothing to
drop, the result is a copy, as the schema promises a tensor of its own.
"""

from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.agreement import computing
from runtime.operators.call import core
from runtime.operators.number import number_for
from runtime.operators.plan import (
    BOOL,
    COMPLEXES,
    FLOATS,
    KernelTable,
    Plan,
    require_dtype,
)
from runtime.operators.random import generator_of
from runtime.operators.structured import Structured, Written, composed
from runtime.tensors.tensor import Tensor


def _check_probability(call: str, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise WrongOption(operator=call, argument="p", found=str(p), fits="0.0 to 1.0")


def plan_dropout(
    call: str,
    x: Tensor,
    p: float,
    train: bool,
    generator: Any,
) -> Plan:
    """The scaled input, and the mask of what was kept."""
    _check_probability(call, p)
    fits = "floating-point and complex numbers"
    require_dtype(call, "input", x.dtype, FLOATS | COMPLEXES, fits)
    return Plan(
        ((x.shape, x.dtype), (x.shape, BOOL)),
        x.device,
        (x, p if train else 0.0, generator_of(call, generator)),
        computing(x.dtype),
        (0,),
        kernel=_run,
    )


def _run(
    table: KernelTable,
    out: Tensor,
    mask: Tensor,
    x: Tensor,
    p: float,
    generator: Any,
) -> None:
    zero = number_for(0, out.dtype)
    if p == 0.0:
        table["fill"](mask, True)
        table["copy"](out, x)
    elif p == 1.0:
        table["fill"](mask, False)
        table["fill"](out, zero)
    else:
        table["bernoulli"](mask, generator, 1.0 - p)
        table["mul"](out, x, number_for(1.0 / (1.0 - p), out.dtype))
        table["where"](out, mask, out, zero)


def dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """The scaled input alone."""
    _check_probability("core::dropout", p)
    result: Tensor
    if not train or p == 0.0:
        result = core.clone(x)
    else:
        result = core.native_dropout(x, p, True)[0]
    return result


OPERATORS = (
    Structured(
        "native_dropout",
        "Tensor input, float p, bool train=True, *, Generator? generator=None",
        plan_dropout,
        returns="(Tensor, Tensor mask)",
        tags=("nondeterministic_seeded",),
    ),
    Written(
        "dropout(Tensor input, float p=0.5, bool train=True) -> Tensor",
        {"CompositeImplicitAutograd": composed("core::dropout", dropout)},
        tags=("nondeterministic_seeded",),
        says="Zeros at random with probability `p`, the rest scaled up.",
    ),
)
