"""Deviations of programs that run.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

SCRIPTS_RUNNING = (
    Deviation(
        "`raise` of a program, outside of it",
        "`torch.jit.Error`; the class of the exception is a part of the text",
        "the class that the program names, with a note of the frames",
        "whoever catches an exception of Python's catches it from a program, too",
    ),
    Deviation(
        "what an operator raises within a program",
        "RuntimeError, with the text of the frames",
        "the very exception, with a note of the frames",
        "the class says what a caller can do",
    ),
    Deviation(
        "the error of a forked task, for who waits",
        "RuntimeError",
        "the exception of the task",
        "whether a function is forked makes no difference to its errors",
    ),
    Deviation(
        "lists and dictionaries at the boundary of a program",
        "copied: what the program writes is lost",
        "the caller's own",
        "so it is with a function of Python's",
    ),
    Deviation(
        "integers of a list where floats are asked for, at the boundary",
        "converted, in the copy",
        "refused",
        "the list is the caller's own, and holds no floats",
    ),
    Deviation(
        "an eager await or future that gives another type than its parameter says",
        "goes on as it is, until something fails",
        "refused when it is waited for, with the type and the value",
        "the program was compiled for the type",
    ),
    Deviation(
        "an await that a program made",
        "`is_nowait()` is true, and `args()` is empty",
        "false, and what was captured",
        "it has not run, and can tell what of",
    ),
    Deviation(
        "`isinstance(x, int)` of True, where x may be anything",
        "false",
        "true",
        "so it is in Python",
    ),
    Deviation(
        "an operator that is registered anew, under a compiled function",
        "the function runs the kernels of the operator that it was compiled with",
        "runs what is registered, or raises if the schema is another one",
        "what is deregistered does not run",
    ),
    Deviation(
        "`__exit__` of a block that raises",
        "called with three times None",
        "called with the class, the exception and the traceback",
        "so it is in Python",
    ),
)
