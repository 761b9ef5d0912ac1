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

A result that shares the memory of an argument, as its schema says, follows it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from runtime.autograd.autocast import CASTABLE, DEVICES, cast_to, casting
from runtime.autograd.history import SEVERAL, follow, tensors_in
from runtime.autograd.modes import GRAD
from runtime.autograd.versions import bumping_once, made_again
from runtime.custom.kernel import annotated, shares
from runtime.dispatch.kernel import Kernel, direct, linked
from runtime.errors.autograd import AutogradMisuse
from runtime.errors.custom import DefinitionRefused, MissingFake
from runtime.keys import DispatchKey, KeySet, key_of_device
from runtime.schema.codes import DType
from runtime.schema.schema import Schema
from runtime.schema.types import (
    DeviceType,
    TensorType,
    is_dispatch_type,
    unwrap_optional,
)
from runtime.tensors.keys import PYTHON

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


def casting_to(device: str, dtype: DType | str) -> tuple[DispatchKey, Kernel]:
    """The key and the kernel.  Raises `AutogradMisuse` for what is not served."""
    name = dtype.name if isinstance(dtype, DType) else DType.SYNONYMS.get(dtype, dtype)
    served = [each.name for each in CASTABLE]
    if device not in DEVICES or name not in served:
        known = " and ".join(DEVICES), ", ".join(served)
        raise AutogradMisuse(
            code="AutocastRefused", device=device, dtype=name, known=known
        )
    wanted = DType.named(name)

    def cast(arguments: tuple[Any, ...]) -> list[Any]:
        return [cast_to(each, wanted, device, keeps=False) for each in arguments]

    return DEVICES[device][0], linked(casting(cast), f"autocast_to_{name}")


def version_kernel(schema: Schema) -> Kernel | None:
    """The kernel of an operator that writes, or returns views; None for all others."""
    if schema.is_mutable:
        return linked(bumping_once, "versions")
    if any(result.alias is not None for result in schema.returns):
        return linked(_following, "views")
    return None


def _following(below: Any, keyset: Any) -> Function:
    run, schema = below.run, below.schema
    operator, count = str(schema.name), len(schema.returns)
    origins = [annotated(schema, place) for place in range(count)]

    def kernel(*arguments: Any) -> Any:
        result = run(*arguments)
        if not (GRAD.enabled or GRAD.follows):
            return result
        results = [result] if count == 1 else result
        made = SEVERAL if len([*tensors_in(results)]) > 1 else ""
        for places, each in zip(origins, results, strict=False):
            sources = [
                (s, at) for at in sorted(places) for s in tensors_in([arguments[at]])
            ]
            for view in tensors_in([each]):
                for source, at in sources:
                    if shares(view, source):
                        replay = None
                        if source is arguments[at] and source.key_bits & PYTHON:
                            replay = made_again(below.operator, schema, at, *arguments)
                        follow(source, view, made, operator, replay)
                        break
        return result

    return kernel
