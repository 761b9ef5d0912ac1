"""Laws of the extractor: which arguments of a call choose its kernel.

True only here: a type is judged by its text.  Exactly four texts take part in dispatch;
a size, as the 2 of `Tensor[2]`, belongs to the argument and is no part of the type.
"""

from collections.abc import Sequence

from invariants.law import Finding, law
from invariants.placed import Placed

TENSORS = ("Tensor", "Tensor?")
LISTS = ("Tensor[]", "Tensor?[]")


@law("state", per_operator=True)
def without_a_schema_no_argument_is_looked_at(operator: Placed) -> list[Finding]:
    """An operator without a definition looks at no argument."""
    found = operator.entry.extractor
    if operator.entry.definitions or not (found.tensors or found.lists):
        return []
    where = f"{operator.entry.name}, arguments"
    return [(where, "none", _told(found.tensors, found.lists))]


@law("state", per_operator=True)
def the_schema_says_which_arguments_count(operator: Placed) -> list[Finding]:
    """An operator looks at exactly the tensors and lists of tensors of its schema."""
    entry = operator.entry
    if not entry.definitions:
        return []
    types = [str(argument.type) for argument in entry.definitions[0].schema.arguments]
    tensors = tuple(at for at, text in enumerate(types) if text in TENSORS)
    lists = tuple(at for at, text in enumerate(types) if text in LISTS)
    held = entry.extractor
    if (tensors, lists) == (held.tensors, held.lists):
        return []
    where = f"{entry.name}, arguments"
    return [(where, _told(tensors, lists), _told(held.tensors, held.lists))]


def _told(tensors: Sequence[int], lists: Sequence[int]) -> str:
    return f"tensors {list(tensors)}, lists {list(lists)}"
