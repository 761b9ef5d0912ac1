"""Plans: the values that a recorded call saves for its gradient, and their use.

`Derivatives` hold the autograd data of one operator: its formulas and the facts of its
schema. They create one *plan* for each set of arguments that require grad, when such a
call is recorded first: a call saves only the values that a needed gradient uses.

A formula is a function; the names of its parameters determine the saved values:

| parameter                     | value                                               |
|-------------------------------|-----------------------------------------------------|
| `grad`, `grad0`, `grad1`, ... | the gradient of the first, second, ... result       |
| `grads`                       | the gradients of all results, None for a missing one|
| the name of an argument       | its value; a tensor is saved with its version       |
| `result`, `result0`, ...      | a result of the call                                |
| an argument's name + `_shape` | its shape, or the shapes of a list of tensors       |
| ... `_dtype`, `_device`       | its dtype, its device                               |
| ... `_layout`                 | its shape, strides and offset                       |
| `needs`                       | the needed gradients, for a joint formula           |

A trailing underscore avoids names that Python reserves (`input_`). A formula of one
argument returns its gradient; a formula of a list of tensors returns a list of
gradients; a joint formula, whose key is the tuple of all arguments that have gradients,
returns a tuple of them.

A plan is two functions, generated from the parameters:

    def keep(a0, a1, a2):                       def run(node, grads):
        return [saved(a1)]                          v0, = node.values
                                                    return [f0(grads[0], given(v0))]

A tensor is saved with the version of its elements. When it is restored, the version
must be the same, or the gradient would be computed from other values:

| tensor    | saved as                       | restored as                            |
|-----------|--------------------------------|----------------------------------------|
| an input  | the tensor itself, its version | the tensor itself                      |
| an output | an alias without history, its  | the alias; where the backward pass is  |
|           | version, the output's number   | recorded, one with the node's history  |

Rules:
- formulas call operators, so that they can be differentiated themselves; they leave
  broadcasting and dtypes to the engine;
- an output is not saved itself: it refers to its node, so node and tensor would form a
  cycle that reference counts never free; an output without gradient does not refer to
  a node, and is saved itself;
- the generated code contains the bodies of `save` and `restore` inline: both are on the
  path of every recorded call.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from everyorder.runtime.autograd.grad_edges import TRACKED, detached_alias, with_history
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.node import Node
from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.errors.autograd import BackwardRefused, WriteRefused
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.schema.binding import returner
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import Type, is_dispatch_type
from everyorder.runtime.tensors.tensor import Tensor

SavedInput = tuple[Tensor, int]
SavedOutput = tuple[Tensor, int, int | None]


def save(tensor: Tensor, operator: str) -> SavedInput:
    """Return the saved form of an input.

    Raises:
        WriteRefused: the input is an inference tensor.
    """
    if tensor.key_bits & TRACKED != TRACKED:
        raise WriteRefused(
            code="InferenceTensorUsed",
            use="saved",
            operator=operator,
            shape=tensor.shape,
        )
    place = tensor._place
    return tensor, 0 if place is None else place[0].version


def restore(saved: SavedInput | SavedOutput, operator: str, argument: str) -> Tensor:
    """Return a saved input, or the alias of a saved output.

    Raises:
        BackwardRefused: the tensor was modified in place.
    """
    tensor = saved[0]
    place = tensor._place
    if saved[1] != (0 if place is None else place[0].version):
        raise modified(saved, operator, argument)
    return tensor


def save_output(tensor: Tensor, number: int | None) -> SavedOutput:
    """Return the saved form of an output; `number` is None if it has no gradient."""
    if number is None:
        # Such an output does not refer to its node, so it can be saved itself.
        place = tensor._place
        return tensor, 0 if place is None else place[0].version, None
    alias = detached_alias(tensor)
    return alias, alias._place[0].version, number  # type: ignore[index]  # an alias has a place


def restore_output(saved: SavedOutput, node: Node, argument: str) -> Tensor:
    """Return a saved output of `node`.

    Raises:
        BackwardRefused: the tensor was modified in place.
    """
    alias, number = restore(saved, node.operator, argument), saved[2]
    if number is None or not GRAD.enabled:
        return alias
    return with_history(detached_alias(alias), node, number)


def modified(
    saved: SavedInput | SavedOutput, operator: str, argument: str
) -> BackwardRefused:
    """Return the error for a saved tensor that was written to."""
    tensor, version = saved[:2]
    return BackwardRefused(
        code="SavedTensorModified",
        operator=operator,
        argument=argument,
        shape=tensor.shape,
        dtype=str(tensor.dtype),
        expected=version,
        found=tensor._version,
    )


Formula = Callable[..., Any]
Formulas = Mapping[str | tuple[str, ...], Formula]

# The ways of saving and restoring a value.
PLAIN, TENSOR, TENSORS, RESULT = range(4)
# The greatest number of results, and of formulas, of an operator.
MOST = 10


@dataclass(frozen=True, slots=True)
class Saved:
    """One saved value: its argument or result, its kind, and its name in errors."""

    kind: int
    place: int
    name: str
    read: str = ""


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """The functions that save values and compute gradients for a set of arguments.

    `keep(*arguments)` returns the saved arguments as a list; the saved results are
    appended to it. `run(node, gradients)` returns a gradient for each edge.
    """

    arguments: tuple[Saved, ...]
    results: tuple[Saved, ...]
    keep: Callable[..., list[Any]]
    run: Callable[[Any, list[Any]], Any]
    # True if tensors are saved: other values need not be released.
    holds: bool


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The facts of an operator that determine a plan.

    `kinds` are the kinds of the arguments; `places` the positions of the arguments that
    have gradients; `lists` is True if the only one of them is a list; `mask` the needed
    ones.
    """

    operator: str
    names: tuple[str, ...]
    kinds: tuple[int, ...]
    places: tuple[int, ...]
    lists: bool
    mask: int


