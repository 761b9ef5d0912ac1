"""The protocol of wrappers: how one is taken apart, and put together from other parts.

True only here: what a class of wrappers has to define so that others, which know
nothing of it, can walk through its tensors:

    def __tensor_flatten__(self):             # the attributes with tensors, a context
        return ["values", "scale"], self.axis

    @staticmethod
    def __tensor_unflatten__(tensors, context, size, strides):
        return Scaled(tensors["values"], tensors["scale"], context)

`flatten` takes a wrapper apart down to tensors that are none, however they are nested;
`unflatten` puts one together of such tensors.  Both check what the class gives.

Rules: a context says all that the tensors do not, and should be comparable: wrappers
whose plans are equal differ in their tensors only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runtime.errors.subclass import (
    NotAWrapper,
    WrongParts,
    WrongTensorCount,
    WrongWhole,
)
from runtime.tensors.tensor import Tensor

PROTOCOL = ("__tensor_flatten__", "__tensor_unflatten__")

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WrapperPlan:
    """How a wrapper is put together.

    Attributes:
        cls: the class of the wrapper.
        names: of its attributes that hold tensors.
        context: whatever else the class wants to know.
        size, strides: those of the wrapper.
        inner: for each name the plan of what it holds; None for no wrapper.
    """

    cls: type[Tensor]
    names: tuple[str, ...]
    context: Any
    size: Ints
    strides: Ints
    inner: tuple["WrapperPlan | None", ...]

    @property
    def count(self) -> int:
        """The tensors that a wrapper is put together from."""
        return sum(1 if plan is None else plan.count for plan in self.inner)


class Flattened(NamedTuple):
    """A wrapper taken apart: tensors that are no wrappers, in order, and the plan."""

    tensors: tuple[Tensor, ...]
    plan: WrapperPlan


def is_traceable_wrapper_subclass(value: object) -> bool:
    """Whether it is a tensor of a subclass that has both methods of the protocol."""
    return isinstance(value, Tensor) and is_traceable_wrapper_subclass_type(type(value))


def is_traceable_wrapper_subclass_type(cls: type) -> bool:
    """Whether tensors of that class can be taken apart and put together."""
    return (
        issubclass(cls, Tensor)
        and cls is not Tensor
        and all(hasattr(cls, name) for name in PROTOCOL)
    )


def flatten(wrapper: Tensor) -> Flattened:
    """The tensors inside of a wrapper, and in the wrappers inside of it.

    Raises:
        NotAWrapper: its class lacks the protocol, or half of it.
        WrongParts: `__tensor_flatten__` gave no names, or names of no tensors.
    """
    plan, tensors = _taken_apart(wrapper)
    return Flattened(tuple(tensors), plan)


def unflatten(tensors: Sequence[Tensor], plan: WrapperPlan) -> Any:
    """The wrapper that the plan makes of these tensors.

    Raises:
        WrongTensorCount: the plan is for more or fewer.
        WrongWhole: `__tensor_unflatten__` made another class or another shape.
    """
    if len(tensors) != plan.count:
        raise WrongTensorCount(
            cls=plan.cls.__name__, expected=plan.count, found=len(tensors)
        )
    return _put_together(iter(tensors), plan)


def _taken_apart(wrapper: Tensor) -> tuple[WrapperPlan, list[Tensor]]:
    kind = type(wrapper)
    missing = tuple(name for name in PROTOCOL if not hasattr(kind, name))
    if missing or not isinstance(wrapper, Tensor):
        raise NotAWrapper(cls=kind.__name__, missing=missing)
    names, context = _parts(wrapper)
    tensors: list[Tensor] = []
    inner: list[WrapperPlan | None] = []
    for name in names:
        value = getattr(wrapper, name, None)
        if not isinstance(value, Tensor):
            raise WrongParts(
                cls=kind.__name__,
                found=f"the name {name!r}, which is no attribute with a tensor",
            )
        if value is wrapper:
            raise WrongParts(
                cls=kind.__name__, found=f"the name {name!r}, which is itself"
            )
        if is_traceable_wrapper_subclass(value):
            plan, deeper = _taken_apart(value)
            inner.append(plan)
            tensors += deeper
        else:
            inner.append(None)
            tensors.append(value)
    return (
        WrapperPlan(kind, names, context, wrapper.shape, wrapper.strides, tuple(inner)),
        tensors,
    )


def _parts(wrapper: Any) -> tuple[tuple[str, ...], Any]:
    """What `__tensor_flatten__` gives, checked."""
    found = wrapper.__tensor_flatten__()
    if not isinstance(found, (list, tuple)) or len(found) != 2:
        shown = f"a {type(found).__name__}"
        if isinstance(found, (list, tuple)):
            shown = f"a {type(found).__name__} of {len(found)}"
        raise WrongParts(cls=type(wrapper).__name__, found=shown)
    names, context = found
    if not isinstance(names, (list, tuple)):
        shown = f"a {type(names).__name__} for the names"
        raise WrongParts(cls=type(wrapper).__name__, found=shown)
    for name in names:
        if not isinstance(name, str):
            shown = f"a {type(name).__name__} for the name of an attribute"
            raise WrongParts(cls=type(wrapper).__name__, found=shown)
    return tuple(names), context


def _put_together(tensors: Iterator[Tensor], plan: WrapperPlan) -> Any:
    given = {
        name: next(tensors) if inner is None else _put_together(tensors, inner)
        for name, inner in zip(plan.names, plan.inner, strict=True)
    }
    kind: Any = plan.cls
    made = kind.__tensor_unflatten__(given, plan.context, plan.size, plan.strides)
    if type(made) is not kind:
        raise WrongWhole(
            cls=kind.__name__,
            expected=f"a `{kind.__name__}`",
            found=f"a `{type(made).__name__}`",
        )
    if made.shape != plan.size:
        raise WrongWhole(
            cls=kind.__name__,
            expected=f"one of shape {plan.size}",
            found=f"one of shape {made.shape}",
        )
    return made
