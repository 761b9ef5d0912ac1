"""The fallback at the Autograd keys: operators that nobody wrote a gradient for.

True only here: what happens when such an operator is called with a tensor that requires
grad.  Three modes, chosen for the process:

| mode              | the result                                  | run backwards  |
|-------------------|---------------------------------------------|----------------|
| error-on-backward | requires grad                               | raises by name |
| warn              | requires grad; gradients end there          | warns          |
| fallthrough       | as if the key had no kernel at all          | -              |

Upstream went from the last to the second in 2023, and calls it a warning still; the
first cannot be overlooked, and is the default.

Rules: nothing is asked of arguments that are not tensors; what runs next is below all
Autograd keys, whichever of them was called, and it runs with these excluded, as below
every recorded call; what an operator writes to, its schema says, whether it is a tensor
or a list of them.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from runtime.autograd.history import edges_of, meta_of, tensors_in, with_history
from runtime.autograd.inplace import check_write, edge_before, rebase, unrecorded
from runtime.autograd.modes import GRAD
from runtime.autograd.node import DIFFERENTIABLE, Edge, Failing, Gradients, Node
from runtime.autograd.recording import below_autograd, careful, run_below
from runtime.dispatch.kernel import fallthrough, linked
from runtime.dispatch.library import Library
from runtime.dispatch.registration import Registration
from runtime.errors.autograd import AutogradMisuse, NotImplementedFormula
from runtime.schema.schema import Schema
from runtime.tensors.tensor import Tensor

MODES = ("error-on-backward", "warn", "fallthrough")

# The mode of the process, in a list so that it can be set.
_MODE = [MODES[0]]


class GradientMissing(UserWarning):
    """A gradient ended at an operator that has none."""


class Ending(Node):
    """Ends gradients with a warning."""

    __slots__ = ("_called",)

    def __init__(self, called: str, edges: list[Edge | None], metas: Any) -> None:
        super().__init__(edges, metas)
        self._called = called

    @property
    def operator(self) -> str:
        """What was called."""
        return self._called

    def apply(self, gradients: list[Any]) -> Gradients:
        """No gradient at all, and a warning."""
        warnings.warn(
            f"`{self._called}` has no formula for its gradient, which ends here.",
            GradientMissing,
            stacklevel=2,
        )
        return [None] * len(self.next_edges)


def set_fallback_mode(mode: str) -> str:
    """Choose what operators without a gradient do; the mode before is returned.

    Raises `AutogradMisuse`.  Holds for calls from now on, of operators without formulas
    and of the fallbacks that were installed without a mode of their own.
    """
    if mode not in MODES:
        raise AutogradMisuse(code="UnknownMode", found=mode, known=MODES)
    before, _MODE[0] = _MODE[0], mode
    return before


def fallback_mode() -> str:
    """The mode of the process."""
    return _MODE[0]


def install_fallbacks(library: Library, mode: str | None = None) -> Registration:
    """Register the fallback for every Autograd key, in a library of `_`.

    `mode` is that of `set_fallback_mode`, for these fallbacks alone; None follows the
    process.  In the mode `fallthrough` the kernel is the one that is never called.
    Raises `AutogradMisuse`, `Conflict`.
    """
    if mode is not None and mode not in MODES:
        raise AutogradMisuse(code="UnknownMode", found=mode, known=MODES)
    if mode == "fallthrough":
        return library.fallback(fallthrough, "Autograd")

    kernel = linked(not_implemented(mode), "autograd_not_implemented")
    return library.fallback(kernel, "Autograd")


def not_implemented(mode: str | None = None) -> Callable[[Any, Any], Any]:
    """The factory of the kernel of an operator that has no formulas; see `linked`."""

    def factory(below: Any, keyset: Any) -> Callable[..., Any]:
        run, schema = below_autograd(below, keyset), below.schema
        shape = len(schema.returns)

        def record(*arguments: Any) -> Any:
            def called() -> list[Any]:
                result = run(*arguments)
                if shape == 1 and not schema.is_varret:
                    return [result]
                return [*result] if isinstance(result, (list, tuple)) else []

            results = _called(schema, arguments, mode, called)
            if shape == 1 and not schema.is_varret:
                return results[0]
            return tuple(results) if results else None

        return careful(schema, run, record)

    return factory


def _requires_grad(value: Any) -> bool:
    return bool(getattr(value, "_requires_grad", False))


def _written(schema: Schema, arguments: Sequence[Any]) -> list[Tensor]:
    """The tensors that a call writes to, each once."""
    found = tensors_in(
        [
            value
            for argument, value in zip(schema.arguments, arguments, strict=False)
            if argument.is_write
        ]
    )
    return [*{id(tensor): tensor for tensor in found}.values()]


def _called(
    schema: Schema,
    arguments: Sequence[Any],
    mode: str | None,
    call: Callable[[], list[Any]],
) -> list[Any]:
    """Call, and give the results a history that ends."""
    mode = mode or _MODE[0]
    given = [*tensors_in(arguments)]
    if mode == "fallthrough" or not GRAD.enabled or not any(map(_requires_grad, given)):
        return call()
    operator = str(schema.name)
    written = _written(schema, arguments)
    for tensor in written:
        check_write(tensor, operator)
    edges = edges_of(given)
    names = tuple(
        argument.name
        for argument, value in zip(schema.arguments, arguments, strict=False)
        if any(map(_requires_grad, tensors_in([value])))
    )
    versions = [(tensor, tensor._version) for tensor in written]
    try:
        results: list[Any] = run_below(call)
        _finish(operator, names, mode, edges, written, results)
    except BaseException:
        unrecorded(versions, operator, edges)
        raise
    return results


def _finish(
    operator: str,
    names: tuple[str, ...],
    mode: str,
    edges: list[Edge | None],
    written: list[Tensor],
    results: list[Any],
) -> None:
    def made(tensor: Tensor) -> Node:
        metas = (meta_of(tensor),)
        if mode == "warn":
            return Ending(operator, edges, metas)
        return Failing(
            operator,
            edges,
            metas,
            lambda: NotImplementedFormula(
                code="NotImplementedFormula", operator=operator, inputs=names
            ),
        )

    for tensor in written:
        if tensor.dtype in DIFFERENTIABLE:
            # Asked now: another one that was written to may be a view of the same base.
            rebase(tensor, made(tensor), edge_before(tensor))
    for place, result in enumerate(results):
        results[place] = _ended(result, written, made)


def _ended(
    result: Any, written: Sequence[Tensor], made: Callable[[Tensor], Node]
) -> Any:
    """A result with a history, where it can have a gradient."""
    if isinstance(result, (list, tuple)):
        return [_ended(each, written, made) for each in result]
    if not isinstance(result, Tensor) or result.dtype not in DIFFERENTIABLE:
        return result
    if any(result is tensor for tensor in written):
        return result
    return with_history(result, made(result))
