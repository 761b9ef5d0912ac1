"""Recording calls of tensors that make one tensor, which most operators are.

True only here: the whole kernel at Autograd as a text, compiled once for all operators
whose arguments look alike:

    def kernel(a0, a1):
        r0 = a0._requires_grad                # likewise a1
        if not (r0 or r1) or not GRAD.enabled: return run(a0, a1)
        if r0: mask += 1; e0 = ...            # the edge that leads to it
        context = ...
        node = ...
        LOCAL.view = ...                      # below Autograd
        result = run(a0, a1)
        setup_context(ctx=context, inputs=(a0, a1), output=result)
        LOCAL.view = view
        result._history = History(node)
        return result

Rules: as `runtime.custom.recording`, where everything goes that is not so plain: a
tensor that does not say whether it requires grad, an undefined one, and results that
`setup_context` has marked.
"""

from collections.abc import Callable
from typing import Any

from runtime.autograd.context import Context, FunctionNode
from runtime.autograd.history import DIFFERENTIABLE, History
from runtime.autograd.modes import GRAD
from runtime.autograd.node import SEQUENCE
from runtime.autograd.recording import BELOW_AUTOGRAD
from runtime.autograd.saved import (
    TRACKED,
    SavedInput,
    SavedOutput,
    save,
    save_output,
)
from runtime.autograd.views import EDGE_NAMES, edge_text
from runtime.custom.formula import Formula
from runtime.custom.recording import (
    TENSOR,
    ended,
    finished,
    recorded_lists,
    setup_call,
)
from runtime.generated import block, numbered, template
from runtime.keys import LOCAL
from runtime.schema.returns import returner
from runtime.schema.schema import Schema
from runtime.schema.types import OptionalType
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


class CallContext(Context):
    """The `ctx` of one call, which says nothing until it is told something.

    Made without `__init__`: only what differs from the values here is set.
    """

    dirty: tuple[Tensor, ...] = ()
    constant: tuple[Tensor, ...] = ()
    materializes = True
    to_save: tuple[Tensor | None, ...] = ()
    _given_back: Any = None


class CallNode(FunctionNode):
    """The node of one call, made without `__init__`: the text of a kernel sets it."""

    __slots__ = ()

    def keep_with(self, result: Tensor) -> None:
        """Take over what `setup_context` saved, the result perhaps among it.

        Raises `InferenceTensorUsed`.
        """
        context = self.context
        kept: list[Any] = []
        for tensor in context.to_save:
            # As `save` does, where nothing is special.
            if (
                tensor is None
                or tensor is result
                or tensor.key_bits & TRACKED != TRACKED
            ):
                kept.append(self._special(tensor, result))
            else:
                place = tensor._place
                kept.append((tensor, 0 if place is None else place[0].version))
        self._saved = kept
        # Kept by the node from now on: with the context a result would be a circle.
        context.to_save = ()

    def _special(
        self, tensor: Tensor | None, result: Tensor
    ) -> SavedInput | SavedOutput | None:
        if tensor is None:
            return None
        if tensor is result:
            return save_output(tensor, 0 if tensor._requires_grad else None)
        return save(tensor, self.operator)


def recorded_tensors(
    run: Function,
    schema: Schema,
    backward: Function,
    setup: str,
    setup_context: Function | None,
    kinds: tuple[int, ...],
) -> Function:
    """The kernel where no argument is a list and the result is one tensor.

    `setup` is how `setup_context` is called, "" if there is none; see
    `runtime.custom.gradient`.
    """
    arguments, start = schema.arguments, len(kinds)
    places = tuple(
        (place, isinstance(arguments[place].type, OptionalType))
        for place, kind in enumerate(kinds)
        if kind == TENSOR
    )
    if not places:
        return run
    named = tuple(argument.name for argument in arguments[start:])
    kernel: Function = _recording(places, start, setup, named)(
        run,
        recorded_lists(run, schema, backward, setup, setup_context, kinds),
        str(schema.name),
        Formula(schema, backward, [kind or None for kind in kinds], (1,)),
        _Needs(start, tuple(place for place, _ in places)),
        tuple(range(len(places))),
        setup_context,
        returner(schema),
    )
    return kernel


