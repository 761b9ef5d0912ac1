"""Signatures: what `help()` says of an operator as a function or a method.

True only here: a schema as Python's signature, and one sentence for each name.  The
sentences are a literal table, because a schema says what is taken, not what it is for.

Rule: every name of `FUNCTIONS` that is an operator has its sentence here.
"""

from inspect import Parameter, Signature
from typing import Any

from runtime.schema.schema import Schema

# What an operator computes, in one sentence, by name without a final `_`.
SENTENCES = {
    "abs": "The magnitude of every element.",
    "add": "The sum of both sides, the right one times `alpha`.",
    "alias": "A view of the whole tensor.",
    "all": "Whether all elements are true.",
    "amax": "The greatest element, over one dimension or several.",
    "amin": "The least element, over one dimension or several.",
    "any": "Whether any element is true.",
    "argmax": "Where the greatest element is.",
    "argmin": "Where the least element is.",
    "argsort": "The places of the elements in order of their values.",
    "as_strided": "A view with the sizes, strides and offset given.",
    "atan2": "The angle of the point (other, self), in radians.",
    "bitwise_and": "The bits that both sides have.",
    "bitwise_not": "The other bits.",
    "bitwise_or": "The bits that either side has.",
    "bitwise_xor": "The bits that one side has.",
    "bmm": "The products of two batches of matrices.",
    "cat": "The tensors one after another along a dimension.",
    "ceil": "The least integer that is not less.",
    "clone": "A copy.",
    "conj": "The complex conjugate.",
    "contiguous": "The tensor in row-major order, itself if it is.",
    "conv2d": "The cross-correlation of images with kernels, over two dimensions.",
    "copy": "Take over the elements of another tensor.",
    "cos": "The cosine of every element, in radians.",
    "cross_entropy": "The cross entropy of logits and classes or probabilities.",
    "cumsum": "The sums up to each place of a dimension.",
    "detach": "A view that gradients do not follow.",
    "diagonal": "A view of the diagonal of two dimensions.",
    "div": "The quotient of both sides, rounded if asked for.",
    "dot": "The inner product of two vectors.",
    "dropout": "Zeros at random with probability `p`, the rest scaled up.",
    "embedding": "The rows of a table that the indices name.",
    "eq": "Where both sides are equal.",
    "equal": "Whether shapes and all elements are equal.",
    "erf": "The error function of every element.",
    "exp": "e to the power of every element.",
    "expand": "A view with dimensions of size 1 repeated.",
    "expm1": "`exp` less 1, exact near 0.",
    "fill": "Set every element to a number.",
    "flatten": "The dimensions from one to another as one.",
    "flip": "The order along some dimensions reversed.",
    "floor": "The greatest integer that is not greater.",
    "floor_divide": "The quotient, rounded down.",
    "gather": "The elements along a dimension that the index names.",
    "ge": "Where the left side is not less.",
    "gelu": "The Gaussian error linear unit.",
    "gt": "Where the left side is greater.",
    "index_add": "`source` added to the places of a dimension that the index names.",
    "index_put": "Values put where the index tensors say.",
    "index_select": "The places of a dimension that the index names.",
    "isfinite": "Where the elements are neither infinite nor NaN.",
    "isinf": "Where the elements are infinite.",
    "isnan": "Where the elements are NaN.",
    "layer_norm": "The last dimensions brought to mean 0 and variance 1.",
    "le": "Where the left side is not greater.",
    "linear": "`input @ weight.T + bias`.",
    "log": "The natural logarithm of every element.",
    "log10": "The logarithm to base 10 of every element.",
    "log1p": "The logarithm of 1 and every element, exact near 0.",
    "log2": "The logarithm to base 2 of every element.",
    "log_softmax": "The logarithm of `softmax`.",
    "logical_and": "Where both sides are not 0.",
    "logical_not": "Where the elements are 0.",
    "logical_or": "Where either side is not 0.",
    "logical_xor": "Where one side is not 0.",
    "lt": "Where the left side is less.",
    "masked_fill": "A number put where the mask is true.",
    "masked_select": "The elements where the mask is true, as a vector.",
    "matmul": "The product of matrices, vectors, or batches of them.",
    "max": "The greatest element.",
    "max_pool2d": "The greatest element of every window of images.",
    "max_pool2d_with_indices": "`max_pool2d`, and where each element was.",
    "maximum": "The greater of both sides.",
    "mean": "The mean of the elements.",
    "min": "The least element.",
    "minimum": "The lesser of both sides.",
    "mm": "The product of two matrices.",
    "mul": "The product of both sides.",
    "ne": "Where both sides differ.",
    "neg": "Every element with its sign changed.",
    "new_empty": "Elements of any value, dtype and device those of the tensor.",
    "new_full": "One number everywhere, dtype and device those of the tensor.",
    "new_ones": "Ones, dtype and device those of the tensor.",
    "new_zeros": "Zeros, dtype and device those of the tensor.",
    "nll_loss": "The negative log likelihood of the classes.",
    "nonzero": "The indices of the elements that are not 0, one a row.",
    "normal": "Fill with normal random numbers.",
    "permute": "A view with the dimensions in another order.",
    "pow": "The left side to the power of the right one.",
    "prod": "The product of the elements.",
    "reciprocal": "1 divided by every element.",
    "relu": "Every element, or 0 if it is less.",
    "remainder": "What division rounded down leaves.",
    "reshape": "The elements in another shape, as a view if that can be.",
    "round": "The nearest integer, the even one of two.",
    "rsqrt": "1 divided by the square root of every element.",
    "scatter_add": "`src` added where the index says along a dimension.",
    "select": "A view of one place of a dimension.",
    "sigmoid": "The logistic function of every element.",
    "sign": "-1, 0 or 1 by the sign of every element.",
    "silu": "Every element times its sigmoid.",
    "sin": "The sine of every element, in radians.",
    "softmax": "Exponentials along a dimension, scaled to sum up to 1.",
    "sqrt": "The square root of every element.",
    "square": "Every element times itself.",
    "squeeze": "A view without dimensions of size 1.",
    "stack": "The tensors one after another along a new dimension.",
    "std": "The standard deviation of the elements.",
    "sub": "The difference of both sides, the right one times `alpha`.",
    "sum": "The sum of the elements.",
    "sum_to_size": "The sum over what broadcasting from that shape repeats.",
    "t": "A view of a matrix with its dimensions exchanged.",
    "tan": "The tangent of every element, in radians.",
    "tanh": "The hyperbolic tangent of every element.",
    "transpose": "A view with two dimensions exchanged.",
    "trunc": "Every element without its fraction.",
    "uniform": "Fill with uniform random numbers.",
    "unsqueeze": "A view with a new dimension of size 1.",
    "var": "The variance of the elements.",
    "view": "A view in another shape.",
    "where": "One of two tensors, by a condition.",
    "zero": "Set every element to 0.",
}


def described(name: str, schema: Schema) -> str:
    """A docstring: what it is for, and the schema."""
    sentence = SENTENCES.get(name, "")
    if not sentence:
        stem = SENTENCES.get(name.removesuffix("_"), "")
        sentence = f"{stem.removesuffix('.')}, in place." if stem else ""
    return f"{sentence}\n\nSchema: `{schema}`".lstrip()


def signature_of(schema: Schema) -> Signature:
    """The arguments of a schema as Python's."""
    parameters = []
    for argument in schema.arguments:
        named = argument.kwarg_only
        kind = Parameter.KEYWORD_ONLY if named else Parameter.POSITIONAL_OR_KEYWORD
        default: Any = argument.default if argument.has_default else Parameter.empty
        written = str(argument.type)
        parameters.append(
            Parameter(argument.name, kind, default=default, annotation=written)
        )
    result = ", ".join(str(each.type) for each in schema.returns)
    many = len(schema.returns) != 1
    return Signature(parameters, return_annotation=f"({result})" if many else result)
