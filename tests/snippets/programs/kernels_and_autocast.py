"""Kernels added by device to an operator, and what it does under autocast."""

import torch
from torch import Tensor
from torch.library import custom_op, register_autocast, register_kernel


@custom_op("snippet_c::weigh", mutates_args=(), device_types=())
def weigh(x: Tensor, weight: Tensor) -> Tensor:
    raise NotImplementedError("no kernel of its own")


seen = []


@register_kernel("snippet_c::weigh", "cpu")
def weigh_cpu(x, weight):
    seen.append(str(x.dtype).rpartition(".")[2])
    return x @ weight


@torch.library.register_fake("snippet_c::weigh")
def weigh_fake(x, weight):
    return x.new_empty(x.shape[0], weight.shape[1])


register_autocast("snippet_c::weigh", "cpu", torch.bfloat16)

answers = {}
x, weight = torch.ones(2, 3), torch.full((3, 2), 0.5)
answers["plain"] = weigh(x, weight).tolist(), seen.pop()
with torch.autocast(device_type="cpu"):
    result = torch.ops.snippet_c.weigh(x, weight)
    answers["cast"] = str(result.dtype).rpartition(".")[2], seen.pop()
    product = x @ weight
    answers["matmul"] = str(product.dtype).rpartition(".")[2]
    with torch.autocast(device_type="cpu", enabled=False):
        answers["off"] = str((x @ weight).dtype).rpartition(".")[2]
answers["enabled"] = torch.is_autocast_enabled("cpu")
with torch.autocast("cpu", dtype=torch.float16):
    answers["half"] = str((x @ weight).dtype).rpartition(".")[2]


@torch.autocast(device_type="cpu", dtype=torch.bfloat16)
def forward(x):
    return x @ weight


answers["decorated"] = str(forward(x).dtype).rpartition(".")[2]

leaf = torch.ones(3, 2, requires_grad=True)
with torch.autocast("cpu"):
    loss = (x @ leaf).float().sum()
loss.backward()
answers["gradient"] = str(leaf.grad.dtype).rpartition(".")[2], leaf.grad.tolist()
