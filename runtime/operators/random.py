"""Random operators: filling with random numbers, and factories of them.

True only here: what the parameters of a distribution may be.  The bits come from a
`Generator`, which counts them; without one, from the default generator.  The same
generator state gives the same integers and uniforms on every device.

Rules: on meta nothing is drawn; 16-bit floats are drawn as float32 and converted.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.backends import MODULES, table_for
from runtime.operators.factories import SEEDED, check_size, factory
from runtime.operators.plan import (
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT64,
    INTEGERS,
    Plan,
    require_dtype,
)
from runtime.operators.produce import converted, produce, write_to
from runtime.operators.structured import Written
from runtime.random import Generator, default_generator
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.elements import compute_dtype, info, real_dtype
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.tensor import Tensor

_SEEDED = ("nondeterministic_seeded",)


def generator_of(call: str, generator: object) -> Generator:
    """The generator to draw from.  Raises `WrongOption` for what is none."""
    if generator is None:
        return default_generator
    if isinstance(generator, Generator):
        return generator
    raise WrongOption(
        operator=call,
        argument="generator",
        found=f"an object of type {type(generator).__name__}",
        fits="a Generator, or None for the default one",
    )


def _check_uniform(call: str, low: float, high: float) -> None:
    if not low <= high:
        raise WrongOption(
            operator=call, argument="low", found=repr(low), fits=f"at most {high!r}"
        )


def _check_normal(call: str, mean: float, std: float) -> None:
    if not std >= 0:
        raise WrongOption(
            operator=call, argument="std", found=repr(std), fits="0 or more"
        )


def drawing(
    name: str, check: Callable[[str, float, float], None]
) -> Callable[..., Tensor]:
    """The in-place operator that draws from a distribution of two parameters."""
    call = f"core::{name}_"

    def draw(self: Tensor, first: float, second: float, generator: object) -> Tensor:
        dtype = self.dtype
        require_dtype(call, "self", dtype, FLOATS, "floating-point dtypes")
        check(call, first, second)
        source = generator_of(call, generator)
        outputs = ((self.shape, dtype),)
        arguments = (source, first, second)
        plan = Plan(outputs, self.device, arguments, compute_dtype(dtype), ())
        meta = self.device.type == "meta"
        table = None if meta else table_for(self.device)
        return write_to(self, "self", call, plan, table, name)

    return draw


def _drawn(
    name: str, first: float, second: float, of_part: float
) -> Callable[..., Tensor]:
    """The factory of a distribution; `of_part` is `second` of parts of complex ones."""

    def make(
        call: str,
        size: list[int],
        generator: object,
        dtype: DType | None,
        device: Device,
    ) -> Tensor:
        kind = dtype or FLOAT32
        accepted = FLOATS | COMPLEXES
        require_dtype(call, "dtype", kind, accepted, "floating-point, complex dtypes")
        source = generator_of(call, generator)
        shape = check_size(call, size)
        if device.type == "meta":
            return empty_tensor(shape, kind, device)
        if kind in COMPLEXES:
            pairs = (*shape, 2)
            plan = Plan(((pairs, real_dtype(kind)),), device, (source, first, of_part))
            drawn = produce(plan, table_for(device), name)
            return view_of(drawn, shape, contiguous_strides(shape), 0, kind)
        arguments = (source, first, second)
        plan = Plan(((shape, kind),), device, arguments, compute_dtype(kind), ())
        made: Tensor = produce(plan, table_for(device), name)
        return made

    return make


def _randint(
    call: str,
    low: int,
    high: int,
    size: list[int],
    generator: object,
    dtype: DType | None,
    device: Device,
) -> Tensor:
    kind = dtype or INT64
    if low >= high:
        raise WrongOption(
            operator=call, argument="low", found=repr(low), fits=f"less than {high}"
        )
    if kind in INTEGERS:
        facts = info(kind)
        if low < facts.smallest or high - 1 > facts.largest:
            raise WrongOption(
                operator=call,
                argument="low and high",
                found=f"{low} and {high}",
                fits=f"{facts.smallest} to {facts.largest}, as the elements are {kind}",
            )
    source = generator_of(call, generator)
    shape = check_size(call, size)
    if device.type == "meta":
        return empty_tensor(shape, kind, device)
    table = table_for(device)
    made = empty_tensor(shape, INT64, device)
    table["randint"](made, source, low, high)
    return converted(made, kind, table)


def _randperm(
    call: str, n: int, generator: object, dtype: DType | None, device: Device
) -> Tensor:
    """The order of n random numbers of 53 bits; of equal ones the first comes first."""
    kind = dtype or INT64
    source = generator_of(call, generator)
    (count,) = check_size(call, [n])
    if kind in INTEGERS and n - 1 > (largest := info(kind).largest):
        raise WrongOption(
            operator=call,
            argument="n",
            found=repr(n),
            fits=f"at most {largest + 1}, as the elements are {kind}",
        )
    if device.type == "meta":
        return empty_tensor((count,), kind, device)
    table = table_for(device)
    keys, values = (empty_tensor((count,), FLOAT64, device) for _ in range(2))
    order = empty_tensor((count,), INT64, device)
    table["uniform"](keys, source, 0.0, 1.0)
    table["sort"](values, order, keys, 0, False, True)
    return converted(order, kind, table)


def _each(function: Callable[..., Tensor]) -> dict[str, Any]:
    return dict.fromkeys(MODULES, function)


OPERATORS = (
    Written(
        "uniform_(Tensor(a!) self, float low=0.0, float high=1.0, *, "
        "Generator? generator=None) -> Tensor(a!)",
        _each(drawing("uniform", _check_uniform)),
        _SEEDED,
        says="Fill with uniform random numbers.",
    ),
    Written(
        "normal_(Tensor(a!) self, float mean=0.0, float std=1.0, *, "
        "Generator? generator=None) -> Tensor(a!)",
        _each(drawing("normal", _check_normal)),
        _SEEDED,
        says="Fill with normal random numbers.",
    ),
    factory(
        f"rand(int[] size, {SEEDED}) -> Tensor",
        _drawn("uniform", 0.0, 1.0, 1.0),
        _SEEDED,
    ),
    factory(
        f"randn(int[] size, {SEEDED}) -> Tensor",
        # Of a complex number the size has deviation 1.
        _drawn("normal", 0.0, 1.0, sqrt(0.5)),
        _SEEDED,
    ),
    factory(
        f"randint(int low, int high, int[] size, {SEEDED}) -> Tensor",
        _randint,
        _SEEDED,
    ),
    factory(f"randperm(int n, {SEEDED}) -> Tensor", _randperm, _SEEDED),
)
