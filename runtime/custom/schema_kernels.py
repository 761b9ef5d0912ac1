"""The other kernels of a custom operator: those that follow from its schema.

| at key           | the kernel                                                        |
|------------------|-------------------------------------------------------------------|
| Meta             | refuses by name, until `register_fake` is used; of an operator    |
|                  | that only writes to its arguments it does nothing                 |
| BackendSelect    | of an operator without tensors: that of its argument `device`,    |
|                  | the CPU's if that is None                                         |
| AutocastCPU, ... | casts tensors of the device, of a floating type other than        |
|                  | float64, to one dtype, in lists too; the operator then runs       |
|                  | without autocast, and the casts are not kept                      |
| ADInplaceOrView  | keeps versions exact, and notes views                             |

A fake kernel may ask for sizes that depend on elements (`get_ctx`).  Sizes are numbers
in this runtime, so that without elements nobody knows them; while an operator is
checked, by `runtime.custom.opcheck`, its real results are there, and theirs are the
sizes.

Rules of versions: a function may write to its argument by any number of operators, or
through NumPy by none; for those outside it is one call, and the version of every
written tensor is one higher after it, no more and no less.
- A call that raises leaves versions as the function left them: what it wrote, it wrote;
  one that is interrupted raises them, as NumPy may have written.
- An inference tensor is written to in inference mode only.
- A result that shares the memory of an argument, as its schema says, follows it.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

from runtime.autograd.autocast import DEVICES
from runtime.autograd.history import SEVERAL, follow, is_inference
from runtime.autograd.modes import GRAD
from runtime.autograd.versions import (
    EXHAUSTED,
    WRITING_NAMES,
    made_again,
    storages_text,
    untracked,
)
from runtime.custom.kernel import annotated, shares
from runtime.dispatch.kernel import Kernel, direct, linked
from runtime.errors.autograd import AutogradMisuse
from runtime.errors.custom import DefinitionRefused, MissingFake
from runtime.generated import block, numbered, template
from runtime.keys import AUTOCAST_KEYS, LOCAL, DispatchKey, KeySet, key_of_device
from runtime.keys.local import view_of
from runtime.operators.call import core
from runtime.schema.codes import DType
from runtime.schema.schema import Schema
from runtime.schema.types import (
    DeviceType,
    TensorType,
    is_dispatch_type,
    unwrap_optional,
)
from runtime.tensors.keys import PYTHON
from runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


def first_fake(schema: Schema) -> Kernel:
    """The kernel of an operator without a fake of its own."""
    returned = _written_results(schema)
    if returned is None:
        operator, text = str(schema.name), str(schema)

        def missing(*arguments: Any) -> Any:
            raise MissingFake(code="MissingFake", operator=operator, schema=text)

        return direct(missing, "missing_fake")
    places = returned

    def nothing(*arguments: Any) -> Any:
        results = tuple([arguments[place] for place in places])
        return results[0] if len(results) == 1 else results or None

    return direct(nothing, "writes_only")


def _written_results(schema: Schema) -> list[int] | None:
    """The arguments that are the results, if every result is one that is written to."""
    if not schema.is_mutable:
        return None
    found = []
    for result in range(len(schema.returns)):
        places = [p for p in annotated(schema, result) if schema.arguments[p].is_write]
        if len(places) != 1 or schema.returns[result].type != TensorType:
            return None
        found += places
    return found


# Sizes that no sample has, by which a dimension is known again: primes.
UNLIKELY = (104_729, 104_743, 104_759, 104_761, 104_773, 104_779, 104_789, 104_801)


class Drawn:
    """The sizes that a fake kernel gets, in the order in which it asks."""

    def __init__(self, known: tuple[int, ...] = UNLIKELY) -> None:
        self.known = known
        # What each has to lie between, as the kernel says.
        self.bounds: list[tuple[int, float]] = []


class _Current(threading.local):
    drawn: Drawn | None = None


_CURRENT = _Current()


class FakeContext:
    """What a fake kernel may ask for; see `get_ctx`."""

    __slots__ = ()

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:  # noqa: A002  # upstream's names
        """A size that depends on the elements, of `min` to `max`.

        Raises `MissingFake` but while `opcheck` compares the kernel with the real one.
        """
        drawn = _CURRENT.drawn
        if drawn is None or len(drawn.bounds) == len(drawn.known):
            raise MissingFake(
                code="SizeNotKnown", most=0 if drawn is None else len(drawn.known)
            )
        drawn.bounds.append((min, inf if max is None else max))
        return drawn.known[len(drawn.bounds) - 1]


def get_ctx() -> FakeContext:
    """For fake kernels: what makes sizes that depend on elements."""
    return FakeContext()


@contextmanager
def drawing(drawn: Drawn) -> Iterator[Drawn]:
    """Have fake kernels of this thread get these sizes."""
    before, _CURRENT.drawn = _CURRENT.drawn, drawn
    try:
        yield drawn
    finally:
        _CURRENT.drawn = before


def takes_tensors(schema: Schema) -> bool:
    """Whether a call has tensors that say which backend is meant."""
    return any(is_dispatch_type(argument.type) for argument in schema.arguments)


def selecting(schema: Schema) -> Kernel:
    """The kernel for an operator without tensors.  Raises `DefinitionRefused`."""
    for place, argument in enumerate(schema.arguments):
        kind = unwrap_optional(argument.type)
        if argument.name == "device" and kind == DeviceType:
            return linked(_factory(place), "backend_select")
    raise DefinitionRefused(
        code="NoDeviceArgument", operator=str(schema.name), schema=str(schema)
    )


def _factory(place: int) -> Callable[[Any, KeySet], Callable[..., Any]]:
    def factory(below: Any, keyset: KeySet) -> Callable[..., Any]:
        chosen: dict[str, Callable[..., Any]] = {}

        def select(*arguments: Any) -> Any:
            device = arguments[place]
            kind = "cpu" if device is None else device.type
            run = chosen.get(kind)
            if run is None:
                run = chosen[kind] = below.at(KeySet([key_of_device(kind)]))
            return run(*arguments)

        return select

    return factory


# Types that are cast, and that can be cast to.
FLOATING = ("float16", "bfloat16", "float32")


def casting(device: str, dtype: DType | str) -> tuple[DispatchKey, Kernel]:
    """The key and the kernel.  Raises `AutogradMisuse` for what is not served."""
    name = dtype.name if isinstance(dtype, DType) else DType.SYNONYMS.get(dtype, dtype)
    if device not in DEVICES or name not in FLOATING:
        known = " and ".join(DEVICES), ", ".join(FLOATING)
        raise AutogradMisuse(
            code="AutocastRefused", device=device, dtype=name, known=known
        )
    wanted = DType.named(name)

    def factory(below: Any, keyset: Any) -> Callable[..., Any]:
        run = below.run

        def kernel(*arguments: Any) -> Any:
            view = LOCAL.view
            LOCAL.view = view_of(view.included, view.excluded | AUTOCAST_KEYS.bits)
            try:
                return run(*[_cast(value, device, wanted) for value in arguments])
            finally:
                LOCAL.view = view

        return kernel

    return DEVICES[device][0], linked(factory, f"autocast_to_{name}")


def _cast(value: Any, device: str, dtype: DType) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cast(each, device, dtype) for each in value]
    if not isinstance(value, Tensor) or value.number is not None:
        return value
    fits = value.dtype.name in FLOATING and value.device.type == device
    if not fits or value.dtype is dtype:
        return value
    return core._to_copy(value, dtype=dtype)


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
        return _once(len(schema.arguments), written)(below.run, operator)
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
    **WRITING_NAMES,
)
def _once(count: int, written: tuple[int, ...]) -> list[str]:
    given = numbered(count)
    lines = storages_text(written)
    lines += [f"v{i} = s{i}.version + 1" for i in written]
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
