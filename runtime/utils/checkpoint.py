"""Checkpoints: compute a function again in the backward pass, instead of saving.

    y = checkpoint(block, x)        # stores x, and nothing that `block` computes
    y.sum().backward()              # runs `block(x)` again when it needs its tensors

The function runs with hooks of saved tensors (`autograd.graph`): each saved tensor is
replaced by an empty *holder*, numbered in the order of saving. When a backward pass
reads the first holder, the function runs again, and the tensors that it saves fill the
holders by their numbers. The outputs keep the graph of the first call, so any function
with any arguments and outputs can be checkpointed, and only what a pass needs is
computed again.

Rules:
- the second run has the state of the random numbers, the autocast state and the
  arguments of the first; it stops as soon as all holders are filled (`early_stop`);
- arguments that are tensors are saved like those of an operator, through the hooks that
  surround the checkpoint: so an outer checkpoint computes them again, too;
- a tensor that is modified after it was saved is refused, in both runs, as without a
  checkpoint; what the function reads without saving it, besides its arguments, must
  have the same values in both runs;
- a backward pass computes a function again at most once; its tensors live until the
  node that saved them releases them, or the pass ends;
- a holder does not know its checkpoint, and a checkpoint knows its holders weakly, so
  reference counts free all of it with the graph.

Source: the idea and its cost, Chen, Xu, Zhang and Guestrin, "Training Deep Nets with
Sublinear Memory Cost", 2016; filling by hooks, as torch does it without reentrance.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from everyorder.runtime.autograd.autocast import (
    DEVICES,
    STATE,
    autocast,
    is_autocast_enabled,
)
from everyorder.runtime.autograd.grad_mode import (
    GRAD,
    BackwardRun,
    enable_grad,
    inference_mode,
    is_inference_mode_enabled,
)
from everyorder.runtime.autograd.gradient_plan import (
    SavedInput,
    modified,
    restore,
    save,
)
from everyorder.runtime.autograd.saved_hooks import (
    PackedTensor,
    packed_form,
    saved_tensors_hooks,
    version_of,
)
from everyorder.runtime.errors.autograd import AutogradMisuse, CheckpointError
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.tensors.generator import default_generator
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

_CALL = "checkpoint"


class _EarlyStop(threading.local):
    """The thread's choice for all checkpoints; None leaves it to each call."""

    chosen: bool | None = None


_EARLY_STOP = _EarlyStop()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Generator[None, None, None]:
    """Choose for all checkpoints of the block if a second run stops early.

    Without it, the function always runs to its end.
    """
    before, _EARLY_STOP.chosen = _EARLY_STOP.chosen, bool(enable)
    try:
        yield
    finally:
        _EARLY_STOP.chosen = before


def noop_context_fn() -> Contexts:
    """Return two contexts that do nothing, for the first and the second run."""
    return nullcontext(), nullcontext()


class _Stop(BaseException):
    """Ends a second run, all of whose tensors are known.

    A function that catches every `Exception` does not catch it.
    """

    def __init__(self, owner: object) -> None:
        super().__init__()
        self.owner = owner


class _Holder:
    """The place of one tensor that the function saved."""

    __slots__ = ("__weakref__", "place")

    def __init__(self, place: int) -> None:
        self.place = place


class _FirstSaved:
    """What a checkpoint knows of a tensor that the first call saved.

    The elements are referred to weakly. Those that the function computed are gone when
    it runs again, or are computed into other memory.
    """

    __slots__ = ("meta", "storage", "version")

    def __init__(self, tensor: Tensor, meta: str) -> None:
        self.meta = meta
        self.storage, self.version = version_of(tensor)

    def now(self) -> int | None:
        """Return the version of the elements; None if they are freed."""
        storage = self.storage()
        return None if storage is None else storage.version

    def is_stale(self, tensor: Tensor, before: int | None) -> bool:
        """Return True if `tensor` has these elements, with other values.

        `before` is their version when the second run began: a run that has written to
        them itself, as to a buffer, computes the values again.
        """
        storage, version = version_of(tensor)
        if storage() is None or storage() is not self.storage():
            return False
        return version == before != self.version


