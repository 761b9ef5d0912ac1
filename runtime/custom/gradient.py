"""The gradient of a custom operator: an Autograd kernel built from two functions.

    def setup_context(ctx, inputs, output): ...
    def backward(ctx, *gradients): ...

How it works: if no argument requires grad, the kernel only calls the kernel below.
Otherwise the call runs below Autograd; then `setup_context` may save values of the
positional arguments (all of them, defaults filled in) and of the output, and the
results get a node. If there are keyword-only arguments, the call is `setup_context(ctx,
inputs, keyword_only_inputs, output)`, with a dictionary.

Most operators compute one tensor from tensors. For them the whole kernel is generated
code, compiled once for all operators with similar arguments:

    def kernel(a0, a1):
        r0 = a0._requires_grad                # the same for a1
        if not (r0 or r1) or not GRAD.enabled: return run(a0, a1)
        ...                                   # as `runtime.autograd.recording`
        result = run(a0, a1)
        setup_context(ctx=context, inputs=(a0, a1), output=result)
        ...
        return result

Other operators use `recorded_lists`, and so do the special cases of these: a tensor
without the attribute `_requires_grad`, an undefined one, and results that
`setup_context` has marked.

Rules:
- `backward` gets a gradient for each result, and returns one, or None, for each
  positional argument; for a list of tensors both are lists of its length, while a node
  uses flat lists only (`Formula`);
- `setup_context` is called with the names above if it accepts them, so that its
  parameters may have any order; else by position; the values that it saves are stored
  after the results have their history, as they may be results;
- a function that cannot be called so is refused when it is registered;
- a formula is for operators that return new tensors or views and do not write: tensors
  marked as dirty are refused.
"""

from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime.autograd.function import (
    FunctionCtx,
    FunctionNode,
    function_misuse,
)
from everyorder.runtime.autograd.grad_edges import (
    TRACKED,
    edges_of,
    result_text,
    with_histories,
)
from everyorder.runtime.autograd.gradient_plan import PLAIN, TENSOR, TENSORS, kind_of
from everyorder.runtime.autograd.node import Edge
from everyorder.runtime.autograd.recording import (
    RECORDED_NAMES,
    below_autograd,
    recorded_text,
    run_below,
    tolerant_grad_switch,
)
from everyorder.runtime.autograd.saved_hooks import PACKING
from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.dispatch.kernel import Kernel, linked
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.schema.binding import returner
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import OptionalType, TensorType
from everyorder.runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


def gradient_kernel(
    schema: Schema, backward: Function, setup_context: Function | None
) -> Kernel:
    """Return the kernel at Autograd.

    Raises:
        DefinitionRefused: the operator writes to an argument.
        LibraryMisuse: one of the two functions cannot be called with its arguments.
    """
    functions: dict[str, Any] = {"backward": backward, "setup_context": setup_context}
    for name, function in functions.items():
        if not callable(function) and (function is not None or name == "backward"):
            kind = type(function).__name__
            raise LibraryMisuse(
                code="WrongArgument", argument=name, expected="a function", found=kind
            )
    for argument in schema.arguments:
        if argument.is_write:
            raise DefinitionRefused(
                code="NotFunctional",
                operator=str(schema.name),
                argument=argument.name,
                schema=str(schema),
            )
    if not schema.is_varret:
        count = len(schema.returns)
        words = ["ctx", *("grad" if count == 1 else f"grad{n}" for n in range(count))]
        _check_takes("backward", backward, words)
    form = "" if setup_context is None else _form(schema, setup_context)

    def factory(below: Any, keyset: Any) -> Function:
        current: Schema = below.schema
        run = below_autograd(below, keyset)
        return _kernel(run, current, backward, form, setup_context)

    return linked(factory, "autograd")


