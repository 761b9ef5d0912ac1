"""Operators that choose or bound elements: where, clamp, masked_fill.

True only here: a condition is bool and takes no part in promotion.
"""

from typing import Any

from runtime.errors.operands import DevicesDiffer, DTypeRefused, WrongOption
from runtime.operators.binary import TAGS, broadcast
from runtime.operators.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    Plan,
    common_device,
)
from runtime.operators.scalar import check_fill
from runtime.operators.structured import Structured
from runtime.operators.unary import refuse, same
from runtime.tensors.data import result_type
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.tensor import Tensor


def check_condition(call: str, argument: str, condition: Tensor, device: Any) -> None:
    """Make sure that a condition is bool and lies with the others.

    Raises:
        DTypeRefused, DevicesDiffer: it is not, or does not.
    """
    if condition.dtype is not BOOL:
        raise DTypeRefused(
            operator=call, argument=argument, dtype=str(condition.dtype), fits="bool"
        )
    if condition.device is not device:
        devices = (str(device), str(condition.device))
        raise DevicesDiffer(operator=call, devices=devices)


def plan_where(call: str, condition: Tensor, self: Tensor, other: Tensor) -> Plan:
    """Elements of `self` where the condition holds, else of `other`."""
    device = common_device(call, condition, self, other)
    check_condition(call, "condition", condition, device)
    dtype = self.dtype
    if dtype is not other.dtype or self.number is not None or other.number is not None:
        dtype = result_type(self, other)
    shape = broadcast(call, condition.shape, self.shape, other.shape)
    return Plan(
        ((shape, dtype),),
        device,
        (condition, self, other),
        dtype,
        (1, 2),
        pointwise=True,
    )


_BOUNDED = same(ALL - COMPLEXES - {BOOL})


def plan_clamp(call: str, self: Tensor, low: Any, high: Any) -> Plan:
    """Elements bounded by two numbers or two tensors; either may be absent."""
    if low is None and high is None:
        raise WrongOption(
            operator=call,
            argument="min and max",
            found="None",
            fits="a bound for at least one of them",
        )
    bounds = [bound for bound in (low, high) if bound is not None]
    dtype = result_type(self, *bounds)
    row = _BOUNDED.get(dtype)
    if row is None:
        raise refuse(call, _BOUNDED, "self", dtype)
    tensors = [bound for bound in bounds if isinstance(bound, Tensor)]
    device = common_device(call, self, *tensors)
    shape = broadcast(call, self.shape, *(each.shape for each in tensors))
    outputs = ((shape, dtype),)
    return Plan(outputs, device, (self, low, high), row[1], pointwise=True)


def plan_masked_fill(call: str, self: Tensor, mask: Tensor, value: Any) -> Plan:
    """`value` where the mask holds, else the elements of `self`."""
    check_condition(call, "mask", mask, self.device)
    check_fill(call, value, self.dtype)
    shape = broadcast(call, self.shape, mask.shape)
    dtype = self.dtype
    return Plan(
        ((shape, dtype),),
        self.device,
        (mask, value, self),
        dtype,
        (1, 2),
        kernel="where",
        pointwise=True,
        # Upstream expands first, and fills a copy row by row.
        strides=contiguous_strides(shape),
    )


_CLAMP = "Scalar? min=None, Scalar? max=None"

OPERATORS = (
    Structured(
        "where",
        "Tensor condition, Tensor self, Tensor other",
        plan_where,
        tags=TAGS,
        remembers=True,
        says="One of two tensors, by a condition.",
        autocast="widest",
    ),
    Structured(
        "clamp",
        f"Tensor self, {_CLAMP}",
        plan_clamp,
        in_place=True,
        tags=("pointwise",),
        remembers=True,
    ),
    Structured(
        "clamp.Tensor",
        f"Tensor self, {_CLAMP.replace('Scalar', 'Tensor')}",
        plan_clamp,
        in_place=True,
        tags=("pointwise",),
    ),
    Structured(
        "masked_fill",
        "Tensor self, Tensor mask, Scalar value",
        plan_masked_fill,
        in_place=True,
        out=False,
        tags=("pointwise",),
        remembers=True,
        says="A number put where the mask is true.",
    ),
)
