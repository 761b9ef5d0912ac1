"""Random operators: distributions, their factories, dropout and random choices.

The bits are those of a `Generator`, which counts them; by default, of the default
generator.  Equal generator states yield equal integers and uniforms on every device.

Rules:
- on meta nothing is drawn; 16-bit floats are drawn as float32 and converted;
- dropout draws one mask element for each element of the input, true if it is kept, and
  scales kept elements, so that the mean is preserved; with `train` false, or nothing to
  drop, the result is a copy.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

from everyorder.runtime.operators.creation import SEEDED, check_size, factory
from everyorder.runtime.operators.declare.allocate_outputs import (
    MODULES,
    adopt,
    as_dtype,
    check_no_overlap,
    produce,
    table_for,
    write_to,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT64,
    INTEGERS,
    REALS,
    CallPlan,
    KernelTable,
    bad_option,
    computing,
    number_for,
    require_dtype,
    require_ndim,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
    naming,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.dtype_info import (
    DEFAULTS,
    compute_dtype,
    info,
    real_dtype,
)
from everyorder.runtime.tensors.generator import Generator, default_generator
from everyorder.runtime.tensors.keys import is_handled
from everyorder.runtime.tensors.shape import contiguous_strides
from everyorder.runtime.tensors.tensor import Tensor

_SEEDED = ("nondeterministic_seeded",)


def generator_of(generator: object) -> Generator:
    """Return the generator to draw from.  Raises `WrongOption` for another object."""
    if generator is None:
        return default_generator
    if isinstance(generator, Generator):
        return generator
    raise bad_option(
        "generator",
        f"an object of type {type(generator).__name__}",
        "a Generator, or None for the default one",
    )


def _check_uniform(low: float, high: float) -> None:
    if not low <= high:
        raise bad_option("low", repr(low), f"at most {high!r}")


def _check_normal(mean: float, std: float) -> None:
    if not std >= 0:
        raise bad_option("std", repr(std), "0 or more")


def drawing(name: str, check: Callable[[float, float], None]) -> Callable[..., Tensor]:
    """Return the in-place operator that draws from a distribution of two parameters."""

    def draw(self: Tensor, first: float, second: float, generator: object) -> Tensor:
        dtype = self.dtype
        require_dtype("self", dtype, FLOATS, "floating-point dtypes")
        check(first, second)
        source = generator_of(generator)
        outputs = ((self.shape, dtype),)
        arguments = (source, first, second)
        plan = CallPlan(outputs, self.device, arguments, compute_dtype(dtype), ())
        meta = self.device.type == "meta"
        table = None if meta else table_for(self.device)
        return write_to(self, "self", plan, table, name)

    return naming(f"core::{name}_", draw)


def _drawn(
    name: str, first: float, second: float, of_part: float
) -> Callable[..., Tensor]:
    """Return the factory of a distribution.

    `of_part` is the second parameter for the parts of complex numbers.
    """

    def make(
        size: list[int],
        generator: object,
        dtype: DType | None,
        device: Device,
    ) -> Tensor:
        kind = dtype or DEFAULTS.real
        accepted = FLOATS | COMPLEXES
        require_dtype("dtype", kind, accepted, "floating-point, complex dtypes")
        source = generator_of(generator)
        shape = check_size(size)
        if device.type == "meta":
            return empty_tensor(shape, kind, device)
        if kind in COMPLEXES:
            pairs = (*shape, 2)
            plan = CallPlan(
                ((pairs, real_dtype(kind)),), device, (source, first, of_part)
            )
            drawn = produce(plan, table_for(device), name)
            return view_of(drawn, shape, contiguous_strides(shape), 0, kind)
        arguments = (source, first, second)
        plan = CallPlan(((shape, kind),), device, arguments, compute_dtype(kind), ())
        result: Tensor = produce(plan, table_for(device), name)
        return result

    return make


def _randint(
    low: int,
    high: int,
    size: list[int],
    generator: object,
    dtype: DType | None,
    device: Device,
) -> Tensor:
    kind = dtype or INT64
    if low >= high:
        raise bad_option("low", repr(low), f"less than {high}")
    if kind in INTEGERS:
        facts = info(kind)
        if low < facts.smallest or high - 1 > facts.largest:
            raise bad_option(
                "low and high",
                f"{low} and {high}",
                f"{facts.smallest} to {facts.largest}, as the elements are {kind}",
            )
    source = generator_of(generator)
    shape = check_size(size)
    if device.type == "meta":
        return empty_tensor(shape, kind, device)
    table = table_for(device)
    result = empty_tensor(shape, INT64, device)
    table["randint"](result, source, low, high)
    return as_dtype(table, result, kind)


def _refill(name: str, bounds: Callable[..., tuple[int, int]]) -> Callable[..., Tensor]:
    """Return the operator that fills a tensor with integers, the last one included.

    `bounds(dtype, *arguments)` returns the first and the last integer.
    """

    def draw(self: Tensor, *arguments: Any) -> Tensor:
        *limits, generator = arguments
        require_dtype("self", self.dtype, REALS | {BOOL}, "real dtypes")
        low, last = bounds(self.dtype, *limits)
        source = generator_of(generator)
        check_no_overlap(self, "self")
        if self.device.type != "meta":
            table = table_for(self.device)
            drawn = empty_tensor(self.shape, INT64, self.device)
            table["randint"](drawn, source, low, last + 1)
            table["copy"](self, drawn)
        return self

    return naming(f"core::{name}", draw)


def _last_integer(dtype: DType) -> int:
    """Return the greatest number of a dtype before which it has every integer."""
    if dtype is BOOL:
        return 1
    if dtype in INTEGERS:
        return int(info(dtype).largest)
    return int(2 / info(dtype).eps)


def _all_integers(dtype: DType) -> tuple[int, int]:
    return 0, _last_integer(dtype)


def _between(dtype: DType, low: int, to: int | None) -> tuple[int, int]:
    last = _last_integer(dtype) if to is None else to - 1
    if low > last:
        if to is None:
            raise bad_option("from", repr(low), f"at most {last}")
        raise bad_option("to", repr(to), f"more than {low}")
    least, largest = (0, 1) if dtype is BOOL else _range_of(dtype)
    if low < least:
        fits = f"{least} or more, as the elements are {dtype}"
        raise bad_option("from", repr(low), fits)
    if last > largest:
        fits = f"at most {largest + 1}, as the elements are {dtype}"
        raise bad_option("to", repr(to), fits)
    if last - low >= _MOST:
        raise bad_option("from", repr(low), f"more than {last - _MOST}")
    return low, last


# Fewer different integers can be drawn.
_MOST = 2**64 - 1


def _range_of(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer of a dtype, and of int64."""
    facts, whole = info(dtype), info(INT64)
    if dtype in INTEGERS:
        return int(facts.smallest), int(facts.largest)
    # The smallest of a dtype of floats is its least positive number.
    return (
        max(-int(facts.largest), int(whole.smallest)),
        min(int(facts.largest), int(whole.largest)),
    )


