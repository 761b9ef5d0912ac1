"""Operators of several tensors, each of another kind, do what torch does.

A call has two or three tensors of random shapes and dtypes: on the CPU or meta, leaves
that require grad, made in inference mode, computed, or of a class with a handler. If
both sides return, the results have equal dtypes, shapes, devices and classes, and both
require grad or neither does. If torch refuses a call, so does the runtime; and what the
runtime raises is an error of its own.
What differs on purpose is in `is_expected`.
"""

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import pytest

from everyorder import runtime
from everyorder.runtime.errors import EveryorderError

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
pytestmark = pytest.mark.torch

CALLS = 600

SHAPES = ((), (1,), (2,), (2, 2), (2, 3), (3,), (0,), (1, 2))
DTYPES = ("float32", "float64", "int64")
MORE_DTYPES = (*DTYPES, "bool", "uint8", "complex64", "float16", "bfloat16", "int32")
FLOATING = ("float32", "float64", "complex64", "float16", "bfloat16")
KINDS = (
    *("cpu", "cpu", "leaf", "computed", "meta", "meta leaf"),
    *("inference", "inference meta", "wrapper"),
)


class Operand(NamedTuple):
    """One tensor of a call, as both sides make it."""

    kind: str
    shape: tuple[int, ...]
    dtype: str
    elements: list[int]

    def tensor(self, side: Any) -> Any:
        dtype = getattr(side, self.dtype)
        device = "meta" if "meta" in self.kind else "cpu"
        inside = "inference" in self.kind
        with side.inference_mode() if inside else nullcontext():
            x = side.tensor(self.elements, dtype=dtype).reshape(self.shape).to(device)
        if self.dtype in FLOATING and ("leaf" in self.kind or self.kind == "computed"):
            x = x.detach().requires_grad_()
        if self.kind == "computed":
            x = x * 1
        return WRAPPERS[side](x) if self.kind == "wrapper" else x


def wrapper_of(side: Any) -> Any:
    """A class of tensors whose handler calls the operator on what they hold."""

    class Wrapper(side.Tensor):  # type: ignore[misc]  # of either side
        @staticmethod
        def __new__(cls, x: Any) -> Any:
            form = {"dtype": x.dtype, "device": x.device}
            return side.Tensor._make_wrapper_subclass(cls, x.shape, **form)

        def __init__(self, x: Any) -> None:
            self.inner = x

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            def opened(value: Any) -> Any:
                if isinstance(value, list | tuple):
                    return [opened(each) for each in value]
                return value.inner if isinstance(value, cls) else value

            def wrapped(value: Any) -> Any:
                if isinstance(value, list | tuple):
                    return type(value)(map(wrapped, value))
                return cls(value) if isinstance(value, side.Tensor) else value

            named = {name: opened(each) for name, each in (kwargs or {}).items()}
            result = func(*map(opened, args), **named)
            in_place = func.__name__.partition(".")[0].endswith("_")
            return args[0] if in_place else wrapped(result)

    return Wrapper


WRAPPERS = {side: wrapper_of(side) for side in (torch, runtime)}


def function(name: str) -> Callable[..., Any]:
    return lambda side, *operands: getattr(side, name)(*operands)


def method(name: str) -> Callable[..., Any]:
    return lambda side, first, *more: getattr(first, name)(*more)


def index(side: Any, operand: Any) -> Any:
    return operand.to(side.int64)


def mask(side: Any, operand: Any) -> Any:
    return operand.to(side.bool)


def assigned(first: Any, place: Any, value: Any) -> Any:
    first[place] = value
    return first


Call = tuple[int, Callable[..., Any]]

# Calls by name, and how many tensors they take.
OPERATORS: dict[str, Call] = {
    **{
        name: (2, function(name))
        for name in (
            *("add", "sub", "mul", "div", "atan2", "maximum", "minimum", "eq", "lt"),
            *("logical_and", "logical_or", "bitwise_and", "pow", "remainder", "fmod"),
            *("floor_divide", "matmul", "mm", "mv", "dot", "outer", "isclose"),
            *("equal", "searchsorted", "xlogy", "allclose", "bincount"),
        )
    },
    **{
        name: (2, method(name))
        for name in (
            *("add_", "sub_", "mul_", "div_", "copy_", "pow_", "logical_and_"),
            *("expand_as", "type_as", "to"),
        )
    },
    **{
        name: (3, function(name))
        for name in ("addcmul", "lerp", "addmm", "baddbmm", "clamp")
    },
    "cat": (3, lambda s, *xs: s.cat(xs)),
    "stack": (3, lambda s, *xs: s.stack(xs)),
    "where": (3, lambda s, c, x, y: s.where(mask(s, c), x, y)),
    "meshgrid": (2, lambda s, *xs: s.meshgrid(*xs, indexing="ij")),
    "einsum": (2, lambda s, *xs: s.einsum("i,i->", *xs)),
    "masked_fill": (3, lambda s, x, at, v: x.masked_fill(mask(s, at), v)),
    "masked_select": (2, lambda s, x, at: x.masked_select(mask(s, at))),
    "index_select": (2, lambda s, x, at: x.index_select(0, index(s, at))),
    "gather": (2, lambda s, x, at: x.gather(0, index(s, at))),
    "scatter": (3, lambda s, x, at, v: x.scatter(0, index(s, at), v)),
    "scatter_add": (3, lambda s, x, at, v: x.scatter_add(0, index(s, at), v)),
    "index_add": (3, lambda s, x, at, v: x.index_add(0, index(s, at), v)),
    "index": (2, lambda s, x, at: x[index(s, at)]),
    "mask": (2, lambda s, x, at: x[mask(s, at)]),
    "assign": (3, lambda s, x, at, v: assigned(x, index(s, at), v)),
    "assign masked": (3, lambda s, x, at, v: assigned(x, mask(s, at), v)),
    "assign all": (2, lambda s, x, v: assigned(x, ..., v)),
    "add into": (3, lambda s, x, y, out: s.add(x, y, out=out)),
    "result_type": (2, lambda s, *xs: str(s.result_type(*xs)).removeprefix("torch.")),
}


