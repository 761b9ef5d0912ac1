"""Recording: what a call at an Autograd key leaves in the graph.

True only here: the path from a call whose arguments require grad to outputs that have a
history.  The kernels of `runtime.autograd.kernels` come here only if something requires
grad and the thread records.

How it works: the edges of the arguments are taken and what the formulas need of them is
saved; the call goes on below, with the Autograd keys excluded for the thread, so that
kernels below record nothing; the results get the node as their history.

Rules:
- a node is made before the call and given to the results after it: a call that raises
  leaves nothing;
- a result that cannot have a gradient (integers, `Recipe.constant`) gets no history;
- a result that has a history is an argument or belongs to somebody: it is shared;
- None, which a handler in Python may return, is a result without history.
"""

from collections.abc import Callable
from typing import Any

from runtime.autograd.history import DIFFERENTIABLE, History
from runtime.autograd.node import SEQUENCE, Edge, Gradients, Meta, Node
from runtime.autograd.plan import Plan
from runtime.autograd.recipe import Recipe, wrong_result
from runtime.autograd.saved import save_output, sharing
from runtime.autograd.views import EDGE_NAMES, edge_of, edge_text
from runtime.generated import block, numbered, template
from runtime.keys import AUTOGRAD_KEYS, LOCAL
from runtime.keys.local import View, view_of
from runtime.tensors.tensor import Tensor


class _Below(dict[View, View]):
    """A thread's view of the keys -> the same with the Autograd keys excluded."""

    def __missing__(self, view: View) -> View:
        found = view_of(view.included, view.excluded | AUTOGRAD_KEYS.bits)
        self[view] = found
        return found


BELOW_AUTOGRAD = _Below()


class OperatorNode(Node):
    """The node of one call of an operator that has formulas.

    `values` is what was saved, None once it was let go.  `host` is the node that the
    gradients come through where the call modified a view.
    """

    __slots__ = ("host", "plan", "recipe", "values")

    def __init__(
        self, next_edges: list[Edge | None], recipe: Recipe, plan: Plan
    ) -> None:
        # Spelled out: a node is made for every call that is recorded.
        self.next_edges = next_edges
        self.metas = ()
        self.sequence = next(SEQUENCE)
        self.hooks = None
        self.recipe = recipe
        self.plan = plan
        self.values: list[Any] | None = None
        self.host: Callable[[Any, str, str], Tensor] | None = None

    @property
    def operator(self) -> str:
        """The operator as it was called."""
        return self.recipe.operator

    def apply(self, gradients: list[Any]) -> Gradients:
        """Run the formulas.  Raises `GraphFreed`, and `SavedTensorModified`."""
        found: Gradients = self.plan.run(self, gradients)
        return found

    def release(self) -> None:
        """Let go of what was saved, if there are tensors among it."""
        if self.plan.holds:
            self.values = None


def start(recipe: Recipe, args: tuple[Any, ...], saved: Any = None) -> OperatorNode:
    """The node of a call, with the edges and the saved arguments.

    `saved` copies the first argument for that, where it is about to be written to.
    """
    mask, bit = 0, 1
    edges: list[Edge | None] = []
    call = recipe.call
    if call.lists:
        mask = 1
        for tensor in args[call.places[0]]:
            wanted = tensor is not None and tensor._requires_grad
            edges.append(edge_of(tensor) if wanted else None)
    else:
        for place in call.places:
            tensor = args[place]
            if tensor is not None and tensor._requires_grad:
                mask |= bit
                edges.append(edge_of(tensor))
            else:
                edges.append(None)
            bit <<= 1
    plan = recipe.plans.get(mask) or recipe.plan(mask)
    node = OperatorNode(edges, recipe, plan)
    if saved is not None:
        written = args[0]
        if any(args[each.place] is written for each in plan.arguments):
            copy = saved(written)
            args = tuple([copy if each is written else each for each in args])
    node.values = plan.keep(*args)
    return node


def meta_of(tensor: Tensor) -> Meta:
    """Shape, dtype and device."""
    return tensor.shape, tensor.dtype, tensor.device


