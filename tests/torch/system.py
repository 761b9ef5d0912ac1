"""The real torch as a system that the engine can explore.

The registry under test is process-wide C++ state that we can neither
copy nor read completely.  So there is no fingerprint, no proof by `graph`; walks,
histories and `full` run on it as on any opaque system.

Rules:
- each step owns its library object; undoing a step is `reset()` of that object;
- the system holds library objects of steps by weak reference only, so that the
  engine stays the one owner of its handles, and `reset()` can still end what an
  abandoned run left behind; the background (what is registered before any step) is
  the system's own;
- Python kernels note that they ran; a probe returns those notes with the outcome, so
  that it names the kernel that torch really took, which no dump of torch shows;
- torch's check is made under the operator's real name (its own test asks for a name
  that does not exist, and always passes).

How it works: `do` performs a description (`bindings`), `observe` returns the two
dumps, the verdict of torch's check and the probes.  A failing step drops its library
object, unless `keep_failed` asks for what a program gets that catches the error.
"""

import weakref
from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

from everyorder.harness.engine import SystemBase
from everyorder.harness.systems.torch import OPERATOR, CallResult, error_text
from tests.torch.bindings import (
    Kernel,
    arguments_of,
    invariants_text,
    invoke,
    load_torch,
    perform,
)
from tests.torch.steps import (
    TorchCall,
    TorchDefine,
    TorchImpl,
    TorchStep,
    kernel_label,
)

# The operator that the shortest demonstration and most scenarios register kernels to.
FOO = TorchDefine("foo(Tensor x) -> Tensor")

# The same two kernels, in either order: torch runs the first one where autograd looks.
ORDER_DEPENDENCE: tuple[TorchStep, ...] = (
    TorchImpl("CompositeImplicitAutograd", "python"),
    TorchImpl("CompositeExplicitAutograd", "python"),
)


class TorchObservation(NamedTuple):
    """What is seen of the operator: torch's dumps, its check, and real calls."""

    state: str
    table: str
    invariants: str
    probes: tuple[CallResult, ...]


class TorchSystem(SystemBase):
    """Implements the engine's `System` on torch's own dispatcher.

    `invariants` says what becomes of torch's own check: a part of the observation, a
    law of every step, or left out.  Raises ImportError without torch, and
    RuntimeError where the operator is registered by somebody else already.
    """

    def __init__(
        self,
        steps: Sequence[TorchStep],
        *,
        operator: str = OPERATOR,
        background: Sequence[TorchStep] = (),
        uses: Sequence[TorchCall] = (),
        probes: Sequence[TorchCall] = (),
        invariants: Literal["observed", "law", "ignored"] = "observed",
        keep_failed: bool = False,
    ) -> None:
        load_torch()
        self.steps = len(steps)
        self.uses = len(uses)
        self._descriptions = tuple(steps)
        self._operator = operator
        self._background = tuple(background)
        self._uses = tuple((call, arguments_of(call)) for call in uses)
        self._probes = tuple((call, arguments_of(call)) for call in probes)
        self._invariants = invariants
        self._ran: list[str] = []
        self._kernels = tuple(
            self._kernel(f"{i}: {kernel_label(step)}") for i, step in enumerate(steps)
        )
        self._live: dict[int, weakref.ref[Any]] = {}
        self._standing: list[Any] = []
        self._kept: list[Any] | None = [] if keep_failed else None
        self.reset()

    def reset(self) -> None:
        """Drop everything of this system, and register the background anew.

        Raises RuntimeError where the operator stays registered all the same.
        """
        self.close()
        leftover = load_torch()._C._dispatch_dump(self._operator)
        if leftover:
            raise RuntimeError(
                f"{self._operator} is registered by something else:\n{leftover}"
            )
        for step in self._background:
            kernel = self._kernel(f"background: {kernel_label(step)}")
            self._standing.append(perform(step, self._operator, kernel))

    def close(self) -> None:
        """Drop everything of this system, the background included; idempotent."""
        for reference in self._live.values():
            library = reference()
            if library is not None:
                library.reset()
        self._live.clear()
        while self._standing:
            self._standing.pop().reset()
        while self._kept:
            self._kept.pop().reset()
        sweep(self._operator)

    def do(self, step: int) -> object:
        """Perform the step; its library object is the handle.  Raises as torch does."""
        library = perform(
            self._descriptions[step], self._operator, self._kernels[step], self._kept
        )
        self._live[step] = weakref.ref(library)
        return library

    def undo(self, step: int, handle: object) -> None:
        """Reset the step's library object, which deregisters all that it owns."""
        self._live.pop(step, None)
        library: Any = handle
        library.reset()

    def use(self, use: int) -> CallResult:
        """Make the call: a use must leave everything registered as it is."""
        return self._call(*self._uses[use])

    def observe(self) -> TorchObservation:
        """Both dumps, torch's own check, and the probes, each made anew."""
        c = load_torch()._C
        checked = self._invariants == "observed"
        return TorchObservation(
            c._dispatch_dump(self._operator),
            c._dispatch_dump_table(self._operator),
            invariants_text(self._operator) if checked else "",
            tuple(self._call(*probe) for probe in self._probes),
        )

    def laws(self) -> tuple[str, ...]:
        """What torch's own check of the operator says, where it is taken as a law."""
        if self._invariants != "law":
            return ()
        broken = invariants_text(self._operator)
        return (broken,) if broken else ()

    def failure(self, error: Exception) -> tuple[str, str]:
        """The error's type and its text, without what an unrelated change moves."""
        return error_text(error)

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        """None: torch has no way to show its whole state."""
        return None

    def _call(self, call: TorchCall, arguments: tuple[Any, ...]) -> CallResult:
        self._ran.clear()
        outcome = invoke(call, self._operator, arguments)
        return CallResult(tuple(self._ran), outcome)

    def _kernel(self, label: str) -> Kernel:
        ran = self._ran
        empty = load_torch().empty

        # A new tensor each time: torch writes autograd history onto what is returned.
        def kernel(*_args: object, **_kwargs: object) -> object:
            ran.append(label)
            result: object = empty(0)
            return result

        return kernel


def sweep(operator: str) -> None:
    """Take down the ownerless entry that torch keeps after some failed definitions.

    A registration under the same name, ended again, is what removes it; an entry with
    an owner is left as it is.
    """
    c = load_torch()._C
    if c._dispatch_dump(operator) == f"name: {operator}\nschema: (none)\n":
        namespace, _, name = operator.partition("::")
        library = c._dispatch_library("IMPL", namespace, "")
        library.impl_t_t(name, "CPU")
        library.reset()


def order_dependence() -> TorchSystem:
    """The shortest known proof that torch's dispatcher depends on the order.

    Two kernels and one call with a tensor that requires grad.  torch's own check is
    left out: what differs is which kernel a real call runs.
    """
    return TorchSystem(
        ORDER_DEPENDENCE,
        background=(FOO,),
        probes=(TorchCall(requires_grad=True),),
        invariants="ignored",
    )
