"""Errors of autograd: what cannot be recorded, run backwards, or run once more.

True only here: every field that names an operator or a node names it as it was called,
so that the line of the program can be found.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


class AutogradError(EveryorderError, RuntimeError):
    """Base of all errors of autograd."""


@dataclass(eq=False, kw_only=True)
class SavedTensorModified(AutogradError):
    """A tensor that was saved for a gradient was written to afterwards."""

    operator: str
    argument: str
    shape: tuple[int, ...]
    dtype: str
    expected: int
    found: int

    def render(self) -> str:
        """Who saved what, and both versions."""
        return page(
            f"`{self.operator}` saved `{self.argument}` for its gradient, and the "
            "tensor was modified in place before the gradient was computed.",
            ("saved", f"shape {self.shape}, {self.dtype}, version {self.expected}"),
            ("now", f"version {self.found}"),
            ("to do", "modify a clone(), or compute out of place"),
        )


@dataclass(eq=False, kw_only=True)
class GraphFreed(AutogradError):
    """A part of the graph was run backwards a second time, after it was let go."""

    operator: str

    def render(self) -> str:
        """The operator, and how to keep the graph."""
        return page(
            f"What `{self.operator}` saved for its gradient is gone: the graph was run "
            "backwards before, and that frees it.",
            ("to do", "pass retain_graph=True the first time"),
        )


@dataclass(eq=False, kw_only=True)
class NoGradientToCompute(AutogradError):
    """`backward` or `grad` was asked of a tensor that records nothing."""

    asked: str
    index: int
    shape: tuple[int, ...]

    def render(self) -> str:
        """The output, and what makes a tensor record."""
        return page(
            f"`{self.asked}` starts from output {self.index} of shape {self.shape}, "
            "which does not require grad and was not computed from what does.",
            ("to do", "compute it from tensors with requires_grad=True, in grad mode"),
        )


@dataclass(eq=False, kw_only=True)
class GradientNeeded(AutogradError):
    """The gradient of an output of several elements must be given."""

    asked: str
    index: int
    shape: tuple[int, ...]

    def render(self) -> str:
        """The output's shape, and what would do."""
        return page(
            f"`{self.asked}` starts from output {self.index} of shape {self.shape}; "
            "only an output of one element has a gradient by itself.",
            ("to do", "reduce it, by sum() for one, or pass a gradient of its shape"),
        )


@dataclass(eq=False, kw_only=True)
class GradientMismatch(AutogradError, ValueError):
    """A gradient does not fit the tensor that it is the gradient of.

    `where` says who gave the gradient; `what` is one of shape, dtype, device, number.
    """

    where: str
    what: str
    expected: str
    found: str

    def render(self) -> str:
        """Both sides."""
        return page(
            f"{self.where} gave a gradient of the wrong {self.what}.",
            ("expected", self.expected),
            ("found", self.found),
        )


@dataclass(eq=False, kw_only=True)
class NotAGradient(AutogradError, TypeError):
    """`backward` returned a `type` for the argument of `forward` at `position`."""

    node: str
    position: int
    type: str

    def render(self) -> str:
        """The function, the argument, and what there was."""
        return page(
            f"The backward of `{self.node}` gave argument {self.position} no gradient.",
            ("expected", "a Tensor, or None"),
            ("found", self.type),
        )


@dataclass(eq=False, kw_only=True)
class UnusedInput(AutogradError):
    """The gradient of an input was asked for that the outputs do not depend on."""

    index: int
    shape: tuple[int, ...]

    def render(self) -> str:
        """The input, and how to allow it."""
        return page(
            f"The outputs were not computed from input {self.index} of shape "
            f"{self.shape}.",
            ("to do", "pass allow_unused=True to get None for it"),
        )


@dataclass(eq=False, kw_only=True)
class InputWithoutGradient(AutogradError):
    """The gradient of an input was asked for that does not require grad."""

    index: int
    shape: tuple[int, ...]

    def render(self) -> str:
        """The input."""
        return page(
            f"Input {self.index} of shape {self.shape} does not require grad.",
            ("to do", "call requires_grad_() on it before it is used"),
        )