def recorded(run: Callable[..., Any], recipe: Recipe) -> Callable[..., Any]:
    """The function of a call of which some argument requires grad."""
    single = recipe.results == 1 and not recipe.returns_list
    end = finish if single else _finish_all
    call = recipe.call
    if call.lists:

        def record(*args: Any) -> Any:
            node = start(recipe, args)
            view = LOCAL.view
            LOCAL.view = BELOW_AUTOGRAD[view]
            try:
                result = run(*args)
            finally:
                LOCAL.view = view
            try:
                return end(node, result)
            except (AttributeError, IndexError, TypeError) as error:
                raise wrong_result(recipe.returns, result, error) from None

        return record
    make = _recording(len(call.names), call.places)
    return make(run, recipe, recipe.plans, end)


def below_text(lines: list[str]) -> list[str]:
    """Lines of a text, run below Autograd."""
    return [
        "view = LOCAL.view",
        "LOCAL.view = BELOW[view]",
        *block("try:", lines),
        "finally:",
        "    LOCAL.view = view",
    ]


# What the texts of recording kernels name: `below_text`, and the edges of arguments.
RECORDING_NAMES: dict[str, Any] = {
    "BELOW": BELOW_AUTOGRAD,
    "LOCAL": LOCAL,
    **EDGE_NAMES,
}


@template(
    "autograd recording",
    "run, recipe, plans, end",
    OperatorNode=OperatorNode,
    wrong_result=wrong_result,
    **RECORDING_NAMES,
)
def _recording(count: int, places: tuple[int, ...]) -> list[str]:
    """`record` for tensors at certain places: no loop, no list of arguments."""
    given, edges = numbered(count), ", ".join([f"e{place}" for place in places])
    body = ["mask = 0"]
    for bit, place in enumerate(places):
        a = f"a{place}"
        body += edge_text(place, bit, f"{a} is not None and {a}._requires_grad")
    body += [
        "plan = plans.get(mask) or recipe.plan(mask)",
        f"node = OperatorNode([{edges}], recipe, plan)",
        f"node.values = plan.keep({given})",
        *below_text([f"result = run({given})"]),
        "try:",
        "    return end(node, result)",
        "except (AttributeError, IndexError, TypeError) as error:",
        "    raise wrong_result(recipe.returns, result, error) from None",
    ]
    return block(f"def record({given}):", body)


def finish(node: OperatorNode, result: Tensor | None) -> Tensor | None:
    """Give the one result of a call its history, if there is one."""
    if result is None:
        return None
    dtype = result.dtype
    if dtype not in DIFFERENTIABLE:
        return result
    history = result._history
    if history is None:
        result._history = History(node)
    elif history.view is not None and history.node is None:
        history.node = node
    else:
        result = sharing(result)
        result._history = History(node)
    result._requires_grad = True
    node.metas = ((result.shape, dtype, result.device),)
    if node.plan.results:
        node.values.append(save_output(result, 0))  # type: ignore[union-attr]  # just made
    return result


def _finish_all(node: OperatorNode, results: Any) -> Any:
    """Give several results their history; some may have no gradient."""
    constant = node.recipe.constant
    given = list(results)
    for number, result in enumerate(given):
        if result is None or number in constant:
            continue
        if result.dtype not in DIFFERENTIABLE:
            continue
        history = result._history
        if history is not None and history.view is not None and history.node is None:
            history.node, history.number = node, number
        else:
            if history is not None:
                result = given[number] = sharing(result)
            result._history = History(node, number)
        result._requires_grad = True
    node.metas = tuple([None if r is None else meta_of(r) for r in given])  # type: ignore[misc]  # no edge leads to an absent result
    for spec in node.plan.results:
        result, kept = given[spec.place], None
        if result is not None:
            output = spec.place if result._requires_grad else None
            kept = save_output(result, output)
        node.values.append(kept)  # type: ignore[union-attr]  # just made
    return given if isinstance(results, list) else tuple(given)