class _Needs(dict[int, tuple[bool, ...]]):
    """Mask -> which positional arguments require grad, made when it is first met."""

    def __init__(self, count: int, places: tuple[int, ...]) -> None:
        self._count = count
        self._places = places

    def __missing__(self, mask: int) -> tuple[bool, ...]:
        needs = [False] * self._count
        for bit, place in enumerate(self._places):
            needs[place] = bool(mask >> bit & 1)
        found = self[mask] = tuple(needs)
        return found


@template(
    "custom recording",
    "run, others, operator, formula, needs, slots, setup_context, returns",
    BELOW=BELOW_AUTOGRAD,
    CallContext=CallContext,
    CallNode=CallNode,
    DIFFERENTIABLE=DIFFERENTIABLE,
    GRAD=GRAD,
    History=History,
    LOCAL=LOCAL,
    NOTHING=[],
    SEQUENCE=SEQUENCE,
    Tensor=Tensor,
    ended=ended,
    finished=finished,
    new=object.__new__,
    **EDGE_NAMES,
)
def _recording(
    places: tuple[tuple[int, bool], ...],
    start: int,
    setup: str,
    named: tuple[str, ...],
) -> list[str]:
    """The text of `kernel`: `start` arguments are positional, `named` by name only.

    `places` are those of tensors, each with whether it may be absent.
    """
    given = numbered(start + len(named))
    asked = [
        f"r{place} = {f'a{place} is not None and ' if absent else ''}"
        f"a{place}._requires_grad"
        for place, absent in places
    ]
    edges = ", ".join([f"e{place}" for place, _ in places])
    text = [
        *block("try:", asked),
        "except AttributeError:",
        f"    return others({given}) if GRAD.enabled else run({given})",
        f"if not ({' or '.join([f'r{place}' for place, _ in places])}) or"
        " not GRAD.enabled:",
        f"    return run({given})",
        "mask = 0",
    ]
    for bit, (place, _) in enumerate(places):
        text += edge_text(place, bit, f"r{place}")
    text += [
        "context = new(CallContext)",
        "context.function = operator",
        "context.needs_input_grad = needs[mask]",
        "node = new(CallNode)",
        f"node.next_edges = [{edges}]",
        "node.sequence, node.hooks = next(SEQUENCE), None",
        "node.function, node.context = formula, context",
        f"node._places, node._arguments = slots, {len(places)}",
        "node._saved = NOTHING",
        "view = LOCAL.view",
        "LOCAL.view = BELOW[view]",
        "try:",
        f"    result = run({given})",
        "    if not isinstance(result, Tensor): result = returns(result)",
    ]
    if setup:
        inputs = "".join([f"a{place}, " for place in range(start)])
        values = [f"a{start + place}" for place in range(len(named))]
        text.append(f"    {setup_call(setup, f'({inputs})', named, values)}")
    text += [
        "finally:",
        "    LOCAL.view = view",
        "try:",
        "    dtype, history = result._dtype, result._history",
        "except AttributeError:",
        "    return finished(node, [result])[0]",
    ]
    if setup:
        text += [
            "if context.dirty or context.constant:",
            "    return finished(node, [result])[0]",
        ]
    text += [
        "if dtype in DIFFERENTIABLE:",
        "    if history is None and not result._requires_grad:",
        "        result._history = History(node)",
        "        result._requires_grad = True",
        "    else: result = ended(node, 0, result)",
        "node.metas = ((result.shape, dtype, result.device),)",
        *(["if context.to_save: node.keep_with(result)"] if setup else ()),
        "return result",
    ]
    return block(f"def kernel({given}):", text)
