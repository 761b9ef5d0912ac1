"""Versions: the kernels at ADInplaceOrView, below those of autograd.

What an operator writes to gets a higher version after the call, so that a gradient
which needs the old values is refused and not wrong; a view that it makes is noted as
one of its argument.  One of `core` has a kernel of its own here; any other operator
comes to the fallback, which asks its schema.

Rules:
- a call that raises leaves versions as they are; one that is interrupted, or has no
  frame left, raises them, as nobody knows what it has written;
- an inference tensor is written to in inference mode only;
- an operator that writes nothing pays nothing: its bound kernel is the one below.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from runtime.autograd.history import (
    TRACKED,
    TURNING,
    follow,
    is_inference,
    is_replayed,
    tensors_in,
)
from runtime.autograd.modes import GRAD
from runtime.autograd.node import Replay
from runtime.autograd.plan import is_tensor_list, wrong_result
from runtime.autograd.recording import Factory, Function
from runtime.dispatch.kernel import linked
from runtime.dispatch.library import Library
from runtime.dispatch.registration import Registration
from runtime.errors.autograd import WriteRefused
from runtime.errors.base import EveryorderError
from runtime.generated import block, numbered, template
from runtime.keys import KeySet
from runtime.schema.binding import returner
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType
from runtime.tensors.arrays import claimed
from runtime.tensors.keys import MODED, PYTHON, inference
from runtime.tensors.tensor import Tensor

# What may come anywhere, and finds no frame left for whoever handles it.
EXHAUSTED = (RecursionError, MemoryError)


def untracked(tensor: Tensor, operator: str) -> None:
    """Whether a tensor without tracking may be written to.

    Raises `WriteRefused` outside of inference mode.
    """
    if not inference.active:
        raise WriteRefused(
            code="InferenceTensorUsed",
            use="modified",
            operator=operator,
            shape=tensor.shape,
        )


def bumping(schema: Schema) -> Factory:
    """At ADInplaceOrView: the versions of what was written to, after the call.

    A call that is refused leaves them; one that is interrupted may have written.
    """
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_write)
    operator = str(schema.name)

    def factory(below: Any, keyset: Any) -> Function:
        return _bumping(len(schema.arguments), written, False)(below.run, operator)

    return factory


def bumping_once(below: Any, keyset: Any) -> Function:
    """The same for a function that may write by any number of operators, or by none.

    For those outside it is one call: every version is one higher after it, no more and
    no less.  One that raises leaves versions as the function left them.
    """
    schema: Schema = below.schema
    operator = str(schema.name)
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_write)
    if all(schema.arguments[place].type == TensorType for place in written):
        return _bumping(len(schema.arguments), written, True)(below.run, operator)
    return _bumping_lists(below.run, operator, written, True)


@template(
    "autograd kernel",
    "run, operator",
    EXHAUSTED=EXHAUSTED,
    EveryorderError=EveryorderError,
    MODED=MODED,
    PYTHON=PYTHON,
    TRACKED=TRACKED,
    claimed=claimed,
    untracked=untracked,
)
def _bumping(count: int, written: tuple[int, ...], once: bool) -> list[str]:
    given = numbered(count)
    # No call: there may be no frame left.
    if once:
        raised = "; ".join([f"s{i}.version = v{i}" for i in written])
        refused, after = ["except Exception: raise"], [raised]
    else:
        raised = "; ".join([f"s{i}.version += 1" for i in written])
        handled = " or ".join([f"a{i}.key_bits & PYTHON" for i in written])
        refused = [
            "except EveryorderError: raise",
            "except Exception:",
            # What Python handles has raised the versions of what it wrote itself.
            f"    if not (MODED or {handled}): {raised}",
            "    raise",
        ]
        # It may have got another storage.
        after = [f"(a{i}._place or (s{i},))[0].version += 1" for i in written]
    lines = []
    for i in written:
        lines += [
            f"if a{i}.key_bits & TRACKED != TRACKED: untracked(a{i}, operator)",
            f"s{i} = (a{i}._place or claimed(a{i}))[0]",
            *([f"v{i} = s{i}.version + 1"] if once else []),
        ]
    lines += [
        *block("try:", [f"result = run({given})"]),
        *block("except EXHAUSTED:", [raised, "raise"]),
        *refused,
        *block("except BaseException:", [raised, "raise"]),
        *after,
        "return result",
    ]
    return block(f"def kernel({given}):", lines)


def install_version_fallback(library: Library) -> Registration:
    """Register the fallback, in a library of `_`.

    Raises `Conflict`; a dispatcher that starts with the built-in one has it
    released first (`runtime.dispatch.dispatcher.release`).
    """
    return library.fallback(linked(_bumping_any, "versions"), "ADInplaceOrView")


def _bumping_any(below: Any, keyset: KeySet) -> Callable[..., Any]:
    run, schema = below.run, below.schema
    places = [i for i, argument in enumerate(schema.arguments) if argument.is_write]
    if not places:
        return run  # type: ignore[no-any-return]  # the bare function below
    return _bumping_lists(run, str(schema.name), places, False)


def _bumping_lists(
    run: Function, operator: str, places: Sequence[int], once: bool
) -> Function:
    """For lists of tensors, and for tensors that may be absent."""

    def kernel(*arguments: Any) -> Any:
        written = [*tensors_in([arguments[place] for place in places])]
        for tensor in written:
            if is_inference(tensor):
                untracked(tensor, operator)
        storages = [(tensor._place or claimed(tensor))[0] for tensor in written]
        versions = [storage.version + 1 for storage in storages]
        over = True
        try:
            return run(*arguments)
        except EXHAUSTED:
            raise
        except Exception:
            over = False
            raise
        finally:
            if over:
                for storage, version in zip(storages, versions, strict=True):
                    storage.version = version if once else storage.version + 1

    return kernel


def following(schema: Schema, made: str) -> Factory:
    """At ADInplaceOrView, of a view: the result is noted as a view of the first."""
    several = is_tensor_list(schema.returns[0].type)
    operator, returns = str(schema.name), returner(schema)

    def factory(below: Any, keyset: Any) -> Function:
        make = _following(len(schema.arguments), several, operator in TURNING)
        again = partial(made_again, below.operator, schema, 0)
        return make(below.run, made, operator, returns, again)

    return factory


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
