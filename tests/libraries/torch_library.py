"""torch.library: an operator and its kernels, in a library of an author's own."""

from typing import Any

import torch

from everyorder import Scenario, step, use


def double(x: Any) -> Any:
    return x * 2


def absent(x: Any) -> Any:
    return torch.empty_like(x)


def new_library() -> torch.library.Library:
    return torch.library.Library("mylib", "DEF")


def close(library: Any) -> None:
    library._destroy()


define = step(
    'define("scale")',
    lambda library: library.define("scale(Tensor x) -> Tensor") and None,
    undo=None,
)


def answer(library: Any) -> str:
    try:
        return str(torch.ops.mylib.scale(torch.ones(2)).tolist())
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        return type(error).__name__


def shape(library: Any) -> str:
    try:
        return str(torch.ops.mylib.scale(torch.ones(2, device="meta")).shape)
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        return type(error).__name__


scenario = Scenario(
    define,
    step(
        'impl("scale", double, "CPU")',
        lambda library: library.impl("scale", double, "CPU"),
        undo=None,
    ),
    step(
        'impl("scale", absent, "Meta")',
        lambda library: library.impl("scale", absent, "Meta"),
        undo=None,
    ),
    uses=[use("scale(cpu)", answer), use("scale(meta)", shape)],
    create=new_library,
    reset=close,
    # torch keeps each operator in it by the address of an object.
    ignore=["torch.jit._builtins._builtin_table"],
)
