"""A library in fragments: schemas in one place, kernels registered elsewhere."""

import torch
from torch.library import Library, impl

lib = Library("snippet_b", "DEF")
lib.define("scaled_sum(Tensor x, *, float scale=1.0, int[]? dim=None) -> Tensor")
lib.define("pair.first(Tensor x) -> Tensor")
lib.define("pair.both(Tensor x, Tensor y) -> Tensor")
lib.define("anything(Tensor x) -> Tensor")


@impl(lib, "scaled_sum", "CPU")
def scaled_sum_cpu(x, *, scale=1.0, dim=None):
    return (x.sum() if dim is None else x.sum(dim)) * scale


@impl(lib, "scaled_sum", "Meta")
def scaled_sum_meta(x, *, scale=1.0, dim=None):
    if dim is None:
        return x.new_empty(())
    return x.new_empty([n for at, n in enumerate(x.shape) if at not in dim])


lib.impl("pair.first", lambda x: x * 2, "CompositeExplicitAutograd")


@torch.library.impl(lib, "pair.both", "CompositeImplicitAutograd")
def both(x, y):
    return x * y + 1


fragment = Library("snippet_b", "FRAGMENT")
fragment.define("late(Tensor x) -> Tensor")
fragment.impl("late", lambda x: x + 10, "CPU")

torch.library.define("snippet_b2::affine", "(Tensor x, float a, float b=0.0) -> Tensor")


@torch.library.impl("snippet_b2::affine", "cpu")
def affine_cpu(x, a, b=0.0):
    return x * a + b


@torch.library.register_fake("snippet_b2::affine")
def affine_fake(x, a, b=0.0):
    return torch.empty_like(x)


def affine_setup(ctx, inputs, output):
    ctx.a = inputs[1]


torch.library.register_autograd(
    "snippet_b2::affine",
    lambda ctx, grad: (grad * ctx.a, None, None),
    setup_context=affine_setup,
)

answers = {}
x = torch.arange(6.0).reshape(2, 3)
ops = torch.ops.snippet_b
answers["sum"] = ops.scaled_sum(x).item(), ops.scaled_sum(x, scale=2.0).item()
answers["along"] = ops.scaled_sum(x, dim=[0]).tolist()
answers["meta"] = tuple(ops.scaled_sum(x.to("meta"), dim=[1]).shape)
answers["overloads"] = sorted(ops.pair.overloads())
answers["packet"] = ops.pair(x).tolist(), ops.pair(x, x).tolist()
answers["named"] = ops.pair.first(x).tolist(), ops.pair.both(x, x).tolist()
answers["late"] = ops.late(x).tolist()
leaf = x.clone().requires_grad_()
ops.pair.both(leaf, leaf).sum().backward()
answers["implicit gradient"] = leaf.grad.tolist()
leaf = x.clone().requires_grad_()
torch.ops.snippet_b2.affine(leaf, 3.0).sum().backward()
answers["registered gradient"] = leaf.grad.tolist()
answers["affine on meta"] = tuple(torch.ops.snippet_b2.affine(x.to("meta"), 2.0).shape)

lib.impl("anything", lambda x: x - 1, "CPU")
answers["first kernel"] = ops.anything(x).sum().item()
try:
    ops.anything(x.to("meta"))
except (NotImplementedError, RuntimeError) as error:
    answers["missing"] = isinstance(error, NotImplementedError)
schema = ops.scaled_sum.default._schema
answers["schema"] = str(schema.name), [a.name for a in schema.arguments]
answers["text"] = str(schema)
answers["name"] = ops.pair.both.name()
