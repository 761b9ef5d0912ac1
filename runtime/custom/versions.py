"""The kernel at ADInplaceOrView: what a custom operator writes to, and its views.

True only here: exact versions.  A function may write to its argument by any number of
operators, or through NumPy by none; for those outside it is one call, and the version
of every written tensor is one higher after it, no more and no less.

Rules:
- a call that raises leaves versions as the function left them: what it wrote, it wrote;
  one that is interrupted raises them, as NumPy may have written;
- an inference tensor is written to in inference mode only;
- a result that shares the memory of an argument, as its schema says, follows it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.autograd.kernels import EXHAUSTED, made_again, untracked
from runtime.autograd.modes import GRAD
from runtime.autograd.saved import TRACKED, is_inference
from runtime.autograd.views import SEVERAL, follow
from runtime.custom.results import annotated, shares
from runtime.dispatch.kernel import Kernel, linked
from runtime.generated import block, numbered, template
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType
from runtime.tensors.arrays import claimed
from runtime.tensors.keys import PYTHON
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


def version_kernel(schema: Schema) -> Kernel | None:
    """The kernel of an operator that writes, or returns views; None for all others."""
    if schema.is_mutable:
        return linked(_counting, "versions")
    if any(result.alias is not None for result in schema.returns):
        return linked(_following, "views")
    return None


def _counting(below: Any, keyset: Any) -> Function:
    schema: Schema = below.schema
    operator = str(schema.name)
    written = tuple(i for i, a in enumerate(schema.arguments) if a.is_write)
    if all(schema.arguments[place].type == TensorType for place in written):
        kernel: Function = _once(len(schema.arguments), written)(below.run, operator)
        return kernel
    return _each_once(below.run, operator, written)


def _each_once(run: Function, operator: str, places: tuple[int, ...]) -> Function:
    """For lists of tensors, and for tensors that may be absent."""

    def kernel(*arguments: Any) -> Any:
        written = _flat([arguments[place] for place in places])
        for tensor in written:
            if is_inference(tensor):
                untracked(tensor, operator)
        storages = [tensor.storage() for tensor in written]
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
                    storage.version = version

    return kernel


@template(
    "custom versions",
    "run, operator",
    EXHAUSTED=EXHAUSTED,
    TRACKED=TRACKED,
    claimed=claimed,
    untracked=untracked,
)
def _once(count: int, written: tuple[int, ...]) -> list[str]:
    given, lines = numbered(count), []
    for i in written:
        lines += [
            f"if a{i}.key_bits & TRACKED != TRACKED: untracked(a{i}, operator)",
            f"s{i} = (a{i}._place or claimed(a{i}))[0]",
            f"v{i} = s{i}.version + 1",
        ]
    # No call: there may be no frame left.
    raised = "; ".join([f"s{i}.version = v{i}" for i in written])
    lines += [
        "try:",
        f"    result = run({given})",
        "except EXHAUSTED:",
        f"    {raised}",
        "    raise",
        "except Exception: raise",
        "except BaseException:",
        f"    {raised}",
        "    raise",
        raised,
        "return result",
    ]
    return block(f"def kernel({given}):", lines)


def _following(below: Any, keyset: Any) -> Function:
    run, schema = below.run, below.schema
    operator, count = str(schema.name), len(schema.returns)
    origins = [annotated(schema, place) for place in range(count)]

    def kernel(*arguments: Any) -> Any:
        result = run(*arguments)
        if not (GRAD.enabled or GRAD.follows):
            return result
        results = [result] if count == 1 else result
        made = SEVERAL if len(_flat(results)) > 1 else ""
        for places, each in zip(origins, results, strict=False):
            sources = [(s, at) for at in sorted(places) for s in _flat([arguments[at]])]
            for view in _flat([each]):
                for source, at in sources:
                    if shares(view, source):
                        replay = None
                        if source is arguments[at] and source.key_bits & PYTHON:
                            replay = made_again(below.operator, schema, at, *arguments)
                        follow(source, view, made, operator, replay)
                        break
        return result

    return kernel


def _flat(values: Sequence[Any]) -> list[Tensor]:
    """The tensors among values, and in lists of them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _flat(value)
    return found
