"""Modules beside those of torch: the same program with either, the same facts."""

from typing import Any

import pytest

from everyorder import runtime

pytestmark = pytest.mark.torch


def facts(library: Any, base: Any) -> list[Any]:
    """What a program says of its modules, with the classes of either library."""

    class Leaf(base.Module):  # type: ignore[misc]  # of either library
        def __init__(self, value: float) -> None:
            super().__init__()
            self.w = base.Parameter(library.tensor([value]))
            self.register_buffer("b", library.tensor([1.0]))
            self.register_buffer("n", library.tensor([2.0]), persistent=False)

        def forward(self, x: Any) -> Any:
            return x * self.w + self.b

    leaf = Leaf(2.0)
    net = base.Sequential(leaf, base.Sequential(leaf, Leaf(3.0)))
    box = base.ModuleDict({"x": base.ModuleList([Leaf(1.0), Leaf(4.0)]), "y": leaf})
    found: list[Any] = []
    for each in (net, box):
        found.append([path for path, _ in each.named_parameters()])
        found.append([path for path, _ in each.named_buffers()])
        found.append([path for path, _ in each.named_modules()])
        found.append([path for path, _ in each.named_children()])
        found.append([*each.state_dict()])
        found.append(repr(each))
    found.append(net(library.ones(1)).tolist())
    order: list[str] = []
    net.register_forward_pre_hook(lambda *_: order.append("a"))
    net.register_forward_pre_hook(lambda *_: order.append("b"), prepend=True)
    net.register_forward_hook(lambda m, a, r: r + 100)
    net[1].register_forward_hook(lambda *_: order.append("c"))
    found.append(net(library.ones(1)).tolist())
    found.append(order)
    found.append([tuple(net.load_state_dict({"0.w": leaf.w, "z": 1}, strict=False))])
    net.eval()
    found.append([each.training for each in net.modules()])
    net(library.ones(1)).sum().backward()
    found.append([each.grad.tolist() for each in net.parameters()])
    net.zero_grad()
    found.append([each.grad is None for each in net.parameters()])
    net.double()
    found.append([str(each.dtype).rpartition(".")[2] for each in net.parameters()])
    found.append(net[1][0] is net[0])
    return found


def test_the_same_facts() -> None:
    torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
    assert facts(runtime, runtime) == facts(torch, torch.nn)
