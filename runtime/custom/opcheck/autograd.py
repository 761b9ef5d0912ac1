"""test_autograd_registration and test_gradients: check the gradients of inputs.

The first checks that gradients are registered where they belong, and run:

1. Is there a kernel at Autograd, or a composite one? The operator's table decides; a
   registered fallthrough declares that there is no gradient on purpose.
2. If there is none: does the kernel below record a gradient, where it is lost?
3. Does running backwards give gradients of the inputs' shapes?

The second, which runs only if it is named, does the same and then compares numbers:

4. If no output requires grad, no output may depend on the inputs.
5. Do the gradients match finite differences? Narrow inputs are converted to float64 and
   complex128 first; if the operator does not accept these, or computes or returns
   narrow numbers anyway, nothing is compared.

A gradient may differ from the slope on purpose: rounding that passes the gradient on,
or a function that is a constant for training. So only the caller can decide that
numbers must agree.

How it works: the operator is a function of the tensors of a sample that require grad
(`Points`). Each is copied to a separate leaf; a written argument is a clone of the
leaf, as a leaf must not be written to. Outputs are the results, and the arguments that
are written to.

Rules:
- a sample without tensors that require grad is not checked, nor is one without floating
  outputs;
- every element costs two calls forwards, every element of an output one backwards.
  Past `MOST_CALLS` the sample moves along one fixed direction, of which each tensor has
  a separate part, and outputs are summed with weights into one number: that needs two
  calls forwards and one backwards, and a wrong entry is still detected, unless others
  cancel it out;
- finite differences are invalid for a sample at a kink of the operator.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everyorder.runtime.autograd.engine import grad
from everyorder.runtime.autograd.grad_mode import enable_grad
from everyorder.runtime.autograd.gradcheck import (
    ATOL,
    RTOL,
    fixed_numbers,
    gradcheck,
    gradcheck_misuse,
)
from everyorder.runtime.custom.opcheck.sample import (
    Copier,
    Sample,
    TensorPart,
    first_paragraph,
)
from everyorder.runtime.dispatch.registration_record import Implementation
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    GradcheckFailed,
)
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.errors.custom import OpCheckError
from everyorder.runtime.keys import (
    AUTOGRAD_KEYS,
    autograd_key_of,
    exclude_keys,
    key_of_device,
)
from everyorder.runtime.operators.bindings.functions import allclose
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import DIFFERENTIABLE
from everyorder.runtime.tensors.from_data import tensor as tensor_of
from everyorder.runtime.tensors.shape import may_overlap_itself
from everyorder.runtime.tensors.tensor import Tensor

TEST = "test_autograd_registration"
GRADIENTS = "test_gradients"


class Points:
    """The tensors of a sample that require grad, and the calls at other values.

    Findings are those of the check `test`. `wide` computes in the widest dtypes, which
    finite differences need.
    """

    def __init__(self, sample: Sample, test: str, *, wide: bool = False) -> None:
        self.sample = sample
        self.test = test
        self._given: dict[int, Tensor] = {}
        self._points: dict[int, TensorPart] = {}
        parts = sample.arguments(sample.values)
        for part in parts:
            tensor = part.tensor
            if wide and tensor.dtype in DIFFERENTIABLE:
                plain = Copier(apart=True).tensor(tensor)
                self._given[id(tensor)] = core._to_copy(plain, dtype=_widest(tensor))
            if tensor._requires_grad:
                self._points.setdefault(id(tensor), part)
        self._written = {id(p.tensor) for p in parts if sample.is_written(p)}

    def widened(self) -> "Points":
        """Return the same points in the widest dtypes."""
        return Points(self.sample, self.test, wide=True)

    @property
    def about(self) -> Mapping[str, Any]:
        """Return the fields that findings of the check have in common."""
        return self.sample.about(self.test)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the tensors that require grad."""
        return tuple(part.label for part in self._points.values())

    def leaves(self) -> list[Tensor]:
        """Return fresh leaves that require grad, in the order of `labels`."""
        return [self._leaf(part.tensor) for part in self._points.values()]

    def _leaf(self, tensor: Tensor) -> Tensor:
        leaf = Copier(apart=True).tensor(self._given.get(id(tensor), tensor))
        if may_overlap_itself(leaf.shape, leaf.strides):
            leaf = core.clone(leaf)
        return leaf.requires_grad_()

    def outputs(self, leaves: Sequence[Tensor]) -> list[TensorPart]:
        """Call with the leaves; return the floating results and written arguments."""
        replacements = dict(self._given)
        for number, leaf in zip(self._points, leaves, strict=True):
            replacements[number] = core.clone(leaf) if number in self._written else leaf
        values = Copier(given=replacements).values(self.sample.values)
        returned = self.sample.run(values)
        parts = [*self.sample.results(returned)]
        ids = {id(part.tensor) for part in parts}
        for part in self.sample.arguments(values):
            if self.sample.is_written(part) and id(part.tensor) not in ids:
                ids.add(id(part.tensor))
                label = f"argument `{part.label}`"
                parts.append(TensorPart(part.place, label, part.tensor))
        return [part for part in parts if part.tensor.dtype in DIFFERENTIABLE]

    def function(self, *leaves: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs as tensors, as `gradcheck` requires."""
        return tuple(part.tensor for part in self.outputs(leaves))


def _widest(tensor: Tensor) -> DType:
    return DType.named("complex128" if tensor.dtype.is_complex else "float64")


def check_autograd(sample: Sample) -> OpCheckError | None:
    """Return the first error in the registration of the gradient, or None."""
    return _checked(Points(sample, TEST))


def check_gradients(sample: Sample) -> OpCheckError | None:
    """Return the first error in the registration or the numbers, or None."""
    return _checked(Points(sample, GRADIENTS))


def _checked(points: Points) -> OpCheckError | None:
    sample = points.sample
    if not points.labels:
        return None
    with enable_grad():
        registered = _registered(sample)
        if registered is None:
            return None
        try:
            finding = _recorded(points) if registered else _unregistered(points)
        except Exception as error:
            # If the sample itself is not a valid call, raise its own error.
            sample.run(Copier().values(sample.values))
            return _missing(points, f"called with them, it raises {_words(error)}")
        if finding is not None or points.test == TEST:
            return finding
        finding = _lost(points, registered)
        return finding or (_compared(points) if registered else None)


def _missing(points: Points, observation: str) -> OpCheckError:
    about = points.about
    return OpCheckError(
        code="AutogradMissing", **about, inputs=points.labels, seen=observation
    )


def _words(error: Exception) -> str:
    return f"{code_of(error)}: {first_paragraph(error)}"


def _registered(sample: Sample) -> bool | None:
    """Return True if the operator has a gradient kernel; None if it is a constant."""
    parts = sample.arguments(sample.values)
    device = next(p.tensor for p in parts if p.tensor._requires_grad).device
    key = autograd_key_of(key_of_device(device.type).backend)
    assert key.slot is not None, "every autograd key of a backend has a slot"
    slot = sample.handle.entry.table.slot(key.slot)
    if not isinstance(slot.token, Implementation) or slot.kernel is None:
        return False
    return None if slot.kernel.function is None else True


def _unregistered(points: Points) -> OpCheckError | None:
    """Return the finding if a kernel below Autograd records the gradient."""
    leaves = points.leaves()
    with exclude_keys(AUTOGRAD_KEYS):
        outputs = points.outputs(leaves)
    leaf_ids = {id(leaf) for leaf in leaves}
    for part in outputs:
        is_new = part.label.startswith("result") and id(part.tensor) not in leaf_ids
        if is_new and part.tensor._requires_grad:
            key = key_of_device(part.tensor.device.type).name
            return OpCheckError(
                code="AutogradAtBackend", **points.about, key=key, result=part.label
            )
    return None


def _recorded(points: Points) -> OpCheckError | None:
    """Return the finding if the recorded gradients do not run or do not fit."""
    leaves = points.leaves()
    outputs = points.outputs(leaves)
    roots = [part.tensor for part in outputs if part.tensor._requires_grad]
    if not roots:
        return None
    try:
        grad(roots, leaves, [core.ones_like(r) for r in roots], allow_unused=True)
    except Exception as error:  # any error is the finding
        if code_of(error) == "NotImplementedFormula":
            operator = error.operator  # type: ignore[attr-defined]  # by its code
            observation = f"run backwards, `{operator}` says that it has no formula"
            return _missing(points, observation)
        at: dict[str, Any] = {"kind": code_of(error), "text": first_paragraph(error)}
        return OpCheckError(
            code="BackwardRaised", **points.about, inputs=points.labels, **at
        )
    return None


def _lost(points: Points, registered: bool) -> OpCheckError | None:
    """Return the finding if no output requires grad although one could."""
    if not registered:
        with exclude_keys(AUTOGRAD_KEYS):
            if not points.outputs(points.leaves()):
                return None
        return _missing(points, "nothing is registered at Autograd")
    outputs = points.outputs(points.leaves())
    recorded = any(part.tensor._requires_grad for part in outputs)
    if recorded or not outputs or not _depends(points):
        return None
    names = " and ".join(part.label for part in outputs)
    return _missing(points, f"the registered kernel records nothing of {names}")


def _depends(points: Points) -> bool:
    """Return True if outputs without a gradient surely change with the inputs."""
    wide = points.widened()
    try:
        compare_slopes(wide, wide.leaves())
    except GradcheckFailed:
        return True
    except Exception:  # the operator need not take the widest dtypes
        return False
    return False


def _compared(points: Points) -> OpCheckError | None:
    """Compare with finite differences, where these are accurate enough."""
    leaves = points.leaves()
    narrow = any(not is_wide(leaf) for leaf in leaves)
    try:
        if narrow:
            points = points.widened()
            leaves = points.leaves()
            if not all(is_wide(part.tensor) for part in points.outputs(leaves)):
                return None
        compare_slopes(points, leaves)
    except AutogradMisuse as error:
        if error.code != "GradcheckMisuse":
            raise
        return None
    except GradcheckFailed as error:
        if narrow and not computes_wide(points, Points(points.sample, points.test)):
            return None
        entry = f"element {error.place[0]} of the input, {error.place[1]} of the output"
        return OpCheckError(
            code="GradientWrong",
            **points.about,
            result=points.outputs(leaves)[error.output].label,
            argument=points.labels[error.input],
            entry="along one direction" if is_large(points, leaves) else entry,
            reason=error.reason,
            analytical=error.analytical,
            numerical=error.numerical,
        )
    except Exception:  # the operator may not support the wide dtypes
        if narrow:
            return None
        raise
    return None


# With 10 us to 1 ms per call, this is a few seconds at most.
MOST_CALLS = 2000

WIDE = ("float64", "complex128")

# A relative step that float64 resolves and float32 does not, and the error of float16.
FINE, COARSE = 1e-9, 1e-2


def is_wide(tensor: Tensor) -> bool:
    """Return True if the tensor's dtype is accurate enough for finite differences."""
    return tensor.dtype.name in WIDE


def computes_wide(wide: Points, narrow: Points) -> bool:
    """Return True if an operator computes the same with `wide` and `narrow` numbers.

    Return False if it computes in narrow numbers anyway: then a fine step does not
    change the result; or if its results differ for another dtype.
    """
    leaves = wide.leaves()
    moved = [core.mul(core.detach(leaf), 1 + FINE).requires_grad_() for leaf in leaves]
    at, nearby = wide.function(*leaves), wide.function(*moved)
    if all(core.equal(*pair) for pair in zip(at, nearby, strict=True)):
        return False
    there = narrow.function(*narrow.leaves())
    return all(
        allclose(
            core.detach(one),
            core._to_copy(core.detach(two), dtype=one.dtype),
            COARSE,
            COARSE,
            equal_nan=True,
        )
        for one, two in zip(at, there, strict=True)
    )


def is_large(points: Points, leaves: Sequence[Tensor]) -> bool:
    """Return True if comparing every element would need more than `MOST_CALLS`."""
    outputs = [part.tensor for part in points.outputs(leaves)]
    return sum(each.numel() for each in [*leaves, *outputs]) > MOST_CALLS


def compare_slopes(points: Points, leaves: Sequence[Tensor]) -> None:
    """Compare gradients at `leaves` with finite differences.

    Raises:
        GradcheckFailed: a gradient differs.
        AutogradMisuse: the inputs cannot be checked.
    """
    if not all(map(is_wide, leaves)):
        raise gradcheck_misuse(
            "finite differences of narrow numbers are too inaccurate"
        )
    sample = points.sample
    atol = ATOL if sample.atol is None else sample.atol
    rtol = RTOL if sample.rtol is None else sample.rtol
    function, at = points.function, [*leaves]
    if is_large(points, leaves):
        function = _along(points, leaves)
        at = [tensor_of(0.0, dtype=leaf.dtype, requires_grad=True) for leaf in leaves]
    gradcheck(function, at, atol=atol, rtol=rtol)


def _along(points: Points, leaves: Sequence[Tensor]) -> Callable[..., Any]:
    """Return the weighted outputs as a function of the step of each leaf."""

    def function(*steps: Tensor) -> tuple[Tensor, ...]:
        moved = [
            core.add(core.detach(leaf), core.mul(fixed_numbers(leaf), step))
            for leaf, step in zip(leaves, steps, strict=True)
        ]
        outputs = points.outputs(moved)
        return tuple(
            core.sum(core.mul(part.tensor, fixed_numbers(part.tensor)))
            for part in outputs
        )

    return function