def facts(side: Any, result: Any, whole: bool) -> Any:
    """What both sides have in common of a result; `whole`: gradient and class, too."""
    if isinstance(result, list | tuple):
        return [facts(side, each, whole) for each in result]
    if not isinstance(result, side.Tensor):
        return result
    dtype = str(result.dtype).removeprefix("torch.")
    form = (dtype, *result.shape, str(result.device))
    handled = isinstance(result, WRAPPERS[side])
    return (*form, result.requires_grad, handled) if whole else form


def played(side: Any, name: str, operands: list[Operand], mode: str) -> Any:
    """The facts of the result of a call, or its error."""
    tensors = [each.tensor(side) for each in operands]
    modes = {"no_grad": side.no_grad, "inference": side.inference_mode}
    try:
        with modes.get(mode, nullcontext)():
            result = OPERATORS[name][1](side, *tensors)
            # In inference mode, composites are handled before they are taken apart.
            return facts(side, result, mode != "inference")
    except Exception as error:  # compared
        return error


def drawn(chance: random.Random) -> tuple[str, list[Operand], str]:
    """A call: its name, its tensors, and the mode in which it is made."""
    name = chance.choice(sorted(OPERATORS))
    alike, shape, dtype = (
        chance.random() < 0.5,
        chance.choice(SHAPES),
        chance.choice(DTYPES),
    )
    operands = []
    for _ in range(OPERATORS[name][0]):
        sizes = shape if alike else chance.choice(SHAPES)
        kind = dtype if chance.random() < 0.6 else chance.choice(MORE_DTYPES)
        count = 1
        for size in sizes:
            count *= size
        elements = [chance.randint(0, 1) for _ in range(count)]
        operands.append(Operand(chance.choice(KINDS), sizes, kind, elements))
    return name, operands, chance.choice(["", "", "no_grad", "inference"])


def is_expected(name: str, operands: list[Operand], ours: Any, theirs: Any) -> bool:
    """Return True if a difference is a row of the deviations."""
    meta = any("meta" in each.kind for each in operands)
    if isinstance(ours, Exception):
        # Meta tensors are asked as others, and tensors of two devices are refused; so
        # are an out= of another shape, operands of several dtypes, weights of another
        # shape for no elements, and writing in place to a leaf that requires grad.
        lax = ("add into", "bincount", "einsum", "lerp", "logical_and_")
        return meta or name in lax
    if isinstance(theirs, Exception):
        # Kernels of torch that meta lacks; a 0-dim CPU tensor fits every device; wider
        # values are converted for an index; and there is xlogy of complex numbers.
        return meta or name == "xlogy" or name.startswith("assign")
    # The sum of no weights; an empty line, in which nothing is searched.
    return name in ("bincount", "searchsorted") and 0 in operands[0].shape


def difference(seed: int) -> str | None:
    """The difference of the call of a seed; None if both sides agree."""
    name, operands, mode = drawn(random.Random(seed))
    theirs = played(torch, name, operands, mode)
    ours = played(runtime, name, operands, mode)
    case = f"seed {seed}: {name}{operands} in {mode or 'no mode'}"
    if isinstance(ours, Exception) and not isinstance(ours, EveryorderError):
        return f"{case}: {ours!r}"
    both = isinstance(ours, Exception) and isinstance(theirs, Exception)
    if both or (type(ours) is type(theirs) and ours == theirs):
        return None
    if is_expected(name, operands, ours, theirs):
        return None
    return f"{case}: {ours!r}, torch {theirs!r}"


@pytest.mark.filterwarnings("ignore")
def test_calls_of_several_tensors() -> None:
    first = random.SystemRandom().getrandbits(32)
    found = [difference(first + number) for number in range(CALLS)]
    assert [each for each in found if each] == []


# Calls that were wrong.
@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("meshgrid", [Operand("cpu", (2,), "float32", [0, 1])] * 1),
        ("searchsorted", [Operand("cpu", (), "int64", [1])] * 2),
    ],
)
def test_calls_that_were_wrong(name: str, operands: list[Operand]) -> None:
    if name == "meshgrid":
        operands = [*operands, Operand("meta", (2,), "float32", [0, 1])]
    for side in (torch, runtime):
        assert isinstance(played(side, name, operands, ""), RuntimeError)
