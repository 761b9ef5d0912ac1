"""Installing autograd on a dispatcher, through public libraries.

This module holds the table of formulas, the choice of a kernel for each operator and
key, and the behavior of operators without a gradient. The schema selects the kernels:

| operator  | criterion                 | Autograd         | ADInplaceOrView    |
|-----------|---------------------------|------------------|--------------------|
| composite | CompositeImplicitAutograd | none             | falls through      |
| out= form | writes to a keyword       | refuses grad     | raises the version |
| in place  | writes to its first       | checks, records, | raises the version |
|           | argument                  | rebases          |                    |
| ... view  | its tag `inplace_view`    | checks, records  | raises the version |
| view      | an alias, no write        | records          | registers the view |
| constant  | the table of formulas     | falls through    | falls through      |
| others    |                           | records          | falls through      |

An operator without formulas uses the fallback, when it is called with a tensor that
requires grad. The fallback has three modes, chosen for the process:

| mode              | the result                                  | run backwards  |
|-------------------|---------------------------------------------|----------------|
| error-on-backward | requires grad                               | raises by name |
| warn              | requires grad; gradients end there          | warns          |
| fallthrough       | as if the key had no kernel at all          | -              |

Upstream changed from `fallthrough` to `warn` in 2023, and still only warns; an error
cannot be overlooked, and is the default here.

Rules of formulas: an operator of floating-point results is in exactly one of `FORMULAS`
and `CONSTANT_OPERATORS`; in-place forms use the formulas of the operator that they are
named after.

Rules of kernels: an operator without tensors falls through at ADInplaceOrView, and has
no other kernel here; `runtime.autograd.inplace` does not handle operators that fall
through; the default dispatcher is installed on once, when this module is imported.

Rules of the fallback: arguments that are not tensors are not examined; the kernel that
runs next is below all Autograd keys, no matter which of them was called, and runs with
these keys excluded, as below every recorded call; the schema lists the arguments that
an operator writes to, tensors or lists of them.
"""

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from everyorder.runtime.autograd.autocast import install_autocast
from everyorder.runtime.autograd.elementwise_formulas import (
    BINARY,
    OF_GRADIENTS,
    UNARY,
    nothing,
)
from everyorder.runtime.autograd.grad_edges import (
    SEVERAL,
    edges_of,
    meta_of,
    tensors_in,
    with_history,
)
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import (
    TENSORS,
    Formulas,
    derivatives_of,
    kind_of,
)
from everyorder.runtime.autograd.index_formulas import WRITES
from everyorder.runtime.autograd.inplace import (
    base_edge,
    bumping,
    check_write,
    following,
    modifying,
    modifying_view,
    rebase,
    refuse_gradients,
)
from everyorder.runtime.autograd.linalg_formulas import LINEAR_ALGEBRA
from everyorder.runtime.autograd.movement_formulas import MOVEMENT, VIEWS
from everyorder.runtime.autograd.network_formulas import (
    CONSTANT_RESULTS,
    NETWORKS,
    PRODUCTS,
)
from everyorder.runtime.autograd.node import Edge, Failing, Node
from everyorder.runtime.autograd.recording import (
    any_requires_grad,
    below_autograd,
    grad_switch,
    recording,
    refusing_out,
    run_below,
    tensor_places,
    tolerant_grad_switch,
)
from everyorder.runtime.autograd.reduction_formulas import REDUCTIONS
from everyorder.runtime.base.locks import waited_for
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.kernel import Kernel, fallthrough, linked
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.errors.autograd import AutogradMisuse, NotImplementedFormula
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.operators import install as install_operators
from everyorder.runtime.operators.declare.handles import NAMESPACE
from everyorder.runtime.operators.decompositions import DECOMPOSITIONS, decomposing
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.tensors.dtype_info import DIFFERENTIABLE
from everyorder.runtime.tensors.tensor import Tensor

FORMULAS: dict[str, Formulas] = {
    **UNARY,
    **BINARY,
    **OF_GRADIENTS,
    **REDUCTIONS,
    **PRODUCTS,
    **NETWORKS,
    **MOVEMENT,
    **WRITES,
    **LINEAR_ALGEBRA,
    **VIEWS,
}

