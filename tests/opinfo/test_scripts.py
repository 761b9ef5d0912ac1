"""Every operator as a function and a method: a program does what Python does."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import DType, Tensor
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.operators.bindings.functions import FUNCTIONS
from everyorder.runtime.script.emission import compile_text
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Program
from tests.opinfo.info import OpInfo, Sample, on_cpu
from tests.opinfo.table import ROWS, VARIANTS

# Memory that nobody has written to.
UNWRITTEN = frozenset({"empty", "empty_like", "empty_strided", "new_empty"})
ROWS_OF_CALLS = [
    row
    for row in (*ROWS, *VARIANTS)
    if row.name not in UNWRITTEN
    if row.name in FUNCTIONS or callable(getattr(Tensor, row.name, None))
]


class NotWritten(Exception):
    """An argument is no literal of a program."""


def literal(value: Any, tensors: list[Tensor]) -> str:
    """An argument as a program writes it; tensors are parameters."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return f"t{len(tensors) - 1}"
    if isinstance(value, list | tuple):
        parts = ", ".join(literal(each, tensors) for each in value)
        if isinstance(value, list):
            return f"[{parts}]"
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if isinstance(value, DType):
        return f"runtime.{value.name}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise NotWritten(type(value).__name__)


def kinds(sample: Sample) -> tuple[Any, ...]:
    """What kinds of arguments a sample has, and under which names."""

    def kind(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value).__name__, len(value) and kind(value[0])
        is_word = isinstance(value, bool | str)
        return value if is_word else type(value).__name__

    named = sorted((name, kind(each)) for name, each in sample.kwargs.items())
    return (*map(kind, sample.args), *named)


def programs(row: OpInfo) -> Iterator[tuple[str, list[Tensor]]]:
    """The forms of a call, for samples of each kind, and their tensors."""
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    samples = {kinds(each): each for each in reversed(row.samples(dtype))}
    for sample in samples.values():
        args, kwargs = sample.bound(on_cpu)
        tensors: list[Tensor] = []
        try:
            texts = [literal(each, tensors) for each in args]
            texts += [f"{name}={literal(v, tensors)}" for name, v in kwargs.items()]
        except NotWritten:
            continue
        if row.name in FUNCTIONS:
            yield f"runtime.{row.name}({', '.join(texts)})", tensors
        is_method = callable(getattr(Tensor, row.name, None))
        if is_method and args and isinstance(args[0], Tensor):
            yield f"{texts[0]}.{row.name}({', '.join(texts[1:])})", tensors


def plain(value: Any) -> Any:
    """A value as texts; what is a tuple for Python may be a list of a program."""
    if isinstance(value, Tensor):
        return f"{value.dtype} {value.shape} {value.tolist()}"
    if isinstance(value, list | tuple):
        return [*map(plain, value)]
    return repr(value)


@pytest.mark.parametrize("row", ROWS_OF_CALLS, ids=repr)
def test_a_program_does_what_python_does(row: OpInfo) -> None:
    for form, tensors in programs(row):
        parameters = ", ".join(f"t{place}: Tensor" for place in range(len(tensors)))
        text = f"def f({parameters}):\n    runtime.manual_seed(3)\n    return {form}\n"
        names: dict[str, Any] = {"runtime": runtime, "Tensor": Tensor}
        exec(compile(text, "<python>", "exec"), names)  # tests' own text
        try:
            expected = plain(names["f"](*copied(tensors)))
        except EveryorderError:
            # The arguments are those of the operator, of which programs take more.
            continue
        (function,) = compile_text(text, Program(), names)
        assert plain(call(function, copied(tensors), {})) == expected, form


def copied(tensors: list[Tensor]) -> tuple[Tensor, ...]:
    return tuple(each.clone() for each in tensors)


def test_there_are_enough() -> None:
    assert len(ROWS_OF_CALLS) > 230
    assert sum(len([*programs(row)]) for row in ROWS_OF_CALLS) > 750
