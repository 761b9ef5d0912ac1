from importlib.util import find_spec

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.systems import torch
from tests.cli.conftest import Project, unwrapped

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs the real torch (extra `torch`)"
)


def test_without_torch(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "find_spec", lambda name: None)
    result = project.run("run", "--system", "torch")
    assert result.exit_code == exits.REFUSED
    assert unwrapped(result) == (
        "Error: --system torch needs torch itself, the extra `torch`: python -m pip "
        "install 'everyorder[torch]'"
    )


def test_its_texts() -> None:
    assert torch.TEXTS.scenario == "torch/order_dependence"
    assert torch.TEXTS.steps == (
        'impl("foo", kernel_1, "CompositeImplicitAutograd")',
        'impl("foo", kernel_2, "CompositeExplicitAutograd")',
    )


@pytest.mark.torch
@needs_torch
@pytest.mark.usefixtures("last")
def test_the_known_fault_is_found_and_played_again(project: Project) -> None:
    result = project.run("run", "--system", "torch")
    assert result.exit_code == exits.FAILED
    text = unwrapped(result)
    assert text.startswith(
        "torch/order_dependence: what is observed (probes) depends on the order of "
        '`impl("foo", kernel_2,'
    )
    [command] = [
        line.split() for line in result.output.splitlines() if "everyorder" in line
    ]
    played = project.run(*command[1:])
    assert played.exit_code == exits.FAILED
    assert "wrong, without observing in between: " in played.output
