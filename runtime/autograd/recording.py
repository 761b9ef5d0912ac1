"""Recording: the kernels at the Autograd keys, and the history of a recorded call.

Such a kernel is on the path of every call. It tests whether an argument that can have a
gradient requires grad, and calls the kernel below. If one does, and the thread records,
then

1. `edge_of` finds the edges of the arguments, and a node saves the values that the
   formulas need of them;
2. the call runs below, with the Autograd keys excluded for the thread, so that kernels
   below do not record;
3. the results become outputs of the node (`with_history`).

Most operators accept tensors and return one: then all of this is one generated function
(`recorded_text`, which custom operators use too), compiled once for all signatures that
look alike:

    def kernel(a0, a1, a2):
        if not (a0._requires_grad or a1._requires_grad) or not GRAD.enabled:
            return run(a0, a1, a2)
        ...                             # edges, node, run, history
        return result

Rules:
- an argument without a formula is refused if it requires grad: its gradient would be
  lost;
- a node is created before the call and attached to the results after it: a call that
  raises does not leave history;
- None, which a handler in Python may return, is a result without history;
- `runtime.autograd.inplace` handles calls that write to their arguments.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from everyorder.runtime.autograd.grad_edges import (
    HISTORY_NAMES,
    edge_of,
    edge_text,
    result_text,
    tensors_in,
    with_histories,
)
from everyorder.runtime.autograd.grad_mode import GRAD, Excluding
from everyorder.runtime.autograd.gradient_plan import (
    PLAIN,
    TENSOR,
    TENSORS,
    Derivatives,
    GradientPlan,
    kind_of,
    save_output,
    wrong_result,
)
from everyorder.runtime.autograd.node import SEQUENCE, Edge, Gradients, Node
from everyorder.runtime.autograd.saved_hooks import (
    HOOKS,
    PACKING,
    PackedTensor,
    packed_form,
)
from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.errors.autograd import NotImplementedFormula, WriteRefused
from everyorder.runtime.keys import AFTER_AUTOGRAD, AUTOGRAD_KEYS, LOCAL, KeySet
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.tensors.tensor import Tensor

Function = Callable[..., Any]
# Creates the function of a call from the kernel below and the keyset; see `linked`.
Factory = Callable[[Any, Any], Function]


BELOW_AUTOGRAD = Excluding(AUTOGRAD_KEYS.bits)


def run_below(run: Function, *args: Any) -> Any:
    """Return `run(*args)`, run with the Autograd keys excluded."""
    view = LOCAL.view
    LOCAL.view = BELOW_AUTOGRAD[view]
    try:
        return run(*args)
    finally:
        LOCAL.view = view


def below_autograd(below: Any, keyset: KeySet) -> Function:
    """Return the function that an Autograd kernel runs, below all Autograd keys.

    Tensors of several backends may add several Autograd keys, of which one is called.
    """
    run: Function = below.for_keyset(keyset & AFTER_AUTOGRAD)
    return run


def any_requires_grad(tensors: Sequence[Any]) -> bool:
    """Return True if one of the tensors requires grad; entries may be None."""
    for tensor in tensors:  # noqa: SIM110  # a generator costs more than the loop
        if tensor is not None and tensor._requires_grad:
            return True
    return False


class Host(Protocol):
    """Restores the saved results of a call that modified a view."""

    def __call__(self, saved: Any, operator: str, argument: str) -> Tensor:
        """Return a saved result as a view of the modified base."""

    def edge_of_packed(self, packed: PackedTensor) -> Edge | None:
        """Return the edge of a packed result, as a view of the modified base."""


class OperatorNode(Node):
    """The node of one call of an operator that has formulas.

    `values` are the saved values, None after release. `host` restores saved results
    where the call modified a view. The generated kernels create a node without
    `__init__`.
    """

    __slots__ = ("derivatives", "host", "plan", "values")

    def __init__(
        self,
        next_edges: list[Edge | None],
        derivatives: Derivatives,
        plan: GradientPlan,
    ) -> None:
        # Written without `super().__init__`: every recorded call creates a node.
        self.next_edges = next_edges
        self.metas = ()
        self.sequence = next(SEQUENCE)
        self.hooks = None
        self.derivatives = derivatives
        self.plan = plan
        self.values: list[Any] | None = None
        self.host: Host | None = None

    @property
    def operator(self) -> str:
        """Return the name of the called operator."""
        return self.derivatives.operator

    def apply(self, gradients: list[Any]) -> Gradients:
        """Run the formulas.

        Raises:
            BackwardRefused: the graph was freed, or a tensor was modified in place.
        """
        results: Gradients = self.plan.run(self, gradients)
        return results

    def release(self) -> None:
        """Release the saved values, if there are tensors among them."""
        if self.plan.holds:
            self.values = None

    def keep_results(self, results: Sequence[Any]) -> None:
        """Save the results that the formulas need, now that they have their history."""
        for spec in self.plan.results:
            result, saved = results[spec.place], None
            if result is not None:
                saved = save_output(
                    result, spec.place if result._requires_grad else None
                )
            self.values.append(saved)  # type: ignore[union-attr]  # just made
        if PACKING:
            pack_results(self)


class PackedNode(OperatorNode):
    """The node of a call that was recorded with hooks of saved tensors.

    Its values are packed; a node becomes one by a change of its class, so that other
    calls do not pay.
    """

    __slots__ = ()

    def apply(self, gradients: list[Any]) -> Gradients:
        """Unpack the saved values and run the formulas.

        Raises:
            AutogradMisuse: a hook did not return a tensor.
            BackwardRefused: the graph was freed.
        """
        node = OperatorNode(self.next_edges, self.derivatives, self.plan)
        if self.values is not None:
            node.values = [self._unpacked(each) for each in self.values]
        results: Gradients = self.plan.run(node, gradients)
        return results

    def _unpacked(self, value: Any) -> Any:
        """Return a value in the form in which nodes without hooks save it."""
        if isinstance(value, list):
            return [self._unpacked(each) for each in value]
        if not isinstance(value, PackedTensor):
            return value
        host = self.host
        if host is not None and value.number is not None and GRAD.enabled:
            tensor = value.placed_at(host.edge_of_packed(value))
        else:
            tensor = value.unpacked(self)
        return tensor, tensor._version, None


def pack_arguments(node: OperatorNode) -> None:
    """Replace the saved arguments of a node by what the hooks of the thread return."""
    if HOOKS.active is None:
        return
    operator, values = node.operator, node.values
    assert values is not None, "the values were just saved"
    for place, spec in enumerate(node.plan.arguments):
        value = values[place]
        if spec.kind == TENSOR:
            values[place] = value and packed_form(value, operator, spec.name)
        elif spec.kind == TENSORS:
            values[place] = [t and packed_form(t, operator, spec.name) for t in value]
    node.__class__ = PackedNode


def pack_results(node: OperatorNode) -> None:
    """Replace the saved results of a node by what the hooks of the thread return."""
    if HOOKS.active is None:
        return
    operator, values = node.operator, node.values
    assert values is not None, "the values were just saved"
    count = len(node.plan.arguments)
    for place, spec in enumerate(node.plan.results, count):
        value = values[place]
        values[place] = value and packed_form(value, operator, spec.name)
    node.__class__ = PackedNode


def start(
    derivatives: Derivatives,
    args: tuple[Any, ...],
    saved: Callable[[Tensor], Tensor] | None,
) -> OperatorNode:
    """Return the node of a call that writes to its first argument, with saved values.

    `saved` copies that argument; it is None if no element is written.
    """
    mask, bit = 0, 1
    edges: list[Edge | None] = []
    for place in derivatives.call.places:
        tensor = args[place]
        if tensor is not None and tensor._requires_grad:
            mask |= bit
            edges.append(edge_of(tensor))
        else:
            edges.append(None)
        bit <<= 1
    plan = derivatives.plans.get(mask) or derivatives.plan(mask)
    node = OperatorNode(edges, derivatives, plan)
    if saved is not None:
        written = args[0]
        if any(args[each.place] is written for each in plan.arguments):
            copy = saved(written)
            args = tuple([copy if each is written else each for each in args])
    node.values = plan.keep(*args)
    if PACKING:
        pack_arguments(node)
    return node


def recording(schema: Schema, derivatives: Derivatives) -> Factory:
    """Return the Autograd kernel of an operator that does not write."""
    call = derivatives.call
    conditions = tuple(_requires_grad_test(schema, place) for place in call.places)
    single = derivatives.results == 1 and not derivatives.returns_list
    fixed = tuple(
        (place, _requires_grad_test(schema, place))
        for place, kind in enumerate(call.kinds)
        if kind not in (PLAIN, TENSORS) and place not in call.places
    )

    def refuse(place: int) -> NotImplementedFormula:
        return NotImplementedFormula(
            code="ConstantArgument",
            operator=call.operator,
            inputs=(call.names[place],),
        )

    def factory(below: Any, keyset: Any) -> Function:
        run = below_autograd(below, keyset)
        made = (len(call.names), call.places, conditions, fixed, call.lists, single)
        return _recorded(*made)(run, derivatives, derivatives.plans, refuse)

    return factory


def recorded_text(
    parameters: str,
    conditions: Sequence[tuple[int, str]],
    node: str,
    start: Sequence[str],
    behind: Sequence[str],
) -> list[str]:
    """Return the lines of a recorded call of `parameters`, up to its `result`.

    `conditions` are the positions of tensors, each with the expression that tests if it
    requires grad, empty for a list of tensors. `node` is the class of the node, whose
    other attributes `start` sets, by the `mask` of arguments that require grad. The
    lines `behind` the call run below Autograd too.
    """
    text, edges = ["mask = 0"], []
    for bit, (place, condition) in enumerate(conditions):
        if condition:
            text += edge_text(place, bit, condition)
            edges.append(f"e{place}")
        else:
            text.append(f"mask += {1 << bit}")
            edges.append(f"*edges_of(a{place})")
    return [
        *text,
        f"node = new({node})",
        f"node.next_edges = [{', '.join(edges)}]",
        "node.sequence, node.hooks = next(SEQUENCE), None",
        *start,
        "view = LOCAL.view",
        "LOCAL.view = BELOW[view]",
        *block("try:", [f"result = run({parameters})", *behind]),
        *block("finally:", ["LOCAL.view = view"]),
    ]


# The names that these lines refer to.
RECORDED_NAMES: dict[str, Any] = {
    **HISTORY_NAMES,
    "BELOW": BELOW_AUTOGRAD,
    "GRAD": GRAD,
    "LOCAL": LOCAL,
    "SEQUENCE": SEQUENCE,
    "any_requires_grad": any_requires_grad,
    "new": object.__new__,
}


def _finished(node: OperatorNode, results: Any) -> Any:
    """Return several results with their history; some may not have a gradient."""
    outputs = with_histories(results, node, node.derivatives.constant)
    node.keep_results(outputs)
    return outputs if isinstance(results, list) else tuple(outputs)


@template(
    "autograd kernel",
    "run, derivatives, plans, refuse",
    OperatorNode=OperatorNode,
    PACKING=PACKING,
    pack_arguments=pack_arguments,
    pack_results=pack_results,
    save_output=save_output,
    wrong_result=wrong_result,
    finished=_finished,
    **RECORDED_NAMES,
)
def _recorded(
    count: int,
    places: tuple[int, ...],
    conditions: tuple[str, ...],
    fixed: tuple[tuple[int, str], ...],
    lists: bool,
    single: bool,
) -> list[str]:
    parameters = numbered(count)
    condition = "" if lists else "a{0} is not None and a{0}._requires_grad"
    text = recorded_text(
        parameters,
        [(place, condition.format(place)) for place in places],
        "OperatorNode",
        [
            "plan = plans.get(mask) or derivatives.plan(mask)",
            "node.derivatives, node.plan, node.host = derivatives, plan, None",
            f"node.values = plan.keep({parameters})",
            "if PACKING: pack_arguments(node)",
        ],
        [],
    )
    asked = [*conditions, *(test for _, test in fixed)]
    end = [
        "if result is None: return None",
        "dtype = result._dtype",
        *result_text(),
        "    if plan.results:",
        "        node.values.append(save_output(result, 0))",
        "        if PACKING: pack_results(node)",
        "return result",
    ]
    return block(
        f"def kernel({parameters}):",
        [
            f"if not ({' or '.join(asked)}) or not GRAD.enabled:",
            f"    return run({parameters})",
            *(f"if {test}: raise refuse({place})" for place, test in fixed),
            *text,
            *block("try:", end if single else ["return finished(node, result)"]),
            "except (AttributeError, IndexError, TypeError) as error:",
            "    raise wrong_result(derivatives.returns, result, error) from None",
        ],
    )


def grad_switch(
    schema: Schema, places: Sequence[int], record: Callable[[Function], Function]
) -> Factory:
    """Return the kernel that runs `record(run)` if an argument at `places` requires
    grad.
    """
    condition = " or ".join([_requires_grad_test(schema, place) for place in places])

    def factory(below: Any, keyset: Any) -> Function:
        run = below_autograd(below, keyset)
        return _grad_switch(len(schema.arguments), condition, False)(run, record(run))

    return factory


def tolerant_grad_switch(schema: Schema, run: Function, record: Function) -> Function:
    """Return a kernel that calls `record` if a tensor may require grad, or else `run`.

    For user-defined operators: a tensor without the attribute counts as requiring grad.
    """
    places = tensor_places(schema)
    if not places:
        return run
    if schema.is_vararg:
        return record
    condition = " or ".join([_requires_grad_test(schema, place) for place in places])
    return _grad_switch(len(schema.arguments), condition, True)(run, record)


def tensor_places(schema: Schema) -> list[int]:
    """Return the positions of arguments that are tensors, or lists of them."""
    kinds = [kind_of(argument.type) for argument in schema.arguments]
    return [place for place, kind in enumerate(kinds) if kind != PLAIN]


def _requires_grad_test(schema: Schema, place: int) -> str:
    """Return the expression that is true if the argument requires grad."""
    kind = schema.arguments[place].type
    if kind_of(kind) == TENSORS:
        return f"any_requires_grad(a{place})"
    if str(kind) == "Tensor":
        return f"a{place}._requires_grad"
    return f"(a{place} is not None and a{place}._requires_grad)"


@template(
    "autograd kernel",
    "run, record",
    GRAD=GRAD,
    any_requires_grad=any_requires_grad,
)
def _grad_switch(count: int, condition: str, doubts: bool) -> list[str]:
    parameters, ask = numbered(count), []
    if doubts:
        ask = [f"try: asked = {condition}", "except AttributeError: asked = True"]
        condition = "asked"
    record = f"if ({condition}) and GRAD.enabled: return record({parameters})"
    return block(
        f"def kernel({parameters}):", [*ask, record, f"return run({parameters})"]
    )


def refusing_out(schema: Schema) -> Factory:
    """Return the Autograd kernel of an out= form, which refuses tensors with grad."""
    places, operator = tensor_places(schema), str(schema.name)

    def refuse(*args: Any) -> Any:
        for place in places:
            if any_requires_grad([*tensors_in([args[place]])]):
                argument = schema.arguments[place].name
                raise WriteRefused(
                    code="OutRequiresGrad", operator=operator, argument=argument
                )
        raise AssertionError("the kernel has found one that requires grad")

    return grad_switch(schema, places, lambda run: refuse)
