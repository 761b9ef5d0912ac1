"""Errors of autograd: operations that cannot be recorded or run backwards.

Rule: every field that names an operator or a node uses the name in the call, so that
the line of the program can be found.
"""

from everyorder.runtime.errors.base import EveryorderError

# Use -> the restriction on a tensor that was created in inference mode.
USES = {
    "modified": "cannot be modified by `{}` outside of that mode",
    "saved": "cannot be saved by `{}` for a gradient",
    "requires_grad": "cannot require grad",
    "version": "has no version",
}


class AutogradError(EveryorderError, RuntimeError):
    """Base of all errors of autograd."""


class WriteRefused(AutogradError):
    """A tensor cannot be modified in place: autograd could not differentiate the write.

    `made` says how a view was created: by an operator with several results, in
    no_grad() or inference_mode(), or by a Function; `use` is the use of a tensor of
    inference mode, a key of `USES`.
    """

    operator: str = ""
    shape: tuple[int, ...] = ()
    is_view: bool = False
    made: str = ""
    indirect: bool = False
    strides: tuple[int, ...] = ()
    use: str = ""
    argument: str = ""

    words = """
    LeafModified: `{operator}` would modify {_what} of shape {shape} that requires grad:
        its old values could no longer be differentiated.
      to do: modify it in no_grad(), or modify a clone()
    ViewModified: A view of shape {shape} {_how}, by `{operator}`; {made}, so gradients
        cannot follow.
      to do: make the view where it is modified, or modify a clone()
    OverlappingWrite: `{operator}` would write to a tensor of which several elements
        share one place in memory.
      layout: shape {shape}, strides {strides}
      to do: modify a clone()
    InferenceTensorUsed: A tensor of shape {shape} was made in inference_mode() and
        {_why}.
      to do: use a clone() of it, made outside of inference_mode()
    NotDetachable: `detach_()` of a view of shape {shape} would leave its base in the
        graph.
      to do: use detach(), or detach the base
    OutRequiresGrad: `{operator}` writes into `out`, which records no gradient, but
        `{argument}` requires grad.
      to do: leave `out` away, or call it in no_grad()
    """

    @property
    def _what(self) -> str:
        return "a view of a leaf" if self.is_view else "a leaf"

    @property
    def _how(self) -> str:
        if self.indirect:
            return "or its base was modified in place, and the view is used again"
        return "is modified in place"

    @property
    def _why(self) -> str:
        return USES[self.use].format(self.operator)


class BackwardRefused(AutogradError):
    """The graph cannot be run backwards.

    The requested output lacks an implicit gradient, or the saved tensors were freed or
    modified.  `asked` is the function that was called.
    """

    asked: str = ""
    index: int = 0
    shape: tuple[int, ...] = ()
    operator: str = ""
    argument: str = ""
    dtype: str = ""
    expected: int = 0
    found: int = 0

    words = """
    NoGradientToCompute: `{asked}` starts from output {index} of shape {shape}, which
        does not require grad and was not computed from tensors that do.
      to do: compute it from tensors with requires_grad=True, in grad mode
    GradientNeeded: `{asked}` starts from output {index} of shape {shape}; only an
        output of one element has a gradient by itself.
      to do: reduce it, by sum() for one, or pass a gradient of its shape
    NoInputs: `{asked}` was given no inputs, so there is nothing to compute.
      to do: name the tensors, or leave inputs out of backward() for every leaf
    UnusedInput: The outputs were not computed from input {index} of shape {shape}.
      to do: pass allow_unused=True to get None for it
    InputWithoutGradient: Input {index} of shape {shape} does not require grad.
      to do: call requires_grad_() on it before it is used
    GraphFreed: The tensors that `{operator}` saved for its gradient are freed: the
        graph was run backwards before.
      to do: pass retain_graph=True the first time
    SavedTensorModified: `{operator}` saved `{argument}` for its gradient, and the
        tensor was modified in place before the gradient was computed.
      saved: shape {shape}, {dtype}, version {expected}
      now: version {found}
      to do: modify a clone(), or compute out of place
    UnrecordedWrite: `{operator}` was interrupted after it wrote to a tensor of shape
        {shape}, and before that was recorded: its gradient is not known.
      to do: compute the tensor again from its inputs; or continue with its elements,
        without their history, by `.detach()`
    """


