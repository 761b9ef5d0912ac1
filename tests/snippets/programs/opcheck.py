"""Checking operators: what opcheck passes, and what it finds."""

import torch
from torch import Tensor
from torch.library import custom_op, opcheck

answers = {}


@custom_op("snippet_i::good", mutates_args=())
def good(x: Tensor, y: float) -> Tensor:
    return x * y


@good.register_fake
def _(x, y):
    return torch.empty_like(x)


good.register_autograd(
    lambda ctx, grad: (grad * ctx.y, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "y", inputs[1]),
)
report = opcheck(good, (torch.rand(3, requires_grad=True), 2.0), raise_exception=False)
answers["good"] = sorted(set(report.values()))
answers["tests"] = len(report) >= 4


@custom_op("snippet_i::liar", mutates_args=())
def liar(x: Tensor) -> Tensor:
    x.add_(1)
    return x.clone()


@liar.register_fake
def _(x):
    return torch.empty_like(x)


report = opcheck(
    liar, (torch.rand(3),), test_utils="test_schema", raise_exception=False
)
answers["writes"] = report["test_schema"] != "SUCCESS"
try:
    opcheck(liar, (torch.rand(3),), test_utils=("test_schema",))
except Exception as error:
    answers["raised"] = "test_schema" in str(error)


@custom_op("snippet_i::misshapen", mutates_args=())
def misshapen(x: Tensor) -> Tensor:
    return x.sum()


@misshapen.register_fake
def _(x):
    return torch.empty_like(x)


report = opcheck(
    misshapen,
    (torch.rand(3),),
    test_utils=("test_schema", "test_faketensor"),
    raise_exception=False,
)
answers["shapes"] = report["test_schema"], report["test_faketensor"] != "SUCCESS"
torch.library.opcheck(torch.ops.snippet_i.good.default, (torch.rand(2), 3.0))
torch.library.opcheck(torch.ops.snippet_i.good, (torch.rand(2), 3.0))


def cube(x):
    return x * x * x


leaf = torch.rand(3, dtype=torch.double, requires_grad=True)
answers["gradcheck"] = torch.autograd.gradcheck(cube, (leaf,))
answers["gradgradcheck"] = torch.autograd.gradgradcheck(cube, (leaf,))