@dataclass(eq=False, kw_only=True)
class NotImplementedFormula(AutogradError, NotImplementedError):
    """An operator was run backwards that nobody wrote a gradient for."""

    operator: str
    inputs: tuple[str, ...] = ()

    def render(self) -> str:
        """The operator, its inputs that want a gradient, and what to do."""
        wanted = ", ".join(f"`{name}`" for name in self.inputs)
        todo = "use register_autograd (custom operators), a kernel at the key Autograd,"
        todo += " a runtime.autograd.Function, or no_grad()"
        return page(
            f"`{self.operator}` has no formula for its gradient.",
            *((("wanted", wanted),) if wanted else ()),
            ("to do", todo),
        )


@dataclass(eq=False, kw_only=True)
class UnrecordedWrite(AutogradError):
    """Gradients went to a tensor that was written to by a call that did not end."""

    operator: str
    shape: tuple[int, ...]

    def render(self) -> str:
        """The operator, and what to do."""
        return page(
            f"`{self.operator}` was interrupted after it wrote to a tensor of shape "
            f"{self.shape}, and before that was recorded: its gradient is not known.",
            (
                "to do",
                "compute the tensor anew from its inputs; `.detach()` goes on with the "
                "elements as they are, without their history",
            ),
        )


@dataclass(eq=False, kw_only=True)
class LeafModified(AutogradError):
    """A leaf that requires grad, or a view of one, was to be written to in place."""

    operator: str
    shape: tuple[int, ...]
    is_view: bool

    def render(self) -> str:
        """The operator and the leaf."""
        what = "a view of a leaf" if self.is_view else "a leaf"
        return page(
            f"`{self.operator}` would modify {what} of shape {self.shape} that "
            "requires grad: its old values could no longer be differentiated.",
            ("to do", "modify it in no_grad(), or modify a clone()"),
        )


@dataclass(eq=False, kw_only=True)
class ViewModified(AutogradError):
    """A view was to be written to, or its base was, that cannot follow the change.

    `made` says how: several at once, in no_grad() or inference_mode(), by a Function.
    """

    operator: str
    made: str
    shape: tuple[int, ...]
    indirect: bool = False

    def render(self) -> str:
        """The operator, the view, and why."""
        how = "is modified in place"
        if self.indirect:
            how = "or its base was modified in place, and the view is used again"
        return page(
            f"A view of shape {self.shape} {how}, by `{self.operator}`; {self.made}, "
            "so gradients cannot follow.",
            ("to do", "make the view where it is modified, or modify a clone()"),
        )


@dataclass(eq=False, kw_only=True)
class OverlappingWrite(AutogradError):
    """A tensor whose elements share memory among themselves was to be written to."""

    operator: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def render(self) -> str:
        """The operator and the layout."""
        return page(
            f"`{self.operator}` would write to a tensor of which several elements are "
            "one place in memory.",
            ("layout", f"shape {self.shape}, strides {self.strides}"),
            ("to do", "modify a clone()"),
        )


@dataclass(eq=False, kw_only=True)
class OutRequiresGrad(AutogradError):
    """An operator with `out=` was called where a gradient would have to be recorded."""

    operator: str
    argument: str

    def render(self) -> str:
        """The operator and the argument that requires grad."""
        return page(
            f"`{self.operator}` writes into `out`, which records no gradient, but "
            f"`{self.argument}` requires grad.",
            ("to do", "leave `out` away, or call it in no_grad()"),
        )