class CheckpointError(AutogradError):
    """A checkpointed function did not save the same tensors when it was run again."""

    function: str = ""
    place: int = 0
    first: str = ""
    again: str = ""

    words = """
    CountChanged: `{function}` is checkpointed, and saved {again} tensors when it was
        run again, after {first} at first: its gradient is not known.
      to do: make it do the same each time, with the same inputs
    MetadataChanged: `{function}` is checkpointed, and tensor {place} that it saves
        differs when it is run again: its gradient is not known.
      at first: {first}
      again: {again}
      to do: make it do the same each time, with the same inputs
    """


class NotImplementedFormula(AutogradError, NotImplementedError):
    """An operator or a function has no formula for the requested gradient."""

    operator: str = ""
    inputs: tuple[str, ...] = ()
    function: str = ""

    words = """
    NotImplementedFormula: `{operator}` has no formula for its gradient.
      wanted: [[`{inputs:`, `}`]]
      to do: use register_autograd (custom operators), a kernel at the key Autograd, a
        runtime.autograd.Function, or no_grad()
    ConstantArgument: `{operator}` has no formula for the gradient of `{inputs:`, `}`,
        which requires grad.
      to do: pass its detach(), or call it in no_grad()
    DifferentiatedOnce: The backward of `{function}` is marked `once_differentiable`,
        and its result was differentiated.
      to do: write backward with differentiable operators, unmarked
    """


class AutogradMisuse(AutogradError, TypeError, ValueError):
    """A Function, a hook, a mode, a check or a gradient is invalid.

    `where` names the source of a gradient that does not fit its tensor; `what` is one
    of shape, dtype, device, number.
    """

    function: str = ""
    fault: str = ""
    remedy: str = ""
    asked: str = ""
    mode: str = ""
    found: str = ""
    known: tuple[str, ...] = ()
    device: str = ""
    dtype: str = ""
    where: str = ""
    what: str = ""
    expected: str = ""
    node: str = ""
    position: int = 0
    type: str = ""

    words = """
    FunctionMisuse: `{function}` {fault}.
      to do: {remedy}
    HookMisuse: `{asked}`: {fault}.
    HooksDisabled: {fault}
      refused: saved_tensors_hooks together with disable_saved_tensors_hooks
      to do: leave the block of one before the block of the other
    ModeMisuse: `{mode}` cannot decorate `{function}`, a coroutine function: a mode
        belongs to a thread, and other coroutines would run in it while it awaits.
      to do: enter the mode around the computation, between two awaits
    UnknownMode: The fallback at the Autograd keys has no mode {found!r}.
      known: {known:, }
    AutocastRefused: autocast({device!r}, dtype={dtype}) does not exist.
      known: {known:; }
    GradcheckMisuse: gradcheck cannot check this: {fault}.
    GradientMismatch: {where} gave a gradient of the wrong {what}.
      expected: {expected}
      found: {found}
    NotAGradient: The backward of `{node}` gave argument {position} no gradient.
      expected: a Tensor, or None
      found: {type}
    """


class GradcheckFailed(AutogradError, AssertionError):
    """An analytical gradient differs from the numerical one.

    The Jacobian is that of output `output` by input `input`; `place` is the entry
    (element of the input, element of the output) with the greatest difference.
    """

    output: int
    input: int
    place: tuple[int, int]
    analytical: str
    numerical: str
    difference: str
    reason: str

    words = """
    GradcheckFailed: gradcheck: {reason}, for output {output} by input {input}.
      entry: input element {place[0]}, output element {place[1]}
      analytical: {analytical}
      numerical: {numerical}
      difference: {difference}
    """
