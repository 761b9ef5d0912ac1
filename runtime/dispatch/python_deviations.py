"""Deviations of tensors, their gradients, and of dispatch to Python.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

TENSORS = (
    Deviation(
        "`y.mul_(y)` under autograd",
        "refused when it is run backwards: the factor was written to",
        "the gradient of a square",
        "the factor is kept as it was before",
    ),
    Deviation(
        "writes between partly overlapping tensors",
        "refused, or any result",
        "the operand is copied first",
        "the result is what the operator says",
    ),
    Deviation(
        "a tensor compared with a list",
        "False",
        "an error",
        "nobody means that",
    ),
    Deviation(
        "a nested list as a subscript, `x[[[0, 1], [1, 0]]]`",
        "a tuple of indices, one for each dimension",
        "one index tensor of two dimensions, as in NumPy",
        "torch warns that it will do so, too",
    ),
    Deviation(
        "None for a tensor that an operator of ours requires",
        "an undefined tensor, which kernels refuse or not",
        "an error that names the argument",
        "`defined_tensors`, a tag that other operators may have, too",
    ),
    Deviation(
        "a bool for an integer that an operator of ours takes",
        "refused by functions and methods, taken by `torch.ops`",
        "refused by all",
        "`integers_only`, a tag that other operators may have, too",
    ),
    Deviation(
        "`.numpy()` of what requires grad, in a kernel",
        "refused, unless gradients are switched off",
        "allowed below autograd",
        "nothing is recorded there that a write could falsify",
    ),
)

PYTHON = (
    Deviation(
        "results of a class of tensors without a handler",
        "are of that class (`__torch_function__`)",
        "are plain tensors",
        "`__torch_function__` is not built; a handler says what results are",
    ),
    Deviation(
        "`tensor(...)` and `from_numpy` inside of a mode",
        "the mode sees `lift_fresh`",
        "the mode sees nothing: they make plain tensors of data",
        "`full`, `zeros`, `arange` and the other factories are seen",
    ),
    Deviation(
        "a handler that is a plain method",
        "a warning, and a call with the class for `self`",
        "an error when the first tensor of the class is made",
        "the fault is in the class",
    ),
    Deviation(
        "the handler of a mode that is a classmethod",
        "an error at the first operator",
        "an error when the mode is entered",
        "the fault is in the class",
    ),
    Deviation(
        "handlers inside of one another without end",
        "RecursionError",
        "an error that names the handler and what to do, with that one as its cause",
        "the traceback shows a thousand frames and not the reason",
    ),
    Deviation(
        "a handler that leaves modes entered, or leaves others",
        "the stack stays as it was left",
        "an error; the stack is as before",
        "a handler may not change what runs next to it",
    ),
    Deviation(
        "modes left in another order",
        "the innermost one goes, whichever is left",
        "an error that names both",
        "the wrong mode would go on seeing operators",
    ),
    Deviation(
        "the key Python without mode or handler",
        "an internal assertion",
        "an error that says how it came to that",
        "who includes keys by hand should read it",
    ),
    Deviation(
        "results of several values",
        "the length of what a handler returns is not looked at",
        "it is",
        "a value would be lost, or made up",
    ),
    Deviation(
        "the module of an operator that a handler sees",
        "`torch._ops.<namespace>`",
        "`runtime.ops.<namespace>`",
        "that is where it is",
    ),
    Deviation(
        "several interpreters",
        "no longer possible",
        "contexts, each with kernels, modes and classes of its own",
        "plugins of one process can be kept apart",
    ),
    Deviation(
        "the version of what a custom operator writes to",
        "raised twice if the function itself writes through operators",
        "raised once by a call",
        "it counts calls that wrote",
    ),
)
