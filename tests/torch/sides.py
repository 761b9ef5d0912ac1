"""Our dispatcher and torch's, side by side, driven by the same steps.

True only here: how one step of `steps` is done to our dispatcher.  Each side
takes a step, undoes it, and shows two texts; neither knows of the other.

Rules:
- every step has a library of its own on both sides, and undoing it closes that library;
- our dispatcher starts with the fallbacks of torch, under torch's own descriptions, so
  that the tables of both can be equal byte for byte;
- a typed kernel of torch (`t_t`) is an annotated function here, a Python kernel of
  torch one without annotations; a description that torch derives is written out.
"""

from typing import Any

from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.kernel import KernelLike, fallthrough
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.state import OperatorEntry
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.schema.parser import parse_name, parse_schema
from everyorder.runtime.tensors import Tensor
from tests.torch.bindings import load_torch, perform
from tests.torch.reference import torch_builtin_fallbacks
from tests.torch.steps import (
    TorchDefine,
    TorchDefineInferred,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
    TorchStep,
)
from tests.torch.system import sweep

# What a side answers to a step: a library to undo it by, or None for a refusal.
Done = Any


def typed(x: Tensor) -> Tensor:
    """The counterpart of torch's native kernel."""
    return x


KERNELS: dict[str, KernelLike] = {
    "t_t": typed,
    "python": lambda *arguments: arguments,
    "fallthrough": fallthrough,
}


class OurSide:
    """One dispatcher of ours, for all scenarios one after the other."""

    def __init__(self) -> None:
        self.dispatcher = Dispatcher(builtin_fallbacks=False, warns_of_overrides=False)
        self._builtin = self._library("_", "IMPL", "built in")
        for each in torch_builtin_fallbacks():
            kind = "fallthrough" if each.is_fallthrough else "python"
            self._builtin.fallback(KERNELS[kind], each.key, debug=each.debug)
        self.start = self.dispatcher.snapshot()

    def do(self, step: TorchStep, operator: str) -> Done:
        """Perform a step; None where it is refused."""
        namespace = operator.partition("::")[0]
        if isinstance(step, TorchFallback):
            namespace = "_"
        kind = getattr(step, "library", "IMPL")
        try:
            library = self._library(namespace, kind, f"registered at {step.origin}")
        except EveryorderError:
            return None
        try:
            _register(library, step, operator)
        except EveryorderError:
            library.close()
            return None
        return library

    def undo(self, done: Done) -> None:
        """Take down what a step registered."""
        done.close()

    def entry(self, operator: str) -> OperatorEntry | None:
        """The live entry of an operator."""
        return self.dispatcher.state.entry(parse_name(operator))

    def dumps(self, operator: str) -> tuple[str, str]:
        """The state and the live table."""
        ours = self.dispatcher
        return ours.dump_state(operator), ours.dump_table(operator)

    def _library(self, namespace: str, kind: str, origin: str) -> Library:
        return Library(namespace, kind, dispatcher=self.dispatcher, origin=origin)


def _register(library: Library, step: TorchStep, operator: str) -> None:
    name = operator.partition("::")[2]
    match step:
        case TorchImpl():
            library.impl(name, KERNELS[step.kind], step.key, debug=step.printed)
        case TorchDefine(alias="unset"):
            library.define(parse_schema(step.schema))
        case TorchDefine():
            library.define(step.schema, step.alias)
        case TorchDefineInferred():
            library.define(name, kernel=typed, debug=step.debug)
        case TorchDefineWithKernel():
            library.define(step.schema, step.alias, kernel=typed, debug=step.debug)
        case _:
            library.fallback(KERNELS[step.kind], step.key, debug=step.printed)


class TorchSide:
    """The dispatcher of torch: process-wide, so one scenario at a time."""

    def __init__(self) -> None:
        self._c = load_torch()._C
        self.left: list[Any] = []

    def do(self, step: TorchStep, operator: str) -> Done:
        """Perform a step; None where it is refused.

        What a refused step leaves behind stays in `left`, until `forget`.
        """
        self.left = []
        try:
            return perform(step, operator, _unused, self.left)
        except RuntimeError:
            return None

    def forget(self, operator: str) -> None:
        """Take down what a refused step left behind."""
        for library in self.left:
            library.reset()
        sweep(operator)

    def undo(self, done: Done) -> None:
        """Take down what a step registered."""
        done.reset()

    def dumps(self, operator: str) -> tuple[str, str]:
        """The state and the recomputed table."""
        c = self._c
        return c._dispatch_dump(operator), c._dispatch_dump_table(operator)


def _unused(*_args: object, **_kwargs: object) -> object:
    raise AssertionError("a comparison of dumps calls nothing")
