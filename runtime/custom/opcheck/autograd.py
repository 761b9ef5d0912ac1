"""test_autograd_registration: where inputs require grad, the right gradient comes back.

True only here: what is asked, in this order.

1. Is there a kernel at Autograd, or a composite one?  The operator's table is asked; a
   registered fallthrough says that there is no gradient on purpose.
2. If there is none: does the kernel below record a gradient, where nobody looks?
3. Do outputs require grad?  If none does, nothing may depend on the inputs.
4. Does running backwards give gradients of the inputs' shapes?
5. Are they those of finite differences?  Narrow inputs are made float64 and complex128
   for that; where the operator does not take these, or computes or returns narrow
   numbers all the same, nothing is compared.

Rules:
- a sample of which nothing requires grad says nothing, nor does one without floating
  outputs;
- of many elements, only the slope along one direction is compared: that costs three
  calls, however many there are;
- a sample at a kink of the operator is no sample for finite differences.
"""

from runtime.autograd.backward import grad
from runtime.autograd.modes import enable_grad
from runtime.custom.opcheck.copier import Copier
from runtime.custom.opcheck.outcome import told
from runtime.custom.opcheck.points import Points
from runtime.custom.opcheck.sample import Sample
from runtime.custom.opcheck.slopes import (
    compare_slopes,
    computes_wide,
    is_large,
    is_wide,
)
from runtime.dispatch.token import Implementation
from runtime.errors.autograd import (
    GradcheckFailed,
    GradcheckMisuse,
    NotImplementedFormula,
)
from runtime.errors.opcheck import (
    AutogradAtBackend,
    AutogradMissing,
    BackwardRaised,
    GradientWrong,
    OpCheckError,
)
from runtime.keys import AUTOGRAD_KEYS, autograd_key_of, exclude_keys, key_of_device
from runtime.operators.call import core

TEST = "test_autograd_registration"


def check_autograd(sample: Sample) -> OpCheckError | None:
    """The first thing that is wrong with the gradient of the operator."""
    points = Points(sample)
    if not points.labels:
        return None
    with enable_grad():
        registered = _registered(sample)
        if registered is None:
            return None
        try:
            found = _recorded(points) if registered else _unregistered(points)
        except Exception as error:
            # If the sample is no call that works, that is raised.
            sample.run(Copier().values(sample.values))
            return _missing(points, f"called with them, it raises {_words(error)}")
        return found or (_compared(points) if registered else None)


def _missing(points: Points, seen: str) -> AutogradMissing:
    about = points.sample.about(TEST)
    return AutogradMissing(**about, inputs=points.labels, seen=seen)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {told(error)}"


def _registered(sample: Sample) -> bool | None:
    """Whether the operator has a kernel for gradients; None: it is a constant."""
    parts = sample.arguments(sample.values)
    device = next(p.tensor for p in parts if p.tensor._requires_grad).device
    key = autograd_key_of(key_of_device(device.type).backend)
    assert key.slot is not None, "every autograd key of a backend has a slot"
    found = sample.handle.entry.table.slot(key.slot)
    if not isinstance(found.token, Implementation) or found.kernel is None:
        return False
    return None if found.kernel.function is None else True


def _unregistered(points: Points) -> OpCheckError | None:
    """What to say of an operator without a kernel at Autograd."""
    leaves = points.leaves()
    with exclude_keys(AUTOGRAD_KEYS):
        outputs = points.outputs(leaves)
    about = points.sample.about(TEST)
    known = {id(leaf) for leaf in leaves}
    for part in outputs:
        made = part.label.startswith("result") and id(part.tensor) not in known
        if made and part.tensor._requires_grad:
            key = key_of_device(part.tensor.device.type).name
            return AutogradAtBackend(**about, key=key, result=part.label)
    if not outputs:
        return None
    return _missing(points, "nothing is registered at Autograd")


def _recorded(points: Points) -> OpCheckError | None:
    """Whether outputs require grad, and gradients come back of the right shape."""
    leaves = points.leaves()
    outputs = points.outputs(leaves)
    about = points.sample.about(TEST)
    roots = [part.tensor for part in outputs if part.tensor._requires_grad]
    if not roots:
        if not outputs or not _depends(points):
            return None
        names = " and ".join(part.label for part in outputs)
        return _missing(points, f"the registered kernel records nothing of {names}")
    try:
        grad(roots, leaves, [core.ones_like(r) for r in roots], allow_unused=True)
    except NotImplementedFormula as error:
        seen = f"run backwards, `{error.operator}` says that it has no formula"
        return _missing(points, seen)
    except Exception as error:  # whatever it is, it is the finding
        at = {"kind": type(error).__name__, "text": told(error)}
        return BackwardRaised(**about, inputs=points.labels, **at)
    return None


def _depends(points: Points) -> bool:
    """Whether outputs without a gradient surely change with the inputs."""
    wide = Points(points.sample, wide=True)
    try:
        compare_slopes(wide, wide.leaves())
    except GradcheckFailed:
        return True
    except Exception:  # the operator need not take the widest dtypes
        return False
    return False


def _compared(points: Points) -> OpCheckError | None:
    """Compare with finite differences, where these are fine enough."""
    leaves = points.leaves()
    narrow = any(not is_wide(leaf) for leaf in leaves)
    try:
        if narrow:
            points = Points(points.sample, wide=True)
            leaves = points.leaves()
            if not all(is_wide(part.tensor) for part in points.outputs(leaves)):
                return None
        compare_slopes(points, leaves)
    except GradcheckMisuse:
        return None
    except GradcheckFailed as error:
        if narrow and not computes_wide(points, Points(points.sample)):
            return None
        entry = f"element {error.place[0]} of the input, {error.place[1]} of the output"
        return GradientWrong(
            **points.sample.about(TEST),
            result=points.outputs(leaves)[error.output].label,
            argument=points.labels[error.input],
            entry="along one direction" if is_large(points, leaves) else entry,
            reason=error.reason,
            analytical=error.analytical,
            numerical=error.numerical,
        )
    except Exception:  # whatever it says of dtypes that the sample does not have
        if narrow:
            return None
        raise
    return None