def _randperm(n: int, generator: object, dtype: DType | None, device: Device) -> Tensor:
    """Return the order of n random 53-bit numbers; equal ones keep their order."""
    kind = dtype or INT64
    source = generator_of(generator)
    (count,) = check_size([n])
    if kind in INTEGERS and n - 1 > (largest := info(kind).largest):
        raise bad_option(
            "n", repr(n), f"at most {largest + 1}, as the elements are {kind}"
        )
    if device.type == "meta":
        return empty_tensor((count,), kind, device)
    table = table_for(device)
    keys, values = (empty_tensor((count,), FLOAT64, device) for _ in range(2))
    order = empty_tensor((count,), INT64, device)
    table["uniform"](keys, source, 0.0, 1.0)
    table["sort"](values, order, keys, 0, False, True)
    return as_dtype(table, order, kind)


@composite(
    "bernoulli(Tensor self, float? p=None, *, Generator? generator=None) -> Tensor",
    tags=_SEEDED,
    explicit=True,
    out=True,
)
def bernoulli(self: Tensor, p: float | None, generator: Any) -> Any:
    """Return 1 with the probability of each element, or `p`, else 0."""
    # One number suits a tensor of any dtype: it is compared with uniform numbers.
    drawn = core.uniform_(
        core.empty_like(self, dtype=None if p is None else FLOAT32), generator=generator
    )
    for name, chance in (("p", p),) if p is not None else _ends(self):
        if not 0 <= chance <= 1:
            raise bad_option(name, str(chance), "probabilities, 0 to 1")
    return core.to(core.lt(drawn, self if p is None else p), dtype=self.dtype)


@composite(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None)"
    " -> Tensor(a!)",
    tags=_SEEDED,
    explicit=True,
)
def bernoulli_(self: Tensor, p: float, generator: Any) -> Any:
    """Fill with 1, of probability `p`, and 0."""
    return adopt(self, core.bernoulli(self, p, generator=generator))


def _readable(self: Tensor) -> bool:
    """Return True if there are elements, and no handler answers for them."""
    here = self.device.type != "meta" and self.numel() > 0
    return here and not is_handled(self)


def _ends(self: Tensor) -> tuple[tuple[str, float], ...]:
    """Return the least and the greatest element, if they can be read."""
    if not _readable(self):
        return ()
    return ("self", core.min(self).item()), ("self", core.max(self).item())


