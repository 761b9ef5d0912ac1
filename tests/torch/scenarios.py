"""Random histories of registrations, for our dispatcher and for the real one.

True only here: what is tried.  A scenario is a list of steps in the words of
`steps` and a history over them: which step is done or undone next.  Steps may be
refused by either side; what a refusal means is the comparison's business.

Rules:
- the same seed gives the same scenarios;
- keys are drawn from all that any side knows, with more weight on those that the rules
  of the table (aliases, guards, AutogradOther) look at;
- schemas come from the whole grammar (`tests.torch.language`), half of them fit
  the one typed kernel that torch offers.
"""

import random
from typing import Literal, NamedTuple

from everyorder.runtime.keys import DispatchKey
from tests.torch.language import SchemaWriter
from tests.torch.reference import torch_accepted_keys
from tests.torch.steps import (
    AliasKind,
    KernelKind,
    TorchDefine,
    TorchDefineInferred,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
    TorchStep,
)

NAMESPACE = "everyorder_t"
# Without overload, and with one.
OPERATORS = (f"{NAMESPACE}::foo", f"{NAMESPACE}::foo.ov")
# Keys that rows of the table look at for the sake of other slots.
SENSITIVE = (
    *("Autograd", "CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"),
    *("CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutograd"),
    *("CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"),
    *("CPU", "AutogradCPU", "HIP", "VE", "MTIA", "Meta", "SparseCPU", "FPGA"),
    *("QuantizedCUDA", "NestedTensorCPU", "AutogradNestedTensor", "AutogradOther"),
    *("FuncTorchBatched", "BackendSelect", "Undefined", "MkldnnCPU"),
)
# Keys without built-in fallback, and some that have one.
FALLBACK_KEYS = (
    *("CPU", "CUDA", "AutogradHIP", "AutogradVE", "SparseCPU", "Fake", "Dense"),
    *("DeferredInit", "AutogradNestedTensor", "AutocastIPU", "XLA", "FPGA"),
    *("CompositeImplicitAutogradNestedTensor", "Tracer", "Meta", "Autograd"),
    *("CompositeExplicitAutograd", "FuncTorchBatchedDecomposition", "Undefined"),
)
_FITTING = (
    *("{}(Tensor x) -> Tensor", "{}(Tensor self) -> Tensor out"),
    *("{}(Tensor(a!) self) -> Tensor(a!)", "{}(Tensor x=None) -> (Tensor)"),
    *("{}(*, Tensor(a|c) x) -> Tensor(c|a)", "{}(Tensor! out) -> Tensor"),
)
# Both sides refuse these (a variable only as text); torch sees the last one too late.
_REFUSED = (
    *("{}(t x) -> t", "other::foo(Tensor x) -> Tensor", "{}(Tensor x"),
    f"{{}}({', '.join(f'Tensor a{i}' for i in range(65))}) -> Tensor",
)
_KINDS: tuple[KernelKind, ...] = ("t_t", "t_t", "python", "python", "fallthrough")
_ALIASES: tuple[AliasKind, ...] = (
    *("", "", "", "FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION", "unset"),
)
_DECLARED: tuple[Literal["", "CONSERVATIVE", "PURE_FUNCTION"], ...] = (
    *("", "CONSERVATIVE", "PURE_FUNCTION"),
)
_FALLBACKS: tuple[Literal["fallthrough", "python"], ...] = ("fallthrough", "python")
_LIBRARIES: tuple[Literal["FRAGMENT", "DEF"], ...] = (
    *("FRAGMENT", "FRAGMENT", "FRAGMENT", "DEF"),
)
# One fallback costs torch about a millisecond, because all its operators follow.
_SHARE_WITH_FALLBACKS = 0.08


class Scenario(NamedTuple):
    """`history` names steps by index; a negative entry `~i` undoes step `i`."""

    operator: str
    steps: tuple[TorchStep, ...]
    history: tuple[int, ...]
    constructs: frozenset[str]


