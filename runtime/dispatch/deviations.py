"""Where the runtime differs from torch 2.13, by decision.

True only here: the one table of deviations.  The documentation prints it, a test asks
for a test of every row, and the comparison with torch reads `predicts`: the name of
the function (of the comparison) that says what torch's answer becomes with us.  A row
without `predicts` is nothing that dumps and tables show.

Rule: whoever makes the runtime differ adds a row here, and a test of it.
"""

from runtime.dispatch.deviation import Deviation
from runtime.dispatch.future_deviations import FUTURES
from runtime.dispatch.language_deviations import KEYS, SCHEMAS
from runtime.dispatch.operator_deviations import OPERATORS
from runtime.dispatch.python_deviations import PYTHON, TENSORS
from runtime.dispatch.rpc_deviations import RPC
from runtime.dispatch.script_archive_deviations import SCRIPTS_ARCHIVE
from runtime.dispatch.script_emission_deviations import SCRIPTS_EMISSION
from runtime.dispatch.script_forms_deviations import SCRIPTS_FORMS
from runtime.dispatch.script_modules_deviations import SCRIPTS_MODULES
from runtime.dispatch.script_passes_deviations import SCRIPTS_PASSES
from runtime.dispatch.script_running_deviations import SCRIPTS_RUNNING
from runtime.dispatch.script_tracing_deviations import SCRIPTS_TRACING

__all__ = ["DEVIATIONS", "Deviation"]

_REGISTRATION = (
    Deviation(
        "dispatchers",
        "one in the process",
        "objects; a default one for libraries that name none",
        "tests need their own",
    ),
    Deviation(
        "stale tables",
        "25 pairs of registrations leave a slot that runs the wrong kernel",
        "every registration computes the whole table from rules",
        "the state may not depend on history",
    ),
    Deviation(
        "dump_table",
        "computes a table and shows that",
        "shows the table that calls use",
        "a dump that cannot show the fault hides it",
    ),
    Deviation(
        "DEF and FRAGMENT libraries of namespace `_`",
        "DEF fails inside, FRAGMENT has an error of its own",
        "one error for both",
        "the same mistake has the same answer",
    ),
    Deviation(
        "DEF and FRAGMENT libraries with a key",
        "an internal assertion",
        "an ordinary error",
        "it is the caller's mistake",
    ),
    Deviation(
        "impl() in a library of namespace `_`",
        "an error that names no namespace, or a crash of the process",
        "one clean error",
        "it is the caller's mistake",
    ),
    Deviation(
        "define() with a kernel that does not fit",
        "the definition stays",
        "nothing stays",
        "a failed call can be repeated",
        "half_of_a_failed_definition",
    ),
    Deviation(
        "an alias fallback where one key is taken",
        "the keys before it stay",
        "nothing stays",
        "a failed call can be repeated",
        "half_of_a_failed_fallback",
    ),
    Deviation(
        "a definition of more than 64 arguments",
        "leaves an empty operator for ever",
        "nothing stays",
        "a failed call can be repeated",
        "an_entry_without_owner",
    ),
    Deviation(
        "impl() for several keys, one of them refused",
        "the earlier keys stay",
        "nothing stays",
        "a failed call can be repeated",
    ),
    Deviation(
        "ends of registrations",
        "a destructor, once",
        "close(), idempotent; a context manager; the library owns it",
        "Python programs close what they open",
    ),
    Deviation(
        "libraries that are garbage collected",
        "deregister on the spot, inside of arbitrary code",
        "are taken down by the next registration, or by Dispatcher.drain()",
        "a lock taken in a finalizer deadlocks",
    ),
    Deviation(
        "closed libraries",
        "go on registering",
        "refuse",
        "nobody would take the newcomers down",
    ),
    Deviation(
        "typed signatures",
        "the first kernel's type is recorded for ever, even of a refused kernel",
        "the live typed kernels share one signature, derived from annotations",
        "a kernel that is gone binds nobody",
    ),
    Deviation(
        "kernels of Python functions",
        "never typed; schemas are not checked",
        "an annotated function is typed and checked, any other is not",
        "annotations are there to be checked",
    ),
    Deviation(
        "override warnings",
        "once in a process, naming the kernel that set the signature",
        "each time, naming the kernel that is overridden; an error registers nothing",
        "the first overridden kernel is seldom the one that matters",
    ),
    Deviation(
        "listeners that register",
        "a deadlock",
        "an error",
        "they run inside of a registration",
    ),
    Deviation(
        "listeners that raise",
        "leave a schema with wrong counts",
        "abandon a registration, those told are told the reverse; a removal completes",
        "a failed call can be repeated, and a removal cannot be refused",
    ),
    Deviation(
        "second definitions",
        "always an error (2020: merged by alias kind)",
        "an error; merged only by a dispatcher that asks for the 2020 rule",
        "old programs can be explored, new ones are not misled",
    ),
    Deviation(
        "built-in fallbacks of the autograd keys",
        "kernels that make backward raise",
        "fall through, until the autograd area is imported",
        "there is no backward without it",
    ),
    Deviation(
        "teaching tool: register() twice",
        "adds to what was registered",
        "replaces it",
        "a lesson starts from nothing",
    ),
)

