"""Results whose shape depends on the data: what their fake implementation says."""

import numpy as np
import torch
from torch import Tensor


@torch.library.custom_op("snippet_d::places", mutates_args=())
def places(x: Tensor) -> Tensor:
    found = np.stack(np.nonzero(x.numpy()), axis=1)
    return torch.from_numpy(found.astype(np.int64))


@places.register_fake
def _(x):
    context = torch.library.get_ctx()
    count = context.new_dynamic_size()
    return x.new_empty([count, x.dim()], dtype=torch.int64)


@torch.library.custom_op("snippet_d::keep_positive", mutates_args=())
def keep_positive(x: Tensor) -> Tensor:
    return x[x > 0]


@keep_positive.register_fake
def _(x):
    size = torch.library.get_ctx().new_dynamic_size(min=0)
    return x.new_empty(size)


keep_positive.register_autograd(
    lambda ctx, grad: (
        torch.zeros(ctx.shape).masked_scatter(ctx.mask, grad)
        if hasattr(torch.Tensor, "masked_scatter")
        else torch.zeros(ctx.shape).index_put((ctx.mask,), grad)
    ),
    setup_context=lambda ctx, inputs, output: (
        (
            setattr(ctx, "mask", inputs[0] > 0),
            setattr(ctx, "shape", tuple(inputs[0].shape)),
        )
        and None
    ),
)

answers = {}
x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
answers["places"] = places(x).tolist()
answers["none"] = tuple(places(torch.zeros(3)).shape)
y = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
kept = keep_positive(y)
kept.backward(torch.tensor([10.0, 20.0]))
answers["kept"] = kept.tolist()
answers["its gradient"] = y.grad.tolist()
answers["nothing kept"] = keep_positive(-y.detach() - 9).tolist()
torch.library.opcheck(places, (x,), test_utils=("test_schema", "test_faketensor"))
