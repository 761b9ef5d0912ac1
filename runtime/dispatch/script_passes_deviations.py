"""Deviations of what programs keep of themselves when they are optimized.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_PASSES = (
    Deviation(
        "a fork that nobody waits for, and whose body has effects",
        "taken out: the body never runs",
        "stays",
        "what it prints or writes is seen by others",
    ),
    Deviation(
        "a step that raises, and whose value nobody uses (`a // 0`, `a[7]`)",
        "taken out: nothing is raised",
        "raises, unless it is an operator on tensors",
        "Python raises",
    ),
    Deviation(
        "random numbers that nobody uses",
        "not drawn",
        "drawn",
        "the numbers that follow are those that Python would have drawn",
    ),
    Deviation(
        "a loop without effects that stops by its condition alone",
        "taken out",
        "stays",
        "it may run for ever, as in Python",
    ),
    Deviation(
        "tensors computed of constants alone",
        "computed once, when the program is optimized",
        "computed in each run",
        "an operator may have another kernel by then",
    ),
)
