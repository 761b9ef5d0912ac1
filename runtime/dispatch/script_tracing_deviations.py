"""Deviations of tracing.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_TRACING = (
    Deviation(
        "sizes that a traced function reads",
        "values of the trace, which follow its inputs",
        "constants; `len()`, `size()` and iteration are warned of, and the check with "
        "other inputs finds the rest",
        "a size is a plain number, of which no operator hears",
    ),
    Deviation(
        "a trace that computes something else than its function",
        "a warning, or an error if the graphs differ",
        "an error that names the first node that differs; random numbers are warned of",
        "a trace that is wrong is of no use",
    ),
    Deviation(
        "examples that a traced function writes to",
        "are changed",
        "are copied first, one copy for each place",
        "one tensor that is given twice would be one argument",
    ),
    Deviation(
        "a constant of a trace that requires grad",
        "refused",
        "taken: it is the tensor itself",
        "gradients flow to it as in the function",
    ),
    Deviation(
        "grad mode that a traced function switches",
        "not recorded",
        "not recorded, and warned of",
        "the trace would differ without a word",
    ),
    Deviation(
        "operators of a backward pass within a trace",
        "refused, or recorded as constants",
        "recorded, as all others",
        "formulas are written with operators",
    ),
)
