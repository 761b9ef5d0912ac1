"""Deviations of futures and awaits.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

FUTURES = (
    Deviation(
        "keyword arguments of an eager await",
        "dropped; the function fails when it is waited for",
        "given to the function, and told by `kwargs()`",
        "what is written in a call is meant",
    ),
    Deviation(
        "an attribute that the value of an await lacks",
        "None, and `hasattr` is always true",
        "an AttributeError that names the type of the value",
        "a mistyped name goes on as None",
    ),
    Deviation(
        "two threads that wait for one await",
        "both may run the function",
        "one does, the other waits for it",
        "what is made lazily is meant to be made once",
    ),
    Deviation(
        "`type()` of an eager await",
        "`Await[PyObject]`",
        "`Await[Any]`",
        "it is an annotation that can be written",
    ),
    Deviation(
        "the error of a future",
        "the exception is its value, which only `wait` of this very object raises",
        "has a place of its own",
        "whoever takes the value gets the error instead",
    ),
    Deviation(
        "an error as the second completion of a future",
        "refused, but `wait` raises TypeError from then on",
        "refused; the first completion stays",
        "a failed call changes nothing",
    ),
    Deviation(
        "`set_exception` of no exception",
        "AssertionError",
        "TypeError",
        "an assertion can be switched off",
    ),
    Deviation(
        "errors that callbacks hand on",
        "each `then` puts its own text around that of the one before",
        "the error of the callback that failed, itself, with what was raised as cause",
        "a long chain has a short error",
    ),
    Deviation(
        "`value()` of a future that is not complete",
        "an internal assertion",
        "an error that says so",
        "it is the caller's mistake",
    ),
    Deviation(
        "classes of futures",
        "three; what `then` returns is not of the class that programs construct",
        "one",
        "`isinstance` is what it seems",
    ),
    Deviation(
        "timeouts of `wait`",
        "none",
        "seconds; FutureTimeout leaves the future as it was",
        "who waits for another machine must be able to stop",
    ),
    Deviation(
        "devices of a future",
        "those of accelerators, whose streams it synchronises",
        "the CPU; others are refused by name",
        "kernels of the runtime are complete when they return",
    ),
    Deviation(
        "an exit or Ctrl-C in a callback",
        "the error of the child like any other",
        "that, and raised by who completes the future, after all callbacks ran",
        "a program that is to end ends",
    ),
)