class _Arguments:
    """The arguments of a call; tensors are saved as by an operator."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        leaves, self._structure = tree_flatten((args, kwargs))
        self._leaves = [_saved(*pair) for pair in enumerate(leaves)]

    def read(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments.

        Raises:
            BackwardRefused: one was modified in place.
        """
        leaves = [_restored(*pair) for pair in enumerate(self._leaves)]
        args, kwargs = tree_unflatten(leaves, self._structure)
        return args, kwargs


class _SavedArgument:
    """The saved form of a tensor among the arguments."""

    __slots__ = ("form",)

    def __init__(self, form: Any) -> None:
        self.form = form


def _saved(place: int, leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    return _SavedArgument(packed_form(save(leaf, _CALL), _CALL, _name(place)))


def _restored(place: int, leaf: Any) -> Any:
    if not isinstance(leaf, _SavedArgument):
        return leaf
    if isinstance(leaf.form, PackedTensor):
        return leaf.form.placed_at(leaf.form.edge)
    return restore(leaf.form, _CALL, _name(place))


def _name(place: int) -> str:
    return f"tensor {place} of the arguments"


class _Surroundings:
    """The state of a thread that a function can depend on: numbers, autocast.

    A function is checkpointed only where calls are recorded, so it runs again with
    recording, outside of inference mode.
    """

    def __init__(self, preserve_rng_state: bool) -> None:
        self._numbers = default_generator.get_state() if preserve_rng_state else None
        self._autocast = [
            (device, STATE.dtypes.get(device), is_autocast_enabled(device))
            for device in DEVICES
        ]
        self._caches = STATE.caches

    @contextmanager
    def restored(self) -> Generator[None, None, None]:
        """Return to this state for the block."""
        with ExitStack() as stack:
            if is_inference_mode_enabled():
                stack.enter_context(inference_mode(False))
            stack.enter_context(enable_grad())
            if self._numbers is not None:
                stack.callback(
                    default_generator.set_state, default_generator.get_state()
                )
                default_generator.set_state(self._numbers)
            for device, dtype, enabled in self._autocast:
                stack.enter_context(autocast(device, dtype, enabled, self._caches))
            yield


def _meta(tensor: Tensor) -> str:
    return f"shape {tuple(tensor.shape)}, {tensor.dtype}, {tensor.device}"


class _FirstRunHooks(saved_tensors_hooks):
    """The hooks of the first call: a checkpoint compares versions itself."""

    __slots__ = ()
    _compares = False


class _Checkpoint:
    """One call of a checkpointed function, and the tensors of its later runs."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: _Arguments,
        surroundings: _Surroundings,
        context: AbstractContextManager[Any],
        compares: bool,
        stops: bool,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._surroundings = surroundings
        self._context = context
        self._compares = compares
        self._stops = stops
        self._holders: list[ReferenceType[_Holder]] = []
        self._saved: list[_FirstSaved] = []
        # True when the first call has ended: it may contain a backward pass itself.
        self.complete = False
        self._computed: WeakKeyDictionary[
            BackwardRun, WeakKeyDictionary[_Holder, SavedInput]
        ] = WeakKeyDictionary()

    def pack(self, tensor: Tensor) -> _Holder:
        """Return the holder of a tensor that the first call saves."""
        holder = _Holder(len(self._holders))
        self._holders.append(ref(holder))
        self._saved.append(_FirstSaved(tensor, _meta(tensor) if self._compares else ""))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        """Return the tensor of a holder; run the function again for the first one.

        Raises:
            BackwardRefused: an argument, or a saved tensor, was modified in place.
            CheckpointError: the second run saves other tensors than the first.

        Exceptions of the function propagate.
        """
        current = GRAD.run or BackwardRun([], None)
        tensors = self._computed.get(current)
        if tensors is None or holder not in tensors:
            tensors = self._computed_again()
            self._computed[current] = tensors
        return restore(tensors[holder], _CALL, self._nth(holder.place))

    def _computed_again(self) -> WeakKeyDictionary[_Holder, SavedInput]:
        tensors: WeakKeyDictionary[_Holder, SavedInput] = WeakKeyDictionary()
        count, wanted = 0, len(self._holders)

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            place, count = count, count + 1
            tensor = tensor.detach()
            if place < wanted:
                holder, first = self._holders[place](), self._saved[place]
                if self._compares and _meta(tensor) != first.meta:
                    raise self._changed(
                        "MetadataChanged", place, first.meta, _meta(tensor)
                    )
                if first.is_stale(tensor, before[place]):
                    stale = tensor, first.version
                    raise modified(stale, _CALL, self._nth(place))
                if holder is not None:
                    tensors[holder] = tensor, tensor._version
                if self._stops and count == wanted:
                    raise _Stop(self)
            return tensor

        args, kwargs = self._arguments.read()
        before = [saved.now() for saved in self._saved]
        try:
            with (
                self._surroundings.restored(),
                saved_tensors_hooks(pack, lambda tensor: tensor),
                self._context,
            ):
                self._function(*args, **kwargs)
        except _Stop as stop:
            if stop.owner is not self:
                raise
        if count != wanted and (count < wanted or self.complete):
            raise self._changed("CountChanged", 0, str(wanted), str(count))
        return tensors

    def _changed(
        self, code: str, place: int, first: str, again: str
    ) -> CheckpointError:
        return CheckpointError(
            code=code, function=self._name(), place=place, first=first, again=again
        )

    def _nth(self, place: int) -> str:
        return f"tensor {place} of {self._name()}"

    def _name(self) -> str:
        kind = type(self._function)
        name: str = getattr(self._function, "__qualname__", kind.__name__)
        return name


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Return `function(*args, **kwargs)`, which saves no tensor but its arguments.

    The tensors that its gradient needs are computed again in the backward pass.

    Args:
        function: any function; a second run must save tensors of the same number,
            shapes, dtypes and devices.
        use_reentrant: only False is offered.
        preserve_rng_state: draw the same random numbers in the second run.
        context_fn: returns the contexts of the first and of the second run.
        determinism_check: "default", or "none" to compare only the number of tensors.
        debug: only False is offered.
        early_stop: end the second run when its last needed tensor is computed.

    Raises:
        NotOffered: `use_reentrant` or `debug` is true.
        AutogradMisuse: `determinism_check` is something else.
        WriteRefused: a tensor among the arguments is an inference tensor.
    """
    if use_reentrant or debug:
        option = "use_reentrant" if use_reentrant else "debug"
        raise NotOffered(
            asked=f"checkpoint({option}=True)",
            reason="a checkpoint is built from hooks of saved tensors only"
            if use_reentrant
            else "a checkpoint does not log the operators of its runs",
            remedy=f"pass {option}=False; it gives the same gradients",
        )
    if determinism_check not in ("default", "none"):
        raise AutogradMisuse(
            code="HookMisuse",
            asked=_CALL,
            fault=f"determinism_check is {determinism_check!r}; expected 'default' or "
            "'none'",
        )
    first, second = context_fn()
    if not GRAD.enabled:
        with first:
            return function(*args, **kwargs)
    chosen = _EARLY_STOP.chosen
    frame = _Checkpoint(
        function,
        _Arguments(args, kwargs),
        _Surroundings(preserve_rng_state),
        second,
        determinism_check == "default",
        early_stop if chosen is None else chosen,
    )
    with _FirstRunHooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,  # noqa: A002  # torch's name
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
) -> Any:
    """Return the result of functions that are called one after the other.

    All but the last of `segments` parts of about equal length are checkpointed.

    Args:
        functions: a list of functions, or a `Sequential`.
        segments: the number of parts, from 1 to the number of functions.
        input: the argument of the first function.
        use_reentrant, preserve_rng_state: as for `checkpoint`.

    Raises:
        AutogradMisuse: `segments` is not such a number.
        NotOffered: as for `checkpoint`.
    """
    steps: Sequence[Callable[[Any], Any]] = [*functions]
    if not isinstance(segments, int) or not 1 <= segments <= max(len(steps), 1):
        raise AutogradMisuse(
            code="HookMisuse",
            asked="checkpoint_sequential",
            fault=f"segments is {segments!r}; expected 1 to {len(steps)}, the number "
            "of functions",
        )
    size = len(steps) // segments
    value = input
    for place in range(segments - 1):
        value = checkpoint(
            _chain(steps[place * size : (place + 1) * size]),
            value,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return _chain(steps[(segments - 1) * size :])(value)


def _chain(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return the function that calls `steps` one after the other."""

    def chain(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return chain
