"""Points: an operator as a function of the tensors of a sample that require grad.

True only here: how a call with gradients is made.  Each tensor that requires grad is
copied to a leaf of its own; what the operator writes to is a clone of the leaf, as a
leaf must not be written to.  Outputs are the results, and the arguments that are
written to.
"""

from collections.abc import Sequence

from runtime.custom.opcheck.copier import Copier
from runtime.custom.opcheck.sample import Part, Sample
from runtime.operators.call import core
from runtime.schema.codes import DType
from runtime.tensors.shape import may_overlap_itself
from runtime.tensors.tensor import Tensor


class Points:
    """The tensors of a sample that require grad, and the calls at other values.

    `wide` computes in the widest dtypes, which finite differences need.
    """

    def __init__(self, sample: Sample, wide: bool = False) -> None:
        self.sample = sample
        self._given: dict[int, Tensor] = {}
        self._points: dict[int, Part] = {}
        parts = sample.arguments(sample.values)
        for part in parts:
            tensor = part.tensor
            if wide and differentiable(tensor):
                plain = Copier(apart=True).tensor(tensor)
                self._given[id(tensor)] = core._to_copy(plain, dtype=_widest(tensor))
            if tensor._requires_grad:
                self._points.setdefault(id(tensor), part)
        self._written = {id(p.tensor) for p in parts if sample.is_written(p)}

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the tensors that require grad."""
        return tuple(part.label for part in self._points.values())

    def leaves(self) -> list[Tensor]:
        """Fresh leaves that require grad, in the order of `labels`."""
        return [self._leaf(part.tensor) for part in self._points.values()]

    def _leaf(self, tensor: Tensor) -> Tensor:
        leaf = Copier(apart=True).tensor(self._given.get(id(tensor), tensor))
        if may_overlap_itself(leaf.shape, leaf.strides):
            leaf = core.clone(leaf)
        return leaf.requires_grad_()

    def outputs(self, leaves: Sequence[Tensor]) -> list[Part]:
        """Call with the leaves; the results and what was written, if floating."""
        given = dict(self._given)
        for number, leaf in zip(self._points, leaves, strict=True):
            given[number] = core.clone(leaf) if number in self._written else leaf
        values = Copier(given=given).values(self.sample.values)
        returned = self.sample.run(values)
        found = [*self.sample.results(returned)]
        known = {id(part.tensor) for part in found}
        for part in self.sample.arguments(values):
            if self.sample.is_written(part) and id(part.tensor) not in known:
                known.add(id(part.tensor))
                label = f"argument `{part.label}`"
                found.append(Part(part.place, label, part.tensor))
        return [part for part in found if differentiable(part.tensor)]

    def function(self, *leaves: Tensor) -> tuple[Tensor, ...]:
        """The outputs as tensors: what `gradcheck` takes."""
        return tuple(part.tensor for part in self.outputs(leaves))


def differentiable(tensor: Tensor) -> bool:
    """Whether a tensor of that dtype can have a gradient."""
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _widest(tensor: Tensor) -> DType:
    return DType.named("complex128" if tensor.dtype.is_complex else "float64")
