"""Deviations from torch 2.13 that show in keys, names and schemas.

True only here: what concerns text and sets, whoever uses them; the rest of the table,
and the rules for all of it, are in `deviations`.
"""

from runtime.dispatch.deviation import Deviation

KEYS = (
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

SCHEMAS = (
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
        "default texts of other types",
        '`int x="a"` prints without the quotes, which does not parse',
        "prints the quotes",
        "printing and parsing are inverse",
        "a_text_for_another_type",
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
        "None is in it already",
        "an_optional_none",
    ),
    Deviation(
        "unions with None",
        "None is a member or the union an optional, as it is written",
        "the union is an optional",
        "what says the same is one type, with one text",
        "a_union_with_none",
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
