"""Everyday calls, forward and backward, of this runtime and of torch.

`calls(T, F)` are functions of a runtime `T`, which makes their tensors, and of `F`,
where its functions of networks are.  `sequence` is what a mode sees of one of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

Calls = Mapping[str, Callable[[], object]]


def calls(T: Any, F: Any) -> Calls:  # noqa: N803  # a runtime, as people import it
    """Return the calls by name; those of `backward` call `backward()` at their end."""
    x, w, b, m = T.randn(4, 6), T.randn(5, 6), T.randn(5), T.randn(6, 3)
    rows, matrices, v = T.randn(2, 4, 6), T.randn(2, 6, 3), T.randn(6)
    images, kernel, bias = T.randn(2, 3, 8, 8), T.randn(4, 3, 3, 3), T.randn(4)
    heads, mask = T.randn(2, 2, 4, 8), T.randn(4, 6) > 0
    index, target = T.tensor([0, 2, 1, 3]), T.tensor([1, 0, 3, 2])
    zeros = T.zeros(4, 1, dtype=T.int64)
    return {
        "x + x": lambda: x + x,
        "x + 1": lambda: x + 1,
        "x * 2": lambda: x * 2.0,
        "1 - x": lambda: 1 - x,
        "x / x": lambda: x / x,
        "x ** 2": lambda: x**2,
        "x == x": lambda: x == x,
        "x.clone().add_(1)": lambda: x.clone().add_(1),
        "addcmul": lambda: T.addcmul(x, x, x),
        "lerp": lambda: T.lerp(x, x, 0.5),
        "clamp": lambda: x.clamp(0, 1),
        "where": lambda: T.where(mask, x, x),
        "masked_fill": lambda: x.masked_fill(mask, 0.0),
        "matrices": lambda: x @ m,
        "batches": lambda: rows @ matrices,
        "rows by a matrix": lambda: rows @ m,
        "matrix by a vector": lambda: x @ v,
        "vectors": lambda: v @ v,
        "addmm": lambda: T.addmm(b[:3], x, m),
        "outer": lambda: T.outer(v, v),
        "linear": lambda: F.linear(x, w, b),
        "linear without bias": lambda: F.linear(x, w),
        "linear of rows": lambda: F.linear(rows, w, b),
        "conv2d": lambda: F.conv2d(images, kernel, bias),
        "conv2d with steps": lambda: F.conv2d(images, kernel, None, 2, 1),
        "relu": lambda: T.relu(x),
        "gelu": lambda: F.gelu(x),
        "silu": lambda: F.silu(x),
        "sigmoid": lambda: T.sigmoid(x),
        "tanh": lambda: T.tanh(x),
        "leaky_relu": lambda: F.leaky_relu(x, 0.1),
        "softmax": lambda: T.softmax(x, -1),
        "log_softmax": lambda: T.log_softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (6,)),
        "batch_norm": lambda: F.batch_norm(x, None, None, training=True),
        "dropout": lambda: F.dropout(x, 0.5, True),
        "max_pool2d": lambda: F.max_pool2d(images, 2),
        "mse_loss": lambda: F.mse_loss(x, x),
        "cross_entropy": lambda: F.cross_entropy(x, target),
        "nll_loss": lambda: F.nll_loss(x, target),
        "losses of logits": lambda: F.binary_cross_entropy_with_logits(x, x),
        "attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
        "causal attention": lambda: F.scaled_dot_product_attention(
            heads, heads, heads, is_causal=True
        ),
        "sum": lambda: x.sum(),
        "sum of rows": lambda: x.sum(0),
        "mean": lambda: x.mean(-1, keepdim=True),
        "var": lambda: x.var(),
        "max along": lambda: x.max(0),
        "argmax": lambda: x.argmax(1),
        "logsumexp": lambda: T.logsumexp(x, 0),
        "norm": lambda: x.norm(),
        "cumsum": lambda: x.cumsum(0),
        "topk": lambda: x.topk(2),
        "view": lambda: x.view(24),
        "reshape that copies": lambda: x.t().reshape(24),
        "transpose": lambda: x.transpose(0, 1),
        "x.T": lambda: x.T,
        "flatten": lambda: rows.flatten(1),
        "expand": lambda: v.expand(4, 6),
        "cat": lambda: T.cat([x, x]),
        "stack": lambda: T.stack([x, x]),
        "split": lambda: x.split(2),
        "unbind": lambda: x.unbind(),
        "x[0]": lambda: x[0],
        "x[1:3]": lambda: x[1:3],
        "x[index]": lambda: x[index],
        "x[mask]": lambda: x[mask],
        "x[0] = 1": lambda: x.clone().__setitem__(0, 1.0),
        "gather": lambda: x.gather(1, zeros),
        "tril": lambda: x.tril(),
        "repeat": lambda: x.repeat(2, 1),
        "pad": lambda: F.pad(x, (1, 1)),
        "to(float64)": lambda: x.to(T.float64),
        "item": lambda: x.sum().item(),
        **_backward(T, F, x, index, target),
    }


def _backward(T: Any, F: Any, x: Any, index: Any, target: Any) -> Calls:  # noqa: N803
    def called(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
        def run() -> None:
            leaves = [T.randn(*shape).requires_grad_() for shape in shapes]
            function(*leaves).sum().backward()

        return run

    square, rows, images = (4, 6), (2, 4, 6), (2, 3, 8, 8)
    heads = (2, 2, 4, 8)
    found = {
        "x + y": called(lambda a, b: a + b, square, (6,)),
        "x * y": called(lambda a, b: a * b, square, square),
        "exp": called(lambda a: a.exp(), square),
        "linear": called(F.linear, square, (5, 6), (5,)),
        "linear of rows": called(F.linear, rows, (5, 6), (5,)),
        "matrices": called(lambda a, b: a @ b, square, (6, 3)),
        "batches": called(lambda a, b: a @ b, rows, (2, 6, 3)),
        "conv2d": called(F.conv2d, images, (4, 3, 3, 3), (4,)),
        "relu": called(T.relu, square),
        "gelu": called(F.gelu, square),
        "silu": called(F.silu, square),
        "sigmoid": called(T.sigmoid, square),
        "tanh": called(T.tanh, square),
        "softmax": called(lambda a: T.softmax(a, -1), square),
        "log_softmax": called(lambda a: T.log_softmax(a, -1), square),
        "layer_norm": called(
            lambda a, b, c: F.layer_norm(a, (6,), b, c), square, (6,), (6,)
        ),
        "cross_entropy": called(lambda a: F.cross_entropy(a, target), square),
        "mse_loss": called(lambda a: F.mse_loss(a, x), square),
        "max_pool2d": called(lambda a: F.max_pool2d(a, 2), images),
        "attention": called(lambda a: F.scaled_dot_product_attention(a, a, a), heads),
        "sum of rows": called(lambda a: a.sum(0), square),
        "mean": called(lambda a: a.mean(), square),
        "view": called(lambda a: a.view(24), square),
        "cat": called(lambda a, b: T.cat([a, b]), square, square),
        "stack": called(lambda a: T.stack([a, a]), square),
        "x[0]": called(lambda a: a[0], square),
        "x[1:3]": called(lambda a: a[1:3], square),
        "x[index]": called(lambda a: a[index], square),
        "expand": called(lambda a: a.expand(4, 6), (6,)),
        "var": called(lambda a: a.var(), square),
        "cumsum": called(lambda a: a.cumsum(0), square),
    }
    return {f"backward of {name}": call for name, call in found.items()}


# Aliases and copies of what is kept, which say nothing of what is computed.
KEPT = frozenset({"detach", "lift_fresh"})
# How a leaf keeps its gradient: a copy in its strides, or the sum of two.
OF_LEAVES = {"clone": "", "new_empty_strided": "", "copy_": "", "add_": "add"}


def sequence(name: str, seen: list[str]) -> str:
    """Return the operators of a call without overloads and what is only kept."""
    bare = [each.split(".")[1] for each in seen]
    bare = [each for each in bare if each not in KEPT]
    if name.startswith("backward"):
        turn = bare.index("ones_like")
        bare[turn:] = [OF_LEAVES.get(each, each) for each in bare[turn:]]
    return " ".join(each for each in bare if each and each != "randn")
