"""The shortest known order dependence of the real torch, for `--system torch`.

True only here: the texts of its two steps and one probe.  torch is imported when it is
explored, never before.
"""

from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.util import find_spec

from harness.cli.subject import NOTHING, Subject
from harness.engine import Budget, System, explore
from harness.errors import HarnessError
from harness.outcome import Report
from harness.systems.torch_steps import TorchImpl, TorchStep
from harness.systems.torch_system import ORDER_DEPENDENCE, order_dependence

PATH = "torch/order_dependence"


@dataclass(eq=False, kw_only=True)
class NoTorch(HarnessError, ImportError):
    """The real torch was asked for and is not installed."""

    def render(self) -> str:
        """Which extra brings it."""
        return (
            "--system torch needs torch itself, the extra `torch`: "
            "python -m pip install 'everyorder[torch]'"
        )


def torch_subject() -> Subject:
    """The subject.  Raises `NoTorch`."""
    if find_spec("torch") is None:
        raise NoTorch
    return Subject(TORCH, _system)


def explore_torch(strategy: str, budget: Budget | None) -> Report:
    """Explore it.  Raises `NoTorch`."""
    subject = torch_subject()
    with subject.opened() as system:
        exploration = explore(system, strategy, budget=budget)
    return replace(subject.texts, exploration=exploration)


def _system() -> System:
    return order_dependence()


def _text(number: int, step: TorchStep) -> str:
    """The step as a scenario of ours would write it; the operator is defined before."""
    assert isinstance(step, TorchImpl), "the known fault is one of kernels"
    return f'impl("foo", kernel_{number}, "{step.key}")'


def _texts() -> Report:
    steps = tuple(_text(*each) for each in enumerate(ORDER_DEPENDENCE, 1))
    digest = blake2b("\n".join((PATH, *steps)).encode(), digest_size=6).hexdigest()
    return Report(PATH, steps, (), None, NOTHING, digest)


# Its texts and its digest, by which `replay` knows an id of it.
TORCH = _texts()
