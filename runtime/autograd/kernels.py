"""Kernels at the keys Autograd and ADInplaceOrView, for operators of any schema.

True only here: the text of these functions.  They stand in the path of every call, so
each takes its arguments as parameters, asks what it has to, and goes on below:

    def kernel(a0, a1, a2):
        if (a0._requires_grad or a1._requires_grad) and GRAD.enabled:
            return record(a0, a1, a2)
        return run(a0, a1, a2)

Rules:
- an argument is asked only if a gradient for it can be recorded;
- what is slow is in `runtime.autograd.recording` and `runtime.autograd.inplace`;
- a text is compiled once for all operators whose arguments look alike.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from runtime.autograd.modes import GRAD
from runtime.autograd.recipe import Recipe, is_tensor, is_tensor_list, wrong_result
from runtime.autograd.saved import TRACKED
from runtime.autograd.views import TURNING, Replay, follow, is_replayed
from runtime.errors.autograd import InferenceTensorUsed, OutRequiresGrad
from runtime.errors.base import EveryorderError
from runtime.generated import numbered, template
from runtime.keys import AFTER_AUTOGRAD, KeySet
from runtime.schema.returns import returner
from runtime.schema.schema import Schema
from runtime.schema.types import is_dispatch_type
from runtime.tensors.arrays import claimed
from runtime.tensors.keys import MODED, PYTHON, inference
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]
# Makes the function of a call from what is below and the keyset; see `linked`.
Factory = Callable[[Any, Any], Function]


def below_autograd(below: Any, keyset: KeySet) -> Function:
    """What a kernel at an Autograd key runs: what is below all of these keys.

    Tensors of several backends may bring several, of which one is called.
    """
    run: Function = below.at(keyset & AFTER_AUTOGRAD)
    return run


def recording(
    schema: Schema, places: Sequence[int], slow: Callable[[Function], Function]
) -> Factory:
    """At Autograd: `slow(run)` where one of the arguments at `places` requires grad."""

    def factory(below: Any, keyset: Any) -> Function:
        make = _recording(len(schema.arguments), _asked(schema, places))
        run = below_autograd(below, keyset)
        return make(run, slow(run))

    return factory


def refusing_out(schema: Schema) -> Factory:
    """At Autograd, of an out= form: nothing may require grad."""
    arguments = schema.arguments
    places = tuple(
        place
        for place, argument in enumerate(arguments)
        if is_tensor(argument.type) or is_tensor_list(argument.type)
    )
    names, operator = [argument.name for argument in arguments], str(schema.name)

    def slow(run: Function) -> Function:
        def refuse(*args: Any) -> Any:
            for place in places:
                value = args[place]
                tensors = value if isinstance(value, list) else [value]
                if any_requires_grad(tensors):
                    raise OutRequiresGrad(operator=operator, argument=names[place])
            raise AssertionError("the kernel has found one that requires grad")

        return refuse

    return recording(schema, places, slow)


def bumping(schema: Schema) -> Factory:
    """At ADInplaceOrView: the versions of what was written to, after the call.

    A call that is refused leaves them; one that is interrupted may have written.
    """
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_write)
    operator = str(schema.name)

    def factory(below: Any, keyset: Any) -> Function:
        return _bumping(len(schema.arguments), written)(below.run, operator)

    return factory


def following(schema: Schema, made: str) -> Factory:
    """At ADInplaceOrView, of a view: the result is noted as a view of the first."""
    several = is_tensor_list(schema.returns[0].type)
    operator, returns = str(schema.name), returner(schema)

    def factory(below: Any, keyset: Any) -> Function:
        make = _following(len(schema.arguments), several, operator in TURNING)
        again = partial(made_again, below.operator, schema, 0)
        return make(below.run, made, operator, returns, again)

    return factory


def made_again(
    operator: Callable[[], Any], schema: Schema, place: int, *values: Any
) -> Replay:
    """What makes a view of another origin, as a call with these values made one.

    The origin is the value at `place`.
    """
    # Lists are the kernel's own, which may change them.
    kept = [[*each] if isinstance(each, list) else each for each in values]
    start = schema.kwarg_only_start
    names = [argument.name for argument in schema.arguments[start:]]

    def replay(origin: Tensor) -> Tensor:
        given = [*kept[:place], origin, *kept[place + 1 :]]
        named = dict(zip(names, given[start:], strict=True))
        view: Tensor = operator().call(*given[:start], **named)
        return view

    return replay


def slow_path(recipe: Recipe, record: Callable[[Function, Recipe], Function]) -> Any:
    """The second parameter of `recording` for an operator with a recipe."""
    return lambda run: record(run, recipe)


def any_requires_grad(tensors: Sequence[Any]) -> bool:
    """Whether one of the tensors requires grad; None is none."""
    for tensor in tensors:  # noqa: SIM110  # a generator costs more than the loop
        if tensor is not None and tensor._requires_grad:
            return True
    return False


# What may come anywhere, and finds no frame left for whoever handles it.
EXHAUSTED = (RecursionError, MemoryError)


def untracked(tensor: Tensor, operator: str) -> None:
    """Whether a tensor without tracking may be written to.

    Raises `InferenceTensorUsed` outside of inference mode.
    """
    if not inference.active:
        raise InferenceTensorUsed(use="modified", operator=operator, shape=tensor.shape)


def _asked(schema: Schema, places: Sequence[int]) -> str:
    """The condition that one of the arguments at `places` requires grad."""
    asked = []
    for place in places:
        kind = schema.arguments[place].type
        if is_tensor_list(kind):
            asked.append(f"any_requires_grad(a{place})")
        elif str(kind) == "Tensor":
            asked.append(f"a{place}._requires_grad")
        else:
            asked.append(f"(a{place} is not None and a{place}._requires_grad)")
    return " or ".join(asked)


@template(
    "autograd kernel",
    "run, record",
    GRAD=GRAD,
    any_requires_grad=any_requires_grad,
)
def _recording(count: int, asked: str) -> list[str]:
    given = numbered(count)
    return [
        f"def kernel({given}):",
        f"    if ({asked}) and GRAD.enabled:",
        f"        return record({given})",
        f"    return run({given})",
    ]


def careful(schema: Schema, run: Function, record: Function) -> Function:
    """`record` where a tensor may require grad; `run` where none does.

    For operators of others: a tensor that does not say goes to `record`.
    """
    places = [i for i, a in enumerate(schema.arguments) if is_dispatch_type(a.type)]
    if not places:
        return run
    if schema.is_vararg:
        return record
    return _careful(len(schema.arguments), _asked(schema, places))(run, record)


@template(
    "autograd kernel",
    "run, record",
    GRAD=GRAD,
    any_requires_grad=any_requires_grad,
)
def _careful(count: int, asked: str) -> list[str]:
    given = numbered(count)
    return [
        f"def kernel({given}):",
        "    try:",
        f"        asked = {asked}",
        "    except AttributeError:",
        "        asked = True",
        "    if asked and GRAD.enabled:",
        f"        return record({given})",
        f"    return run({given})",
    ]


def storages_text(written: tuple[int, ...]) -> list[str]:
    """The lines that take the storages of arguments that are written to: `s0`, ..."""
    lines = []
    for i in written:
        lines += [
            f"if a{i}.key_bits & TRACKED != TRACKED: untracked(a{i}, operator)",
            f"s{i} = (a{i}._place or claimed(a{i}))[0]",
        ]
    return lines


# What these lines name, and what goes through a call that writes.
WRITING_NAMES: dict[str, Any] = {
    "EXHAUSTED": EXHAUSTED,
    "TRACKED": TRACKED,
    "claimed": claimed,
    "untracked": untracked,
}


@template(
    "autograd kernel",
    "run, operator",
    EveryorderError=EveryorderError,
    MODED=MODED,
    PYTHON=PYTHON,
    **WRITING_NAMES,
)
def _bumping(count: int, written: tuple[int, ...]) -> list[str]:
    given = numbered(count)
    # No call: there may be no frame left.
    raised = "; ".join(f"s{i}.version += 1" for i in written)
    handled = " or ".join(f"a{i}.key_bits & PYTHON" for i in written)
    return [
        f"def kernel({given}):",
        *[f"    {line}" for line in storages_text(written)],
        "    try:",
        f"        result = run({given})",
        "    except EXHAUSTED:",
        f"        {raised}",
        "        raise",
        "    except EveryorderError: raise",
        "    except Exception:",
        # What Python handles has raised the versions of what it wrote itself.
        f"        if not (MODED or {handled}): {raised}",
        "        raise",
        "    except BaseException:",
        f"        {raised}",
        "        raise",
        # It may have got another storage.
        *(f"    (a{i}._place or (s{i},))[0].version += 1" for i in written),
        "    return result",
    ]


@template(
    "autograd kernel",
    "run, made, operator, returns, again",
    GRAD=GRAD,
    PYTHON=PYTHON,
    follow=follow,
    is_replayed=is_replayed,
    wrong_result=wrong_result,
)
def _following(count: int, several: bool, turns: bool) -> list[str]:
    given = numbered(count)
    # Strides say nothing of a view in another dtype, nor of the views of one.
    asked = "" if turns else " if a0.key_bits & PYTHON or is_replayed(a0) else None"
    each = "for view in result: " if several else "view = result; "
    return [
        f"def kernel({given}):",
        f"    result = run({given})",
        "    if GRAD.enabled or GRAD.follows:",
        f"        replay = again({given}){asked}",
        "        try:",
        f"            {each}follow(a0, view, made, operator, replay)",
        "        except (AttributeError, TypeError) as error:",
        "            raise wrong_result(returns, result, error) from None",
        "    return result",
    ]
