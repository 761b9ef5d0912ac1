"""In-place operators and views of a subclass: what is shared stays shared."""

import torch
from torch.utils._pytree import tree_map
from torch.utils._python_dispatch import return_and_correct_aliasing


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}

        def unwrap(each):
            return each.inner if isinstance(each, Wrapped) else each

        def wrap(each):
            return cls(each) if isinstance(each, torch.Tensor) else each

        found = tree_map(
            wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs))
        )
        return return_and_correct_aliasing(func, args, kwargs, found)


answers = {}
x = Wrapped(torch.zeros(2, 3))
answers["same object"] = x.add_(1) is x, x.inner.tolist()
row = x[1]
row.mul_(5)
answers["through a view"] = x.inner.tolist(), type(row).__name__
flat = x.view(-1)
flat[0] = 9.0
answers["through another"] = x.inner[0, 0].item(), tuple(flat.shape)
turned = x.t()
answers["strides"] = tuple(turned.shape), tuple(turned.stride())
turned.fill_(2.0)
answers["filled"] = x.inner.sum().item()
out = torch.empty(2, 3)
torch.add(torch.ones(2, 3), torch.ones(2, 3), out=out)
answers["out"] = out.tolist()

plain = torch.zeros(4, requires_grad=True)
base = plain * 1
half = base[:2]
half.mul_(3.0).add_(1.0)
base.sum().backward()
answers["history"] = plain.grad.tolist(), base.tolist()
try:
    plain.add_(1.0)
except RuntimeError:
    answers["leaf"] = "refused"
with torch.no_grad():
    plain.add_(1.0)
answers["leaf unrecorded"] = plain.tolist(), plain._version
kept = torch.ones(2, requires_grad=True) * 2
squares = kept * kept
kept.add_(1)
try:
    squares.sum().backward()
except RuntimeError:
    answers["written after it was kept"] = "refused"