def plan_of(call: RecordedCall, formulas: Formulas) -> GradientPlan:
    """Return the plan of a call; a pure function of both arguments."""
    edges = [call.names[place] for place in call.places]
    needed_names = [name for bit, name in enumerate(edges) if call.mask >> bit & 1]
    chosen = []
    for key, formula in formulas.items():
        if {*needed_names} & {*((key,) if isinstance(key, str) else key)}:
            chosen.append((key, formula))
    needed = [name for _, formula in chosen for name in parameters_of(formula)]
    saved_by_name = {name: _saved(call, name) for name in dict.fromkeys(needed)}
    arguments = {n: s for n, s in saved_by_name.items() if s and s.kind != RESULT}
    results = {n: s for n, s in saved_by_name.items() if s and s.kind == RESULT}
    values = [*arguments.values(), *results.values()]
    variables = {saved.name: f"x{place}" for place, saved in enumerate(values)}
    needs = tuple(name in needed_names for name in edges)
    calls: dict[str, str] = {}
    for place, (key, formula) in enumerate(chosen):
        written = ", ".join(
            variables.get(name) or _gradient(name) for name in parameters_of(formula)
        )
        if isinstance(key, str):
            calls[key] = f"f{place}({written})"
        else:
            assert [*key] == edges, "a joint formula is for all gradients, in order"
            calls[""] = f"f{place}({written})"
    if "" in calls or call.lists:
        returned = next(iter(calls.values()))
    else:
        returned = f"[{', '.join(calls.get(name, 'None') for name in edges)}]"
    keep = _keep(len(call.names), tuple(arguments.values()))
    run = _run(tuple(values), returned)
    formulas_used = tuple(formula for _, formula in chosen)
    return GradientPlan(
        tuple(arguments.values()),
        tuple(results.values()),
        keep(call.operator),
        run(call.operator, formulas_used, needs),
        any(each.kind != PLAIN for each in values),
    )


@template("autograd plan", "operator", TRACKED=TRACKED, save=save)
def _keep(count: int, arguments: tuple[Saved, ...]) -> list[str]:
    items = ", ".join(map(_saved_expression, arguments))
    checks = [
        f"if a{place} is not None and a{place}.key_bits & TRACKED != TRACKED: "
        f"save(a{place}, operator)"
        for place in [saved.place for saved in arguments if saved.kind == TENSOR]
    ]
    return block(f"def keep({numbered(count)}):", [*checks, f"return [{items}]"])


def _saved_expression(saved: Saved) -> str:
    a = f"a{saved.place}"
    if saved.kind == TENSOR:
        version = f"0 if {a}._place is None else {a}._place[0].version"
        return f"None if {a} is None else ({a}, {version})"
    if saved.kind == TENSORS:
        return f"[None if t is None else save(t, operator) for t in {a}]"
    return saved.read.format(a)


@template(
    "autograd plan",
    "operator, formulas, needs",
    GRAD=GRAD,
    BackwardRefused=BackwardRefused,
    HandlerError=HandlerError,
    modified=modified,
    restore=restore,
    restore_output=restore_output,
)
def _run(values: tuple[Saved, ...], returned: str) -> list[str]:
    targets = "".join(f"v{place}, " for place in range(len(values)))
    text = [
        "values = node.values",
        "if values is None:",
        "    raise BackwardRefused(code='GraphFreed', operator=operator)",
        *([f"{targets}= values"] if targets else []),
    ]
    for place, saved in enumerate(values):
        v, x = f"v{place}", f"x{place}"
        name = repr(saved.name)
        if saved.kind == TENSOR:
            text += [f"if {v} is None: {x} = None", *_unmodified(v, x, name)]
        elif saved.kind == TENSORS:
            text.append(f"{x} = [t and restore(t, operator, {name}) for t in {v}]")
        elif saved.kind == RESULT:
            text += [
                f"if {v} is None:",
                "    raise HandlerError(",
                f"        code='UndefinedResult', operator=operator, result={name}",
                "    )",
                "if node.host is not None:",
                f"    {x} = node.host({v}, operator, {name})",
                "elif GRAD.enabled:",
                f"    {x} = restore_output({v}, node, {name})",
                *_unmodified(v, x, name),
            ]
        else:
            text.append(f"{x} = {v}")
    called = [place for place in range(MOST) if f"f{place}(" in returned]
    return [
        *[f"f{place} = formulas[{place}]" for place in called],
        *block("def run(node, grads):", [*text, f"return {returned}"]),
    ]


