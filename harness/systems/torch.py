"""The real torch as a registry: its shortest known dependence on order.

Two kernels of one operator and a call with a tensor that requires grad: when autograd
looks up the kernel, torch runs the one that was registered first.  The registry is
state of C++ that the whole process shares, and can neither be copied nor read
completely, so there is no fingerprint: strategies with a bound run on it, as on any
opaque system.  torch is imported when it is explored, never before.

Rules:
- each step owns its library object, and undoing the step is `reset()` of that object;
- the system holds these by weak reference only, so that the engine stays the one owner
  of its handles, and `reset()` still ends what an abandoned run left behind;
- the kernels record that they ran: a call names the kernel that torch actually ran,
  which no dump of torch shows.
"""

import weakref
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, NamedTuple, NoReturn

from everyorder.harness.base.errors import NotInstalled
from everyorder.harness.engine import Budget, SystemBase, explore
from everyorder.harness.report.verdict import NO_EXPLORATION, Report

# A separate namespace: no registration of torch or an extension can collide with it.
NAMESPACE = "everyorder_t"
OPERATOR = f"{NAMESPACE}::foo"
SCHEMA = "foo(Tensor x) -> Tensor"
# The keys of the kernels, one for each step.
KEYS = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")

# From these on, an error's text has dumps, C++ frames or links, which are not compared.
_TAILS = (
    "Canonical state\n",
    "\nException raised from",
    " This could be because",
    " This usually means",
    " You may have run into",
)
_ASSERTION = " INTERNAL ASSERT FAILED at "


class CallResult(NamedTuple):
    """The kernels that ran, in order, and the outcome of the call."""

    ran: tuple[str, ...]
    outcome: str

    def __str__(self) -> str:
        """Return `kernel_1 (CPU)` for the kernel of the first step, and the outcome."""
        named = [label.partition(": ") for label in self.ran]
        texts = [
            f"kernel_{int(number) + 1} ({key})" if number.isdecimal() else number + key
            for number, _, key in named
        ]
        ran = f"the call ran {' > '.join(texts) or 'no kernel'}"
        return ran if self.outcome == "returned" else f"{ran}, {self.outcome}"


class TorchObservation(NamedTuple):
    """The observation of the operator: torch's dumps, and real calls."""

    state: str
    table: str
    probes: tuple[CallResult, ...]


class TorchSystem(SystemBase):
    """The dispatcher of torch, in the form that the engine explores.

    Raises ImportError without torch.
    """

    steps = len(KEYS)
    uses = 0

    def __init__(self) -> None:
        import torch

        self._torch: Any = torch
        self._ran: list[str] = []
        labels = (f"{number}: {key}" for number, key in enumerate(KEYS))
        self._kernels = tuple(map(self._kernel, labels))
        self._live: dict[int, weakref.ref[Any]] = {}
        self._definition: Any = None
        self._argument = torch.ones(2, 2).requires_grad_(True)

    def reset(self) -> None:
        """Drop everything of this system, and define the operator again."""
        self.close()
        self._definition = self._library("FRAGMENT")
        self._definition.def_(SCHEMA, "")

    def close(self) -> None:
        """Drop everything of this system; idempotent."""
        libraries = [reference() for reference in self._live.values()]
        for library in (*libraries, self._definition):
            if library is not None:
                library.reset()
        self._live.clear()
        self._definition = None

    def do(self, step: int) -> object:
        """Register the kernel; its library object is the handle."""
        library = self._library("IMPL")
        library.impl("foo", KEYS[step], self._kernels[step])
        self._live[step] = weakref.ref(library)
        return library

    def undo(self, step: int, handle: Any) -> None:
        """Reset the step's library object, which deregisters all that it owns."""
        self._live.pop(step, None)
        handle.reset()

    def use(self, use: int) -> NoReturn:
        """Raise AssertionError: the system has no uses."""
        raise AssertionError("it has no uses")

    def observe(self) -> TorchObservation:
        """Return both dumps, and a new call."""
        c = self._torch._C
        dumps = c._dispatch_dump(OPERATOR), c._dispatch_dump_table(OPERATOR)
        return TorchObservation(*dumps, (self._called(),))

    def _called(self) -> CallResult:
        self._ran.clear()
        c = self._torch._C
        outcome = "returned"
        try:
            handle = c._dispatch_find_schema_or_throw(OPERATOR, "")
            c._dispatch_call_boxed(handle, self._argument)
        except Exception as error:
            outcome = ": ".join(error_text(error))
        return CallResult(tuple(self._ran), outcome)

    def _library(self, kind: str) -> Any:
        return self._torch._C._dispatch_library(kind, NAMESPACE, "", "/dev/null", 0)

    def _kernel(self, label: str) -> Callable[..., object]:
        ran, empty = self._ran, self._torch.empty

        # A new tensor each time: torch writes autograd history to the returned tensor.
        def kernel(*_args: object, **_kwargs: object) -> object:
            ran.append(label)
            result: object = empty(0)
            return result

        return kernel


def error_text(error: Exception) -> tuple[str, str]:
    """Return the error's type and text without dumps, C++ frames and source lines."""
    text = str(error)
    for tail in _TAILS:
        text = text.partition(tail)[0]
    condition, assertion, rest = text.partition(_ASSERTION)
    if assertion:
        text = f"{condition}: {rest.partition(', please report a bug to PyTorch. ')[2]}"
    return type(error).__name__, text.strip().removesuffix(":")


def _texts() -> Report:
    """Return the steps as a scenario would write them; the operator is defined before.

    `everyorder replay` recognises its ids by the digest.
    """
    path = "torch/order_dependence"
    steps = tuple(
        f'impl("foo", kernel_{number}, "{key}")' for number, key in enumerate(KEYS, 1)
    )
    digest = blake2b("\n".join((path, *steps)).encode(), digest_size=6).hexdigest()
    return Report(path, steps, (), None, NO_EXPLORATION, digest)


TEXTS = _texts()


def check_installed() -> None:
    """Raise `NotInstalled` if torch is not installed."""
    if find_spec("torch") is None:
        raise NotInstalled(code="NoTorch")


def explore_torch(strategy: str, budget: Budget | None) -> Report:
    """Explore torch, and return the report."""
    system = TorchSystem()
    try:
        return replace(TEXTS, exploration=explore(system, strategy, budget=budget))
    finally:
        system.close()
