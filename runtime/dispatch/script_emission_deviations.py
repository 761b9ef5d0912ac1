"""Deviations of programs: what expressions and statements mean.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_EMISSION = (
    Deviation(
        "the middle of a chain of comparisons",
        "computed twice",
        "computed once",
        "Python does",
    ),
    Deviation(
        "the target of an augmented assignment",
        "what is between the brackets is computed twice",
        "computed once",
        "Python does",
    ),
    Deviation(
        "an empty list without annotation",
        "a list of tensors",
        "a list of what is put into it first",
        "what it holds is seen from its first use",
    ),
    Deviation(
        "a loop over a list that grows or shrinks",
        "as many rounds as there were elements before it",
        "the length is asked for in each round",
        "Python does",
    ),
    Deviation(
        "a loop over a dictionary that grows or shrinks",
        "goes on with the keys that there were",
        "RuntimeError",
        "Python raises it",
    ),
    Deviation(
        "numbers and texts of the module around a function",
        "refused, unless they are declared Final",
        "constants, as they were when the function was compiled",
        "they are written to be used",
    ),
    Deviation(
        "variables of one name and two types",
        "refused where the ways meet",
        "refused where the variable is used",
        "what nobody uses does no harm",
    ),
)