def _unmodified(saved: str, value: str, name: str) -> list[str]:
    """Return the lines of `restore`, for use after an `if`."""
    return [
        "else:",
        f"    {value} = {saved}[0]; place = {value}._place",
        f"    if {saved}[1] != (0 if place is None else place[0].version):",
        f"        raise modified({saved}, operator, {name})",
    ]


def _gradient(name: str) -> str:
    """Return the expression for a parameter that is not saved."""
    if name in ("needs", "grads"):
        return name
    return f"grads[{int(name[4:] or 0)}]"


def parameters_of(formula: Formula) -> tuple[str, ...]:
    """Return the names of the parameters of a formula."""
    code = formula.__code__
    return tuple(
        name.removesuffix("_") for name in code.co_varnames[: code.co_argcount]
    )


def _saved(call: RecordedCall, name: str) -> Saved | None:
    """Return how to save a parameter; None for gradients and `needs`, not saved."""
    if name in call.names:
        place = call.names.index(name)
        return Saved(call.kinds[place], place, name, "{}")
    if name == "needs" or (name.startswith("grad") and name[4:] in _GRADS):
        return None
    if name.startswith("result") and name[6:] in _NUMBERS:
        return Saved(RESULT, int(name[6:] or 0), name)
    argument, _, what = name.rpartition("_")
    assert argument in call.names, f"{call.operator}: what is {name}?"
    place = call.names.index(argument)
    several = what == "shape" and call.kinds[place] == TENSORS
    return Saved(PLAIN, place, name, _READERS["shapes" if several else what])


_NUMBERS = ("", *map(str, range(MOST)))
_GRADS = ("s", *_NUMBERS)

# Properties of an argument, and the expressions that read them.
_READERS = {
    "shape": "{}.shape",
    "shapes": "tuple([t.shape for t in {}])",
    "dtype": "{}.dtype",
    "device": "{}.device",
    "layout": "({0}.shape, {0}.strides, {0}.offset)",
}


@dataclass(frozen=True, slots=True, eq=False)
class Derivatives:
    """The formulas of one operator, and the facts of its schema.

    `call` has an empty mask; `results` counts the results; `constant` are the results
    without gradient whatever their dtype; `returns` checks the result of a kernel.
    """

    call: RecordedCall
    formulas: Formulas
    results: int
    returns_list: bool
    constant: frozenset[int]
    returns: Callable[[Any], Any]
    plans: dict[int, GradientPlan] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """Return the operator's name."""
        return self.call.operator

    def plan(self, mask: int) -> GradientPlan:
        """Return the plan for the arguments in `mask` (bits, by place) that require
        grad.
        """
        plan = self.plans.get(mask)
        if plan is None:
            new_plan = plan_of(replace(self.call, mask=mask), self.formulas)
            plan = self.plans.setdefault(mask, new_plan)
        return plan


def wrong_result(
    returns: Callable[[Any], Any], result: Any, error: Exception
) -> Exception:
    """Return the error for a result that its schema does not allow, or else `error`.

    Results of kernels are not checked before the outermost call; `error` is the
    exception that the unchecked result caused.
    """
    try:
        returns(result)
    except EveryorderError as wrong:
        return wrong
    return error


def derivatives_of(
    schema: Schema, formulas: Formulas, constant: frozenset[int] = frozenset()
) -> Derivatives:
    """Return the derivatives of an operator with formulas for some of its arguments."""
    arguments = schema.arguments
    names = tuple(argument.name for argument in arguments)
    with_gradient = {
        name for key in formulas for name in ((key,) if isinstance(key, str) else key)
    }
    unknown = with_gradient - {*names}
    assert not unknown, f"{schema.name} has no arguments {unknown}"
    places = tuple(i for i, name in enumerate(names) if name in with_gradient)
    kinds = tuple(kind_of(argument.type) for argument in arguments)
    lists = any(kinds[place] == TENSORS for place in places)
    assert not lists or len(places) == 1, "edges of a list are counted by its length"
    returned = [kind_of(result.type) for result in schema.returns]
    return Derivatives(
        call=RecordedCall(str(schema.name), names, kinds, places, lists, 0),
        formulas=formulas,
        results=len(returned),
        returns_list=returned == [TENSORS],
        constant=constant,
        returns=returner(schema),
    )


_KINDS = {"tensor": TENSOR, "list": TENSORS, None: PLAIN}


def kind_of(type: Type) -> int:  # noqa: A002  # the field's own word
    """Return how an argument of `type` is saved: `PLAIN`, `TENSOR` or `TENSORS`."""
    return _KINDS[is_dispatch_type(type)]