@dataclass(eq=False, kw_only=True)
class InferenceTensorUsed(AutogradError):
    """A tensor made in inference mode was used where its changes must be known.

    `use` says for what: modified, saved, requires_grad, version.
    """

    use: str
    operator: str
    shape: tuple[int, ...]

    def render(self) -> str:
        """The use and the way out."""
        uses = {
            "modified": f"cannot be modified by `{self.operator}` outside of that mode",
            "saved": f"cannot be saved by `{self.operator}` for a gradient",
            "requires_grad": "cannot require grad",
            "version": "has no version",
        }
        return page(
            f"A tensor of shape {self.shape} was made in inference_mode() and "
            f"{uses[self.use]}.",
            ("to do", "use a clone() of it, made outside of inference_mode()"),
        )


@dataclass(eq=False, kw_only=True)
class NotDetachable(AutogradError):
    """A view was to be detached in place: its base would stay in the graph."""

    shape: tuple[int, ...]

    def render(self) -> str:
        """The view, and what to do."""
        return page(
            f"`detach_()` of a view of shape {self.shape} would leave its base in the "
            "graph.",
            ("to do", "use detach(), or detach the base"),
        )


@dataclass(eq=False, kw_only=True)
class FunctionMisuse(AutogradError, TypeError):
    """A `Function` was written or used in a way that has no meaning."""

    function: str
    fault: str
    remedy: str

    def render(self) -> str:
        """The function, what is wrong, and what would be right."""
        return page(f"`{self.function}` {self.fault}.", ("to do", self.remedy))


@dataclass(eq=False, kw_only=True)
class DifferentiatedOnce(AutogradError):
    """A gradient of a gradient was asked of a function that gives the first only."""

    function: str

    def render(self) -> str:
        """The function."""
        return page(
            f"The backward of `{self.function}` is marked `once_differentiable`, and "
            "its result was differentiated.",
            ("to do", "write backward with differentiable operators, unmarked"),
        )


@dataclass(eq=False, kw_only=True)
class HookMisuse(AutogradError, TypeError):
    """A hook was registered where it can never run, or returned what is no gradient."""

    asked: str
    fault: str

    def render(self) -> str:
        """What was asked, and what is wrong."""
        return page(f"`{self.asked}`: {self.fault}.")


@dataclass(eq=False, kw_only=True)
class UnknownMode(AutogradError, ValueError):
    """A mode of the fallback at the Autograd keys that does not exist."""

    found: str
    known: tuple[str, ...]

    def render(self) -> str:
        """The word, and the known ones."""
        return page(
            f"The fallback at the Autograd keys has no mode {self.found!r}.",
            ("known", ", ".join(self.known)),
        )


@dataclass(eq=False, kw_only=True)
class AutocastRefused(AutogradError, ValueError):
    """`autocast` was asked for a device or a dtype that it does not serve."""

    device: str
    dtype: str
    known: tuple[str, ...]

    def render(self) -> str:
        """What was asked, and what there is."""
        return page(
            f"autocast({self.device!r}, dtype={self.dtype}) does not exist.",
            ("known", "; ".join(self.known)),
        )


@dataclass(eq=False, kw_only=True)
class GradcheckFailed(AutogradError, AssertionError):
    """An analytical gradient differs from the numerical one.

    The Jacobian is that of output `output` by input `input`; `place` is the entry
    (element of the input, element of the output) of the greatest difference.
    """

    output: int
    input: int
    place: tuple[int, int]
    analytical: str
    numerical: str
    difference: str
    reason: str

    def render(self) -> str:
        """The entry, both values, and what was compared."""
        return page(
            f"gradcheck: {self.reason}, for output {self.output} by input "
            f"{self.input}.",
            ("entry", f"input element {self.place[0]}, output element {self.place[1]}"),
            ("analytical", self.analytical),
            ("numerical", self.numerical),
            ("difference", self.difference),
        )


@dataclass(eq=False, kw_only=True)
class GradcheckMisuse(AutogradError, ValueError):
    """`gradcheck` was given inputs whose gradients cannot be checked."""

    fault: str

    def render(self) -> str:
        """What is wrong with the inputs."""
        return page(f"gradcheck cannot check this: {self.fault}.")
