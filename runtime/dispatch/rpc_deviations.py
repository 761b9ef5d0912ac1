"""Deviations of remote calls.

True only here: this part of the table in `runtime.dispatch.deviations`.
"""

from runtime.dispatch.deviation import Deviation

RPC = (
    Deviation(
        "the class of an error of a remote call",
        "kept of ValueError and TypeError, and by `to_here`; else RuntimeError",
        "always of both: RuntimeError, and that of the original",
        "whoever catches a class means it, wherever the error was raised",
    ),
    Deviation(
        "letters beyond ASCII in the text of a remote error",
        "arrive as other letters",
        "arrive as they are",
        "a text is read by people",
    ),
    Deviation(
        "timeouts below a millisecond",
        "no timeout at all",
        "one millisecond",
        "who says little does not mean for ever",
    ),
    Deviation(
        "negative timeouts",
        "the call expires at once; -1 is the default",
        "refused; -1 is the default",
        "it is the caller's mistake",
    ),
    Deviation(
        "the default timeout, read again",
        "rounded to 32 bits",
        "as it was set",
        "what is set is what one gets",
    ),
    Deviation(
        "several references whose making timed out",
        "the first one of a process is dead, the others wait",
        "each is dead",
        "a reference to nothing must not look usable",
    ),
    Deviation(
        "the type of a value, asked once without waiting",
        "is a future from then on, also for who waits",
        "is a type for who waits",
        "the same question has the same answer",
    ),
    Deviation(
        "`remote` of what cannot be called",
        "a reference, which raises when it is fetched",
        "refused at once, as by `rpc_sync` and `rpc_async`",
        "the same mistake has the same answer",
    ),
    Deviation(
        "a reference to a tuple",
        "cannot be sent; the process may run out of memory",
        "is sent like any other",
        "a tuple is a value",
    ),
    Deviation(
        "names of workers with a hyphen",
        "break the list of members of an open group",
        "are names like any other",
        "the rule for names allows them",
    ),
    Deviation(
        "an asynchronously executed function whose future has an error",
        "the caller gets the exception as a value",
        "the caller gets it raised",
        "an error is no value",
    ),
    Deviation(
        "keywords of a remote call that are no texts",
        "the other worker raises",
        "refused at the caller",
        "nothing is sent that cannot be called",
    ),
    Deviation(
        "functions of remote calls that have no name",
        "cannot be sent",
        "travel with their code, unless a worker runs registered functions only",
        "a lambda is a function",
    ),
    Deviation(
        "`backward` of a reference",
        "for users in a context of distributed autograd only",
        "on the owner, for owner and users; contexts are refused",
        "there is no distributed autograd; gradients stay where the value is",
    ),
    Deviation(
        "a worker that ended without a word, or was cut off",
        "its callers wait for their timeouts, and references to its values stay",
        "is lost at once if its process ended and there was a link to it, else after "
        "ten seconds: callers are told, references are dead",
        "who waits has to know",
    ),
    Deviation(
        "a graceful shutdown to which somebody never comes",
        "waits for ever, and says nothing",
        "names who is missing, and ends when its time is over, or they do",
        "a program has to end",
    ),
    Deviation(
        "packets that are lost",
        "are lost with the connection; messages about references are tried five times",
        "are sent again until they arrive once, or the worker is lost",
        "a call has exactly one end, and nothing runs twice",
    ),
    Deviation(
        "whoever reaches the port of a worker",
        "may send it what runs there",
        "is not heard without a key; on one machine, without the same user",
        "what is unpickled runs",
    ),
    Deviation(
        "requests that wait for one another",
        "sixteen of them wait for ever",
        "a thread that waits makes way for one more",
        "calls in a circle are programs",
    ),
    Deviation(
        "a program with remote calls, saved",
        "its text has no operands, and does not load",
        "is written whole, and loads as it was",
        "what is saved is meant to be loaded",
    ),
    Deviation(
        "arguments by name of a program's remote call",
        "their types are not looked at; keys that are no texts fail an assertion",
        "are held against the schema before anything is sent; keys are texts, or the "
        "program is refused",
        "a mistake is told where it was made",
    ),
    Deviation(
        "an argument without default that a program's remote call gives by name",
        "is missing, whatever the dictionary has",
        "is given, if the dictionary is written in the very call; else missing",
        "what is written there is known",
    ),
    Deviation(
        "an argument of a program's remote call by place and by name",
        "an assertion fails if it has a default",
        "is refused by name, whether it has a default or not",
        "it is the caller's mistake",
    ),
    Deviation(
        "a worker of another type, or a timeout that is an int, in a program",
        "an assertion fails when the program runs",
        "the program is refused; what may be a worker is asked when it runs",
        "the types are known",
    ),
    Deviation(
        "`to_here()` of a program without a timeout",
        "60 seconds, as when the program was compiled",
        "the default of the worker when the program runs",
        "so it is in Python",
    ),
    Deviation(
        "what another worker's function gives a program",
        "is taken for what the function of this name gives here",
        "is held against the type of that",
        "the other worker may have another function of this name",
    ),
    Deviation(
        "a reference to a module, passed on by its owner",
        "refused",
        "is sent like any other",
        "nothing of the module travels",
    ),
    Deviation(
        "dictionaries and lists that are annotated with Any",
        "values of one type, or a union of them and a warning",
        "values of any types",
        "it is written that they may be",
    ),
)
