"""Modes: who sees every operator of a thread."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


class InDouble(TorchDispatchMode):
    """Whatever is computed in float32 is computed in float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        def widened(each):
            if isinstance(each, torch.Tensor) and each.dtype is torch.float32:
                return each.double()
            return each

        return func(*tree_map(widened, args), **tree_map(widened, kwargs or {}))


class FullOfSevens(TorchDispatchMode):
    """Factories give sevens."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if not any(isinstance(each, torch.Tensor) for each in tree_leaves(args)):
            found.fill_(7)
        return found


class Shapes(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.lines = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.lines.append((func.overloadpacket.__name__, tuple(found.shape)))
        return found


answers = {}
x = torch.ones(2, 2)
with Count() as count:
    y = torch.mm(x, x)
    y = torch.relu(y) + torch.relu(x)
answers["counts"] = count.counts
with InDouble():
    answers["double"] = str((x * 2).dtype).rpartition(".")[2]
with FullOfSevens():
    answers["sevens"] = torch.zeros(2).tolist(), torch.ones(1, 2).tolist()
with Count() as outer, Shapes() as inner:
    torch.sum(x, dim=0)
answers["nested"] = outer.counts, inner.lines
leaf = torch.ones(3, requires_grad=True)
with Count() as backward:
    leaf.exp().sum().backward()
answers["backward"] = leaf.grad.tolist() == leaf.exp().tolist(), backward.counts["exp"]
try:
    with Count() as broken:
        torch.mm(x, torch.ones(3, 3))
except RuntimeError:
    answers["raises"] = True
with Count() as again:
    x + 1
answers["after an error"] = again.counts