@composite(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *,"
    " Generator? generator=None) -> Tensor",
    tags=_SEEDED,
    out=True,
)
def multinomial(
    self: Tensor, num_samples: int, replacement: bool, generator: Any
) -> Any:
    """Draw places at random, each with a probability by its weight."""
    require_ndim(("self", self), 1, 2)
    require_dtype("self", self.dtype, FLOATS, "floating-point dtypes")
    size = self.shape[-1]
    if num_samples < 1 or (not replacement and num_samples > size):
        raise bad_option(
            "num_samples",
            str(num_samples),
            f"1 to {size}, or more with replacement",
        )
    if _readable(self):
        total = core.sum(self, [-1])
        bad = not bool(core.all(core.isfinite(total)).item())
        if bad or core.min(self).item() < 0 or core.min(total).item() <= 0:
            raise bad_option(
                "self",
                "weights that are negative, not finite, or all 0",
                "finite weights of 0 or more, at least one positive",
            )
    if replacement:
        sums = core.cumsum(self, -1)
        shape = [*self.shape[:-1], num_samples]
        drawn = core.uniform_(
            core.empty(shape, dtype=self.dtype, device=self.device), generator=generator
        )
        # Scaled by the last sum, so that rounding keeps every place below the end.
        scaled = core.mul(drawn, core.slice(sums, -1, size - 1, size))
        return core.clamp(core.searchsorted(sums, scaled, right=True), 0, size - 1)
    # Exponential races, won by weight: Efraimidis and Spirakis, 2006.
    drawn = core.uniform_(core.empty_like(self), generator=generator)
    races = core.div(self, core.neg(core.log1p(core.neg(drawn))))
    scores = core.masked_fill(races, core.eq(self, 0), -1)
    return core.topk(scores, num_samples, -1)[1]


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise bad_option("p", str(p), "0.0 to 1.0")


def plan_dropout(
    x: Tensor,
    p: float,
    train: bool,
    generator: Any,
) -> CallPlan:
    """Return the plan of the scaled input, and of the mask of kept elements."""
    _check_probability(p)
    fits = "floating-point and complex numbers"
    require_dtype("input", x.dtype, FLOATS | COMPLEXES, fits)
    return CallPlan(
        ((x.shape, x.dtype), (x.shape, BOOL)),
        x.device,
        (x, p if train else 0.0, generator_of(generator)),
        computing(x.dtype),
        (0,),
        kernel=_drop,
    )


def _drop(
    table: KernelTable,
    out: Tensor,
    mask: Tensor,
    x: Tensor,
    p: float,
    generator: Any,
) -> None:
    zero = number_for(0, out.dtype)
    if p == 0.0:
        table["fill"](mask, True)
        table["copy"](out, x)
    elif p == 1.0:
        table["fill"](mask, False)
        table["fill"](out, zero)
    else:
        table["bernoulli"](mask, generator, 1.0 - p)
        table["mul"](out, x, number_for(1.0 / (1.0 - p), out.dtype))
        table["where"](out, mask, out, zero)


@composite(
    "dropout(Tensor input, float p=0.5, bool train=True) -> Tensor", tags=_SEEDED
)
def dropout(x: Tensor, p: float, train: bool) -> Any:
    """Zero elements at random with probability `p`, and scale the rest up."""
    _check_probability(p)
    if not train or p == 0.0:
        return core.clone(x)
    return core.native_dropout(x, p, True)[0]


OPERATORS: tuple[Structured | Unstructured, ...] = (
    Unstructured(
        "uniform_(Tensor(a!) self, float low=0.0, float high=1.0, *, "
        "Generator? generator=None) -> Tensor(a!)",
        dict.fromkeys(MODULES, drawing("uniform", _check_uniform)),
        _SEEDED,
        says="Fill with uniform random numbers.",
    ),
    Unstructured(
        "normal_(Tensor(a!) self, float mean=0.0, float std=1.0, *, "
        "Generator? generator=None) -> Tensor(a!)",
        dict.fromkeys(MODULES, drawing("normal", _check_normal)),
        _SEEDED,
        says="Fill with normal random numbers.",
    ),
    *(
        Unstructured(
            f"{name}(Tensor(a!) self, {limits}*, Generator? generator=None)"
            " -> Tensor(a!)",
            dict.fromkeys(MODULES, _refill(name, bounds)),
            _SEEDED,
            says="Fill with random integers." if name == "random_" else "",
        )
        for name, limits, bounds in (
            ("random_", "", _all_integers),
            ("random_.to", "int to, ", lambda dtype, to: _between(dtype, 0, to)),
            ("random_.from", "int from, int? to, ", _between),
        )
    ),
    factory(
        f"rand(int[] size, {SEEDED}) -> Tensor",
        _drawn("uniform", 0.0, 1.0, 1.0),
        _SEEDED,
    ),
    factory(
        f"randn(int[] size, {SEEDED}) -> Tensor",
        # The magnitude of a complex number has deviation 1.
        _drawn("normal", 0.0, 1.0, sqrt(0.5)),
        _SEEDED,
    ),
    factory(
        f"randint(int low, int high, int[] size, {SEEDED}) -> Tensor",
        _randint,
        _SEEDED,
    ),
    factory(f"randperm(int n, {SEEDED}) -> Tensor", _randperm, _SEEDED),
    Structured(
        "native_dropout",
        "Tensor input, float p, bool train=True, *, Generator? generator=None",
        plan_dropout,
        returns="(Tensor, Tensor mask)",
        tags=_SEEDED,
    ),
    *(dropout, bernoulli, bernoulli_, multinomial),
)