_CALLS = (
    Deviation(
        "operators that are gone",
        "a stale object fails an internal assertion",
        "an error that says so; the handle works again when the operator is back",
        "it is the caller's mistake",
    ),
    Deviation(
        "calls beside registrations in other threads",
        "may run a kernel that was freed",
        "see one published state, whose kernels stay alive",
        "tables are values",
    ),
    Deviation(
        "calls of which every key fell through or is excluded",
        "reported as having no tensor",
        "reported as what they are, with the keys of the call",
        "the caller did pass tensors",
    ),
    Deviation(
        "the dispatch trace",
        "only in debug builds",
        "always: a context of the dispatcher, or EVERYORDER_TRACE=1",
        "it is the first thing one wants to see",
    ),
    Deviation(
        "the stack of a boxed kernel",
        "not checked",
        "the balance is checked after every call",
        "the fault shows where it is",
    ),
    Deviation(
        "the number of returns",
        "not checked",
        "checked",
        "the fault shows where it is",
    ),
    Deviation(
        "defaults filled into a call",
        "what is missing is None; positional arguments by name and surplus are lost",
        "the call is bound, with the errors of a call",
        "a guess hides the mistake",
    ),
    Deviation(
        "which overload a call means",
        "the first that was registered and fits",
        "the first by overload name that fits",
        "the answer may not depend on history",
    ),
    Deviation(
        "None for a bool",
        "False",
        "refused",
        "an argument that was forgotten is no answer",
    ),
    Deviation(
        "a text for str[]",
        "the list of its characters",
        "refused",
        "nobody means that",
    ),
    Deviation(
        "NumPy numbers for Scalar",
        "refused",
        "taken",
        "the arrays of this runtime are NumPy's",
    ),
    Deviation(
        "one number for SymInt[N]",
        "refused",
        "repeated, as for int[N]",
        "the two differ in nothing else",
    ),
    Deviation(
        "pairs for a Dict",
        "taken",
        "refused",
        "a list is no dictionary",
    ),
    Deviation(
        "values for a Stream",
        "every object, whose memory is then taken for that of a stream",
        "no plain value: an object of its own",
        "the memory of a number is no stream",
    ),
    Deviation(
        "values for Any",
        "only those that have a schema type",
        "every object",
        "any means any",
    ),
    Deviation(
        "lists and dictionaries that are written to, as in `t[](a!)`",
        "a copy is written to, and the caller's own stays as it was",
        "the caller's own is written to; one that would be converted is refused",
        "a write that is lost is a wrong answer later",
    ),
)

DEVIATIONS = (
    *(*KEYS, *SCHEMAS, *_REGISTRATION, *_CALLS),
    *(*TENSORS, *OPERATORS, *PYTHON, *FUTURES),
    *(*SCRIPTS_RUNNING, *SCRIPTS_PASSES, *SCRIPTS_MODULES, *SCRIPTS_TRACING),
    *SCRIPTS_ARCHIVE,
    *SCRIPTS_EMISSION,
    *SCRIPTS_FORMS,
    *RPC,
)
