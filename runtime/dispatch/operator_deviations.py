"""Deviations of the operators of namespace `core`.

True only here: this part of the table in `runtime.dispatch.deviations`.  What the
samples of upstream show (`tests/torch/samples`) names its row here.
"""

from runtime.dispatch.deviation import Deviation

OPERATORS = (
    Deviation(
        "how results lie that are not computed element by element",
        "as the kernels of an operator leave them",
        "row by row; views and sums lie as their first operand",
        "one order, whatever the algorithm; dense strides of operators that work "
        "element by element are kept, as upstream",
    ),
    Deviation(
        "`out=` of another shape",
        "resized, with a warning where it has elements, to the strides of the result",
        "refused if it has elements; else resized, row by row",
        "what is there is not lost unasked",
    ),
    Deviation(
        "`out=` of another dtype",
        "must be that of the result for some operators",
        "every dtype that holds the result",
        "one rule for all operators",
    ),
    Deviation(
        "`out=` of what makes as many elements as it finds, or is made of nothing",
        "taken",
        "there is no such form",
        "nobody knows the shape before the call, so nothing is spared",
    ),
    Deviation(
        "`conj()`, and `conj_physical`, `resolve_conj`, `is_conj`, `is_neg`",
        "a view that is conjugated when it is read, or the tensor itself",
        "computed at once, a tensor of its own; the other names are absent",
        "a lazy bit would be state that each kernel has to ask for",
    ),
    Deviation(
        "classes of exceptions",
        "RuntimeError, IndexError, ValueError, TypeError or NotImplementedError, by "
        "operator and device",
        "a class for each reaction: refusals of operators are RuntimeErrors and, by "
        "what is wrong, IndexError, ValueError or TypeError too; calls that do not fit "
        "a schema are TypeErrors",
        "programs for torch that catch RuntimeError go on; the class says what to do",
    ),
    Deviation(
        "a number for an operand of an operator of two",
        "taken where there is an overload",
        "taken for either side, by all of them",
        "`numbers_as_tensors` is one tag",
    ),
    Deviation(
        "a Python bool in a difference, `x - True`",
        "refused, like a tensor of bools",
        "the number 1; a tensor of bools is refused",
        "numbers have no dtype to refuse",
    ),
    Deviation(
        "dimensions of a tensor that has none",
        "0 and -1 for most operators, refused by some",
        "0 and -1 for all; a shift by no numbers is none",
        "one rule for all operators",
    ),
    Deviation(
        "integers in convolutions and in means of windows",
        "computed, and cut",
        "refused",
        "`mean` refuses them as well",
    ),
    Deviation(
        "options that are left out: nuclear norms, `output_size` of "
        "`repeat_interleave`, tensors as bounds of `linspace`",
        "taken",
        "refused by name",
        "no singular values; a size that is known; numbers are read by `item()`",
    ),
    Deviation(
        "`batch_norm` of one dimension",
        "taken",
        "refused",
        "channels are the second dimension",
    ),
    Deviation(
        "an index without elements, of another dtype",
        "taken",
        "refused, as with elements",
        "the dtype alone decides",
    ),
    Deviation(
        "`sum_to_size` where nothing is summed",
        "the dtype of a sum",
        "the tensor itself",
        "nothing is summed",
    ),
    Deviation(
        "which of equal elements `topk` finds first",
        "any",
        "the first",
        "the same on every device",
    ),
    Deviation(
        "last digits of what cancels, or of large exponents",
        "those of the kernel",
        "those of ours, or nearer to the exact value",
        "rounding is no promise",
    ),
    Deviation(
        "`acos` of complex128",
        "pi / 2 - asin(z): small results lose digits, and zeros their sign",
        "as of C, like complex64 upstream",
        "both precisions have one branch",
    ),
    Deviation(
        "functions of complex numbers that upstream lacks, `xlogy`",
        "refused",
        "computed",
        "what it is made of is there",
    ),
    Deviation(
        "gradients that upstream does not have, or loses",
        "refused (`unique`, weights of `bincount`, `scatter` with `reduce=`), "
        "undefined (`norm(x, 0, dim)`), or passed on (`x.logical_and_(y)`)",
        "those of the elements that were taken; of counts and truths zero",
        "a gradient is right, or refused",
    ),
    Deviation(
        "`einsum` of one operand, and `dropout` that does not train",
        "a view, or the tensor itself",
        "a tensor of its own",
        "a result that is sometimes a view cannot be written to safely",
    ),
    Deviation(
        "what a meta tensor is asked",
        "dtypes and sizes that kernels refuse are taken by some operators",
        "refused as with elements",
        "a plan serves every device",
    ),
)