def _form(schema: Schema, setup_context: Function) -> str:
    """Return the arguments of the call of `setup_context`, with `{}` for values.

    Raises:
        LibraryMisuse: it can be called neither by names nor by position.
    """
    words = {"ctx": "context", "inputs": "{inputs}"}
    if schema.kwarg_only_start < len(schema.arguments):
        words["keyword_only_inputs"] = "{keywords}"
    words["output"] = "result"
    fault = _unfit(setup_context, (), [*words])
    if fault is None:
        return ", ".join(f"{name}={value}" for name, value in words.items())
    _check_takes("setup_context", setup_context, [*words])
    return ", ".join(words.values())


def _check_takes(argument: str, function: Function, words: list[str]) -> None:
    """Check that the function accepts these values by position.

    Raises:
        LibraryMisuse: it does not.
    """
    fault = _unfit(function, words, ())
    if fault is not None:
        raise LibraryMisuse(
            code="WrongArgument",
            argument=argument,
            expected=f"a function that is called with ({', '.join(words)})",
            found=f"one that is not: {fault}",
        )


def _unfit(
    function: Function, values: "list[str] | tuple[()]", names: "list[str] | tuple[()]"
) -> str | None:
    """Return the reason why the function cannot be called so; None if it can.

    A function without a signature is assumed to accept values.
    """
    from inspect import signature

    try:
        parameters = signature(function)
    except (TypeError, ValueError):
        return "it does not have a signature" if names else None
    try:
        parameters.bind(*values, **dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return None


def _kernel(
    run: Function,
    schema: Schema,
    backward: Function,
    form: str,
    setup_context: Function | None,
) -> Function:
    """Return the function of a call, recorded or not.

    `form` are the arguments of `setup_context`, "" if there is none; see `_form`.
    """
    arguments, start = schema.arguments, schema.kwarg_only_start
    kinds = tuple(kind_of(argument.type) for argument in arguments[:start])
    record = recorded_lists(run, schema, backward, form, setup_context, kinds)
    single = [each.type for each in schema.returns] == [TensorType]
    if not single or TENSORS in kinds or schema.is_vararg:
        return tolerant_grad_switch(schema, run, record)
    places = tuple(
        (place, isinstance(arguments[place].type, OptionalType))
        for place, kind in enumerate(kinds)
        if kind == TENSOR
    )
    if not places:
        return run
    named = tuple(argument.name for argument in arguments[start:])
    return _recording(places, start, form, named)(
        run,
        record,
        str(schema.name),
        Formula(schema, backward, [kind or None for kind in kinds], (1,)),
        _Needs(start, tuple(place for place, _ in places)),
        tuple(range(len(places))),
        setup_context,
        returner(schema),
    )


class _Needs(dict[int, tuple[bool, ...]]):
    """A cache from a mask to the positional arguments that require grad."""

    def __init__(self, count: int, places: tuple[int, ...]) -> None:
        self._count = count
        self._places = places

    def __missing__(self, mask: int) -> tuple[bool, ...]:
        needs = [False] * self._count
        for bit, place in enumerate(self._places):
            needs[place] = bool(mask >> bit & 1)
        flags = self[mask] = tuple(needs)
        return flags


def setup_call(
    form: str, inputs: str, named: Sequence[str], values: Sequence[str]
) -> str:
    """Return the expression that calls `setup_context`, in the form of `_form`."""
    pairs = zip(named, values, strict=True)
    keywords = ", ".join(f"{name!r}: {value}" for name, value in pairs)
    return f"setup_context({form})".format(inputs=inputs, keywords=f"{{{keywords}}}")


def recorded_lists(
    run: Function,
    schema: Schema,
    backward: Function,
    setup: str,
    setup_context: Function | None,
    kinds: tuple[int, ...],
) -> Function:
    """Return the recorded call for any arguments and results; see `_kernel`."""
    operator, single = str(schema.name), len(schema.returns) == 1
    start, returns = len(kinds), returner(schema)
    named = tuple(argument.name for argument in schema.arguments[start:])
    set_up = _setting_up(setup, start, named)(setup_context) if setup else None

    def record(*args: Any) -> Any:
        needs, inputs, edges = _inputs(kinds, args)
        if not any(edges):
            return run(*args)
        context = FunctionCtx(operator, needs)
        formula = Formula(schema, backward, inputs)
        slots = tuple(range(len(edges)))
        node = FunctionNode(formula, context, edges, slots, len(slots))

        def call() -> Any:
            result = returns(run(*args))
            if set_up is not None:
                set_up(context, args, result)
            return result

        result = run_below(call)
        results = [result] if single else [*(result or ())]
        formula.outputs = _outputs(results)
        outputs = finished(node, results)
        return outputs[0] if single else tuple(outputs) or None

    return record


@template("custom recording", "setup_context")
def _setting_up(form: str, start: int, named: tuple[str, ...]) -> list[str]:
    values = [f"args[{start + place}]" for place in range(len(named))]
    call = setup_call(form, f"args[:{start}]", named, values)
    return block("def set_up(context, args, result):", [call])


def _inputs(
    kinds: tuple[int, ...], args: Sequence[Any]
) -> tuple[tuple[Any, ...], list[Any], list[Edge | None]]:
    """Return, for each positional argument: requires grad, shape, edges."""
    needs: list[Any] = []
    shapes: list[Any] = []
    edges: list[Edge | None] = []
    for kind, value in zip(kinds, args, strict=False):
        if kind == PLAIN:
            needs.append(False)
            shapes.append(None)
            continue
        value_edges = edges_of([value] if kind == TENSOR else value)
        required = tuple([edge is not None for edge in value_edges])
        needs.append(required[0] if kind == TENSOR else required)
        shapes.append(1 if kind == TENSOR else (len(value_edges),))
        edges += value_edges
    return tuple(needs), shapes, edges


def _outputs(results: Sequence[Any]) -> list[Any]:
    return [(len(each),) if isinstance(each, list) else 1 for each in results]


def finished(node: FunctionNode, results: list[Any]) -> list[Any]:
    """Return the results with their history; store the saved values in the node."""
    if node.context.dirty:
        raise function_misuse(
            node.context.function,
            "marked a tensor as dirty, but does not write to any by its schema",
            "leave mark_dirty out",
        )
    flat = [t for each in results for t in (each if isinstance(each, list) else [each])]
    marked = {id(tensor) for tensor in node.context.constant}
    constant = {number for number, t in enumerate(flat) if id(t) in marked}
    flat = with_histories(flat, node, constant)
    node.keep(flat, True)
    rest = iter(flat)
    return [
        [next(rest) for _ in each] if isinstance(each, list) else next(rest)
        for each in results
    ]


class CallNode(FunctionNode):
    """The node of one call, created without `__init__`: the generated kernel sets
    it.
    """

    __slots__ = ()

    def keep_with(self, result: Tensor) -> None:
        """Save the values from `setup_context`, which may include the result.

        Raises:
            WriteRefused: a value is an inference tensor.
        """
        context = self.context
        saved: list[Any] = []
        for number, tensor in enumerate(context.to_save):
            # The usual case of `save`.
            if (
                tensor is None
                or tensor is result
                or tensor.key_bits & TRACKED != TRACKED
                or PACKING
            ):
                output = 0 if tensor is result else None
                saved.append(self._saved_form(number, tensor, output))
            else:
                place = tensor._place
                saved.append((tensor, 0 if place is None else place[0].version))
        self._saved = saved
        # The node owns the values now: a result in the context would form a cycle.
        context.to_save = ()


@template(
    "custom recording",
    "run, others, operator, formula, needs, slots, setup_context, returns",
    CallNode=CallNode,
    FunctionCtx=FunctionCtx,
    NOTHING=[],
    Tensor=Tensor,
    finished=finished,
    **RECORDED_NAMES,
)
def _recording(
    places: tuple[tuple[int, bool], ...],
    start: int,
    setup: str,
    named: tuple[str, ...],
) -> list[str]:
    """Return the lines of `kernel`: `start` positional arguments, then the `named`
    ones.

    `places` are the positions of tensors, each with True if it may be None.
    """
    parameters = numbered(start + len(named))
    flags = [
        f"r{place} = {f'a{place} is not None and ' if absent else ''}"
        f"a{place}._requires_grad"
        for place, absent in places
    ]
    text = [
        *block("try:", flags),
        "except AttributeError:",
        f"    return others({parameters}) if GRAD.enabled else run({parameters})",
        f"if not ({' or '.join([f'r{place}' for place, _ in places])}) or"
        " not GRAD.enabled:",
        f"    return run({parameters})",
    ]
    behind = ["if not isinstance(result, Tensor): result = returns(result)"]
    if setup:
        inputs = "".join([f"a{place}, " for place in range(start)])
        values = [f"a{start + place}" for place in range(len(named))]
        behind.append(setup_call(setup, f"({inputs})", named, values))
    of_node = [
        "context = new(FunctionCtx)",
        "context.function = operator",
        "context.needs_input_grad = needs[mask]",
        "node.function, node.context = formula, context",
        f"node._places, node._arguments = slots, {len(places)}",
        "node._saved = NOTHING",
    ]
    conditions = [(place, f"r{place}") for place, _ in places]
    text += [
        *recorded_text(parameters, conditions, "CallNode", of_node, behind),
        "try:",
        "    dtype = result._dtype",
        "except AttributeError:",
        "    return finished(node, [result])[0]",
    ]
    if setup:
        text += [
            "if context.dirty or context.constant:",
            "    return finished(node, [result])[0]",
        ]
    text += [
        *result_text(),
        *(["if context.to_save: node.keep_with(result)"] if setup else ()),
        "return result",
    ]
    return block(f"def kernel({parameters}):", text)


class Formula:
    """The `backward` of one call, for a node, with flat lists of gradients.

    `inputs` are, for each positional argument, None for a plain value, 1 for a tensor,
    a list's length as a tuple; `outputs` are the same for the results.
    """

    __slots__ = ("_backward", "_schema", "inputs", "outputs")

    def __init__(
        self,
        schema: Schema,
        backward: Function,
        inputs: Sequence[Any],
        outputs: Sequence[Any] = (),
    ) -> None:
        self._schema = schema
        self._backward = backward
        self.inputs = inputs
        self.outputs = outputs

    def backward(self, context: Any, *gradients: Any) -> list[Any]:
        """Return the gradients of all tensors among the arguments, in order.

        Exceptions of `backward` propagate.

        Raises:
            KernelError: `backward` returns values that do not fit.
        """
        arguments, rest = [], list(gradients)
        for output in self.outputs:
            if isinstance(output, tuple):
                (count,) = output
                arguments.append(rest[:count])
                del rest[:count]
            else:
                arguments.append(rest.pop(0))
        returned = self._backward(context, *arguments)
        several = isinstance(returned, tuple) or (
            isinstance(returned, list) and len(self.inputs) != 1
        )
        return self._flat([*returned] if several else [returned])

    def _flat(self, results: list[Any]) -> list[Any]:
        count = len(self.inputs)
        while len(results) > count and results[-1] is None:
            results.pop()
        if len(results) != count:
            raise self._misfit(f"returned {len(results)} values, not {count}")
        flat: list[Any] = []
        for place, (shape, result) in enumerate(zip(self.inputs, results, strict=True)):
            name = self._schema.arguments[place].name
            if shape is None:
                if result is not None:
                    raise self._misfit(f"returned a gradient for `{name}`, no tensor")
            elif isinstance(shape, tuple):
                flat += self._listed(name, shape[0], result)
            else:
                flat.append(result)
        return flat

    def _listed(self, name: str, count: int, result: Any) -> list[Any]:
        if result is None:
            return [None] * count
        if not isinstance(result, (list, tuple)):
            kind = type(result).__name__
            raise self._misfit(f"returned a {kind} for the list `{name}`")
        if len(result) != count:
            fault = f"returned {len(result)} gradients for `{name}`, a list of {count}"
            raise self._misfit(fault)
        return [*result]

    def _misfit(self, fault: str) -> KernelError:
        positional = self._schema.arguments[: self._schema.kwarg_only_start]
        return KernelError(
            code="GradientStructure",
            operator=str(self._schema.name),
            fault=fault,
            arguments=tuple(argument.name for argument in positional),
        )
