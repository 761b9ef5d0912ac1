"""Upstream's table of operator samples, and what the runtime has of it.

True only here: how torch's table is imported, and by which names the runtime is asked.

Rules:
- the table imports a package that only names a base class of tests; where it is not
  installed, an empty module of that name stands for it while the table is imported, in
  this process only;
- importing the table changes settings of torch, so only a process of its own does it;
- an operator is looked up by its name, without the name of the module of functions of
  networks, and by its aliases; nothing lists the names, so what is new is taken up.
"""

import importlib.util
import sys
import types
import unittest
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from everyorder import runtime
from everyorder.runtime import Tensor, linalg
from everyorder.runtime.operators.bindings import functions

NETWORKS = "nn.functional."
LINALG = "linalg."

# Rows whose samples are not the arguments in their order: how a function or method is
# called with those of a sample.
ORDERS: dict[str, Callable[..., Any]] = {
    "einsum": lambda run, tensors, equation: run(equation, *tensors),
    "where": lambda run, one, condition, other: run(condition, one, other),
    "zero_": lambda run, tensor: run(tensor.clone()),
}

# Methods whose arguments are others than those of the function: `condition` is not
# the tensor whose method `where` is. Vectors of matrices may have any sign.
OTHER_SENSE = frozenset(("Tensor.where", "runtime.linalg.eigh", "runtime.linalg.svd"))


@dataclass(frozen=True, slots=True)
class Form:
    """One way to call an operator; `run` takes the arguments as samples have them."""

    name: str
    run: Callable[..., Any]
    method: bool = False


def load_table() -> list[Any]:
    """All rows (`OpInfo`) of torch's table."""
    stands_in = importlib.util.find_spec("expecttest") is None
    if stands_in:
        module = types.ModuleType("expecttest")
        module.TestCase = unittest.TestCase  # type: ignore[attr-defined]  # made here
        sys.modules["expecttest"] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    finally:
        if stands_in:
            del sys.modules["expecttest"]
    return list(op_db)


def forms(row: Any) -> tuple[Form, ...]:
    """How the runtime offers the operator of a row; the function first, if any."""
    names = dict.fromkeys(
        name.removeprefix(NETWORKS)
        for name in (row.name, *(alias.name for alias in row.aliases))
    )
    found = []
    for name in names:
        if name in functions.FUNCTIONS:
            found.append(Form(f"runtime.{name}", ordered(row, getattr(runtime, name))))
        if name.startswith(LINALG) and hasattr(linalg, name.removeprefix(LINALG)):
            run = getattr(linalg, name.removeprefix(LINALG))
            found.append(Form(f"runtime.{name}", run))
        if row.name.startswith(NETWORKS):
            continue
        attribute = getattr(Tensor, name, None)
        if callable(attribute):
            run = ordered(row, attribute)
            # A method whose tensor is not the first of the sample is a function here.
            found.append(Form(f"Tensor.{name}", run, row.name not in ORDERS))
        elif attribute is not None:
            found.append(Form(f"Tensor.{name}", attribute.__get__, True))
    return tuple(each for each in found if each.name not in OTHER_SENSE)


def ordered(row: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """What takes the arguments as the samples of the row have them."""
    order = ORDERS.get(row.name)
    return run if order is None else partial(order, run)


def in_place(row: Any) -> Form | None:
    """The method that writes the result to its tensor, where both sides have one."""
    name = f"{row.name}_"
    attribute = getattr(Tensor, name, None)
    if attribute is None or row.get_inplace() is None:
        return None
    return Form(f"Tensor.{name}", attribute, True)
