"""Kernels of custom operators: direct calls of a function, with checks of its results.

A function is called with every argument by position, keyword-only ones by name, as
kernels receive them. If the results contain no tensors, the function is the kernel;
else generated code wraps the function, compiled once for all operators with similar
arguments. A single fresh tensor costs two tests:

    def kernel(a0, a1):
        result = function(a0, a1)
        try:
            if (
                result._place is None
                and result._flat.base is None
                and result is not a0
            ):
                return result
            if is_disjoint(result, (a0,)):
                return result
        except AttributeError:
            pass
        look(result, (a0, a1))
        return result

Rules:
- a function that cannot be called so is refused when it is registered, not when it is
  called;
- a result is new, unless the schema annotates it:

| the result is annotated       | it must be                                          |
|-------------------------------|-----------------------------------------------------|
| not at all                    | a tensor that does not share memory                 |
| with the set of a written     | that argument itself                                |
| argument                      |                                                     |
| with the set of an argument   | another tensor, which may share that one's memory   |
| that is not written to        |                                                     |

- a tensor that was never viewed, and owns its array, does not share memory; only for
  other tensors are storages and addresses compared.

Source of the table: custom operators of upstream 2.13, which compare storages only;
here two storages on one NumPy array are detected as well.

Other kernels follow from the schema:

| at key           | the kernel                                                        |
|------------------|-------------------------------------------------------------------|
| Meta             | refuses by name, until `register_fake` is used; does nothing for  |
|                  | an operator that only writes to its arguments                     |
| BackendSelect    | for an operator without tensors: selects the backend of its       |
|                  | argument `device`, the CPU if that is None                        |
| AutocastCPU, ... | casts tensors of the device, of a floating type other than        |
|                  | float64, to one dtype, in lists too; the operator then runs       |
|                  | without autocast, and the casts are not cached                    |
| ADInplaceOrView  | keeps versions exact, and registers views                         |

A fake kernel may request sizes that depend on elements (`get_ctx`). Sizes are numbers
in this runtime, so they are unknown without elements; while `runtime.custom.opcheck`
checks an operator, it takes these sizes from the operator's real results.

A result that shares the memory of an argument, as its schema allows, follows it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from keyword import iskeyword
from math import inf
from typing import Any

from everyorder.runtime.autograd.autocast import (
    CASTABLE,
    DEVICES,
    cast_to,
    casting,
    dtype_served,
)
from everyorder.runtime.autograd.grad_edges import SEVERAL, follow, tensors_in
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import TENSOR, TENSORS, kind_of
from everyorder.runtime.autograd.inplace import bumping_once, replay_of
from everyorder.runtime.autograd.recording import tensor_places
from everyorder.runtime.base.codegen import block, numbered, template
from everyorder.runtime.dispatch.kernel import Kernel, describe, direct, linked
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.errors.custom import DefinitionRefused, MissingFake
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema.call_errors import shortened
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import WILDCARD
from everyorder.runtime.schema.types import (
    DeviceType,
    TensorType,
    holds_tensors,
    unwrap_optional,
)
from everyorder.runtime.tensors.keys import PYTHON, backend_select
from everyorder.runtime.tensors.shape import span
from everyorder.runtime.tensors.tensor import Tensor

Function = Callable[..., Any]


def kernel_of(function: Function, schema: Schema) -> Kernel:
    """Return the kernel of a function for the operator of `schema`.

    Raises:
        DefinitionRefused: the function cannot be called according to the schema.
    """
    check_fit(function, schema)
    name = describe(function)
    arguments, start = schema.arguments, schema.kwarg_only_start
    passed = tuple(
        _by_name(argument.name, place) if place >= start else f"a{place}"
        for place, argument in enumerate(arguments)
    )
    if not any(holds_tensors(each.type) for each in schema.returns):
        if start == len(arguments):
            return direct(function, name)
        return direct(_kernel(passed, False, None)(function, None), name)
    kinds = [kind_of(argument.type) for argument in arguments]
    tensors = tuple(place for place, kind in enumerate(kinds) if kind == TENSOR)
    only = schema.returns[0] if len(schema.returns) == 1 else None
    # A list of tensors must be searched for the result, so it has no fast test.
    plain = only is not None and only.type == TensorType and only.alias is None
    fresh = tensors if plain and TENSORS not in kinds else None
    return direct(
        _kernel(passed, True, fresh)(function, ResultCheck(schema, name)), name
    )


def check_fit(function: Any, schema: Schema) -> None:
    """Check that the function accepts the arguments of its operator.

    A function without a signature (a builtin, a ufunc) is accepted.

    Raises:
        DefinitionRefused: it does not accept them.
    """
    from inspect import (
        isasyncgenfunction,
        iscoroutinefunction,
        isgeneratorfunction,
        signature,
    )

    if not callable(function):
        raise _unfit(function, schema, "it cannot be called")
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        raise _unfit(function, schema, "it is `async`, so that a call does not run it")
    if isgeneratorfunction(function):
        raise _unfit(
            function, schema, "it has a `yield`, so that a call does not run it"
        )
    try:
        parameters = signature(function)
    except (TypeError, ValueError):
        return
    start = schema.kwarg_only_start
    named = {argument.name: None for argument in schema.arguments[start:]}
    try:
        parameters.bind(*[None] * start, **named)
    except TypeError as error:
        raise _unfit(function, schema, str(error)) from None


def _unfit(function: object, schema: Schema, fault: str) -> DefinitionRefused:
    return DefinitionRefused(
        code="UnfitKernel",
        operator=str(schema.name),
        function=str(getattr(function, "__name__", shortened(function))),
        fault=fault,
        schema=str(schema),
    )


class ResultCheck:
    """The check of the results of one kernel of one operator."""

    __slots__ = ("_kernel", "_names", "_schema", "_tied", "_views", "_written")

    def __init__(self, schema: Schema, kernel: str) -> None:
        self._schema = schema
        self._kernel = kernel
        self._names = tuple(argument.name for argument in schema.arguments)
        # In the form in which results are compared with them.
        self._written = frozenset(
            f"its argument `{argument.name}`"
            for argument in schema.arguments
            if argument.is_write
        )
        # For each result: the argument that it must be, and those that it may share.
        self._tied = tuple(
            _written_origin(schema, at) for at in range(len(schema.returns))
        )
        self._views = tuple(
            frozenset(self._names[place] for place in origin_places(schema, at))
            for at in range(len(schema.returns))
        )

    def __call__(self, result: Any, arguments: Sequence[Any]) -> None:
        """Check the results of a call.

        Values that are not tensors are left to the conversion of results.

        Raises:
            KernelError: a result shares memory, or is not the argument that it must be.
        """
        count = len(self._schema.returns)
        results = [result] if count == 1 else result
        if not isinstance(results, (tuple, list)) or len(results) != count:
            return
        tensors = [*named_tensors(self._names, arguments)]
        before: list[tuple[str, Tensor]] = []
        for place, each in enumerate(results):
            tied = self._tied[place]
            if tied is not None:
                if each is not arguments[tied]:
                    raise self._other(_label(count, place), tied)
                continue
            views = self._views[place]
            for name, tensor in named_tensors([_label(count, place)], [each]):
                self._compare(name, tensor, tensors, views)
                for other, earlier in before:
                    if not views and shares(tensor, earlier):
                        raise self._aliased(name, tensor, other, earlier)
                if not views:
                    before.append((name, tensor))

    def _compare(
        self,
        name: str,
        tensor: Tensor,
        tensors: list[tuple[str, Tensor]],
        views: frozenset[str],
    ) -> None:
        for other, argument in tensors:
            allowed = other.partition("[")[0] in views
            if argument is tensor or (not allowed and shares(tensor, argument)):
                raise self._aliased(name, tensor, f"its argument `{other}`", argument)

    def _aliased(
        self, name: str, tensor: Tensor, other: str, with_: Tensor
    ) -> KernelError:
        return KernelError(
            code="AliasedResult",
            operator=str(self._schema.name),
            kernel=self._kernel,
            result=name,
            other=other,
            same=tensor is with_,
            schema=str(self._schema),
            written=other in self._written,
        )

    def _other(self, name: str, argument: int) -> KernelError:
        return KernelError(
            code="OtherResult",
            operator=str(self._schema.name),
            kernel=self._kernel,
            result=name,
            argument=self._names[argument],
            schema=str(self._schema),
        )


def is_disjoint(result: Tensor, tensors: Sequence[Any]) -> bool:
    """Return True if a result certainly shares no memory with the tensors.

    None among the tensors is skipped.

    Raises:
        AttributeError: the elements are not in arrays of the host.
    """
    owner = _owner(result)
    for tensor in tensors:  # a generator costs more than the loop
        if tensor is not None and (tensor is result or _owner(tensor) is owner):
            return False
    return True


def shares(one: Tensor, other: Tensor) -> bool:
    """Return True if two tensors are one, have one storage, or share memory."""
    if one is other:
        return True
    place, place_of_other = one._place, other._place
    if place and place_of_other and place[0] is place_of_other[0]:
        return True
    if one.device != other.device:
        return False
    try:
        if _owner(one) is not _owner(other):
            return False
    except AttributeError:
        pass
    start, end = _extent(one)
    start_of_other, end_of_other = _extent(other)
    return start < end_of_other and start_of_other < end


def _owner(tensor: Tensor) -> Any:
    """Return the array that owns the memory; arrays of two owners are disjoint.

    Raises:
        AttributeError: the owner is not a NumPy array.
    """
    place = tensor._place
    array: Any = tensor._flat if place is None else place[0].array
    base = array.base
    while base is not None:
        array, base = base, base.base
    return array


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Return the addresses of the first element and after the last; (0, 0) if empty."""
    start = tensor.data_ptr()
    if not start or not tensor.numel():
        return 0, 0
    return start, start + span(tensor.shape, tensor.strides) * tensor.itemsize