class ScenarioWriter:
    """Writes one scenario after another; `keys` are those that torch accepts."""

    def __init__(self, seed: int, keys: tuple[str, ...]) -> None:
        self._chance = random.Random(seed)  # repeatable on purpose
        self._schemas = SchemaWriter(self._chance)
        self._keys = keys
        self._constructs: set[str] = set()

    def scenario(self, number: int) -> Scenario:
        """The next scenario; `number` walks through the keys, so that all occur."""
        self._constructs = set()
        operator = OPERATORS[self._chance.random() < 0.2]
        name = operator.partition("::")[2]
        steps: list[TorchStep] = []
        for _ in range(self._chance.choice((0, 1, 1, 1, 1, 2))):
            steps.append(self._definition(name, len(steps)))
        key = self._keys[number % len(self._keys)]
        for _ in range(self._chance.choice((0, 1, 2, 2, 3, 3, 4, 5))):
            steps.append(self._kernel(key, len(steps)))
            key = self._key()
        if self._chance.random() < _SHARE_WITH_FALLBACKS or not steps:
            steps.append(self._fallback(len(steps)))
        self._chance.shuffle(steps)
        history = self._history(len(steps))
        return Scenario(operator, tuple(steps), history, frozenset(self._constructs))

    def _definition(self, name: str, index: int) -> TorchStep:
        origin = f"define.py:{index}"
        library = self._chance.choice(_LIBRARIES)
        kind = self._chance.randrange(10)
        if kind == 0:
            return TorchDefineInferred(None, f"d{index}", library, origin)
        if kind == 1:
            refused = self._chance.choice(_REFUSED).format(name)
            alias = self._chance.choice(_ALIASES)
            return TorchDefine(refused, alias, library, origin)
        schema = self._schema(name)
        if kind < 4:
            declared = self._chance.choice(_DECLARED)
            return TorchDefineWithKernel(
                schema, None, declared, f"d{index}", library, origin
            )
        return TorchDefine(schema, self._chance.choice(_ALIASES), library, origin)

    def _schema(self, name: str) -> str:
        full = f"{NAMESPACE}::{name}" if self._chance.random() < 0.2 else name
        if self._chance.random() < 0.5:
            return self._chance.choice(_FITTING).format(full)
        text = self._schemas.text(name=full, plain=True)
        self._constructs |= text.constructs
        return text.text

    def _kernel(self, key: str, index: int) -> TorchImpl:
        kind = self._chance.choice(_KINDS)
        debug = f"k{index}" if kind == "t_t" and self._chance.random() < 0.9 else None
        chosen = None if self._chance.random() < 0.03 else key
        return TorchImpl(chosen, kind, debug, f"kernel.py:{index}")

    def _key(self) -> str:
        if self._chance.random() < 0.6:
            return self._chance.choice(SENSITIVE)
        return self._chance.choice(self._keys)

    def _fallback(self, index: int) -> TorchFallback:
        kind = self._chance.choice(_FALLBACKS)
        key = self._chance.choice(FALLBACK_KEYS)
        return TorchFallback(key, kind, f"fallback.py:{index}")

    def _history(self, steps: int) -> tuple[int, ...]:
        """Every step once, some undone on the way, then all others, in any order."""
        history: list[int] = []
        live: list[int] = []
        for step in range(steps):
            history.append(step)
            live.append(step)
            if self._chance.random() < 0.25:
                gone = live.pop(self._chance.randrange(len(live)))
                history.append(~gone)
                if self._chance.random() < 0.4:
                    history.append(gone)
                    live.append(gone)
        self._chance.shuffle(live)
        return (*history, *(~step for step in live))


def all_keys() -> tuple[str, ...]:
    """Every key that one side or the other can have a kernel for."""
    ours = [key.name for key in DispatchKey]
    return tuple(dict.fromkeys([*torch_accepted_keys(), *ours]))
