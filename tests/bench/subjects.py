"""What is measured: scenarios and systems, the same for every row that names them."""

from collections.abc import Hashable, Sequence
from typing import Any

from everyorder.harness.engine import System, SystemBase
from everyorder.harness.scenario import Scenario, Step, define, impl
from everyorder.harness.systems.dispatcher import DispatcherSystem

# Upstream's founding test: one definition and four kernels.
FOUNDING_KEYS = ("CompositeImplicitAutograd", "CPU", "Autograd", "AutogradCPU")


def kernel(x: "Tensor") -> "Tensor":  # type: ignore[name-defined]  # noqa: F821  # a schema type, by name
    return x


def founding(bystanders: int = 0) -> Scenario:
    """The five steps, beside other operators that are registered and stay."""
    given: list[Step] = []
    for number in range(bystanders // 2):
        name = f"other{number % 10}::op{number}"
        given.append(define(f"{name}(Tensor x) -> Tensor"))
        given.append(impl(f"{name}_impl", kernel, "CPU"))
    kernels = [impl("test::foo", kernel, key) for key in FOUNDING_KEYS]
    return Scenario(
        define("test::foo(Tensor x) -> Tensor"),
        *kernels,
        given=given,
        operators=["test::foo"],
        name="founding",
    )


# Sixteen keys that meet in many rules of the table.
MANY_KEYS = (
    "CompositeImplicitAutograd",
    "CPU",
    "Autograd",
    "AutogradCPU",
    "CompositeExplicitAutograd",
    "SparseCPU",
    "FPGA",
    "CUDA",
    "AutogradOther",
    "Meta",
    "CompositeExplicitAutogradNonFunctional",
    "XLA",
    "AutogradCUDA",
    "QuantizedCPU",
    "FuncTorchBatchedDecomposition",
)


def many(steps: int) -> Scenario:
    """A definition and `steps - 1` kernels at different keys."""
    kernels = [impl("test::foo", kernel, key) for key in MANY_KEYS[: steps - 1]]
    return Scenario(define("test::foo(Tensor x) -> Tensor"), *kernels, name="many")


def as_upstream(scenario: Scenario) -> System:
    """Observing what upstream's harness observes: the dumped state and the table."""
    return DispatcherSystem(scenario, view="upstream", laws=False)


class NullSystem(SystemBase):
    """Does nothing as fast as Python can; what is left is the engine."""

    uses = 0

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._active = 0

    def reset(self) -> None:
        self._active = 0

    def do(self, step: int) -> object:
        self._active |= 1 << step
        return None

    def undo(self, step: int, handle: object) -> None:
        self._active &= ~(1 << step)

    def use(self, use: int) -> Hashable:
        return use

    def observe(self) -> Hashable:
        return self._active

    def laws(self) -> Sequence[Hashable]:
        return ()

    def failure(self, error: Exception) -> Hashable:
        return str(error)

    def state(self, handles: Sequence[object] = ()) -> Hashable:
        return self._active


def torch_founding() -> Any:
    """The same five steps on the real torch, or None where it is not installed."""
    try:
        import torch  # noqa: F401  # asked for, not used
    except ImportError:
        return None
    from tests.torch.steps import TorchDefine, TorchImpl
    from tests.torch.system import TorchSystem

    steps = [TorchDefine("foo(Tensor x) -> Tensor")]
    kernels = [TorchImpl(key, "t_t", debug="impl_t_t") for key in FOUNDING_KEYS]
    return TorchSystem((*steps, *kernels), invariants="ignored")