def named_tensors(
    names: Sequence[str], values: Iterable[Any], *, dicts: bool = False
) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors among values, and in lists (and dicts) of them, with names."""
    for name, value in zip(names, values, strict=False):
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, (list, tuple)):
            inner = [f"{name}[{place}]" for place in range(len(value))]
            yield from named_tensors(inner, value, dicts=dicts)
        elif dicts and isinstance(value, dict):
            inner = [f"{name}[{key!r}]" for key in value]
            yield from named_tensors(inner, value.values(), dicts=True)


def _label(count: int, place: int) -> str:
    return "a result" if count == 1 else f"result {place + 1}"


def origin_places(schema: Schema, result: int) -> frozenset[int]:
    """Return the positions of the arguments whose memory a result may share."""
    sets = schema.returns[result].sets_after
    return frozenset(
        place
        for place, argument in enumerate(schema.arguments)
        if sets & argument.sets_after or WILDCARD in sets
    )


def _written_origin(schema: Schema, result: int) -> int | None:
    """Return the written argument that a result must be, or None."""
    for place in sorted(origin_places(schema, result)):
        argument = schema.arguments[place]
        single = argument.type == TensorType == schema.returns[result].type
        if single and argument.is_write:
            return place
    return None


@template("custom operator", "function, look", is_disjoint=is_disjoint)
def _kernel(
    passed: tuple[str, ...], looks: bool, fresh: tuple[int, ...] | None
) -> list[str]:
    """Return the lines of a kernel that checks its result, if `looks` is true.

    `fresh` are the positions of tensors with which the result is compared first, if
    that is sufficient for most results.
    """
    parameters = numbered(len(passed))
    body = [f"result = function({', '.join(passed)})"]
    if fresh is not None:
        compared = "".join([f"a{place}, " for place in fresh])
        others = "".join([f" and result is not a{place}" for place in fresh])
        body += [
            "try:",
            f"    if result._place is None and result._flat.base is None{others}:",
            "        return result",
            f"    if is_disjoint(result, ({compared})):",
            "        return result",
            "except AttributeError:",
            "    pass",
        ]
    if looks:
        body.append(f"look(result, ({parameters}{',' if passed else ''}))")
    return block(f"def kernel({parameters}):", [*body, "return result"])


def _by_name(name: str, place: int) -> str:
    # Schemas allow keywords as names, which only a dictionary can pass.
    return f"**{{{name!r}: a{place}}}" if iskeyword(name) else f"{name}=a{place}"


def first_fake(schema: Schema) -> Kernel:
    """Return the fake kernel of an operator without `register_fake`."""
    returned = _written_results(schema)
    if returned is None:
        operator, text = str(schema.name), str(schema)

        def missing(*arguments: Any) -> Any:
            raise MissingFake(operator=operator, schema=text)

        return direct(missing, "missing_fake")
    places = returned

    def nothing(*arguments: Any) -> Any:
        results = tuple([arguments[place] for place in places])
        return results[0] if len(results) == 1 else results or None

    return direct(nothing, "writes_only")


def _written_results(schema: Schema) -> list[int] | None:
    """Return the written arguments that are the results; None if any result is not
    one.
    """
    if not schema.is_mutable:
        return None
    written = []
    for result in range(len(schema.returns)):
        places = [
            p for p in origin_places(schema, result) if schema.arguments[p].is_write
        ]
        if len(places) != 1 or schema.returns[result].type != TensorType:
            return None
        written += places
    return written


# Sizes that do not occur in samples, so that a dimension can be identified: primes.
UNLIKELY = (104_729, 104_743, 104_759, 104_761, 104_773, 104_779, 104_789, 104_801)


class DynamicSizes:
    """The sizes for a fake kernel, in the order of its requests."""

    def __init__(self, known: tuple[int, ...] = UNLIKELY) -> None:
        self.known = known
        # The bounds of each size, from the fake kernel.
        self.bounds: list[tuple[int, float]] = []


class _CurrentCheck(threading.local):
    drawn: DynamicSizes | None = None


_CURRENT = _CurrentCheck()


class FakeContext:
    """The context of fake kernels; see `get_ctx`."""

    __slots__ = ()

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:  # noqa: A002  # upstream's names
        """Return a size that depends on the elements, between `min` and `max`.

        Raises:
            MissingFake: `opcheck` is not comparing the kernel with the real one.
        """
        drawn = _CURRENT.drawn
        if drawn is None or len(drawn.bounds) == len(drawn.known):
            raise MissingFake(
                code="SizeNotKnown", most=0 if drawn is None else len(drawn.known)
            )
        drawn.bounds.append((min, inf if max is None else max))
        return drawn.known[len(drawn.bounds) - 1]


def get_ctx() -> FakeContext:
    """Return the context from which a fake kernel requests sizes."""
    return FakeContext()


@contextmanager
def dynamic_sizes(drawn: DynamicSizes) -> Iterator[DynamicSizes]:
    """Supply the fake kernels of this thread with these sizes."""
    before, _CURRENT.drawn = _CURRENT.drawn, drawn
    try:
        yield drawn
    finally:
        _CURRENT.drawn = before


def takes_tensors(schema: Schema) -> bool:
    """Return True if a call has tensors that select the backend."""
    return bool(tensor_places(schema))


def selecting(schema: Schema) -> Kernel:
    """Return the BackendSelect kernel for an operator without tensors.

    Raises:
        DefinitionRefused: there is no `device` argument.
    """
    for place, argument in enumerate(schema.arguments):
        kind = unwrap_optional(argument.type)
        if argument.name == "device" and kind == DeviceType:
            return linked(backend_select(place), "backend_select")
    raise DefinitionRefused(
        code="NoDeviceArgument", operator=str(schema.name), schema=str(schema)
    )


def casting_to(device: str, dtype: DType | str) -> tuple[DispatchKey, Kernel]:
    """Return the autocast key and kernel.

    Raises:
        AutogradMisuse: the device or the dtype is not supported.
    """
    target = dtype_served(device, dtype, CASTABLE, ", ", optional=False)
    assert target is not None, "none is refused"

    def cast(arguments: tuple[Any, ...]) -> list[Any]:
        return [cast_to(each, target, device, keeps=False) for each in arguments]

    return DEVICES[device][0], linked(casting(cast), f"autocast_to_{target.name}")


def version_kernel(schema: Schema) -> Kernel | None:
    """Return the kernel of an operator that writes or returns views; else None."""
    if schema.is_mutable:
        return linked(bumping_once, "versions")
    if any(result.alias is not None for result in schema.returns):
        return linked(_following, "views")
    return None


def _following(below: Any, keyset: Any) -> Function:
    run, schema = below.run, below.schema
    operator, count = str(schema.name), len(schema.returns)
    origins = [origin_places(schema, place) for place in range(count)]

    def kernel(*arguments: Any) -> Any:
        result = run(*arguments)
        if not (GRAD.enabled or GRAD.follows):
            return result
        results = [result] if count == 1 else result
        reason = SEVERAL if len([*tensors_in(results)]) > 1 else ""
        for places, each in zip(origins, results, strict=False):
            sources = [
                (s, at) for at in sorted(places) for s in tensors_in([arguments[at]])
            ]
            for view in tensors_in([each]):
                for source, at in sources:
                    if shares(view, source):
                        replay = None
                        if source is arguments[at] and source.key_bits & PYTHON:
                            replay = replay_of(below.operator, schema, at, *arguments)
                        follow(source, view, reason, operator, replay)
                        break
        return result

    return kernel