# Operators whose results have no gradient, whatever their dtype. A tensor that they
# write in place becomes constant.
CONSTANT_OPERATORS = frozenset(
    {
        *("eq", "ne", "lt", "le", "gt", "ge"),
        *("logical_not", "logical_and", "logical_or", "logical_xor"),
        *("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("isnan", "isinf", "isfinite", "any", "all", "argmax", "argmin", "argsort"),
        *("nonzero", "equal", "_local_scalar_dense", "detach"),
        *("empty_like", "zeros_like", "ones_like", "full_like"),
        *("rand_like", "randn_like"),
        *("new_empty", "new_zeros", "new_ones", "new_full"),
    }
)

MODES = ("error-on-backward", "warn", "fallthrough")

# The mode of the process, in a list so that it can be set.
_MODE = [MODES[0]]


class GradientMissing(UserWarning):
    """A warning that a gradient ended at an operator without a formula."""


def set_fallback_mode(mode: str) -> str:
    """Set the mode of operators without a gradient, and return the previous mode.

    The mode applies to later calls of operators without formulas, and to the fallbacks
    that were installed without a mode.

    Raises:
        AutogradMisuse: the mode is unknown.
    """
    if mode not in MODES:
        raise AutogradMisuse(code="UnknownMode", found=mode, known=MODES)
    before, _MODE[0] = _MODE[0], mode
    return before


def fallback_mode() -> str:
    """Return the fallback mode of the process."""
    return _MODE[0]


def install_fallbacks(library: Library, mode: str | None = None) -> Registration:
    """Register the fallback for every Autograd key, in a library of the namespace `_`.

    `mode` is a mode of `set_fallback_mode`, for these fallbacks only; None follows the
    process. In the mode `fallthrough` the kernel is the one that is never called.

    Raises:
        AutogradMisuse: the mode is unknown.
        Conflict: a fallback is registered already.
    """
    if mode is not None and mode not in MODES:
        raise AutogradMisuse(code="UnknownMode", found=mode, known=MODES)
    if mode == "fallthrough":
        return library.fallback(fallthrough, "Autograd")

    kernel = linked(not_implemented(mode), "autograd_not_implemented")
    return library.fallback(kernel, "Autograd")


def not_implemented(mode: str | None = None) -> Callable[[Any, Any], Any]:
    """Return the factory of the kernel of an operator without formulas; see
    `linked`.
    """

    def factory(below: Any, keyset: Any) -> Callable[..., Any]:
        run, schema = below_autograd(below, keyset), below.schema
        single = len(schema.returns) == 1 and not schema.is_varret

        def record(*arguments: Any) -> Any:
            def called() -> list[Any]:
                result = run(*arguments)
                if single:
                    return [result]
                return [*result] if isinstance(result, (list, tuple)) else []

            results = _called(schema, arguments, mode, called)
            return results[0] if single else tuple(results) or None

        return tolerant_grad_switch(schema, run, record)

    return factory


def _called(
    schema: Schema,
    arguments: Sequence[Any],
    mode: str | None,
    call: Callable[[], list[Any]],
) -> list[Any]:
    """Run the call, and give the results a history that ends."""
    mode = mode or _MODE[0]
    tensors = [*tensors_in(arguments)]
    if mode == "fallthrough" or not GRAD.enabled or not any_requires_grad(tensors):
        return call()
    operator = str(schema.name)
    pairs = [*zip(schema.arguments, arguments, strict=False)]
    in_written = tensors_in([value for argument, value in pairs if argument.is_write])
    written = [*{id(tensor): tensor for tensor in in_written}.values()]
    for tensor in written:
        check_write(tensor, operator)
    edges = edges_of(tensors)
    names = tuple(
        argument.name
        for argument, value in pairs
        if any_requires_grad([*tensors_in([value])])
    )
    versions = [(tensor, tensor._version) for tensor in written]
    try:
        results: list[Any] = run_below(call)
        _record_end(operator, names, mode, edges, written, results)
    except BaseException:
        refuse_gradients(versions, operator, edges)
        raise
    return results


def _record_end(
    operator: str,
    names: tuple[str, ...],
    mode: str,
    edges: list[Edge | None],
    written: list[Tensor],
    results: list[Any],
) -> None:
    """Give the written tensors, and the results, a history that ends."""

    def error() -> BaseException | None:
        if mode != "warn":
            return NotImplementedFormula(operator=operator, inputs=names)
        warnings.warn(
            f"`{operator}` has no formula for its gradient, which ends here.",
            GradientMissing,
            stacklevel=3,
        )
        return None

    def node_of(tensor: Tensor) -> Node:
        return Failing(operator, edges, (meta_of(tensor),), error)

    def ended(result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return [ended(each) for each in result]
        if not isinstance(result, Tensor) or result.dtype not in DIFFERENTIABLE:
            return result
        if any(result is tensor for tensor in written):
            return result
        return with_history(result, node_of(result))

    for tensor in written:
        if tensor.dtype in DIFFERENTIABLE:
            # Read the edge now: another written tensor may be a view of the same base.
            rebase(tensor, node_of(tensor), base_edge(tensor))
    results[:] = ended(results)


# What dumps show as the place of registration.
ORIGIN = "core autograd"

# The kernels of operators that neither write nor create views.
_PASSING = (("ADInplaceOrView", fallthrough),)

_LOCK = waited_for()
_KEPT: dict[str, tuple[Library, ...]] = {}


def install(dispatcher: Dispatcher | None = None) -> tuple[Library, ...]:
    """Register autograd's kernels for every operator of `core` that is defined.

    On the default dispatcher this happens once, together with the operators; later
    calls return the same libraries. Another dispatcher must have its operators already.
    """
    if dispatcher is not None and dispatcher is not default_dispatcher():
        return _installed(dispatcher)
    with _LOCK:
        if NAMESPACE not in _KEPT:
            install_operators()
            _KEPT[NAMESPACE] = _installed(default_dispatcher())
        return _KEPT[NAMESPACE]


def _installed(dispatcher: Dispatcher) -> tuple[Library, ...]:
    libraries = {
        key: Library(NAMESPACE, "IMPL", key, dispatcher=dispatcher, origin=ORIGIN)
        for key in ("Autograd", "ADInplaceOrView")
    }
    entries = [*dispatcher.state.namespaces.get(NAMESPACE, {}).values()]
    for entry in entries:
        schema = entry.schema
        if schema is None:
            continue
        composite = DispatchKey.CompositeImplicitAutograd in entry.implementations
        definition = entry.definition
        tags = () if definition is None else definition.tags
        for key, kernel in _PASSING if composite else kernels_of(schema, tags):
            libraries[key].impl(entry.name, kernel, debug=kernel.facts.name)
    autocast = install_autocast(dispatcher, ORIGIN)
    return (*libraries.values(), *autocast)


def kernels_of(
    schema: Schema, tags: Collection[str] = ()
) -> tuple[tuple[str, Kernel], ...]:
    """Return the kernels of an operator, by key; see the table of the module."""
    arguments = schema.arguments
    if not tensor_places(schema):
        return _PASSING
    label = str(schema.name).partition("::")[2].replace(".", "_")
    written = [argument for argument in arguments if argument.is_write]
    if written:
        bump = linked(bumping(schema), f"{label}_version")
        if written[0].kwarg_only:
            refuse = linked(refusing_out(schema), f"{label}_autograd")
            return ("Autograd", refuse), ("ADInplaceOrView", bump)
        record = modifying_view if "inplace_view" in tags else modifying
        return ("Autograd", _in_place(schema, label, record)), ("ADInplaceOrView", bump)
    autograd = ("Autograd", _functional(schema, label))
    # `detach` does not return a view: its result does not follow the base.
    if any(a.alias is not None for a in arguments) and label != "detach":
        several = kind_of(schema.returns[0].type) == TENSORS
        follow = following(schema, SEVERAL if several else "")
        return autograd, ("ADInplaceOrView", linked(follow, f"{label}_view"))
    return autograd, *_PASSING


def _functional(schema: Schema, label: str) -> Kernel:
    name = _short(schema)
    if name in CONSTANT_OPERATORS:
        return fallthrough
    formulas = FORMULAS.get(name)
    if formulas is None:
        return linked(not_implemented(), f"{label}_autograd")
    constant = CONSTANT_RESULTS.get(name, frozenset())
    derivatives = derivatives_of(schema, formulas, constant)
    kernel = recording(schema, derivatives)
    if name in DECOMPOSITIONS:
        kernel = decomposing(kernel, DECOMPOSITIONS[name])
    return linked(kernel, f"{label}_autograd")


def _in_place(schema: Schema, label: str, record: Callable[..., Any]) -> Kernel:
    formulas = _in_place_formulas(schema)
    if formulas is None:
        return linked(not_implemented(), f"{label}_autograd")
    derivatives = derivatives_of(schema, formulas)
    places = derivatives.call.places
    assert places[0] == 0, "the first gradient belongs to the written argument"
    kernel = grad_switch(schema, places, lambda run: record(run, derivatives))
    return linked(kernel, f"{label}_autograd")


def _in_place_formulas(schema: Schema) -> Formulas | None:
    name = _short(schema)
    base, dot, overload = name.partition(".")
    plain = base.removesuffix("_") + dot + overload
    if plain in CONSTANT_OPERATORS:
        return {schema.arguments[0].name: nothing}
    return FORMULAS.get(name) or FORMULAS.get(plain)


def _short(schema: Schema) -> str:
    return str(schema.name).partition("::")[2]


install()
