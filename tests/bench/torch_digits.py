"""The models and the optimiser of the example, line by line, on torch's CPU.

True only here: the same computation, with the same parameters, to be timed beside ours;
what the example changes is to be changed here.
"""

from collections.abc import Sequence
from typing import Any

from tests.bench.compare import torch


def perceptron(parameters: Sequence[Any], pictures: Any) -> Any:
    w1, b1, w2, b2 = parameters
    linear = torch.nn.functional.linear
    return linear(torch.relu(linear(pictures.reshape(-1, 64), w1, b1)), w2, b2)


def convolutional(parameters: Sequence[Any], pictures: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = parameters
    seen = torch.relu(torch.conv2d(pictures, w1, b1, padding=1))
    seen = torch.max_pool2d(seen, 2)
    seen = torch.relu(torch.conv2d(seen, w2, b2, padding=1))
    seen = torch.max_pool2d(seen, 2)
    return torch.nn.functional.linear(seen.reshape(-1, 128), w3, b3)


MODELS = {"mlp": perceptron, "conv": convolutional}


class Adam:
    """As in the example."""

    def __init__(self, parameters: Sequence[Any], rate: float = 5e-3) -> None:
        self.parameters = parameters
        self.rate = rate
        self.steps = 0
        self.means = [torch.zeros_like(each) for each in parameters]
        self.squares = [torch.zeros_like(each) for each in parameters]

    def step(self) -> None:
        self.steps += 1
        one, two = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        with torch.no_grad():
            for p, m, v in zip(self.parameters, self.means, self.squares, strict=True):
                gradient = p.grad
                m.mul_(0.9).add_(gradient, alpha=0.1)
                v.mul_(0.999).add_(gradient * gradient, alpha=0.001)
                p.sub_(m / (v.sqrt() / two**0.5 + 1e-8), alpha=self.rate / one)
                p.grad = None


def step(model: Any, adam: Adam, pictures: Any, wanted: Any) -> Any:
    loss = torch.nn.functional.cross_entropy(model(adam.parameters, pictures), wanted)
    loss.backward()
    adam.step()
    return loss
