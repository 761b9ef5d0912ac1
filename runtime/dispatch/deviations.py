"""Where the runtime differs from torch 2.13, by decision.

True only here: the one table of deviations.  The documentation prints it, a test asks
for a test of every row, and the comparison with torch reads `predicts`: the name of
the function (of the comparison) that says what torch's answer becomes with us.  A row
without `predicts` is nothing that dumps and tables show.

Rule: whoever makes the runtime differ adds a row here, and a test of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deviation:
    """One difference: its name, torch's behaviour, ours, the reason, a prediction."""

    what: str
    upstream: str
    ours: str
    why: str
    predicts: str = ""


_KEYS = (
    Deviation(
        "guards of HIP, VE and MTIA",
        "a kernel there does not keep composites from its autograd key",
        "it does, as for every other backend",
        "the gap is an omission: the map is derived from the model of keys",
        "autograd_keys_of_forgotten_backends",
    ),
    Deviation(
        "names of runtime keys",
        "dozens of them cannot be read",
        "every runtime key can be read",
        "what can be printed can be written",
        "a_key_that_torch_cannot_read",
    ),
    Deviation(
        "kernels at building blocks",
        "accepted; such a kernel reaches no slot, and yet guards others",
        "refused with the keys that would do",
        "it can never run",
        "a_kernel_at_a_building_block",
    ),
    Deviation(
        "aliases as members of aliases",
        "an alias key counts as a member of Autograd and others",
        "no alias is a member of anything",
        "only runtime keys are members",
    ),
    Deviation(
        "has() of keys without bits",
        "true for Undefined and aliases: the empty set is in every set",
        "false",
        "no call can be about them",
    ),
    Deviation(
        "full_after() of an alias",
        "the empty set, silently",
        "an error",
        "an alias has no place in the order of keys",
    ),
    Deviation(
        "switching a per-backend key on and off",
        "leaves the backend bit behind; later calls go to that backend",
        "restores the exact bits",
        "a switch that is off must not change calls",
    ),
)

_SCHEMAS = (
    Deviation(
        "the order of alias sets",
        "`a|b` prints in the order of a hash table",
        "sorted",
        "printing is deterministic and parses back",
        "the_order_of_alias_sets",
    ),
    Deviation(
        "`Tensor!`",
        "prints as `Tensor($0! -> )`, which does not parse",
        "prints as written",
        "printing and parsing are inverse",
        "a_set_of_its_own",
    ),
    Deviation(
        "a wildcard beside other sets",
        "`a|*` keeps both, `*|a` is refused",
        "both read as `*`",
        "the wildcard says it all",
        "a_wildcard_with_other_sets",
    ),
    Deviation(
        "a wildcard before other sets",
        "refused",
        "taken, as behind them",
        "the order in a set means nothing",
        "a_wildcard_before_other_sets",
    ),
    Deviation(
        "annotated elements that are optional",
        "`Tensor(a)?[]` prints as `Tensor?(a)[]`, which does not parse",
        "prints as written",
        "printing and parsing are inverse",
        "an_annotation_of_an_optional_element",
    ),
    Deviation(
        "default lists of equal integers",
        "`int[] x=[1, 1]` prints as `int[] x=1`, which does not parse",
        "prints in full",
        "printing and parsing are inverse",
        "a_list_of_equal_ints",
    ),
    Deviation(
        "Scalar in a union",
        "printed last, with a stray comma",
        "printed at its place",
        "printing and parsing are inverse",
        "a_union_with_a_scalar",
    ),
    Deviation(
        "hexadecimal numbers",
        "`0x10` reads as 0",
        "refused",
        "a silent other number is worse than an error",
        "a_hexadecimal_number",
    ),
    Deviation(
        "integers beyond 64 bits",
        "an IndexError of the number reader",
        "a schema error at the number",
        "whoever wrote the schema must see where",
    ),
    Deviation(
        "two arguments of one name",
        "accepted",
        "refused",
        "no call could pass both by keyword",
        "an_argument_named_twice",
    ),
    Deviation(
        "a list without default behind a default",
        "accepted, unlike every other type",
        "refused like every other type",
        "the default before it could never be used",
        "a_late_list_without_default",
    ),
    Deviation(
        "alias annotations inside Dict, Union, tuples",
        "accepted and forgotten, with the write that they say",
        "refused",
        "a forgotten write is a wrong answer later",
        "an_annotation_inside_a_type",
    ),
    Deviation(
        "complex defaults without j",
        "the last digit is taken for the j",
        "read as they stand",
        "a silent other number is worse than an error",
        "a_complex_default_without_j",
    ),
    Deviation(
        "numbers too small for a double",
        "refused",
        "zero, as Python reads them",
        "the nearest double is zero",
        "a_float_that_is_nearly_zero",
    ),
    Deviation(
        "`NoneType?`",
        "an internal assertion",
        "NoneType",
        "None is its only value either way",
        "an_optional_none",
    ),
    Deviation(
        "a union of one type",
        "an internal assertion",
        "that type",
        "nothing else is in it",
        "a_union_of_one_type",
    ),
    Deviation(
        "PURE_FUNCTION with alias annotations",
        "accepted; found out later, by the compiler",
        "refused when defined",
        "the two contradict each other",
        "a_pure_function_with_annotations",
    ),
    Deviation(
        "tags of an operator that loses its schema",
        "stay",
        "go with the definition",
        "an operator defined anew has the tags of its new definition",
    ),
)

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
        "calls that fail half-way",
        "a definition with a kernel, impl() for several keys, an alias fallback and a "
        "definition of 65 arguments leave what came before the failure",
        "leave nothing",
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
)

DEVIATIONS = (*_KEYS, *_SCHEMAS, *_REGISTRATION, *_CALLS)
