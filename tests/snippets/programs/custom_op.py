"""An operator of one's own: a kernel of NumPy, shapes, a gradient, training."""

import numpy as np
import torch
from torch import Tensor


@torch.library.custom_op("snippet_a::clip_to", mutates_args=())
def clip_to(picture: Tensor, low: float, high: float = 1.0) -> Tensor:
    return torch.from_numpy(np.clip(picture.numpy(), low, high).astype(np.float32))


@clip_to.register_fake
def _(picture, low, high=1.0):
    return picture.new_empty(picture.shape)


def keep(ctx, inputs, output):
    picture, low, high = inputs
    ctx.save_for_backward(picture)
    ctx.bounds = low, high


def gradient(ctx, grad):
    (picture,) = ctx.saved_tensors
    low, high = ctx.bounds
    inside = (picture >= low) & (picture <= high)
    return grad * inside, None, None


clip_to.register_autograd(gradient, setup_context=keep)


@torch.library.custom_op("snippet_a::add_into", mutates_args={"total"})
def add_into(total: Tensor, other: Tensor) -> None:
    total.numpy()[...] += other.numpy()


@torch.library.custom_op("snippet_a::halves", mutates_args=(), device_types="cpu")
def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    middle = x.shape[0] // 2
    return x[:middle].clone(), x[middle:].clone()


@halves.register_fake
def _(x):
    middle = x.shape[0] // 2
    rest = (x.shape[0] - middle, *x.shape[1:])
    return x.new_empty((middle, *x.shape[1:])), x.new_empty(rest)


answers = {}
x = torch.tensor([-0.5, 0.25, 0.75, 2.0], requires_grad=True)
y = clip_to(x, 0.0)
y.sum().backward()
answers["clipped"] = y.tolist(), x.grad.tolist(), y.requires_grad
answers["by keyword"] = clip_to(x.detach(), low=0.5, high=0.6).tolist()
answers["by ops"] = torch.ops.snippet_a.clip_to(x.detach(), 0.0, 0.5).tolist()
answers["default"] = torch.ops.snippet_a.clip_to.default(x.detach(), 0.5).tolist()
shaped = clip_to(torch.empty(3, 5, device="meta"), 0.0)
answers["shape"] = tuple(shaped.shape), str(shaped.device)

total = torch.zeros(2)
before = total._version
add_into(total, torch.tensor([1.0, 2.0]))
answers["written to"] = total.tolist(), total._version > before

first, second = halves(torch.arange(5.0))
answers["several"] = first.tolist(), second.tolist()

weights = torch.tensor([0.2, 0.9], requires_grad=True)
for _ in range(3):
    loss = (clip_to(weights, 0.0, 0.8) * torch.tensor([1.0, 3.0])).sum()
    loss.backward()
    with torch.no_grad():
        weights -= 0.1 * weights.grad
        weights.grad = None
answers["trained"] = [round(w, 5) for w in weights.tolist()]

torch.library.opcheck(clip_to, (torch.rand(3, requires_grad=True), 0.25))
torch.library.opcheck(halves, (torch.rand(4),))
